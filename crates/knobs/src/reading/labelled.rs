//! Lines `label : value`: what netsh prints in English, and what Format-List prints. One file may have both.

use super::{
    Place, Refusal, RemarkKind,
    detect::is_dashes,
    scan,
    sheet::{Sheet, shown},
    windows::{self, Property},
};
use crate::{Address, Family};

/// The labels of `netsh interface tcp show global`, in lower case, and the parameter that sets each.
const GLOBAL: [(&str, &str); 19] = [
    ("receive-side scaling state", "rss"),
    ("chimney offload state", "chimney"),
    ("netdma state", "netdma"),
    ("direct cache access (dca)", "dca"),
    ("direct cache acess (dca)", "dca"),
    ("receive window auto-tuning level", "autotuninglevel"),
    ("add-on congestion control provider", "congestionprovider"),
    ("ecn capability", "ecncapability"),
    ("rfc 1323 timestamps", "timestamps"),
    ("timestamps", "timestamps"),
    ("initial rto", "initialrto"),
    ("receive segment coalescing state", "rsc"),
    ("non sack rtt resiliency", "nonsackrttresiliency"),
    ("max syn retransmissions", "maxsynretransmissions"),
    ("fast open fallback", "fastopenfallback"),
    ("fast open", "fastopen"),
    ("hystart", "hystart"),
    ("proportional rate reduction", "prr"),
    ("pacing profile", "pacingprofile"),
];

/// The labels of `show supplemental`, in lower case, and the parameter of the template.
const SUPPLEMENTAL: [(&str, &str); 6] = [
    ("minimum rto (msec)", "MinRtoMs"),
    ("initial congestion window (mss)", "InitialCongestionWindowMss"),
    ("congestion control provider", "CongestionProvider"),
    ("enable congestion window restart", "CwndRestart"),
    ("delayed ack timeout (msec)", "DelayedAckTimeoutMs"),
    ("delayed ack frequency", "DelayedAckFrequency"),
];

/// Those that PowerShell has no parameter for, and netsh's own names.
const SUPPLEMENTAL_OF_NETSH: [(&str, &str); 2] = [("enable rack", "rack"), ("enable tail loss probe", "taillossprobe")];

#[derive(Clone, Copy, PartialEq)]
enum Section {
    None,
    Global,
    Heuristics,
    Supplemental,
    Objects,
}

struct Reader<'a> {
    sheet: &'a mut Sheet,
    section: Section,
    template: Option<&'static str>,
    told_template: bool,
    object: Vec<Property>,
    objects: usize,
    /// The last line that was no pair: a title, where dashes follow.
    title: Option<(u32, &'a str)>,
    last: Last<'a>,
}

/// The last line that has something in it.
#[derive(Clone, Copy, Default)]
struct Last<'a> {
    number: u32,
    line: &'a str,
    /// Whether a line break follows.
    ended: bool,
}

impl<'a> Last<'a> {
    fn from_text(text: &'a str) -> Self {
        let last = scan::lines(text).filter(|(_, line)| !line.trim().is_empty()).last();
        let (number, line) = last.unwrap_or_default();
        Self { number, line, ended: text.trim_end_matches([' ', '\t']).ends_with('\n') }
    }
}

pub(super) fn read(text: &str, sheet: &mut Sheet) -> Result<(), Refusal> {
    sheet.family(Family::Windows);
    let (section, title) = (Section::None, None);
    let mut reader = Reader {
        sheet,
        section,
        template: None,
        told_template: false,
        object: Vec::new(),
        objects: 0,
        title,
        last: Last::from_text(text),
    };
    for (number, line) in scan::lines(text) {
        reader.line(number, line)?;
    }
    reader.end_of_object();
    reader.end_of_text();
    if reader.objects == 0 && reader.sheet.is_empty() && reader.section != Section::Supplemental {
        let place = Place { line: 1, column: 1 };
        let problem = "no line has a label that is known".to_owned();
        return Err(Refusal { place, problem, expected: ENGLISH, way_out: WAY_OUT });
    }
    Ok(())
}

const ENGLISH: &str = "English labels such as `Receive Window Auto-Tuning Level`";
const WAY_OUT: &str = "netsh speaks the system's language; save what PowerShell tells instead, which is the same everywhere: Get-NetTCPSetting | ConvertTo-Json, or | Export-CliXml FILE";

impl<'a> Reader<'a> {
    fn line(&mut self, number: u32, line: &'a str) -> Result<(), Refusal> {
        let text = line.trim();
        if text.is_empty() {
            self.end_of_object();
            return Ok(());
        }
        if is_dashes(text) {
            return self.dashes();
        }
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("** the above autotuninglevel") {
            let words = "the heuristics of Windows override the level at least for one profile: `netsh interface tcp show heuristics` tells which";
            let place = scan::place_of(number, line, text);
            self.sheet.remark(RemarkKind::Note, place, words);
            // They are at work, then, whatever else the file tells.
            self.sheet.set(place, Address::netsh("tcp heuristics", "wsh"), Some("enabled"));
            return Ok(());
        }
        match line.split_once(':') {
            // A prompt with a command: `C:\>netsh int tcp show supplemental internet`.
            Some(_) if !lower.contains("netsh ") && !lower.contains("ps c:\\") => self.pair(number, line),
            _ => {
                self.title = Some((number, line));
                self.template = template_in(&lower).or(self.template);
                self.section = title_section(&lower).unwrap_or(self.section);
            }
        }
        Ok(())
    }

    /// Below a title; where the title is none of the English ones, the text is in another language.
    fn dashes(&mut self) -> Result<(), Refusal> {
        let Some((number, title)) = self.title.take() else { return Ok(()) };
        let lower = title.to_ascii_lowercase();
        if let Some(section) = title_section(&lower) {
            self.section = section;
            return Ok(());
        }
        if !title.contains("TCP") {
            return Ok(());
        }
        let problem = format!("`{}` is no title of the English netsh", shown(title.trim()));
        let place = scan::place_of(number, title, title.trim_start());
        Err(Refusal { place, problem, expected: ENGLISH, way_out: WAY_OUT })
    }

    fn pair(&mut self, number: u32, line: &'a str) {
        let Some((label, value)) = line.split_once(':') else { return };
        let (label, value) = (label.trim(), value.trim());
        if label.is_empty() {
            return;
        }
        let place = scan::place_of(number, line, label);
        let netsh = matches!(self.section, Section::Global | Section::Heuristics | Section::Supplemental);
        if windows::begins_object(label) || !netsh {
            if !label.contains(' ') {
                self.section = Section::Objects;
                self.object.push(Property { name: label.to_owned(), value: value.to_owned(), place });
            } else if label.eq_ignore_ascii_case("Receive-Side Scaling State") {
                // A part of an output, without its title.
                self.section = Section::Global;
                self.netsh(place, label, value);
            }
            return;
        }
        self.netsh(place, label, value);
    }

    fn netsh(&mut self, place: Place, label: &str, value: &str) {
        let lower = label.to_ascii_lowercase();
        let knob = match self.section {
            Section::Heuristics if lower == "window scaling heuristics" => {
                Some(Address::netsh("tcp heuristics", "wsh"))
            }
            Section::Heuristics if lower.starts_with("force") => Some(Address::netsh("tcp heuristics", "forcews")),
            Section::Supplemental => return self.supplemental(place, &lower, value),
            Section::Global => {
                let label = lower.strip_prefix("tcp ").unwrap_or(&lower);
                let known = GLOBAL.iter().find(|(known, _)| *known == label);
                known.map(|(_, parameter)| Address::netsh("tcp global", parameter))
            }
            _ => None,
        };
        match knob {
            Some(knob) if !value.is_empty() => self.sheet.set(place, knob, Some(value)),
            Some(_) if place.line == self.last.number => {}
            Some(_) => self.sheet.remark(RemarkKind::Unread, place, format!("no value after `{}`", shown(label))),
            None => self.sheet.others += 1,
        }
    }

    fn supplemental(&mut self, place: Place, label: &str, value: &str) {
        let named = |names: &[(&str, &'static str)]| {
            names.iter().find(|(known, _)| *known == label).map(|(_, parameter)| *parameter)
        };
        let (own, of_netsh) = (named(&SUPPLEMENTAL), named(&SUPPLEMENTAL_OF_NETSH));
        let Some(parameter) = own.or(of_netsh) else {
            self.sheet.others += 1;
            return;
        };
        let Some(template) = self.template else {
            if !self.told_template {
                self.told_template = true;
                let words = "no line names the template that these values belong to; keep the line `The TCP global default template is ...` or the command above them";
                self.sheet.remark(RemarkKind::Unread, place, words);
            }
            return;
        };
        if of_netsh.is_some() {
            let context = format!("tcp supplemental {}", template.to_ascii_lowercase());
            return self.sheet.set(place, Address::netsh(&context, parameter), Some(value));
        }
        windows::template_value(place, template, parameter, value, self.sheet);
    }

    /// Says where the text ends in the middle of an output: within or behind a label, or at a title.
    fn end_of_text(&mut self) {
        let Last { number, line, ended } = self.last;
        let text = line.trim();
        let lower = text.to_ascii_lowercase();
        let is_prompt = text.contains('>') || text.starts_with("**");
        let cut = match (self.section, line.split_once(':')) {
            (Section::None, _) => false,
            // The template Automatic has properties without values, and line breaks behind them.
            (Section::Objects, Some((_, value))) => !ended && value.trim().is_empty(),
            (_, Some((_, value))) => value.trim().is_empty() && !is_prompt,
            (_, None) if is_prompt => false,
            (Section::Objects, None) => !ended,
            (_, None) => !ended || title_section(&lower).is_some() || text.bytes().all(|byte| byte == b'-'),
        };
        if cut {
            let label = shown(text.trim_end_matches(':').trim_end());
            let words = format!(
                "the text ends at `{label}`, with nothing behind it: it looks cut off, and what it lacks is not known"
            );
            self.sheet.remark(RemarkKind::Unread, scan::place_of(number, line, line.trim_start()), words);
        } else if !ended && self.section != Section::None && line.contains(':') {
            let words = "no line break behind the last value: where the text was cut off, the value may be, too";
            self.sheet.remark(RemarkKind::Note, scan::place_of(number, line, line.trim_start()), words);
        }
    }

    fn end_of_object(&mut self) {
        if !self.object.is_empty() {
            self.objects += usize::from(windows::object(&self.object, self.sheet));
            self.object.clear();
        }
    }
}

/// Whether a line is a title of the English netsh.
pub(super) fn is_english_title(line: &str) -> bool {
    title_section(&line.to_ascii_lowercase()).is_some()
}

fn title_section(lower: &str) -> Option<Section> {
    let titles = [
        ("tcp global parameters", Section::Global),
        ("heuristics parameters", Section::Heuristics),
        ("tcp supplemental parameters", Section::Supplemental),
    ];
    titles.iter().find(|(title, _)| lower.contains(title)).map(|(_, section)| *section)
}

/// The template that a sentence or a command names with its last word.
fn template_in(lower: &str) -> Option<&'static str> {
    if !lower.contains("template") && !lower.contains("supplemental") {
        return None;
    }
    let last = lower.split([' ', '=']).next_back()?.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    windows::template_name(last)
}
