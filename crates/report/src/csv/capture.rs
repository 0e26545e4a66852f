//! Captures, a line per connection. What is *not* here: the columns (`row`).

use crate::{CaptureList, row::Row};

/// A line of names, and one for each connection that is to be shown.
pub fn captures(list: &CaptureList) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for report in list.connections.iter().take(list.shown) {
        writer.serialize(Row::from_report(&report))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
