//! The password that a server wants: from the environment, or typed on the terminal, where it is not shown. It is never
//! an argument, which every user of the machine could read.

use std::env;

use crate::{exit::Exit, failure::Failure, output::Output};

/// iperf3's own.
const VARIABLE: &str = "IPERF3_PASSWORD";

/// The password of that user.
pub(crate) fn ask(user: &str, output: Output) -> Result<String, Failure> {
    match env::var(VARIABLE) {
        Ok(password) => Ok(password),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Failure::new(Exit::Usage, &format!("the variable {VARIABLE} is no UTF-8")))
        }
        Err(env::VarError::NotPresent) if output.can_ask() => terminal::ask(user),
        Err(env::VarError::NotPresent) => {
            let text = format!("there is no password, and no terminal to ask on; put it into the variable {VARIABLE}");
            Err(Failure::new(Exit::Usage, &text))
        }
    }
}

#[cfg(unix)]
mod terminal {
    use std::io::{self, Read, Write};

    use fullpipe_report::clean;
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

    use super::{Exit, Failure};

    /// More than any key can encrypt.
    const LONGEST: usize = 1_000;

    pub(super) fn ask(user: &str) -> Result<String, Failure> {
        let failed = |error: rustix::io::Errno| Failure::system("asking for the password", &error.into());
        let terminal = io::stdin();
        let before = tcgetattr(&terminal).map_err(failed)?;
        let mut silent = before.clone();
        // Without signals Ctrl-C comes as a byte, so that the terminal shows again what is typed before this ends.
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        drop(write!(io::stderr(), "password of {}: ", clean(user)));
        tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(failed)?;
        let typed = read(&mut terminal.lock());
        let restored = tcsetattr(&terminal, OptionalActions::Flush, &before).map_err(failed);
        drop(writeln!(io::stderr()));
        restored.and(typed)
    }

    /// Up to the end of the line, with the keys that a terminal otherwise looks after.
    pub(super) fn read(input: &mut impl Read) -> Result<String, Failure> {
        const CTRL_C: u8 = 3;
        const CTRL_D: u8 = 4;
        const CTRL_U: u8 = 21;
        const BACKSPACE: u8 = 8;
        const DELETE: u8 = 127;
        let mut typed: Vec<u8> = Vec::new();
        let mut byte = [0u8];
        while typed.len() < LONGEST {
            let count = input.read(&mut byte).map_err(|error| Failure::system("reading the password", &error))?;
            match byte[0] {
                _ if count == 0 => break,
                b'\r' | b'\n' | CTRL_D => break,
                CTRL_C => return Err(Failure::new(Exit::Interrupted, "stopped at the question for the password")),
                CTRL_U => typed.clear(),
                BACKSPACE | DELETE => {
                    // With the bytes that continue a character of UTF-8.
                    while typed.pop().is_some_and(|byte| (0x80..0xc0).contains(&byte)) {}
                }
                other => typed.push(other),
            }
        }
        String::from_utf8(typed).map_err(|_| Failure::new(Exit::Usage, "the password is no UTF-8"))
    }
}

#[cfg(not(unix))]
mod terminal {
    use super::{Exit, Failure, VARIABLE};

    /// Windows' console is not asked to hide what is typed.
    pub(super) fn ask(_: &str) -> Result<String, Failure> {
        Err(Failure::new(Exit::Usage, &format!("there is no password; put it into the variable {VARIABLE}")))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_to_the_end_of_its_line_with_its_corrections() {
        for (typed, expected) in [
            (&b"secret\nrest"[..], "secret"),
            (b"secret\r", "secret"),
            (b"wrong\x15secreX\x7ft\n", "secret"),
            ("sä\x08ecret\n".as_bytes(), "secret"),
            (b"\x7f\x08secret", "secret"),
        ] {
            assert_eq!(terminal::read(&mut &*typed).unwrap(), expected);
        }
        assert_eq!(terminal::read(&mut &b"sec\x03ret\n"[..]).unwrap_err().exit, Exit::Interrupted);
        assert_eq!(terminal::read(&mut &b"\xff\n"[..]).unwrap_err().exit, Exit::Usage);
        assert_eq!(terminal::read(&mut &[b'x'; 5_000][..]).unwrap().len(), 1_000);
    }
}
