//! What `unpin` did.

use super::page::{BAD, DIM, GOOD, Look, NAME, PLAIN, Page, WARN, count, or_dash};
use crate::{Unpinned, UnpinnedSocket};

/// Sockets that are listed one by one; all of them with `--verbose`.
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
    put_end(&mut page, unpinned);
    page.finish()
}

fn put_end(page: &mut Page, unpinned: &Unpinned) {
    let run = unpinned.run;
    let all = count(unpinned.sockets.len(), "open socket");
    let Some(back) = unpinned.put_back else {
        page.field("run", &format!("{run}, in force for open sockets"));
        let text = format!("none of {all}: another run has the journal; `fullpipe undo {run}` puts them back");
        return page.styled_field("put back", WARN, &text);
    };
    page.field("run", &format!("{run}, undone"));
    let closed = unpinned.sockets.len().saturating_sub(back.restored + back.set_again);
    let mut text = format!("{} of {all} have their buffers again, {closed} are closed", back.restored);
    if back.set_again > 0 {
        text += &format!(", {} were set again by their application and are left alone", back.set_again);
    }
    page.field("put back", &text);
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
    use crate::PutBack;

    #[test]
    fn the_rates_and_what_holds_a_connection_still_are_named() {
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
            put_back: Some(PutBack { restored: 11, set_again: 0 }),
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
        let said = |put_back| {
            let text = unpinned(&Unpinned { put_back, ..done.clone() }, Look::default());
            let text = anstream::adapter::strip_str(&text).to_string();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let locked = said(None);
        assert!(locked.contains("none of 12 open sockets: another run has the journal; `fullpipe undo 1`"), "{locked}");
        assert!(!locked.contains("undone") && !locked.contains("closed"), "{locked}");
        let again = said(Some(PutBack { restored: 9, set_again: 2 }));
        assert!(
            again.contains("9 of 12 open sockets have their buffers again, 1 are closed, 2 were set again"),
            "{again}"
        );
        let soon = Unpinned { after: None, ..done };
        assert!(unpinned(&soon, Look::default()).contains("too soon"));
    }
}
