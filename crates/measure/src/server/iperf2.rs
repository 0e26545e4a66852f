//! iperf 2's test over TCP, to whoever opens one: payload until its end, without a word in return. What is *not* here: its
//! tests in both directions, which would have this host call back whom it is told to, and datagrams.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fullpipe_units::{Bytes, Micros};

use super::{ServerOptions, TestFigures};

/// A read or a write of payload.
const BLOCK: usize = 128 * 1024;
/// How often it is looked whether the server was stopped.
const LOOK: Duration = Duration::from_millis(250);

/// How a connection of iperf 2 opens: `client_hdr_v1` and `client_hdrext` of its include/payloads.h. Without it (up to 2.0)
/// payload comes at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// The client waits for payload.
    reverse: bool,
    /// It would have some in return, as well: `-d`, `-r`, `--full-duplex`.
    both: bool,
    /// When payload in its direction ends.
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    After(Duration),
    At(u64),
}

impl Opening {
    pub(super) fn read(first: &[u8]) -> Self {
        let word = |at: usize| first.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        let half = |at: usize| first.get(at..at + 2).and_then(|half| half.try_into().ok()).map(u16::from_be_bytes);
        let Some(flags) = word(0).filter(|_| !first.starts_with(b"0123456789")) else { return Self::default() };
        let upper = half(32).filter(|_| flags & EXTENDED != 0).unwrap_or(0);
        let end = word(20).map(u32::cast_signed).and_then(|amount| match amount {
            0 => None,
            // A time, in hundredths of a second.
            hundredths if hundredths < 0 => {
                Some(End::After(Duration::from_millis(u64::from(hundredths.unsigned_abs()) * 10)))
            }
            bytes => Some(End::At(u64::from(bytes.unsigned_abs()))),
        });
        Self { reverse: upper & REVERSE != 0, both: flags & CALLS_BACK != 0 || upper & FULL_DUPLEX != 0, end }
    }
}

/// Bits of the first word and of the upper flags.
const CALLS_BACK: u32 = 0x8000_0000;
const EXTENDED: u32 = 0x4000_0000;
const REVERSE: u16 = 0x0400;
const FULL_DUPLEX: u16 = 0x0800;

/// Why a test ended before its time.
pub(super) type Stopped = Option<String>;

/// Receives until the client has sent all, or sends what it waits for. `already` came before.
pub(super) fn serve(
    stream: &TcpStream,
    opening: Opening,
    already: usize,
    (options, stop): (&ServerOptions, &AtomicBool),
) -> io::Result<(TestFigures, Stopped)> {
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut moving = Moving { options, stop, start: Instant::now(), moved: 0, last: Instant::now() };
    let stopped = if opening.reverse {
        let stopped = moving.send(stream, opening.end)?;
        stream.shutdown(Shutdown::Write)?;
        moving.wait_for_end(stream)?;
        stopped
    } else {
        moving.moved = already as u64;
        moving.receive(stream)?
    };
    let client = if opening.both { "iperf 2, which gets nothing in return" } else { "iperf 2" };
    let (received, sent) = if opening.reverse { (0, moving.moved) } else { (moving.moved, 0) };
    let figures = TestFigures {
        client: Some(client.to_owned()),
        connections: 1,
        duration: Micros::from(moving.last - moving.start),
        received: Bytes::new(received),
        sent: Bytes::new(sent),
        ..TestFigures::default()
    };
    Ok((figures, stopped))
}

struct Moving<'a> {
    options: &'a ServerOptions,
    stop: &'a AtomicBool,
    start: Instant,
    moved: u64,
    /// When something moved last.
    last: Instant,
}

impl Moving<'_> {
    fn receive(&mut self, mut stream: &TcpStream) -> io::Result<Stopped> {
        let mut block = vec![0; BLOCK];
        loop {
            if let Some(why) = self.over() {
                return Ok(Some(why));
            }
            match stream.read(&mut block) {
                Ok(0) => return Ok(None),
                outcome => self.count(outcome)?,
            }
        }
    }

    fn send(&mut self, mut stream: &TcpStream, end: Option<End>) -> io::Result<Stopped> {
        let block = vec![0; BLOCK];
        loop {
            if let Some(why) = self.over() {
                return Ok(Some(why));
            }
            let left = match end {
                Some(End::After(time)) if self.start.elapsed() >= time => return Ok(None),
                Some(End::At(bytes)) if self.moved >= bytes => return Ok(None),
                Some(End::At(bytes)) => usize::try_from(bytes - self.moved).unwrap_or(BLOCK).min(BLOCK),
                _ => BLOCK,
            };
            match stream.write(&block[..left]) {
                // A client whose time is over goes away.
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    return Ok(None);
                }
                outcome => self.count(outcome)?,
            }
        }
    }

    /// Closing while something is unread would reset the connection, and what is on its way would be lost.
    fn wait_for_end(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut block = [0; 1024];
        let since = Instant::now();
        while since.elapsed() < self.options.answer && !self.stop.load(Ordering::Relaxed) {
            match stream.read(&mut block) {
                Ok(0) => break,
                Err(error) if !is_waiting(&error) => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn count(&mut self, outcome: io::Result<usize>) -> io::Result<()> {
        match outcome {
            Ok(bytes) => {
                self.moved += bytes as u64;
                self.pace();
                self.last = Instant::now();
                Ok(())
            }
            Err(error) if is_waiting(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// No faster than the server allows.
    fn pace(&self) {
        let Some(rate) = self.options.max_rate else { return };
        let due = Duration::from_secs_f64(self.moved as f64 * 8.0 / rate.bps().max(1) as f64);
        let until = due.min(self.options.longest_test);
        while !self.stop.load(Ordering::Relaxed) && self.start.elapsed() < until {
            thread::sleep(until.saturating_sub(self.start.elapsed()).min(LOOK));
        }
    }

    fn over(&self) -> Stopped {
        if self.stop.load(Ordering::Relaxed) {
            return Some("the server was stopped".to_owned());
        }
        if let Some(limit) = self.options.max_bytes.filter(|limit| self.moved > limit.get()) {
            return Some(format!("more than the {limit} that this server allows"));
        }
        if self.last.elapsed() > self.options.stall {
            return Some(format!("nothing moved for {} s", self.options.stall.as_secs()));
        }
        let longest = self.options.longest_test;
        (self.start.elapsed() > longest)
            .then(|| format!("longer than the {} s that this server allows", longest.as_secs()))
    }
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 2.1.8 opened a connection for `-n 200K`, for `-t 1 -R`, and for `-d`.
    #[test]
    fn the_opening_tells_who_sends_and_for_how_long() {
        let opening = |flags: u32, amount: i32, upper: u16| {
            let mut first = [0_u8; 37];
            first[..4].copy_from_slice(&flags.to_be_bytes());
            first[7] = 1;
            first[10..12].copy_from_slice(&5399_u16.to_be_bytes());
            first[20..24].copy_from_slice(&amount.to_be_bytes());
            first[32..34].copy_from_slice(&upper.to_be_bytes());
            Opening::read(&first)
        };
        let plain = opening(0x4001_0078, 204_800, 0);
        assert_eq!(plain, Opening { end: Some(End::At(204_800)), ..Opening::default() });
        let reverse = opening(0x4401_0078, -100, 0x0400);
        assert_eq!(
            reverse,
            Opening { reverse: true, end: Some(End::After(Duration::from_secs(1))), ..Opening::default() }
        );
        assert!(opening(0xC001_0079, 204_800, 0).both && opening(0x4401_0078, 204_800, 0x0800).both);
        assert_eq!(Opening::read(b"0123456789012345678901234567890123456"), Opening::default());
    }
}
