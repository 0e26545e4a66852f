//! A recording: the JSON document of each interval, one behind the other.

mod whole;

use std::io::{self, BufRead};

use serde::Deserialize;
use thiserror::Error;

pub use whole::{Whole, whole};

use crate::frame::Frame;

/// A document.
#[derive(Debug, Deserialize)]
struct Document {
    command: String,
    #[serde(flatten)]
    frame: Frame,
}

/// Why a recording could not be read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A document is not what a recording holds.
    #[error("{reason}; give a file that `fullpipe watch --record` or `--json` wrote")]
    Document {
        /// What is wrong, and where.
        reason: String,
    },
    /// It is empty.
    #[error("there is nothing in it; give a file that `fullpipe watch --record` or `--json` wrote")]
    Empty,
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// Hands each frame of a recording to `each`, until that says to stop. A last document that was cut off, by a full disk or a
/// kill, is left out.
///
/// # Errors
/// What is wrong, and where.
pub fn read(file: impl BufRead, mut each: impl FnMut(Frame) -> bool) -> Result<(), RecordError> {
    let mut is_empty = true;
    for document in serde_json::Deserializer::from_reader(file).into_iter::<Document>() {
        match document {
            Ok(document) if document.command != "watch" => {
                return Err(RecordError::Document { reason: format!("it is of `fullpipe {}`", document.command) });
            }
            Ok(document) => {
                is_empty = false;
                if !each(document.frame) {
                    return Ok(());
                }
            }
            Err(error) if error.is_io() => return Err(RecordError::Read(error.into())),
            Err(error) if error.is_eof() && !is_empty => return Ok(()),
            Err(error) => return Err(RecordError::Document { reason: error.to_string() }),
        }
    }
    if is_empty { Err(RecordError::Empty) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(at_s: f64) -> Frame {
        Frame { at_s, interval_s: 1.0, connections: 3, missing: vec!["names".to_owned()], ..Frame::default() }
    }

    fn line(frame: &Frame) -> String {
        let mut document = serde_json::to_value(frame).unwrap();
        document["command"] = "watch".into();
        document.to_string() + "\n"
    }

    fn all(text: &[u8]) -> Result<Vec<Frame>, RecordError> {
        let mut frames = Vec::new();
        read(text, |frame| {
            frames.push(frame);
            true
        })
        .map(|()| frames)
    }

    #[test]
    fn what_was_written_is_read_again() {
        let text = line(&frame(1.0)) + &line(&frame(2.0));
        assert_eq!(all(text.as_bytes()).unwrap(), [frame(1.0), frame(2.0)]);
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_left_out() {
        let text = line(&frame(1.0)) + &line(&frame(2.0));
        assert_eq!(all(&text.as_bytes()[..text.len() - 9]).unwrap(), [frame(1.0)]);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_place() {
        assert!(matches!(all(b""), Err(RecordError::Empty)));
        assert!(matches!(all(b"\x00\xff\n"), Err(RecordError::Document { .. })));
        let other = line(&frame(1.0)) + &line(&frame(1.0)).replace("watch", "read");
        assert!(all(other.as_bytes()).unwrap_err().to_string().contains("`fullpipe read`"));
        let lacking = line(&frame(1.0)) + "{\"command\":\"watch\"}";
        assert!(all(lacking.as_bytes()).unwrap_err().to_string().contains("line 2"));
    }
}
