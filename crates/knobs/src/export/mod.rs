//! Exports: a plan as files in a platform's own form, with the way back beside them.
//!
//! Pure: it makes names and bytes; what writes them is the caller's. Nothing from a plan or from settings reaches a
//! file but through the quoting of that file's language (`quote`), and no file's name has anything from them.

mod apple;
mod device;
mod freebsd;
mod linux;
mod netsh;
mod powershell;
mod procedure;
mod quote;
mod readme;
mod registry;
#[cfg(test)]
mod tests;
mod unix;

pub use procedure::reset_procedure;

use crate::{Address, Catalogue, Change, Family, Plan, Platform, Settings, catalogue::Honoured};

/// The files of one export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The files; `README.txt` is the first and tells the order of the others.
    pub files: Vec<ExportFile>,
    /// The changes that no file makes, and why. The README says the same.
    pub left_out: Vec<LeftOut>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its name, without a folder: ASCII letters, digits, `.`, `-` and `_`.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub what: String,
    /// Its bytes, in the encoding and with the line ends that its platform wants.
    pub contents: Vec<u8>,
    /// Whether it is a script that a Unix system runs.
    pub executable: bool,
}

/// A change that no file makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which setting.
    pub knob: Address,
    /// Why, and what to do instead.
    pub why: String,
}

/// Why a plan is not exported. Nothing of it is, then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The plan changes several hosts, and files are for one.
    #[error("export the plan: it changes several hosts ({hosts}); export the changes of one at a time")]
    SeveralHosts {
        /// Their names.
        hosts: String,
    },
    /// The platform has no form of its own here.
    #[error("export for an unknown platform: no form is known; known are linux, windows, freebsd, macos and netburner")]
    NoForm,
    /// The platform has no such reset.
    #[error(
        "write the reset procedure for {platform}: it is for Windows from Vista on; elsewhere `fullpipe reset` goes back to the defaults"
    )]
    NoProcedure {
        /// The platform.
        platform: String,
    },
    /// A name or a value that the target language can't hold.
    #[error("export {knob:?}: {text:?} can't be written into {file}: {why}")]
    Unfit {
        /// Which setting.
        knob: String,
        /// The name or the value.
        text: String,
        /// The file that it was meant for.
        file: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl ExportFile {
    /// The file's text, whatever its encoding.
    pub fn text(&self) -> String {
        crate::recipe::decode(&self.contents).unwrap_or_default()
    }
}

/// A plan as files for one platform.
///
/// `settings` are those of the machine that the plan is for, where they were read: they tell what was there before, and
/// with them an undo is exact. Without them the values before count as unknown, whatever [`Change::from`] says, because a
/// plan for a platform is made from the platform's defaults: then scripts save what they find before they write, and
/// files that can't do so say that they are no exact undo.
pub fn export(plan: &Plan, platform: &Platform, settings: Option<&Settings>) -> Result<Export, ExportError> {
    one_host(plan)?;
    let mut draft =
        Draft { platform, plan, items: Vec::new(), files: Vec::new(), left_out: Vec::new(), steps: Vec::new() };
    draft.sort_out(settings);
    match platform.family {
        Family::Windows => windows(&mut draft)?,
        Family::Linux => linux::write(&mut draft)?,
        Family::FreeBsd => freebsd::write(&mut draft)?,
        Family::MacOs => apple::write(&mut draft)?,
        Family::NetBurner => device::write(&mut draft)?,
        Family::Unknown => return Err(ExportError::NoForm),
    }
    let readme = readme::write(&draft);
    draft.files.insert(0, readme);
    Ok(Export { files: draft.files, left_out: draft.left_out })
}

fn one_host(plan: &Plan) -> Result<(), ExportError> {
    let mut hosts: Vec<&str> = plan.changes.iter().map(|change| change.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() > 1 {
        return Err(ExportError::SeveralHosts { hosts: quote::one_line(&hosts.join(", ")) });
    }
    Ok(())
}

/// Before Vista the registry is the only form; from then on scripts that save, write and read back.
fn windows(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    if draft.is_at_least("vista") {
        let written = powershell::write(draft)?;
        netsh::write(draft, &written)
    } else {
        registry::write(draft)
    }
}

/// What was there before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Before {
    /// This value.
    Value(String),
    /// Nothing.
    Absent,
    /// Nobody looked.
    Unknown,
}

/// One change that a file shall make.
#[derive(Clone, Debug)]
struct Item<'a> {
    change: &'a Change,
    before: Before,
}

impl Item<'_> {
    fn knob(&self) -> &Address {
        &self.change.knob
    }

    fn to(&self) -> Option<&str> {
        self.change.to.as_deref()
    }

    /// The error for a text that `file` can't hold.
    fn unfit(&self, text: &str, file: &'static str) -> impl Fn(quote::Unfit) -> ExportError {
        let (knob, text) = (self.knob().to_string(), text.to_owned());
        move |quote::Unfit(why)| ExportError::Unfit { knob: knob.clone(), text: text.clone(), file, why }
    }
}

/// An export in the making.
struct Draft<'a> {
    platform: &'a Platform,
    plan: &'a Plan,
    items: Vec<Item<'a>>,
    files: Vec<ExportFile>,
    left_out: Vec<LeftOut>,
    /// What to do with the files, in order, for the README.
    steps: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Takes the changes that this version does something with; the others are left out with the catalogue's reason.
    fn sort_out(&mut self, settings: Option<&Settings>) {
        let catalogue = Catalogue::for_family(self.platform.family);
        for change in &self.plan.changes {
            let refusal = catalogue.and_then(|catalogue| catalogue.refusal(&change.knob, &self.platform.version));
            if let Some(refusal) = refusal {
                let what = match refusal.honoured {
                    Honoured::ReadOnly => "read-only there",
                    Honoured::Absent => "not there",
                    _ => "without effect there",
                };
                self.leave_out(&change.knob, &format!("{what}: {}", refusal.reason));
                continue;
            }
            // Said once for all platforms: no file of the system reaches into an application.
            if matches!(change.knob, Address::Socket(_)) {
                self.leave_out(&change.knob, "only the application can set it, with setsockopt");
                continue;
            }
            let before = match settings.and_then(|settings| settings.values.get(&change.knob)) {
                Some(Some(value)) => Before::Value(value.clone()),
                Some(None) => Before::Absent,
                None => Before::Unknown,
            };
            self.items.push(Item { change, before });
        }
    }

    fn is_at_least(&self, version: &str) -> bool {
        let known =
            Catalogue::for_family(Family::Windows).and_then(|all| all.is_at_least(&self.platform.version, version));
        known.unwrap_or(true)
    }

    fn leave_out(&mut self, knob: &Address, why: &str) {
        self.left_out.push(LeftOut { knob: knob.clone(), why: why.to_owned() });
    }

    /// Adds a file of ASCII or UTF-8 text with Unix line ends.
    fn unix_file(&mut self, name: &'static str, what: &str, text: &str) {
        let executable = text.starts_with("#!");
        let contents = text.replace("\r\n", "\n").into_bytes();
        self.files.push(ExportFile { name, what: what.to_owned(), contents, executable });
    }

    /// Adds a file with Windows' line ends; `text` has Unix ones.
    fn windows_file(&mut self, name: &'static str, what: &str, text: &str, encoding: Encoding) {
        // The templates have other line ends in a checkout that git made so.
        let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        let contents = match encoding {
            Encoding::Plain => text.into_bytes(),
            Encoding::Utf8Marked => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Encoding::Utf16 => [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect(),
        };
        self.files.push(ExportFile { name, what: what.to_owned(), contents, executable: false });
    }

    fn step(&mut self, words: &str) {
        self.steps.push(words.to_owned());
    }
}

/// How the text of a Windows file becomes bytes.
#[derive(Clone, Copy)]
enum Encoding {
    /// As it is: for ASCII.
    Plain,
    /// UTF-8 with a byte-order mark, without which Windows PowerShell takes the machine's code page.
    Utf8Marked,
    /// UTF-16, little end first, with a byte-order mark.
    Utf16,
}
