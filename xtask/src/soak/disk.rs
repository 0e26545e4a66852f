//! A disk as POSIX promises it: what a program wrote is there after power failed if it was synced, and else perhaps. Read from
//! strace's output, for files below one folder. What is *not* here: which of what was not synced gets lost (the caller's
//! choice), and modes and owners.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The calls that have to be traced.
pub(super) const CALLS: &str = "openat,creat,write,pwrite64,writev,pwritev,fsync,fdatasync,syncfs,rename,renameat,\
    renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,fallocate,lseek,\
    copy_file_range,sendfile";

/// Something that a call did to the disk.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A change of a file's bytes.
    Data { file: usize, change: Change },
    /// A change of a folder's names.
    Name { folder: PathBuf, change: Rename },
    /// All that was done to a file is on the disk.
    SyncFile { file: usize },
    /// All that was done to a folder's names is on the disk.
    SyncFolder { folder: PathBuf },
}

/// A change of a file's bytes.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A change of names: what is there no more, and what is there now.
#[derive(Clone, Debug)]
pub(super) struct Rename {
    gone: Option<PathBuf>,
    now: Option<(PathBuf, Node)>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// Files and folders by name, and the bytes of each file by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    names: BTreeMap<PathBuf, Node>,
    files: Vec<Vec<u8>>,
}

impl Disk {
    /// What is in these folders of `root` now.
    pub(super) fn read(root: &Path, folders: &[&str]) -> Result<Self> {
        let mut disk = Self::default();
        for folder in folders.iter().map(|folder| root.join(folder)).filter(|folder| folder.exists()) {
            disk.names.insert(folder.clone(), Node::Folder);
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let number = disk.files.len();
                disk.files.push(fs::read(&path)?);
                disk.names.insert(path, Node::File(number));
            }
        }
        Ok(disk)
    }

    /// Puts it there, in the place of what is there.
    pub(super) fn write(&self, root: &Path, folders: &[&str]) -> Result<()> {
        for folder in folders.iter().map(|folder| root.join(folder)).filter(|folder| folder.exists()) {
            fs::remove_dir_all(folder)?;
        }
        // In the order of names a folder comes before what is in it; what is in none is lost with it.
        for (path, node) in &self.names {
            match node {
                Node::Folder => fs::create_dir(path)?,
                Node::File(number) if path.parent().is_some_and(Path::exists) => fs::write(path, &self.files[*number])?,
                Node::File(_) => continue,
            }
            // Nobody else's, as a state folder must be.
            let mode = if *node == Node::Folder { 0o700 } else { 0o600 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Data { file, change: Change::Write { at, bytes } } => {
                let content = self.file(*file);
                content.resize(content.len().max(at + bytes.len()), 0);
                content[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Op::Data { file, change: Change::Length(length) } => self.file(*file).resize(*length, 0),
            Op::Name { change, .. } => {
                if let Some(gone) = &change.gone {
                    self.names.remove(gone);
                }
                if let Some((path, node)) = &change.now {
                    if let Node::File(number) = node {
                        self.file(*number);
                    }
                    self.names.insert(path.clone(), *node);
                }
            }
            Op::SyncFile { .. } | Op::SyncFolder { .. } => {}
        }
    }

    fn file(&mut self, number: usize) -> &mut Vec<u8> {
        if number >= self.files.len() {
            self.files.resize(number + 1, Vec::new());
        }
        &mut self.files[number]
    }

    /// The disk after power failed behind these operations; `survives` says of each that was not synced whether it got there.
    pub(super) fn after_power_failed(&self, ops: &[Op], mut survives: impl FnMut(&Op) -> bool) -> Self {
        let mut disk = self.clone();
        let mut pending: Vec<&Op> = Vec::new();
        for op in ops {
            let is_synced = |other: &&Op| match (op, other) {
                (Op::SyncFile { file }, Op::Data { file: of, .. }) => file == of,
                (Op::SyncFolder { folder }, Op::Name { folder: of, .. }) => folder == of,
                _ => false,
            };
            if matches!(op, Op::SyncFile { .. } | Op::SyncFolder { .. }) {
                pending.iter().copied().filter(is_synced).for_each(|op| disk.apply(op));
                pending.retain(|op| !is_synced(op));
            } else {
                pending.push(op);
            }
        }
        pending.into_iter().filter(|op| survives(op)).for_each(|op| disk.apply(op));
        disk
    }
}

/// Reads the operations below `root` out of a trace with `-y -xx`.
pub(super) fn operations(trace: &[String], root: &Path, start: &Disk) -> Result<Vec<Op>> {
    let mut reading = Reading { root, now: start.clone(), ops: Vec::new(), open: BTreeMap::new() };
    for line in trace {
        reading.line(line).with_context(|| line.chars().take(200).collect::<String>())?;
    }
    Ok(reading.ops)
}

/// A file descriptor.
struct Open {
    file: usize,
    at: usize,
    appends: bool,
}

struct Reading<'a> {
    root: &'a Path,
    /// As the program sees it.
    now: Disk,
    ops: Vec<Op>,
    open: BTreeMap<String, Open>,
}

impl Reading<'_> {
    fn line(&mut self, line: &str) -> Result<()> {
        let Some((name, rest)) = line.split_once('(') else { return Ok(()) };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { return Ok(()) };
        if result.starts_with('-') || result.starts_with('?') {
            return Ok(());
        }
        let arguments: Vec<&str> = arguments.trim_end().trim_end_matches(')').split(", ").collect();
        let argument = |place: usize| arguments.get(place).copied().context("too few arguments");
        let number = |place: usize| -> Result<usize> { Ok(argument(place)?.parse()?) };
        match name {
            "openat" => self.opened(argument(2)?, result)?,
            "write" => self.wrote(argument(0)?, None, &text(argument(1)?)),
            "pwrite64" => self.wrote(argument(0)?, Some(number(3)?), &text(argument(1)?)),
            "lseek" => {
                let at = result.parse()?;
                if let Some(open) = self.open.get_mut(descriptor(argument(0)?).0) {
                    open.at = at;
                }
            }
            "ftruncate" => self.resized(argument(0)?, number(1)?),
            "fsync" | "fdatasync" => self.synced(argument(0)?),
            "rename" => self.renamed(path_of(argument(0)?), path_of(argument(1)?)),
            "renameat" | "renameat2" => {
                self.renamed(below(argument(0)?, argument(1)?), below(argument(2)?, argument(3)?));
            }
            "unlink" => self.named(Some(path_of(argument(0)?)), None),
            "unlinkat" => self.named(Some(below(argument(0)?, argument(1)?)), None),
            "mkdir" => self.named(None, Some((path_of(argument(0)?), Node::Folder))),
            "mkdirat" => self.named(None, Some((below(argument(0)?, argument(1)?), Node::Folder))),
            _ if arguments.iter().any(|argument| self.is_ours(&descriptor(argument).1)) => {
                bail!("this model of a disk does not know the call");
            }
            _ => {}
        }
        Ok(())
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.starts_with(self.root)
    }

    fn opened(&mut self, flags: &str, result: &str) -> Result<()> {
        let (number, path) = descriptor(result);
        self.open.remove(number);
        if !self.is_ours(&path) || self.now.names.get(&path) == Some(&Node::Folder) || flags.contains("O_DIRECTORY") {
            return Ok(());
        }
        let file = match self.now.names.get(&path) {
            Some(Node::File(file)) => *file,
            _ if flags.contains("O_CREAT") => {
                let file = self.now.files.len();
                self.now.file(file);
                self.named(None, Some((path, Node::File(file))));
                file
            }
            _ => return Ok(()),
        };
        self.open.insert(number.to_owned(), Open { file, at: 0, appends: flags.contains("O_APPEND") });
        if flags.contains("O_TRUNC") {
            self.does(Op::Data { file, change: Change::Length(0) });
        }
        Ok(())
    }

    fn wrote(&mut self, argument: &str, at: Option<usize>, bytes: &[u8]) {
        let (number, path) = descriptor(argument);
        if !self.is_ours(&path) {
            return;
        }
        let Some(open) = self.open.get_mut(number) else { return };
        let file = open.file;
        let end = self.now.files[file].len();
        let place = at.unwrap_or(if open.appends { end } else { open.at });
        if at.is_none() {
            open.at = place + bytes.len();
        }
        self.does(Op::Data { file, change: Change::Write { at: place, bytes: bytes.to_vec() } });
    }

    fn resized(&mut self, argument: &str, length: usize) {
        if let Some(open) = self.open.get(descriptor(argument).0) {
            let file = open.file;
            self.does(Op::Data { file, change: Change::Length(length) });
        }
    }

    fn synced(&mut self, argument: &str) {
        let (number, path) = descriptor(argument);
        // The folder above the root is one whose names count, too.
        if self.now.names.get(&path) == Some(&Node::Folder) || path == self.root {
            self.does(Op::SyncFolder { folder: path });
        } else if let Some(open) = self.open.get(number).filter(|_| self.is_ours(&path)) {
            let file = open.file;
            self.does(Op::SyncFile { file });
        }
    }

    fn renamed(&mut self, from: PathBuf, to: PathBuf) {
        if let Some(node) = self.now.names.get(&from).copied() {
            self.named(Some(from), Some((to, node)));
        }
    }

    fn named(&mut self, gone: Option<PathBuf>, now: Option<(PathBuf, Node)>) {
        let path = now.as_ref().map(|(path, _)| path).or(gone.as_ref());
        let Some(folder) = path.filter(|path| self.is_ours(path)).and_then(|path| path.parent()) else { return };
        let folder = folder.to_owned();
        self.does(Op::Name { folder, change: Rename { gone, now } });
    }

    fn does(&mut self, op: Op) {
        self.now.apply(&op);
        self.ops.push(op);
    }
}

/// `5<\x2f\x74>`: the number, and the path.
fn descriptor(argument: &str) -> (&str, PathBuf) {
    let (number, path) = argument.split_once('<').unwrap_or((argument, ""));
    (number, PathBuf::from(String::from_utf8_lossy(&text(path.trim_end().trim_end_matches('>'))).into_owned()))
}

fn path_of(argument: &str) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&text(argument)).into_owned())
}

/// A path below a folder's descriptor.
fn below(folder: &str, name: &str) -> PathBuf {
    descriptor(folder).1.join(path_of(name))
}

/// The bytes of `"\x2f\x74"`, or of what is no such text as it stands.
fn text(quoted: &str) -> Vec<u8> {
    let inner = quoted.trim_matches('"');
    if !inner.starts_with("\\x") {
        return inner.as_bytes().to_vec();
    }
    inner.split("\\x").filter_map(|digits| u8::from_str_radix(digits, 16).ok()).collect()
}

/// Names that the operations touched, for a message.
pub(super) fn touched(ops: &[Op]) -> BTreeSet<PathBuf> {
    let names = ops.iter().filter_map(|op| match op {
        Op::Name { change, .. } => change.now.as_ref().map(|(path, _)| path.clone()).or_else(|| change.gone.clone()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    /// A file written beside its old version, synced or not, and put in its place.
    fn replaced(syncs_file: bool, syncs_folder: bool) -> (Disk, Vec<Op>) {
        let folder = Path::new("/r/d");
        let mut start = Disk::default();
        start.names.insert(folder.to_owned(), Node::Folder);
        start.names.insert(folder.join("a"), Node::File(0));
        start.files.push(b"old".to_vec());
        let at = |fd: u32, path: &str| format!("{fd}<{}>", hex(path));
        let mut trace = vec![
            format!(
                "openat(AT_FDCWD<{}>, \"{}\", O_WRONLY|O_CREAT, 0600) = {}",
                hex("/"),
                hex("/r/d/b"),
                at(3, "/r/d/b")
            ),
            format!("write({}, \"{}\", 3) = 3", at(3, "/r/d/b"), hex("new")),
        ];
        if syncs_file {
            trace.push(format!("fsync({}) = 0", at(3, "/r/d/b")));
        }
        trace.push(format!("rename(\"{}\", \"{}\") = 0", hex("/r/d/b"), hex("/r/d/a")));
        if syncs_folder {
            trace.push(format!("fsync({}) = 0", at(4, "/r/d")));
        }
        let ops = operations(&trace, Path::new("/r"), &start).unwrap();
        (start, ops)
    }

    fn content(disk: &Disk) -> Option<String> {
        match disk.names.get(Path::new("/r/d/a"))? {
            Node::File(number) => Some(String::from_utf8(disk.files[*number].clone()).unwrap()),
            Node::Folder => None,
        }
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_is_there_or_not() {
        let is_name = |op: &Op| matches!(op, Op::Name { .. });
        let (start, ops) = replaced(true, true);
        assert_eq!(content(&start.after_power_failed(&ops, |_| false)).as_deref(), Some("new"));
        let (start, ops) = replaced(true, false);
        assert_eq!(content(&start.after_power_failed(&ops, |_| false)).as_deref(), Some("old"));
        assert_eq!(content(&start.after_power_failed(&ops, |_| true)).as_deref(), Some("new"));
        let (start, ops) = replaced(false, true);
        assert_eq!(
            content(&start.after_power_failed(&ops, is_name)).as_deref(),
            Some(""),
            "the empty file of a rename"
        );
    }
}
