//! Export-CliXml: the objects and their properties, and nothing else of XML.
//!
//! The format is the one of [MS-PSRP] 2.2.5: an `Obj` has properties in `Props` or `MS`, each an element named by its
//! attribute `N`. Entities beyond XML's own five, and document types, are refused and never expanded.

use super::{
    Place, Refusal,
    scan::Scan,
    sheet::Sheet,
    windows::{self, Form, Property},
};
use crate::Family;

const FORM: Form =
    Form { is: "CliXml as Export-CliXml writes it", way_out: "save it with: Get-NetTCPSetting | Export-CliXml FILE" };

/// How deep elements may lie in one another. Export-CliXml goes two objects deep, each of which takes three elements.
const DEEPEST: usize = 200;

/// One open element.
struct Element {
    tag: String,
    name: Option<String>,
    place: Place,
    text: String,
    /// What an object calls itself: the word for an enumerated value.
    to_string: Option<String>,
    properties: Vec<Property>,
}

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    let mut reader = Reader { scan: Scan::new(text), open: Vec::new(), sheet, objects: 0 };
    // What PowerShell writes before the objects where it writes to a pipe.
    reader.scan.skip_spaces();
    reader.scan.eat_all("#< CLIXML");
    while !reader.scan.rest().is_empty() {
        reader.step()?;
    }
    if let Some(element) = reader.open.last() {
        let words = format!("`<{}>` is not closed; the file was cut off", super::sheet::shown(&element.tag));
        return Err(FORM.damaged(element.place, &words));
    }
    if reader.objects > 0 {
        return Ok(());
    }
    Err(FORM.no_object())
}

struct Reader<'a, 's> {
    scan: Scan<'a>,
    open: Vec<Element>,
    sheet: &'s mut Sheet,
    objects: usize,
}

impl Reader<'_, '_> {
    /// Passes one piece: text, or what stands between `<` and `>`.
    fn step(&mut self) -> Result<(), Refusal> {
        let place = self.scan.place();
        if self.scan.eat_all("<!--") {
            return self.until("-->", place);
        }
        if self.scan.eat_all("<?") {
            return self.until("?>", place);
        }
        if self.scan.rest().starts_with("<!") {
            return Err(FORM.damaged(place, "a document type or a section that CliXml doesn't have"));
        }
        if self.scan.eat_all("</") {
            return self.close(place);
        }
        if self.scan.eat('<') {
            return self.begin(place);
        }
        let raw = self.scan.take_while(|c| c != '<');
        if let Some(element) = self.open.last_mut() {
            element
                .text
                .push_str(&unescaped(raw).ok_or_else(|| FORM.damaged(place, "an entity that CliXml doesn't have"))?);
        }
        Ok(())
    }

    fn until(&mut self, end: &str, place: Place) -> Result<(), Refusal> {
        while !self.scan.rest().is_empty() {
            if self.scan.eat_all(end) {
                return Ok(());
            }
            self.scan.next();
        }
        Err(FORM.damaged(place, "a comment or an instruction is not closed; the file was cut off"))
    }

    fn begin(&mut self, place: Place) -> Result<(), Refusal> {
        let tag = self.scan.take_while(|c| c.is_ascii_alphanumeric()).to_owned();
        if tag.is_empty() || self.open.len() >= DEEPEST {
            return Err(FORM.damaged(place, "no element of CliXml begins like this, or elements lie too deep"));
        }
        let mut name = None;
        loop {
            self.scan.skip_spaces();
            if self.scan.eat_all("/>") {
                self.open.push(Element::new(tag, name, place));
                self.ended();
                return Ok(());
            }
            if self.scan.eat('>') {
                self.open.push(Element::new(tag, name, place));
                return Ok(());
            }
            let (attribute, value) = self.attribute()?;
            if attribute == "N" {
                name = Some(value);
            }
        }
    }

    fn attribute(&mut self) -> Result<(String, String), Refusal> {
        let place = self.scan.place();
        let name = self.scan.take_while(|c| c.is_ascii_alphanumeric() || ":_-.".contains(c)).to_owned();
        let mark = if name.is_empty() || !self.scan.eat('=') { None } else { self.scan.next() };
        let Some(mark @ ('"' | '\'')) = mark else {
            return Err(FORM.damaged(place, "neither an attribute name=\"value\" nor the end of the element"));
        };
        let raw = self.scan.take_while(|c| c != mark && c != '<');
        let value = unescaped(raw).ok_or_else(|| FORM.damaged(place, "an entity that CliXml doesn't have"))?;
        if self.scan.eat(mark) {
            Ok((name, value))
        } else {
            Err(FORM.damaged(place, "the value of an attribute is not closed"))
        }
    }

    fn close(&mut self, place: Place) -> Result<(), Refusal> {
        let tag = self.scan.take_while(|c| c.is_ascii_alphanumeric());
        self.scan.skip_spaces();
        if !self.scan.eat('>') || self.open.last().is_none_or(|element| element.tag != tag) {
            return Err(FORM.damaged(place, "the closing element doesn't fit the open one; the file is damaged"));
        }
        self.ended();
        Ok(())
    }

    /// Takes the innermost element away and hands what it says to the object that it belongs to.
    fn ended(&mut self) {
        let Some(element) = self.open.pop() else { return };
        if element.tag == "Obj" && !element.properties.is_empty() {
            self.objects += usize::from(windows::object(&element.properties, self.sheet));
        }
        let of_list = element.name.is_none() && self.open.last().is_some_and(|open| open.tag == "LST");
        let Some(owner) = self.open.iter_mut().rev().find(|open| open.tag == "Obj") else { return };
        // An array of texts is an object with a list.
        if of_list && element.tag != "Obj" {
            let comma = if owner.text.trim().is_empty() { "" } else { "," };
            owner.text = format!("{}{comma}{}", owner.text.trim(), element.text.trim());
            return;
        }
        let value = element.to_string.unwrap_or(element.text);
        if element.tag == "ToString" {
            owner.to_string = Some(value);
        } else if let Some(name) = element.name {
            let value = if element.tag == "B" { boolean(&value) } else { value.trim().to_owned() };
            owner.properties.push(Property { name, value, place: element.place });
        }
    }
}

impl Element {
    const fn new(tag: String, name: Option<String>, place: Place) -> Self {
        Self { tag, name, place, text: String::new(), to_string: None, properties: Vec::new() }
    }
}

fn boolean(value: &str) -> String {
    if value.trim() == "true" { "True".to_owned() } else { "False".to_owned() }
}

/// A text with its entities; `None` where it has one that is not XML's own.
fn unescaped(raw: &str) -> Option<String> {
    const NAMED: [(&str, char); 5] = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\'')];
    let mut text = String::with_capacity(raw.len());
    let mut parts = raw.split('&');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (entity, rest) = part.split_once(';')?;
        let c = match entity.strip_prefix('#') {
            Some(code) => {
                let hex = code.strip_prefix('x').or_else(|| code.strip_prefix('X'));
                let code = hex.map_or_else(|| code.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok());
                char::from_u32(code?)?
            }
            None => NAMED.iter().find(|(name, _)| *name == entity)?.1,
        };
        text.push(c);
        text.push_str(rest);
    }
    Some(text)
}
