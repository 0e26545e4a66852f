//! Logs: what the crates below report by `tracing`, on standard error, a line each.
//!
//! `RUST_LOG` says which: `debug`, `fullpipe_host=debug,fullpipe_tune=info`; without, warnings, and with `-v` of `serve` and
//! of the guardian `debug`. What `serve` reports of its clients goes the same way and is always shown. With `--json` each line is
//! one JSON object of one shape, whatever it reports.

use std::{env, fmt};

use fullpipe_measure::ServerEvent;
use fullpipe_report::{clean, json::Event as Line};
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use crate::output::Output;

/// Of what `serve` reports of its clients.
const SERVE: &str = "fullpipe::serve";

/// Logs what `serve` reports, as an event of its level.
pub(crate) fn serve(event: &ServerEvent) {
    let ServerEvent { kind, text, .. } = event;
    let peer = event.peer.map(|peer| peer.to_string());
    let peer = peer.as_deref();
    // The level of an event is fixed where it is written.
    match (event.level, &event.test) {
        (Level::ERROR, _) => tracing::error!(target: SERVE, event = kind, peer, "{text}"),
        (Level::WARN, _) => tracing::warn!(target: SERVE, event = kind, peer, "{text}"),
        (_, None) => tracing::info!(target: SERVE, event = kind, peer, "{text}"),
        (_, Some(test)) => tracing::info!(
            target: SERVE,
            event = kind,
            peer,
            user = test.user.as_deref(),
            client = test.client.as_deref(),
            title = test.title.as_deref(),
            connections = test.connections,
            duration_us = test.duration.get(),
            received_bytes = test.received.get(),
            sent_bytes = test.sent.get(),
            requests = test.requests,
            "{text}"
        ),
    }
}

/// Shows logs of `command` from now on; `verbose` where nobody named any.
pub(crate) fn start(command: &'static str, output: Output, verbose: bool) {
    let asked = env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = match asked.as_deref().map(str::parse::<Targets>) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            output
                .warning(&format!("RUST_LOG: {}; give `debug`, or `fullpipe_host=debug`\n", clean(&error.to_string())));
            Targets::new()
        }
        None => Targets::new().with_default(if verbose { Level::DEBUG } else { Level::WARN }),
    };
    // The target of `serve` is part of its result: always shown.
    let lines = Lines { command, output }.with_filter(filter.with_target(SERVE, LevelFilter::INFO));
    // Only a second call could fail.
    tracing_subscriber::registry().with(lines).try_init().unwrap_or_default();
}

struct Lines {
    command: &'static str,
    output: Output,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut found = Found::default();
        event.record(&mut found);
        let metadata = event.metadata();
        let of_serve = metadata.target() == SERVE;
        let (kind, peer) = (found.take("event"), found.take("peer"));
        self.output.event(&Line {
            command: self.command,
            level: word(*metadata.level()),
            kind: kind.as_deref().unwrap_or("log"),
            text: &clean(&found.message),
            peer: peer.as_deref(),
            target: (!of_serve).then(|| metadata.target()),
            fields: &found.fields,
        });
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// What an event says.
#[derive(Default)]
struct Found {
    message: String,
    fields: Map<String, Value>,
}

impl Found {
    fn take(&mut self, name: &str) -> Option<String> {
        match self.fields.remove(name)? {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    fn note(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else {
            self.note(field, text.into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.note(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field, value.into());
    }
}
