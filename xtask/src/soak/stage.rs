//! The machine that the crash matrix runs on: a network namespace, a state folder and a `sysctl.d`, put back as they were
//! before each point.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

/// Set, to the folder, for the copy of this program that runs in the namespace.
const INSIDE: &str = "FULLPIPE_SOAK_INSIDE";

/// The settings that the commands change, as they are at first.
const SETTINGS: [(&str, &str); 3] =
    [("tcp_rmem", "4096 87380 129024"), ("tcp_wmem", "4096 16384 65536"), ("tcp_sack", "0")];

/// A drop-in with a line of the administrator's, which stays.
const DROP_IN: &str = "# ours\nnet.ipv4.tcp_ecn = 2\n";

/// The folders that the commands write into.
pub(super) const FOLDERS: [&str; 2] = ["state", "sysctl.d"];

/// The values of the settings, and the files of `sysctl.d`.
pub(super) type World = (Vec<String>, BTreeMap<PathBuf, Vec<u8>>);

/// A moment to go back to: the world, and a copy of the folders.
pub(super) struct Moment {
    world: World,
    copy: PathBuf,
}

/// Where the commands run.
pub(super) struct Stage {
    program: PathBuf,
    folder: PathBuf,
}

impl Stage {
    /// The stage, where this program runs in its namespace.
    pub(super) fn inside() -> Result<Option<Self>> {
        let Some(folder) = env::var_os(INSIDE).map(PathBuf::from) else { return Ok(None) };
        // A copy: another build may replace the program meanwhile.
        let program = folder.join("fullpipe");
        fs::copy("target/debug/fullpipe", &program)?;
        let stage = Self { program, folder };
        stage.begin()?;
        let plan = stage.fullpipe(&["plan", "--platform", "this", "--rate", "100M", "--rtt", "80ms", "--json"])?;
        ensure!(plan.status.success(), "{}", String::from_utf8_lossy(&plan.stderr));
        fs::write(stage.path("plan.json"), &plan.stdout)?;
        Ok(Some(stage))
    }

    /// Starts this program again with `arguments`, in namespaces that go with it.
    pub(super) fn start(shell: &Shell, arguments: &[String]) -> Result<()> {
        let strace = cmd!(shell, "strace --version").quiet().ignore_stdout().ignore_stderr().run();
        strace.context("strace is not here (apt-get install strace)")?;
        cmd!(shell, "cargo build --locked --package fullpipe").run()?;
        let works = |options: &&&str| {
            let status = Command::new("unshare").args([**options, "true"]).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let options = ["-nm", "-rnm"].iter().find(works).context("`unshare -n` is not possible here")?;
        let folder = env::temp_dir().join(format!("fullpipe-crash-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let mut command = Command::new("unshare");
        command.arg(options).arg(env::current_exe()?).args(arguments).env(INSIDE, &folder);
        let status = command.status();
        fs::remove_dir_all(&folder)?;
        ensure!(status?.success(), "the crash matrix found something, or could not run");
        Ok(())
    }

    /// The folder that holds all others.
    pub(super) fn root(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("FULLPIPE_STATE_DIR", self.path("state"))
            .env("FULLPIPE_SYSCTL_DIR", self.path("sysctl.d"))
            .stdin(Stdio::null());
        command
    }

    pub(super) fn fullpipe(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(&self.program).args(arguments).output()?)
    }

    /// Runs a command under strace, with its options.
    pub(super) fn traced(&self, arguments: &[String], options: &[&str]) -> Result<Output> {
        let mut command = self.command(Path::new("strace"));
        command.arg("-o").arg(self.path("trace")).args(options).arg(&self.program).args(arguments);
        command.output().context("run strace")
    }

    /// The lines of the last trace.
    pub(super) fn trace(&self) -> Result<Vec<String>> {
        let text = fs::read(self.path("trace"))?;
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    /// The machine as nobody changed it yet.
    pub(super) fn begin(&self) -> Result<()> {
        FOLDERS.iter().try_for_each(|folder| remove(&self.path(folder)))?;
        fs::create_dir(self.path("sysctl.d"))?;
        fs::write(self.path("sysctl.d/90-fullpipe.conf"), DROP_IN)?;
        Ok(SETTINGS.iter().try_for_each(|(name, value)| fs::write(setting(name), value))?)
    }

    /// What a restart makes of the settings: as the kernel has them, then what the drop-ins say (systemd-sysctl.service(8)).
    pub(super) fn boot(&self) -> Result<()> {
        SETTINGS.iter().try_for_each(|(name, value)| fs::write(setting(name), value))?;
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.path("sysctl.d"))?.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
        files.sort();
        for path in files {
            let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
            for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
                let key = key.trim().trim_start_matches('-');
                let known = SETTINGS.iter().find(|(name, _)| key.strip_prefix("net.ipv4.") == Some(*name));
                if let Some((name, _)) = known {
                    fs::write(setting(name), value.trim())?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn world(&self) -> Result<World> {
        let read = |(name, _): &(&str, &str)| fs::read_to_string(setting(name));
        let values = SETTINGS.iter().map(read).collect::<std::io::Result<Vec<_>>>()?;
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(self.path("sysctl.d"))? {
            let path = entry?.path();
            files.insert(path.clone(), fs::read(path)?);
        }
        Ok((values.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect(), files))
    }

    /// This moment, to go back to.
    pub(super) fn moment(&self) -> Result<Moment> {
        let copy = self.path("copy");
        remove(&copy)?;
        for folder in FOLDERS.iter().filter(|folder| self.path(folder).exists()) {
            copy_folder(&self.path(folder), &copy.join(folder))?;
        }
        Ok(Moment { world: self.world()?, copy })
    }

    pub(super) fn go_back(&self, to: &Moment) -> Result<()> {
        for folder in FOLDERS {
            remove(&self.path(folder))?;
            if to.copy.join(folder).exists() {
                copy_folder(&to.copy.join(folder), &self.path(folder))?;
            }
        }
        let (values, _) = &to.world;
        Ok(SETTINGS.iter().zip(values).try_for_each(|((name, _), value)| fs::write(setting(name), value))?)
    }

    /// Kills the guardians, which would take part at moments of their own; gives the name of the last one's owner.
    pub(super) fn kill_guardians(&self) -> Result<String> {
        let mut owner = String::new();
        let Ok(entries) = fs::read_dir(self.path("state")) else { return Ok(owner) };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(name) = name.strip_prefix("guard-").and_then(|name| name.strip_suffix(".lock")) {
                name.clone_into(&mut owner);
                // One that has gone by itself meanwhile is as good; its number may be another's by now.
                let process = fs::read_to_string(&path).unwrap_or_default();
                let called = fs::read_to_string(format!("/proc/{}/cmdline", process.trim())).unwrap_or_default();
                if called.contains(name) && called.contains("guard") {
                    Command::new("kill").args(["-9", process.trim()]).stderr(Stdio::null()).status()?;
                }
                fs::remove_file(&path).unwrap_or_default();
            }
        }
        Ok(owner)
    }
}

fn setting(name: &str) -> PathBuf {
    Path::new("/proc/sys/net/ipv4").join(name)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    Ok(())
}

/// Plain files with their modes, as both folders have no others.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
