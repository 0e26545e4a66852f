//! An error as a user sees it.

/// Why a command could not be done: the same three parts on a terminal and in JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// One word for programs, which never changes its meaning; `docs/exit-codes.md` lists them.
    pub kind: &'static str,
    /// Operation, object and cause, as a sentence without a full stop.
    pub message: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
}
