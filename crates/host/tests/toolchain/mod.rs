//! What is here to build for other systems.

use std::{
    env,
    path::PathBuf,
    process::{Command, Output},
};

/// The first of these programs, or else Rust's standard library for `target`, that this machine doesn't have.
pub(crate) fn missing(programs: &[&str], target: &str) -> Option<String> {
    let found = |program: &str| {
        env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
    };
    if let Some(program) = programs.iter().find(|program| !found(program)) {
        return Some(format!("the program {program}"));
    }
    if target.ends_with("windows-gnu") && env::current_exe().is_ok_and(|path| path.to_string_lossy().contains(' ')) {
        return Some("a target folder without a space in its path, which MinGW's dlltool needs,".to_owned());
    }
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let libraries = libraries.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let here = libraries.is_ok_and(|folder| folder.is_dir());
    (!here).then(|| format!("Rust's standard library for {target} (rustup target add {target})"))
}

/// Everything that a program said.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
