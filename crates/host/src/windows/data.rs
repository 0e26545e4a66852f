//! The text of a registry value, exact in its type and in each of its bytes.
//!
//! A DWORD is a decimal number; every other type is written as a `.reg` file writes it (`"text"` for REG_SZ,
//! `hex(2):..` for the type with that number), so that an undo restores the type with the value. What is *not* here: the
//! registry itself.

use std::{fmt, str::FromStr};

/// `REG_SZ`, a text (winnt.h).
pub const REG_SZ: u32 = 1;
/// `REG_BINARY` (winnt.h).
pub const REG_BINARY: u32 = 3;
/// `REG_DWORD`, 32 bits, least significant byte first (winnt.h).
pub const REG_DWORD: u32 = 4;

/// What [`RegistryData`] takes, for messages.
pub(crate) const EXPECTED: &str = "a number up to 4294967295 (REG_DWORD), a text in double quotes (REG_SZ), or the bytes \
                                   of any other type as a .reg file has them, such as hex(b):01,00,00,00,00,00,00,00";

/// A registry value: its type and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryData {
    /// The number of the type: 4 for `REG_DWORD`.
    pub kind: u32,
    /// The bytes, as the registry stores them.
    pub bytes: Vec<u8>,
}

/// A text that is no registry value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no registry value; expected {EXPECTED}")]
pub struct ParseDataError;

impl RegistryData {
    /// A `REG_DWORD`.
    pub fn dword(number: u32) -> Self {
        Self { kind: REG_DWORD, bytes: number.to_le_bytes().to_vec() }
    }

    /// A `REG_SZ` with its closing zero.
    pub fn text(text: &str) -> Self {
        Self { kind: REG_SZ, bytes: text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect() }
    }

    /// The number of a whole `REG_DWORD`.
    pub fn number(&self) -> Option<u32> {
        let bytes: [u8; 4] = self.bytes.as_slice().try_into().ok()?;
        (self.kind == REG_DWORD).then(|| u32::from_le_bytes(bytes))
    }

    /// The text of a `REG_SZ`, where writing that text makes the same bytes again.
    pub fn plain_text(&self) -> Option<String> {
        let (pairs, odd) = self.bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        let (0, text) = units.split_last().map(|(last, text)| (*last, text))? else { return None };
        let text = String::from_utf16(text).ok()?;
        (self.kind == REG_SZ && odd.is_empty() && !text.contains(char::is_control)).then_some(text)
    }
}

impl fmt::Display for RegistryData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number() {
            return write!(f, "{number}");
        }
        if let Some(text) = self.plain_text() {
            return write!(f, "\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
        }
        match self.kind {
            REG_BINARY => f.write_str("hex:")?,
            kind => write!(f, "hex({kind:x}):")?,
        }
        for (at, byte) in self.bytes.iter().enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for RegistryData {
    type Err = ParseDataError;

    fn from_str(text: &str) -> Result<Self, ParseDataError> {
        let text = text.trim();
        parse(text).ok_or(ParseDataError)
    }
}

fn parse(text: &str) -> Option<RegistryData> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("dword:"));
    if let Some(digits) = hexadecimal {
        return digits_only(digits, 16).map(RegistryData::dword);
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return unquoted(quoted).map(|text| RegistryData::text(&text));
    }
    if let Some(rest) = text.strip_prefix("hex") {
        let (kind, bytes) = rest.split_once(':')?;
        let kind = match kind {
            "" => REG_BINARY,
            kind => digits_only(kind.strip_prefix('(')?.strip_suffix(')')?, 16)?,
        };
        return Some(RegistryData { kind, bytes: bytes_of(bytes)? });
    }
    digits_only(text, 10).map(RegistryData::dword)
}

/// A number without the sign that Rust's own parser takes.
fn digits_only(text: &str, radix: u32) -> Option<u32> {
    let plain = text.chars().all(|c| c.is_digit(radix));
    if plain { u32::from_str_radix(text, radix).ok() } else { None }
}

/// The text before the closing quote, which must be the last character.
fn unquoted(quoted: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '\\' => text.push(characters.next()?),
            '"' => return (characters.next().is_none() && !text.contains(char::is_control)).then_some(text),
            c => text.push(c),
        }
    }
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|byte| digits_only(byte.trim(), 16).and_then(|byte| u8::try_from(byte).ok())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_type_has_its_own_text() {
        for (text, kind, bytes) in [
            ("65535", 4, &[0xff, 0xff, 0, 0][..]),
            ("\"65535\"", 1, &[0x36, 0, 0x35, 0, 0x35, 0, 0x33, 0, 0x35, 0, 0, 0]),
            (r#""a\"b\\c""#, 1, b"a\0\"\0b\0\\\0c\0\0\0"),
            ("hex:00,ff", 3, &[0, 0xff]),
            ("hex(b):01,00,00,00,00,00,00,00", 11, &[1, 0, 0, 0, 0, 0, 0, 0]),
            ("hex(4):01", 4, &[1]),
            ("hex(1):61,00", 1, b"a\0"),
            ("hex(7):", 7, &[]),
        ] {
            let data = RegistryData { kind, bytes: bytes.to_vec() };
            assert_eq!(data.to_string(), text);
            assert_eq!(text.parse(), Ok(data));
        }
    }

    #[test]
    fn numbers_are_taken_in_the_forms_of_recipes_and_no_others() {
        for text in ["0xFFFF", "dword:0000ffff", " 65535 "] {
            assert_eq!(text.parse(), Ok(RegistryData::dword(65_535)), "{text}");
        }
        for text in
            ["", "+1", "-1", "4294967296", "64k", "yes", "\"open", "\"a\"b", "hex", "hex(:1", "hex:1,,2", "hex:100"]
        {
            assert_eq!(text.parse::<RegistryData>(), Err(ParseDataError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_was_there_comes_back_byte_for_byte(kind in 0u32..13, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let data = RegistryData { kind, bytes };
            prop_assert_eq!(data.to_string().parse(), Ok(data));
        }

        #[test]
        fn texts_come_back_too(text in "\\PC{0,12}") {
            let data = RegistryData::text(&text);
            prop_assert_eq!(data.to_string().parse(), Ok(data));
        }

        #[test]
        fn no_text_panics(text in "(hex|\"|dword:)?(\\(b\\):)?[0-9a-f,\\\\\"]{0,10}") {
            let _data = text.parse::<RegistryData>();
        }
    }
}
