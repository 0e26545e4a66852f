//! The installed package under a real systemd: the Debian that packages are tried in is started as a machine of its own
//! (systemd-nspawn), with its own network.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use xshell::{Shell, cmd};

/// How long the machine may take to start.
const START: Duration = Duration::from_secs(90);

/// What is seen while the machine runs. Every login session ends with all its processes, root's too.
const SERVICES: &str = "
    set -eu
    fail() { echo \"$*\" >&2; exit 1; }
    R=/proc/sys/net/ipv4/tcp_rmem
    OLD=$(printf '4096\\t87380\\t129024')
    # Waits for what must come; the bound is only there so that a failure ends.
    back() { for i in $(seq 300); do [ \"$(cat $R)\" = \"$OLD\" ] && return; sleep 0.1; done; fail \"$1: not put back\"; }
    guardians() { systemctl list-units --all --no-legend 'fullpipe-guardian-*' | wc -l; }
    ended() { for i in $(seq 300); do [ $(guardians) = 0 ] && return; sleep 0.1; done; fail \"$1: a guardian stayed\"; }
    # Of a pipe the shell sees the last command alone.
    security() {
        level=$(systemd-analyze security --threshold=$1 $2) || fail \"$2 is more exposed than $1: $level\"
        echo \"$level\" | tail -1
    }
    mkdir -p /etc/systemd/logind.conf.d
    printf '[Login]\\nKillUserProcesses=yes\\nKillExcludeUsers=\\n' > /etc/systemd/logind.conf.d/kill.conf
    systemctl restart systemd-logind
    dpkg --install /opt/fullpipe.deb > /dev/null
    [ \"$(systemctl is-enabled fullpipe-recover.service)\" = enabled ] || fail 'fullpipe-recover is not enabled'
    ip link set lo up

    systemctl start fullpipe-serve
    for i in $(seq 100); do fullpipe measure 127.0.0.1 -t 1 > /dev/null 2>&1 && break; sleep 0.1; done
    systemctl is-active --quiet fullpipe-serve || fail 'fullpipe-serve does not run'
    fullpipe measure 127.0.0.1 -t 1 > /dev/null
    systemctl stop fullpipe-serve
    security 20 fullpipe-serve.service

    systemctl start fullpipe-agent
    for i in $(seq 100); do systemctl is-active --quiet fullpipe-agent && break; sleep 0.1; done
    sleep 2
    systemctl is-active --quiet fullpipe-agent || fail 'fullpipe-agent does not run'
    systemctl stop fullpipe-agent
    security 30 fullpipe-agent.service

    echo $OLD > $R
    fullpipe plan --platform this --rate 100M --rtt 80ms --json > /tmp/plan.json
    # A trial begun in a login session, which then ends with all its processes.
    systemd-run --quiet --wait --pipe -p PAMName=login sh -c '
        fullpipe apply /tmp/plan.json --yes --confirm-within 4s > /dev/null
        loginctl terminate-session $XDG_SESSION_ID; sleep 60; touch /run/lived-on' || true
    [ ! -e /run/lived-on ] || fail 'the session did not end'
    [ \"$(cat $R)\" != \"$OLD\" ] || fail 'put back before its time'
    systemctl is-active --quiet 'fullpipe-guardian-*' || fail 'the guardian ended with the session'
    back 'after the end of the session'
    ended 'after the end of the session'
    echo 'a trial outlived its login session and was put back in time'

    fullpipe apply /tmp/plan.json --yes --confirm-within 6s > /dev/null
    systemctl kill --signal=KILL 'fullpipe-guardian-*'
    back 'guardian killed'
    ended 'guardian killed'
    echo 'a guardian that was killed came back and put the trial back'

    fullpipe apply /tmp/plan.json --yes --confirm-within 1h > /dev/null
    sync";

/// What is seen after the power was cut in the middle of the last trial.
const AFTER_POWER_CUT: &str = "
    set -eu
    systemctl show -p ActiveState -p SubState -p Result fullpipe-recover.service
    [ \"$(systemctl show -P Result fullpipe-recover.service)\" = success ]
    [ \"$(systemctl show -P ExecMainStartTimestampMonotonic fullpipe-recover.service)\" != 0 ]
    ! fullpipe status --json | grep -q on_trial
    echo 'a trial that a power cut ended was looked at when the machine started'
    dpkg --purge fullpipe";

/// Runs the package below `root` through the life of its services.
pub(super) fn try_out(shell: &Shell, root: &Path) -> Result<()> {
    // Not below /tmp, which the machine has in memory.
    shell.copy_file(root.join("tmp/fullpipe.deb"), root.join("opt"))?;
    let machine = Machine::start(root)?;
    machine.run(shell, SERVICES)?;
    // As a power cut does it: nothing gets to end in order.
    drop(machine);
    let machine = Machine::start(root)?;
    machine.run(shell, AFTER_POWER_CUT)?;
    Ok(shell.remove_path(root.join("opt/fullpipe.deb"))?)
}

/// A container with an init of its own; killed when dropped.
struct Machine {
    nspawn: Child,
    /// The process number of its init.
    init: u32,
}

impl Machine {
    fn start(root: &Path) -> Result<Self> {
        let nspawn = Command::new("systemd-nspawn")
            .args(["--quiet", "--boot", "--private-network", "--register=no", "--keep-unit", "--directory"])
            .arg(root)
            .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start systemd-nspawn")?;
        let mut machine = Self { nspawn, init: 0 };
        let begin = Instant::now();
        while machine.init == 0 || !machine.is_up() {
            ensure!(begin.elapsed() < START, "the machine in {} did not start", root.display());
            if let Some(status) = machine.nspawn.try_wait()? {
                bail!("systemd-nspawn ended with {status}");
            }
            thread::sleep(Duration::from_millis(200));
            machine.init = machine.find_init().unwrap_or(0);
        }
        Ok(machine)
    }

    fn find_init(&self) -> Option<u32> {
        let nspawn = self.nspawn.id();
        let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Whether everything that starts with the machine has started.
    fn is_up(&self) -> bool {
        let init = self.init.to_string();
        let mut look = Command::new("nsenter");
        look.args(["--target", &init, "--all", "systemctl", "is-active", "--quiet", "multi-user.target"]);
        look.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|look| look.success())
    }

    fn run(&self, shell: &Shell, script: &str) -> Result<()> {
        let init = self.init.to_string();
        cmd!(shell, "nsenter --target {init} --all sh -c {script}")
            .quiet()
            .run()
            .context("in the machine that systemd runs")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With its init the kernel ends everything in it, and nspawn then ends by itself.
        if self.init != 0 {
            let kill = Command::new("kill").args(["-KILL", &self.init.to_string()]).status();
            kill.map(drop).unwrap_or_default();
        } else {
            self.nspawn.kill().unwrap_or_default();
        }
        self.nspawn.wait().map(drop).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_too_exposed_fails_the_script() {
        let (_, rest) = SERVICES.split_once("    security() {").expect("the function is there");
        let (body, _) = rest.split_once("\n    }\n").expect("it ends");
        for (exit, is_fine) in [(0, true), (1, false)] {
            let analyze = format!("systemd-analyze() {{ echo 'Overall exposure level: 1.3'; return {exit}; }}");
            let fail = "fail() { echo \"$*\" >&2; exit 1; }";
            let script = format!("set -eu\n{fail}\n{analyze}\nsecurity() {{{body}\n}}\nsecurity 20 x.service\n");
            // A shell function may have a dash in bash, and in no shell that POSIX describes.
            let ended = Command::new("bash").args(["-c", &script]).output().expect("bash starts");
            assert_eq!(ended.status.success(), is_fine, "{ended:?}");
        }
    }
}
