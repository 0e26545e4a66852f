//! Judges recorded transfers: `cargo run -p fullpipe-diagnose --example judge -- TRANSFER.json...`

use std::{error::Error, fs};

use fullpipe_diagnose::{Transfer, diagnose};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let transfer: Transfer = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let rate = transfer.rate().unwrap_or_default();
        println!("{path}: {rate}\n{}", serde_json::to_string_pretty(&diagnose(&transfer))?);
    }
    Ok(())
}
