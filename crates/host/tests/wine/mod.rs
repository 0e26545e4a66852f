//! A Wine of a test's own, made and taken away by it. Other packages' tests use it too.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
pub(crate) const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// What a test needs that builds a program for Windows and runs it.
pub(crate) const PROGRAMS: &[&str] = &["wine", "wineboot", COMPILER];

/// A Wine whose registry is in a folder.
pub(crate) struct Wine<'a> {
    folder: &'a Path,
}

impl<'a> Wine<'a> {
    pub(crate) fn start(folder: &'a Path) -> Self {
        let source = folder.join("bcryptprimitives.c");
        fs::write(&source, include_str!("bcryptprimitives.c")).unwrap();
        let library = folder.join("bcryptprimitives.dll");
        let mut compiler = Command::new(COMPILER);
        let built =
            compiler.args(["-shared", "-O1", "-o"]).arg(library).arg(source).arg("-ladvapi32").output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let wine = Self { folder };
        // It complains about what a bare system lacks (a display, 32-bit programs), and makes the registry all the same.
        wine.command("wineboot").arg("--init").output().unwrap();
        assert!(wine.prefix().join("system.reg").is_file() || wine.prefix().join("drive_c").is_dir(), "no registry");
        wine
    }

    pub(crate) fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    /// A program that sees this Wine, without a display.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", self.prefix())
            .env("WINEPATH", self.folder)
            .env("WINEDEBUG", "-all")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Wine<'_> {
    fn drop(&mut self) {
        // Ends this prefix' own processes, so that its folder can be taken away.
        drop(self.command("wineboot").arg("--kill").output());
        fs::remove_dir_all(self.prefix()).unwrap_or_default();
    }
}
