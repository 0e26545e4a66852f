//! What a prediction starts from: flags, a document of a measurement or of a capture, files of settings.

use std::path::PathBuf;

use fullpipe_knobs::Platform;
use fullpipe_report::json::{SeenEnd, SeenTransfer, read_seen};
use fullpipe_sim::{HostSpec, Machine, Overrides, SimError, Spec, as_seen, knob, platform};
use fullpipe_units::{Micros, Rate};

use crate::{
    args::WhatIfArgs,
    commands::{forecast, input::Input, settings},
    failure::Failure,
};

/// The largest document that is read: a few hundred captured connections are some megabytes.
const LARGEST: usize = 256 << 20;
pub(super) const RATE: Rate = Rate::from_bps(100_000_000);
pub(super) const RTT: Micros = Micros::from_millis(80);
pub(super) const QUEUE: &str = "1bdp";
pub(super) const PLATFORM: &str = "linux-6.18";

/// A simulation without any `--set`.
pub(super) struct Base {
    /// The direction of the document.
    pub(super) direction: Option<String>,
    pub(super) spec: Spec,
    /// What was measured.
    pub(super) measured: Option<Rate>,
    pub(super) situation: String,
    pub(super) notes: Vec<String>,
}

/// One for each direction that the document tells of, else one.
pub(super) fn all(args: &WhatIfArgs) -> Result<Vec<Base>, Failure> {
    let Some(file) = &args.seen else { return Ok(vec![from_flags(args)?]) };
    let input = Input::read(file, LARGEST)?;
    let seen = read_seen(&input.name, &input.bytes, args.conn, args.direction.as_deref())?;
    seen.iter().map(|seen| from_seen(args, seen)).collect()
}

fn from_flags(args: &WhatIfArgs) -> Result<Base, Failure> {
    let mut notes = Vec::new();
    let (rate, rtt) = (args.rate.unwrap_or(RATE), args.rtt.unwrap_or(RTT));
    let (loss, queue) = (args.loss.as_deref().unwrap_or("0"), args.queue.as_deref().unwrap_or(QUEUE));
    let mut named = Vec::new();
    let mut host = |own: Option<&String>, files: &[PathBuf]| -> Result<HostSpec, Failure> {
        if !files.is_empty() {
            let machine = machine(own, files, None, &mut notes)?;
            notes.extend(machine.note());
            return Ok(machine.host());
        }
        let known = platform(own.map_or(PLATFORM, String::as_str))?;
        if !known.verified && !named.contains(&known.name) {
            notes.push(format!("not every figure of {} was confirmed: {}", known.name, known.source));
        }
        named.push(known.name);
        Ok(known.host())
    };
    let from = host(args.from.as_ref(), &args.from_settings)?;
    let to = host(args.to.as_ref(), &args.to_settings)?;
    let words = if loss == "0" { String::new() } else { format!(", loss {loss}") };
    let situation = format!("{rate} over {rtt}{words}, queue {queue}, from {} to {}", from.platform, to.platform);
    let mut spec = knob::one_link(rate, rtt, loss, queue, [from, to])?;
    (spec.seed, spec.bytes, spec.time) = (args.seed, args.bytes, args.seconds.unwrap_or(Micros::from_secs(10)));
    Ok(Base { direction: None, spec, measured: None, situation, notes })
}

fn from_seen(args: &WhatIfArgs, seen: &SeenTransfer) -> Result<Base, Failure> {
    let mut notes = Vec::new();
    let rtt = args.rtt.or(seen.rtt).unwrap_or_else(|| {
        notes.push(format!("the document has no idle round-trip time: assuming {RTT}; give --rtt"));
        RTT
    });
    if seen.streams > 1 {
        let text =
            "the measurement had {} connections at once: one is simulated, with the rate of all of them as its path's";
        notes.push(text.replace("{}", &seen.streams.to_string()));
    }
    let overrides = Overrides {
        link: args.rate,
        loss: args.loss.as_deref().map(|loss| knob::fraction("--loss", loss)).transpose()?,
        queue: args.queue.as_deref().map(knob::queue).transpose()?,
        sender: !args.from_settings.is_empty(),
        receiver: !args.to_settings.is_empty(),
    };
    let sender = machine(args.from.as_ref(), &args.from_settings, Some(("sender", &seen.ends[0])), &mut notes)?;
    let receiver = machine(args.to.as_ref(), &args.to_settings, Some(("receiver", &seen.ends[1])), &mut notes)?;
    let (mut spec, more) = as_seen(&forecast::seen(seen, rtt), &overrides, &sender, &receiver)?;
    notes.extend(more);
    spec.seed = args.seed;
    spec.time = args.seconds.unwrap_or(spec.time);
    spec.omit = Micros::new(spec.omit.get().min(spec.time.get() / 3));
    if args.bytes.is_some() {
        (spec.bytes, spec.omit) = (args.bytes, Micros::ZERO);
    }
    let rate = spec.path.bottleneck(fullpipe_path::Direction::AToB).unwrap_or_default();
    let situation =
        format!("{}: {rate} over {rtt}, from {} to {}", seen.direction, spec.sender.platform, spec.receiver.platform);
    Ok(Base { direction: Some(seen.direction.clone()), spec, measured: Some(seen.rate), situation, notes })
}

/// One end: the platform that a flag, a file of settings or the document tells, with the settings of the files.
fn machine(
    flag: Option<&String>,
    files: &[PathBuf],
    seen: Option<(&str, &SeenEnd)>,
    notes: &mut Vec<String>,
) -> Result<Machine, Failure> {
    if !files.is_empty() {
        let known: Option<Platform> = flag.map(|name| name.parse()).transpose().map_err(|error| unknown(&error))?;
        let settings = settings::of_files(files, known.as_ref())?.1.settings;
        let mut machine = Machine::new(&settings.platform.to_string())?;
        let taken = forecast::set_all(&mut machine, &settings);
        let others = settings.values.len() - taken.len();
        let taken = if taken.is_empty() { "none".to_owned() } else { taken.join(", ") };
        notes.push(format!(
            "of the files of {} are simulated: {taken}; {others} others have no counterpart",
            settings.platform
        ));
        return Ok(machine);
    }
    if let Some(name) = flag {
        return Ok(Machine::new(name)?);
    }
    let known = seen.and_then(|(_, end)| end.platform.as_deref());
    let role = seen.map_or("host", |(role, _)| role);
    if let Some(name) = known
        && let Ok(machine) = Machine::new(name)
    {
        if seen.is_some_and(|(_, end)| end.is_guess) {
            notes.push(format!("the {role} looks like {name}, a guess from its SYN"));
        }
        return Ok(machine);
    }
    let flag = if role == "sender" { "--from" } else { "--to" };
    notes.push(format!("the {role}'s platform is unknown: assuming {PLATFORM}; give {flag}"));
    Ok(Machine::new(PLATFORM)?)
}

fn unknown(error: &impl ToString) -> Failure {
    Failure::from(SimError::Value {
        key: "--from or --to".to_owned(),
        value: "the platform of a machine whose files are given".to_owned(),
        reason: error.to_string(),
    })
}
