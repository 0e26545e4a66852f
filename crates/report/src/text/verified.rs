//! What a machine took of a plan.

use fullpipe_knobs::verify::{Taken, Verified};

use super::page::{BAD, GOOD, Look, NAME, PLAIN, Page, WARN, count, value_or_absent};

/// A line for each value that the plan wants, what of the files could not be read, and what it means.
pub fn verified(verified: &[Verified], unread: &[String], look: Look) -> String {
    let mut page = Page::new(look);
    let of = |taken: Taken| verified.iter().filter(|one| one.taken == taken).count();
    let (yes, no, unknown) = (of(Taken::Yes), of(Taken::No), of(Taken::Unknown));
    let style = match () {
        () if no > 0 => BAD,
        () if unknown > 0 || !unread.is_empty() => WARN,
        () => GOOD,
    };
    let cut = if unread.is_empty() { "" } else { "; not all of the file could be read" };
    page.title("verify", style, &format!("{} as planned, {no} not, {unknown} unknown{cut}", count(yes, "value")));
    for one in verified {
        let style = match one.taken {
            Taken::Yes => GOOD,
            Taken::No => BAD,
            Taken::Unknown => WARN,
        };
        let to = value_or_absent(one.to.as_deref());
        let knob = one.knob.to_string();
        page.sentence(2, &[(NAME, &knob), (PLAIN, " -> "), (PLAIN, &to), (PLAIN, "  "), (style, &one.message)]);
    }
    for lost in unread {
        page.field("unread", lost);
    }
    page.field("note", "a value that is set may still not be in use: check the window and its scale in the SYN of a new connection (`fullpipe read`)");
    page.finish()
}
