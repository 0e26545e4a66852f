//! Recipes: files and scripts that set things, read for what they set and on which line.
//!
//! Reading only, over text; nothing is run. Variables and loops are followed as far as the file itself tells what they
//! stand for. What such a file *should* say is `lint`'s.

mod batch;
mod cmdlets;
mod commands;
mod inf;
mod loops;
mod measuring;
mod posix;
mod powershell;
mod reg;
mod script;
mod shell;
mod source;
mod tuned;
mod unix;
mod unseen;
mod variables;
mod wrappers;

use std::collections::BTreeMap;

use crate::{
    Address, Family, Platform, Settings, SocketBuffers,
    sysctl_conf::{self, Form},
};

use commands::{Language, Taken};

pub(crate) use cmdlets::{ALL as ALL_TEMPLATES, is_set_net_tcp_setting};
pub use reg::{DecodeError, decode};
pub(crate) use reg::{keys, unquoted};

/// The longest file that is read, in bytes: the largest real recipe is a thousandth of it.
pub const LARGEST: usize = 16 << 20;

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `sysctl.conf`, a file of `sysctl.d`, or the output of `sysctl -a`.
    Sysctl,
    /// FreeBSD's `loader.conf` or `rc.conf`: shell assignments.
    Shell,
    /// A registry file, version 4 or 5.
    Registry,
    /// A batch file with `netsh` and `reg` commands.
    Batch,
    /// A PowerShell script.
    PowerShell,
    /// A TuneD profile.
    TuneD,
    /// A setup file: what it writes into the registry and takes out of it.
    Inf,
    /// A shell script with `sysctl -w`, `ip` or `ifconfig` commands.
    Script,
    /// A C or C++ source that sizes the buffers of its sockets.
    Source,
    /// A C or C++ source of a NetBurner device.
    Device,
}

impl Kind {
    /// The kind of a file, by its name and, where that says nothing, by how it begins.
    pub fn from_file(name: &str, text: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let file = lower.rsplit(['/', '\\']).next().unwrap_or(&lower);
        let extension = file.rsplit_once('.').map(|(_, extension)| extension);
        match (file, extension) {
            ("rc.conf" | "loader.conf" | "rc.conf.local" | "loader.conf.local", _) => Some(Self::Shell),
            ("tuned.conf", _) => Some(Self::TuneD),
            (_, Some("conf")) if tuned::is_profile(text) => Some(Self::TuneD),
            (_, Some("reg")) => Some(Self::Registry),
            (_, Some("bat" | "cmd")) => Some(Self::Batch),
            (_, Some("ps1" | "psm1")) => Some(Self::PowerShell),
            (_, Some("inf")) => Some(Self::Inf),
            (_, Some("sh" | "bash")) => Some(Self::Script),
            (_, Some("c" | "cc" | "cpp" | "cxx" | "h" | "hpp")) if source::is_one(text) => Some(Self::of_source(text)),
            (_, Some("conf")) => Some(Self::Sysctl),
            _ => Self::of_text(text),
        }
    }

    fn of_source(text: &str) -> Self {
        if source::is_device(text) { Self::Device } else { Self::Source }
    }

    fn of_text(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with("#!") && text.lines().next().is_some_and(|line| line.contains("sh")) {
            return Some(Self::Script);
        }
        if text.starts_with("REGEDIT4") || text.starts_with("Windows Registry Editor") {
            return Some(Self::Registry);
        }
        if ["[main]", "[sysctl]", "[variables]"].iter().any(|section| text.starts_with(section)) {
            return Some(Self::TuneD);
        }
        let lines = || text.lines().map(|line| line.trim().to_ascii_lowercase());
        if lines().any(|line| line.starts_with("set-net") || line.starts_with("set-itemproperty")) {
            return Some(Self::PowerShell);
        }
        if lines().any(|line| line.starts_with("netsh ") || line.starts_with("reg add ")) {
            return Some(Self::Batch);
        }
        if lines().any(|line| ["[defaultinstall", "[version]"].iter().any(|start| line.starts_with(start))) {
            return Some(Self::Inf);
        }
        if lines().any(|line| line.starts_with("psping")) {
            return Some(Self::Batch);
        }
        let command = |line: &str| {
            let line = line.trim_start_matches("sudo ");
            ["sysctl ", "iperf ", "iperf3 "].iter().any(|program| line.starts_with(program))
        };
        if lines().any(|line| command(&line) || line.contains("> /proc/sys/")) {
            return Some(Self::Script);
        }
        if source::is_one(text) && text.contains('(') {
            return Some(Self::of_source(text));
        }
        lines()
            .any(|line| ["net.", "kern.", "vm.", "net/"].iter().any(|start| line.starts_with(start)))
            .then_some(Self::Sysctl)
    }

    /// The platform family that such a file is for, where that is plain.
    pub fn family(self) -> Option<Family> {
        match self {
            Self::Sysctl | Self::Script | Self::Source => None,
            Self::Device => Some(Family::NetBurner),
            Self::Shell => Some(Family::FreeBsd),
            Self::TuneD => Some(Family::Linux),
            Self::Registry | Self::Batch | Self::PowerShell | Self::Inf => Some(Family::Windows),
        }
    }
}

/// One thing that a line does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line that it begins on, counted from 1.
    pub line: u32,
    /// What it does.
    pub action: Action,
    /// The branches that it lies in: of two of one condition a machine takes one.
    pub branches: Branches,
    /// The socket that it is about, in a program's source.
    pub socket: Option<String>,
    /// How a line of sysctl.conf is written.
    pub form: Form,
}

impl Step {
    /// Why a line of sysctl.conf sets nothing on a platform, as it is written; `None` where it does.
    pub(crate) fn sets_nothing(&self, platform: &Platform) -> Option<(&'static str, String)> {
        let Action::Set(Address::Sysctl(name), _) = &self.action else { return None };
        self.form.sets_nothing(name, platform)
    }

    /// One that lies in no branch and is about no socket.
    pub fn new(line: u32, action: Action) -> Self {
        Self { line, action, branches: Branches::default(), socket: None, form: Form::default() }
    }

    /// The setting that it sets or takes away.
    fn knob(&self) -> Option<&Address> {
        if let Action::Set(knob, _) | Action::Delete(knob) = &self.action { Some(knob) } else { None }
    }
}

/// The branches that something lies in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches(Vec<Branch>);

/// A branch of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Branch {
    /// The number of what is asked.
    condition: u32,
    /// The number of the answer.
    answer: u32,
    /// Whether it is taken where the answer is this one, or where it is any other.
    is: bool,
}

impl Branches {
    /// Whether no run takes both.
    pub fn exclude(&self, other: &Self) -> bool {
        self.0.iter().any(|branch| other.0.iter().any(|theirs| branch.excludes(theirs)))
    }

    /// The branches of what lies in these that has branches of its own.
    fn around(&self, inner: &Self) -> Self {
        // Conditions of another text have numbers of their own.
        if self.0.is_empty() { inner.clone() } else { self.clone() }
    }
}

impl Branch {
    fn excludes(&self, other: &Self) -> bool {
        let same = self.answer == other.answer;
        self.condition == other.condition && if self.is && other.is { !same } else { same && self.is != other.is }
    }
}

/// The conditions that are open in a script on its way.
#[derive(Clone, Debug, Default)]
struct Conditions {
    open: Branches,
    /// How many there were.
    count: u32,
    /// What was compared, by its text: its number, and what with.
    compared: BTreeMap<String, (u32, Vec<String>)>,
}

impl Conditions {
    fn begin(&mut self) {
        self.count += 1;
        self.open.0.push(Branch { condition: self.count, answer: 0, is: true });
    }

    /// Where a condition is a comparison of `subject`, which an earlier one may have been, too.
    fn begin_compared(&mut self, subject: String, with: String, is: bool) {
        let count = &mut self.count;
        let (condition, answers) = self.compared.entry(subject).or_insert_with(|| {
            *count += 1;
            (*count, Vec::new())
        });
        let answer = answers.iter().position(|answer| *answer == with).unwrap_or_else(|| {
            answers.push(with);
            answers.len() - 1
        });
        self.open.0.push(Branch { condition: *condition, answer: answer as u32, is });
    }

    /// The next branch of the innermost condition.
    fn next(&mut self) {
        if let Some(branch) = self.open.0.last_mut() {
            branch.answer += 1;
        }
    }

    /// The branch where the innermost condition does not hold.
    fn otherwise(&mut self) {
        if let Some(branch) = self.open.0.last_mut() {
            branch.is = !branch.is;
        }
    }

    fn end(&mut self) {
        self.open.0.pop();
    }
}

/// What a line does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Sets a value.
    Set(Address, String),
    /// Takes a value away.
    Delete(Address),
    /// Resets something, named as it stands there: `netsh interface tcp reset`.
    Reset(String),
    /// Sets something that can't be determined from the file alone; why, in a sentence.
    Unclear(String),
    /// Sets the buffers of each socket of a loop, which runs so many times; `None` where the file doesn't tell.
    Repeats(Option<u64>),
    /// Sets the buffers of several sockets, with what has been said of each.
    Sockets(Vec<SocketBuffers>),
    /// A name that is none, and nearly one: what is written, and what is most likely meant.
    Misspelt {
        /// As it stands there: `Set-NetTCPSeting`.
        written: String,
        /// As it should: `Set-NetTCPSetting`.
        meant: String,
    },
}

/// A line that no reader understands.
pub type Problem = sysctl_conf::Problem;

/// What a recipe does, line by line, and the lines that can't be read.
pub fn read(kind: Kind, text: &str) -> (Vec<Step>, Vec<Problem>) {
    if text.len() > LARGEST {
        let message = format!("the file has {} bytes; at most {LARGEST} are read", text.len());
        return (Vec::new(), vec![Problem { line: 1, column: 1, message }]);
    }
    let mut taken = read_at(kind, text, 0);
    if let Kind::Batch | Kind::PowerShell | Kind::Script = kind {
        unseen::add(text, &mut taken);
    }
    (taken.steps, taken.problems)
}

/// What a text does that `depth` other texts run or write.
fn read_at(kind: Kind, text: &str, depth: usize) -> Taken {
    let (steps, problems) = match kind {
        Kind::Sysctl => sysctl(text),
        Kind::Shell => shell::read(text),
        Kind::Registry => reg::read(text),
        // A file of both languages hands itself to PowerShell.
        Kind::Batch if batch::is_powershell(text) => return Language::PowerShell.read(text, depth),
        Kind::Batch => return Language::Batch.read(text, depth),
        Kind::PowerShell => return Language::PowerShell.read(text, depth),
        Kind::TuneD => tuned::read(text),
        Kind::Inf => inf::read(text),
        Kind::Script => return Language::Shell.read(text, depth),
        Kind::Source | Kind::Device => source::read(text),
    };
    Taken { steps, problems, ..Taken::default() }
}

/// The settings of a machine as one of its files tells them (`sysctl -a`, a `.reg` export, `loader.conf`), and the lines
/// that can't be read. Of two lines for one setting the later one counts, as it does for the machine.
///
/// What the file doesn't tell is left out and not taken for absent; a value that a `.reg` file deletes is absent.
pub fn settings(kind: Kind, text: &str, platform: Platform) -> (Settings, Vec<Problem>) {
    let (steps, problems) = read(kind, text);
    let mut settings = Settings { platform, ..Settings::default() };
    for step in steps {
        match step.action {
            Action::Set(address, value) => settings.values.insert(address, Some(value)),
            Action::Delete(address) => settings.values.insert(address, None),
            Action::Reset(_)
            | Action::Unclear(_)
            | Action::Repeats(_)
            | Action::Sockets(_)
            | Action::Misspelt { .. } => None,
        };
    }
    (settings, problems)
}

/// What only a running script knows is no setting: a name or a value with a variable in it. `mark` begins a variable.
fn known_or_not(action: Action, mark: char) -> Action {
    let Action::Set(knob, value) = &action else { return action };
    let names: [&str; 2] = match knob {
        Address::Netsh { parameter: name, .. }
        | Address::Registry { value: name, .. }
        | Address::Link { property: name, .. }
        | Address::Named { name, .. }
        | Address::Sysctl(name)
        | Address::Socket(name) => [name, ""],
        Address::TcpSetting { template, parameter } => [template, parameter],
        Address::Route { destination, attribute: name } | Address::Destination { destination, option: name } => {
            [destination, name]
        }
    };
    let runs = "is known only when the script runs";
    if let Some(name) = names.into_iter().find(|name| name.contains(mark)) {
        return Action::Unclear(format!("`{name}` {runs}"));
    }
    if value.contains(mark) {
        let name = names.into_iter().rfind(|name| !name.is_empty()).unwrap_or_default();
        return Action::Unclear(format!("the value of {name}, `{value}`, {runs}"));
    }
    action
}

fn sysctl(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let (lines, problems) = sysctl_conf::parse(text);
    let steps = lines.into_iter().filter_map(|line| {
        let address = Address::Sysctl(line.name);
        let action = Action::Set(address, line.value?);
        Some(Step { form: line.form, ..Step::new(line.number, action) })
    });
    (steps.collect(), problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_told_by_name_or_by_text() {
        assert_eq!(Kind::from_file("/boot/loader.conf", ""), Some(Kind::Shell));
        assert_eq!(Kind::from_file(r"C:\tweak.REG", ""), Some(Kind::Registry));
        assert_eq!(Kind::from_file("50-net.conf", ""), Some(Kind::Sysctl));
        assert_eq!(Kind::from_file("paste", "\u{feff}Windows Registry Editor Version 5.00"), Some(Kind::Registry));
        assert_eq!(Kind::from_file("paste", "rem x\nnetsh int tcp show global"), Some(Kind::Batch));
        assert_eq!(Kind::from_file("paste", "net.ipv4.tcp_sack = 1"), Some(Kind::Sysctl));
        assert_eq!(Kind::from_file("/etc/tuned/long/tuned.conf", ""), Some(Kind::TuneD));
        assert_eq!(Kind::from_file("long.conf", "# x\n[main]\n"), Some(Kind::TuneD));
        assert_eq!(Kind::from_file("paste", "[sysctl]\nnet.ipv4.tcp_sack=1"), Some(Kind::TuneD));
        assert_eq!(Kind::from_file("paste", "hello"), None);
    }

    #[test]
    fn the_output_of_sysctl_tells_a_machines_settings() {
        let text = "net.ipv4.tcp_rmem = 4096\t131072\t6291456\nnet.ipv4.tcp_sack = 1\nnet.ipv4.tcp_sack = 0\n";
        let (settings, problems) = settings(Kind::Sysctl, text, "linux-5.15".parse().unwrap());
        assert_eq!(problems, []);
        assert_eq!(settings.sysctl("net.ipv4.tcp_rmem"), Some("4096\t131072\t6291456"));
        assert_eq!(settings.sysctl("net.ipv4.tcp_sack"), Some("0"));
        assert_eq!(settings.sysctl("net.ipv4.tcp_wmem"), None);
    }

    #[test]
    fn a_file_past_the_limit_is_refused_whole() {
        let (steps, problems) = read(Kind::Sysctl, &"a.b = 1\n".repeat(LARGEST / 8 + 1));
        assert_eq!((steps.len(), problems.len()), (0, 1));
    }
}
