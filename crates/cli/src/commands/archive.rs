//! `fullpipe archive` and `fullpipe report`: the Python package does it. What is *not* here: anything about archives.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    process::Command,
};

use crate::{exit::Exit, failure::Failure, interrupt, output::Output};

/// How a Python says that it has no such package: no code of the package's own.
const LACKING: i32 = 97;

/// Not `python -m`, which would also look for the package in the folder where one happens to be.
const START: &str = "\
import sys
sys.path = [folder for folder in sys.path if folder]
try:
    from fullpipe.archive import main
except ImportError:
    sys.exit(97)
sys.exit(main())";

/// How it is had: of a checkout, because the package is in no registry.
const GET: &str = "python3 -m pip install './bindings/python[archive]' in a checkout of fullpipe; or of a wheel, \
                   python3 -m pip install 'fullpipe-VERSION.whl[archive]'. FULLPIPE_PYTHON names another Python";

/// Runs the package with `words` behind `first`; gives its exit code.
pub(super) fn run(first: Option<&str>, words: &[OsString], output: Output) -> Result<u8, Failure> {
    interrupt::leave_to_command()?;
    let words = first.map(OsStr::new).into_iter().chain(words.iter().map(OsString::as_os_str));
    let flags = output.is_json().then_some(OsStr::new("--json"));
    let words: Vec<&OsStr> = words.chain(flags).collect();
    let chosen = env::var_os("FULLPIPE_PYTHON").filter(|chosen| !chosen.is_empty());
    let usual = || ["python3", "python"].map(OsString::from).to_vec();
    for python in chosen.map_or_else(usual, |chosen| vec![chosen]) {
        match Command::new(&python).args(["-c", START]).args(&words).status() {
            Ok(status) if status.code() == Some(LACKING) => {}
            Ok(status) => {
                return status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .ok_or_else(|| Failure::new(Exit::System, &format!("{} ended with {status}", python.display())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::system(&format!("running {}", python.display()), &error)),
        }
    }
    Err(Failure::new(Exit::Unsupported, &format!("no Python here has the package fullpipe with archives; {GET}")))
}
