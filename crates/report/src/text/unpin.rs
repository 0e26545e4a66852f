//! What `unpin` did.

use super::page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, or_dash};
use crate::{Unpinned, UnpinnedSocket};

/// Sockets that are told one by one; all of them with `--verbose`.
const USUALLY: usize = 10;

/// The rate before and after, what was given back, and that it is put back.
pub fn unpinned(unpinned: &Unpinned, look: Look) -> String {
    let mut page = Page::new(look);
    let (words, style) = match (unpinned.before.zip(unpinned.after), unpinned.ratio()) {
        (Some((before, after)), Some(ratio)) => {
            (format!("{before} -> {after}, {ratio:.1} times"), if ratio >= 1.0 { GOOD } else { WARN })
        }
        (Some((before, after)), None) => (format!("{before} -> {after}"), PLAIN),
        (None, _) => ("ended too soon to tell the rate after".to_owned(), DIM),
    };
    page.title(&format!("unpin {}", unpinned.target), style, &words);
    if let Some([send, receive]) = unpinned.swallowed {
        page.field("swallowed", &format!("{} of SO_SNDBUF, {receive} of SO_RCVBUF", count_of(send)));
    }
    let most = if look.verbose { usize::MAX } else { USUALLY };
    for socket in unpinned.sockets.iter().take(most) {
        put_socket(&mut page, socket);
    }
    if unpinned.sockets.len() > most {
        page.field("", &format!("... and {} more", unpinned.sockets.len() - most));
    }
    page.field("run", &format!("{}, undone", unpinned.run));
    let all = unpinned.sockets.len();
    let closed = all.saturating_sub(unpinned.put_back);
    page.field(
        "put back",
        &format!(
            "{} of {} have their buffers again, {closed} are closed",
            unpinned.put_back,
            count(all, "open socket")
        ),
    );
    page.finish()
}

fn count_of(calls: u64) -> String {
    count(usize::try_from(calls).unwrap_or(usize::MAX), "call")
}

fn put_socket(page: &mut Page, socket: &UnpinnedSocket) {
    page.pieces_field(
        "was fixed",
        &[
            (NAME, &format!("{} (pid {}, fd {})", socket.process, socket.pid, socket.fd)),
            (PLAIN, &format!("  send {}, receive {}", or_dash(socket.send_buffer), or_dash(socket.receive_buffer))),
        ],
    );
    if let Some(largest) = socket.largest_window {
        page.styled_field(
            "",
            BAD,
            &format!(
                "its window scale was chosen for the small buffer and allows {largest}: only a new connection gets more"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::{Bytes, Rate};

    use super::*;

    #[test]
    fn the_rates_and_what_holds_a_connection_still_are_told() {
        let socket = UnpinnedSocket {
            process: "evil\u{1b}[2J".to_owned(),
            pid: 7,
            fd: 5,
            send_buffer: Some(Bytes::new(131_072)),
            receive_buffer: None,
            largest_window: Some(Bytes::new(131_070)),
        };
        let done = Unpinned {
            run: 1,
            target: "evil".to_owned(),
            swallowed: Some([2, 1]),
            sockets: vec![socket; 12],
            put_back: 11,
            before: Some(Rate::from_bps(6_000_000)),
            after: Some(Rate::from_bps(90_000_000)),
        };
        let text = anstream::adapter::strip_str(&unpinned(&done, Look::default())).to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "6.00 Mbit/s -> 90.0 Mbit/s, 15.0 times",
            "2 calls of SO_SNDBUF, 1 of SO_RCVBUF",
            "(pid 7, fd 5) send 131,072 B, receive -",
            "only a new connection gets more",
            "... and 2 more",
            "11 of 12 open sockets have their buffers again, 1 are closed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        let soon = Unpinned { after: None, ..done };
        assert!(unpinned(&soon, Look::default()).contains("too soon"));
    }
}
