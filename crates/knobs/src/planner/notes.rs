//! What a plan says where no buffer is at fault.

use fullpipe_diagnose::{Detail, Limiter};

use super::{
    Flow, PlanRequest,
    linux::{self, SACK, Wanted},
};
use crate::{Address, Plan};

/// Notes for a flow that neither a window nor a send buffer limits; a change only where one switch is plainly wrong.
pub(super) fn other_limiters(request: &PlanRequest<'_>, flow: &Flow<'_>, wanted: &mut Wanted, plan: &mut Plan) {
    let arrow = arrow(flow);
    let sender = flow.transfer.sender.name.as_str();
    let words = match flow.diagnosis.limiter {
        Limiter::Path => "the path is full; no TCP setting of either host makes it faster".to_owned(),
        Limiter::Application => {
            "the sending application had nothing to send for most of the time; no setting of the system changes that"
                .to_owned()
        }
        Limiter::InsufficientEvidence => "too little was seen to change anything; measure for longer".to_owned(),
        Limiter::CongestionWindow => congestion_window(request, flow, wanted),
        Limiter::AckDelay => format!(
            "small writes wait for delayed acknowledgements; TCP_NODELAY in the application on {sender} ends that, and no sysctl does"
        ),
        Limiter::SegmentSize => segment_size(request, flow, wanted),
        Limiter::Reordering => format!(
            "reordering is taken for loss; Linux learns the distance by itself up to net.ipv4.tcp_max_reordering on {sender}, so look for what reorders on the path first"
        ),
        Limiter::Handshake => {
            "most of the time went into setting connections up; reuse connections, or use TCP Fast Open in both applications"
                .to_owned()
        }
        Limiter::Cpu => {
            "a processor of one end is busy all the time; no buffer helps: look at offloads, the MTU and the number of streams"
                .to_owned()
        }
        // The caller plans for these two.
        Limiter::ReceiveWindow | Limiter::SendBuffer => return,
    };
    plan.notes.push(format!("{arrow}: {words}"));
}

fn congestion_window(request: &PlanRequest<'_>, flow: &Flow<'_>, wanted: &mut Wanted) -> String {
    let sender = flow.transfer.sender.name.as_str();
    match flow.diagnosis.detail {
        Some(Detail::SlowStart) => {
            let idle = request.host(sender).and_then(|host| host.settings.sysctl("net.ipv4.tcp_slow_start_after_idle"));
            let idle = match idle {
                Some("1") => {
                    "; where the connection pauses between bursts, net.ipv4.tcp_slow_start_after_idle=0 there keeps its window, at the price of an old-size burst after the pause"
                }
                _ => "",
            };
            format!(
                "the transfer ended while the congestion window was still growing; longer connections help, and `initcwnd` on {sender}'s route starts higher at the price of a larger first burst{idle}"
            )
        }
        _ => {
            if flow.transfer.lacks_sack() {
                for end in [&flow.transfer.sender, &flow.transfer.receiver] {
                    wanted.switch(
                        &end.name,
                        Address::sysctl(SACK),
                        "1",
                        format!("losses limit {}, and {}: one end left them out", arrow(flow), linux::without_sack()),
                    );
                }
            }
            format!(
                "loss holds the congestion window down; find what drops on the path. Another congestion control on {sender} (per route: `congctl`) may go faster, but takes its share from other flows; it is yours to choose and not set here"
            )
        }
    }
}

fn segment_size(_request: &PlanRequest<'_>, flow: &Flow<'_>, wanted: &mut Wanted) -> String {
    let sender = flow.transfer.sender.name.as_str();
    if flow.diagnosis.detail == Some(Detail::MtuBlackHole) {
        wanted.switch(
            sender,
            Address::sysctl("net.ipv4.tcp_mtu_probing"),
            "1",
            format!(
                "large segments of {} vanish and no ICMP message says so; probing finds the size that passes",
                arrow(flow)
            ),
        );
        return "the lasting cure is to let ICMP `fragmentation needed` and `packet too big` through on the path"
            .to_owned();
    }
    "segments are smaller than the path could take; a larger MTU helps only where both ends and every hop agree on it"
        .to_owned()
}

/// `a->b`.
pub(super) fn arrow(flow: &Flow<'_>) -> String {
    format!("{}->{}", flow.transfer.sender.name, flow.transfer.receiver.name)
}
