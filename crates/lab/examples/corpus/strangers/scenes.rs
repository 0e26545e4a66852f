//! Which transfers: a table. Train and held differ in programs, writers, sizes, round trips and rates, not in chance; a drawn
//! part has the scenes of both with figures by chance.

use std::time::Duration;

use fullpipe_lab::Side;
use fullpipe_path::{LossSpec, Random};

use super::{
    Cut, Part, Play, Road, Scene,
    flow::{Flow, Pattern, Reader, Writer},
    programs::Programs,
    truth::Intent,
};

const SPAN: Duration = Duration::from_millis(4_500);
const NO_SACK: (&str, &str) = ("net.ipv4.tcp_sack", "0");
pub(super) const NO_TIMESTAMPS: (&str, &str) = ("net.ipv4.tcp_timestamps", "0");
const ECN: (&str, &str) = ("net.ipv4.tcp_ecn", "1");
const NO_SCALING: (&str, &str) = ("net.ipv4.tcp_window_scaling", "0");

const CC2: &[&str] = &["cubic", "bbr"];
const CC3: &[&str] = &["cubic", "bbr", "reno"];

fn congestions(part: Part) -> &'static [&'static str] {
    match part {
        Part::Train => CC2,
        Part::Held | Part::Drawn(_) => CC3,
    }
}

struct Table {
    part: Part,
    scenes: Vec<Scene>,
}

/// Those of a part, in an order in which each family comes early.
pub(super) fn of(part: Part) -> Vec<Scene> {
    let mut scenes = match part {
        Part::Train | Part::Held => table(part),
        Part::Drawn(_) => [Part::Train, Part::Held].into_iter().flat_map(table).collect(),
    };
    if let Part::Drawn(seed) = part {
        let mut chance = Random::new(seed);
        for (place, scene) in scenes.iter_mut().enumerate() {
            scene.part = part;
            scene.draw(place, &mut chance);
        }
    }
    // A stride that has no divisor in common with any number of scenes here visits each once.
    let (count, stride) = (scenes.len(), 10_007);
    (0..count).map(|step| scenes[step * stride % count].clone()).collect()
}

fn table(part: Part) -> Vec<Scene> {
    let mut table = Table { part, scenes: Vec::new() };
    table.writers();
    table.receivers();
    table.programs();
    table.requests();
    table.paths();
    let mut scenes = table.scenes;
    for (place, scene) in scenes.iter_mut().enumerate() {
        scene.vary(place);
    }
    scenes
}

/// A factor between these two, as likely to halve as to double.
fn factor(chance: &mut Random, least: f64, most: f64) -> f64 {
    least * (most / least).powf(chance.unit())
}

fn scaled(number: usize, factor: f64) -> usize {
    (number as f64 * factor).round() as usize
}

impl Scene {
    /// Other figures: what fits a path grows with its product.
    fn draw(&mut self, place: usize, chance: &mut Random) {
        // The sizes of programs stand in their command lines.
        let (least, most) = if matches!(self.play, Play::Programs(_)) { (0.8, 1.25) } else { (0.7, 1.45) };
        let (rate, trip) = (factor(chance, least, most), factor(chance, least, most));
        let road = &mut self.road;
        road.mbps = (road.mbps * rate * 10.0).round() / 10.0;
        let rtt_ms = road.rtt_ms;
        road.rtt_ms = scaled(rtt_ms as usize, trip).max(3) as u64;
        road.queue *= factor(chance, 0.8, 1.3);
        if let Some(LossSpec::Bernoulli(part)) = &mut road.loss {
            *part *= factor(chance, 0.6, 1.7);
        }
        if let Some((part, late_us)) = &mut road.reorder {
            *part *= factor(chance, 0.7, 1.5);
            *late_us = scaled(*late_us as usize, trip) as u64;
        }
        if let Some((mbps, kb)) = &mut road.police {
            *mbps *= rate;
            *kb = scaled(*kb as usize, factor(chance, 0.7, 1.5)) as u64;
        }
        if let Some(hole) = &mut road.hole {
            *hole = 1_340 + (chance.unit() * 130.0) as u32;
        }
        if let Play::Flow(flow) = &mut self.play {
            flow.draw(rate, trip, chance);
            match (&mut self.intent, flow.pattern) {
                (Intent::Ask { answer, pause_ms }, Pattern::Ask { answer: drawn, think, pause, .. }) => {
                    (*answer, *pause_ms) = (drawn, (think + pause).as_millis() as u64);
                }
                (Intent::Short { bytes }, Pattern::Once(drawn)) => *bytes = drawn,
                _ => {}
            }
            self.congestion = CC3[(chance.unit() * CC3.len() as f64) as usize];
        }
        let what = self.name.split('.').nth(1).unwrap_or_default();
        self.name =
            format!("{}.{what}-{place}.{}M-{}ms.{}", self.case, self.road.mbps, self.road.rtt_ms, self.congestion);
    }

    /// Sparsely, and never where it changes what is meant.
    fn vary(&mut self, place: usize) {
        let is_plain = matches!(
            self.intent,
            Intent::Path | Intent::SendBuffer | Intent::ReceiveBuffer | Intent::Application | Intent::SlowReader
        );
        if !is_plain || !self.settings.is_empty() {
            return;
        }
        match place % 14 {
            1 => self.offload = false,
            3 if matches!(self.play, Play::Flow(_)) => self.ipv6 = true,
            5 => self.settings.push(NO_TIMESTAMPS),
            8 => self.settings.push(NO_SACK),
            10 => {
                self.settings.push(ECN);
                self.road.marks = self.intent == Intent::Path;
            }
            _ => {}
        }
        match place % 9 {
            0 => self.cuts.push(Cut::Begin),
            3 => self.cuts.push(Cut::Holes(40)),
            5 => self.cuts.push(Cut::End),
            7 if !self.ipv6 => self.cuts.push(Cut::Tagged),
            _ => {}
        }
    }
}

impl Flow {
    fn draw(&mut self, rate: f64, trip: f64, chance: &mut Random) {
        let product = rate * trip;
        for buffer in [&mut self.send_buffer, &mut self.receive_buffer].into_iter().flatten() {
            *buffer = scaled(*buffer, product * factor(chance, 0.85, 1.15));
        }
        if let Some(window) = &mut self.window_clamp {
            *window = scaled(*window as usize, product * factor(chance, 0.85, 1.15)) as u32;
        }
        if let Some(bps) = &mut self.pacing {
            *bps *= rate * factor(chance, 0.8, 1.2);
        }
        if let Some(bytes) = &mut self.most_per_segment {
            *bytes = scaled(*bytes as usize, factor(chance, 0.8, 1.3)) as u32;
        }
        match &mut self.reader {
            Reader::AsTheyCome | Reader::Stops(..) => {}
            Reader::Constant(bps) => *bps *= rate * factor(chance, 0.8, 1.2),
            Reader::Bursts(bytes, pause) => {
                *bytes = scaled(*bytes, rate * factor(chance, 0.8, 1.2));
                *pause = pause.mul_f64(factor(chance, 0.8, 1.2));
            }
        }
        match &mut self.pattern {
            Pattern::Bulk { write, .. } => *write = scaled(*write, factor(chance, 0.5, 2.0)),
            // So many segments are what loses the tail.
            Pattern::Once(bytes) if *bytes > 20 * 1_448 => *bytes = scaled(*bytes, factor(chance, 0.7, 1.4)),
            Pattern::Once(_) | Pattern::Late(_) => {}
            Pattern::Every(pause, bytes) => {
                *pause = pause.mul_f64(trip);
                *bytes = scaled(*bytes, product * factor(chance, 0.8, 1.2));
            }
            Pattern::Ask { answer, think, pause, .. } => {
                *answer = scaled(*answer, factor(chance, 0.6, 1.7));
                for time in [think, pause] {
                    *time = Duration::from_millis(time.mul_f64(factor(chance, 0.7, 1.5)).as_millis() as u64);
                }
            }
        }
    }
}

impl Table {
    fn pick<T>(&self, train: T, held: T) -> T {
        match self.part {
            Part::Train => train,
            Part::Held | Part::Drawn(_) => held,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one row of a table")]
    fn add(
        &mut self,
        family: &'static str,
        case: &'static str,
        what: &str,
        congestion: &'static str,
        road: Road,
        sender: Option<Side>,
        play: Play,
        intent: Intent,
    ) -> &mut Scene {
        let sender = match (&play, sender) {
            (Play::Programs(programs), _) => programs.sender,
            (_, Some(sender)) => sender,
            _ if self.scenes.len().is_multiple_of(2) => Side::A,
            _ => Side::B,
        };
        let name = format!("{case}.{what}.{}M-{}ms.{congestion}", road.mbps, road.rtt_ms);
        self.scenes.push(Scene {
            name,
            family,
            case,
            part: self.part,
            stack: "linux",
            congestion,
            road,
            sender,
            settings: vec![],
            receiver_settings: vec![],
            sender_settings: vec![],
            offload: true,
            ipv6: false,
            play,
            intent,
            cuts: vec![],
        });
        let last = self.scenes.len() - 1;
        &mut self.scenes[last]
    }

    #[expect(clippy::too_many_arguments, reason = "one row of a table")]
    fn flow(
        &mut self,
        family: &'static str,
        case: &'static str,
        what: &str,
        congestion: &'static str,
        road: Road,
        flow: Flow,
        intent: Intent,
    ) -> &mut Scene {
        self.add(family, case, what, congestion, road, None, Play::Flow(flow), intent)
    }

    fn writers(&mut self) {
        use Writer::{Blocking, Epoll, Poll, Ring, Sendfile, ZeroCopy};
        // Mbit/s, round trip, SO_SNDBUF in KB: where it holds, and where the path is full in spite of it.
        let rows: &[(f64, u64, usize)] = self.pick(
            &[
                (50.0, 20, 16),
                (100.0, 60, 64),
                (1000.0, 10, 32),
                (1000.0, 20, 64),
                (500.0, 100, 512),
                (50.0, 100, 128),
                (20.0, 200, 64),
                (1000.0, 60, 256),
                (200.0, 200, 512),
                (10.0, 60, 256),
                (20.0, 100, 512),
                (50.0, 20, 1024),
                (10.0, 200, 2048),
                (20.0, 60, 4096),
                (50.0, 60, 2048),
            ],
            &[
                (50.0, 30, 32),
                (100.0, 120, 128),
                (1000.0, 15, 48),
                (1000.0, 30, 128),
                (30.0, 160, 96),
                (300.0, 120, 384),
                (10.0, 30, 512),
                (30.0, 120, 2048),
                (40.0, 15, 256),
            ],
        );
        let writers: &[Writer] = self.pick(&[Blocking, Epoll, ZeroCopy, Poll], &[Sendfile, Ring, Blocking]);
        let writes: &[usize] = self.pick(&[64 << 10, 1 << 10, 256 << 10, 4 << 10], &[16 << 10, 1 << 20]);
        let mut place = 0;
        for (number, &(mbps, rtt, kb)) in rows.iter().enumerate() {
            let holds = 2.0 * kb as f64 * 8.192 / rtt as f64 <= 0.8 * mbps;
            for &congestion in congestions(self.part) {
                for turn in 0..self.pick(2, 1) {
                    let writer = writers[(place + turn) % writers.len()];
                    let write = writes[(place / writers.len() + number + turn) % writes.len()];
                    place += 1;
                    let mut flow = Flow::bulk(SPAN);
                    flow.pattern = Pattern::Bulk { write, span: SPAN };
                    flow.writer = writer;
                    flow.send_buffer = Some(kb << 10);
                    let what = format!("{writer:?}-{}K-buf{kb}K", write >> 10).to_lowercase();
                    let (case, intent) = if holds {
                        ("send-buffer", Intent::SendBuffer)
                    } else {
                        ("clean-send-buffer", Intent::SendBuffer)
                    };
                    let road = Road { queue: if holds { 2.0 } else { 1.0 }, ..Road::new(mbps, rtt) };
                    self.flow("writers", case, &what, congestion, road, flow, intent);
                }
            }
        }
        // The same writers with the kernel's own buffer.
        let rows: &[(f64, u64)] = self.pick(&[(20.0, 20), (50.0, 60), (30.0, 100)], &[(40.0, 30), (25.0, 120)]);
        for &(mbps, rtt) in rows {
            for &congestion in congestions(self.part) {
                let writer = writers[place % writers.len()];
                let write = writes[(place / 2) % writes.len()];
                place += 1;
                let mut flow = Flow::bulk(SPAN);
                flow.pattern = Pattern::Bulk { write, span: SPAN };
                flow.writer = writer;
                let what = format!("{writer:?}-{}K", write >> 10).to_lowercase();
                self.flow("writers", "clean", &what, congestion, Road::new(mbps, rtt), flow, Intent::Path);
            }
        }
        // A rate that the kernel was given, below the path's and above it.
        let rows: &[(f64, u64, f64)] =
            self.pick(&[(50.0, 20, 10.0), (100.0, 60, 25.0), (20.0, 60, 40.0)], &[(50.0, 30, 15.0), (30.0, 120, 60.0)]);
        for &(mbps, rtt, pace) in rows {
            for &congestion in congestions(self.part) {
                let mut flow = Flow::bulk(SPAN);
                flow.pacing = Some(pace * 1e6);
                let (case, intent) = if pace < mbps { ("paced", Intent::Paced) } else { ("clean-paced", Intent::Path) };
                self.flow("writers", case, &format!("{pace}M"), congestion, Road::new(mbps, rtt), flow, intent);
            }
        }
    }

    fn receivers(&mut self) {
        let rows: &[(f64, u64, usize)] = self.pick(
            &[
                (50.0, 20, 32),
                (100.0, 60, 256),
                (1000.0, 20, 128),
                (500.0, 100, 768),
                (50.0, 100, 128),
                (20.0, 200, 128),
                (1000.0, 10, 64),
                (100.0, 10, 16),
                (10.0, 60, 512),
                (20.0, 100, 1024),
                (50.0, 20, 4096),
            ],
            &[
                (50.0, 30, 48),
                (300.0, 120, 512),
                (1000.0, 30, 192),
                (30.0, 160, 192),
                (1000.0, 15, 24),
                (10.0, 120, 1024),
                (40.0, 30, 2048),
            ],
        );
        for &(mbps, rtt, kb) in rows {
            for &congestion in congestions(self.part) {
                let mut flow = Flow::bulk(SPAN);
                flow.receive_buffer = Some(kb << 10);
                let holds = kb as f64 * 8.192 / rtt as f64 <= 0.8 * mbps;
                let case = if holds { "receive-buffer" } else { "clean-receive-buffer" };
                let road = Road::new(mbps, rtt);
                self.flow("receivers", case, &format!("buf{kb}K"), congestion, road, flow, Intent::ReceiveBuffer);
            }
        }
        let rows: &[(f64, u64, u32)] =
            self.pick(&[(50.0, 60, 64), (100.0, 20, 48), (1000.0, 40, 256)], &[(50.0, 30, 32), (1000.0, 120, 700)]);
        for &(mbps, rtt, kb) in rows {
            for &congestion in congestions(self.part) {
                let mut flow = Flow::bulk(SPAN);
                flow.window_clamp = Some(kb << 10);
                let road = Road::new(mbps, rtt);
                self.flow("receivers", "window-clamp", &format!("{kb}K"), congestion, road, flow, Intent::WindowClamp);
            }
        }
        let rows: &[(f64, u64)] = self.pick(&[(50.0, 60), (100.0, 100), (1000.0, 20)], &[(50.0, 30), (200.0, 120)]);
        for &(mbps, rtt) in rows {
            for &congestion in congestions(self.part) {
                let (road, flow) = (Road::new(mbps, rtt), Flow::bulk(SPAN));
                let scene = self.flow(
                    "receivers",
                    "scaling-absent",
                    "x",
                    congestion,
                    road.clone(),
                    flow.clone(),
                    Intent::ScalingAbsent,
                );
                scene.receiver_settings = vec![NO_SCALING];
                if rtt != 20 {
                    let scene = self.flow("receivers", "scale-zero", "x", congestion, road, flow, Intent::ScaleZero);
                    scene.receiver_settings = vec![("route 10.80.0.0/24 window", "64512")];
                }
            }
        }
        let ms = Duration::from_millis;
        let slow: Vec<(f64, u64, Reader, Option<usize>)> = self.pick(
            vec![
                (50.0, 20, Reader::Constant(10e6), None),
                (20.0, 60, Reader::Constant(4e6), Some(128)),
                (100.0, 10, Reader::Constant(20e6), Some(256)),
                (50.0, 20, Reader::Bursts(200_000, ms(300)), Some(64)),
                (20.0, 60, Reader::Bursts(500_000, ms(800)), Some(128)),
                (100.0, 20, Reader::Bursts(64_000, ms(50)), Some(32)),
                (50.0, 20, Reader::Stops(ms(1_000), ms(3_500)), Some(256)),
                (20.0, 100, Reader::Stops(ms(800), ms(4_000)), None),
            ],
            vec![
                (50.0, 30, Reader::Constant(7e6), Some(96)),
                (25.0, 120, Reader::Constant(5e6), None),
                (40.0, 30, Reader::Bursts(300_000, ms(500)), Some(100)),
                (100.0, 15, Reader::Bursts(100_000, ms(120)), Some(48)),
                (30.0, 30, Reader::Stops(ms(1_200), ms(3_800)), Some(512)),
            ],
        );
        for (number, &(mbps, rtt, reader, kb)) in slow.iter().enumerate() {
            for &congestion in congestions(self.part) {
                let span = if matches!(reader, Reader::Stops(..)) { Duration::from_secs(6) } else { SPAN };
                let mut flow = Flow::bulk(span);
                flow.reader = reader;
                flow.receive_buffer = kb.map(|kb| kb << 10);
                let (case, kind) = match reader {
                    Reader::Constant(_) => ("slow-reader", "constant"),
                    Reader::Bursts(..) => ("bursty-reader", "bursts"),
                    _ => ("stopping-reader", "stops"),
                };
                let road = Road::new(mbps, rtt);
                self.flow("receivers", case, &format!("{kind}{number}"), congestion, road, flow, Intent::SlowReader);
            }
        }
        let clean: &[(f64, u64)] =
            self.pick(&[(20.0, 20), (50.0, 60), (25.0, 100), (80.0, 10)], &[(15.0, 30), (60.0, 30), (20.0, 120)]);
        for &(mbps, rtt) in clean {
            for &congestion in congestions(self.part) {
                let road = Road::new(mbps, rtt);
                self.flow("receivers", "clean", "autotuned", congestion, road, Flow::bulk(SPAN), Intent::Path);
            }
        }
    }

    fn program(
        &mut self,
        case: &'static str,
        what: &str,
        congestion: &'static str,
        road: Road,
        (server, client, sender): (String, String, Side),
        intent: Intent,
    ) -> &mut Scene {
        let play = Play::Programs(Programs { server, client, sender });
        self.add("programs", case, what, congestion, road, None, play, intent)
    }

    fn programs(&mut self) {
        match self.part {
            Part::Train => self.programs_seen(),
            Part::Held | Part::Drawn(_) => self.programs_held(),
        }
    }

    fn programs_seen(&mut self) {
        for &cc in CC2 {
            for (mbps, rtt) in [(20.0, 20), (50.0, 60), (30.0, 100)] {
                let road = Road::new(mbps, rtt);
                let size = bytes(mbps, 4.5);
                self.program("clean", "curl-nginx", cc, road.clone(), nginx("", "", size, CURL), Intent::Path);
                self.program("clean", "curl-python", cc, road.clone(), python(size), Intent::Path);
                self.program("clean", "scp-up", cc, road.clone(), scp(size, Side::A), Intent::Path);
                if rtt != 100 {
                    self.program("clean", "scp-down", cc, road.clone(), scp(size, Side::B), Intent::Path);
                    self.program("clean", "socat", cc, road.clone(), socat(size, "", ""), Intent::Path);
                    self.program("clean", "iperf3", cc, road.clone(), iperf("-t 4", Side::A), Intent::Path);
                }
                if rtt != 20 {
                    let kept = socat(bytes(mbps, 1.5), ",sndbuf=32768", "");
                    self.program("send-buffer", "socat-32K", cc, road.clone(), kept, Intent::SendBuffer);
                    let offered = socat(bytes(mbps, 2.0), "", ",rcvbuf=65536");
                    self.program("receive-buffer", "socat-64K", cc, road.clone(), offered, Intent::ReceiveBuffer);
                    let small = iperf("-t 4 -w 64K", Side::B);
                    self.program("buffers", "iperf3-w64K", cc, road.clone(), small, Intent::Buffers);
                    let kept = nginx("sndbuf=32k", "", bytes(mbps, 1.5), CURL);
                    self.program("send-buffer", "nginx-32K", cc, road.clone(), kept, Intent::SendBuffer);
                }
                let limited = nginx("", "limit_rate 500k;", 2_000_000, CURL);
                self.program("limited", "curl-nginx-500K", cc, road.clone(), limited, Intent::Application);
                self.program("limited", "iperf3-b4M", cc, road, iperf("-t 4 -b 4M", Side::A), Intent::Application);
            }
            let road = Road::new(300.0, 100);
            self.program("channel-window", "scp-up", cc, road.clone(), scp(60_000_000, Side::A), Intent::Application);
            self.program("channel-window", "scp-down", cc, road, scp(60_000_000, Side::B), Intent::Application);
            let road = Road::new(50.0, 60);
            let limited = iperf("-t 4 -b 8M -l 8K", Side::B);
            self.program("limited", "iperf3-b8M-l8K", cc, road.clone(), limited, Intent::Application);
            let own = (
                "exec socat -u TCP-LISTEN:$PORT OPEN:/dev/null".to_owned(),
                "head -c 2000000 /dev/zero >$DIR/f; curl -s --limit-rate 400k -T $DIR/f --http0.9 telnet://$B:$PORT </dev/null || \
                 (while read x; do head -c 20000 /dev/zero; sleep 0.08; done | socat -u - TCP:$B:$PORT) <<X\n"
                    .to_owned()
                    + &"l\n".repeat(50)
                    + "X",
                Side::A,
            );
            self.program("limited", "shell-socat", cc, road, own, Intent::Application);
        }
    }

    fn programs_held(&mut self) {
        for &cc in CC3 {
            for (mbps, rtt) in [(40.0, 30), (25.0, 120)] {
                let road = Road::new(mbps, rtt);
                let size = bytes(mbps, 4.5);
                self.program("clean", "wget-nginx", cc, road.clone(), nginx("", "", size, WGET), Intent::Path);
                self.program("clean", "rsync-up", cc, road.clone(), rsync(size, Side::A, ""), Intent::Path);
                self.program("clean", "sftp-down", cc, road.clone(), sftp(size), Intent::Path);
                let limited = nginx("", "limit_rate 300k;", 1_200_000, WGET);
                self.program("limited", "wget-nginx-300K", cc, road.clone(), limited, Intent::Application);
                let limited = rsync(1_500_000, Side::B, "--bwlimit=350");
                self.program("limited", "rsync-350K", cc, road.clone(), limited, Intent::Application);
                let kept = nginx("sndbuf=24k", "", bytes(mbps, 1.0), WGET);
                self.program("send-buffer", "wget-nginx-24K", cc, road.clone(), kept, Intent::SendBuffer);
                let rsynced = rsync(bytes(mbps, 1.5), Side::A, "--sockopts=SO_SNDBUF=32768");
                self.program("send-buffer", "rsync-32K", cc, road.clone(), rsynced, Intent::SendBuffer);
                let rsynced = rsync(bytes(mbps, 1.5), Side::B, "--sockopts=SO_RCVBUF=49152");
                self.program("receive-buffer", "rsync-48K", cc, road.clone(), rsynced, Intent::ReceiveBuffer);
                let small = redis(200, 1, 400);
                let ask = Intent::Ask { answer: 200, pause_ms: 0 };
                self.program("requests", "redis-200B", cc, road.clone(), small, ask);
                let large = redis(1_000_000, 1, (mbps * 0.5) as usize);
                let ask = Intent::Ask { answer: 1_000_000, pause_ms: 0 };
                self.program("requests", "redis-1M", cc, road, large, ask);
            }
            let road = Road::new(400.0, 120);
            self.program("channel-window", "sftp-down", cc, road, sftp(60_000_000), Intent::Application);
        }
    }

    fn requests(&mut self) {
        // Mbit/s, round trip, answer, the server thinks, the client pauses.
        let rows: &[(f64, u64, usize, u64, u64)] = self.pick(
            &[
                (50.0, 20, 4_096, 0, 0),
                (50.0, 60, 4_096, 0, 0),
                (20.0, 10, 64, 0, 0),
                (50.0, 20, 16_384, 0, 0),
                (100.0, 20, 65_536, 0, 0),
                (50.0, 100, 4_096, 0, 30),
                (50.0, 20, 4_096, 15, 0),
                (100.0, 60, 65_536, 0, 100),
            ],
            &[
                (40.0, 30, 1_024, 0, 0),
                (60.0, 30, 8_192, 0, 0),
                (100.0, 120, 32_768, 0, 0),
                (30.0, 15, 2_000, 0, 25),
                (60.0, 120, 8_192, 20, 0),
            ],
        );
        for &(mbps, rtt, answer, think, pause) in rows {
            for &congestion in congestions(self.part) {
                for nodelay in [false, true] {
                    let mut flow = Flow::bulk(SPAN);
                    flow.nodelay = nodelay;
                    flow.pattern = Pattern::Ask {
                        request: 36,
                        answer,
                        writes: 1,
                        think: Duration::from_millis(think),
                        pause: Duration::from_millis(pause),
                        span: SPAN,
                    };
                    let what = format!("{answer}B-{}ms{}", think + pause, if nodelay { "-nodelay" } else { "" });
                    let intent = Intent::Ask { answer, pause_ms: think + pause };
                    if nodelay || congestion == "cubic" {
                        self.flow("requests", "requests", &what, congestion, Road::new(mbps, rtt), flow, intent);
                    }
                }
            }
        }
        let rows: &[(f64, u64, usize)] =
            self.pick(&[(50.0, 10, 400), (20.0, 20, 1_000), (50.0, 4, 200)], &[(30.0, 15, 600), (60.0, 8, 2_000)]);
        for &(mbps, rtt, answer) in rows {
            for &congestion in congestions(self.part) {
                let mut flow = Flow::bulk(SPAN);
                flow.pattern = Pattern::Ask {
                    request: 36,
                    answer,
                    writes: 2,
                    think: Duration::ZERO,
                    pause: Duration::ZERO,
                    span: SPAN,
                };
                let road = Road::new(mbps, rtt);
                self.flow("requests", "nagle", &format!("{answer}B"), congestion, road, flow, Intent::Nagle);
            }
        }
        let rows: &[(f64, u64, u64, usize)] = self.pick(
            &[(50.0, 20, 40, 20_000), (50.0, 60, 100, 100_000), (20.0, 100, 250, 60_000)],
            &[(40.0, 30, 70, 30_000), (60.0, 120, 300, 150_000)],
        );
        for &(mbps, rtt, every, chunk) in rows {
            for &congestion in congestions(self.part) {
                let mut flow = Flow::bulk(SPAN);
                flow.pattern = Pattern::Every(Duration::from_millis(every), chunk);
                let what = format!("{}K-{every}ms", chunk / 1000);
                let road = Road::new(mbps, rtt);
                self.flow("requests", "frames", &what, congestion, road, flow, Intent::Application);
            }
        }
    }

    fn paths(&mut self) {
        let part = self.part;
        let roads: &[(f64, u64)] = self.pick(&[(20.0, 20), (50.0, 60), (10.0, 100)], &[(30.0, 30), (15.0, 120)]);
        let queues: &[f64] = self.pick(&[0.25, 1.0, 2.0], &[0.5, 4.0]);
        for &(mbps, rtt) in roads {
            for &queue in queues {
                for &congestion in congestions(part) {
                    let road = Road { queue, ..Road::new(mbps, rtt) };
                    let span = Duration::from_secs(6);
                    self.flow(
                        "paths",
                        "clean",
                        &format!("queue{queue}"),
                        congestion,
                        road,
                        Flow::bulk(span),
                        Intent::Path,
                    );
                }
            }
        }
        let roads: &[(f64, u64)] = self.pick(&[(50.0, 20), (50.0, 60)], &[(40.0, 30), (60.0, 120)]);
        let losses: &[f64] = self.pick(&[0.0001, 0.001, 0.01], &[0.0003, 0.003, 0.02]);
        for &(mbps, rtt) in roads {
            for &loss in losses {
                for &congestion in congestions(part) {
                    let road = Road { loss: Some(LossSpec::Bernoulli(loss)), ..Road::new(mbps, rtt) };
                    let what = format!("{}", loss * 100.0);
                    self.flow(
                        "paths",
                        "loss",
                        &what,
                        congestion,
                        road,
                        Flow::bulk(Duration::from_secs(6)),
                        Intent::Loss,
                    );
                }
            }
        }
        let kinds: &[(&str, &[(&str, &str)])] = &[
            ("sack", &[]),
            ("no-sack", &[NO_SACK]),
            ("bare", &[NO_SACK, NO_TIMESTAMPS, ("net.ipv4.tcp_recovery", "0")]),
        ];
        let roads: &[(f64, u64, f64)] = self.pick(&[(50.0, 20, 0.02), (30.0, 60, 0.01)], &[(40.0, 30, 0.03)]);
        for &(mbps, rtt, part_late) in roads {
            for &(kind, settings) in kinds {
                for &congestion in congestions(part) {
                    let road = Road { reorder: Some((part_late, rtt * 250)), ..Road::new(mbps, rtt) };
                    let flow = Flow::bulk(SPAN);
                    let scene = self.flow("paths", "reordering", kind, congestion, road, flow, Intent::Reordering);
                    scene.settings = settings.to_vec();
                }
            }
        }
        let rows: &[(f64, u64, f64, u64)] = self.pick(
            &[(50.0, 20, 10.0, 100), (100.0, 60, 20.0, 300), (50.0, 60, 5.0, 128)],
            &[(40.0, 30, 12.0, 150), (100.0, 120, 25.0, 500)],
        );
        for &(mbps, rtt, policed, kb) in rows {
            for &congestion in CC3 {
                if part == Part::Train && congestion == "reno" && rtt == 60 {
                    continue;
                }
                let road = Road { police: Some((policed, kb)), ..Road::new(mbps, rtt) };
                let flow = Flow::bulk(Duration::from_secs(6));
                self.flow("paths", "policed", &format!("{policed}M-{kb}K"), congestion, road, flow, Intent::Policed);
            }
        }
        let rows: &[(f64, u64, u32)] = self.pick(&[(50.0, 20, 1_400), (20.0, 60, 1_380)], &[(40.0, 30, 1_450)]);
        for &(mbps, rtt, hole) in rows {
            for &congestion in congestions(part) {
                for (kind, probing) in [("off", "0"), ("on", "1")] {
                    let road = Road { hole: Some(hole), ..Road::new(mbps, rtt) };
                    let mut flow = Flow::bulk(SPAN);
                    flow.pattern = Pattern::Late(1_000_000);
                    let intent = Intent::BlackHole { probing: probing == "1" };
                    let scene = self.flow("paths", "black-hole", kind, congestion, road, flow, intent);
                    scene.settings = vec![("net.ipv4.tcp_mtu_probing", probing)];
                }
            }
        }
        let rows: &[(f64, u64, u32)] = self.pick(&[(20.0, 20, 536)], &[(15.0, 30, 900)]);
        for &(mbps, rtt, mss) in rows {
            for &congestion in congestions(part) {
                for loss in [None, Some(0.005)] {
                    let road = Road { loss: loss.map(LossSpec::Bernoulli), ..Road::new(mbps, rtt) };
                    let mut flow = Flow::bulk(SPAN);
                    flow.most_per_segment = Some(mss);
                    let what = format!("{mss}B{}", if loss.is_some() { "-loss" } else { "" });
                    self.flow("paths", "small-mss", &what, congestion, road, flow, Intent::SmallSegments);
                }
            }
        }
        let rows: &[(f64, u64, usize)] = self.pick(
            &[(50.0, 60, 20), (50.0, 60, 100), (100.0, 100, 300), (100.0, 200, 100), (50.0, 100, 50)],
            &[(60.0, 120, 40), (100.0, 120, 200), (100.0, 160, 150)],
        );
        for &(mbps, rtt, kb) in rows {
            for &congestion in congestions(part) {
                let mut flow = Flow::bulk(SPAN);
                flow.pattern = Pattern::Once(kb * 1_000);
                let intent = Intent::Short { bytes: kb * 1_000 };
                self.flow("paths", "short", &format!("{kb}K"), congestion, Road::new(mbps, rtt), flow, intent);
            }
        }
        // The SYN, the acknowledgement of the SYN-ACK, then 20 segments: all that follow the first so many are lost once.
        let rows: &[(f64, u64, u64, u64)] = self.pick(&[(50.0, 60, 20, 2), (20.0, 20, 16, 6)], &[(40.0, 30, 18, 4)]);
        for &(mbps, rtt, first, count) in rows {
            for &congestion in congestions(part) {
                let road = Road { loss: Some(LossSpec::Row { first, count }), ..Road::new(mbps, rtt) };
                let mut flow = Flow::bulk(SPAN);
                flow.pattern = Pattern::Once(20 * 1_448);
                let play = Play::Flow(flow);
                let what = format!("last{count}");
                self.add("paths", "tail-loss", &what, congestion, road, Some(Side::A), play, Intent::TailLoss);
            }
        }
    }
}

/// What the path carries in so many seconds.
fn bytes(mbps: f64, seconds: f64) -> u64 {
    (mbps * 1e6 / 8.0 * 0.95 * seconds) as u64
}

const CURL: &str = "curl -s -o /dev/null http://$B:$PORT/f";
const WGET: &str = "wget -q -O /dev/null http://$B:$PORT/f";

fn nginx(listen: &str, location: &str, size: u64, client: &str) -> (String, String, Side) {
    let server = format!(
        "mkdir -p $DIR/w $DIR/t; truncate -s {size} $DIR/w/f; chmod -R 777 $DIR\n\
         cat >$DIR/n.conf <<X\n\
         user root; worker_processes 1; daemon off; pid $DIR/n.pid; error_log $DIR/n.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ access_log off; sendfile on; client_body_temp_path $DIR/t; proxy_temp_path $DIR/t;\n\
         fastcgi_temp_path $DIR/t; uwsgi_temp_path $DIR/t; scgi_temp_path $DIR/t;\n\
         server {{ listen $PORT {listen}; root $DIR/w; {location} }} }}\n\
         X\n\
         exec nginx -c $DIR/n.conf"
    );
    (server, client.to_owned(), Side::B)
}

fn python(size: u64) -> (String, String, Side) {
    let server = format!(
        "mkdir -p $DIR/w; cd $DIR/w; truncate -s {size} f; exec /usr/bin/python3 -m http.server --bind $B $PORT"
    );
    (server, CURL.to_owned(), Side::B)
}

fn iperf(options: &str, sender: Side) -> (String, String, Side) {
    let reverse = if sender == Side::B { "-R" } else { "" };
    ("exec iperf3 -s -1 -p $PORT".to_owned(), format!("iperf3 -c $B -p $PORT {options} {reverse}"), sender)
}

fn socat(size: u64, at_sender: &str, at_receiver: &str) -> (String, String, Side) {
    let server = format!("exec socat -b 65536 -u TCP-LISTEN:$PORT{at_receiver} OPEN:/dev/null");
    let client = format!("truncate -s {size} $DIR/f; socat -b 65536 -u OPEN:$DIR/f TCP:$B:$PORT{at_sender}");
    (server, client, Side::A)
}

/// A server for scp and sftp with a key of its own.
fn sshd(size: u64) -> String {
    format!(
        "mkdir -p /run/sshd $DIR/b; truncate -s {size} $DIR/b/f; ssh-keygen -q -t ed25519 -N '' -f $DIR/key; cp $DIR/key.pub \
         $DIR/allowed; chmod 600 $DIR/key $DIR/allowed\n\
         exec /usr/sbin/sshd -D -e -f /dev/null -p $PORT -h $DIR/key -o AuthorizedKeysFile=$DIR/allowed -o \
         StrictModes=no -o PidFile=none -o UsePAM=no -o PermitRootLogin=yes -o 'Subsystem=sftp internal-sftp'"
    )
}

const SSH: &str = "-q -P $PORT -i $DIR/key -F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
                   -o BatchMode=yes -o Compression=no";

fn scp(size: u64, sender: Side) -> (String, String, Side) {
    let client = match sender {
        Side::A => format!("truncate -s {size} $DIR/f; scp {SSH} $DIR/f root@$B:/dev/null"),
        Side::B => format!("scp {SSH} root@$B:$DIR/b/f /dev/null"),
    };
    (sshd(size), client, sender)
}

fn sftp(size: u64) -> (String, String, Side) {
    (sshd(size), format!("echo get $DIR/b/f /dev/null >$DIR/batch; sftp {SSH} -b $DIR/batch root@$B"), Side::B)
}

fn rsync(size: u64, sender: Side, options: &str) -> (String, String, Side) {
    let server = format!(
        "mkdir -p $DIR/w; truncate -s {size} $DIR/w/f\n\
         cat >$DIR/r.conf <<X\nuse chroot = no\nuid = root\ngid = root\n[w]\npath = $DIR/w\nread only = no\nX\n\
         exec rsync --daemon --no-detach --config=$DIR/r.conf --port=$PORT"
    );
    let client = match sender {
        Side::A => format!("truncate -s {size} $DIR/g; rsync -W {options} $DIR/g rsync://$B:$PORT/w/g"),
        Side::B => format!("rsync -W {options} rsync://$B:$PORT/w/f $DIR/h"),
    };
    (server, client, sender)
}

fn redis(value: usize, pipelined: usize, requests: usize) -> (String, String, Side) {
    let server = format!(
        "(until redis-cli -h $B -p 6380 ping; do sleep 0.05; done; head -c {value} /dev/zero | redis-cli -h $B -p 6380 -x \
         SET key:__rand_int__; socat TCP-LISTEN:$PORT,bind=127.0.0.9 - ) & \
         exec redis-server --bind $B --port $PORT --save '' --protected-mode no --dir $DIR"
    );
    let server = server.replace("6380", "$PORT").replace("socat TCP-LISTEN:$PORT,bind=127.0.0.9 - ", "true");
    let client =
        format!("sleep 0.3; redis-benchmark -h $B -p $PORT -c 1 -P {pipelined} -n {requests} -q GET key:__rand_int__");
    (server, client, Side::B)
}
