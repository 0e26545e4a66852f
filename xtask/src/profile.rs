//! What ships is compiled with a profile of simulations (profile-guided optimization; the rustc book has a chapter of that name).
//!
//! `training`, an example of `fullpipe-sim`, is compiled with counters and run, and from what they counted the compiler knows which ways
//! through the engine and the simulator are hot. Only these two crates are given it: others become larger by it and hardly faster. So
//! cargo calls this program in the compiler's place (`RUSTC_WORKSPACE_WRAPPER`), and it adds the options where they belong.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use crate::setup;

/// Crates that are given the profile.
const CRATES: [&str; 2] = ["fullpipe_sim", "fullpipe_tcp"];
/// What this program is to do in the compiler's place: [`COUNT`] or [`USE`].
const STEP: &str = "FULLPIPE_PROFILE_STEP";
const COUNT: &str = "count";
const USE: &str = "use";
/// Where counts and profile lie, a folder for each program and system.
const FOLDER: &str = "FULLPIPE_PROFILE_FOLDER";
/// Where there it is built with counters: cargo does not know which step it is, and would take one's for the other's.
const COUNTING: &str = "counting";
/// What `llvm-profdata` makes of the counts.
const PROFILE: &str = "simulations.profdata";

/// What is never counted is optimized for size, and not only where all that is hot is large (LLVM's profile-guided size optimization):
/// 0.1 MB of the program.
const SMALL: &str = "-Cllvm-args=-pgso-lwss-only=false";

/// What is built.
pub(crate) struct Build<'a> {
    /// Cargo's command that builds: `build`, or `zigbuild`.
    pub(crate) command: &'a str,
    pub(crate) triple: &'a str,
    /// Packages and their features, as arguments of cargo; `fullpipe-sim` is one of them.
    pub(crate) packages: &'a [&'a str],
    /// Which program of theirs, as arguments of cargo.
    pub(crate) program: [&'a str; 2],
}

impl Build<'_> {
    /// Builds with a profile; without one, and says so, where the training can't run.
    pub(crate) fn run(&self, shell: &Shell) -> Result<()> {
        // One for each: other packages in a build may mean other features, and other symbols.
        let folder = shell.current_dir().join(format!("target/profiles/{}-{}", self.program[1], self.triple));
        let trained = self.train(shell, &folder);
        if let Err(error) = &trained {
            println!("{}: built without a profile, its simulations take longer: {error:#}", self.triple);
        }
        self.cargo(shell, self.program, trained.is_ok().then_some((USE, &folder)))
    }

    /// Leaves a profile in the folder.
    fn train(&self, shell: &Shell, folder: &Path) -> Result<()> {
        let runs_here = self.triple.starts_with(env::consts::ARCH) && self.triple.contains(env::consts::OS);
        ensure!(runs_here, "its programs don't run on this machine");
        let merge = setup::profdata(shell)?;
        shell.create_dir(folder)?;
        for counted in raw(folder)? {
            fs::remove_file(counted)?;
        }
        self.cargo(shell, ["--example", "training"], Some((COUNT, folder)))?;
        let training = folder.join(COUNTING).join(self.triple).join("dist/examples/training");
        cmd!(shell, "{training}").env("LLVM_PROFILE_FILE", folder.join("%m.profraw")).quiet().ignore_stdout().run()?;
        let (counted, new) = (raw(folder)?, folder.join("new"));
        cmd!(shell, "{merge} merge --output {new} {counted...}").quiet().run()?;
        // Cargo goes by the time of the file: one that says the same is left as it is.
        let profile = folder.join(PROFILE);
        if fs::read(&new)? != fs::read(&profile).unwrap_or_default() {
            fs::rename(&new, &profile)?;
        }
        Ok(())
    }

    fn cargo(&self, shell: &Shell, program: [&str; 2], step: Option<(&str, &Path)>) -> Result<()> {
        let Self { command, triple, packages, .. } = *self;
        let mut environment = Vec::new();
        let mut elsewhere = Vec::new();
        if let Some((step, folder)) = step {
            environment.push(shell.push_env(STEP, step));
            environment.push(shell.push_env(FOLDER, folder));
            environment.push(shell.push_env("RUSTC_WORKSPACE_WRAPPER", env::current_exe()?));
            if step == COUNT {
                elsewhere.extend(["--target-dir".into(), folder.join(COUNTING).into_os_string()]);
            }
        }
        let options = ["--quiet", "--locked", "--profile", "dist", "--target", triple];
        cmd!(shell, "cargo {command} {options...} {packages...} {program...} {elsewhere...}").run()?;
        Ok(())
    }
}

/// What programs with counters have left.
fn raw(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder).with_context(|| format!("look into {}", folder.display()))?;
    let mut files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension() == Some(OsStr::new("profraw")));
    Ok(files)
}

/// Whether cargo calls this program in the compiler's place; then it becomes the compiler, or could not.
pub(crate) fn as_compiler() -> Option<Result<()>> {
    let step = env::var(STEP).ok()?;
    Some(compile(&step))
}

fn compile(step: &str) -> Result<()> {
    let folder = PathBuf::from(env::var_os(FOLDER).context("a folder for the profile")?);
    let mut arguments = env::args_os().skip(1);
    let compiler = arguments.next().context("the compiler, as cargo's wrappers are given it")?;
    let arguments: Vec<OsString> = arguments.collect();
    let more = options(step, &folder, &Call::of(&arguments))?;
    Err(Command::new(compiler).args(arguments).args(more).exec().into())
}

/// What one call of the compiler is about.
#[derive(Default)]
struct Call {
    name: String,
    /// By which symbols of the crate are told from those of others; counts are kept by symbol.
    metadata: String,
    /// For the system that programs are built for, and not for this one, as build scripts are.
    is_for_target: bool,
    is_program: bool,
}

impl Call {
    fn of(arguments: &[OsString]) -> Self {
        let mut call = Self::default();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        for pair in arguments.windows(2) {
            match (&*pair[0], &*pair[1]) {
                ("--crate-name", name) => name.clone_into(&mut call.name),
                ("--crate-type", kind) => call.is_program = kind == "bin",
                ("--target", _) => call.is_for_target = true,
                ("-C", option) => {
                    if let Some(metadata) = option.strip_prefix("metadata=") {
                        metadata.clone_into(&mut call.metadata);
                    }
                }
                _ => {}
            }
        }
        call
    }
}

/// What is added to the compiler's arguments.
fn options(step: &str, folder: &Path, call: &Call) -> Result<Vec<OsString>> {
    let with = |option: &str, path: &Path| {
        let mut whole = OsString::from(option);
        whole.push(path);
        whole
    };
    let is_profiled = call.is_for_target && CRATES.contains(&&*call.name);
    let metadata = folder.join(&call.name).with_extension("metadata");
    Ok(match step {
        COUNT if is_profiled => {
            fs::write(&metadata, &call.metadata).with_context(|| format!("write {}", metadata.display()))?;
            vec![with("-Cprofile-generate=", folder)]
        }
        // The linkers of other systems that `cargo-zigbuild` brings don't know an option that counting takes.
        COUNT if call.is_for_target && call.is_program => {
            vec![with("-Cprofile-generate=", folder), "-Clinker=cc".into()]
        }
        USE if is_profiled => {
            let counted = fs::read_to_string(&metadata).with_context(|| {
                format!("read {} (remove its folder, and all of it is made anew)", metadata.display())
            })?;
            ensure!(
                counted == call.metadata,
                "{}: counts of another build (other packages or features): no symbol is found among them",
                call.name
            );
            vec![with("-Cprofile-use=", &folder.join(PROFILE)), SMALL.into()]
        }
        USE if call.is_for_target && call.is_program => vec![SMALL.into()],
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, metadata: &str) -> Call {
        let arguments = ["--crate-name", name, "--crate-type", "lib", "-C", metadata, "--target", "a-b-c"];
        Call::of(&arguments.map(OsString::from))
    }

    #[test]
    fn only_what_was_counted_as_the_same_build_is_given_a_profile() {
        let folder = env::temp_dir().join(format!("fullpipe-profile-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let counted = options(COUNT, &folder, &called("fullpipe_tcp", "metadata=1")).unwrap();
        assert_eq!(counted, [OsString::from(format!("-Cprofile-generate={}", folder.display()))]);
        let used = options(USE, &folder, &called("fullpipe_tcp", "metadata=1")).unwrap();
        assert_eq!(used, [OsString::from(format!("-Cprofile-use={}/{PROFILE}", folder.display())), SMALL.into()]);
        let other = options(USE, &folder, &called("fullpipe_tcp", "metadata=2")).unwrap_err();
        assert!(other.to_string().contains("counts of another build"), "{other}");
        assert!(options(USE, &folder, &called("fullpipe_knobs", "metadata=1")).unwrap().is_empty());
        assert!(options(USE, &folder, &called("fullpipe_sim", "metadata=1")).is_err(), "it was never counted");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn build_scripts_are_left_alone() {
        let arguments = ["--crate-name", "fullpipe_tcp", "--crate-type", "bin"].map(OsString::from);
        assert!(options(COUNT, Path::new("/nonexistent"), &Call::of(&arguments)).unwrap().is_empty());
    }
}
