//! What `measure` found, and the line of each interval while it runs.

use fullpipe_measure::{Cpu, DirectionMeasurement, Measurement, PeerKind, Phase, Progress};
use fullpipe_units::Micros;

use super::page::{GOOD, Look, PLAIN, Page, WARN, or_dash, percent};
use crate::measured::{Measured, name, seconds_per_gb};

/// The line of an interval: time, rates, and what the kernel says.
pub fn interval(progress: &Progress) -> String {
    let mut text = format!("{:7.2} s", progress.elapsed.as_secs_f64());
    for (name, rate) in [("up", progress.up_bps), ("down", progress.down_bps)] {
        if let Some(rate) = rate {
            text += &format!("  {name} {rate}");
        }
    }
    if let Some(rtt) = progress.rtt_us {
        text += &format!("  rtt {rtt}");
    }
    for (name, size) in [("cwnd", progress.cwnd), ("window", progress.window)] {
        if let Some(size) = size {
            text += &format!("  {name} {size}");
        }
    }
    if let Some(retransmits) = progress.retransmits {
        text += &format!("  retransmitted {retransmits}");
    }
    if let Some(datagrams) = progress.datagrams {
        text += &format!("  lost {} of {}", datagrams.lost, datagrams.packets);
        if let Some(jitter_us) = datagrams.jitter_us {
            text += &format!("  jitter {:.3} ms", jitter_us / 1e3);
        }
    }
    if progress.phase == Phase::Omitted {
        text += "  (does not count)";
    }
    text + "\n"
}

/// The whole result.
pub fn measured(measured: &Measured<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let measurement = measured.measurement;
    for direction in &measurement.directions {
        put_direction(&mut page, direction);
    }
    page.gap();
    put_processor(&mut page, measured);
    put_push(&mut page, measurement);
    let peer = match measurement.peer_kind {
        PeerKind::Fullpipe => "fullpipe; both ends were seen",
        PeerKind::Iperf3 => "an iperf3 server; only this end was seen",
    };
    page.field("far end", &format!("{} ({}), {peer}", measured.host, measurement.peer));
    if measurement.cancelled {
        page.styled_field("stopped", WARN, "before its time; the figures are of what was measured until then");
    }
    for warning in &measurement.warnings {
        page.styled_field("note", WARN, warning);
    }
    if let Some(output) = &measurement.server_output {
        page.gap();
        page.paragraph(0, PLAIN, "the server's output:");
        for line in output.lines() {
            page.paragraph(2, PLAIN, line);
        }
    }
    page.finish()
}

fn put_direction(page: &mut Page, direction: &DirectionMeasurement) {
    page.title(name(direction.direction), GOOD, &or_dash(direction.rate_bps));
    page.field("received", &format!("{} in {:.2} s, as the receiver counted", direction.bytes, direction.seconds));
    if let Some(datagrams) = direction.datagrams {
        page.field("datagrams", &datagrams.to_string());
        return;
    }
    if let Some(steady) = direction.steady_bps {
        page.field("steady", &format!("{steady} without slow start"));
    }
    let idle = direction.idle_rtt.map(|rtt| rtt.min_us);
    let loaded = direction.loaded_rtt.map(|rtt| rtt.p50_us);
    page.field("round trip", &format!("{} idle (smallest), {} loaded (median)", or_dash(idle), or_dash(loaded)));
    let Some(transfer) = direction.transfers.first() else { return };
    let mut kernel = vec![transfer.sender.congestion_control.clone().unwrap_or_else(|| "-".to_owned())];
    if let Some(last) = transfer.sender_samples.last() {
        kernel.extend(last.mss.map(|mss| format!("segments of {mss} B")));
        kernel.extend(last.cwnd.map(|cwnd| format!("cwnd {cwnd}")));
        kernel.extend(last.offered_window.map(|window| format!("window {window}")));
    }
    if direction.transfers.len() > 1 {
        kernel.push(format!("the first of {} connections", direction.transfers.len()));
    }
    page.field("sender", &kernel.join(", "));
    page.field("retransmitted", &format!("{} segments", or_dash(direction.retransmits)));
    if let Some(limited) = limited(transfer.sender_samples.last()) {
        page.field("limited by", &limited);
    }
}

/// What the sender's kernel says that it waited for.
fn limited(last: Option<&fullpipe_diagnose::SenderSample>) -> Option<String> {
    let last = last?;
    let busy = last.busy_us?.get();
    let share = |part: Option<Micros>| percent(part.map_or(0, Micros::get) as f64 / busy.max(1) as f64);
    Some(format!(
        "by the receiver's window {}, by the send buffer {} of the time in which it had something to send",
        share(last.rwnd_limited_us),
        share(last.sndbuf_limited_us)
    ))
}

/// What `--max` did, so that nobody takes it for what an application gets.
fn put_push(page: &mut Page, measurement: &Measurement) {
    let ends = [("here", measurement.own_push.as_ref()), ("there", measurement.far_push.as_ref())];
    for (end, push) in ends.into_iter().filter_map(|(end, push)| Some((end, push?))) {
        for (role, choice) in [("sent", &push.sending), ("received", &push.receiving)] {
            let Some(choice) = choice else { continue };
            let mut text = format!("{role} {end} with {}: {}", choice.mechanism.name(), choice.reason);
            for refused in &choice.refused {
                text += &format!("; {} can't be used: {}", refused.mechanism.name(), refused.reason);
            }
            if let Some(left) = choice.left {
                text += &format!("; left after {:.1} s, because {}", left.at_s, left.harm.told());
            }
            page.field("max", &text);
        }
    }
}

fn put_processor(page: &mut Page, measured: &Measured<'_>) {
    let measurement = measured.measurement;
    let of = |cpu: &Cpu| {
        let mut text = format!("{:.0} %", cpu.percent());
        if let Some(seconds) = seconds_per_gb(cpu.percent(), measured) {
            text += &format!(" ({seconds:.3} s per GB)");
        }
        text
    };
    let far = measurement.far_cpu.as_ref().map_or_else(|| "-".to_owned(), of);
    page.field("processor", &format!("{} here, {far} there", of(&measurement.own_cpu)));
}
