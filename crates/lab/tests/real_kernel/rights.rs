//! Without the rights, one line says what is needed.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    process::Command,
};

/// Runs in a process of its own, as another user: see below.
#[test]
#[ignore = "a part of another test"]
fn enter_as_this_user() {
    match fullpipe_lab::preflight() {
        Ok(()) => println!("preflight: ok"),
        Err(error) => println!("preflight: {error}"),
    }
}

#[test]
fn an_ordinary_user_is_told_what_is_needed() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        println!("skipped an_ordinary_user_is_told_what_is_needed: it becomes another user, for which it must be root");
        return;
    }
    let node = fs::metadata("/dev/net/tun").map(|node| node.mode() & 0o777).unwrap_or(0);
    // The test program may lie where only root can read.
    let copy = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let path = copy.path().join("test");
    fs::copy("/proc/self/exe", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&path)
        .args(["--ignored", "--exact", "--nocapture", "--test-threads=1", "rights::enter_as_this_user"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    let output = match output {
        // In a user namespace there is no other user to become.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            println!("skipped an_ordinary_user_is_told_what_is_needed: cannot become another user here: {error}");
            return;
        }
        output => output.unwrap(),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once("preflight: ")).unwrap_or_else(|| panic!("{output:?}")).1;
    println!("as nobody: {line}");
    if line == "ok" {
        assert_eq!(node & 0o006, 0o006, "the TUN node is closed to others, and nobody was let in");
    } else {
        let names_the_way_out = ["chmod 0666 /dev/net/tun", "run as root", "modprobe tun"];
        assert!(names_the_way_out.iter().any(|way| line.contains(way)), "{line}");
        assert!(!line.contains('\n'));
    }
}
