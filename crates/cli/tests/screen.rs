//! The full screen of `fullpipe watch` in a real terminal (tmux): what it shows, what keys do, and that nothing stays.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::ErrorKind,
    net::{TcpListener, TcpStream},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// Terminals that were opened.
static OPENED: AtomicU32 = AtomicU32::new(0);

/// A terminal of its own, which ends with the test.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// `None`, and the reason printed, without tmux or anything to watch.
    fn open(test: &str, columns: u16, rows: u16) -> Option<Self> {
        if !can_watch(test) {
            return None;
        }
        match Command::new("tmux").arg("-V").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("skipped {test}: tmux is not installed");
                return None;
            }
            version => assert!(version.unwrap().status.success()),
        }
        // Tests of one process run beside each other.
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("fullpipe-{}-{number}", std::process::id()) };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, "PS1='$ ' TERM=screen-256color sh"]);
        // What is typed before the prompt is shown without it.
        terminal.until("$");
        terminal.write("echo was here");
        terminal.press("Enter");
        terminal.until("\nwas here");
        Some(terminal)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket, "-f", "/dev/null"]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The first picture that has this in it.
    fn until(&self, part: &str) -> String {
        for _ in 0..300 {
            let text = self.text();
            if text.contains(part) {
                return text;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("`{part}` did not come: {}", self.text());
    }

    fn watch(&self, words: &str) -> String {
        self.write(&format!("'{}' watch {words}", env!("CARGO_BIN_EXE_fullpipe")));
        self.press("Enter");
        self.until("q quit")
    }

    /// Whether the terminal is as it was, with this exit code.
    fn is_as_it_was(&self, code: u8) {
        // What is typed before is the program's.
        for _ in 0..300 {
            if self.tmux(&["display-message", "-p", "#{pane_current_command}"]).trim() == "sh" {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        self.write("echo ended with $?; stty -a | grep -ow -e '-*icanon' -e '-*echo'");
        self.press("Enter");
        self.until(&format!("\nended with {code}"));
        let text = self.until("\necho\n");
        assert!(text.contains("was here") && text.contains("\nicanon\n") && !text.contains("q quit"), "{text}");
        let modes = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]);
        assert_eq!(modes.trim(), "0 1 0", "its other screen is left, the cursor is shown");
    }

    /// The number of the program that the shell runs.
    fn program(&self) -> i32 {
        let shell: u32 = self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// An idle connection between two ports of this machine.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Whether there is anything to watch.
fn can_watch(test: &str) -> bool {
    let looked = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["watch", "--once", "--json", "--interval", "100ms"])
        .output();
    let can = looked.unwrap().status.success();
    if !can {
        println!("skipped {test}: this kernel has no sock_diag");
    }
    can
}

#[test]
fn connections_are_shown_sorted_filtered_and_opened_and_nothing_stays() {
    let test = "connections_are_shown_sorted_filtered_and_opened_and_nothing_stays";
    for (columns, rows) in [(80, 24), (200, 50)] {
        let Some(terminal) = Terminal::open(test, columns, rows) else { return };
        let (near, _far) = connection();
        let port = near.local_addr().unwrap().port();
        terminal.watch(&format!("--interval 200ms --filter 'port {port}'"));
        let text = terminal.until(&format!("127.0.0.1:{port}"));
        assert!(text.contains("by worst") && text.contains("LIMITER"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= columns.into()), "{text}");
        terminal.press("s");
        terminal.until("by rate");
        terminal.press("/");
        terminal.write(" process nobody");
        terminal.press("Enter");
        terminal.until("no connection passes the filter");
        terminal.press("/");
        (0.." process nobody".len()).for_each(|_| terminal.press("BSpace"));
        terminal.press("Enter");
        terminal.until(&format!("127.0.0.1:{port}"));
        terminal.press("Enter");
        terminal.until("round trip");
        terminal.press("?");
        terminal.until("next order");
        terminal.press("Escape");
        terminal.until("LIMITER");
        terminal.press("q");
        terminal.is_as_it_was(0);
    }
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let test = "signals_leave_the_terminal_as_it_was";
    let Some(terminal) = Terminal::open(test, 80, 25) else { return };
    terminal.watch("");
    let program = rustix::process::Pid::from_raw(terminal.program()).unwrap();
    rustix::process::kill_process(program, rustix::process::Signal::TERM).unwrap();
    terminal.is_as_it_was(0);
    terminal.press("C-l");
    terminal.write("echo was here");
    terminal.press("Enter");
    terminal.watch("");
    terminal.press("C-c");
    terminal.is_as_it_was(0);
}

#[test]
fn a_terminal_that_is_gone_ends_it() {
    let test = "a_terminal_that_is_gone_ends_it";
    let Some(terminal) = Terminal::open(test, 80, 25) else { return };
    terminal.watch("");
    let program = terminal.program();
    drop(terminal);
    let running = || fs::exists(format!("/proc/{program}/exe")).unwrap();
    for _ in 0..300 {
        if !running() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    rustix::process::kill_process(rustix::process::Pid::from_raw(program).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    panic!("it runs on without a terminal");
}

#[test]
fn a_recording_is_shown_again_to_its_end() {
    let test = "a_recording_is_shown_again_to_its_end";
    let Some(terminal) = Terminal::open(test, 100, 30) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.jsonl");
    let (near, _far) = connection();
    let words = ["watch", "--for", "700ms", "--interval", "200ms", "--record"];
    let recorded = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).arg(&file).output().unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    let port = near.local_addr().unwrap().port();
    terminal.watch(&format!("{} --filter 'port {port}'", file.display()));
    terminal.until("end of the recording");
    terminal.until(&format!("127.0.0.1:{port}"));
    terminal.press("q");
    terminal.is_as_it_was(0);
}
