//! `fullpipe stack table`.

use fullpipe_path::{Direction, Fitted, Sweep};
use fullpipe_report::{DeviceAdvice, DeviceRow, DeviceTable, html::Charts, json, text};
use fullpipe_stack::experiment::{self, BUFFER_BYTES, Found, OwnDevice, POOL, Row};
use fullpipe_units::{Bytes, Micros, Rate};

use super::super::{Ended, lab};
use crate::{args::StackTableArgs, exit::Exit, failure::Failure, interrupt, output::Output};

pub(super) fn run(args: &StackTableArgs, output: Output) -> Ended {
    args.page.check()?;
    let own = args.rate.zip(args.rtt).map(|(rate, rtt)| OwnDevice {
        rate,
        rtt,
        loss: args.loss,
        per_packet: args.per_packet,
        waits: !args.streams,
        connections: args.connections,
    });
    let mut scenario = match (&own, &args.scenario) {
        (Some(own), _) => own.scenario()?,
        (None, Some(named)) => lab::scenario(named)?,
        (None, None) => {
            let message = "no device to make a table of; name a scenario with one (netburner-lan, netburner-wan or \
                           lossy-devices), or give your own path: --rate 10M --rtt 40ms";
            return Err(Failure::new(Exit::Usage, message));
        }
    };
    if scenario.device.is_none() {
        let message = format!(
            "the scenario {} has no device to make a table of; take netburner-lan, netburner-wan or lossy-devices",
            scenario.name
        );
        return Err(Failure::new(Exit::ScenarioInvalid, &message));
    }
    lab::enter()?;
    let stop = interrupt::cancel_flag()?;
    let found = if args.fit { experiment::fit(&mut scenario, &stop)? } else { Vec::new() };
    let Some(device) = scenario.device.clone() else { return Ok(Exit::Ok) };
    let ready = |row: &Row| {
        let role = if row.sends { "sends" } else { "receives" };
        output.remark(&format!("{role} with {} buffers: {:.3} s\n", row.buffers, row.seconds()));
    };
    let rows = experiment::table(&scenario, &device, &ready, &stop)?;
    let fitted = device.fitted.iter().map(|fit| {
        let what = match fit.quantity {
            Fitted::PerPacket => "the device's time per packet",
            Fitted::Rtt => "the path's round-trip time",
        };
        format!("{what}, to the published time of {} with {} buffers", fit.scenario, fit.buffers)
    });
    let advised = |sends: bool, own: &OwnDevice| {
        own.advised(rows.iter().filter(|row| row.sends == sends).map(|row| (row.buffers, row.seconds())))
    };
    let table = DeviceTable {
        scenario: scenario.name.clone(),
        summary: scenario.summary.clone(),
        published: scenario.published.clone(),
        bytes: device.bytes.get(),
        per_packet_us: device.per_packet.get(),
        rtt_us: scenario.path.rtt().get(),
        rate_bps: scenario.path.bottleneck(Direction::AToB).map(Rate::bps),
        loss: scenario.path.loss(Direction::AToB),
        waits: device.waits,
        sweep: match device.sweep {
            Sweep::All => "all",
            Sweep::OutOfOrder(_) => "out_of_order",
        },
        fitted: fitted.chain(found.iter().map(anew)).collect(),
        tolerance: device.tolerance,
        rows: rows.iter().map(|row| line(row, device.bytes, own.as_ref())).collect(),
        advice: own.map(|own| DeviceAdvice {
            sends: advised(true, &own),
            receives: advised(false, &own),
            connections: own.connections,
            pool: POOL,
            buffer_bytes: BUFFER_BYTES,
        }),
    };
    args.page.result(
        output,
        || json::device_table("stack table", &table),
        Charts::default,
        |look| text::device_table(&table, look),
    )?;
    Ok(if table.as_expected() {
        Exit::Ok
    } else if table.rows.iter().any(|row| (row.published_s.is_some() || row.held.is_some()) && !row.valid) {
        Exit::PathNotKept
    } else {
        Exit::NotAsExpected
    })
}

fn anew(found: &Found) -> String {
    let Found { us, seconds, published, .. } = found;
    format!("anew: {us:.0} us gives {seconds:.3} s where {published:.3} s was published")
}

fn line(row: &Row, bytes: Bytes, own: Option<&OwnDevice>) -> DeviceRow {
    let seconds = row.seconds();
    let rate = Rate::from_bytes(bytes, Micros::new((seconds * 1e6) as u64)).unwrap_or_default();
    DeviceRow {
        buffers: row.buffers,
        role: if row.sends { "sends" } else { "receives" },
        seconds,
        runs: row.runs.len(),
        rate_bps: rate.bps(),
        retransmits: row.runs.iter().map(|run| run.counts.retransmits).sum(),
        early_dropped: row.runs.iter().map(|run| u64::from(run.early_dropped)).sum(),
        published_s: row.published,
        deviation: row.deviation(),
        fitted: row.fitted,
        valid: row.runs.iter().all(|run| run.valid),
        held: own.map(|own| own.held(row.buffers)),
        asked: own.map(|own| own.asked(row.buffers)),
    }
}
