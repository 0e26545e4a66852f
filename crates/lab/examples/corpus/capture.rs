//! tcpdump, ss and `fullpipe watch` inside a host of the lab.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use fullpipe_lab::{DEVICE, LabHost};

/// A tcpdump that writes a file until it is stopped.
pub(crate) struct Capture {
    child: Child,
    messages: BufReader<ChildStderr>,
}

/// A program runs in a process namespace of its own, where no signal from here reaches it: the shell beside it ends it
/// when its input does. TERM, because a shell without a terminal has its background ignore INT.
const UNTIL_INPUT_ENDS: &str = r#""$@" & read _; kill -TERM $!; wait $!"#;

const TCPDUMP: [&str; 10] = ["tcpdump", "-q", "-i", DEVICE, "-s", "128", "-B", "16384", "-Z", "root"];

/// Short intervals, because a verdict rests on what the last ten of them show, and most transfers take a few seconds.
const WATCH: [&str; 5] = ["watch", "--quiet", "--interval", "500ms", "--record"];

/// The shell reads its clock from a file: one process less for each sample.
const EVERY_250_MS: &str = r#"while :; do read up _ </proc/uptime; echo "now $up"; ss -tinOH; sleep 0.25; done"#;

impl Capture {
    /// Returns when packets are seen. The calling thread has to live as long as the capture shall.
    pub(crate) fn start(host: &LabHost, file: &Path) -> io::Result<Self> {
        let mut command = until_input_ends(host);
        command.args(TCPDUMP).arg("-w").arg(file).arg("tcp");
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().ok_or_else(|| io::Error::other("tcpdump has no standard error"))?;
        let mut messages = BufReader::new(stderr);
        let mut said = String::new();
        while !said.contains("listening on") {
            if messages.read_line(&mut said)? == 0 {
                return Err(io::Error::other(format!("tcpdump: {}", said.trim())));
            }
        }
        Ok(Self { child, messages })
    }

    /// Ends it and says how many packets the kernel had no room for.
    pub(crate) fn stop(mut self) -> io::Result<u64> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.messages.read_to_string(&mut said)?;
        self.child.wait()?;
        let dropped =
            said.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel")?.trim().parse().ok());
        dropped.ok_or_else(|| io::Error::other(format!("tcpdump: {}", said.trim())))
    }
}

fn until_input_ends(host: &LabHost) -> Command {
    let mut command = host.command("sh");
    command.args(["-c", UNTIL_INPUT_ENDS, "sh"]).stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

/// `fullpipe watch`, which judges the same transfer live, until it is stopped.
pub(crate) struct Live(Child);

impl Live {
    /// Records the connections of `host` into `file`, with `program`.
    pub(crate) fn start(host: &LabHost, program: &Path, file: &Path) -> io::Result<Self> {
        // What an earlier try left is not this transfer's.
        fs::remove_file(file).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let mut command = until_input_ends(host);
        command.arg(program).args(WATCH).arg(file).stderr(Stdio::null()).spawn().map(Self)
    }

    pub(crate) fn stop(mut self) -> io::Result<()> {
        drop(self.0.stdin.take());
        self.0.wait()?;
        Ok(())
    }
}

/// A namespace may not name each of the kernel's congestion controls as its default; a route may. And unlike a socket that
/// is changed, one that begins so never paced.
const ON_ROUTES: &str = r#"for v in -4 -6; do ip $v route show dev "$1" | grep / | while read -r r; do
ip $v route change $r dev "$1" congctl "$2" || exit 1; done || exit 1; done"#;

/// Whatever `host` opens or accepts on its path from now on runs under this.
pub(crate) fn set_congestion(host: &LabHost, congestion: &str) -> io::Result<()> {
    let output = host.command("sh").args(["-c", ON_ROUTES, "sh", DEVICE, congestion]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip route: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Something that goes on until it is stopped.
pub(crate) struct Watch(Child);

/// Writes what the kernel says of each connection of `host` into `file`.
pub(crate) fn watch_sockets(host: &LabHost, file: &Path) -> io::Result<Watch> {
    let mut command = host.command("sh");
    command.args(["-c", EVERY_250_MS]).stdin(Stdio::null()).stdout(File::create(file)?).stderr(Stdio::null());
    command.spawn().map(Watch)
}

impl Watch {
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}
