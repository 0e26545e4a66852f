//! One direction: what it carried, what limited it, and why we say so.

use fullpipe_diagnose::{Diagnosis, Limiter};
use fullpipe_tune::Direction;

use super::page::{BAD, GOOD, Look, NAME, PLAIN, Page, WARN, bar, or_dash, percent};

/// How many reasons are shown unless everything is asked for.
const REASONS: usize = 3;
/// Shares below this are not worth a line unless everything is asked for.
const SMALL_SHARE: f64 = 0.01;
/// Columns of the longest bar.
const BAR: usize = 24;
/// Columns before a bar: label, percent and name.
const BEFORE_BAR: usize = 14 + 7 + 22;

/// One measured direction with its verdict, rates, round-trip times, shares and evidence.
pub fn direction(direction: &Direction, look: Look) -> String {
    let mut page = Page::new(look);
    put_direction(&mut page, direction);
    page.finish()
}

/// As [`direction`], on a page.
pub(crate) fn put_direction(page: &mut Page, direction: &Direction) {
    let diagnosis = &direction.diagnosis;
    page.title(&arrow(&direction.name), verdict_style(diagnosis.limiter), &verdict(diagnosis));
    page.field("rate", &rate(direction));
    if let Some(attainable) = diagnosis.attainable_bps {
        page.field("attainable", &format!("{attainable} payload without this limit"));
    }
    page.field("round trip", &round_trip(direction));
    put_shares(page, diagnosis);
    let shown = if page.look.verbose { usize::MAX } else { REASONS };
    for (index, evidence) in diagnosis.evidence.iter().take(shown).enumerate() {
        let when = evidence.from_us.zip(evidence.to_us).filter(|_| page.look.verbose);
        let when = when
            .map_or_else(String::new, |(from, to)| format!(" ({:.2} to {:.2} s)", from as f64 / 1e6, to as f64 / 1e6));
        page.field(if index == 0 { "because" } else { "" }, &format!("{}{when}", evidence.text));
    }
    if !diagnosis.action.is_empty() {
        page.field("do", &diagnosis.action);
    }
    // What tells several of them from the verdict stands once.
    for alternative in diagnosis.or.chunk_by(|a, b| a.decided_by == b.decided_by).filter_map(|alike| alike.first()) {
        page.field("decided by", &alternative.decided_by);
    }
    for (index, blind) in diagnosis.blind.iter().enumerate() {
        page.field(if index == 0 { "not seen" } else { "" }, blind);
    }
}

/// `receive window (window-scale shift 0), 97 % of the time`.
pub(crate) fn verdict(diagnosis: &Diagnosis) -> String {
    let or: Vec<Limiter> = diagnosis.or.iter().map(|alternative| alternative.limiter).collect();
    fullpipe_page::verdict(diagnosis.limiter, diagnosis.detail, &or, diagnosis.share, diagnosis.confidence)
}

/// A full path is as it should be, too little evidence is neither, and the rest can be lifted.
pub(crate) fn verdict_style(limiter: Limiter) -> anstyle::Style {
    match limiter {
        Limiter::Path => GOOD,
        Limiter::InsufficientEvidence | Limiter::Application => WARN,
        Limiter::ReceiveWindow
        | Limiter::SendBuffer
        | Limiter::CongestionWindow
        | Limiter::AckDelay
        | Limiter::SegmentSize
        | Limiter::Reordering
        | Limiter::Handshake
        | Limiter::Cpu => BAD,
    }
}

fn rate(direction: &Direction) -> String {
    let mut text =
        format!("{} payload ({} in {:.2} s", direction.rate_bps, direction.bytes, direction.duration_us.as_secs_f64());
    if let Some(steady) = direction.steady_bps {
        text += &format!("; {steady} without slow start");
    }
    if let Some(retransmits) = direction.retransmits {
        text += &format!("; {retransmits} retransmitted");
    }
    if let Some(congestion_control) = &direction.congestion_control {
        text += &format!("; {congestion_control}");
    }
    text + ")"
}

fn round_trip(direction: &Direction) -> String {
    format!("{} idle, {} loaded", or_dash(direction.rtt_us), or_dash(direction.loaded_rtt_us))
}

pub(crate) fn put_shares(page: &mut Page, diagnosis: &Diagnosis) {
    let mut shares: Vec<_> = diagnosis.shares.iter().filter(|(_, share)| **share > 0.0).collect();
    shares.sort_by(|a, b| b.1.total_cmp(a.1));
    let (unicode, cells) = (page.look.unicode, page.look.width.saturating_sub(BEFORE_BAR).min(BAR));
    let threshold = if page.look.verbose { 0.0 } else { SMALL_SHARE };
    for (index, (limiter, share)) in shares.into_iter().filter(|(_, share)| **share >= threshold).enumerate() {
        let bar = bar(*share, cells, unicode);
        let figures = format!("{:>5}  {:<22}", percent(*share), limiter.words());
        page.pieces_field(if index == 0 { "shares" } else { "" }, &[(PLAIN, &figures), (NAME, &bar)]);
    }
}

/// `a->b` is a name; `a -> b` reads better, also where it stands in a sentence.
pub fn arrow(text: &str) -> String {
    text.split("->").map(str::trim).collect::<Vec<_>>().join(" -> ")
}
