//! The full screen on a real terminal: entered, fed, left as it was.

use std::{
    io, panic,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, TryRecvError},
    },
    time::Duration,
};

use fullpipe_watch::{Filter, Frame, Sort};
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event},
};

use super::{
    paint::paint,
    state::{State, Wish},
};
use crate::{failure::Failure, output::Output};

/// How long a key waits for its answer at the most, and a frame for being drawn.
const TICK: Duration = Duration::from_millis(50);

/// A panic has left the screen already. Leaving it a second time would put the cursor over the message.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// The terminal's other screen, as long as this lives: what was on the terminal before is back when it goes, after a panic too.
struct Screen(DefaultTerminal);

impl Screen {
    fn enter() -> io::Result<Self> {
        // With a hook, so that a panic's message stands where it is read.
        let screen = ratatui::try_init().map(Self)?;
        IS_LEFT.store(false, Ordering::Relaxed);
        let leave = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            IS_LEFT.store(true, Ordering::Relaxed);
            leave(panic);
        }));
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        drop(self.0.show_cursor());
        if !IS_LEFT.load(Ordering::Relaxed) {
            drop(ratatui::try_restore());
        }
    }
}

/// Which connections the screen asks for, in which order.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) filter: Filter,
    pub(super) sort: Sort,
    /// So many views were asked for, this one included.
    pub(super) asks: u64,
}

/// A frame, and how many views had been asked for when it was taken.
pub(super) type Fed = (u64, Frame);

/// Of a frame that has all connections, whatever is asked for.
pub(super) const ALL_VIEWS: u64 = u64::MAX;

/// What the screen tells those who feed it.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Other connections or another order.
    view: Mutex<Option<View>>,
    pub(super) is_paused: AtomicBool,
    /// It is gone.
    pub(super) is_over: AtomicBool,
}

impl Asked {
    /// What was asked for since this was called last.
    pub(super) fn view(&self) -> Option<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Shows what comes, until somebody quits, `stop` is set or a live watch ends.
pub(super) fn show(
    frames: &Receiver<Fed>,
    state: State,
    asked: &Asked,
    output: Output,
    stop: &AtomicBool,
    is_live: bool,
) -> Result<(), Failure> {
    let ended = show_it(frames, state, asked, output, stop, is_live);
    asked.is_over.store(true, Ordering::Relaxed);
    ended.map_err(|error| Failure::system("drawing on the terminal", &error))
}

fn show_it(
    frames: &Receiver<Fed>,
    mut state: State,
    asked: &Asked,
    output: Output,
    stop: &AtomicBool,
    is_live: bool,
) -> io::Result<()> {
    let mut screen = Screen::enter()?;
    let mut is_stale = true;
    while !stop.load(Ordering::Relaxed) {
        loop {
            match frames.try_recv() {
                Ok((asks, frame)) => {
                    state.take(frame, asks);
                    is_stale = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) if is_live => return Ok(()),
                Err(TryRecvError::Disconnected) => {
                    is_stale |= !state.is_over;
                    state.is_over = true;
                    break;
                }
            }
        }
        if is_stale {
            screen.0.draw(|canvas| paint(canvas, &mut state, output.look()))?;
            is_stale = false;
        }
        match awaited()? {
            Awaited::Event => {}
            Awaited::Nothing => continue,
            Awaited::HangUp => return Ok(()),
        }
        is_stale = true;
        let Event::Key(key) = event::read()? else { continue };
        match state.key(key) {
            Wish::Draw => {}
            Wish::Ask => {
                let view = View { filter: state.filter.clone(), sort: state.sort, asks: state.asks };
                *asked.view.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
            }
            Wish::Quit => return Ok(()),
        }
        asked.is_paused.store(state.is_paused, Ordering::Relaxed);
    }
    Ok(())
}

/// What came of waiting for a key.
enum Awaited {
    Event,
    Nothing,
    /// The terminal is gone.
    #[cfg_attr(windows, expect(dead_code, reason = "a console that is closed ends its programs"))]
    HangUp,
}

/// Waits for a tick at most. What reads the keys would read the end of a terminal that hung up for ever, so it isn't asked then.
#[cfg(unix)]
fn awaited() -> io::Result<Awaited> {
    use rustix::event::{PollFd, PollFlags, Timespec};

    // First what was read before; then what comes.
    for wait in [Duration::ZERO, TICK] {
        let stdin = io::stdin();
        let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match rustix::event::poll(&mut terminal, Some(&wait)) {
            Ok(_) => {}
            // It may be the signal that says that the terminal is gone, and nothing was looked at.
            Err(rustix::io::Errno::INTR) => return Ok(Awaited::Nothing),
            Err(error) => return Err(error.into()),
        }
        if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(Awaited::HangUp);
        }
        if event::poll(Duration::ZERO)? {
            return Ok(Awaited::Event);
        }
    }
    Ok(Awaited::Nothing)
}

#[cfg(windows)]
fn awaited() -> io::Result<Awaited> {
    Ok(if event::poll(TICK)? { Awaited::Event } else { Awaited::Nothing })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What the test below has a terminal run.
    #[test]
    #[ignore = "it panics, on a terminal that another test looks at"]
    fn panics_on_the_screen() {
        let mut screen = Screen::enter().unwrap();
        screen.0.draw(|canvas| canvas.render_widget("drawn over everything", canvas.area())).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        panic!("on purpose");
    }

    #[test]
    fn after_a_panic_the_terminal_is_as_it_was_and_shows_the_message() {
        let test = "after_a_panic_the_terminal_is_as_it_was_and_shows_the_message";
        let socket = format!("fullpipe-panic-{}", std::process::id());
        let tmux = |words: &[&str]| {
            let output = Command::new("tmux").args(["-L", &socket, "-f", "/dev/null"]).args(words).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        if let Err(error) = tmux(&["-V"]) {
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
            return println!("skipped {test}: tmux is not installed");
        }
        let program = std::env::current_exe().unwrap();
        let run = format!(
            "echo was here; '{}' --ignored --exact --nocapture --test-threads=1 commands::watch::full::tests::panics_on_the_screen; \
             stty -a | grep -ow -e '-*icanon' -e '-*echo'; echo all done; sleep 60",
            program.display()
        );
        tmux(&["new-session", "-d", "-x", "100", "-y", "30", &run]).unwrap();
        let seen = (0..300).find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            tmux(&["capture-pane", "-p", "-S", "-500"]).ok().filter(|text| text.contains("all done"))
        });
        let modes = tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).unwrap();
        tmux(&["kill-server"]).unwrap();
        let seen = seen.expect("it ends");
        assert!(seen.contains("was here") && seen.contains("on purpose") && !seen.contains("drawn over"), "{seen}");
        assert!(seen.contains("\nicanon\n") && seen.contains("\necho\n"), "{seen}");
        assert_eq!(modes.trim(), "0 1");
    }
}
