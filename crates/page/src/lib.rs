//! Results as pages, for the program and for a browser alike: captures looked at, the JSON document of what was found, and
//! the HTML page of any document.
//!
//! Nothing here touches the system: captures come through a function that reads them. What is *not* here: the documents of
//! other commands, and text for a terminal (`report`); writing files (`cli`); the script and the style of pages (`web`).
#![forbid(unsafe_code)]

mod capture;
mod clean;
pub mod html;
pub mod json;
mod look;
mod words;

pub use capture::{
    Advice, CaptureFile, CaptureList, CaptureProblem, Limited, Vantages, advice, display_filter, endpoint, needed,
};
pub use clean::{clean, is_harmful};
pub use fullpipe_diagnose::percent;
pub use look::{Closer, MOST_DRAWN, MOST_ON_PAGE, Seen, charts, list};
pub use words::{mbps, verdict};
