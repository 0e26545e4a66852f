//! `fullpipe stack presets`.

use fullpipe_report::{PresetLatency, PresetRow, PresetTable, json, text};
use fullpipe_stack::{
    Preset, Settings,
    experiment::{Load, PresetOutcome, PresetTrial, Work, preset_trial},
};
use fullpipe_tcp::socket::SocketOptions;
use fullpipe_units::Micros;

use super::super::{Ended, lab, printed};
use crate::{args::StackPresetsArgs, exit::Exit, interrupt, output::Output};

/// From one piece to the next: several in any round trip that a preset matters on.
const PIECE_GAP: Micros = Micros::from_millis(1);

pub(super) fn run(args: &StackPresetsArgs, output: Output) -> Ended {
    let scenario = lab::scenario(&args.scenario)?;
    lab::enter()?;
    let stop = interrupt::cancel_flag()?;
    let profile = super::profile(args.profile);
    let load = Load {
        message_bytes: args.message.into(),
        gap: args.gap.into(),
        messages: args.messages,
        pieces: args.pieces,
        piece_gap: PIECE_GAP.into(),
        bulk_bytes: args.bulk.get(),
    };
    let settings = Settings { profile, ..Settings::new(&[]) };
    let mut rows = Vec::new();
    for work in Work::ALL {
        for preset in Preset::ALL {
            let options = preset.applied(SocketOptions::from_profile(&profile));
            let trial = PresetTrial { work, load, settings: settings.clone(), options };
            let outcome = preset_trial(&scenario, &trial, &stop)?;
            output.remark(&format!("{} with {}: {:.3} s\n", work.name(), preset.name(), outcome.seconds));
            rows.push(row(work, preset, &outcome));
        }
    }
    let table = PresetTable {
        scenario: scenario.name.clone(),
        profile: profile.name,
        rtt_us: scenario.path.rtt().get(),
        message_bytes: args.message.into(),
        messages: args.messages,
        gap_us: args.gap.get(),
        pieces: args.pieces,
        piece_gap_us: PIECE_GAP.get(),
        bulk_bytes: args.bulk.get(),
        rows,
    };
    printed(output.result(|| json::preset_table("stack presets", &table), |look| text::preset_table(&table, look)))?;
    Ok(if table.is_valid() { Exit::Ok } else { Exit::PathNotKept })
}

fn row(work: Work, preset: Preset, outcome: &PresetOutcome) -> PresetRow {
    let us = |part| outcome.latency(part).map(|span| Micros::from(span).get());
    PresetRow {
        work: work.name(),
        preset: preset.name(),
        seconds: outcome.seconds,
        bytes: outcome.bytes,
        latency: us(0.5).zip(us(0.99)).map(|(p50_us, p99_us)| PresetLatency { p50_us, p99_us }),
        data_segments: outcome.data_segments,
        acks: outcome.acks,
        peer_acks: outcome.peer_acks,
        wire_bytes: outcome.wire_bytes,
        retransmits: outcome.retransmits,
        valid: outcome.valid,
    }
}
