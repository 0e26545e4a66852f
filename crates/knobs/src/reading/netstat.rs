//! `netstat -m` and `vmstat -z`: how many of the network's buffers are in use, how many there may be, and how often none was left.
//!
//! Each line names its own figures: `516/714/1230/124756 mbuf clusters in use (current/cache/total/max)`.

use super::{Place, Refusal, RemarkKind, scan, sheet::Sheet};
use crate::{Address, Family, settings::Mbufs};

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    let mut mbufs = Mbufs::default();
    let mut any = false;
    for (number, line) in scan::lines(text) {
        let trimmed = line.trim();
        let place = scan::place_of(number, line, trimmed);
        let Some((figures, words)) = trimmed.split_once(' ') else { continue };
        let (what, labels) = words.split_once(" (").map_or((words, ""), |(what, rest)| (what, rest));
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
                    Some(max) => sheet.set(place, Address::sysctl("kern.ipc.nmbclusters"), Some(&max.to_string())),
                    None => {
                        sheet.remark(RemarkKind::Unread, place, "the line doesn't tell how many clusters there may be")
                    }
                }
                // Only FreeBSD tells the limit there.
                sheet.family(Family::FreeBsd);
            }
            "requests for mbufs denied" => {
                any = true;
                let parts = figures.split('/').filter_map(|figure| figure.parse::<u64>().ok());
                mbufs.denied = Some(parts.fold(0, u64::saturating_add));
            }
            // FreeBSD 4.
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
            "{denied} requests for buffers were denied since the machine started: kern.ipc.nmbclusters was too small"
        );
        sheet.remark(RemarkKind::Note, Place { line: 1, column: 1 }, words);
    }
    sheet.mbufs = Some(mbufs);
    Ok(())
}

/// `vmstat -z`: a line for each zone, `mbuf_cluster: 2048, 262144, 1152, 6, 1152, 0, 0`, under `ITEM SIZE LIMIT USED ...`. A
/// limit of 0 is none.
pub(super) fn zones(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    // `FAIL` was `FAILURES` before FreeBSD 9.
    let mut headings: Vec<&str> = Vec::new();
    for (number, line) in scan::lines(text) {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("ITEM ") {
            headings = rest.split_whitespace().collect();
        }
        let Some(figures) = trimmed.strip_prefix("mbuf_cluster:") else { continue };
        let figures: Vec<Option<u64>> = figures.split(',').map(|figure| figure.trim().parse().ok()).collect();
        let figure = |wanted: &str| {
            let at = headings.iter().position(|heading| heading.starts_with(wanted))?;
            figures.get(at).copied().flatten()
        };
        let place = scan::place_of(number, line, trimmed);
        let (max, in_use) = (figure("LIMIT"), figure("USED"));
        let (Some(max), Some(in_use)) = (max, in_use) else {
            let words = "the line of mbuf_cluster ends before its limit and use: the text looks cut off";
            sheet.remark(RemarkKind::Unread, place, words);
            continue;
        };
        sheet.family(Family::FreeBsd);
        let denied = figure("FAIL");
        if max > 0 {
            sheet.set(place, Address::sysctl("kern.ipc.nmbclusters"), Some(&max.to_string()));
        }
        if let Some(denied) = denied.filter(|denied| *denied > 0) {
            let words = format!(
                "{denied} requests for clusters failed since the machine started: kern.ipc.nmbclusters was too small"
            );
            sheet.remark(RemarkKind::Note, place, words);
        }
        let clusters_max = Some(max).filter(|max| *max > 0);
        sheet.mbufs = Some(Mbufs { clusters_in_use: Some(in_use), clusters_max, denied });
        return Ok(());
    }
    if !sheet.is_quiet() {
        return Ok(());
    }
    Err(Refusal {
        place: Place { line: 1, column: 1 },
        problem: "no line tells of the zone mbuf_cluster".to_owned(),
        expected: "`mbuf_cluster: SIZE, LIMIT, USED, ...` as FreeBSD prints it from 5.3 on",
        way_out: "save the whole output of vmstat -z, or that of netstat -m",
    })
}
