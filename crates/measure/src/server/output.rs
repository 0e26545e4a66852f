//! What a client sees of this end that asked for the server's output: the same figures, as a person would read them.

use std::net::SocketAddr;

use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    lane::Role,
    report::{EndReport, LaneReport},
    sys::host,
    wire::Params,
};

pub(super) fn text(peer: SocketAddr, params: &Params, report: &EndReport) -> String {
    let mut lines =
        vec![format!("fullpipe {} on {}", env!("CARGO_PKG_VERSION"), host::name()), format!("test with {peer}")];
    for (name, value) in [("title", &params.title), ("extra data", &params.extra_data)] {
        if let Some(value) = value {
            lines.push(format!("{name}: {value}"));
        }
    }
    for lane in &report.lanes {
        lines.push(format!("[{:>3}] {}", lane.id, figures(lane)));
    }
    let cpu = report.cpu_user_percent + report.cpu_system_percent;
    lines.push(format!("processor: {cpu:.1} % ({:.1} % in the kernel)", report.cpu_system_percent));
    lines.join("\n") + "\n"
}

fn figures(lane: &LaneReport) -> String {
    let seconds = lane.steady_us as f64 / 1e6;
    let bytes = Bytes::new(lane.moved);
    let rate =
        Rate::from_bytes(bytes, Micros::new(lane.steady_us)).map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let role = if lane.role == Role::Send { "sent" } else { "received" };
    let mut text = format!("{role} {bytes} in {seconds:.2} s, {rate}");
    if let Some(retransmits) = lane.retransmits {
        text += &format!(", {retransmits} retransmitted");
    }
    if let Some(datagrams) = &lane.datagrams {
        text += &format!(", {datagrams}");
    }
    if let Some(name) = &lane.congestion_control {
        text += &format!(", {name}");
    }
    text
}
