//! What is made from the table of commands: the command itself with its list of exit codes, completions, man pages.

use std::{fs, io, path::Path};

use clap::{Command, CommandFactory};

use crate::{args::Cli, exit};

/// The whole table, for parsing and for everything that is rendered from it.
pub(crate) fn command() -> Command {
    // The list is what is asked for: no options before it.
    Cli::command().mut_subcommand("exit-codes", |command| {
        command.after_help(exit::table()).help_template("{about}\n\n{after-help}")
    })
}

/// A completion script.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "fullpipe", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The page of the program itself, which lists the commands and the exit codes.
pub(crate) fn man_page() -> io::Result<String> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command().mut_subcommand("exit-codes", |c| c.hide(true)));
    man.render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    page += ".SH \"EXIT STATUS\"\n";
    for exit in exit::Exit::ALL {
        page += &format!(".TP\n\\fB{}\\fR ({})\n{}\n", exit.code(), exit.kind(), exit.meaning());
    }
    Ok(page)
}

/// Writes `fullpipe.1` and a page for every command into `dir`; returns how many.
pub(crate) fn man_pages(dir: &Path) -> io::Result<usize> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("fullpipe.1"), man_page()?)?;
    let mut root = command().disable_help_subcommand(true);
    root.build();
    let mut pages = 1;
    for sub in root.get_subcommands() {
        pages += write_pages(dir, sub)?;
    }
    Ok(pages)
}

fn write_pages(dir: &Path, command: &Command) -> io::Result<usize> {
    if command.is_hide_set() {
        return Ok(0);
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    fs::write(dir.join(format!("{name}.1")), page)?;
    let mut pages = 1;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        pages += write_pages(dir, sub)?;
    }
    Ok(pages)
}
