//! What was found in captures, on a terminal: a few lines per connection, or one connection's story.

use fullpipe_capture::{Report, Side};
use fullpipe_diagnose::{Diagnosis, Limiter, Run, limit_words};
use fullpipe_page::{advice, needed};
use fullpipe_units::{Bytes, Micros, Rate};

use super::{
    direction::{put_shares, verdict, verdict_style},
    page::{BAD, DIM, GOOD, Look, PLAIN, Page, WARN, count, counted, or_dash},
};
use crate::{Advice, CaptureFile, CaptureList, display_filter, endpoint, json::too_little};

/// How many spans of the timeline are shown unless everything is asked for.
const SPANS: usize = 12;

/// All connections that are to be shown, worst first.
pub fn captures(list: &CaptureList, look: Look) -> String {
    let mut page = Page::new(look);
    let connections = list.connections.len() + usize::try_from(list.unlisted).unwrap_or(usize::MAX);
    let packets: u64 = list.files.iter().map(|file| file.packets).sum();
    let style = if list.problem_count > 0 { WARN } else { GOOD };
    let problems = match list.problem_count {
        0 => String::new(),
        number => format!("; {} in the capture", counted(number, "problem")),
    };
    let packets = counted(packets, "packet");
    let statement = format!("{} in {packets}{problems}", connection_words(connections, list.vantages.len()));
    page.title("capture", style, &statement);
    if list.places() > 1 {
        let text = format!(
            "at {} vantage points, because captures overlap in time: a connection is judged once for each (captures of one \
             point follow each other, in the order in which they are given)",
            list.places()
        );
        page.field("captured", &text);
    }
    if list.unlisted > 0 {
        let syns = match list.unanswered {
            0 => String::new(),
            number => format!(", {number} of them a SYN that nobody answered"),
        };
        let text = format!("{} without payload are counted and not listed{syns}", list.unlisted);
        page.styled_field("summed up", WARN, &text);
    }
    put_sums(&mut page, list);
    for report in list.connections.iter().take(list.shown) {
        put_line(&mut page, &report, list);
    }
    let listed = list.connections.len();
    let more = listed - list.shown.min(listed);
    if more > 0 {
        page.gap();
        page.paragraph(2, DIM, &format!("{more} more are not shown; --top {listed} shows all"));
    }
    put_problems(&mut page, list);
    page.finish()
}

/// What all carried together and, where not each of them is shown, what limits how many.
fn put_sums(page: &mut Page, list: &CaptureList) {
    let Some((payload, lasted)) = list.carried().filter(|_| list.connections.len() > 1) else { return };
    let rate = Rate::from_bytes(payload, lasted).map(|rate| format!(": {rate}")).unwrap_or_default();
    page.field("together", &format!("{payload} of payload in {lasted}{rate}"));
    if list.shown >= list.connections.len() {
        return;
    }
    for (place, limited) in list.limits().into_iter().enumerate() {
        let fullpipe_page::Limited { limiter, detail, connections, payload } = limited;
        let connections = count(connections, "connection");
        let label = if place == 0 { "limited by" } else { "" };
        let style = verdict_style(limiter);
        page.styled_field(label, style, &format!("{}: {connections}, {payload}", limit_words(limiter, detail)));
    }
}

/// How many there were of which captures tell, where some of them were seen at two places.
fn connection_words(reports: usize, twice: usize) -> String {
    let connections = reports.saturating_sub(twice);
    let number = count(connections, "connection");
    match twice {
        0 => number,
        all if all == connections && all == 1 => format!("{number}, seen at two vantage points,"),
        all if all == connections => format!("{number}, each seen at two vantage points,"),
        some => format!("{number}, {some} of them seen at two vantage points,"),
    }
}

fn put_line(page: &mut Page, report: &Report, list: &CaptureList) {
    let side = report.main_side();
    let judged = diagnosis(report, side);
    let (from, to) = ends(report, report.main());
    page.title(
        &format!("#{}", report.number),
        verdict_style(judged.limiter),
        &format!("{from} -> {to}: {}", verdict(&judged)),
    );
    page.field("carried", &carried(report, side));
    put_place(page, report, list);
    // Nobody has to choose between two answers for one connection.
    if side.verdict.is_none() || list.vantages_of(report.number).is_some_and(|vantages| vantages.far == report.number) {
        return;
    }
    page.field("do", &judged.action);
    if let Some(first) = advice(report).first() {
        page.field("setting", &setting(first));
    }
}

/// Where it was seen, where captures are of several places, and what was seen of it at another.
fn put_place(page: &mut Page, report: &Report, list: &CaptureList) {
    let Some(file) = list.file_of(report.first_packet).filter(|_| list.places() > 1) else { return };
    page.field("seen in", &file.name);
    let Some(vantages) = list.vantages_of(report.number) else { return };
    let (near, far) = (vantages.near, vantages.far);
    page.field(
        "same as",
        &match (report.number == near, vantages.agree) {
            (true, true) => format!("#{far}, which was captured farther from the sender and says the same"),
            (true, false) => {
                format!("#{far}; go by this one: it was captured nearer the sender, which sees more of the path")
            }
            (false, true) => format!("#{near}, which was captured nearer the sender and says the same"),
            (false, false) => {
                format!("#{near}; go by that one: it was captured nearer the sender, which sees more of the path")
            }
        },
    );
}

/// One connection's story, of the captures in `list`.
pub fn capture_story(report: &Report, list: &CaptureList, look: Look) -> String {
    let files = &list.files;
    let mut page = Page::new(look);
    put_handshake(&mut page, report, files);
    put_place(&mut page, report, list);
    page.field("wireshark", &display_filter(report));
    let main = report.main();
    put_direction(&mut page, report, main, files);
    if report.sides[1 - main].verdict.is_some() {
        put_direction(&mut page, report, 1 - main, files);
    }
    let advice = advice(report);
    if !advice.is_empty() {
        let needed = needed(report).map(|needed| format!("sized for {needed}")).unwrap_or_default();
        page.title("settings", PLAIN, &format!("on {}, {needed}", advice[0].host));
        for advice in &advice {
            page.field(&advice.platform, &setting(advice));
        }
    }
    page.finish()
}

/// `packets 12 to 80`, with the file where there are several, whose numbers begin anew as Wireshark shows them.
fn packet_words([from, to]: [u64; 2], files: &[CaptureFile]) -> String {
    let ((before, first), (earlier, last)) = (file_of(from, files), file_of(to, files));
    let (from, to) = (from - before, to - earlier);
    match (first, last) {
        (Some(first), Some(last)) if first == last => format!("packets {from} to {to} of {first}"),
        (Some(first), Some(last)) => format!("packet {from} of {first} to {to} of {last}"),
        _ => format!("packets {from} to {to}"),
    }
}

/// How many packets come before the file that a packet is in, and its name; 0 and none where there is one file only.
fn file_of(number: u64, files: &[CaptureFile]) -> (u64, Option<&str>) {
    let mut before = 0;
    for file in files.iter().filter(|_| files.len() > 1) {
        if number <= before + file.packets {
            return (before, Some(&file.name));
        }
        before += file.packets;
    }
    (0, None)
}

fn put_handshake(page: &mut Page, report: &Report, files: &[CaptureFile]) {
    let (a, b) = (endpoint(report.a), endpoint(report.b));
    page.title(&format!("#{}", report.number), PLAIN, &format!("{a} and {b}, {} long", report.lasted));
    let handshake = &report.handshake;
    // They follow each other closely, so that the file of the first is named for all.
    let numbers = || handshake.packets.iter().flatten();
    let (before, file) = numbers().next().map_or((0, None), |first| file_of(*first, files));
    let packets: Vec<String> = numbers().map(|number| (number - before).to_string()).collect();
    let file = file.map(|name| format!(" of {name}")).unwrap_or_default();
    page.field(
        "handshake",
        &match packets.len() {
            0 => "not seen: it began before the capture".to_owned(),
            _ => format!(
                "packets {}{file}{}{}; round trip {}",
                packets.join(", "),
                handshake.took.map(|took| format!(", took {took}")).unwrap_or_default(),
                if handshake.syns > 2 { format!(", {} SYN", handshake.syns) } else { String::new() },
                or_dash(report.rtt)
            ),
        },
    );
    for (name, place) in [("a offered", 0), ("b offered", 1)] {
        page.field(name, &offered(report, place));
    }
    if report.copies > 0 {
        page.field("copies", &format!("captured twice, and counted once: {}", counted(report.copies, "packet")));
    }
    if let Some(back) = report.clock_set_back {
        let (before, file) = file_of(back.packet, files);
        let file = file.map(|name| format!(" of {name}")).unwrap_or_default();
        let packet = back.packet - before;
        page.field(
            "clock",
            &format!("set back by {} at packet {packet}{file}; times go on as if it had not been", back.by),
        );
    }
    if let Some(place) = report.reset_by {
        page.field("end", &format!("reset by {}", if place == 0 { a } else { b }));
    }
}

fn offered(report: &Report, place: usize) -> String {
    let side = &report.sides[place];
    let away = side.away.map(|away| format!("; round trip {away} from the capture point")).unwrap_or_default();
    let guess = side.platform.map(|platform| format!("; looks like {} (a guess)", platform.words)).unwrap_or_default();
    let Some(syn) = side.syn else { return format!("its SYN was not seen{away}{guess}") };
    let scale = match syn.window_scale {
        Some(shift) => format!("window scale {shift}"),
        None => left_out(report, place),
    };
    let mss = syn.mss.map_or_else(|| "no MSS".to_owned(), |mss| format!("MSS {mss}"));
    let has = |set: bool, words: &str| if set { format!(", {words}") } else { format!(", no {words}") };
    format!("{mss}, {scale}{}{}{away}{guess}", has(syn.sack_permitted, "SACK"), has(syn.timestamps, "timestamps"))
}

/// An answer leaves the option out where the question did (RFC 7323, section 2.2).
fn left_out(report: &Report, place: usize) -> String {
    let opener_too = report.sides[0].syn.is_some_and(|syn| syn.window_scale.is_none());
    if place == 1 && opener_too {
        "no window scale, because a sent none".to_owned()
    } else {
        "no window scale".to_owned()
    }
}

fn put_direction(page: &mut Page, report: &Report, place: usize, files: &[CaptureFile]) {
    let side = &report.sides[place];
    let judged = diagnosis(report, side);
    let (from, to) = ends(report, place);
    page.title(&format!("{from} -> {to}"), verdict_style(judged.limiter), &verdict(&judged));
    page.field("carried", &carried(report, side));
    page.field("figures", &figures(side));
    if let Some(attainable) = judged.attainable_bps {
        page.field("attainable", &format!("{attainable} payload without this limit"));
    }
    put_shares(page, &judged);
    for (index, evidence) in judged.evidence.iter().enumerate() {
        let packets =
            evidence.packets.map(|packets| format!(" ({})", packet_words(packets, files))).unwrap_or_default();
        page.field(if index == 0 { "because" } else { "" }, &format!("{}{packets}", evidence.text));
    }
    // What was not enough for a verdict is not enough for many small ones.
    let own = side.verdict.as_ref().filter(|_| judged.limiter != Limiter::InsufficientEvidence);
    put_timeline(page, own.map(|verdict| verdict.runs.as_slice()).unwrap_or_default());
    page.field("do", &judged.action);
    for (index, blind) in judged.blind.iter().enumerate() {
        page.field(if index == 0 { "not seen" } else { "" }, blind);
    }
}

fn put_timeline(page: &mut Page, runs: &[Run]) {
    let shown = if page.look.verbose { usize::MAX } else { SPANS };
    for (index, run) in runs.iter().take(shown).enumerate() {
        let seconds = |us: u64| us as f64 / 1e6;
        let detail = run.detail.map(|detail| format!(" ({})", detail.words()));
        let text = format!(
            "{:>8.3} to {:>8.3} s  {}{}",
            seconds(run.from_us),
            seconds(run.to_us),
            run.limiter.words(),
            detail.unwrap_or_default()
        );
        page.pieces_field(if index == 0 { "timeline" } else { "" }, &[(PLAIN, &text)]);
    }
    if runs.len() > shown {
        page.field("", &format!("{} more spans (--verbose shows them)", runs.len() - shown));
    }
}

fn figures(side: &Side) -> String {
    let counters = &side.counters;
    let mut text = format!(
        "{} of up to {} with payload, {} retransmitted, {} out of order, {}, {}",
        counted(counters.data_packets, "segment"),
        Bytes::new(side.mss.into()),
        counters.retransmissions,
        counters.out_of_order,
        counted(counters.timeouts, "timeout"),
        counted(counters.duplicate_acks, "duplicate ACK")
    );
    for (number, words) in [
        (counters.dsacks, "duplicate SACKs"),
        (counters.zero_windows, "times a closed window"),
        (counters.window_probes, "window probes"),
        (counters.keep_alives, "keep-alives"),
        (counters.marked, "congestion marks"),
        (counters.too_big, "messages that packets were too big"),
    ] {
        if number > 0 {
            text += &format!(", {number} {words}");
        }
    }
    text + &format!(
        "; first flight {}; offered window at most {}",
        Bytes::new(counters.initial_window),
        Bytes::new(counters.largest_window)
    )
}

fn carried(report: &Report, side: &Side) -> String {
    let rate = side.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let time = if side.sending > Micros::ZERO { side.sending } else { report.lasted };
    let loaded = side.verdict.as_ref().and_then(|verdict| verdict.loaded_rtt);
    let loaded = loaded.map(|trip| format!(", {trip} loaded")).unwrap_or_default();
    let (sent, carried) = (Bytes::new(side.counters.payload), Bytes::new(side.counters.carried));
    let bytes = if carried < sent { format!("{carried} acknowledged of {sent} sent") } else { sent.to_string() };
    format!("{rate} ({bytes} in {:.2} s), round trip {}{loaded}", time.as_secs_f64(), or_dash(report.rtt))
}

fn diagnosis(report: &Report, side: &Side) -> Diagnosis {
    side.verdict.as_ref().map_or_else(|| too_little(report), |verdict| verdict.diagnosis.clone())
}

fn ends(report: &Report, place: usize) -> (String, String) {
    let (a, b) = (endpoint(report.a), endpoint(report.b));
    if place == 0 { (a, b) } else { (b, a) }
}

fn setting(advice: &Advice) -> String {
    if advice.settings.is_empty() {
        let guess = if advice.is_guess { ", as its SYN looks: a guess" } else { "" };
        return format!(
            "check {} on {} ({}{guess}): that system's defaults suffice, so somebody may have lowered them",
            advice.look_at.join(", "),
            advice.host,
            advice.platform
        );
    }
    let settings = advice.settings.join("; ");
    if advice.is_guess {
        format!("{settings} on {} ({}, as its SYN looks: a guess)", advice.host, advice.platform)
    } else {
        format!("{settings} on {} if it runs {}", advice.host, advice.platform)
    }
}

fn put_problems(page: &mut Page, list: &CaptureList) {
    if list.problems.is_empty() {
        return;
    }
    page.title("problems", BAD, "what could not be read");
    let shown = if page.look.verbose { usize::MAX } else { 10 };
    for problem in list.problems.iter().take(shown) {
        let packet = problem.packet.map(|packet| format!(", packet {packet}")).unwrap_or_default();
        page.paragraph(2, PLAIN, &format!("{}{packet}: {}", problem.file, problem.message));
    }
    let more = list.problem_count.saturating_sub(list.problems.len().min(shown) as u64);
    if more > 0 {
        page.paragraph(2, DIM, &format!("{more} more"));
    }
}
