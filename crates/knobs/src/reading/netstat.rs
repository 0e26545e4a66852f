//! `netstat -m`: how many of the network's buffers are in use, how many there may be, and how often none was left.
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
