//! Which directions are slow, which got slower, and which one host or site explains them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_diagnose::Limiter;
use fullpipe_units::Rate;

use crate::{Cell, Hosts};

/// When a direction counts as slow or as slower.
#[derive(Clone, Copy, Debug)]
pub struct Criteria {
    /// A direction is slow below this share of what its path is said to carry. Headers and slow start take some of it.
    pub of_declared: f64,
    /// Where nothing is said: below this share of the median of all directions.
    pub of_median: f64,
    /// A direction got slower where less than this share of its earlier median is left.
    pub of_earlier: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        Self { of_declared: 0.8, of_median: 0.5, of_earlier: 0.8 }
    }
}

/// What is said of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Directions that are slow.
    pub slow: Vec<Slow>,
    /// Directions that got slower.
    pub slower: Vec<Slower>,
    /// The one host, site, pair of sites or pair of hosts that explains what is slow or failed.
    pub suspect: Option<Suspect>,
    /// How many directions are slow or failed.
    pub bad: usize,
}

/// A direction that is slow, by its place among the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Which.
    pub cell: usize,
    /// What it was held against.
    pub against: Rate,
    /// Whether that was said of the path; else it is the median of all directions.
    pub is_declared: bool,
}

/// A direction that got slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slower {
    /// Which, by its place among the cells.
    pub cell: usize,
    /// The median of earlier runs.
    pub before: Rate,
    /// How many they are.
    pub runs: usize,
}

/// What explains the bad directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Who.
    pub kind: SuspectKind,
    /// How many of its directions there are.
    pub directions: usize,
    /// How many of them are bad.
    pub bad: usize,
    /// What limited most of those that were measured.
    pub limiter: Option<Limiter>,
}

/// Who is suspected, hosts by their places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuspectKind {
    /// A host.
    Host(usize, Role),
    /// A site's way to the others.
    Site(String, Role),
    /// What lies between two sites.
    Sites(String, String),
    /// What lies between two hosts.
    Pair(usize, usize),
}

/// Which of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Both.
    Both,
    /// Those in which it sends.
    Sends,
    /// Those in which it receives.
    Receives,
}

/// At least this share of the bad directions has to be the suspect's ...
const EXPLAINED: f64 = 0.9;
/// ... and of the suspect's directions this share has to be bad.
const AFFECTED: f64 = 0.75;

/// Says what is slow, what got slower than in `earlier` runs (rates by sender and receiver), and who explains it.
pub fn judge(
    hosts: &Hosts,
    cells: &[Cell],
    earlier: &BTreeMap<(String, String), Vec<Rate>>,
    criteria: Criteria,
) -> Verdict {
    let rate_of = |cell: &Cell| cell.found.as_ref().ok().map(|found| found.rate);
    let typical = median(cells.iter().filter_map(rate_of).collect());
    let mut slow = Vec::new();
    let mut slower = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        let Some(rate) = rate_of(cell) else { continue };
        let (from, to) = (&hosts.hosts[cell.from], &hosts.hosts[cell.to]);
        let declared = hosts.declared(from, to);
        let limit = declared.map(|rate| (rate, criteria.of_declared)).or_else(|| Some((typical?, criteria.of_median)));
        if let Some((against, _)) = limit.filter(|(against, share)| is_below(rate, *against, *share)) {
            slow.push(Slow { cell: place, against, is_declared: declared.is_some() });
        }
        let rates = earlier.get(&(from.name.clone(), to.name.clone())).cloned().unwrap_or_default();
        let runs = rates.len();
        if let Some(before) = median(rates).filter(|before| is_below(rate, *before, criteria.of_earlier)) {
            slower.push(Slower { cell: place, before, runs });
        }
    }
    let failed = cells.iter().enumerate().filter(|(_, cell)| cell.found.is_err()).map(|(place, _)| place);
    let bad: BTreeSet<usize> = failed.chain(slow.iter().map(|slow| slow.cell)).collect();
    Verdict { slow, slower, suspect: suspect(hosts, cells, &bad), bad: bad.len() }
}

fn is_below(rate: Rate, against: Rate, share: f64) -> bool {
    (rate.bps() as f64) < against.bps() as f64 * share
}

/// The middle one; of two the lower.
fn median(mut rates: Vec<Rate>) -> Option<Rate> {
    rates.sort_unstable();
    let middle = rates.len().checked_sub(1)? / 2;
    rates.get(middle).copied()
}

/// The smallest part of the mesh that has nearly all bad directions, and few others.
fn suspect(hosts: &Hosts, cells: &[Cell], bad: &BTreeSet<usize>) -> Option<Suspect> {
    // Where all is bad, nobody in particular is.
    if bad.is_empty() || bad.len() == cells.len() {
        return None;
    }
    let mut best: Option<(f64, Vec<SuspectKind>, Vec<usize>)> = None;
    for kind in candidates(hosts) {
        let within: Vec<usize> = (0..cells.len()).filter(|place| has(hosts, &kind, &cells[*place])).collect();
        let both = within.iter().filter(|place| bad.contains(place)).count() as f64;
        let (explained, affected) = (both / bad.len() as f64, both / within.len().max(1) as f64);
        if explained < EXPLAINED || affected < AFFECTED {
            continue;
        }
        // The harmonic mean; of two that are equal the first, which is the more particular.
        let score = 2.0 * explained * affected / (explained + affected);
        match &mut best {
            Some((_, kinds, directions)) if *directions == within => kinds.push(kind),
            Some((other, _, _)) if *other >= score => {}
            _ => best = Some((score, vec![kind], within)),
        }
    }
    let (_, kinds, within) = best?;
    let kind = one_of(hosts, cells, kinds, &within)?;
    let of_bad: Vec<usize> = within.iter().copied().filter(|place| bad.contains(place)).collect();
    let mut limiters: BTreeMap<Limiter, usize> = BTreeMap::new();
    let measured = of_bad.iter().filter_map(|place| cells[*place].found.as_ref().ok());
    for found in measured.filter(|found| found.limiter != Limiter::InsufficientEvidence) {
        *limiters.entry(found.limiter).or_default() += 1;
    }
    let limiter = limiters.into_iter().max_by_key(|(_, count)| *count).map(|(limiter, _)| limiter);
    Some(Suspect { kind, directions: within.len(), bad: of_bad.len(), limiter })
}

/// Of several with the same directions none is named before the others, but what lies between them.
fn one_of(hosts: &Hosts, cells: &[Cell], mut kinds: Vec<SuspectKind>, within: &[usize]) -> Option<SuspectKind> {
    if kinds.len() == 1 {
        return kinds.pop();
    }
    let ends = |of: &dyn Fn(usize) -> usize| -> BTreeSet<usize> {
        within.iter().flat_map(|place| [cells[*place].from, cells[*place].to]).map(of).collect()
    };
    if let [a, b] = ends(&|host| host).into_iter().collect::<Vec<_>>()[..] {
        return Some(SuspectKind::Pair(a, b));
    }
    // A site by the first of its hosts.
    let site = |host: usize| hosts.hosts.iter().position(|other| other.site == hosts.hosts[host].site).unwrap_or(host);
    let [a, b] = ends(&site).into_iter().collect::<Vec<_>>()[..] else { return None };
    let mut names = [a, b].map(|host| hosts.hosts[host].site.clone());
    names.sort();
    let [a, b] = names;
    Some(SuspectKind::Sites(a, b))
}

/// Everyone who may be suspected, the more particular first.
fn candidates(hosts: &Hosts) -> Vec<SuspectKind> {
    let count = hosts.hosts.len();
    let mut sites: BTreeMap<&str, usize> = BTreeMap::new();
    for host in &hosts.hosts {
        *sites.entry(&host.site).or_default() += 1;
    }
    let roles = [Role::Both, Role::Sends, Role::Receives];
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| SuspectKind::Pair(a, b)));
    let of_hosts = (0..count).flat_map(|host| roles.map(|role| SuspectKind::Host(host, role)));
    // A site of one host is that host.
    let large = sites.iter().filter(|(_, hosts)| **hosts > 1).map(|(site, _)| *site);
    let of_sites = large.flat_map(|site| roles.map(|role| SuspectKind::Site(site.to_owned(), role)));
    let names: Vec<(&str, usize)> = sites.iter().map(|(site, hosts)| (*site, *hosts)).collect();
    let between = names.iter().enumerate().flat_map(|(place, (a, of_a))| {
        let others = names[place + 1..].iter().filter(move |(_, of_b)| of_a + of_b > 2);
        others.map(move |(b, _)| SuspectKind::Sites((*a).to_owned(), (*b).to_owned()))
    });
    pairs.chain(of_hosts).chain(of_sites).chain(between).collect()
}

/// Whether a direction is one of the suspect's.
fn has(hosts: &Hosts, kind: &SuspectKind, cell: &Cell) -> bool {
    let [from, to] = [cell.from, cell.to].map(|place| hosts.hosts[place].site.as_str());
    let plays = |role: &Role, sends: bool, receives: bool| match role {
        Role::Both => sends || receives,
        Role::Sends => sends,
        Role::Receives => receives,
    };
    match kind {
        SuspectKind::Host(host, role) => plays(role, cell.from == *host, cell.to == *host),
        SuspectKind::Site(site, role) => from != to && plays(role, from == site, to == site),
        SuspectKind::Sites(a, b) => (from == a && to == b) || (from == b && to == a),
        SuspectKind::Pair(a, b) => (cell.from, cell.to) == (*a, *b) || (cell.from, cell.to) == (*b, *a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Found;

    /// Hosts named by two letters, the first of which is the site.
    fn hosts(names: &[&str], paths: &str) -> Hosts {
        let host = |name: &&str| format!("[[host]]\nname = '{name}'\nsite = '{}'\n", &name[..1]);
        (names.iter().map(host).collect::<String>() + paths).parse().unwrap()
    }

    /// Every direction, at 900 Mbit/s or as `rate` says.
    fn cells(hosts: &Hosts, rate: impl Fn(&str, &str) -> Option<u64>) -> Vec<Cell> {
        let count = hosts.hosts.len();
        let places = (0..count).flat_map(|from| (0..count).map(move |to| (from, to))).filter(|(from, to)| from != to);
        places
            .map(|(from, to)| {
                let mbps = rate(&hosts.hosts[from].name, &hosts.hosts[to].name);
                let limiter = if mbps == Some(900) { Limiter::Path } else { Limiter::ReceiveWindow };
                let found = mbps.map(|mbps| Found { rate: Rate::from_bps(mbps * 1_000_000), rtt: None, limiter });
                Cell { from, to, found: found.ok_or_else(|| "refused".to_owned()), unable: None }
            })
            .collect()
    }

    fn suspected(hosts: &Hosts, cells: &[Cell]) -> Option<SuspectKind> {
        judge(hosts, cells, &BTreeMap::new(), Criteria::default()).suspect.map(|suspect| suspect.kind)
    }

    const FIVE: [&str; 5] = ["a1", "a2", "b1", "b2", "c1"];

    #[test]
    fn the_one_host_site_or_way_that_is_wrong_is_named() {
        // Said, because most directions are bad where a site is.
        let path = |(a, b): (char, char)| format!("[[path]]\na = '{a}'\nb = '{b}'\nrate = '1G'\n");
        let paths = [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'a'), ('b', 'b')].map(path).concat();
        let five = hosts(&FIVE, &paths);
        let named = |rate: &dyn Fn(&str, &str) -> Option<u64>| suspected(&five, &cells(&five, rate));
        let slow = |is: bool| Some(if is { 60 } else { 900 });
        let a = |name: &str| name.starts_with('a');
        assert_eq!(named(&|from, to| slow(to == "b2" || from == "b2")), Some(SuspectKind::Host(3, Role::Both)));
        assert_eq!(named(&|_, to| slow(to == "b2")), Some(SuspectKind::Host(3, Role::Receives)));
        assert_eq!(named(&|from, _| slow(from == "c1")), Some(SuspectKind::Host(4, Role::Sends)));
        assert_eq!(named(&|from, to| slow(a(from) != a(to))), Some(SuspectKind::Site("a".to_owned(), Role::Both)));
        assert_eq!(named(&|from, to| slow(!a(from) && a(to))), Some(SuspectKind::Site("a".to_owned(), Role::Receives)));
        let between = |from: &str, to: &str| (a(from) && to.starts_with('b')) || (from.starts_with('b') && a(to));
        assert_eq!(
            named(&|from, to| slow(between(from, to))),
            Some(SuspectKind::Sites("a".to_owned(), "b".to_owned()))
        );
        assert_eq!(named(&|from, to| slow(from != "b1" && (from, to) == ("a1", "c1"))), None, "half of a pair");
        assert_eq!(
            named(&|from, to| slow([from, to].contains(&"a1") && [from, to].contains(&"c1"))),
            Some(SuspectKind::Pair(0, 4))
        );
        // A host that can't be reached is as bad as one that is slow.
        assert_eq!(
            named(&|from, to| (from != "a2" && to != "a2").then_some(900)),
            Some(SuspectKind::Host(1, Role::Both))
        );
    }

    #[test]
    fn nobody_is_named_where_all_or_nothing_or_two_hosts_are_wrong() {
        let five = hosts(&FIVE, "");
        assert_eq!(suspected(&five, &cells(&five, |_, _| Some(900))), None);
        // Where nothing is said, the median tells.
        let one = |from: &str, to: &str| Some(if from == "b2" || to == "b2" { 60 } else { 900 });
        assert_eq!(suspected(&five, &cells(&five, one)), Some(SuspectKind::Host(3, Role::Both)));
        assert_eq!(suspected(&five, &cells(&five, |_, _| None)), None);
        let two = |name: &str| name == "a1" || name == "c1";
        assert_eq!(suspected(&five, &cells(&five, |from, to| Some(if two(from) || two(to) { 60 } else { 900 }))), None);
        let three = hosts(&["a1", "b1", "c1"], "");
        assert_eq!(
            suspected(&three, &cells(&three, |_, to| if to == "a1" { None } else { Some(900) })),
            Some(SuspectKind::Host(0, Role::Receives))
        );
    }

    #[test]
    fn of_two_ends_of_one_way_none_is_named_before_the_other() {
        let slow = |is: bool| Some(if is { 60 } else { 900 });
        let across = |from: &str, to: &str| from[..1] != to[..1];
        for [one, other] in [["p", "t"], ["z", "t"]] {
            let path = |a: &str, b: &str| format!("[[path]]\na = '{a}'\nb = '{b}'\nrate = '1G'\n");
            let paths = [path(one, other), path(one, one), path(other, other)].concat();
            let names = [[one, "1"], [one, "2"], [other, "1"], [other, "2"]].map(|name| name.concat());
            let four = hosts(&names.each_ref().map(String::as_str), &paths);
            let mut sites = [one.to_owned(), other.to_owned()];
            sites.sort();
            let [a, b] = sites;
            let between = Some(SuspectKind::Sites(a, b));
            assert_eq!(suspected(&four, &cells(&four, |from, to| slow(across(from, to)))), between);
            let one_way = cells(&four, |from, to| slow(across(from, to) && to.starts_with(one)));
            assert_eq!(suspected(&four, &one_way), between, "sent by one site is received by the other");
            // A host against a site.
            let names = [&names[0], &names[2], &names[3]].map(String::as_str);
            let three = hosts(&names, &paths);
            assert_eq!(suspected(&three, &cells(&three, |from, to| slow(across(from, to)))), between);
        }
        let two = hosts(&["a1", "b1"], "");
        let one_way = cells(&two, |from, _| (from != "a1").then_some(900));
        assert_eq!(suspected(&two, &one_way), Some(SuspectKind::Pair(0, 1)));
    }

    #[test]
    fn a_direction_is_held_against_what_its_path_is_said_to_carry() {
        let paths = "[[path]]\na = 'a'\nb = 'b'\nrate = '100M'\n";
        let three = hosts(&["a1", "b1", "c1"], paths);
        let wan = |from: &str, to: &str| from != "c1" && to != "c1";
        let verdict = |slower: u64| {
            let cells = cells(&three, |from, to| Some(if wan(from, to) { slower } else { 900 }));
            judge(&three, &cells, &BTreeMap::new(), Criteria::default())
        };
        assert!(verdict(94).slow.is_empty(), "a full path is not slow because others are faster");
        let slow = verdict(60);
        assert_eq!(slow.slow.len(), 2);
        assert_eq!(slow.slow[0], Slow { cell: 0, against: Rate::from_bps(100_000_000), is_declared: true });
        assert_eq!(
            slow.suspect.map(|suspect| (suspect.kind, suspect.limiter)),
            Some((SuspectKind::Pair(0, 1), Some(Limiter::ReceiveWindow)))
        );
    }

    #[test]
    fn a_direction_that_carries_less_than_it_did_is_named() {
        let two = hosts(&["a1", "b1"], "");
        let cells = cells(&two, |from, _| Some(if from == "a1" { 700 } else { 900 }));
        let mbps = |rates: &[u64]| rates.iter().map(|rate| Rate::from_bps(rate * 1_000_000)).collect::<Vec<_>>();
        let key = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        // One bad run among the earlier ones hides nothing and shows nothing.
        let earlier =
            BTreeMap::from([(key("a1", "b1"), mbps(&[940, 100, 930])), (key("b1", "a1"), mbps(&[940, 100, 930]))]);
        let verdict = judge(&two, &cells, &earlier, Criteria::default());
        assert_eq!(verdict.slower, [Slower { cell: 0, before: Rate::from_bps(930_000_000), runs: 3 }]);
        assert!(judge(&two, &cells, &BTreeMap::new(), Criteria::default()).slower.is_empty());
    }
}
