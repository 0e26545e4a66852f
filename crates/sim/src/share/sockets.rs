//! The sockets of a device, in words: `4x bulk 25M 15ms, 2x interactive`.

use core::fmt;

use fullpipe_units::{Bytes, Micros, Rate};
use thiserror::Error;

/// What a group takes, for messages.
const FORM: &str = "[Nx] bulk|interactive [RATE] [RTT] [receives] [loss PART] [message SIZE]";
/// The most sockets: more than any such device has buffers for.
const MOST: u16 = 4_096;
/// The default message of an interactive socket: one full segment.
pub(crate) const MESSAGE: Bytes = Bytes::new(1_460);
/// The default round trip of an interactive socket, a LAN's.
const INTERACTIVE_RTT: Micros = Micros::from_millis(1);

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Moves as much as it can.
    Bulk,
    /// Answers each request with a short message, and is judged by how soon.
    Interactive,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bulk => "bulk",
            Self::Interactive => "interactive",
        })
    }
}

/// A group of sockets that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Sockets {
    /// How many.
    pub count: u16,
    /// What they are for.
    pub kind: Kind,
    /// Whether the device sends the payload; else it receives it.
    pub sends: bool,
    /// What the path of one of them carries; absent where the device's own link is all that is known.
    pub rate: Option<Rate>,
    /// Round-trip time of the idle path.
    pub rtt: Micros,
    /// Random loss towards the receiver, 0 to below 1.
    pub loss: f64,
    /// Bytes of a message of an interactive socket.
    pub message: Bytes,
    /// The group as it was written.
    pub text: String,
}

/// What is wrong with `--sockets`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("--sockets, column {column}: {word:?} {problem}; {way_out}")]
pub struct SocketsError {
    /// Where the word begins, counted from 1.
    pub column: usize,
    /// The word.
    pub word: String,
    /// Why it can't stand there.
    pub problem: String,
    /// What to write.
    pub way_out: String,
}

/// Reads groups that are separated by commas.
///
/// # Errors
/// The first word that can't stand where it does, with its column.
pub fn parse(text: &str) -> Result<Vec<Sockets>, SocketsError> {
    let mut groups = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        groups.push(group(text, at, part)?);
        at += part.len() + 1;
    }
    let all: u32 = groups.iter().map(|group| u32::from(group.count)).sum();
    if all > MOST.into() {
        return Err(error(text, 0, text, &format!("are {all} sockets"), &format!("give {MOST} at most")));
    }
    Ok(groups)
}

fn error(text: &str, at: usize, word: &str, problem: &str, way_out: &str) -> SocketsError {
    let column = text.get(..at).map_or(at, |before| before.chars().count()) + 1;
    SocketsError { column, word: word.to_owned(), problem: problem.to_owned(), way_out: way_out.to_owned() }
}

/// The words of a part and where each begins in the whole text.
fn words(start: usize, part: &str) -> impl Iterator<Item = (usize, &str)> {
    part.split_whitespace().map(move |word| (start + word.as_ptr() as usize - part.as_ptr() as usize, word))
}

fn group(text: &str, start: usize, part: &str) -> Result<Sockets, SocketsError> {
    let wrong = |at: usize, word: &str, problem: &str, way_out: &str| error(text, at, word, problem, way_out);
    let mut words = words(start, part).peekable();
    let Some(&(first_at, first)) = words.peek() else {
        return Err(wrong(start, part.trim(), "names no sockets", &format!("a group is {FORM}")));
    };
    let mut count = 1;
    if let Some(number) = first.strip_suffix(['x', 'X']).filter(|number| !number.is_empty()) {
        count = number.parse().ok().filter(|count| (1..=MOST).contains(count)).ok_or_else(|| {
            wrong(first_at, first, "is no number of sockets", &format!("write 1x to {MOST}x, or leave it out for one"))
        })?;
        words.next();
    }
    let kinds = "write bulk (as fast as it goes) or interactive (short messages)";
    let (kind_at, kind) = match words.next() {
        Some((at, "bulk")) => (at, Kind::Bulk),
        Some((at, "interactive")) => (at, Kind::Interactive),
        Some((at, word)) => return Err(wrong(at, word, "is no kind of socket", kinds)),
        None => return Err(wrong(first_at, first, "has no kind of socket behind it", kinds)),
    };
    let (mut rate, mut rtt, mut loss, mut message, mut sends) = (None, None, None, None, true);
    while let Some((at, word)) = words.next() {
        let twice = || wrong(at, word, "comes twice", "say it once in a group");
        let mut value = |what: &str| {
            words.next().ok_or_else(|| wrong(at, word, "has no value behind it", &format!("write {word} {what}")))
        };
        match word {
            "sends" => sends = true,
            "receives" => sends = false,
            "loss" if loss.is_some() => return Err(twice()),
            "loss" => {
                let (at, word) = value("1%")?;
                let part = crate::knob::fraction("loss", word).ok().filter(|part| *part <= 0.3);
                let bad = || wrong(at, word, "is no loss", "a loss is from 0 to 30 %: write 1% or 0.01");
                loss = Some(part.ok_or_else(bad)?);
            }
            "message" if kind == Kind::Bulk => {
                return Err(wrong(at, word, "belongs to interactive sockets", "leave it out: bulk has no messages"));
            }
            "message" if message.is_some() => return Err(twice()),
            "message" => {
                let (at, word) = value("512B")?;
                let size: Option<Bytes> = word.parse().ok().filter(|size: &Bytes| (1..=65_535).contains(&size.get()));
                let bad = || wrong(at, word, "is no size of a message", "a message is from 1 to 65,535 B: write 512B");
                message = Some(size.ok_or_else(bad)?);
            }
            _ if word.bytes().all(|digit| digit.is_ascii_digit()) => {
                return Err(wrong(at, word, "has no unit", "write 25M for a rate, 15ms for a round-trip time"));
            }
            _ => {
                if let Ok(value) = word.parse::<Rate>() {
                    if rate.is_some() {
                        return Err(twice());
                    }
                    if !(1_000..=10_000_000_000).contains(&value.bps()) {
                        let way_out = "a rate is from 1 kbit/s to 10 Gbit/s: write 25M";
                        return Err(wrong(at, word, "is no rate of a path", way_out));
                    }
                    rate = Some(value);
                } else if let Ok(value) = word.parse::<Micros>() {
                    if rtt.is_some() {
                        return Err(twice());
                    }
                    if !(1..=10_000_000).contains(&value.get()) {
                        let way_out = "a round trip is from 1 us to 10 s: write 15ms";
                        return Err(wrong(at, word, "is no round-trip time", way_out));
                    }
                    rtt = Some(value);
                } else {
                    let way_out = format!("a group is {FORM}, such as 4x bulk 25M 15ms");
                    return Err(wrong(at, word, "is neither a rate nor a time nor a known word", &way_out));
                }
            }
        }
    }
    if kind == Kind::Bulk && (rate.is_none() || rtt.is_none()) {
        let missing = if rate.is_none() { "rate" } else { "round-trip time" };
        let problem = format!("has no {missing}");
        return Err(wrong(kind_at, "bulk", &problem, "write what its path has: bulk 25M 15ms"));
    }
    Ok(Sockets {
        count,
        kind,
        sends,
        rate,
        rtt: rtt.unwrap_or(INTERACTIVE_RTT),
        loss: loss.unwrap_or(0.0),
        message: message.unwrap_or(MESSAGE),
        text: part.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_with_their_defaults() {
        let groups = parse("4x bulk 25M 15ms, interactive,2X bulk 600ms 1M loss 1% receives").unwrap();
        let [bulk, interactive, lossy] = groups.as_slice() else { panic!("{groups:?}") };
        assert_eq!((bulk.count, bulk.kind, bulk.sends), (4, Kind::Bulk, true));
        assert_eq!((bulk.rate, bulk.rtt), (Some(Rate::from_bps(25_000_000)), Micros::from_millis(15)));
        assert_eq!((interactive.count, interactive.kind, interactive.rate), (1, Kind::Interactive, None));
        assert_eq!((interactive.message.get(), interactive.rtt), (1_460, Micros::from_millis(1)));
        assert_eq!((lossy.count, lossy.sends), (2, false));
        assert!((lossy.loss - 0.01).abs() < 1e-12);
        assert_eq!(lossy.text, "2X bulk 600ms 1M loss 1% receives");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_column_and_the_way_out() {
        for (text, column, word, problem) in [
            ("", 1, "", "names no sockets"),
            ("bulk 25M 15ms,", 15, "", "names no sockets"),
            ("4x", 1, "4x", "has no kind"),
            ("0x bulk 25M 15ms", 1, "0x", "is no number"),
            ("99999x bulk 25M 15ms", 1, "99999x", "is no number"),
            ("4x bluk 25M 15ms", 4, "bluk", "is no kind"),
            ("4x bulk 25M", 4, "bulk", "has no round-trip time"),
            ("4x bulk 15ms", 4, "bulk", "has no rate"),
            ("interactive, 4x bulk 25Q 15ms", 22, "25Q", "is neither"),
            ("bulk 25M 15ms 30M", 15, "30M", "comes twice"),
            ("bulk 25M 15ms 30ms", 15, "30ms", "comes twice"),
            ("bulk 25M 15ms loss", 15, "loss", "has no value"),
            ("bulk 25M 15ms loss 100%", 20, "100%", "is no loss"),
            ("bulk 25M 15ms message 5", 15, "message", "belongs to"),
            ("bulk 25 15ms", 6, "25", "has no unit"),
            ("bulk 25M 0", 10, "0", "has no unit"),
            ("bulk 25bit 15ms", 6, "25bit", "is no rate"),
            ("interactive message 0", 21, "0", "is no size"),
            ("4096x interactive, interactive", 1, "4096x interactive, interactive", "are 4097"),
            ("ünd bulk, x", 1, "ünd", "is no kind"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.column, error.word.as_str()), (column, word), "{text}: {error}");
            assert!(error.problem.starts_with(problem), "{text}: {error}");
            assert!(!error.way_out.is_empty() && !error.problem.contains(';'), "{text}: {error}");
        }
    }
}
