//! Reports that are kept: a page and a few words about it for each, in one folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The folder of reports.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// What is known of a report beside its page.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct About {
    /// When it began, as RFC 3339 has it.
    pub(crate) began: String,
    /// The command, without the program's name.
    pub(crate) words: Vec<String>,
    /// The result in one sentence.
    pub(crate) headline: String,
    /// What the command ended with; `None` where a signal ended it.
    pub(crate) exit: Option<i32>,
}

/// After this nothing is on its way any more.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);
/// Reports that a list shows.
const MOST_LISTED: usize = 100;

impl Store {
    /// Makes the folder where it is missing; only its owner may look into it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let store = Self { folder: folder.to_owned() };
        store.sweep();
        Ok(store)
    }

    /// Removes what a server left behind that was killed. A young one may be another server's.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > LEFT_BEHIND);
            // What can't be removed does no harm: nothing here is listed without its words.
            match path.extension().and_then(|end| end.to_str()) {
                Some("incoming") if is_old() == Some(true) => drop(fs::remove_dir_all(&path)),
                Some("part") if is_old() == Some(true) => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
    }

    /// The name of a new report: it sorts by time.
    pub(crate) fn name(now: jiff::Timestamp, command: &str) -> String {
        let time = now.strftime("%Y%m%d-%H%M%S-%3f");
        format!("{time}-{command}")
    }

    /// Where its page is.
    pub(crate) fn page(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.html"))
    }

    /// Where a capture stands while it is read.
    pub(crate) fn incoming(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.incoming"))
    }

    /// Says what the page is of. Both appear by rename, the words last: a page without words is not listed.
    pub(crate) fn keep(&self, name: &str, page: Option<&str>, about: &About) -> io::Result<()> {
        if let Some(page) = page {
            self.put(&self.page(name), page.as_bytes())?;
        }
        self.put(&self.folder.join(format!("{name}.json")), &serde_json::to_vec(about)?)
    }

    fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let beside = path.with_extension("part");
        fs::write(&beside, content)
            .and_then(|()| fs::rename(&beside, path))
            .inspect_err(|_| drop(fs::remove_file(&beside)))
    }

    /// The newest first.
    pub(crate) fn list(&self) -> Vec<(String, About)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.truncate(MOST_LISTED);
        names.into_iter().filter_map(|name| self.about(&name).map(|about| (name, about))).collect()
    }

    fn about(&self, name: &str) -> Option<About> {
        let text = fs::read(self.folder.join(format!("{name}.json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The page of that name; `None` where there is none, or the name is no name.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        is_name(name).then(|| fs::read(self.page(name)).ok())?
    }

    /// Removes a report; whether there was one.
    pub(crate) fn remove(&self, name: &str) -> bool {
        if !is_name(name) {
            return false;
        }
        let words = fs::remove_file(self.folder.join(format!("{name}.json")));
        let page = fs::remove_file(self.page(name));
        words.is_ok() || page.is_ok()
    }
}

/// Whether it is one of ours: letters, digits and dashes lead to no other folder.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=80).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        About {
            began: "now".to_owned(),
            words: vec!["check".to_owned()],
            headline: "6 Mbit/s".to_owned(),
            exit: Some(0),
        }
    }

    #[test]
    fn reports_are_listed_newest_first_and_only_whole_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b")).unwrap();
        for name in ["20260101-000000-000-check", "20270101-000000-000-check"] {
            store.keep(name, Some("<p>"), &about()).unwrap();
        }
        // A page without words, and words that were cut.
        fs::write(store.page("20280101-000000-000-check"), "x").unwrap();
        fs::write(folder.path().join("a/b/20290101-000000-000-check.json"), "{\"be").unwrap();
        let names: Vec<String> = store.list().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["20270101-000000-000-check", "20260101-000000-000-check"]);
        assert!(store.remove(&names[0]) && !store.remove(&names[0]));
        assert_eq!(store.list().len(), 1);
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        fs::write(folder.path().join("x.html"), "x").unwrap();
        assert!(store.read("x").is_some());
        for name in ["../x", "x/../x", "", ".", "x%2e", "x\0", "a b", &"x".repeat(81)] {
            assert!(store.read(name).is_none() && !store.remove(name), "{name}");
        }
    }
}
