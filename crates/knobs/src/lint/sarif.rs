//! Findings as SARIF 2.1.0, which code hosts and editors show beside the lines.
//!
//! Types that serialise to it, so that this room needs no JSON; the log is valid by the OASIS standard of 2020, sections
//! 3.13 (log), 3.14 (run) and 3.27 (result). Lines that are fine are left out: a result there is something to look at.

use serde::Serialize;

use super::{Finding, Level};

/// A SARIF log of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sarif {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    column_kind: &'static str,
    results: Vec<SarifResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Rule {
    id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    properties: Properties,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Message {
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<Message>,
}

/// What this program knows beyond SARIF's own keys (section 3.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
}

/// The log of some files, each with its path and its findings.
pub fn sarif(files: &[(&str, &[Finding])]) -> Sarif {
    let findings = || {
        let of_file = |(path, findings): &(&str, &[Finding])| {
            let uri = uri(path);
            findings
                .iter()
                .filter(|finding| finding.level > Level::Ok)
                .map(move |finding| (uri.clone(), finding.clone()))
                .collect::<Vec<_>>()
        };
        files.iter().flat_map(of_file)
    };
    let mut rules: Vec<String> = findings().map(|(_, finding)| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let results = findings().map(|(uri, finding)| result(uri, finding, &rules)).collect();
    let rules = rules.into_iter().map(|id| Rule { id }).collect();
    let driver = Driver { name: "fullpipe", version: env!("CARGO_PKG_VERSION"), rules };
    Sarif {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [Run { tool: Tool { driver }, column_kind: "unicodeCodePoints", results }],
    }
}

fn result(uri: String, finding: Finding, rules: &[String]) -> SarifResult {
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note | Level::Ok => "note",
    };
    let text = match finding.fix {
        Some(fix) => format!("{}. Instead: {fix}", finding.message),
        None => finding.message,
    };
    SarifResult {
        rule_index: rules.binary_search(&finding.rule).unwrap_or_default(),
        rule_id: finding.rule,
        level,
        message: Message { text },
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri },
                // A line is counted from 1 there too.
                region: Region { start_line: finding.line.max(1), snippet: finding.text.map(|text| Message { text }) },
            },
        }],
        properties: Properties { setting: finding.knob, platform: finding.platform },
    }
}

/// A path as a URI reference (RFC 3986): slashes, and everything else that is not unreserved by its bytes.
fn uri(path: &str) -> String {
    use std::fmt::Write;

    let path = path.replace('\\', "/");
    let drive = path.as_bytes().get(1) == Some(&b':') && path.starts_with(|c: char| c.is_ascii_alphabetic());
    let prefix = match (drive, path.starts_with('/')) {
        (true, _) => "file:///",
        (false, true) => "file://",
        _ => "",
    };
    let mut uri = prefix.to_owned();
    for (at, byte) in path.bytes().enumerate() {
        // The colon of a drive is one; elsewhere it would make the first part a scheme.
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) || (drive && at == 1) {
            uri.push(char::from(byte));
        } else {
            let written = write!(uri, "%{byte:02X}");
            debug_assert!(written.is_ok(), "writing to a text can't fail");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        lint::{LintRequest, lint},
        recipe::Kind,
    };

    #[test]
    fn findings_come_out_as_a_sarif_log_without_the_lines_that_are_fine() {
        let request =
            LintRequest { platform: Some("linux-6.18".parse().unwrap()), path: None, ..LintRequest::default() };
        let one = lint(
            Kind::Sysctl,
            "net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_window_scaling = 1\nnet.ipv4.tcp_fack = 1\n",
            &request,
        );
        let two = lint(Kind::TuneD, "[sysctl]\nnet.ipv4.tcp_timestamps=0\n", &request);
        let log = sarif(&[("etc/sysctl d/99-a.conf", one.as_slice()), (r"C:\tuned\tuned.conf", two.as_slice())]);
        let mut json = serde_json::to_value(&log).unwrap();
        json["runs"][0]["tool"]["driver"]["version"] = "(version)".into();
        insta::assert_json_snapshot!(json);
    }

    proptest! {
        #[test]
        fn a_path_comes_out_as_a_uri_of_plain_characters(path in "\\PC{0,24}") {
            let uri = uri(&path);
            prop_assert!(uri.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%:".contains(&byte)), "{uri}");
        }
    }
}
