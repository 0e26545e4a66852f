//! ConvertTo-Json: every object in it, however deep, is looked at for what it says.
//!
//! A reader of our own, because each value needs its line and column, and the values are all that is wanted.

use super::{
    Place, Refusal,
    scan::Scan,
    sheet::Sheet,
    windows::{self, Form, Property},
};
use crate::Family;

const FORM: Form = Form { is: "JSON", way_out: "save it with: Get-NetTCPSetting | ConvertTo-Json" };

/// How deep objects may lie in one another. ConvertTo-Json's own limit is 100, and its default 2.
const DEEPEST: usize = 100;

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    let mut reader = Reader { scan: Scan::new(text), sheet, objects: 0 };
    reader.scan.skip_spaces();
    // Several outputs may follow one another in one file.
    while !reader.scan.rest().is_empty() {
        reader.value(0)?;
        reader.scan.skip_spaces();
    }
    if reader.objects > 0 {
        return Ok(());
    }
    Err(FORM.no_object())
}

struct Reader<'a, 's> {
    scan: Scan<'a>,
    sheet: &'s mut Sheet,
    objects: usize,
}

impl Reader<'_, '_> {
    /// Passes one value; its text, where it is neither an object nor an array of objects.
    fn value(&mut self, depth: usize) -> Result<Option<String>, Refusal> {
        let place = self.scan.place();
        if depth > DEEPEST {
            return Err(FORM.damaged(place, "objects lie in one another more than 100 deep"));
        }
        match self.scan.peek() {
            Some('{') => self.object(depth).map(|()| None),
            Some('[') => self.array(depth),
            Some('"') => self.string().map(Some),
            Some(c) if c == '-' || c.is_ascii_alphanumeric() => {
                let word = self.scan.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
                match word {
                    "null" => Ok(Some(String::new())),
                    "true" => Ok(Some("True".to_owned())),
                    "false" => Ok(Some("False".to_owned())),
                    number if number.parse::<f64>().is_ok() => Ok(Some(number.to_owned())),
                    _ => Err(FORM.damaged(place, "neither a number, a text, true, false nor null")),
                }
            }
            Some(_) => Err(FORM.damaged(place, "no value begins with this character")),
            None => Err(FORM.damaged(place, "the file ends where a value should stand; it was cut off")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Refusal> {
        self.scan.next();
        let mut properties = Vec::new();
        self.scan.skip_spaces();
        while self.scan.peek() != Some('}') {
            let place = self.scan.place();
            if self.scan.peek() != Some('"') {
                return Err(FORM.damaged(place, "the name of a property in quotation marks is missing"));
            }
            let name = self.string()?;
            self.scan.skip_spaces();
            if !self.scan.eat(':') {
                return Err(FORM.damaged(self.scan.place(), "no `:` after the name of a property"));
            }
            self.scan.skip_spaces();
            let place = self.scan.place();
            if let Some(value) = self.value(depth + 1)? {
                properties.push(Property { name, value, place });
            }
            if !self.goes_on('}')? {
                break;
            }
        }
        self.scan.eat('}');
        self.objects += usize::from(windows::object(&properties, self.sheet));
        Ok(())
    }

    /// An array; the texts in it with commas.
    fn array(&mut self, depth: usize) -> Result<Option<String>, Refusal> {
        self.scan.next();
        self.scan.skip_spaces();
        let mut texts: Option<String> = None;
        while self.scan.peek() != Some(']') {
            if let Some(text) = self.value(depth + 1)? {
                texts = Some(texts.map_or_else(|| text.clone(), |before| before + "," + &text));
            }
            if !self.goes_on(']')? {
                break;
            }
        }
        self.scan.eat(']');
        Ok(texts)
    }

    /// Whether a comma follows; else the closing mark must.
    fn goes_on(&mut self, close: char) -> Result<bool, Refusal> {
        self.scan.skip_spaces();
        if self.scan.eat(',') {
            self.scan.skip_spaces();
            return Ok(true);
        }
        if self.scan.peek() == Some(close) {
            return Ok(false);
        }
        let words = if self.scan.rest().is_empty() {
            "the file ends in the middle; it was cut off"
        } else {
            "neither a comma nor the closing mark"
        };
        Err(FORM.damaged(self.scan.place(), words))
    }

    fn string(&mut self) -> Result<String, Refusal> {
        let start = self.scan.place();
        self.scan.next();
        let mut units: Vec<u16> = Vec::new();
        let mut text = String::new();
        loop {
            let place = self.scan.place();
            let c = match self.scan.next() {
                None => return Err(FORM.damaged(start, "the text is not closed; the file was cut off")),
                Some('"') => break,
                Some('\\') => match self.escape(place)? {
                    Ok(c) => c,
                    Err(unit) => {
                        units.push(unit);
                        continue;
                    }
                },
                Some(c) => c,
            };
            flush(&mut units, &mut text);
            text.push(c);
        }
        flush(&mut units, &mut text);
        Ok(text)
    }

    /// What follows a backslash: a character, or half of one (`\ud83d`).
    fn escape(&mut self, place: Place) -> Result<Result<char, u16>, Refusal> {
        let c = match self.scan.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('u') => {
                let mut unit = 0_u16;
                for _ in 0..4 {
                    let digit =
                        self.scan.next().and_then(|c| c.to_digit(16)).and_then(|digit| u16::try_from(digit).ok());
                    let digit = digit.ok_or_else(|| FORM.damaged(place, "`\\u` needs four hexadecimal digits"))?;
                    unit = unit << 4 | digit;
                }
                return Ok(Err(unit));
            }
            _ => return Err(FORM.damaged(place, "no escape is written like this")),
        };
        Ok(Ok(c))
    }
}

/// Writes the code units that were escaped one by one.
fn flush(units: &mut Vec<u16>, text: &mut String) {
    text.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
}
