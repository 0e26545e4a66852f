//! Setup files (`.inf`): what their `AddReg` and `DelReg` sections write into the registry and take out of it.
//!
//! Format: Microsoft's documents of the INF AddReg and DelReg directives. Which section an installation runs is not
//! worked out: all of them are read, as a person would who looks for what the file can do.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Action, Problem, Step,
    reg::{short_key, text_value},
};
use crate::Address;

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let lines = || (1..).zip(text.trim_start_matches('\u{feff}').lines());
    let strings = strings(lines());
    let [mut adding, mut deleting] = [Vec::new(), Vec::new()];
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    let there: BTreeSet<String> = lines().filter_map(|(_, line)| header(line.trim())).collect();
    for (number, line) in lines() {
        let Some((name, sections)) = line.split_once('=') else { continue };
        let list = match name.trim().to_ascii_lowercase().as_str() {
            "addreg" => &mut adding,
            "delreg" => &mut deleting,
            _ => continue,
        };
        for section in uncommented(sections).split(',').map(|section| section.trim().to_ascii_lowercase()) {
            if !there.contains(&section) {
                let message = format!("the file has no section [{section}]");
                problems.push(Problem { line: number, column: 1, message });
            }
            list.push(section);
        }
    }
    let mut section = String::new();
    for (number, raw) in lines() {
        let line = raw.trim();
        if let Some(name) = header(line) {
            section = name;
            continue;
        }
        let (adds, deletes) = (adding.contains(&section), deleting.contains(&section));
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        if !(adds || deletes) {
            if ROOTS
                .iter()
                .any(|root| line.split(',').next().is_some_and(|first| first.trim().eq_ignore_ascii_case(root)))
            {
                let words = format!(
                    "no AddReg or DelReg of this file names the section [{section}], so that Windows does not take the line"
                );
                steps.push(Step::new(number, Action::Unclear(words)));
            }
            continue;
        }
        match entry(line, &strings, adds) {
            Ok(Some(action)) => steps.push(Step::new(number, action)),
            Ok(None) => {}
            Err(message) => problems.push(Problem { line: number, column: 1, message }),
        }
    }
    (steps, problems)
}

/// The roots of the registry with which a line of AddReg or DelReg begins.
const ROOTS: [&str; 5] = ["HKLM", "HKCU", "HKR", "HKCR", "HKU"];

/// The name of the section that a line begins.
fn header(line: &str) -> Option<String> {
    let name = line.strip_prefix('[')?;
    Some(name.split(']').next().unwrap_or(name).trim().to_ascii_lowercase())
}

/// The names of the section `[Strings]`, which stand between percent signs elsewhere.
fn strings<'a>(lines: impl Iterator<Item = (u32, &'a str)>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut inside = false;
    for (_, raw) in lines {
        let line = raw.trim();
        if line.starts_with('[') {
            inside = line.to_ascii_lowercase().starts_with("[strings");
        } else if let (true, Some((name, value))) = (inside, line.split_once('=')) {
            let value = uncommented(value).trim().trim_matches('"').to_owned();
            found.insert(name.trim().to_ascii_lowercase(), value);
        }
    }
    found
}

/// The line before a comment; a semicolon between quotation marks begins none.
fn uncommented(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|c| {
        quoted ^= c == '"';
        c == ';' && !quoted
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or(line)
}

/// The fields of a line: `HKLM,"key","name",flags,value`.
fn fields(line: &str, strings: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in uncommented(line).chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut()?.push(c),
        }
    }
    let named = |field: &String| {
        let field = field.trim();
        let name = field.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'));
        let value = name.and_then(|name| strings.get(&name.to_ascii_lowercase()));
        value.map_or_else(|| field.to_owned(), Clone::clone)
    };
    (!quoted).then(|| fields.iter().map(named).collect())
}

fn entry(line: &str, strings: &BTreeMap<String, String>, adds: bool) -> Result<Option<Action>, String> {
    /// FLG_ADDREG_DELVAL, and the type in the flags: FLG_ADDREG_TYPE_DWORD.
    const DELETE: u32 = 4;
    const TYPE: u32 = 0xffff_0001;
    const DWORD: u32 = 0x0001_0001;
    let fields = fields(line, strings).ok_or_else(|| "the quotation is not closed".to_owned())?;
    let unknown = |field: &&String| field.len() > 2 && field.starts_with('%') && field.ends_with('%');
    if let Some(name) = fields.iter().take(3).find(unknown) {
        return Err(format!("[Strings] does not have {name}"));
    }
    let field = |at: usize| fields.get(at).map_or("", String::as_str);
    if !ROOTS.iter().any(|root| root.eq_ignore_ascii_case(field(0))) {
        return Err("a line of AddReg or DelReg begins with HKLM, HKCU, HKR, HKCR or HKU".to_owned());
    }
    // Without a name it is the key itself, which holds nothing of TCP.
    if field(1).is_empty() || field(2).is_empty() {
        return Ok(None);
    }
    let key = short_key(&format!("{}\\{}", field(0).to_ascii_uppercase(), field(1)));
    let knob = Address::Registry { key, value: field(2).to_owned() };
    if !adds {
        return Ok(Some(Action::Delete(knob)));
    }
    let number = |text: &str| {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        hex.map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
    };
    let flags =
        if field(3).is_empty() { 0 } else { number(field(3)).ok_or_else(|| "the flags are no number".to_owned())? };
    if flags & DELETE != 0 {
        return Ok(Some(Action::Delete(knob)));
    }
    let value = if flags & TYPE != DWORD {
        text_value(field(4))
    } else if let [low, second, third, high] = fields.get(4..).unwrap_or_default() {
        // A dword may be written as four bytes, the lowest first.
        let bytes = [low, second, third, high].map(|byte| u8::from_str_radix(byte, 16).ok());
        let [Some(a), Some(b), Some(c), Some(d)] = bytes else {
            return Err("the bytes of the value are no numbers".to_owned());
        };
        u32::from_le_bytes([a, b, c, d]).to_string()
    } else {
        number(field(4)).ok_or_else(|| "the value is no number of 32 bits".to_owned())?.to_string()
    };
    Ok(Some(Action::Set(knob, value)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "[Version]\nSignature=\"$Chicago$\"\n[DefaultInstall]\nAddReg=Add ; what it sets\nDelReg=Take\n[Add]\nHKLM,%Key%,\"TcpWindowSize\",0x00010001,0x0001F5E0 ; 128480\nHKLM,\"SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\",Tcp1323Opts,65537,3\nHKLM,%Key%,Hostname,0,\"x;y\"\nHKLM,%Key%,SackOpts,0x10001,01,00,00,00\n[Take]\nHKLM,%Key%,MTU\n[Other]\nHKLM,%Key%,DefaultTTL,0x10001,1\n[Strings]\nKey=\"SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\"\n";

    #[test]
    fn the_sections_that_an_installation_names_are_read() {
        let (steps, problems) = read(FILE);
        assert_eq!(problems, []);
        let found = steps.into_iter().map(|step| match step.action {
            Action::Set(Address::Registry { value, .. }, to) => format!("{} {value}={to}", step.line),
            Action::Delete(Address::Registry { value, .. }) => format!("{} {value} deleted", step.line),
            Action::Unclear(why) => format!("{} {}", step.line, why.contains("[other]")),
            other => format!("{other:?}"),
        });
        let expected = [
            "7 TcpWindowSize=128480",
            "8 Tcp1323Opts=3",
            "9 Hostname=\"x;y\"",
            "10 SackOpts=1",
            "12 MTU deleted",
            "14 true",
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_that_the_file_does_not_have_are_problems() {
        let (steps, problems) = read("[DefaultInstall]\nAddReg=Addd,Add\n[Add]\nHKLM,%NOPE%,MTU,0x10001,1400\n");
        assert_eq!(steps, []);
        let found: Vec<_> = problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect();
        assert_eq!(found, [(2, "the file has no section [addd]"), (4, "[Strings] does not have %NOPE%")]);
    }

    #[test]
    fn a_damaged_line_is_a_problem_with_its_place() {
        let text = "[DefaultInstall]\nAddReg=A\n[A]\nHKLM,\"x\nfoo,bar,baz\nHKLM,x,y,0x10001,zz\nHKLM,x,y,q,1\n";
        let (steps, problems) = read(text);
        assert_eq!(steps, []);
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [4, 5, 6, 7]);
    }

    proptest! {
        #[test]
        fn any_lines_are_read_without_a_panic(text in "(\\[|\\]|\"|=|,|;|%|HKLM|AddReg|0x|A|\n){0,40}") {
            let (steps, _) = read(&format!("[D]\nAddReg=A\n[A]\n{text}"));
            prop_assert!(steps.len() <= text.lines().count());
        }
    }
}
