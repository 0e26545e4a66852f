//! Experiments with a small device: the engine, with the device's own speed, against a kernel over an emulated path.

mod fit;
mod own;
mod presets;
mod table;
mod trial;

pub use fit::{Found, fit};
pub use own::{BUFFER_BYTES, OwnDevice, POOL};
pub use presets::{Load, PresetOutcome, PresetTrial, Work, preset_trial};
pub use table::{Row, table};
pub use trial::{Application, Outcome, Trial, run};

use crate::StackError;

/// How often a run is tried whose path this machine did not keep up.
const TRIES: usize = 3;

/// A run; the same again where it is not valid, because then it says nothing of the engine. The last one where none is.
fn undisturbed<T>(
    mut run: impl FnMut() -> Result<T, StackError>,
    is_valid: impl Fn(&T) -> bool,
) -> Result<T, StackError> {
    let mut outcome = run()?;
    for _ in 1..TRIES {
        if is_valid(&outcome) {
            break;
        }
        outcome = run()?;
    }
    Ok(outcome)
}
