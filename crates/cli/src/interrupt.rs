//! Ctrl-C and its relatives: the first asks the loop to stop and to undo what was tried, the second ends at once.

use std::sync::{Arc, atomic::AtomicBool};

use signal_hook::{consts, flag};

use crate::{exit::Exit, failure::Failure};

/// What ends a program, besides `kill -9`. Windows has no SIGHUP.
const SIGNALS: &[i32] = &[
    consts::SIGINT,
    consts::SIGTERM,
    #[cfg(unix)]
    consts::SIGHUP,
];

/// The flag that the first signal sets.
///
/// Ending at once leaves no more behind than `kill -9` does: the journal is written before each change, so
/// `fullpipe undo` puts everything back.
pub(crate) fn cancel_flag() -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    for &signal in SIGNALS {
        // In this order: on the first signal the flag is still unset, so the shutdown passes and the flag gets set.
        flag::register_conditional_shutdown(signal, i32::from(Exit::Interrupted.code()), Arc::clone(&cancel))
            .and_then(|_| flag::register(signal, Arc::clone(&cancel)))
            .map_err(|error| Failure::system("catching Ctrl-C", &error))?;
    }
    Ok(cancel)
}

/// The flag that every signal sets, for a command that ends soon after and has nothing to undo but its screen.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in SIGNALS {
        flag::register(signal, Arc::clone(&stop)).map_err(|error| Failure::system("catching Ctrl-C", &error))?;
    }
    Ok(stop)
}

/// Leaves Ctrl-C to a command that shares the terminal. A handler, because an ignored signal would be inherited.
pub(crate) fn leave_to_command() -> Result<(), Failure> {
    flag::register(consts::SIGINT, Arc::default())
        .map(drop)
        .map_err(|error| Failure::system("leaving Ctrl-C to the command", &error))
}
