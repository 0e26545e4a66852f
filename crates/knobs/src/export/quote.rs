//! Quoting: how a text from outside is written in each language that an export speaks. One type for each language.
//!
//! What a language can't hold safely is refused and never altered: an altered value would be another value. Comments
//! are for people and are made harmless instead.

/// Why a text can't be written in a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit(pub(super) &'static str);

/// A language that literals and comments are written in.
pub(super) trait Language {
    /// The text as one literal (or one bare word) that means exactly this text.
    fn literal(text: &str) -> Result<String, Unfit>;
    /// The text as the inside of a one-line comment.
    fn comment(text: &str) -> String;
}

/// The POSIX shell.
pub(super) struct Sh;
/// Windows PowerShell 2 and later.
pub(super) struct PowerShell;
/// Windows' cmd.exe, in the code page of whoever runs it: ASCII only.
pub(super) struct Batch;
/// A `.reg` file.
pub(super) struct Reg;
/// A Windows `.inf` file.
pub(super) struct Inf;
/// `sysctl.conf` and the like: `name = value` lines.
pub(super) struct Conf;
/// FreeBSD's `loader.conf` and `rc.conf`: assignments that a shell and the boot loader read.
pub(super) struct RcConf;
/// systemd's unit and network files.
pub(super) struct Ini;
/// C and its preprocessor: bare identifiers and numbers.
pub(super) struct C;

/// A text in one line, without what moves the cursor or turns the reading direction.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect()
}

/// Whether a character ends a line, controls a terminal or reorders what is shown.
fn breaks(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn plain(text: &str) -> Result<&str, Unfit> {
    if text.chars().any(breaks) { Err(Unfit("it has control characters or line ends")) } else { Ok(text) }
}

/// A bare word of letters, digits and `more`, which begins with a letter or digit.
fn word<'a>(text: &'a str, more: &str) -> Result<&'a str, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits) {
        return Ok(text);
    }
    Err(Unfit("only plain words fit there"))
}

/// A bare word that means the same in each of the languages: `64240`, `cubic`, `200ms`.
pub(super) fn bare(text: &str) -> Result<&str, Unfit> {
    word(text, "_-.")
}

/// The name of a network interface of a Unix system, bare.
pub(super) fn device(text: &str) -> Result<&str, Unfit> {
    let name = word(text, "_-.:@")?;
    if name.len() > 15 { Err(Unfit("a network interface's name has at most 15 characters")) } else { Ok(name) }
}

/// The dotted name of a sysctl, bare.
pub(super) fn sysctl(text: &str) -> Result<&str, Unfit> {
    word(text, "._-/")
}

impl Language for Sh {
    fn literal(text: &str) -> Result<String, Unfit> {
        Ok(format!("'{}'", plain(text)?.replace('\'', r"'\''")))
    }

    fn comment(text: &str) -> String {
        one_line(text)
    }
}

impl Language for PowerShell {
    fn literal(text: &str) -> Result<String, Unfit> {
        let mut quoted = String::from("'");
        for c in plain(text)?.chars() {
            quoted.push(c);
            // PowerShell takes the typographic single quotes for the plain one.
            if matches!(c, '\'' | '\u{2018}'..='\u{201b}') {
                quoted.push(c);
            }
        }
        quoted.push('\'');
        Ok(quoted)
    }

    fn comment(text: &str) -> String {
        one_line(text)
    }
}

impl Language for Batch {
    /// Between quotation marks, with delayed expansion off, only `%` means something.
    fn literal(text: &str) -> Result<String, Unfit> {
        let text = plain(text)?;
        if !text.is_ascii() {
            return Err(Unfit("a batch file holds ASCII safely and nothing else"));
        }
        if text.contains('"') || text.ends_with('\\') {
            return Err(Unfit("a batch file can't hold a quotation mark or end in a backslash"));
        }
        Ok(format!("\"{}\"", text.replace('%', "%%")))
    }

    /// `rem` expands variables, and operators and carets after it can act.
    fn comment(text: &str) -> String {
        let harmless = |c: char| match c {
            '&' => '+',
            '"' => '\'',
            '|' | '<' | '>' | '^' | '!' | '%' => ' ',
            c if !c.is_ascii() => '?',
            c => c,
        };
        one_line(text).replace('%', " percent").chars().map(harmless).collect()
    }
}

impl Language for Reg {
    fn literal(text: &str) -> Result<String, Unfit> {
        Ok(format!("\"{}\"", plain(text)?.replace('\\', r"\\").replace('"', "\\\"")))
    }

    fn comment(text: &str) -> String {
        unspliced(text)
    }
}

/// A comment that is one line even where a backslash at its end would join the next line to it.
fn unspliced(text: &str) -> String {
    let mut line = one_line(text);
    if line.trim_end().ends_with('\\') {
        line.push_str(" .");
    }
    line
}

impl Reg {
    /// The name of a value. A key's default value has none and is written in another way.
    pub(super) fn name(text: &str) -> Result<String, Unfit> {
        if text.is_empty() { Err(Unfit("a value without a name is not exported")) } else { Self::literal(text) }
    }

    /// A key in brackets, from its short form, with its root written out.
    pub(super) fn key(short: &str) -> Result<String, Unfit> {
        Ok(format!("[{}]", Self::long_key(short)?))
    }

    /// A key with its root written out.
    pub(super) fn long_key(short: &str) -> Result<String, Unfit> {
        let (root, rest) = plain(short)?.split_once('\\').ok_or(Unfit("it is no registry key"))?;
        if root != "HKLM" {
            return Err(Unfit("only keys below HKLM are exported"));
        }
        let hard = |part: &str| part.is_empty() || part.trim() != part || part.contains(['[', ']', '"']);
        if rest.split('\\').any(hard) {
            return Err(Unfit("a key with brackets, quotation marks or empty parts is not exported"));
        }
        Ok(format!("HKEY_LOCAL_MACHINE\\{rest}"))
    }
}

impl Language for Inf {
    /// `%` begins the name of a string there.
    fn literal(text: &str) -> Result<String, Unfit> {
        Ok(format!("\"{}\"", plain(text)?.replace('"', "\"\"").replace('%', "%%")))
    }

    fn comment(text: &str) -> String {
        unspliced(text)
    }
}

impl Language for Conf {
    /// A value to the end of its line: what is around it is not kept.
    fn literal(text: &str) -> Result<String, Unfit> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() || text.len() > 4096 {
            return Err(Unfit("a sysctl's value has 1 to 4096 bytes"));
        }
        // FreeBSD's reader cuts at `#`; no value of a TCP sysctl needs more than this.
        let fits = |c: char| c.is_ascii_alphanumeric() || " ._-+:,/".contains(c);
        if text.chars().all(fits) { Ok(text) } else { Err(Unfit("only plain words and numbers fit there")) }
    }

    fn comment(text: &str) -> String {
        one_line(text)
    }
}

impl Language for RcConf {
    fn literal(text: &str) -> Result<String, Unfit> {
        Ok(format!("\"{}\"", word(text, " ._-+:,/")?))
    }

    /// The boot loader's reader is simple: quotation marks and backslashes stay out of comments, too.
    fn comment(text: &str) -> String {
        one_line(text).replace(['"', '\\', '$', '`'], "'")
    }
}

impl Language for Ini {
    fn literal(text: &str) -> Result<String, Unfit> {
        Ok(word(text, "_-.:@")?.to_owned())
    }

    fn comment(text: &str) -> String {
        unspliced(text)
    }
}

impl Language for C {
    fn literal(text: &str) -> Result<String, Unfit> {
        let identifier = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let number = !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit());
        if identifier || (number && (text == "0" || !text.starts_with('0'))) {
            Ok(text.to_owned())
        } else {
            Err(Unfit("only identifiers and decimal numbers are written into C"))
        }
    }

    /// For the inside of `/* */`. A `?` could begin a trigraph, a backslash a splice.
    fn comment(text: &str) -> String {
        one_line(text).replace("*/", "* /").replace("/*", "/ *").replace(['\\', '?'], " ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hostile() -> impl Strategy<Value = String> {
        "([ -~]|['\"`$%^&|<>!\\\\;*/#\\n\\r\\t\u{2018}\u{2019}\u{2028}\u{202e}ä€]|\\*/|/\\*|\\$\\(x\\)){0,24}"
    }

    #[test]
    fn each_language_doubles_or_escapes_its_own_marks() {
        assert_eq!(Sh::literal("a'b$c").as_deref(), Ok(r"'a'\''b$c'"));
        assert_eq!(PowerShell::literal("a'b\u{2019}$c").as_deref(), Ok("'a''b\u{2019}\u{2019}$c'"));
        assert_eq!(Batch::literal("a%b&c").as_deref(), Ok("\"a%%b&c\""));
        assert_eq!(Reg::literal("a\"b\\").as_deref(), Ok("\"a\\\"b\\\\\""));
        assert_eq!(Inf::literal("a\"%b").as_deref(), Ok("\"a\"\"%%b\""));
        assert_eq!(C::comment("x */ system(0); /*"), "x * / system(0); / *");
        assert!(Batch::literal("a\"b").is_err() && Conf::literal("1; rm").is_err() && C::literal("1;").is_err());
        assert!(RcConf::literal("$(x)").is_err() && Ini::literal("a b").is_err() && device("-x").is_err());
    }

    #[test]
    fn a_key_is_written_with_its_long_root_or_refused() {
        assert_eq!(Reg::key(r"HKLM\SYSTEM\X").as_deref(), Ok(r"[HKEY_LOCAL_MACHINE\SYSTEM\X]"));
        for key in ["HKLM", r"HKCU\X", r"HKLM\A]", "HKLM\\A\n[-HKLM\\B", r"HKLM\\A"] {
            assert!(Reg::key(key).is_err(), "{key}");
        }
    }

    proptest! {
        #[test]
        fn no_literal_and_no_comment_has_a_second_line(text in hostile()) {
            let all = [
                Sh::literal(&text), PowerShell::literal(&text), Batch::literal(&text), Reg::literal(&text),
                Inf::literal(&text), Conf::literal(&text), RcConf::literal(&text), Ini::literal(&text), C::literal(&text),
            ];
            let comments = [
                Sh::comment(&text), PowerShell::comment(&text), Batch::comment(&text), Reg::comment(&text),
                Inf::comment(&text), Conf::comment(&text), RcConf::comment(&text), Ini::comment(&text), C::comment(&text),
            ];
            for written in all.into_iter().flatten().chain(comments) {
                prop_assert!(!written.chars().any(breaks), "{written:?}");
            }
        }

        #[test]
        fn a_comment_of_c_does_not_end_early(text in hostile()) {
            prop_assert!(!C::comment(&text).contains("*/"));
        }

        #[test]
        fn a_comment_of_batch_has_nothing_that_acts(text in hostile()) {
            prop_assert!(!Batch::comment(&text).contains(['%', '&', '|', '<', '>', '^', '"']));
        }
    }
}
