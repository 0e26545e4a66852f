//! The programs of Windows that the adapter runs where no library reaches: PowerShell's cmdlets and netsh.
//!
//! Everything that is run goes through [`Runner`], so that tests answer in place of Windows. The answers of the real
//! programs follow Microsoft's documents; they were not run on a real Windows.

use std::io;

use crate::Output;

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
        let mut command = std::process::Command::new(path);
        command.args(arguments).stdin(std::process::Stdio::null()).output().map(Output::from)
    }
}
