//! What is asked of netsh, and its answer. Its parameters are English everywhere; its answers follow the language of
//! Windows, so an answer whose labels are not the English ones is refused rather than guessed at.

use super::powershell::Word;

/// The labels of `netsh interface tcp show global` by the parameter of `set global` (observed output of several
/// versions; a label that a version lacks is absent).
const GLOBAL: [(&str, &str); 17] = [
    ("rss", "Receive-Side Scaling State"),
    ("chimney", "Chimney Offload State"),
    ("netdma", "NetDMA State"),
    // So it is spelled there.
    ("dca", "Direct Cache Acess (DCA)"),
    ("rsc", "Receive Segment Coalescing State"),
    ("autotuninglevel", "Receive Window Auto-Tuning Level"),
    ("congestionprovider", "Add-On Congestion Control Provider"),
    ("ecncapability", "ECN Capability"),
    ("timestamps", "RFC 1323 Timestamps"),
    ("initialrto", "Initial RTO"),
    ("nonsackrttresiliency", "Non Sack Rtt Resiliency"),
    ("maxsynretransmissions", "Max SYN Retransmissions"),
    ("fastopen", "Fast Open"),
    ("fastopenfallback", "Fast Open Fallback"),
    ("hystart", "HyStart"),
    ("prr", "Proportional Rate Reduction"),
    ("pacingprofile", "Pacing Profile"),
];

/// The line that every version's answer has, and that tells that it is English.
const ALWAYS: &str = "Receive Window Auto-Tuning Level";

/// Why an answer can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotEnglish;

/// The parameter of a TCP template that PowerShell shows for a parameter of netsh: what it tells, it tells in English
/// everywhere.
pub(super) fn template_parameter(context: &str, parameter: &str) -> Option<&'static str> {
    match (context, parameter) {
        ("tcp global", "autotuninglevel") => Some("AutoTuningLevelLocal"),
        ("tcp global", "ecncapability") => Some("EcnCapability"),
        ("tcp global", "timestamps") => Some("Timestamps"),
        ("tcp global", "initialrto") => Some("InitialRtoMs"),
        ("tcp global", "maxsynretransmissions") => Some("MaxSynRetransmissions"),
        ("tcp global", "nonsackrttresiliency") => Some("NonSackRttResiliency"),
        ("tcp heuristics", "wsh") => Some("ScalingHeuristics"),
        ("tcp heuristics", "forcews") => Some("ForceWS"),
        _ => None,
    }
}

/// The global offload that PowerShell shows for a parameter of netsh.
pub(super) fn offload(context: &str, parameter: &str) -> Option<&'static str> {
    match (context, parameter) {
        ("tcp global", "rss") => Some("ReceiveSideScaling"),
        ("tcp global", "rsc") => Some("ReceiveSegmentCoalescing"),
        ("tcp global", "chimney") => Some("Chimney"),
        _ => None,
    }
}

/// The arguments that show a context; `None` for a context that netsh doesn't show.
pub(super) fn show(context: &str) -> Option<Vec<String>> {
    let words: &[&str] = match context {
        "tcp global" => &["interface", "tcp", "show", "global"],
        "winsock" => &["winsock", "show", "autotuning"],
        _ => return None,
    };
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The arguments that set a parameter. Both are words, so that none of them needs a quote.
pub(super) fn set(context: &str, parameter: &Word<'_>, value: &Word<'_>) -> Option<Vec<String>> {
    let (words, last): (&[&str], String) = match context {
        "tcp global" => (&["interface", "tcp", "set", "global"], format!("{parameter}={value}")),
        "tcp heuristics" => (&["interface", "tcp", "set", "heuristics"], format!("{parameter}={value}")),
        "winsock" => (&["winsock", "set", "autotuning"], value.to_string()),
        _ => return None,
    };
    Some(words.iter().map(|word| (*word).to_owned()).chain([last]).collect())
}

/// A parameter in the answer to [`show`]; `None` where this version doesn't have it.
pub(super) fn shown(context: &str, parameter: &str, answer: &str) -> Result<Option<String>, NotEnglish> {
    if context == "winsock" {
        let answer = answer.to_ascii_lowercase();
        return match (answer.contains("enabled"), answer.contains("disabled")) {
            (true, false) => Ok(Some("on".to_owned())),
            (false, true) => Ok(Some("off".to_owned())),
            _ => Err(NotEnglish),
        };
    }
    let value = |label: &str| {
        answer.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.trim().eq_ignore_ascii_case(label).then(|| value.trim().to_ascii_lowercase())
        })
    };
    if value(ALWAYS).is_none() {
        return Err(NotEnglish);
    }
    let label = GLOBAL.iter().find(|(name, _)| *name == parameter).map(|(_, label)| *label);
    Ok(label.and_then(value).filter(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "Querying active state...\r\n\r\nTCP Global Parameters\r\n----------------------------------------------\r\n\
        Receive-Side Scaling State          : enabled\r\nReceive Window Auto-Tuning Level    : normal\r\n\
        Add-On Congestion Control Provider  : default\r\nECN Capability                      : disabled\r\n\
        Initial RTO                         : 1000\r\nFast Open                           : enabled\r\n";

    #[test]
    fn an_english_answer_is_read_and_another_one_refused() {
        assert_eq!(shown("tcp global", "autotuninglevel", ENGLISH), Ok(Some("normal".into())));
        assert_eq!(shown("tcp global", "initialrto", ENGLISH), Ok(Some("1000".into())));
        assert_eq!(shown("tcp global", "hystart", ENGLISH), Ok(None), "this version doesn't have it");
        let german = "Autom. Abstimmungsgrad Empfangsfenster : normal\r\n";
        assert_eq!(shown("tcp global", "autotuninglevel", german), Err(NotEnglish));
        assert_eq!(shown("winsock", "autotuning", "Winsock send autotuning is enabled.\r\n"), Ok(Some("on".into())));
        assert_eq!(shown("winsock", "autotuning", ""), Err(NotEnglish));
    }

    #[test]
    fn each_argument_is_one_plain_word() {
        let word = |text| Word::new(text).expect("a word");
        let arguments = set("tcp global", &word("autotuninglevel"), &word("normal")).expect("known");
        assert_eq!(arguments, ["interface", "tcp", "set", "global", "autotuninglevel=normal"]);
        let arguments = set("winsock", &word("autotuning"), &word("on")).expect("known");
        assert_eq!(arguments, ["winsock", "set", "autotuning", "on"]);
        assert_eq!(set("tcp supplemental internet", &word("icw"), &word("10")), None);
    }
}
