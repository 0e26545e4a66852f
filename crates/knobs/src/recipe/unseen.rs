//! What no reader of a script's commands took, although it speaks of a setting of TCP: named, so that it is not passed
//! over.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Step, commands::Taken};
use crate::{Address, Catalogue, Family};

/// Adds a step for each line that seems to set something and of which nothing is said.
pub(super) fn add(text: &str, taken: &mut Taken) {
    let lines = taken.steps.iter().map(|step| step.line).chain(taken.problems.iter().map(|problem| problem.line));
    let said: BTreeSet<u32> = lines.chain(taken.followed.iter().copied()).collect();
    let names = names();
    let lists: BTreeSet<u32> = taken.lists.iter().copied().collect();
    let judged: BTreeSet<String> =
        taken.steps.iter().filter_map(|step| step.knob().map(|knob| knob.to_string())).collect();
    let mut found = Vec::new();
    // The line on which a command begins, where it goes on.
    let mut begun = None;
    for (number, raw) in (1..).zip(text.lines()) {
        let line = raw.trim();
        let first = *begun.get_or_insert(number);
        if !line.ends_with(['^', '\\', '`', '|', ',']) {
            begun = None;
        }
        if said.contains(&number) || said.contains(&first) || is_comment(line) {
            continue;
        }
        if lists.contains(&number) && words_of(line).any(|word| judged.contains(word)) {
            continue;
        }
        if let Some(what) = mentioned(line, &names) {
            found.push(Step::new(number, Action::Unclear(what)));
        }
    }
    taken.steps.extend(found);
    taken.steps.sort_by_key(|step| step.line);
}

/// The names of registry values and sysctls, by themselves in lower case. Short names may be another program's.
fn names() -> BTreeMap<String, String> {
    let rows = [Family::Windows, Family::Linux, Family::FreeBsd, Family::MacOs]
        .into_iter()
        .filter_map(Catalogue::for_family)
        .flat_map(|catalogue| &catalogue.knobs);
    let name = |address: &Address| match address {
        Address::Registry { value: name, .. } if name.len() > 5 => Some(name.clone()),
        Address::Sysctl(name) => Some(name.clone()),
        _ => None,
    };
    rows.filter_map(|row| name(&row.address)).map(|name| (name.to_ascii_lowercase(), name)).collect()
}

fn is_comment(line: &str) -> bool {
    let lower = line.trim_start_matches(['@', '(', '{']).trim_start().to_ascii_lowercase();
    let says = ["#", "rem ", "::", "title ", "write-", "logger ", "<#", ":"];
    let shows =
        ["echo", "printf"].iter().any(|word| lower.starts_with(word)) && !lower.contains('>') && !lower.contains('|');
    says.iter().any(|word| lower.starts_with(word)) || shows
}

/// What a line seems to set, in a sentence.
fn mentioned(line: &str, names: &BTreeMap<String, String>) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let looks = [
        "get-itemprop",
        "reg query",
        "reg.exe query",
        "test-path",
        "select-object",
        "sysctl -n",
        "sysctl -a",
        " show",
        "grep",
        "write-host",
        "write-output",
    ];
    if looks.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let commands: [&[&str]; 6] = [
        &["netsh", " tcp set "],
        &["set-nettcpsetting"],
        &["set-netoffloadglobalsetting"],
        &["new-nettransportfilter"],
        &["sysctl -w"],
        &["tc qdisc "],
    ];
    // A small letter asks.
    if let Some(option) = ["ethtool -K", "ethtool -G", "ethtool -C"].into_iter().find(|option| line.contains(option)) {
        return Some(run(option));
    }
    // The words of a list are those of a command: `'int','tcp','set'`.
    let plain = lower.replace([',', '"', '\''], " ");
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_of = |words: &&&[&str]| {
        let mut rest = plain.as_str();
        words.iter().all(|word| match rest.split_once(word) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    };
    if let Some(words) = commands.iter().find(is_of) {
        return Some(run(&words.iter().map(|word| word.trim()).collect::<Vec<_>>().join(" ")));
    }
    let words = || words_of(&lower).filter(|word| gives(&lower, word));
    let known = words().find_map(|word| names.get(word)).map(String::as_str);
    let name = known.or_else(|| words().find(|word| is_of_tree(word)))?;
    Some(format!("`{name}` is named here with a value, and what the script does with them is not followed"))
}

/// The words of a line that may be names.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_of_name(c)).filter(|word| word.len() > 5)
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Whether a name is one of TCP's sysctls, also one that the catalogue doesn't have.
fn is_of_tree(name: &str) -> bool {
    ["net.ipv4.tcp_", "net.core.", "net.inet.tcp."].iter().any(|tree| name.len() > tree.len() && name.starts_with(tree))
}

fn run(command: &str) -> String {
    format!("`{command}` is run here in a way that is not followed")
}

/// Whether a line names a setting and something that it may be set to.
fn gives(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, behind) = (line.get(..at).unwrap_or_default(), line.get(at + name.len()..).unwrap_or_default());
        // `$Name` is a variable and `-Name` a parameter of something else.
        let is_name =
            !before.ends_with(|c: char| is_of_name(c) || c == '$' || c == '-') && !behind.starts_with(is_of_name);
        let rest = behind.trim_start_matches(['"', '\'', ')', ']']);
        let value = rest.trim_start_matches([' ', '\t', '=', ',', ';', ':', '"', '\'']);
        is_name
            && rest.len() > value.len()
            && value.starts_with(|c: char| c.is_ascii_alphanumeric() || "$-/".contains(c))
    })
}
