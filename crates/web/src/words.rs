//! What a page may ask the program to do, as the program's own flags.

use serde::Deserialize;

/// A form's fields.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    /// `check` or `measure`.
    command: String,
    host: String,
    /// `both`, `up`, `down`.
    #[serde(default)]
    direction: String,
    /// Empty: as long as is usual.
    #[serde(default)]
    seconds: String,
    /// Empty: one.
    #[serde(default)]
    connections: String,
}

/// The longest test that a page starts.
const MOST_SECONDS: f64 = 600.0;
/// The most connections of one.
const MOST_CONNECTIONS: u32 = 128;

impl Asked {
    /// The command line, without what the server itself adds; the field and what is wrong with it if it can't be.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        let host = self.host.trim();
        if host.is_empty() || host.len() > 255 || host.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("far machine: give a name or an address, with a port where it isn't 5201".to_owned());
        }
        let mut words = match self.command.as_str() {
            "check" => vec!["check".to_owned()],
            "measure" => vec!["measure".to_owned()],
            _ => return Err("command: check or measure".to_owned()),
        };
        let is_check = self.command == "check";
        match self.direction.as_str() {
            "" | "both" if is_check => {}
            "both" => words.push("--bidir".to_owned()),
            "" => {}
            "up" | "down" if is_check => words.extend(["--direction".to_owned(), self.direction.clone()]),
            "up" => {}
            "down" => words.push("--reverse".to_owned()),
            _ => return Err("direction: both, up or down".to_owned()),
        }
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        if !self.seconds.trim().is_empty() {
            let seconds = number(&self.seconds).filter(|seconds| (0.1..=MOST_SECONDS).contains(seconds));
            let seconds = seconds.ok_or_else(|| format!("seconds: from 0.1 to {MOST_SECONDS}"))?;
            let flag = if is_check { "--seconds" } else { "--time" };
            words.extend([flag.to_owned(), seconds.to_string()]);
        }
        if !self.connections.trim().is_empty() {
            let count =
                self.connections.trim().parse::<u32>().ok().filter(|count| (1..=MOST_CONNECTIONS).contains(count));
            let count = count.ok_or_else(|| format!("connections: from 1 to {MOST_CONNECTIONS}"))?;
            let flag = if is_check { "--streams" } else { "--parallel" };
            words.extend([flag.to_owned(), count.to_string()]);
        }
        // What follows is no flag, whatever it begins with.
        words.extend(["--".to_owned(), host.to_owned()]);
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str, host: &str, direction: &str, seconds: &str, connections: &str) -> Result<String, String> {
        let [command, host, direction, seconds, connections] =
            [command, host, direction, seconds, connections].map(str::to_owned);
        Asked { command, host, direction, seconds, connections }.words().map(|words| words.join(" "))
    }

    #[test]
    fn a_form_becomes_the_programs_own_flags() {
        let words = |words: &str| Ok(words.to_owned());
        assert_eq!(asked("check", " far.example ", "", "", ""), words("check -- far.example"));
        assert_eq!(asked("check", "h:5301", "down", "4", ""), words("check --direction down --seconds 4 -- h:5301"));
        assert_eq!(asked("check", "h", "both", "", "2"), words("check --streams 2 -- h"));
        assert_eq!(asked("measure", "h", "down", "2.5", "4"), words("measure --reverse --time 2.5 --parallel 4 -- h"));
        assert_eq!(asked("measure", "h", "both", "", ""), words("measure --bidir -- h"));
        assert_eq!(asked("check", "--json", "", "", ""), words("check -- --json"));
    }

    #[test]
    fn what_is_no_command_is_refused_by_its_field() {
        for (field, asked) in [
            ("command", asked("tune", "h", "", "", "")),
            ("far machine", asked("check", "", "", "", "")),
            ("far machine", asked("check", "a b", "", "", "")),
            ("far machine", asked("check", "a\nb", "", "", "")),
            ("direction", asked("check", "h", "left", "", "")),
            ("seconds", asked("check", "h", "", "1e9", "")),
            ("seconds", asked("check", "h", "", "NaN", "")),
            ("connections", asked("measure", "h", "", "", "0")),
        ] {
            assert!(asked.as_ref().is_err_and(|error| error.starts_with(field)), "{asked:?}");
        }
    }
}
