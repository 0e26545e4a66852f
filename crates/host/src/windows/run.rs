//! The programs of Windows that the adapter runs where no library reaches: PowerShell's cmdlets and netsh.
//!
//! Everything that is run goes through [`Runner`], so that tests answer in place of Windows. The answers of the real
//! programs follow Microsoft's documents; they were not run on a real Windows.

use std::io;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Windows PowerShell, which every Windows since 7 has.
    PowerShell,
    /// `netsh`.
    Netsh,
}

impl Program {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerShell => "PowerShell",
            Self::Netsh => "netsh",
        }
    }
}

/// What a program answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// It ended without an error.
    pub success: bool,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained.
    pub stderr: Vec<u8>,
}

impl Output {
    /// What went wrong, in one short line fit for a terminal.
    pub(super) fn complaint(&self) -> String {
        let bytes = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        let text: String =
            String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() { "it gave no answer".to_owned() } else { text }
    }
}

/// Runs programs.
pub trait Runner {
    /// Runs a program to its end. An error means that it could not be started.
    fn run(&mut self, program: Program, arguments: &[String]) -> io::Result<Output>;
}

/// Runs the programs of the running Windows.
#[cfg(windows)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRunner;

#[cfg(windows)]
impl Runner for SystemRunner {
    fn run(&mut self, program: Program, arguments: &[String]) -> io::Result<Output> {
        // By its full path: a program of the same name in the current folder is not what is meant.
        let folder = std::env::var_os("SystemRoot").ok_or(io::ErrorKind::NotFound)?;
        let path = std::path::PathBuf::from(folder).join("System32").join(match program {
            Program::PowerShell => r"WindowsPowerShell\v1.0\powershell.exe",
            Program::Netsh => "netsh.exe",
        });
        let output = std::process::Command::new(path).args(arguments).stdin(std::process::Stdio::null()).output()?;
        Ok(Output { success: output.status.success(), stdout: output.stdout, stderr: output.stderr })
    }
}
