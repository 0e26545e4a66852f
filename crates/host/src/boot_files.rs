//! Which files set sysctls at boot: finds and reads them for the parser of `knobs`, on this system or in a folder; and
//! which of them win over a drop-in of ours.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{
    Address, Change, Settings,
    sysctl_conf::{DIRECTORIES, Line, boot_order, note_origins, parse},
};

use crate::{HostError, Overridden, persist, value::same_value};

const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Notes where the boot-time files of the system below `root` set what is in `settings`.
pub(crate) fn note(root: &Path, settings: &mut Settings) -> Result<(), HostError> {
    let files = candidates(root)?;
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut parsed = Vec::new();
    for name in boot_order(&names) {
        parsed.extend(lines(&below(root, name), name)?.map(|lines| (name, lines)));
    }
    note_origins(settings, &parsed);
    Ok(())
}

/// The lines of one file, where it can be read.
fn lines(file: &Path, name: &str) -> Result<Option<Vec<Line>>, HostError> {
    match fs::read(file) {
        Ok(content) => Ok(Some(parse(&String::from_utf8_lossy(&content)).0)),
        // Dangling links are common in images, and what only root may read tells others nothing.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(None),
        Err(source) => Err(failed("read", name, source)),
    }
}

/// What keeps a drop-in in `folder` from deciding what `changes` are at the next boot of the system below `root`.
pub(crate) fn overridden(root: &Path, folder: &Path, changes: &[&Change]) -> Result<Vec<Overridden>, HostError> {
    let drop_in = folder.join(persist::file_name());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let known = DIRECTORIES.iter().find(|known| real(&below(root, known)) == real(folder));
    let mut found = Vec::new();
    let mut system = candidates(root)?;
    // Files of a folder that something of the administrator's reads, beside the system's.
    let mut theirs = Vec::new();
    let ours = match known {
        Some(known) => {
            let ours = format!("{known}/{}", persist::file_name());
            if !system.contains(&ours) {
                system.push(ours.clone());
            }
            ours
        }
        None => {
            found.push(Overridden::NotRead { drop_in: drop_in.clone() });
            theirs.push(drop_in.clone());
            theirs.extend(conf_files(folder)?.iter().map(|name| folder.join(name)).filter(|file| *file != drop_in));
            drop_in.display().to_string()
        }
    };
    let names: Vec<&str> = system.iter().map(String::as_str).collect();
    let (mut last, mut files) = (None, Vec::new());
    for name in boot_order(&names) {
        let file = (name.to_owned(), below(root, name));
        if name == SYSCTL_CONF {
            last = Some(file);
        } else {
            files.push(file);
        }
    }
    files.extend(theirs.into_iter().map(|path| (path.display().to_string(), path)));
    files.sort_by(|(a, _), (b, _)| base(a).cmp(base(b)));
    files.extend(last);
    let Some(place) = files.iter().position(|(name, _)| *name == ours) else {
        let by = files.iter().find(|(name, _)| base(name) == persist::file_name());
        let by = by.map_or_else(|| PathBuf::from(SYSCTL_CONF), |(name, _)| PathBuf::from(name));
        return Ok(vec![Overridden::Hidden { drop_in, by }]);
    };
    // A line that names a setting wins over patterns, wherever they stand, and ours does.
    for (name, path) in &files[place + 1..] {
        for line in lines(path, name)?.unwrap_or_default().into_iter().filter(|line| !line.pattern) {
            let Some(value) = line.value else { continue };
            let is_it = |change: &&&Change| change.knob == Address::sysctl(&line.name);
            let Some(change) = changes.iter().find(is_it) else { continue };
            found.retain(|found| !matches!(found, Overridden::Line { address, .. } if *address == change.knob));
            if !same_value(&change.knob, Some(&value), change.to.as_deref()) {
                found.push(Overridden::Line {
                    address: change.knob.clone(),
                    wanted: change.to.clone().unwrap_or_default(),
                    drop_in: drop_in.clone(),
                    file: name.clone(),
                    line: line.number,
                    value,
                });
            }
        }
    }
    Ok(found)
}

/// The last part of a path.
fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The names of the files of one folder that a system would read at boot.
fn conf_files(folder: &Path) -> Result<Vec<String>, HostError> {
    let list = |source| failed("list", &folder.display().to_string(), source);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(list(source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(list)?.file_name().into_string().ok().filter(|name| name.ends_with(".conf")));
    }
    names.sort();
    Ok(names)
}

/// The files as the system names them. `/etc/sysctl.conf` is among them where something reads it at boot: a link in
/// sysctl.d that leads to it, or any system but systemd.
fn candidates(root: &Path) -> Result<Vec<String>, HostError> {
    let sysctl_conf = below(root, SYSCTL_CONF).canonicalize().ok();
    let mut linked = false;
    let mut files = Vec::new();
    for directory in DIRECTORIES {
        let entries = match fs::read_dir(below(root, directory)) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => continue,
            Err(source) => return Err(failed("list", directory, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| failed("list", directory, source))?;
            if sysctl_conf.is_some() && entry.path().canonicalize().ok() == sysctl_conf {
                linked = true;
            } else if let Ok(name) = entry.file_name().into_string() {
                files.push(format!("{directory}/{name}"));
            }
        }
    }
    if sysctl_conf.is_some() && (linked || !below(root, "/run/systemd/system").exists()) {
        files.push(SYSCTL_CONF.to_owned());
    }
    Ok(files)
}

fn below(root: &Path, file: &str) -> PathBuf {
    root.join(file.trim_start_matches('/'))
}

fn failed(operation: &'static str, path: &str, source: io::Error) -> HostError {
    HostError::File { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::Address;

    use super::*;

    /// The files that set tcp_rmem below a root, in order.
    fn origins(root: &Path) -> Vec<String> {
        let rmem = Address::sysctl("net.ipv4.tcp_rmem");
        let mut settings = Settings::default();
        settings.values.insert(rmem.clone(), Some("4096 131072 6291456".into()));
        note(root, &mut settings).expect("read");
        settings.origins.remove(&rmem).unwrap_or_default().into_iter().map(|origin| origin.file).collect()
    }

    fn put(root: &Path, file: &str) {
        let path = below(root, file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, "net.ipv4.tcp_rmem = 4096 131072 6291456\n").expect("written");
    }

    #[test]
    fn files_are_named_as_the_system_names_them_and_in_its_order() {
        let root = tempfile::tempdir().expect("a folder");
        for file in ["/usr/lib/sysctl.d/50-a.conf", "/etc/sysctl.d/60-b.conf", "/etc/sysctl.d/50-a.conf"] {
            put(root.path(), file);
        }
        assert_eq!(origins(root.path()), ["/etc/sysctl.d/50-a.conf", "/etc/sysctl.d/60-b.conf"]);
        assert_eq!(origins(&root.path().join("no such root")), [""; 0]);
    }

    /// What is said of a drop-in in a folder that sets tcp_rmem.
    fn said(root: &Path, folder: &Path) -> Vec<String> {
        let change = Change::unexplained(
            "a".into(),
            Address::sysctl("net.ipv4.tcp_rmem"),
            None,
            Some("4096 131072 9000000".into()),
        );
        let said = overridden(root, folder, &[&change]).expect("looked at");
        said.iter().map(ToString::to_string).collect()
    }

    fn put_text(file: &Path, text: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, text).expect("written");
    }

    #[test]
    fn a_later_file_of_any_folder_wins_over_a_drop_in_and_an_earlier_one_does_not() {
        for (file, wins) in [
            ("/etc/sysctl.d/99-late.conf", true),
            ("/run/sysctl.d/99-late.conf", true),
            ("/usr/local/lib/sysctl.d/99-late.conf", true),
            ("/usr/lib/sysctl.d/99-late.conf", true),
            ("/lib/sysctl.d/90-fullpipe.conf.conf", true),
            ("/etc/sysctl.conf", true),
            ("/etc/sysctl.d/50-early.conf", false),
            ("/etc/sysctl.d/99-late.conf.bak", false),
            // What is in the first folder hides what is in a later one.
            ("/usr/lib/sysctl.d/90-fullpipe.conf", false),
        ] {
            let root = tempfile::tempdir().expect("a folder");
            put(root.path(), file);
            let said = said(root.path(), &below(root.path(), "/etc/sysctl.d"));
            assert_eq!(said.len(), usize::from(wins), "{file}: {said:?}");
            if wins {
                let words = ["wins at the next boot", &format!("{file}:1"), "net.ipv4.tcp_rmem = 4096 131072 9000000"];
                assert!(words.iter().all(|word| said[0].contains(word)), "{said:?}");
                assert_eq!(said[0].contains("copy of that file"), file.contains("/lib/") && !file.contains("local"));
            }
        }
    }

    #[test]
    fn a_later_line_that_says_the_same_or_a_pattern_does_not_win() {
        let late = "/etc/sysctl.d/99-late.conf";
        for (text, wins) in [
            ("net.ipv4.tcp_rmem = 1 2 3\n", true),
            ("net/ipv4/tcp_rmem=1 2 3\n", true),
            ("-net.ipv4.tcp_rmem = 1 2 3\n", true),
            ("net.ipv4.tcp_rmem = 4096\t131072 9000000\n", false),
            ("net.ipv4.tcp_rmem = 1 2 3\nnet.ipv4.tcp_rmem = 4096 131072 9000000\n", false),
            ("net.ipv4.tcp_* = 1\n", false),
            ("-net.ipv4.tcp_rmem\n", false),
        ] {
            let root = tempfile::tempdir().expect("a folder");
            put_text(&below(root.path(), late), text);
            let said = said(root.path(), &below(root.path(), "/etc/sysctl.d"));
            assert_eq!(said.len(), usize::from(wins), "{text}: {said:?}");
        }
    }

    #[test]
    fn a_folder_of_ones_own_is_looked_into_too() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("own");
        let alone = said(root.path(), &own);
        assert!(alone.len() == 1 && alone[0].contains("none of the folders that a system reads at boot"), "{alone:?}");
        put_text(&own.join("50-early.conf"), "net.ipv4.tcp_rmem = 1 2 3\n");
        assert_eq!(said(root.path(), &own), alone);
        put_text(&own.join("99-late.conf"), "a.b = 1\nnet.ipv4.tcp_rmem = 1 2 3\n");
        let two = said(root.path(), &own);
        assert!(two.len() == 2 && two[1].contains(&format!("{}:2", own.join("99-late.conf").display())), "{two:?}");
        put(root.path(), SYSCTL_CONF);
        let last = said(root.path(), &own);
        assert!(last.len() == 2 && last[1].contains("/etc/sysctl.conf:1"), "the last line alone counts: {last:?}");
    }

    #[test]
    fn a_drop_in_is_hidden_by_a_file_of_its_name_in_a_folder_that_comes_first() {
        let root = tempfile::tempdir().expect("a folder");
        put(root.path(), "/etc/sysctl.d/90-fullpipe.conf");
        let packages = below(root.path(), "/usr/lib/sysctl.d");
        fs::create_dir_all(&packages).expect("made");
        let said = said(root.path(), &packages);
        assert!(
            said.len() == 1 && said[0].starts_with("/etc/sysctl.d/90-fullpipe.conf takes the place of"),
            "{said:?}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn sysctl_conf_counts_once_and_only_where_something_reads_it() {
        let root = tempfile::tempdir().expect("a folder");
        put(root.path(), SYSCTL_CONF);
        put(root.path(), "/etc/sysctl.d/50-a.conf");
        assert_eq!(origins(root.path()), ["/etc/sysctl.d/50-a.conf", SYSCTL_CONF], "no systemd: sysctl --system");
        fs::create_dir_all(below(root.path(), "/run/systemd/system")).expect("made");
        assert_eq!(origins(root.path()), ["/etc/sysctl.d/50-a.conf"]);
        std::os::unix::fs::symlink("../sysctl.conf", below(root.path(), "/etc/sysctl.d/99-sysctl.conf"))
            .expect("linked");
        assert_eq!(origins(root.path()), ["/etc/sysctl.d/50-a.conf", SYSCTL_CONF]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_masked_or_dangling_sets_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        put(root.path(), "/usr/lib/sysctl.d/50-a.conf");
        put(root.path(), "/usr/lib/sysctl.d/60-b.conf");
        fs::create_dir_all(below(root.path(), "/etc/sysctl.d")).expect("made");
        std::os::unix::fs::symlink("/dev/null", below(root.path(), "/etc/sysctl.d/50-a.conf")).expect("linked");
        std::os::unix::fs::symlink("nowhere", below(root.path(), "/etc/sysctl.d/70-c.conf")).expect("linked");
        assert_eq!(origins(root.path()), ["/usr/lib/sysctl.d/60-b.conf"]);
    }
}
