//! Transfers by others: writers and readers of many kinds, programs of others, paths with a trouble of their own.

mod flow;
mod packets;
mod programs;
mod scenes;
mod sys;
mod truth;

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use fullpipe_lab::{CouldNotKeepUp, Lab, LabOptions, Side};
use fullpipe_path::{
    CoDelSpec, Direction, Discipline, Headers, HopSpec, IpVersions, LossSpec, MtuSpec, OversizeVerdict, PathHop,
    PathSpec, PolicerSpec, QueueSize, QueueSpec, ReorderBy, ReorderSpec,
};
use fullpipe_units::{Bytes, Micros, Rate};

pub(crate) use self::truth::Measured;
use self::{
    flow::Flow,
    packets::{Carried, Packets},
    programs::Programs,
    truth::{Intent, Kernel},
};
use crate::{
    PAUSES, Place, Run, Vantage,
    capture::{self, Capture, Live},
    cases::{Allowed, allow},
    traffic::watched,
    write,
};

/// A path of one hop. Times are one way and back.
#[derive(Clone, Debug)]
pub(crate) struct Road {
    pub(crate) mbps: f64,
    pub(crate) rtt_ms: u64,
    /// Of the bandwidth-delay product.
    pub(crate) queue: f64,
    pub(crate) loss: Option<LossSpec>,
    /// So many, and later by so many us.
    pub(crate) reorder: Option<(f64, u64)>,
    /// Mbit/s, and the bucket in KB.
    pub(crate) police: Option<(f64, u64)>,
    /// Larger packets vanish.
    pub(crate) hole: Option<u32>,
    /// Controlled delay that marks.
    pub(crate) marks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Train,
    Held,
    /// The scenes of both with figures drawn by this seed, which nobody has seen before.
    Drawn(u64),
}

/// How a capture is changed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Without its first part.
    Begin,
    /// Without its last part.
    End,
    /// Without one packet of so many.
    Holes(usize),
    /// As frames of a VLAN.
    Tagged,
}

#[derive(Clone, Debug)]
pub(crate) enum Play {
    Flow(Flow),
    Programs(Programs),
}

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) name: String,
    pub(crate) family: &'static str,
    pub(crate) case: &'static str,
    pub(crate) part: Part,
    pub(crate) stack: &'static str,
    pub(crate) congestion: &'static str,
    pub(crate) road: Road,
    pub(crate) sender: Side,
    /// Settings of both hosts.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    pub(crate) receiver_settings: Vec<(&'static str, &'static str)>,
    pub(crate) sender_settings: Vec<(&'static str, &'static str)>,
    pub(crate) offload: bool,
    pub(crate) ipv6: bool,
    pub(crate) play: Play,
    pub(crate) intent: Intent,
    pub(crate) cuts: Vec<Cut>,
}

/// An application that is woken later than this makes a pause of its own.
const LATEST: Duration = Duration::from_millis(3);

impl Part {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Held => "held",
            Self::Drawn(_) => "drawn",
        }
    }

    pub(crate) fn named(name: &str, seed: u64) -> Option<Self> {
        [Self::Train, Self::Held, Self::Drawn(seed)].into_iter().find(|part| part.as_str() == name)
    }
}

impl Cut {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begin => "begins-in-the-middle",
            Self::End => "ends-in-the-middle",
            Self::Holes(_) => "misses-packets",
            Self::Tagged => "vlan",
        }
    }
}

impl Road {
    pub(crate) fn new(mbps: f64, rtt_ms: u64) -> Self {
        Self { mbps, rtt_ms, queue: 1.0, loss: None, reorder: None, police: None, hole: None, marks: false }
    }

    fn spec(&self, sender: Side, ipv6: bool) -> PathSpec {
        let rate = Rate::from_bps((self.mbps * 1e6) as u64);
        let size = QueueSize::Bdp { multiple: self.queue, at_least: 16 };
        let plain = HopSpec {
            rate: Some(rate),
            delay: Micros::new(self.rtt_ms * 500),
            queue: QueueSpec { size, discipline: Discipline::DropTail },
            ..HopSpec::default()
        };
        let mut forth = plain.clone();
        forth.loss = self.loss;
        forth.reorder =
            self.reorder.map(|(probability, us)| ReorderSpec { probability, by: ReorderBy::Later(Micros::new(us)) });
        forth.police = self
            .police
            .map(|(mbps, kb)| PolicerSpec { rate: Rate::from_bps((mbps * 1e6) as u64), burst: Bytes::new(kb << 10) });
        forth.mtu = self.hole.map(|bytes| MtuSpec { bytes, oversize: OversizeVerdict::Silent });
        if self.marks {
            forth.queue.discipline = Discipline::CoDel(CoDelSpec { ecn: true, ..CoDelSpec::default() });
        }
        let (ab, ba) = match sender {
            Side::A => (forth, plain),
            Side::B => (plain, forth),
        };
        let ip = if ipv6 { IpVersions::V6 } else { IpVersions::V4 };
        PathSpec { mtu: 1_500, ip, hops: vec![PathHop { name: None, ab, ba }] }
    }
}

/// Makes those of `part` that are not there yet, `most` at the most.
pub(crate) fn make(
    place: Place<'_>,
    part: Part,
    most: usize,
    jobs: usize,
    is_wanted: impl Fn(&Scene) -> bool + Send,
) -> Result<(), Box<dyn Error>> {
    let dir = place.dir;
    fs::create_dir_all(dir)?;
    let index = dir.join("corpus.json");
    let old: BTreeMap<String, Run> = match fs::read(&index) {
        Ok(text) => serde_json::from_slice::<Vec<Run>>(&text)?.into_iter().map(|run| (run.name.clone(), run)).collect(),
        Err(_) => BTreeMap::new(),
    };
    let mut old = old;
    let all = scenes::of(part);
    for scene in &all {
        scene.label_anew(dir, &mut old);
    }
    let scenes = all.into_iter().filter(is_wanted).take(most).filter(|scene| {
        old.get(&scene.name)
            .is_none_or(|run| run.invalid.as_ref().is_some_and(|invalid| !invalid.starts_with("ambiguous")))
    });
    let queue = Mutex::new(scenes.enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let known = Mutex::new(old.clone());
    let worker = || -> Result<(), String> {
        while let Some((number, scene)) = next() {
            let runs = scene.make_valid(place, number as u64);
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.extend(runs.into_iter().map(|run| (run.name.clone(), run)));
            write(&index, &known).map_err(|error| format!("write {}: {error}", index.display()))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
    })?;
    Ok(())
}

impl Scene {
    fn make_valid(&self, place: Place<'_>, seed: u64) -> Vec<Run> {
        let mut runs = self.make(place, seed);
        for pause in &PAUSES[1..2] {
            let Some(invalid) = &runs[0].invalid else { break };
            if invalid.starts_with("ambiguous") {
                break;
            }
            thread::sleep(*pause);
            runs = self.make(place, seed);
        }
        let run = &runs[0];
        let bps = run.bytes as f64 * 8.0 / run.seconds.max(1e-9);
        eprintln!("{:<52} {:>8.2} Mbit/s: {}", run.name, bps / 1e6, run.invalid.as_deref().unwrap_or("valid"));
        runs
    }

    /// What is there already gets the label that this version gives.
    fn label_anew(&self, dir: &Path, known: &mut BTreeMap<String, Run>) {
        let Some(run) = known.get(&self.name) else { return };
        if run.invalid.as_ref().is_some_and(|invalid| !invalid.starts_with("ambiguous")) {
            return;
        }
        if let Some(measured) = run.measured {
            known.extend(self.labelled(dir, &measured).into_iter().map(|run| (run.name.clone(), run)));
        }
    }

    fn send_buffer(&self) -> Option<usize> {
        match &self.play {
            Play::Flow(flow) => flow.send_buffer,
            Play::Programs(_) => Some(32 << 10),
        }
    }

    fn make(&self, place: Place<'_>, seed: u64) -> Vec<Run> {
        match self.carry_out(place, seed) {
            Ok((measured, None)) => self.labelled(place.dir, &measured),
            Ok((measured, invalid)) => vec![self.run(Some(&measured), invalid, &[vec![], vec![]], None)],
            Err(error) => vec![self.run(None, Some(error.to_string()), &[vec![], vec![]], None)],
        }
    }

    fn labelled(&self, dir: &Path, measured: &Measured) -> Vec<Run> {
        let allowed = match self.intent.allowed(measured) {
            Ok(allowed) => allowed,
            Err(ambiguous) => return vec![self.run(Some(measured), Some(ambiguous), &[vec![], vec![]], None)],
        };
        let mut runs = vec![self.run(Some(measured), None, &allowed, None)];
        for cut in &self.cuts {
            let failed = self.cut(dir, *cut).err().map(|error| error.to_string());
            runs.push(self.run(
                Some(measured),
                failed,
                &cut_allows(*cut, &allowed, !self.settings.contains(&scenes::NO_TIMESTAMPS)),
                Some(*cut),
            ));
        }
        runs
    }

    fn carry_out(&self, place: Place<'_>, seed: u64) -> Result<(Measured, Option<String>), Box<dyn Error>> {
        let dir = place.dir;
        let options = LabOptions { offload: self.offload, ..LabOptions::default() };
        let spec = self.road.spec(self.sender, self.ipv6);
        let lab = Lab::join(&spec, seed, options)?;
        let common = [
            ("net.ipv4.tcp_rmem", "4096 131072 16777216"),
            ("net.ipv4.tcp_wmem", "4096 131072 16777216"),
            ("net.ipv4.tcp_congestion_control", "reno"),
        ];
        let owned = |settings: &[(&str, &str)]| -> BTreeMap<String, String> {
            settings.iter().map(|(address, value)| ((*address).to_owned(), (*value).to_owned())).collect()
        };
        for side in Side::ALL {
            lab.host(side).apply(&owned(&common))?;
            lab.host(side).apply(&owned(&self.settings))?;
        }
        for side in Side::ALL {
            capture::set_congestion(lab.host(side), self.congestion)?;
        }
        lab.host(self.sender).apply(&owned(&self.sender_settings))?;
        lab.host(self.sender.other()).apply(&owned(&self.receiver_settings))?;
        let file = |side: Side| dir.join(self.file(side, None));
        let captures =
            [Capture::start(lab.host(Side::A), &file(Side::A))?, Capture::start(lab.host(Side::B), &file(Side::B))?];
        let ss = dir.join(self.tcp_info());
        let watch = capture::watch_sockets(lab.host(self.sender), &ss)?;
        let live = place.record(lab.host(self.sender), &self.name)?;
        lab.reset_error_stats();
        let scratch = Scratch::new(&self.name)?;
        let (done, late) = watched(|| match &self.play {
            Play::Flow(flow) => flow.run(&lab, self.sender),
            Play::Programs(programs) => programs.run(&lab, &scratch.0),
        })?;
        let mut invalid = lab.valid().err().filter(|error| self.minds(error)).map(|error| error.to_string());
        if late > LATEST {
            invalid.get_or_insert_with(|| format!("the applications were woken up to {late:?} late"));
        }
        watch.stop()?;
        live.map(Live::stop).transpose()?;
        // What tcpdump has not been given yet comes within its timeout of a second.
        thread::sleep(Duration::from_millis(1_200));
        for capture in captures {
            let dropped = capture.stop()?;
            if dropped > 0 {
                invalid = Some(format!("the capture lacks {dropped} packets"));
            }
        }
        done?;
        let from = lab.host(self.sender).address();
        let carried = |side: Side| -> Result<_, Box<dyn Error>> {
            Ok(Packets::read(&file(side))?.carried(from).ok_or("nothing was carried")?)
        };
        let most_in_flight = carried(self.sender)?.most_in_flight;
        let carried = Carried { most_in_flight, ..carried(self.sender.other())? };
        let host = |side: Side| lab.host(side).address().to_string();
        let watched = fs::read_to_string(&ss)?;
        let kernel = Kernel::between(&watched, &host(Side::A), &host(Side::B));
        let direction = match self.sender {
            Side::A => Direction::AToB,
            Side::B => Direction::BToA,
        };
        let hops = lab.path_stats(direction);
        let headers = Headers { ipv6: self.ipv6, timestamps: true };
        let payload = spec.payload_rate(direction, headers).ok_or("the path has no rate")?;
        if !watched.contains(&format!(" {} ", self.congestion)) && carried.seconds > 0.6 && carried.bytes > 0 {
            return Err(format!("no socket ran {}", self.congestion).into());
        }
        let measured = Measured {
            carried,
            kernel: kernel.unwrap_or_default(),
            fill: carried.bytes as f64 * 8.0 / carried.seconds.max(1e-6) / payload.bps() as f64,
            queue_drops: hops
                .iter()
                .map(|hop| hop.queue.dropped_full + hop.queue.dropped_red + hop.queue.dropped_codel)
                .sum(),
            lost: hops.iter().map(|hop| hop.lost).sum(),
            policed: hops.iter().map(|hop| hop.policed).sum(),
            rtt_s: self.road.rtt_ms as f64 / 1e3,
            send_buffer: self.send_buffer(),
        };
        Ok((measured, invalid))
    }

    /// A path that is a little late changes no label: what is judged here are transfers whose limiter stands out. Up to
    /// a twentieth of the round trip, and never more than a millisecond or a hundredth of it, is jitter as real paths have.
    fn minds(&self, error: &CouldNotKeepUp) -> bool {
        let rtt_us = self.road.rtt_ms * 1_000;
        let limit_us = (rtt_us / 20).min(1_000).max(rtt_us / 100);
        !matches!(error, CouldNotKeepUp::Late { late_us, .. } if *late_us <= limit_us)
    }

    fn cut(&self, dir: &Path, cut: Cut) -> std::io::Result<()> {
        for side in Side::ALL {
            let packets = Packets::read(&dir.join(self.file(side, None)))?;
            let file = dir.join(self.file(side, Some(cut)));
            let all = packets.len();
            match cut {
                Cut::Begin => packets.write(&file, |number| number > all * 3 / 10)?,
                Cut::End => packets.write(&file, |number| number < all * 7 / 10)?,
                // Multiplied by a large odd number, so that it is not each n-th.
                // Not the handshake: that is another variant.
                Cut::Holes(of) => packets
                    .write(&file, |number| number < 10 || number.wrapping_mul(2_654_435_761) % (1 << 32) % of != 0)?,
                Cut::Tagged => packets.write_tagged(&file, 42)?,
            }
        }
        Ok(())
    }

    fn run(
        &self,
        measured: Option<&Measured>,
        invalid: Option<String>,
        allowed: &[Vec<Allowed>; 2],
        cut: Option<Cut>,
    ) -> Run {
        let spec = self.road.spec(self.sender, self.ipv6);
        let headers = Headers { ipv6: self.ipv6, timestamps: true };
        let payload = spec.payload_rate(Direction::AToB, headers).map_or(0, |rate| rate.bps());
        let vantage = |side: Side| {
            let allowed = allowed[usize::from(side != self.sender)].clone();
            (side.as_str().to_owned(), Vantage { file: self.file(side, cut), allowed })
        };
        let kernel = measured.map(|measured| measured.kernel).unwrap_or_default();
        Run {
            name: self.named(cut),
            case: self.case.to_owned(),
            path: format!("{}M-{}ms", self.road.mbps, self.road.rtt_ms),
            congestion: self.congestion.to_owned(),
            sender: self.sender.as_str().to_owned(),
            bytes: measured.map_or(0, |measured| measured.carried.bytes),
            seconds: measured.map_or(0.0, |measured| measured.carried.seconds),
            payload_bps: payload,
            rtt_us: self.road.rtt_ms * 1_000,
            invalid,
            vantages: Side::ALL.map(vantage).into(),
            tcp_info: self.tcp_info(),
            family: cut.map_or(self.family, |_| "variants").to_owned(),
            stack: self.stack.to_owned(),
            part: self.part.as_str().to_owned(),
            variant: cut.map(|cut| cut.as_str().to_owned()),
            fill: measured.map(|measured| measured.fill),
            measured: measured.copied(),
            busy_ms: kernel.busy_ms,
            rwnd_ms: kernel.rwnd_ms,
            sndbuf_ms: kernel.sndbuf_ms,
            retrans: kernel.retrans,
        }
    }

    fn named(&self, cut: Option<Cut>) -> String {
        cut.map_or_else(|| self.name.clone(), |cut| format!("{}.{}", self.name, cut.as_str()))
    }

    fn file(&self, side: Side, cut: Option<Cut>) -> String {
        format!("{}.{}.pcap", self.named(cut), side.as_str())
    }

    fn tcp_info(&self) -> String {
        format!("{}.ss.txt", self.name)
    }
}

/// What may be said of a capture that lacks something, at the sender and at the receiver.
fn cut_allows(cut: Cut, allowed: &[Vec<Allowed>; 2], has_timestamps: bool) -> [Vec<Allowed>; 2] {
    let mut both = allowed.clone();
    if cut != Cut::Begin {
        return both;
    }
    for (allowed, at_receiver) in both.iter_mut().zip([false, true]) {
        let is_window = |one: &Allowed| one.limiter == "receive_window";
        // The handshake is gone, and the window's scale with it.
        allowed.iter_mut().filter(|one| is_window(one)).for_each(|one| one.details.clear());
        // Beside the receiver nothing tells the round trip then, but timestamps.
        if allowed.iter().any(is_window) || (at_receiver && !has_timestamps) {
            allowed.push(allow("insufficient_evidence", &[]));
        }
    }
    both
}

/// A folder in memory for the files of programs.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> std::io::Result<Self> {
        let dir = Path::new("/dev/shm").join(format!("fullpipe-corpus-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays there is small, and gone with the next start of the machine.
        drop(fs::remove_dir_all(&self.0));
    }
}
