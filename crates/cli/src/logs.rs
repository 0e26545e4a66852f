//! Logs: what the crates below tell by `tracing`, on standard error.
//!
//! `RUST_LOG` says which: `debug`, `fullpipe_host=debug,fullpipe_tune=info`; without, warnings, and with `-v` of `serve` and
//! of the guardian `debug`. With `--json` each is one JSON object on a line. What `serve` tells of its clients goes the same way and
//! is always shown, in its own form, with its level where that is not `info`.

use std::{env, fmt, io};

use fullpipe_report::clean;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::layer,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use crate::output::Output;

/// Of what `serve` tells of its clients.
const SERVE: &str = "fullpipe::serve";

/// Tells what `serve` has to say, as an event of its level.
pub(crate) fn serve(level: Level, line: &str) {
    // The level of an event is fixed where it is written.
    match level {
        Level::ERROR => tracing::error!(target: SERVE, "{line}"),
        Level::WARN => tracing::warn!(target: SERVE, "{line}"),
        _ => tracing::info!(target: SERVE, "{line}"),
    }
}

/// Shows logs from now on; `verbose` where nobody named any.
pub(crate) fn start(output: Output, verbose: bool) {
    let asked = env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = match asked.as_deref().map(str::parse::<Targets>) {
        Some(Ok(filter)) => Some(filter),
        Some(Err(error)) => {
            output
                .warning(&format!("RUST_LOG: {}; give `debug`, or `fullpipe_host=debug`\n", clean(&error.to_string())));
            None
        }
        None => Some(Targets::new().with_default(if verbose { Level::DEBUG } else { Level::WARN })),
    };
    // Those of `serve` have a form of their own.
    let filter = filter.map(|filter| filter.with_target(SERVE, tracing::level_filters::LevelFilter::OFF));
    let lines = filter.map(|filter| {
        let layer = layer().with_writer(io::stderr).with_ansi(false);
        let layer: Box<dyn Layer<_> + Send + Sync> =
            if output.is_json() { Box::new(layer.json()) } else { Box::new(layer) };
        layer.with_filter(filter)
    });
    let events = Events(output).with_filter(Targets::new().with_target(SERVE, Level::INFO));
    // Only a second call could fail.
    tracing_subscriber::registry().with(lines).with(events).try_init().unwrap_or_default();
}

/// What `serve` tells of its clients.
struct Events(Output);

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.event("serve", *event.metadata().level(), &clean(&message.0));
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
