//! The package as its users get it: a wheel by maturin, in a fresh virtual environment, and its tests in Python. What they
//! need is in `target/tools/python`, where `cargo xtask test` puts it.

#[path = "../../../xtask/src/outside.rs"]
mod outside;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use outside::outside;

/// Where the workspace's target directory is: two above this test's own folder, `target/debug/deps`.
fn target() -> PathBuf {
    let own = env::current_exe().expect("a test knows its own file");
    own.ancestors().nth(3).expect("a test lies in target/debug/deps").to_owned()
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [&done.stdout, &done.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(done.status.success(), "{command:?}: {}\n{}", done.status, said.concat());
}

#[test]
fn the_wheel_works_in_a_fresh_environment() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tools = target().join("tools/python");
    let python = tools.join("bin/python");
    if !python.exists() || !tools.join("bin/maturin").exists() {
        return eprintln!("skipped: target/tools/python is not here; `cargo xtask setup` makes it");
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of the whole workspace, and below with the profile of tests: so both share what the tests were built of.
    let build = ["build", "--locked", "--quiet", "--workspace", "--bin", "fullpipe"];
    run(outside(cargo).args(build).current_dir(package));
    let folder = tempfile::tempdir().unwrap();
    let (wheels, fresh) = (folder.path().join("wheels"), folder.path().join("fresh"));
    run(outside(tools.join("bin/maturin"))
        .args(["build", "--locked", "--quiet", "--profile", "dev", "--interpreter"])
        .arg(&python)
        .arg("--out")
        .arg(&wheels)
        .current_dir(package));
    let wheel = wheels.read_dir().unwrap().next().unwrap().unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("-cp39-abi3-"), "{name}");
    run(Command::new(&python).args(["-m", "venv", "--without-pip"]).arg(&fresh));
    let fresh_python = fresh.join("bin/python");
    run(Command::new(&python)
        .args(["-m", "pip", "--quiet", "--disable-pip-version-check", "--python"])
        .arg(&fresh_python)
        .args(["install", "--no-index", "--no-deps"])
        .arg(&wheel));
    // By itself, without any of the libraries that its tests read tables with.
    run(Command::new(&fresh_python)
        .args(["-c", "import fullpipe; assert fullpipe.bdp('100M', '80ms') == 1000000"])
        .current_dir(folder.path()));
    let others = Command::new(&python).args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).output();
    let others = String::from_utf8(others.unwrap().stdout).unwrap();
    // A read that nothing ends is reported with what each thread does.
    run(Command::new("timeout")
        .args(["--signal=ABRT", "--kill-after=10", "420"])
        .arg(&fresh_python)
        .args(["-X", "faulthandler", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests"])
        .current_dir(package)
        .env("PYTHONPATH", others.trim())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FULLPIPE", target().join("debug/fullpipe")));
}
