//! What an order from afar may set, and to which values.
//!
//! A line for each setting: `net.ipv4.tcp_rmem = 4096..1073741824`, `route * window = 65535..1073741824, absent`. `*` stands
//! for any one word of an address. Each number of a value has to be in the range; a word has to be one of those given. The
//! usual list holds what a plan of `tune` contains, and nothing else. What is *not* here: the ranges that a kernel has.

use std::{fs, io, path::Path};

use fullpipe_knobs::{Address, Change};

/// What `serve` allows unless it is given a list.
const USUAL: &str = include_str!("allowed.txt");

/// The most changes of one order: a plan has less than ten for a host, and an order holds the journal while it lasts.
pub(crate) const MOST_CHANGES: usize = 32;

/// The settings that orders may change.
#[derive(Clone, Debug)]
pub struct Allowed {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    address: Vec<String>,
    values: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Absent,
    Range(i64, i64),
    Word(String),
}

/// Why a list can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllowedError {
    /// The file could not be read.
    #[error("read the list of settings {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line says something else.
    #[error("{file} line {line}: `{text}` is no setting with its values; write `net.ipv4.tcp_rmem = 4096..1073741824`")]
    Line {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is there.
        text: String,
    },
}

impl Default for Allowed {
    fn default() -> Self {
        Self::parse("the usual list", USUAL).expect("the usual list is well formed, as a test shows")
    }
}

impl Allowed {
    /// Reads a list from a file.
    ///
    /// # Errors
    ///
    /// Where it can't be read or a line is no setting with its values.
    pub fn read(file: &Path) -> Result<Self, AllowedError> {
        let name = file.display().to_string();
        let text = fs::read_to_string(file).map_err(|source| AllowedError::Read { file: name.clone(), source })?;
        Self::parse(&name, &text)
    }

    fn parse(file: &str, text: &str) -> Result<Self, AllowedError> {
        let mut rows = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let body = text.split('#').next().unwrap_or_default().trim();
            if body.is_empty() {
                continue;
            }
            let row = row(body);
            let wrong = || AllowedError::Line { file: file.to_owned(), line, text: text.trim().to_owned() };
            rows.push(row.ok_or_else(wrong)?);
        }
        Ok(Self { rows })
    }

    /// Why an order with these changes is refused; `None` where it may be carried out.
    pub(crate) fn refusal(&self, changes: &[Change]) -> Option<String> {
        if changes.len() > MOST_CHANGES {
            return Some(format!("an order may have {MOST_CHANGES} changes, and this one has {}", changes.len()));
        }
        changes.iter().find_map(|change| self.refusal_of(&change.knob, change.to.as_deref()))
    }

    fn refusal_of(&self, address: &Address, to: Option<&str>) -> Option<String> {
        let name = address.to_string();
        let words: Vec<&str> = name.split_whitespace().collect();
        let mut named = self.rows.iter().filter(|row| row.names(&words)).peekable();
        if named.peek().is_none() {
            return Some(format!(
                "{name} is not among the settings that this server lets others change; its administrator can allow it \
                 with --allow-settings"
            ));
        }
        let shown = to.map_or_else(|| "absent".to_owned(), |to| format!("`{to}`"));
        (!named.any(|row| row.allows(to)))
            .then(|| format!("{name} = {shown} is outside of what this server lets others set"))
    }
}

impl Row {
    fn names(&self, words: &[&str]) -> bool {
        self.address.len() == words.len() && self.address.iter().zip(words).all(|(own, word)| own == "*" || own == word)
    }

    fn allows(&self, to: Option<&str>) -> bool {
        let Some(to) = to else { return self.values.contains(&Value::Absent) };
        let fits = |word: &str| {
            self.values.iter().any(|value| match value {
                Value::Absent => false,
                Value::Range(least, most) => word.parse().is_ok_and(|number: i64| (*least..=*most).contains(&number)),
                Value::Word(own) => own == word,
            })
        };
        // A line end or another control character is no blank between numbers.
        let plain = |c: char| !c.is_control() || c == '\t';
        to.chars().all(plain) && !to.trim().is_empty() && to.split_whitespace().all(fits)
    }
}

fn row(body: &str) -> Option<Row> {
    let (address, values) = body.split_once('=')?;
    let address: Vec<String> = address.split_whitespace().map(str::to_owned).collect();
    let values: Vec<Value> = values.split(',').map(|text| value(text.trim())).collect::<Option<_>>()?;
    (!address.is_empty() && !values.is_empty()).then_some(Row { address, values })
}

fn value(text: &str) -> Option<Value> {
    if text == "absent" {
        return Some(Value::Absent);
    }
    if let Some((least, most)) = text.split_once("..") {
        let (least, most) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
        return (least <= most).then_some(Value::Range(least, most));
    }
    if let Ok(number) = text.parse() {
        return Some(Value::Range(number, number));
    }
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| Value::Word(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str, to: Option<&str>) -> bool {
        Allowed::default().refusal_of(&address.parse().unwrap(), to).is_some()
    }

    #[test]
    fn what_a_plan_contains_is_allowed() {
        for (address, to) in [
            ("net.ipv4.tcp_rmem", Some("4096 131072 33554432")),
            ("net.ipv4.tcp_wmem", Some("4096\t16384\t4194304")),
            ("net.ipv4.tcp_window_scaling", Some("1")),
            ("route default window", None),
            ("route 10.9.0.0/16 window", Some("1000000")),
        ] {
            assert!(!refused(address, to), "{address} {to:?}");
        }
    }

    #[test]
    fn nothing_else_of_the_network_is() {
        for (address, to) in [
            ("net.ipv4.ip_forward", Some("1")),
            ("net.ipv4.tcp_syncookies", Some("0")),
            ("net.ipv4.ip_unprivileged_port_start", Some("0")),
            ("net.ipv4.tcp_fastopen_key", Some("0-0-0-0")),
            ("net.ipv4.tcp_window_scaling", Some("0")),
            ("net.ipv4.tcp_rmem", Some("1 1 1")),
            ("net.ipv4.tcp_rmem", Some("4096 131072 99999999999")),
            ("net.ipv4.tcp_rmem", Some("4096 131072 6291456\nnet.ipv4.ip_forward = 1")),
            ("net.ipv4.tcp_rmem", Some("4096 131072\n6291456")),
            ("net.ipv4.tcp_rmem", Some("")),
            ("net.ipv4.tcp_rmem", None),
            ("link lo mtu", Some("68")),
            ("route default mtu", Some("68")),
        ] {
            assert!(refused(address, to), "{address} {to:?}");
        }
    }

    #[test]
    fn a_list_says_which_line_it_can_not_use() {
        for text in ["net.ipv4.tcp_rmem", "a = 5..1", "a = ", "= 1", "a = x y"] {
            let error = Allowed::parse("f", &format!("# ours\n\n{text}\n")).expect_err(text);
            assert!(matches!(error, AllowedError::Line { line: 3, .. }), "{text}: {error}");
        }
        assert!(Allowed::parse("f", "net.ipv4.tcp_congestion_control = cubic, bbr # both\n").is_ok());
    }
}
