//! Every pair of some hosts: the matrix, what is slow, and who is suspected.

use fullpipe_diagnose::Limiter;
use fullpipe_mesh::{Cell, EarlierRun};
use fullpipe_page::mbps;
use fullpipe_units::Rate;

use super::page::{BAD, DIM, GOOD, Look, PLAIN, Page, TITLE, WARN, count};
use crate::MeshReport;

/// Columns of one host in the matrix, with the space before it.
const COLUMN: usize = 12;
/// The longest name of a host that is shown whole in the matrix.
const NAME: usize = 10;

/// What `mesh` found.
pub fn mesh(found: &MeshReport<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    let (verdict, cells) = (found.verdict, found.cells);
    let measured = cells.iter().filter(|cell| cell.found.is_ok()).count();
    let (style, statement) = match (verdict.bad, verdict.slower.len()) {
        (0, 0) => (GOOD, format!("{} measured, none slow", count(measured, "direction"))),
        (bad, slower) => (WARN, format!("{bad} of {} slow or failed, {slower} slower than before", cells.len())),
    };
    page.title(&found.hosts.name, style, &statement);
    matrix(&mut page, found);
    if let Some(suspect) = &verdict.suspect {
        let held = suspect
            .limiter
            .map_or_else(String::new, |limiter| format!(", most of them limited by: {}", limiter.words()));
        let text = format!(
            "{}: {} of its {} are slow or failed{held}",
            found.who(&suspect.kind),
            suspect.bad,
            count(suspect.directions, "direction")
        );
        page.title("suspect", BAD, &text);
        page.field("next", &found.next(&suspect.kind));
    } else if verdict.bad > 0 {
        page.title("suspect", PLAIN, "no single host or site explains it");
    }
    page.gap();
    for slow in &verdict.slow {
        let against = if slow.is_declared { "its path is said to carry" } else { "the median of all directions is" };
        let (way, rate) = (way(found, &cells[slow.cell]), rate(&cells[slow.cell]));
        page.marked("slow", WARN, &format!("{way}, {rate}; {against} {}", slow.against));
    }
    for slower in &verdict.slower {
        let (way, rate) = (way(found, &cells[slower.cell]), rate(&cells[slower.cell]));
        let median = format!("{} (median of {})", slower.before, count(slower.runs, "earlier run"));
        page.marked("slower", WARN, &format!("{way}, {rate} after {median}"));
    }
    // Both directions of a pair fail for one reason, and are measured on one host.
    for cell in cells.iter().filter(|cell| cell.from < cell.to) {
        if let Some(text) = found.hosts.one_sided(cell) {
            page.marked("one-sided", WARN, &text);
        }
        if let Err(why) = &cell.found {
            page.marked("failed", BAD, &format!("{}: {why}", way(found, cell)));
        }
    }
    page.finish()
}

/// Rates from each host (a line) to each other (a column), as many columns as fit.
fn matrix(page: &mut Page, found: &MeshReport<'_>) {
    let hosts = &found.hosts.hosts;
    let places: Vec<usize> = (0..hosts.len()).collect();
    let fit = (page.look.width.saturating_sub(NAME + 2) / COLUMN).max(1);
    let mut seen = Vec::new();
    for columns in places.chunks(fit) {
        page.gap();
        let head: String = columns.iter().map(|place| format!("{:>COLUMN$}", short(&hosts[*place].name))).collect();
        page.pieces(0, &[(DIM, &format!("{:<width$}{head}", "from \\ to", width = NAME + 1))]);
        for from in &places {
            let mut line = vec![(TITLE, format!("{:<width$}", short(&hosts[*from].name), width = NAME + 1))];
            for to in columns {
                let cell = found.cells.iter().position(|cell| (cell.from, cell.to) == (*from, *to));
                let text = cell.map_or_else(|| "-".to_owned(), |cell| brief(&found.cells[cell]));
                seen.extend(cell.and_then(|cell| found.cells[cell].found.as_ref().ok()).map(|found| found.limiter));
                let bad = cell.is_some_and(|cell| {
                    found.cells[cell].found.is_err() || found.verdict.slow.iter().any(|slow| slow.cell == cell)
                });
                line.push((if bad { WARN } else { PLAIN }, format!("{text:>COLUMN$}")));
            }
            let pieces: Vec<_> = line.iter().map(|(style, text)| (*style, text.as_str())).collect();
            page.pieces(0, &pieces);
        }
    }
    seen.sort_unstable();
    seen.dedup();
    page.gap();
    let legend: Vec<String> =
        seen.into_iter().map(|limiter| format!("{} {}", mark(limiter), limiter.words())).collect();
    page.paragraph(0, DIM, &format!("Mbit/s of payload, and what limits it: {}", legend.join(", ")));
}

/// `941 rwin`.
fn brief(cell: &Cell) -> String {
    match &cell.found {
        Ok(found) => format!("{} {}", mbps(found.rate), mark(found.limiter)),
        Err(_) => "failed".to_owned(),
    }
}

/// The limiter in a word that fits a matrix.
fn mark(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Application => "app",
        Limiter::ReceiveWindow => "rwin",
        Limiter::SendBuffer => "sbuf",
        Limiter::CongestionWindow => "cwnd",
        Limiter::Path => "path",
        Limiter::AckDelay => "ack",
        Limiter::SegmentSize => "seg",
        Limiter::Reordering => "reor",
        Limiter::Handshake => "hand",
        Limiter::Cpu => "cpu",
        Limiter::InsufficientEvidence => "?",
    }
}

fn short(name: &str) -> String {
    if name.chars().count() <= NAME { name.to_owned() } else { name.chars().take(NAME - 1).chain(['~']).collect() }
}

fn way(found: &MeshReport<'_>, cell: &Cell) -> String {
    let [from, to] = [cell.from, cell.to].map(|place| found.hosts.hosts[place].name.as_str());
    format!("{from} -> {to}")
}

fn rate(cell: &Cell) -> Rate {
    cell.found.as_ref().map_or(Rate::ZERO, |found| found.rate)
}

/// Earlier runs of a mesh, newest first.
pub fn mesh_history(name: &str, runs: &[EarlierRun], look: Look) -> String {
    let mut page = Page::new(look);
    page.title(name, PLAIN, &count(runs.len(), "run"));
    for run in runs {
        let rates: Vec<Rate> = run.cells.iter().filter_map(|cell| cell.rate).collect();
        let failed = run.cells.len() - rates.len();
        let range = match (rates.iter().min(), rates.iter().max()) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => "nothing measured".to_owned(),
        };
        let one_sided = run.cells.iter().filter(|cell| cell.rate.is_some() && cell.error.is_some()).count();
        let also = if one_sided == 0 { String::new() } else { format!(", {one_sided} measured by one end alone") };
        let text = format!("{}  {}, {failed} failed{also}", run.started, range);
        page.title(&format!("run {}", run.number), PLAIN, &text);
        if page.look.verbose {
            for cell in &run.cells {
                let what = match (cell.rate, &cell.error) {
                    (Some(rate), why) => {
                        let why = why.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                        format!("{rate}, limited by: {}{why}", cell.limiter.as_deref().unwrap_or("?").replace('_', " "))
                    }
                    (None, why) => why.clone().unwrap_or_default(),
                };
                page.paragraph(2, PLAIN, &format!("{} -> {}  {what}", cell.from, cell.to));
            }
        }
    }
    page.finish()
}
