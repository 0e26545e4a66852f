//! How often the verdicts were right: by case, by whatever the transfers differ in, and by how sure they sounded.

use std::collections::BTreeMap;

use super::{
    index::{Allowed, Run},
    judge::{Answer, Connection, Judged, Live},
};

/// How many of how many.
#[derive(Clone, Copy, Default)]
struct Part {
    of: usize,
    are: usize,
}

/// One line of the table of confusion.
#[derive(Default)]
struct Row {
    right: Part,
    /// How often each verdict was given.
    found: BTreeMap<String, usize>,
}

/// The sums.
#[derive(Default)]
pub(crate) struct Score {
    right: Part,
    agree: Part,
    /// ... and where one names besides what the other names.
    agree_with_second: Part,
    second: usize,
    wrong_and_high: usize,
    nothing_to_set: usize,
    blamed: usize,
}

impl Part {
    fn count(&mut self, is: bool) {
        self.of += 1;
        self.are += usize::from(is);
    }

    fn share(self) -> f64 {
        if self.of == 0 { 1.0 } else { self.are as f64 / self.of as f64 }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} ({:.1} %)", self.are, self.of, self.share() * 100.0)
    }
}

impl Score {
    pub(crate) fn reaches(&self, aim: f64) -> bool {
        self.right.of > 0 && self.right.share() >= aim && self.agree.share() >= aim && self.blamed == 0
    }

    fn count(&mut self, run: &Run, connection: &Connection, answer: Answer, is_settable: bool) {
        let found = &connection.diagnosis;
        let is_wrong = answer == Answer::Wrong;
        self.right.count(!is_wrong);
        self.second += usize::from(answer == Answer::Second);
        self.wrong_and_high += usize::from(is_wrong && found.confidence == "high");
        let says_nothing = ["path", "application"].contains(&&*found.limiter);
        self.nothing_to_set += usize::from(is_wrong && is_settable && says_nothing);
        let is_blame = !["path", "insufficient_evidence"].contains(&&*found.limiter);
        self.blamed += usize::from(is_wrong && is_blame && run.is_control());
    }
}

/// Prints the tables, the misses where they are wanted, and the sums.
pub(crate) fn print(runs: &[Run], judged: &Judged, shows_misses: bool) -> Score {
    let mut score = Score::default();
    let mut rows: BTreeMap<(&str, String), Row> = BTreeMap::new();
    let mut by: BTreeMap<(&str, &str), Part> = BTreeMap::new();
    let mut misses = Vec::new();
    for run in runs.iter().filter(|run| run.invalid.is_none()) {
        let mut found = Vec::new();
        for (host, vantage) in &run.vantages {
            let Some(connection) = judged.get(&vantage.file) else { continue };
            let answer = connection.diagnosis.answer(&vantage.allowed);
            let is_right = answer != Answer::Wrong;
            score.count(run, connection, answer, vantage.is_settable());
            let row = rows.entry((&run.case, expected(&vantage.allowed))).or_default();
            row.right.count(is_right);
            *row.found.entry(connection.diagnosis.words()).or_default() += 1;
            found.push(&connection.diagnosis);
            for (what, which) in [
                ("family", &*run.family),
                ("vantage", if *host == run.sender { "sender" } else { "receiver" }),
                ("stack", &*run.stack),
                ("congestion control", &*run.congestion),
                ("confidence", &*connection.diagnosis.confidence),
            ] {
                by.entry((what, which)).or_default().count(is_right);
            }
            if !is_right {
                misses.push(miss(&vantage.file, &vantage.allowed, connection));
            }
        }
        // Where one end can't see what the other sees, there is nothing to agree on.
        let mut allowed = run.vantages.values().map(|vantage| &vantage.allowed);
        if allowed.next() == allowed.next() {
            let is_same = found.windows(2).all(|both| both[0].limiter == both[1].limiter);
            score.agree.count(is_same);
            score.agree_with_second.count(found.windows(2).all(|both| both[0].shares_a_name(both[1])));
        }
    }
    println!("{:<22} {:<44} {:>9}  found", "case", "expected", "right");
    for ((case, expected), Row { right, found }) in &rows {
        let found: Vec<String> = found.iter().map(|(words, count)| format!("{words} {count}")).collect();
        println!("{case:<22} {expected:<44} {:>4}/{:<4}  {}", right.are, right.of, found.join(", "));
    }
    for ((what, which), part) in &by {
        println!("right by {what} {which}: {part}");
    }
    for line in misses.iter().filter(|_| shows_misses) {
        println!("{line}");
    }
    for run in runs {
        if let Some(reason) = &run.invalid {
            println!("not judged: {}: {reason}", run.name);
        }
    }
    println!("right: {}, {} of them with a second one named", score.right, score.second);
    println!("both ends agree: {}, with seconds {}", score.agree, score.agree_with_second);
    println!("wrong and called high: {}", score.wrong_and_high);
    println!("nothing to set where a window or a buffer holds: {}", score.nothing_to_set);
    println!("blame on clean paths: {}", score.blamed);
    score
}

/// How often what was judged live at the sender is right, and where it differs from what the capture of the same end says. One of
/// the two is then wrong, or a label allows both.
pub(crate) fn print_live(runs: &[Run], judged: &Judged, live: &Live, shows_misses: bool) {
    let (mut right, mut agree, mut unjudged, mut wrong_and_high) = (Part::default(), Part::default(), 0, 0);
    let mut by: BTreeMap<(&str, &str), Part> = BTreeMap::new();
    let mut differ: BTreeMap<(String, String), usize> = BTreeMap::new();
    for run in runs {
        let Some(found) = live.get(&run.name) else { continue };
        let Some(found) = found else {
            unjudged += 1;
            continue;
        };
        let Some(vantage) = run.vantages.get(&run.sender) else { continue };
        let Some(capture) = judged.get(&vantage.file).map(|connection| &connection.diagnosis) else { continue };
        let is_right = found.answer(&vantage.allowed) != Answer::Wrong;
        right.count(is_right);
        wrong_and_high += usize::from(!is_right && found.confidence == "high");
        for key in [("family", &*run.family), ("congestion control", &*run.congestion)] {
            by.entry(key).or_default().count(is_right);
        }
        agree.count(found.limiter == capture.limiter);
        if found.limiter != capture.limiter {
            *differ.entry((found.words(), capture.words())).or_default() += 1;
        }
        if shows_misses && (!is_right || found.limiter != capture.limiter) {
            let (live, capture, expected) = (found.words(), capture.words(), expected(&vantage.allowed));
            let reason = found.evidence.first().map_or("no evidence is given", |evidence| &evidence.text);
            println!("live: {}: {live}, by its capture {capture}, expected {expected}: {reason}", run.name);
        }
    }
    if right.of + unjudged == 0 {
        return;
    }
    for ((what, which), part) in &by {
        println!("live right by {what} {which}: {part}");
    }
    for ((live, capture), count) in &differ {
        println!("live {live}, by its capture {capture}: {count}");
    }
    println!("live at the sender, right: {right}, {unjudged} had too little to judge");
    println!("live and the capture of the same end agree: {agree}");
    println!("live, wrong and called high: {wrong_and_high}");
}

fn expected(allowed: &[Allowed]) -> String {
    let one = |allowed: &Allowed| match &*allowed.details {
        [] => allowed.limiter.clone(),
        details => format!("{}/{}", allowed.limiter, details.join("|")),
    };
    allowed.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn miss(file: &str, allowed: &[Allowed], connection: &Connection) -> String {
    let found = &connection.diagnosis;
    let reason = found.evidence.first().map_or("no evidence is given", |evidence| &evidence.text);
    let (words, percent) = (connection.diagnosis.words(), found.share * 100.0);
    format!("miss: {file}: found {words} ({percent:.0} %, {}), not {}: {reason}", found.confidence, expected(allowed))
}
