//! Reading another machine's settings offline, from what its own tools print or its own files say.
//!
//! Bytes in, settings with their places out; no file is opened here. What a line *should* say is `lint`'s, and what to
//! do about it is `planner`'s. Anything that can't be read is reported with its line and column and never guessed.

mod clixml;
mod csv;
mod detect;
mod ifconfig;
mod json;
mod labelled;
mod merge;
pub(crate) mod netburner;
mod netstat;
mod registry;
mod rows;
mod scan;
mod sheet;
mod sysctl;
mod table_text;
pub(crate) mod windows;

use std::fmt;

use serde::Serialize;

use crate::{
    Address, Link, MachineFacts, Platform, recipe,
    settings::{Mbufs, SocketBuffers},
    sysctl_conf::Form,
};

pub use merge::{Contradiction, Dead, MergeError, Merged, merge};
pub use rows::{SettingRow, table};

/// The longest file that is read, in bytes. `sysctl -a` has less than 1 MB; a `.reg` export of one key far less.
pub const LARGEST: usize = recipe::LARGEST;

/// What a file was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// The output of `sysctl -a`: `name = value` (Linux) or `name: value` (FreeBSD, macOS).
    SysctlOutput,
    /// `sysctl.conf` or a file of `sysctl.d`.
    SysctlFile,
    /// FreeBSD's `loader.conf` or `rc.conf`.
    ShellFile,
    /// A registry export, version 4 or 5.
    Registry,
    /// `netsh interface tcp show global`, `supplemental` or `heuristics`, in English.
    Netsh,
    /// PowerShell objects as Format-List prints them.
    PowerShellList,
    /// PowerShell objects as Format-Table prints them.
    PowerShellTable,
    /// PowerShell objects by ConvertTo-Csv or Export-Csv.
    PowerShellCsv,
    /// PowerShell objects by ConvertTo-Json.
    PowerShellJson,
    /// PowerShell objects by Export-CliXml.
    PowerShellCliXml,
    /// `ifconfig` of Linux, FreeBSD or macOS.
    Ifconfig,
    /// `netstat -m` of FreeBSD or macOS: the network's buffers.
    NetstatBuffers,
    /// `vmstat -z` of FreeBSD: the kernel's zones, the network's buffers among them.
    VmstatZones,
    /// A setup file (`.inf`): what it writes into the registry and takes out of it.
    Setup,
    /// A C source file of a NetBurner device.
    NetBurnerSource,
}

impl Format {
    /// What it is called in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::SysctlOutput => "the output of sysctl -a",
            Self::SysctlFile => "a sysctl.conf file",
            Self::ShellFile => "a loader.conf or rc.conf file",
            Self::Registry => "a registry export",
            Self::Netsh => "the output of netsh interface tcp show",
            Self::PowerShellList => "a PowerShell list",
            Self::PowerShellTable => "a PowerShell table",
            Self::PowerShellCsv => "PowerShell's CSV",
            Self::PowerShellJson => "PowerShell's JSON",
            Self::PowerShellCliXml => "PowerShell's CliXml",
            Self::Ifconfig => "the output of ifconfig",
            Self::NetstatBuffers => "the output of netstat -m",
            Self::VmstatZones => "the output of vmstat -z",
            Self::Setup => "a setup file",
            Self::NetBurnerSource => "a NetBurner source file",
        }
    }

    /// Whether it says what the next start of the machine sets, and not what holds now.
    pub const fn is_boot_file(self) -> bool {
        matches!(self, Self::SysctlFile | Self::ShellFile)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in characters, counted from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One setting that a file tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Which setting.
    pub knob: Address,
    /// Its value; `None` where the file takes it away (`"TcpWindowSize"=-`).
    pub value: Option<String>,
    /// Where it stands.
    pub place: Place,
    /// How its line of a sysctl.conf is written.
    #[serde(skip)]
    pub form: Form,
}

/// What kind of thing is to be said of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RemarkKind {
    /// The line can't be read.
    Unread,
    /// The value is not one that the setting takes.
    OutOfRange,
    /// Another line says something else.
    Contradiction,
    /// A name that is none, and nearly one.
    Misspelt,
    /// It is switched on and does not act.
    Inactive,
    /// Worth knowing.
    Note,
}

/// What is to be said of one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// What kind of thing it is.
    pub kind: RemarkKind,
    /// Where.
    pub place: Place,
    /// What, in a sentence; free of control characters.
    pub message: String,
}

/// What one file tells of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The file's name, free of control characters.
    pub file: String,
    /// What it was taken for.
    pub format: Format,
    /// The platform as far as the file tells it: family and version may be empty.
    pub platform: Platform,
    /// The settings that the catalogue knows, in the order of the file.
    pub found: Vec<Found>,
    /// The network interfaces.
    pub links: Vec<Link>,
    /// Memory and page size, where the file tells them.
    pub machine: MachineFacts,
    /// The use of the network's buffers.
    pub mbufs: Option<Mbufs>,
    /// The sockets whose buffers it sets, where it is a device's source.
    pub sockets: Vec<SocketBuffers>,
    /// The registry keys that it has whole, where it is an export.
    pub keys: Vec<String>,
    /// What is to be said of its lines, in their order.
    pub remarks: Vec<Remark>,
    /// How many more settings it has of which the catalogue does not know.
    pub others: usize,
}

/// A file that can't be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read {file}, {place}: {problem}; expected {expected}; {way_out}")]
pub struct ReadingError {
    /// The file's name, free of control characters.
    pub file: String,
    /// Where it fails.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
    /// What was expected there.
    pub expected: String,
    /// What to do about it.
    pub way_out: String,
}

/// A [`ReadingError`] without its file: what a reader of one format returns.
#[derive(Debug)]
struct Refusal {
    place: Place,
    problem: String,
    expected: &'static str,
    way_out: &'static str,
}

/// Reads one file of whatever format: its content decides, and its name where the content leaves it open.
///
/// # Errors
///
/// Where the bytes are no text, the format can't be recognised, or the file is damaged, with the place and the way out.
pub fn read(name: &str, bytes: &[u8]) -> Result<Reading, ReadingError> {
    read_text(name, bytes).map_err(|refusal| ReadingError {
        file: sheet::shown(name),
        place: refusal.place,
        problem: refusal.problem,
        expected: refusal.expected.to_owned(),
        way_out: refusal.way_out.to_owned(),
    })
}

/// Every call of a NetBurner source, also where another line makes the same call: for another socket.
pub(crate) fn device_calls(text: &str) -> (Reading, netburner::Sockets) {
    let (mut sheet, mut sockets) = (sheet::Sheet::default(), netburner::Sockets::default());
    sheet.keeps_all = true;
    netburner::read_with_sockets(text, &mut sheet, &mut sockets);
    (sheet.finish("source.c".to_owned(), Format::NetBurnerSource), sockets)
}

fn read_text(name: &str, bytes: &[u8]) -> Result<Reading, Refusal> {
    let text = detect::text(bytes)?;
    let text = text.trim_start_matches('\u{feff}');
    let format = detect::format(name, text)?;
    let mut sheet = sheet::Sheet::default();
    match format {
        Format::SysctlOutput => sysctl::output(text, &mut sheet),
        Format::SysctlFile => sysctl::file(text, &mut sheet),
        Format::ShellFile => sysctl::shell(text, &mut sheet),
        Format::Registry => registry::read(text, &mut sheet)?,
        Format::Netsh | Format::PowerShellList => labelled::read(text, &mut sheet)?,
        Format::PowerShellTable => table_text::read(text, &mut sheet)?,
        Format::PowerShellCsv => csv::read(text, &mut sheet)?,
        Format::PowerShellJson => json::read(text, &mut sheet)?,
        Format::PowerShellCliXml => clixml::read(text, &mut sheet)?,
        Format::Ifconfig => ifconfig::read(text, &mut sheet),
        Format::NetstatBuffers => netstat::read(text, &mut sheet)?,
        Format::VmstatZones => netstat::zones(text, &mut sheet)?,
        Format::Setup => registry::setup(text, &mut sheet),
        Format::NetBurnerSource => netburner::read(text, &mut sheet),
    }
    Ok(sheet.finish(sheet::shown(name), format))
}

#[cfg(test)]
mod tests;
