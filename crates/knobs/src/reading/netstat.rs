//! `netstat -m` and `vmstat -z`: how many of the network's buffers are in use, how many there may be, and how often none was left.
//!
//! Each line names its own figures: `516/714/1230/124756 mbuf clusters in use (current/cache/total/max)`. FreeBSD 5.0 to
//! 5.2 have a paragraph for each kind of buffer in place of it.

use super::{Place, Refusal, RemarkKind, scan, sheet::Sheet};
use crate::{Address, Family, settings::Mbufs};

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    let mut mbufs = Mbufs::default();
    let mut any = false;
    let mut of_clusters = false;
    for (number, line) in scan::lines(text) {
        let trimmed = line.trim();
        let place = scan::place_of(number, line, trimmed);
        if let Some(kind) = trimmed.strip_suffix(" usage:") {
            of_clusters = kind == "mbuf cluster";
            continue;
        }
        if of_clusters && paragraph(trimmed, place, &mut mbufs, sheet) {
            any = true;
            continue;
        }
        let Some((figures, words)) = trimmed.split_once(' ') else { continue };
        let (what, labels) = words.rsplit_once(" (").unwrap_or((words, ""));
        let labels = labels.trim_end_matches([')', ':']);
        let figure = |label: &str| -> Option<u64> {
            let at = labels.split('/').position(|known| known == label)?;
            figures.split('/').nth(at)?.parse().ok()
        };
        match what.trim() {
            "mbuf clusters in use" => {
                any = true;
                mbufs.clusters_in_use = figure("current");
                mbufs.clusters_max = figure("max");
                match mbufs.clusters_max {
                    Some(max) => limit(sheet, place, "kern.ipc.nmbclusters", max),
                    None => {
                        sheet.remark(RemarkKind::Unread, place, "the line doesn't tell how many clusters there may be")
                    }
                }
                // Only FreeBSD tells the limit there.
                sheet.family(Family::FreeBsd);
            }
            pages if pages.ends_with("(page size) jumbo clusters in use") => {
                mbufs.pages_in_use = figure("current");
                // No limit is 0 (6.x).
                mbufs.pages_max = figure("max").filter(|max| *max > 0);
                if let Some(max) = mbufs.pages_max {
                    limit(sheet, place, PAGES, max);
                }
            }
            "requests for mbufs denied" => {
                any = true;
                let parts = figures.split('/').filter_map(|figure| figure.parse::<u64>().ok());
                mbufs.denied = Some(parts.fold(0, u64::saturating_add));
            }
            "requests for jumbo clusters denied" => {
                mbufs.pages_denied = figures.split('/').next().and_then(|figure| figure.parse().ok());
                denied_pages(sheet, place, mbufs.pages_denied);
            }
            // FreeBSD 4 and 5.
            "requests for memory denied" => {
                any = true;
                mbufs.denied = figures.parse().ok();
            }
            _ => {}
        }
    }
    if !any {
        return Err(Refusal {
            place: Place { line: 1, column: 1 },
            problem: "no line tells the use of mbuf clusters".to_owned(),
            expected: "`current/cache/total/max mbuf clusters in use` as FreeBSD prints it",
            way_out: "save the output of netstat -m; macOS has no limit of this kind to tell",
        });
    }
    if let Some(denied) = mbufs.denied.filter(|denied| *denied > 0) {
        let words = format!(
            "{denied} requests for buffers were denied since the machine started: kern.ipc.nmbclusters or the memory was too small"
        );
        sheet.remark(RemarkKind::Note, Place { line: 1, column: 1 }, words);
    }
    sheet.mbufs = Some(mbufs);
    Ok(())
}

const PAGES: &str = "kern.ipc.nmbjumbop";

fn limit(sheet: &mut Sheet, place: Place, knob: &str, max: u64) {
    sheet.set(place, Address::sysctl(knob), Some(&max.to_string()));
}

fn denied_pages(sheet: &mut Sheet, place: Place, denied: Option<u64>) {
    if let Some(denied) = denied.filter(|denied| *denied > 0) {
        let words = format!(
            "{denied} requests for clusters of a page were denied since the machine started: {PAGES} or the memory was too small"
        );
        sheet.remark(RemarkKind::Note, place, words);
    }
}

/// A line of 5.0's paragraph on clusters: `Total: 12/64 (in use/in pool)`, `Maximum possible: 17216`.
fn paragraph(line: &str, place: Place, mbufs: &mut Mbufs, sheet: &mut Sheet) -> bool {
    let Some((label, figures)) = line.split_once(':') else { return false };
    let first = || figures.trim().split(['/', ' ']).next()?.parse::<u64>().ok();
    match label {
        "Total" => mbufs.clusters_in_use = first(),
        "Maximum possible" => {
            mbufs.clusters_max = first();
            if let Some(max) = mbufs.clusters_max {
                limit(sheet, place, "kern.ipc.nmbclusters", max);
            }
            sheet.family(Family::FreeBsd);
        }
        _ => return false,
    }
    true
}

/// `vmstat -z`: a line for each zone, `mbuf_cluster: 2048, 262144, 1152, 6, 1152, 0, 0`, under `ITEM SIZE LIMIT USED ...`. A
/// limit of 0 is none.
pub(super) fn zones(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    // `FAIL` was `FAILURES` before FreeBSD 9.
    let mut headings: Vec<&str> = Vec::new();
    let mut mbufs = None::<Mbufs>;
    for (number, line) in scan::lines(text) {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("ITEM ") {
            headings = rest.split_whitespace().collect();
        }
        let Some((zone @ ("mbuf_cluster" | "mbuf_jumbo_page"), figures)) = trimmed.split_once(':') else { continue };
        let figures: Vec<Option<u64>> = figures.split(',').map(|figure| figure.trim().parse().ok()).collect();
        let figure = |wanted: &str| {
            let at = headings.iter().position(|heading| heading.starts_with(wanted))?;
            figures.get(at).copied().flatten()
        };
        let place = scan::place_of(number, line, trimmed);
        let (Some(max), Some(in_use)) = (figure("LIMIT"), figure("USED")) else {
            let words = format!("the line of {zone} ends before its limit and use: the text looks cut off");
            sheet.remark(RemarkKind::Unread, place, words);
            continue;
        };
        sheet.family(Family::FreeBsd);
        let denied = figure("FAIL");
        let found = mbufs.get_or_insert_default();
        let bounded = Some(max).filter(|max| *max > 0);
        if zone == "mbuf_jumbo_page" {
            (found.pages_in_use, found.pages_max, found.pages_denied) = (Some(in_use), bounded, denied);
            denied_pages(sheet, place, denied);
        } else {
            (found.clusters_in_use, found.clusters_max, found.denied) = (Some(in_use), bounded, denied);
            if let Some(denied) = denied.filter(|denied| *denied > 0) {
                let words = format!(
                    "{denied} requests for clusters failed since the machine started: kern.ipc.nmbclusters or the memory was too small"
                );
                sheet.remark(RemarkKind::Note, place, words);
            }
        }
        if let Some(max) = bounded {
            limit(sheet, place, if zone == "mbuf_cluster" { "kern.ipc.nmbclusters" } else { PAGES }, max);
        }
    }
    sheet.mbufs = mbufs;
    if mbufs.is_some() || !sheet.is_quiet() {
        return Ok(());
    }
    Err(Refusal {
        place: Place { line: 1, column: 1 },
        problem: "no line tells of the zone mbuf_cluster".to_owned(),
        expected: "`mbuf_cluster: SIZE, LIMIT, USED, ...` as FreeBSD prints it from 5.3 on",
        way_out: "save the whole output of vmstat -z, or that of netstat -m",
    })
}
