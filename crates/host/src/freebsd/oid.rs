//! The value of a sysctl as the kernel passes it, and its text. What is *not* here: the system call (`system.rs`).

/// A sysctl: its kind (type and flags, as sysctl(9) has them) and its bytes in the machine's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oid {
    /// `CTLTYPE_*` in the lowest four bits, and `CTLFLAG_*`.
    pub kind: u32,
    /// The value.
    pub bytes: Vec<u8>,
}

/// `CTLTYPE_STRING`, of FreeBSD and of macOS (sys/sysctl.h).
const STRING: u32 = 3;
/// The types that are signed numbers: int, s64 (macOS' quad), long, s8, s16, s32 (sys/sysctl.h).
const SIGNED: [u32; 6] = [2, 4, 7, 0xc, 0xd, 0xe];
/// The types that are unsigned numbers: uint, ulong, u64, u8, u16, u32 (sys/sysctl.h).
const UNSIGNED: [u32; 6] = [6, 8, 9, 0xa, 0xb, 0xf];
/// `CTLFLAG_WR` (sys/sysctl.h).
const WRITABLE: u32 = 0x4000_0000;
/// `CTLFLAG_TUN` (sys/sysctl.h of FreeBSD).
const TUNABLE: u32 = 0x0008_0000;

impl Oid {
    /// `CTLTYPE_*`.
    fn type_number(&self) -> u32 {
        self.kind & 0xf
    }

    /// The kernel takes writes of it.
    pub fn is_writable(&self) -> bool {
        self.kind & WRITABLE != 0
    }

    /// The loader can set it at the start of the system.
    pub fn is_tunable(&self) -> bool {
        self.kind & TUNABLE != 0
    }

    /// The value as text; `None` for what is no single number or text.
    pub fn text(&self) -> Option<String> {
        if self.type_number() == STRING {
            let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
            let text = String::from_utf8_lossy(self.bytes.get(..end)?);
            return Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        if SIGNED.contains(&self.type_number()) {
            return match self.bytes.as_slice() {
                [a] => Some(a.cast_signed().to_string()),
                [a, b] => Some(i16::from_ne_bytes([*a, *b]).to_string()),
                [a, b, c, d] => Some(i32::from_ne_bytes([*a, *b, *c, *d]).to_string()),
                bytes => Some(i64::from_ne_bytes(bytes.try_into().ok()?).to_string()),
            };
        }
        self.unsigned().filter(|_| UNSIGNED.contains(&self.type_number())).map(|number| number.to_string())
    }

    /// The bytes as an unsigned number.
    pub(super) fn unsigned(&self) -> Option<u64> {
        match self.bytes.as_slice() {
            [a] => Some(u64::from(*a)),
            [a, b] => Some(u64::from(u16::from_ne_bytes([*a, *b]))),
            [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([*a, *b, *c, *d]))),
            bytes => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }

    /// The bytes of another value of the same type and size; an error tells what was expected.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, &'static str> {
        let signed = SIGNED.contains(&self.type_number());
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => text.parse::<i128>().ok(),
        };
        if self.type_number() == STRING {
            // Without a closing zero, as sysctl(8) does: the kernel adds it.
            return if text.contains('\0') { Err("a text without a zero byte") } else { Ok(text.as_bytes().to_vec()) };
        }
        if !signed && !UNSIGNED.contains(&self.type_number()) {
            return Err("nothing: this sysctl is no single number or text");
        }
        let number = number(text).ok_or("a whole number")?;
        let fits = "a whole number that fits its type";
        match (self.bytes.len(), signed) {
            (1, true) => i8::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (1, false) => u8::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (2, true) => i16::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (2, false) => u16::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (4, true) => i32::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (4, false) => u32::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (8, true) => i64::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            (8, false) => u64::try_from(number).map(|n| n.to_ne_bytes().to_vec()),
            _ => return Err("nothing: this sysctl is no single number or text"),
        }
        .map_err(|_| fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_reads_and_writes_in_its_size() {
        for (kind, size, text) in [
            (2, 4, "-1"),
            (2, 4, "2097152"),
            (6, 4, "4294967295"),
            (7, 8, "-9"),
            (8, 8, "18446744073709551615"),
            (0xa, 1, "255"),
            (0xd, 2, "-300"),
        ] {
            let oid = Oid { kind: WRITABLE | kind, bytes: vec![0; size] };
            let bytes = oid.encode(text).expect("fits");
            assert_eq!((bytes.len(), Oid { bytes, ..oid }.text().as_deref()), (size, Some(text)));
        }
        let algorithm = Oid { kind: 3, bytes: b"newreno\0junk".to_vec() };
        assert_eq!(algorithm.text().as_deref(), Some("newreno"));
        assert_eq!(algorithm.encode("cubic").as_deref(), Ok(&b"cubic"[..]));
    }

    #[test]
    fn what_does_not_fit_or_is_no_value_is_refused() {
        let int = Oid { kind: 2, bytes: vec![0; 4] };
        for text in ["2147483648", "", "many", "1.5", "-0x1"] {
            int.encode(text).expect_err(text);
        }
        let structure = Oid { kind: 5, bytes: vec![0; 16] };
        assert_eq!(structure.text(), None);
        structure.encode("1").expect_err("no number");
        assert_eq!(Oid { kind: 2, bytes: vec![0; 3] }.text(), None);
    }
}
