//! How long to wait, and whether the caller still wants to.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::error::MeasureError;

/// How often a wait looks up to see whether it was cancelled.
const SLICE: Duration = Duration::from_millis(250);

/// A deadline with the flag that ends the wait early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'a> {
    until: Instant,
    total: Duration,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(total: Duration) -> Self {
        Self { until: Instant::now() + total, total, cancel: None }
    }

    pub(crate) fn unless(self, cancel: &'a AtomicBool) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    /// The same, for at most `longest` from now.
    pub(crate) fn capped(self, longest: Duration) -> Self {
        let longest = longest.min(self.left());
        Self { until: Instant::now() + longest, total: longest, cancel: self.cancel }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// The longest wait before the next look at the flag; never zero, which some system calls take for "for ever".
    pub(crate) fn slice(&self) -> Duration {
        self.left().min(SLICE).max(Duration::from_millis(1))
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), MeasureError> {
        match self.cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(MeasureError::Cancelled),
            _ => Ok(()),
        }
    }
}
