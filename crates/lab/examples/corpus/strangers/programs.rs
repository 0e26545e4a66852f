//! Transfers between programs of others.

use std::{
    io,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, Side};

/// Two shell scripts. `$DIR` is a folder of their own, `$A` and `$B` the hosts, `$PORT` where the server listens.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) server: String,
    pub(crate) client: String,
    /// The bulk goes this way.
    pub(crate) sender: Side,
}

const PORT: &str = "5201";
/// A client that takes longer is ended.
const LIMIT_S: &str = "12";

impl Programs {
    pub(crate) fn run(&self, lab: &Lab, dir: &Path) -> io::Result<()> {
        let script = |side: Side, words: &[&str]| -> Command {
            let mut command = lab.host(side).command("nice");
            command.args(["-n", "-15"]).args(words).env("DIR", dir).env("PORT", PORT).env("HOME", dir);
            for (name, host) in [("A", Side::A), ("B", Side::B)] {
                command.env(name, lab.host(host).address().to_string());
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            command
        };
        let server = Ended(script(Side::B, &["sh", "-c", &self.server]).stderr(Stdio::null()).spawn()?);
        let begun = Instant::now();
        let is_there = format!("ss -ltnH 'sport = :{PORT}' | grep -q .");
        while !script(Side::B, &["sh", "-c", &is_there]).status()?.success() {
            if begun.elapsed() > Duration::from_secs(8) {
                return Err(io::Error::other("the server does not listen"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        thread::sleep(Duration::from_millis(100));
        let output = script(Side::A, &["timeout", LIMIT_S, "sh", "-c", &self.client]).output()?;
        thread::sleep(Duration::from_millis(300));
        drop(server);
        // What timeout(1) ends was long enough.
        match output.status.code() {
            Some(0 | 124) => Ok(()),
            code => {
                let said = String::from_utf8_lossy(&output.stderr);
                let last = said.lines().last().unwrap_or_default();
                Err(io::Error::other(format!("the client ended with {code:?}: {last}")))
            }
        }
    }
}

/// A process that doesn't outlive this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that is gone already is what was wanted.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
