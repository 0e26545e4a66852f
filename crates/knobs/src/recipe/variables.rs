//! Variables of scripts, put in where their values are known.

/// The longest text of a variable, and the longest word that variables are put into, in bytes.
pub(super) const LONGEST: usize = 4096;

/// `text`, where each of `signs` begins a variable: `variable` gets what stands from there on, and says how many bytes of it
/// are the variable (at least the sign itself) and what takes their place; with `None` they stay.
pub(super) fn put_in(text: &str, signs: &[char], variable: impl Fn(&str) -> (usize, Option<String>)) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(signs).filter(|_| whole.len() <= LONGEST) {
        let (before, from) = rest.split_at(at);
        let (length, value) = variable(from);
        let (itself, after) = from.split_at(length);
        whole.push_str(before);
        whole.push_str(value.as_deref().unwrap_or(itself));
        rest = after;
    }
    whole.push_str(rest);
    whole
}

/// Whether a text is a name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_of_name)
}

/// Whether a name goes on with it.
pub(super) const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
