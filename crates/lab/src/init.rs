//! Between `fork` and `exec`: a process namespace of its own for each command, so that all that it ever starts ends
//! with it, in the background or not.
//!
//! Three processes come of one command. The one that the caller knows waits outside and passes the exit status on; the
//! first inside is an init that collects orphans, and whose end ends everything inside; the second inside becomes the
//! program. The chain of parent-death signals starts at the caller. Only system calls are made here: the caller has
//! threads, whose locks are locked for ever in this copy of it.
#![expect(unsafe_code, reason = "fork, waitpid and _exit between fork and exec have no safe form")]

use std::{ffi::c_int, io};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{Signal, set_parent_process_death_signal},
    thread::UnshareFlags,
};

/// Moves on into a process namespace; returns as the second process inside.
pub(crate) fn enter_process_namespace() -> io::Result<()> {
    // SAFETY: this process has one thread, and what these two change is for the processes to come.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID | UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    if let Some(init) = fork()? {
        ignore_terminal_signals();
        wait_outside(init);
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Tools that look there see this namespace's processes and interfaces. In a container both may be refused, and then
    // they see the host's.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).ok();
    mount("sysfs", "/sys", "sysfs", flags, None).ok();
    if let Some(program) = fork()? {
        wait_inside(program);
    }
    Ok(())
}

/// The child's process number; `None` in the child. Not libc's `fork`, which would run handlers and take locks.
fn fork() -> io::Result<Option<c_int>> {
    // SAFETY: a clone with no flags but the signal copies the process; each side goes on with its own stack.
    let result = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match result {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        process => Ok(Some(process as c_int)),
    }
}

/// What a terminal sends goes to the program too, which decides what comes of it.
fn ignore_terminal_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: SIG_IGN is no code to be run.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn wait_outside(init: c_int) -> ! {
    close_inherited();
    loop {
        if let Some((_, code)) = wait(init) {
            exit(code);
        }
    }
}

/// As the first process of its namespace it is spared the signals that it has no handler for.
fn wait_inside(program: c_int) -> ! {
    close_inherited();
    loop {
        match wait(-1) {
            Some((process, code)) if process == program => exit(code),
            _ => {}
        }
    }
}

/// Who ended, and the exit code that a shell would give it; `None` where the wait was interrupted.
fn wait(process: c_int) -> Option<(c_int, c_int)> {
    let mut status = 0;
    // SAFETY: waitpid writes one int, which lives until the call returns.
    let ended = unsafe { libc::waitpid(process, &raw mut status, 0) };
    if ended < 0 {
        if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            exit(127);
        }
        return None;
    }
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    Some((ended, code))
}

/// All but the standard streams. Among them is the pipe on which the caller waits for `exec`.
fn close_inherited() {
    // SAFETY: nothing in this process uses a descriptor above 2 any more.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    if done != 0 {
        // Before Linux 5.9.
        for descriptor in 3..4_096 {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: _exit runs nothing of this copy of the caller.
    unsafe { libc::_exit(code) }
}
