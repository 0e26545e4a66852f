//! Text from elsewhere, made harmless for a terminal.

use std::{borrow::Cow, fmt::Write};

/// The longest text that is shown; a peer could send any amount.
const LONGEST: usize = 2_000;

/// `text` without anything that a terminal would obey instead of show.
///
/// Control characters (C0, DEL, C1), line separators, characters that turn the writing direction (Unicode UAX #9) and
/// invisible ones become visible escapes such as `\u{1b}`; line breaks and tabs become spaces. What is longer than
/// 2,000 characters is cut, with `...` at its end.
pub fn clean(text: &str) -> Cow<'_, str> {
    let too_long = text.char_indices().nth(LONGEST).map(|(end, _)| end);
    if too_long.is_none() && !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let shown = &text[..too_long.unwrap_or(text.len())];
    let mut cleaned = String::with_capacity(shown.len() + 16);
    for c in shown.chars() {
        match c {
            '\n' | '\r' | '\t' => cleaned.push(' '),
            c if is_harmful(c) => write!(cleaned, "{}", c.escape_unicode()).expect("writing to a String can't fail"),
            c => cleaned.push(c),
        }
    }
    if too_long.is_some() {
        cleaned.push_str("...");
    }
    Cow::Owned(cleaned)
}

/// Whether a terminal would obey `c`, or a reader would be deceived by it.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["", "far.example", "64,512 B x 8 / 80 ms = 6.45 Mbit/s", "Zürich 東京"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        assert_eq!(clean("\x1b[2Jgone\x07"), r"\u{1b}[2Jgone\u{7}");
        assert_eq!(clean("\u{9b}31m"), r"\u{9b}31m");
        assert_eq!(clean("a\r\nb\tc"), "a  b c");
    }

    #[test]
    fn text_that_hides_or_turns_is_shown() {
        assert_eq!(clean("safe\u{202e}cod.exe"), r"safe\u{202e}cod.exe");
        assert_eq!(clean("ex\u{200b}ample"), r"ex\u{200b}ample");
    }

    #[test]
    fn endless_text_is_cut() {
        let long = "x".repeat(5_000);
        let cleaned = clean(&long);
        assert_eq!(cleaned.len(), 2_003);
        assert!(cleaned.ends_with("..."));
    }

    #[test]
    fn nothing_harmful_is_left_of_any_character() {
        for c in ('\0'..=char::MAX).step_by(1) {
            assert!(!clean(c.encode_utf8(&mut [0; 4])).chars().any(is_harmful), "{c:?}");
        }
    }
}
