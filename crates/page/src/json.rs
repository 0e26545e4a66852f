//! What every JSON document has, and the document of captures; a document as text.

mod capture;

use std::io;

use fullpipe_diagnose::Diagnosis;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clean::is_harmful;

pub use capture::{Captures, captures, too_little};

/// The name and version of the schema, in every document.
pub const SCHEMA: &str = "fullpipe/2";

/// The word that stands for a value in documents; `None` where it is no word.
pub fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// `body` with `schema` and `command` before everything else.
pub fn document(command: &str, body: Value) -> Value {
    let mut whole = json!({ "schema": SCHEMA, "command": command });
    if let (Value::Object(whole), Value::Object(body)) = (&mut whole, body) {
        whole.extend(body);
    }
    whole
}

/// A verdict with all that it rests on.
pub fn diagnosis(diagnosis: &Diagnosis) -> Value {
    json!({
        "limiter": diagnosis.limiter,
        "detail": diagnosis.detail,
        "share": diagnosis.share,
        "attainable_bps": diagnosis.attainable_bps,
        "confidence": diagnosis.confidence,
        "or": diagnosis.or,
        "shares": diagnosis.shares,
        "evidence": diagnosis.evidence.iter().map(|evidence| json!({
            "text": evidence.text, "from_us": evidence.from_us, "to_us": evidence.to_us, "first_packet": evidence.packets.map(|[first, _]| first), "last_packet": evidence.packets.map(|[_, last]| last),
        })).collect::<Vec<_>>(),
        "blind": diagnosis.blind,
        "action": diagnosis.action,
    })
}

/// The document as text with a line break at its end.
///
/// Characters that a terminal would obey (DEL, C1, those that turn the writing direction) are escaped, although JSON
/// wouldn't demand it: the value is the same, and a terminal is safe.
pub fn to_string(document: &Value) -> String {
    let mut text = Vec::new();
    write(document, &mut text).expect("a JSON value always serialises into memory");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Writes what [`to_string`] gives, as it comes.
///
/// # Errors
/// `into` can't be written.
pub fn write(document: &impl Serialize, mut into: impl io::Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut into, Safe::default());
    document.serialize(&mut serializer)?;
    into.write_all(b"\n")
}

/// The document as one line with its line break, escaped as [`to_string`] does.
pub fn to_line(document: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, SafeLine);
    document.serialize(&mut serializer).expect("a JSON value always serialises into memory");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Writes `fragment` with everything harmful escaped.
fn write_safely<W: ?Sized + io::Write>(writer: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    while let Some((at, harmful)) = rest.char_indices().find(|(_, c)| is_harmful(*c)) {
        writer.write_all(&rest.as_bytes()[..at])?;
        for unit in harmful.encode_utf16(&mut [0; 2]) {
            write!(writer, "\\u{unit:04x}")?;
        }
        rest = &rest[at + harmful.len_utf8()..];
    }
    writer.write_all(rest.as_bytes())
}

/// No space at all, and everything harmful escaped.
struct SafeLine;

impl serde_json::ser::Formatter for SafeLine {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_safely(writer, fragment)
    }
}

/// Two-space indentation, and everything harmful escaped.
#[derive(Default)]
struct Safe {
    pretty: serde_json::ser::PrettyFormatter<'static>,
}

impl serde_json::ser::Formatter for Safe {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_safely(writer, fragment)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
