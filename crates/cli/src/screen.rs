//! The terminal's alternate screen, redrawn in place; what was on the terminal before is back when this goes, after a panic
//! too.

use std::{
    io::{self, Write},
    panic,
};

use anstream::AutoStream;

/// DEC private modes 1049 (alternate screen with its own cursor) and 25 (cursor shown), as every terminal emulator of the last
/// thirty years has them.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// The alternate screen, as long as this lives.
#[derive(Debug)]
pub(crate) struct Screen {
    _private: (),
}

impl Screen {
    /// Goes there.
    pub(crate) fn enter() -> io::Result<Self> {
        // A panic's message shall stand where it is read.
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            usual(panic);
        }));
        let screen = Self { _private: () };
        let mut out = io::stdout().lock();
        out.write_all(ENTER)?;
        out.flush()?;
        Ok(screen)
    }

    /// Shows the first `rows` lines of `text`, over what was shown before.
    pub(crate) fn draw(&self, text: &str, rows: usize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let styled = |text: &str| -> io::Result<Vec<u8>> {
            let mut piece = AutoStream::new(Vec::new(), AutoStream::choice(&io::stdout()));
            piece.write_all(text.as_bytes())?;
            Ok(piece.into_inner())
        };
        let mut page = HOME.as_bytes().to_vec();
        let lines: Vec<&str> = text.lines().take(rows.max(1)).collect();
        for (number, line) in lines.iter().enumerate() {
            page.extend(styled(line)?);
            page.extend(REST_OF_LINE.as_bytes());
            // The last line has no break: the screen would scroll.
            if number + 1 < lines.len() {
                page.extend(b"\r\n");
            }
        }
        page.extend(REST_OF_SCREEN.as_bytes());
        out.write_all(&page)?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() {
    let mut out = io::stdout().lock();
    // A terminal that is gone needs nothing.
    drop(out.write_all(LEAVE).and_then(|()| out.flush()));
}
