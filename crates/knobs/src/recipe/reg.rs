//! Registry files, version 4 (`REGEDIT4`) and version 5.

use super::{Action, Problem, Step};
use crate::{Address, Catalogue, Family};

/// The longest name of a key that is read, in bytes. Windows' keys are a few hundred characters long with their path.
const LONGEST_KEY: usize = 4096;

/// Bytes that are no registry file's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Half a character at the end.
    #[error("decode the file: it is UTF-16 and ends in the middle of a character, at byte {at}; it was cut off")]
    CutOff {
        /// Where, in bytes.
        at: usize,
    },
    /// Code units that are no characters.
    #[error(
        "decode the file: it is UTF-16, but byte {at} begins no character; it was damaged or mixed with another file"
    )]
    Surrogate {
        /// Where, in bytes.
        at: usize,
    },
}

/// The text of a file of unknown encoding: UTF-16 by its byte-order mark, else UTF-8, else the ANSI code page of western
/// Windows (of which only names that don't matter here need more than ASCII).
pub fn decode(bytes: &[u8]) -> Result<String, DecodeError> {
    let (little, rest) = match bytes {
        [0xff, 0xfe, rest @ ..] => (true, rest),
        [0xfe, 0xff, rest @ ..] => (false, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => return Ok(ansi_or_utf8(rest)),
        _ => return Ok(ansi_or_utf8(bytes)),
    };
    let (pairs, tail) = rest.as_chunks::<2>();
    if !tail.is_empty() {
        return Err(DecodeError::CutOff { at: bytes.len() - 1 });
    }
    let units = pairs.iter().map(|pair| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) });
    let mut text = String::new();
    let mut at = 2;
    for found in char::decode_utf16(units) {
        let found = found.map_err(|_| DecodeError::Surrogate { at })?;
        at += found.len_utf16() * 2;
        text.push(found);
    }
    Ok(text)
}

fn ansi_or_utf8(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let mut reader = Reader::default();
    let text = text.trim_start_matches('\u{feff}');
    let last = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let mut lines = (1..).zip(text.lines());
    let mut headed = false;
    while let Some((number, raw)) = lines.next() {
        let mut line = raw.trim().to_owned();
        // A value of bytes may go on over several lines.
        while line.ends_with('\\') && !line.starts_with('[') {
            line.pop();
            let Some((_, next)) = lines.next() else {
                reader.problem(number, raw, "the line goes on, but the file ends");
                break;
            };
            line.push_str(next.trim());
        }
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        if !headed {
            headed = true;
            if line == "REGEDIT4" || line == "Windows Registry Editor Version 5.00" {
                continue;
            }
            reader.problem(number, raw, "the file begins neither with `REGEDIT4` nor with `Windows Registry Editor Version 5.00`; regedit refuses it");
        }
        if number == last && !text.ends_with('\n') && is_cut(&line) {
            reader.problem(number, raw, "the file ends within this value: it looks cut off; export it once more");
            continue;
        }
        reader.line(number, raw, &line);
    }
    // What can't be read at the very end of a file is more likely a copy that stopped than a mistake.
    if let Some(problem) = reader.problems.last_mut()
        && problem.line == last
        && !text.ends_with('\n')
        && !problem.message.contains("cut off")
    {
        problem.message.push_str("; the file ends there and looks cut off: export it once more");
    }
    (reader.steps, reader.problems)
}

/// The keys that a file has, in short.
pub(crate) fn keys(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    headings.filter(|key| key.len() <= LONGEST_KEY && !key.starts_with('-')).map(short_key).collect()
}

/// Whether a last line without an end stops short: an export has eight digits of a dword and two of each byte. What people
/// write by hand may have fewer digits, and ends its line.
fn is_cut(line: &str) -> bool {
    let digits = |text: &str| text.bytes().rev().take_while(u8::is_ascii_hexdigit).count();
    match line.rsplit_once("=dword:") {
        Some((_, number)) => !number.contains(';') && digits(number) < 8,
        None => line.contains("=hex") && digits(line) != 2,
    }
}

#[derive(Default)]
struct Reader {
    key: Option<String>,
    steps: Vec<Step>,
    problems: Vec<Problem>,
}

impl Reader {
    fn problem(&mut self, line: u32, raw: &str, message: &str) {
        let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
        let column = u32::try_from(indent).unwrap_or(u32::MAX).saturating_add(1);
        self.problems.push(Problem { line, column, message: message.to_owned() });
    }

    fn line(&mut self, number: u32, raw: &str, line: &str) {
        if let Some(rest) = line.strip_prefix('[') {
            match rest.strip_suffix(']') {
                // Its name is kept for each value below it.
                Some(key) if key.len() > LONGEST_KEY => {
                    self.key = None;
                    self.problem(number, raw, "the key's name is longer than any key of the registry");
                }
                // A key that is deleted whole holds no values to judge.
                Some(key) if key.starts_with('-') => self.key = None,
                Some(key) => self.key = Some(short_key(key)),
                None => {
                    self.key = None;
                    self.problem(number, raw, "the key's `[` is not closed by `]`");
                }
            }
            return;
        }
        let Some((name, data)) = value_line(line) else {
            self.problem(number, raw, "neither a key in brackets nor a line \"name\"=value");
            return;
        };
        let Some(key) = self.key.clone() else {
            self.problem(number, raw, "a value before any key, or below a key that is deleted");
            return;
        };
        // The default value of a key (`@`) sets nothing of TCP.
        let Some(value) = name else { return };
        let address = Address::Registry { key, value };
        match data_text(data) {
            Ok(Some(text)) => self.steps.push(Step::new(number, Action::Set(address, text))),
            Ok(None) => self.steps.push(Step::new(number, Action::Delete(address))),
            Err(message) => self.problem(number, raw, message),
        }
    }
}

/// `"name"=data` or `@=data`; the name of `@` is `None`.
fn value_line(line: &str) -> Option<(Option<String>, &str)> {
    if let Some(data) = line.strip_prefix('@') {
        return Some((None, data.trim_start().strip_prefix('=')?.trim()));
    }
    let (name, rest) = unquoted(line.strip_prefix('"')?)?;
    let data = rest.trim_start().strip_prefix('=')?;
    (!name.is_empty()).then_some((Some(name), data.trim()))
}

/// The text behind an opening quotation mark up to the closing one, without its escapes, and what follows.
pub(crate) fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => text.push(characters.next()?.1),
            '"' => return Some((text, quoted.get(at + 1..)?)),
            _ => text.push(c),
        }
    }
    None
}

/// A `REG_SZ` as settings tell it: in quotation marks, so that a text of digits is never taken for a `REG_DWORD`.
pub(super) fn text_value(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}

/// A value as a number, a text in quotation marks or bytes; `None` where it is deleted.
fn data_text(data: &str) -> Result<Option<String>, &'static str> {
    if data == "-" {
        return Ok(None);
    }
    if let Some(digits) = data.strip_prefix("dword:") {
        let digits = digits.split(';').next().unwrap_or(digits).trim();
        let value = u32::from_str_radix(digits, 16).map_err(|_| "a dword is up to eight hexadecimal digits")?;
        return Ok(Some(value.to_string()));
    }
    if let Some(quoted) = data.strip_prefix('"') {
        let (text, rest) = unquoted(quoted).ok_or("the text's quotation is not closed")?;
        return if rest.trim().is_empty() {
            Ok(Some(text_value(&text)))
        } else {
            Err("something follows the text's quotation")
        };
    }
    if data.starts_with("hex") && data.contains(':') {
        return Ok(Some(data.to_owned()));
    }
    Err("the value is neither dword:, hex:, a quoted text nor `-`")
}

/// A key with its root in short and the current control set by its usual name.
pub(super) fn short_key(key: &str) -> String {
    let key = key.trim().trim_end_matches('\\');
    let roots = [("HKEY_LOCAL_MACHINE", "HKLM"), ("HKEY_CURRENT_USER", "HKCU"), ("HKLM:", "HKLM"), ("HKCU:", "HKCU")];
    let (root, rest) = key.split_once('\\').unwrap_or((key, ""));
    let root = roots.iter().find(|(long, _)| long.eq_ignore_ascii_case(root)).map_or(root, |(_, short)| *short);
    let parts = rest.split('\\').map(|part| {
        // The variable of a loop over all adapters, or all of them at once.
        if part.starts_with(['%', '$', '!']) || part == "*" {
            return "{GUID}";
        }
        let numbered = part.len() == 13 && part.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("ControlSet"));
        if numbered { "CurrentControlSet" } else { part }
    });
    std::iter::once(root).chain(parts).collect::<Vec<_>>().join("\\")
}

/// The key of a value. One that only a running script knows (`%%i`, `$_.PSPath`) is told by the value: a loop goes over the
/// adapters.
pub(super) fn key_of_value(key: &str, value: &str) -> String {
    let key = key.rsplit("Registry::").next().unwrap_or(key).trim_start_matches('\\');
    let catalogue = Catalogue::for_family(Family::Windows).filter(|_| key.starts_with(['%', '$', '!']));
    let rows = || catalogue.into_iter().flat_map(|catalogue| &catalogue.knobs);
    let keys = || {
        rows().filter_map(|row| match &row.address {
            Address::Registry { key, value: name } if name.eq_ignore_ascii_case(value) => Some(key),
            _ => None,
        })
    };
    let known = keys().find(|key| key.contains("{GUID}")).or_else(|| keys().next());
    known.map_or_else(|| short_key(key), Clone::clone)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "Windows Registry Editor Version 5.00\r\n\r\n; window\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\ControlSet001\\Services\\Tcpip\\Parameters]\r\n\"TcpWindowSize\"=dword:0000faf0\r\n\"Tcp1323Opts\"=-\r\n\"Bytes\"=hex:01,\\\r\n  02\r\n";

    fn address(value: &str) -> Address {
        let key = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters".to_owned();
        Address::Registry { key, value: value.to_owned() }
    }

    #[test]
    fn reads_values_deletions_and_lines_that_go_on() {
        let (steps, problems) = read(FILE);
        assert_eq!(problems, []);
        assert_eq!(
            steps,
            [
                Step::new(5, Action::Set(address("TcpWindowSize"), "64240".to_owned())),
                Step::new(6, Action::Delete(address("Tcp1323Opts"))),
                Step::new(7, Action::Set(address("Bytes"), "hex:01,02".to_owned())),
            ]
        );
    }

    #[test]
    fn a_text_keeps_its_type_and_loses_its_escapes() {
        for (data, expected) in [
            (r#""5""#, Ok(r#""5""#)),
            (r#""C:\\Temp \"x\"""#, Ok(r#""C:\\Temp \"x\"""#)),
            (r#""a\b""#, Ok(r#""ab""#)),
            (r#""""#, Ok(r#""""#)),
            (r#""open"#, Err("the text's quotation is not closed")),
            (r#""open\""#, Err("the text's quotation is not closed")),
            (r#""a" b"#, Err("something follows the text's quotation")),
        ] {
            assert_eq!(data_text(data), expected.map(|text| Some(text.to_owned())), "{data}");
        }
        let inside = |text: &str| unquoted(text_value(text).strip_prefix('"').unwrap()).map(|(text, _)| text);
        for text in ["", "5", r"\", r#""\""#, "ä\\\"ö"] {
            assert_eq!(inside(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn both_encodings_say_the_same() {
        let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(FILE.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(decode(&utf16).as_deref(), Ok(FILE));
        assert_eq!(decode(FILE.as_bytes()).as_deref(), Ok(FILE));
        assert_eq!(decode(b"\"Gr\xf6\xdfe\"").as_deref(), Ok("\"Größe\""));
        assert_eq!(decode(&utf16[..utf16.len() - 1]), Err(DecodeError::CutOff { at: utf16.len() - 2 }));
        assert_eq!(decode(&[0xff, 0xfe, 0x00, 0xd8, 0x41, 0x00]), Err(DecodeError::Surrogate { at: 2 }));
    }

    #[test]
    fn a_damaged_line_is_a_problem_with_its_place() {
        let text =
            "REGEDIT4\n[HKEY_LOCAL_MACHINE\\X\n[HKEY_LOCAL_MACHINE\\X]\n  \"A\"=dword:zz\n\"B\"=5\nfoo\n\"C\"=\"open\n";
        let (steps, problems) = read(text);
        assert_eq!(steps, []);
        let places: Vec<(u32, u32)> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
        assert_eq!(places, [(2, 1), (4, 3), (5, 1), (6, 1), (7, 1)]);
    }

    #[test]
    fn a_value_that_the_end_of_the_file_cuts_off_is_no_value() {
        let head = "REGEDIT4\n[HKEY_LOCAL_MACHINE\\X]\n\"A\"=dword:00000001\n";
        for (end, whole) in [
            ("\"B\"=dword:0001", false),
            ("\"B\"=dword:", false),
            ("\"B\"=hex:01,0", false),
            ("\"B\"=dword:0001\n", true),
            ("\"B\"=dword:0000ffff", true),
            ("\"B\"=hex(b):01,02", true),
        ] {
            let (steps, problems) = read(&format!("{head}{end}"));
            assert_eq!((steps.len(), problems.len()), if whole { (2, 0) } else { (1, 1) }, "{end}");
            assert!(problems.iter().all(|problem| problem.line == 4), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes: Vec<u8>) {
            if let Ok(text) = decode(&bytes) {
                read(&text);
            }
        }

        #[test]
        fn any_lines_are_read_without_a_panic(text in "(\\[|\\]|\"|=|-|;|@|dword:|hex:|\\\\|[A-F0-9]|\n){0,40}") {
            let (steps, _) = read(&format!("REGEDIT4\n[HKLM\\X]\n{text}"));
            prop_assert!(steps.len() <= text.lines().count());
        }
    }
}
