//! A page of text: labelled paragraphs, wrapped to a width, with a few styles.
//!
//! Everything that is put on a page is cleaned first, so that only the page's own styles reach the terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};
pub(crate) use fullpipe_page::percent;

use crate::clean;

/// How a page shall look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns; text is wrapped to this, at least 40 and at most 110.
    pub width: usize,
    /// Whether the terminal shows more than ASCII.
    pub unicode: bool,
    /// Whether small charts may stand in it: a terminal shows it, and it shows more than ASCII.
    pub draws: bool,
    /// Whether to show everything that is known instead of the main points.
    pub verbose: bool,
}

impl Default for Look {
    /// 80 columns of ASCII with the main points.
    fn default() -> Self {
        Self { width: 80, unicode: false, draws: false, verbose: false }
    }
}

/// Section titles.
pub(crate) const TITLE: Style = Style::new().bold();
/// Labels and what matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What needs attention.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// What went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Names of settings.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// No style at all.
pub(crate) const PLAIN: Style = Style::new();

/// Columns that a label takes, with the space behind it.
const LABEL: usize = 12;

/// Text under construction.
pub(crate) struct Page {
    pub(crate) look: Look,
    text: String,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(look: Look) -> Self {
        Self { look: Look { width: look.width.clamp(40, 110), ..look }, text: String::new() }
    }

    /// The finished text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// An empty line, unless the page is empty or has one.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A section's title with its main statement.
    pub(crate) fn title(&mut self, title: &str, style: Style, statement: &str) {
        self.gap();
        let title = clean(title);
        let indent = title.chars().count() + 2;
        self.text += &styled(TITLE, &title);
        self.text += "  ";
        self.continued(style, statement, indent, if indent > LABEL * 2 { 2 } else { indent });
    }

    /// An entry of a list: its name, padded to the widest, and a paragraph.
    pub(crate) fn entry(&mut self, name: &str, widest: usize, text: &str) {
        let name = clean(name);
        self.text += &styled(TITLE, &name);
        self.text += &" ".repeat((widest + 2).saturating_sub(name.chars().count()).max(1));
        self.wrapped(PLAIN, text, widest + 2);
    }

    /// A paragraph behind a word and a colon: `error: ...`.
    pub(crate) fn marked(&mut self, mark: &str, style: Style, text: &str) {
        self.text += &styled(style, mark);
        self.text += ": ";
        self.wrapped(PLAIN, text, mark.chars().count() + 2);
    }

    /// A paragraph without a label, all of it indented.
    pub(crate) fn paragraph(&mut self, indent: usize, style: Style, text: &str) {
        self.text += &" ".repeat(indent);
        self.wrapped(style, text, indent);
    }

    /// A labelled paragraph, indented under its section.
    pub(crate) fn field(&mut self, label: &str, text: &str) {
        self.styled_field(label, PLAIN, text);
    }

    /// A labelled paragraph in a style.
    pub(crate) fn styled_field(&mut self, label: &str, style: Style, text: &str) {
        self.label(2, label);
        self.wrapped(style, text, 2 + LABEL);
    }

    /// A label with pieces behind it, each in its own style.
    pub(crate) fn pieces_field(&mut self, label: &str, pieces: &[(Style, &str)]) {
        self.label(2, label);
        self.flow(2 + LABEL, 2 + LABEL, pieces);
    }

    /// A labelled line one level deeper that is not wrapped, because it is there to be copied.
    pub(crate) fn command(&mut self, label: &str, text: &str) {
        self.label(5, label);
        self.pieces(0, &[(PLAIN, text)]);
    }

    /// A labelled paragraph one level deeper.
    pub(crate) fn subfield(&mut self, label: &str, text: &str) {
        self.label(5, label);
        self.wrapped(PLAIN, text, 5 + LABEL);
    }

    /// A line made of pieces, each in its own style; not wrapped, as a row of a table.
    pub(crate) fn pieces(&mut self, indent: usize, pieces: &[(Style, &str)]) {
        self.text += &" ".repeat(indent);
        for (style, piece) in pieces {
            self.text += &styled(*style, &clean(piece));
        }
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
    }

    /// As [`Page::pieces`]; where it is too long it goes on further in, at a blank between two pieces, or within one that is too
    /// long itself.
    pub(crate) fn sentence(&mut self, indent: usize, pieces: &[(Style, &str)]) {
        self.text += &" ".repeat(indent);
        self.flow(indent, indent + 4, pieces);
    }

    /// Ends a line that reaches up to column `used` with pieces; further lines are indented by `indent`.
    fn flow(&mut self, mut used: usize, indent: usize, pieces: &[(Style, &str)]) {
        let width = self.look.width.max(indent + 20);
        let mut blanks = 0;
        let mut is_begun = false;
        for (style, piece) in pieces {
            let piece = clean(piece);
            let whole = piece.trim();
            let is_long = indent + whole.chars().count() > width;
            // A piece that fits into a line stays in one.
            let parts: Vec<&str> = if is_long { whole.split(' ').collect() } else { vec![whole] };
            blanks += piece.len() - piece.trim_start().len();
            for (index, part) in parts.into_iter().enumerate() {
                blanks += usize::from(index > 0);
                let length = part.chars().count();
                if is_begun && blanks > 0 && length > 0 && used + blanks + length > width {
                    self.text.push('\n');
                    self.text += &" ".repeat(indent);
                    (used, blanks) = (indent, 0);
                }
                if length > 0 {
                    self.text += &" ".repeat(blanks);
                    self.text += &styled(*style, part);
                    used += blanks + length;
                    (blanks, is_begun) = (0, true);
                }
            }
            blanks += if whole.is_empty() { 0 } else { piece.len() - piece.trim_end().len() };
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn label(&mut self, indent: usize, label: &str) {
        let padding = LABEL.saturating_sub(label.chars().count()).max(1);
        self.text += &" ".repeat(indent);
        self.text += &styled(DIM, label);
        self.text += &" ".repeat(padding);
    }

    /// Ends a line that has been begun and reaches up to column `indent`; further lines are indented by `indent`.
    fn wrapped(&mut self, style: Style, text: &str, indent: usize) {
        self.continued(style, text, indent, indent);
    }

    /// Ends a line that reaches up to column `used`; further lines are indented by `indent`.
    fn continued(&mut self, style: Style, text: &str, used: usize, indent: usize) {
        let text = clean(text);
        let width = self.look.width.saturating_sub(indent).max(20);
        let first = if used > indent { self.look.width.saturating_sub(used) } else { width };
        let mut lines = wrap(&text, first, width).into_iter();
        if let Some(first) = lines.next() {
            self.text += &styled(style, &first);
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
        for line in lines {
            self.text += &" ".repeat(indent);
            self.text += &styled(style, &line);
            self.text.push('\n');
        }
    }
}

/// `text` in `style`.
fn styled(style: Style, text: &str) -> String {
    if style == PLAIN || text.is_empty() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// Breaks at spaces, but not behind a number, which belongs to its unit; a word that is too long (a path, a command)
/// stays whole, so that it can be copied. The first line has `first` columns; what does not fit there begins on the next.
fn wrap(text: &str, first: usize, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for chunk in chunks(text) {
        let length = chunk.chars().count();
        let is_first = lines.len() == 1;
        let room = if is_first { first } else { width };
        let is_begun = used > 0 || (is_first && first < width);
        if is_begun && used + usize::from(used > 0) + length > room {
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("there is always a last line");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&chunk);
        used += length;
    }
    lines
}

/// Words, each number together with the word behind it.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut after_number = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match chunks.last_mut().filter(|_| after_number) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => chunks.push(word.to_owned()),
        }
        // A list of numbers is no quantity: only the first takes a companion.
        after_number = !after_number && word.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'.');
    }
    chunks
}

/// `value` or a dash.
pub(crate) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A setting's value, with a word for "absent".
pub(crate) fn value_or_absent(value: Option<&str>) -> String {
    match value {
        None => "(absent)".to_owned(),
        Some("") => "(empty)".to_owned(),
        // The kernel separates triples by tabs.
        Some(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// `1 change`, `2 changes`.
pub(crate) fn count(number: usize, one: &str) -> String {
    counted(number as u64, one)
}

/// As [`count`].
pub(crate) fn counted(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// A bar of at most `cells` for a fraction from 0 to 1.
pub(crate) fn bar(fraction: f64, cells: usize, unicode: bool) -> String {
    let fraction = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
    // Eighths of a cell; at most 8 * cells, so the cast can't truncate.
    let eighths = (fraction * cells as f64 * 8.0).round() as usize;
    if unicode {
        let parts = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"];
        "\u{2588}".repeat(eighths / 8) + parts[eighths % 8]
    } else {
        "#".repeat((eighths + 4) / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paragraphs_are_wrapped_and_hang_under_their_first_line() {
        let mut page = Page::new(Look { width: 40, ..Look::default() });
        page.field("because", "one two three four five six seven eight nine ten");
        let text = anstream_free(&page.finish());
        assert_eq!(text, "  because     one two three four five\n              six seven eight nine ten\n");
    }

    #[test]
    fn a_line_of_pieces_goes_on_further_in_and_keeps_each_piece_whole() {
        let mut page = Page::new(Look { width: 40, ..Look::default() });
        let value = "4096 131072 33554432";
        page.sentence(
            2,
            &[(DIM, "1. "), (NAME, "net.ipv4.tcp_rmem"), (PLAIN, "  "), (DIM, value), (PLAIN, " -> "), (GOOD, value)],
        );
        page.sentence(2, &[(PLAIN, "a"), (PLAIN, "b"), (PLAIN, " one two three four five six seven eight nine")]);
        page.pieces_field("changed", &[(NAME, "a.name"), (PLAIN, "  a value that is longer than a line")]);
        page.command("do", "netsh interface tcp set global autotuninglevel=normal");
        assert_eq!(
            anstream_free(&page.finish()),
            "  1. net.ipv4.tcp_rmem\n      4096 131072 33554432 ->\n      4096 131072 33554432\n  ab one two three four five six seven\n      eight nine\n  \
             changed     a.name  a value that is\n              longer than a line\n     do          netsh interface tcp set global \
             autotuninglevel=normal\n"
        );
    }

    #[test]
    fn a_statement_behind_a_long_title_keeps_to_the_width_from_its_first_line_on() {
        for (title, lines) in [("2001:db8::1 port 5201 -> 2001:db8::2", 3), ("x".repeat(58).as_str(), 3)] {
            let mut page = Page::new(Look { width: 60, ..Look::default() });
            page.title(
                title,
                PLAIN,
                "limited by: congestion window (loss), 87 % of the time, and so on until it wraps once more",
            );
            let text = anstream_free(&page.finish());
            assert!(text.lines().all(|line| line.chars().count() <= 60) && text.lines().count() == lines, "{text}");
        }
    }

    #[test]
    fn words_that_are_too_long_stay_whole() {
        assert_eq!(wrap("a /a/very/long/path b", 6, 6), ["a", "/a/very/long/path", "b"]);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(wrap("a window of 65,535 B or more", 14, 14), ["a window of", "65,535 B or", "more"]);
        assert_eq!(wrap("4096 87380 129024 1", 10, 10), ["4096 87380", "129024 1"]);
    }

    #[test]
    fn text_from_elsewhere_can_not_style_the_page() {
        let mut page = Page::new(Look::default());
        page.field("name", "\x1b[31mred\nfake      line");
        page.title("\x1b]0;title\x07", BAD, "\x1b[2J");
        page.pieces(0, &[(PLAIN, "\x1b[5m")]);
        let text = anstream_free(&page.finish());
        assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text:?}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn bars_and_percents_keep_the_extremes_honest() {
        assert_eq!(bar(0.5, 10, false), "#####");
        assert_eq!(bar(f64::NAN, 10, false), "");
        assert_eq!(bar(7.0, 2, true), "\u{2588}\u{2588}");
        assert_eq!(percent(0.004), "< 1 %");
        assert_eq!(percent(0.997), "99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
    }

    fn anstream_free(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }
}
