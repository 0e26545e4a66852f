//! What is asked for where.

use std::{io, path::PathBuf, process::Stdio, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Form, Path, Query, State},
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use fullpipe_report::html;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    Options,
    gate::{self, Gate},
    pages,
    runs::{NotStarted, Runs},
    store::Store,
    words::Asked,
};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Site {
    gate: Gate,
    runs: Runs,
    store: Store,
    program: PathBuf,
    what_if: String,
    largest: u64,
}

impl Site {
    pub(crate) fn new(options: Options, store: Store) -> Self {
        Self {
            gate: options.gate,
            runs: Runs::new(options.program.clone(), store.clone()),
            store,
            program: options.program,
            what_if: options.what_if,
            largest: options.largest,
        }
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }
}

type Shared = State<Arc<Site>>;

pub(crate) fn router(site: &Arc<Site>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/reader.js", get(worker))
        .route("/reader.wasm", get(reader))
        .route("/what-if", get(what_if))
        .route("/changes", get(changes))
        .route("/changes/{run}", get(change))
        .route("/reports/{name}", get(report).delete(forget))
        .route("/runs", post(start))
        .route("/runs/{name}", get(run))
        .route("/runs/{name}/events", get(events))
        .route("/runs/{name}/stop", post(stop))
        .layer(DefaultBodyLimit::max(16 << 10))
        // As long as the largest capture, which is looked after there.
        .route("/captures", post(capture).layer(DefaultBodyLimit::disable()))
        .fallback(async || missing("There is no such page here."))
        .layer(middleware::from_fn_with_state(Arc::clone(site), gate::guard))
        .with_state(Arc::clone(site))
}

/// A page of the server's own, with its policy as a header, too.
pub(crate) fn page(status: StatusCode, policy: &str, page: String) -> Response {
    // Without these two, which a page can't say of itself.
    let policy = format!("{policy}; frame-ancestors 'none'");
    let mut response = (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// A page that was made to stand alone: it brings its own policy, and here it also has no part in this server's origin.
const STANDS_ALONE: &str = "sandbox allow-scripts allow-downloads allow-top-navigation-by-user-activation; default-src 'none'; \
                            script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'";

fn alone(text: String) -> Response {
    page(StatusCode::OK, STANDS_ALONE, text)
}

fn missing(what: &str) -> Response {
    pages::message(StatusCode::NOT_FOUND, "Not here", what)
}

fn refused(status: StatusCode, words: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], json!({ "error": words }).to_string()).into_response()
}

async fn index(State(site): Shared) -> Response {
    pages::index(&site.store.list(), site.runs.current().as_deref(), site.gate.secret(), site.largest)
}

/// Built from `web/` by `npm run build`; a test of `web/` holds it fresh.
const WORKER: &str = include_str!("assets/reader.js");
/// `bindings/wasm` for `wasm32-unknown-unknown`, as gzip, by `npm run simulator` in `web/`.
const READER: &[u8] = include_bytes!("assets/reader.wasm.gz");

/// The script that reads a capture beside the page; it may load the reader, and nothing else.
async fn worker() -> impl IntoResponse {
    let policy = "default-src 'none'; script-src 'wasm-unsafe-eval'; connect-src 'self'";
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)], WORKER)
}

async fn reader() -> impl IntoResponse {
    // Every browser takes gzip.
    ([(header::CONTENT_TYPE, "application/wasm"), (header::CONTENT_ENCODING, "gzip")], READER)
}

async fn what_if(State(site): Shared) -> Response {
    // Its address holds what is chosen, which a page of no origin may not set: it is this server's own, by its policy.
    page(
        StatusCode::OK,
        "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        site.what_if.clone(),
    )
}

async fn report(State(site): Shared, Path(name): Path<String>) -> Response {
    match site.store.read(&name).map(String::from_utf8) {
        Some(Ok(text)) => alone(text),
        _ => missing("There is no report of that name; it may have been removed."),
    }
}

async fn forget(State(site): Shared, Path(name): Path<String>) -> Response {
    if site.store.remove(&name) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        refused(StatusCode::NOT_FOUND, "there is no such report")
    }
}

async fn start(State(site): Shared, Form(asked): Form<Asked>) -> Response {
    match asked.words() {
        Ok(words) => started(site.runs.start(words, ())),
        Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, &error),
    }
}

fn started(run: Result<Arc<crate::runs::Run>, NotStarted>) -> Response {
    match run {
        Ok(run) => {
            let place = json!({ "run": format!("/runs/{}", run.name) });
            (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], place.to_string()).into_response()
        }
        Err(NotStarted::Busy(name)) => refused(
            StatusCode::CONFLICT,
            &format!("{name} still runs, and two at once would disturb each other: wait for it, or stop it"),
        ),
        Err(NotStarted::Failed(error)) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error),
    }
}

async fn run(State(site): Shared, Path(name): Path<String>) -> Response {
    match site.runs.get(&name) {
        Some(run) => pages::run(&run, site.gate.secret()),
        // After a restart of the server its report is still there.
        None => report(State(site), Path(name)).await,
    }
}

async fn events(State(site): Shared, Path(name): Path<String>) -> Response {
    let Some(run) = site.runs.get(&name) else { return refused(StatusCode::NOT_FOUND, "there is no such run") };
    let events = stream::unfold((run, 0), async |(run, place)| {
        let event = run.event(place).await?;
        Some((Ok::<_, io::Error>(Event::default().data(&*event)), (run, place + 1)))
    });
    Sse::new(events.boxed()).keep_alive(KeepAlive::default()).into_response()
}

async fn stop(State(site): Shared, Path(name): Path<String>) -> Response {
    match site.runs.get(&name) {
        Some(run) => {
            run.stop();
            StatusCode::NO_CONTENT.into_response()
        }
        None => refused(StatusCode::NOT_FOUND, "there is no such run"),
    }
}

async fn changes(State(site): Shared) -> Response {
    document(&site, &["history"]).await
}

async fn change(State(site): Shared, Path(run): Path<u64>) -> Response {
    document(&site, &["show", &run.to_string()]).await
}

/// What a command that only looks prints, as a page.
async fn document(site: &Site, words: &[&str]) -> Response {
    let command =
        Command::new(&site.program).arg("--json").args(words).stdin(Stdio::null()).kill_on_drop(true).output();
    let document = match command.await {
        Ok(output) => serde_json::from_slice::<Value>(&output.stdout).ok(),
        Err(_) => None,
    };
    match document {
        Some(document) => alone(html::page(&document, html::Charts::default())),
        None => pages::message(
            StatusCode::INTERNAL_SERVER_ERROR,
            "No answer",
            &format!("fullpipe {} gave no result.", words.join(" ")),
        ),
    }
}

#[derive(Debug, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

/// Takes a capture, and reads it.
async fn capture(State(site): Shared, Query(Named { name }): Query<Named>, body: Body) -> Response {
    // Before gigabytes were sent for nothing.
    if let Some(run) = site.runs.current() {
        return started(Err(NotStarted::Busy(run.name.clone())));
    }
    let folder = site.store.incoming(&Store::name(jiff::Timestamp::now(), "read"));
    let incoming = Incoming(folder.clone());
    let path = folder.join(file_name(&name));
    if let Err(refused) = receive(&site, &folder, &path, body).await {
        return refused;
    }
    // A page of 500 connections at most: the document of a million would be read for nothing.
    let words = ["read", "--top", "500", "--"].map(str::to_owned).into_iter().chain([path.display().to_string()]);
    started(site.runs.start(words.collect(), incoming))
}

async fn receive(site: &Site, folder: &std::path::Path, path: &std::path::Path, body: Body) -> Result<(), Response> {
    let failed = |error: &io::Error| {
        refused(StatusCode::INSUFFICIENT_STORAGE, &format!("keeping the capture in {}: {error}", folder.display()))
    };
    std::fs::create_dir(folder).map_err(|error| failed(&error))?;
    let mut file = tokio::fs::File::create_new(path).await.map_err(|error| failed(&error))?;
    let mut body = body.into_data_stream();
    let mut taken = 0;
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| refused(StatusCode::BAD_REQUEST, "the capture broke off on its way"))?;
        taken += piece.len() as u64;
        if taken > site.largest {
            let text = format!(
                "the capture has more than {} bytes: read it with `fullpipe read`, or start `fullpipe web --largest SIZE`",
                site.largest
            );
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &text));
        }
        file.write_all(&piece).await.map_err(|error| failed(&error))?;
    }
    file.flush().await.map_err(|error| failed(&error))
}

/// A capture that is removed when it was looked at.
#[derive(Debug)]
struct Incoming(PathBuf);

impl Drop for Incoming {
    fn drop(&mut self) {
        // A leftover is swept at the next start.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The last part of what a browser calls the file, with nothing in it that a shell or a folder could take for its own.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .take(80)
        .collect();
    match clean.trim_start_matches(['.', '-']) {
        "" => "capture".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_files_name_stays_in_its_folder() {
        for (name, expected) in [
            ("slow.pcap", "slow.pcap"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\slow.pcapng", "slow.pcapng"),
            ("..", "capture"),
            ("", "capture"),
            ("--json", "json"),
            ("<img src=x>.pcap", "_img_src_x_.pcap"),
        ] {
            assert_eq!(file_name(name), expected);
        }
    }
}
