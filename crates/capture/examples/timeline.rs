//! What the judge is given of each connection's larger direction, a line per sample, and what it makes of it:
//! `cargo run -p fullpipe-capture --example timeline -- CAPTURE...` (pcap or pcapng, not compressed). With `--brief` first,
//! a line of JSON for each connection.

use std::{error::Error, fs};

use fullpipe_capture::{Keep, Reader, Tracker, Verdict};
use fullpipe_diagnose::{Diagnosis, PacketSample, Transfer};

fn main() -> Result<(), Box<dyn Error>> {
    let is_brief = std::env::args().nth(1).is_some_and(|argument| argument == "--brief");
    for path in std::env::args().skip(1 + usize::from(is_brief)) {
        let bytes = fs::read(&path)?;
        let mut tracker = Tracker::new(1, Keep { transfers: true });
        let mut reader = Reader::new();
        let used = reader.read(&bytes, &mut tracker)?;
        reader.finish(&bytes[used..], &mut tracker)?;
        let found = tracker.finish();
        for index in 0..found.connections.len() {
            let Some(report) = found.connections.get(index) else { continue };
            let Some(verdict) = &report.main_side().verdict else { continue };
            if is_brief {
                println!("{}", brief(&path, verdict));
                continue;
            }
            println!("{path} #{}: {:#?}", report.number, verdict.diagnosis);
            if let Some(transfer) = &verdict.transfer {
                print(transfer, verdict);
            }
        }
    }
    Ok(())
}

fn brief(path: &str, verdict: &Verdict) -> String {
    let Diagnosis { limiter, detail, confidence, share, evidence, .. } = &verdict.diagnosis;
    let words = |text: String| text.replace('"', "'");
    let text = words(evidence.first().map(|evidence| evidence.text.clone()).unwrap_or_default());
    format!(
        "{{\"file\": \"{path}\", \"limiter\": \"{limiter:?}\", \"detail\": \"{detail:?}\", \"confidence\": \
         \"{confidence:?}\", \"share\": {share:.2}, \"text\": \"{text}\"}}"
    )
}

fn print(transfer: &Transfer, verdict: &Verdict) {
    if let Some(drops) = &transfer.drops {
        println!("lost {}, wait behind {:?}:", drops.bytes, drops.wait_us);
        for drop in &drops.list {
            println!("  drop {:10.1} {:12}", drop.at_us.get() as f64 / 1e3, drop.passed.get());
        }
    }
    let sum = |count: fn(&PacketSample) -> u32| -> u32 {
        transfer.sender_samples.iter().filter_map(|sample| sample.packets.as_ref()).map(count).sum()
    };
    let (clocked, woken) = (sum(|packets| packets.clocked), sum(|packets| packets.woken));
    let bytes = |count: fn(&PacketSample) -> u64| -> u64 {
        transfer.sender_samples.iter().filter_map(|sample| sample.packets.as_ref()).map(count).sum()
    };
    let prompted = bytes(|packets| packets.prompted.get()) * 100 / bytes(|packets| packets.sent.get()).max(1);
    let unprompted = bytes(|packets| packets.unprompted.get()) * 100 / bytes(|packets| packets.sent.get()).max(1);
    let credited = bytes(|packets| packets.credited.get()) * 100 / bytes(|packets| packets.sent.get()).max(1);
    println!("credited {credited} % by {} messages", sum(|packets| packets.credits));
    let per_ms = f64::from(sum(|packets| packets.prompts)) / (transfer.duration_us.get() as f64 / 1e3);
    println!(
        "pauses: clocked {clocked}, woken {woken}, written {}; write {:?}; prompted {prompted} %, unprompted {unprompted} %, \
         {per_ms:.2} prompts per ms",
        sum(|packets| packets.written),
        transfer.write.map(|write| (write, transfer.write_every_us))
    );
    println!(
        "      ms   mean fl     peak  offered    rtt    acked     sent unprm retr to ooo dsk  clk wok wri ask  idle  held stary   dry  label"
    );
    for pair in transfer.sender_samples.windows(2) {
        let [before, at] = pair else { continue };
        let Some(packets) = at.packets else { continue };
        let count = |a: Option<u64>, b: Option<u64>| b.unwrap_or(0).saturating_sub(a.unwrap_or(0));
        let run = verdict.runs.iter().find(|run| run.from_us < at.at_us.get() && at.at_us.get() <= run.to_us);
        println!(
            "{:8.1} {:>9} {:>8} {:>8} {:6.1} {:>8} {:>8} {:>5} {:>4} {:>2} {:>3} {:>3}  {:>3} {:>3} {:>3} {:>3} {:>5.1} {:>5.1} {:>5.1} {:>5.1}  {}",
            at.at_us.get() as f64 / 1e3,
            at.in_flight.unwrap_or_default().get(),
            packets.peak.get(),
            at.offered_window.unwrap_or_default().get(),
            at.rtt_us.unwrap_or_default().get() as f64 / 1e3,
            at.acked.get() - before.acked.get(),
            packets.sent.get(),
            packets.unprompted.get() * 100 / packets.sent.get().max(1),
            count(before.retransmits, at.retransmits),
            count(before.timeouts, at.timeouts),
            count(before.reordering_seen.map(u64::from), at.reordering_seen.map(u64::from)),
            count(before.dsacks.map(u64::from), at.dsacks.map(u64::from)),
            packets.clocked,
            packets.woken,
            packets.written,
            packets.asked,
            packets.idle_us.get() as f64 / 1e3,
            packets.held_us.get() as f64 / 1e3,
            packets.starved_us.get() as f64 / 1e3,
            packets.dry_us.get() as f64 / 1e3,
            run.map(|run| format!("{:?} {:?}", run.limiter, run.detail)).unwrap_or_default(),
        );
    }
}
