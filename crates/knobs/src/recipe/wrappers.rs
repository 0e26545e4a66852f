//! Commands that run another command: which one, and in whose language.
//!
//! `cmd /c`, `powershell -Command`, `sh -c`, `sudo`, `start`, `Start-Process`, `Invoke-Expression` and the like. What they
//! run goes the way of every other command.

use super::{
    commands::{Language, program},
    posix::is_before,
    variables::is_name,
};

/// What a command runs.
#[derive(Debug, PartialEq)]
pub(super) enum Inner {
    /// Words that the same interpreter takes.
    Words(Vec<String>),
    /// A text that another interpreter takes.
    Text(Language, String),
    /// What the script doesn't tell: why.
    Unknown(String),
}

/// A program that runs the words behind its options: those of its options that take a word, and how many words of its
/// own follow them.
struct Prefix {
    name: &'static str,
    with_value: &'static [&'static str],
    own: usize,
}

const fn prefix(name: &'static str, with_value: &'static [&'static str], own: usize) -> Prefix {
    Prefix { name, with_value, own }
}

const PREFIXES: [Prefix; 22] = [
    prefix("sudo", &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U"], 0),
    prefix("doas", &["-u", "-C"], 0),
    prefix("env", &["-u", "-C", "-S"], 0),
    prefix("nohup", &[], 0),
    prefix("nice", &["-n"], 0),
    prefix("ionice", &["-c", "-n"], 0),
    prefix("time", &[], 0),
    prefix("timeout", &["-k", "-s"], 1),
    prefix("exec", &["-a"], 0),
    prefix("command", &[], 0),
    prefix("builtin", &[], 0),
    prefix("setsid", &[], 0),
    prefix("stdbuf", &["-i", "-o", "-e"], 0),
    prefix("busybox", &[], 0),
    prefix("chroot", &[], 1),
    prefix("(", &[], 0),
    prefix("call", &[], 0),
    prefix("nircmd", &[], 1),
    prefix("nsudo", &[], 0),
    prefix("nsudolc", &[], 0),
    prefix("powerrun", &[], 0),
    prefix("psexec", &["-u", "-p", "-w", "-n"], 0),
];

/// What a command runs; `None` for one that runs itself.
pub(super) fn inner(words: &[String]) -> Option<Inner> {
    let (first, rest) = words.split_first()?;
    let name = program(first);
    // `command -v NAME` asks where a program is.
    if name == "command" && rest.first().is_some_and(|word| word.eq_ignore_ascii_case("-v")) {
        return None;
    }
    if is_before(&name) {
        return (!rest.is_empty()).then(|| Inner::Words(rest.to_vec()));
    }
    if let Some(prefix) = PREFIXES.iter().find(|prefix| prefix.name == name) {
        return behind(prefix, rest);
    }
    match name.as_str() {
        "cmd" => after_option(rest, &["/c", "/k", "/r"]).map(|rest| Inner::Text(Language::Batch, line_of(&rest))),
        "powershell" | "pwsh" => power_shell(rest),
        "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" => {
            let at = rest.iter().position(|word| is_short_with(word, 'c'))?;
            Some(Inner::Text(Language::Shell, rest.get(at + 1)?.clone()))
        }
        "su" => {
            let at = rest.iter().position(|word| word == "-c" || word == "--command")?;
            Some(Inner::Text(Language::Shell, rest.get(at + 1)?.clone()))
        }
        "eval" => Some(Inner::Text(Language::Shell, rest.join(" "))),
        "ip" => match rest {
            [netns, exec, _, rest @ ..] if netns == "netns" && exec == "exec" => Some(Inner::Words(rest.to_vec())),
            _ => None,
        },
        "invoke-expression" | "iex" => {
            // Its own parameters but the command take a word each: `-ErrorAction Stop`.
            let mut text = Vec::new();
            let mut words = rest.iter();
            while let Some(word) = words.next() {
                if !is_parameter(word) {
                    text.push(word.as_str());
                } else if !word.to_ascii_lowercase().starts_with("-c") {
                    words.next();
                }
            }
            Some(Inner::Text(Language::PowerShell, text.join(" ")))
        }
        "start" if !rest.iter().any(|word| is_parameter(word)) => start(rest),
        "start-process" | "saps" | "start" => start_process(rest),
        "runas" => {
            let line = rest.iter().rfind(|word| !word.starts_with('/'))?;
            Some(Inner::Text(Language::Batch, line.clone()))
        }
        "reg" => match rest {
            [verb, file, ..] if verb.eq_ignore_ascii_case("import") => Some(file_alone(file)),
            _ => None,
        },
        "regedit" | "regedt32" => rest.iter().find(|word| !word.starts_with('/')).map(|file| file_alone(file)),
        _ => None,
    }
}

fn file_alone(file: &str) -> Inner {
    Inner::Unknown(format!("what `{file}` sets stands in that file"))
}

/// The words behind a prefix, its options and its own words.
fn behind(prefix: &Prefix, words: &[String]) -> Option<Inner> {
    let is_option =
        |word: &str| word.len() > 1 && word.starts_with(['-', '/']) && !word.trim_start_matches('/').contains('/');
    let mut rest = words;
    while let [word, others @ ..] = rest {
        let assigns = prefix.name == "env" || prefix.name == "sudo";
        rest = match word.as_str() {
            word if prefix.with_value.contains(&word) => others.get(1..).unwrap_or_default(),
            word if is_option(word) => others,
            word if assigns && word.split_once('=').is_some_and(|(name, _)| is_name(name)) => others,
            _ => break,
        };
    }
    rest.get(prefix.own..).filter(|rest| !rest.is_empty()).map(|rest| Inner::Words(rest.to_vec()))
}

/// `-c`, `-lc`: letters behind one dash, one of which is this.
fn is_short_with(word: &str, letter: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter) && letters.len() <= 4)
}

/// A parameter of PowerShell: a dash and a name, and not a text that begins with a dash.
pub(super) fn is_parameter(word: &str) -> bool {
    let Some(name) = word.strip_prefix('-') else { return false };
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains([' ', ',', '\n'])
}

/// What stands behind the first of these options, attached to it or not.
fn after_option(words: &[String], options: &[&str]) -> Option<Vec<String>> {
    let begins = |word: &String| {
        options.iter().find(|option| word.get(..option.len()).is_some_and(|start| start.eq_ignore_ascii_case(option)))
    };
    let (at, option) = words.iter().enumerate().find_map(|(at, word)| Some((at, begins(word)?)))?;
    let attached = words.get(at)?.get(option.len()..).filter(|rest| !rest.is_empty()).map(str::to_owned);
    Some(attached.into_iter().chain(words.get(at + 1..)?.iter().cloned()).collect())
}

/// A command line of words: one word is the line itself.
fn line_of(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let quoted = |word: &String| {
        if word.is_empty() || word.contains([' ', '\t', '&', '|', '(', ')']) {
            format!("\"{word}\"")
        } else {
            word.clone()
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// `powershell -NoProfile -Command TEXT`; without an option that says otherwise the text follows at once.
fn power_shell(words: &[String]) -> Option<Inner> {
    /// The options of powershell.exe that take a word; each may be cut short.
    const WITH_VALUE: [&str; 8] = [
        "executionpolicy",
        "ep",
        "windowstyle",
        "version",
        "psconsolefile",
        "inputformat",
        "outputformat",
        "configurationname",
    ];
    let mut rest = words;
    while let [word, others @ ..] = rest {
        let Some(name) = word.strip_prefix(['-', '/']).filter(|_| is_parameter(word) || word.starts_with('/')) else {
            break;
        };
        let name = name.to_ascii_lowercase();
        let begins = |whole: &str| !name.is_empty() && whole.starts_with(name.as_str());
        if begins("command") {
            rest = others;
            break;
        }
        if begins("file") {
            // A file of batch and PowerShell hands itself over.
            let itself =
                |file: &&String| ["%0", "%~f0", "%~dpnx0", "$PSCommandPath"].iter().any(|itself| file.contains(itself));
            return others.first().filter(|file| !itself(file)).map(|file| file_alone(file));
        }
        if begins("encodedcommand") || name == "ec" {
            return Some(Inner::Unknown("an encoded command of PowerShell is not decoded".to_owned()));
        }
        let skip = usize::from(WITH_VALUE.iter().any(|whole| begins(whole)));
        rest = others.get(skip..).unwrap_or_default();
    }
    (!rest.is_empty()).then(|| Inner::Text(Language::PowerShell, rest.join(" ")))
}

/// `start "title" /b PROGRAM ...` of `cmd`.
fn start(words: &[String]) -> Option<Inner> {
    const WITH_VALUE: [&str; 3] = ["/d", "/node", "/affinity"];
    let mut rest = words;
    while let [word, others @ ..] = rest {
        // A title is in quotation marks, which are gone: it is empty, or has a space and is no path.
        let title = word.is_empty() || word.contains(' ') && !word.contains('\\');
        if !title && !word.starts_with('/') {
            break;
        }
        let skip = usize::from(WITH_VALUE.iter().any(|option| word.eq_ignore_ascii_case(option)));
        rest = others.get(skip..).unwrap_or_default();
    }
    (!rest.is_empty()).then(|| Inner::Words(rest.to_vec()))
}

/// `Start-Process netsh -ArgumentList 'int', 'tcp', ...`.
fn start_process(words: &[String]) -> Option<Inner> {
    const SWITCHES: [&str; 8] =
        ["wait", "nonewwindow", "passthru", "loaduserprofile", "usenewenvironment", "confirm", "whatif", "verbose"];
    let (mut program, mut arguments) = (None, Vec::new());
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if !is_parameter(word) {
            if program.is_none() {
                program = Some(word.clone())
            } else {
                arguments.push(word.clone())
            }
            continue;
        }
        let name = word.trim_start_matches('-').to_ascii_lowercase();
        if SWITCHES.iter().any(|switch| switch.starts_with(name.as_str())) {
            continue;
        }
        let Some(value) = rest.next_if(|next| !is_parameter(next)) else { continue };
        if "filepath".starts_with(name.as_str()) {
            program = Some(value.clone());
        } else if "argumentlist".starts_with(name.as_str()) || "args".starts_with(name.as_str()) {
            arguments.push(value.clone());
        }
    }
    let program = program?;
    // Elements of a list are words of their own; a text is a line.
    let parts: Vec<String> =
        arguments.iter().flat_map(|list| list.split(',')).map(|part| part.trim().to_owned()).collect();
    let line = match arguments.as_slice() {
        [text] if !text.contains(',') => text.clone(),
        _ => line_of(&parts),
    };
    Some(Inner::Text(Language::Batch, format!("{program} {line}")))
}
