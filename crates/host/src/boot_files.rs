//! Which files set sysctls at boot: finds and reads them for the parser of `knobs`, on this system or in a folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{
    Settings,
    sysctl_conf::{DIRECTORIES, boot_order, note_origins, parse},
};

use crate::HostError;

const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Notes where the boot-time files of the system below `root` set what is in `settings`.
pub(crate) fn note(root: &Path, settings: &mut Settings) -> Result<(), HostError> {
    let files = candidates(root)?;
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let mut parsed = Vec::new();
    for name in boot_order(&names) {
        match fs::read(below(root, name)) {
            Ok(content) => parsed.push((name, parse(&String::from_utf8_lossy(&content)).0)),
            // Dangling links are common in images, and what only root may read tells others nothing.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            Err(source) => return Err(failed("read", name, source)),
        }
    }
    note_origins(settings, &parsed);
    Ok(())
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
