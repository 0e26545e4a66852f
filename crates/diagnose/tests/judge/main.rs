//! The judge against timelines of known cause: made ones, hostile ones, and recorded ones.

mod hostile;
mod limiters;
mod network;
mod packets;
mod recorded;
mod reference;
mod world;

use fullpipe_diagnose::Diagnosis;

/// The whole diagnosis for an assertion's message.
fn report(diagnosis: &Diagnosis) -> String {
    serde_json::to_string_pretty(diagnosis).expect("a diagnosis is always JSON")
}
