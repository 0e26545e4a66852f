//! Figures pushed to a collector, again and again: OTLP/HTTP with JSON (OTLP specification 1.0).
//!
//! Every sum is of all since the start, so nothing is kept for later: what could not be delivered is made up for by the next
//! push, and a collector that stays away takes no memory. Without TLS: that is the job of a collector on this machine.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri,
    header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT},
};
use fullpipe_report::clean;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use jiff::{Timestamp, fmt::rfc2822};
use tokio::{net::TcpStream, time};

use crate::{LOOK, WebError};

/// The first wait after a failure; each one after that is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// So many times.
const DOUBLINGS: u32 = 6;
/// The longest `Retry-After` that is heeded.
const LONGEST: Duration = Duration::from_secs(3600);
/// What the last push may take, when the program is to end.
const LAST: Duration = Duration::from_secs(2);
/// More of an answer is not read.
const MOST_ANSWER: usize = 64 << 10;
/// More of what a collector says is not repeated.
const MOST_SAID: usize = 200;
/// The statuses after which the same may be sent again (OTLP specification, "Retryable Response Codes").
const LATER: [StatusCode; 4] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// Why nothing can be pushed there.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PushError {
    /// Another scheme, or none.
    #[error("`{0}` is no address of a collector: give http://HOST:4318")]
    Address(String),
    /// There is no TLS here.
    #[error(
        "`{0}` wants TLS, which fullpipe does not speak: push to a collector on this machine (http://localhost:4318) that does"
    )]
    Tls(String),
    /// A header that HTTP does not know.
    #[error("`{0}` can't be a header: give NAME=VALUE")]
    Header(String),
}

/// Where figures are pushed to, and how often.
#[derive(Debug)]
pub struct Push {
    uri: Uri,
    headers: HeaderMap,
    interval: Duration,
    timeout: Duration,
}

impl Push {
    /// To `url`, every `interval`; each push may take `timeout`.
    ///
    /// # Errors
    ///
    /// There can be no such collector.
    pub fn new(url: &str, interval: Duration, timeout: Duration) -> Result<Self, PushError> {
        let wrong = || PushError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(PushError::Tls(url.to_owned())),
            _ => return Err(wrong()),
        }
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("fullpipe/", env!("CARGO_PKG_VERSION"))));
        Ok(Self { uri, headers, interval, timeout })
    }

    /// Also sends this header, as a key that a collector wants.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, PushError> {
        let wrong = || PushError::Header(name.to_owned());
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Where to.
    pub fn url(&self) -> String {
        self.uri.to_string()
    }

    /// Pushes what `body` makes until `stop` is set, and then once more. A collector that does not answer is logged once, and once
    /// when it is back.
    ///
    /// # Errors
    ///
    /// The system gives no means to.
    pub fn run(&self, body: impl Fn() -> String, stop: &AtomicBool) -> Result<(), WebError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(WebError::Serve)?;
        runtime.block_on(async {
            let stopped = async || {
                while !stop.load(Ordering::Relaxed) {
                    time::sleep(LOOK).await;
                }
            };
            let mut connection = None;
            let mut pace = Pace::new(self.interval);
            tokio::select! {
                () = async {
                    loop {
                        time::sleep(pace.wait).await;
                        let answer = self.push(&mut connection, body(), self.timeout).await;
                        pace.note(answer, &self.url(), random());
                    }
                } => {}
                () = stopped() => {}
            }
            // What was counted since the last push. The connection may be in the middle of something.
            let answer = self.push(&mut None, body(), self.timeout.min(LAST)).await;
            pace.note(answer, &self.url(), random());
        });
        Ok(())
    }

    async fn push(&self, connection: &mut Option<SendRequest<Full<Bytes>>>, body: String, timeout: Duration) -> Answer {
        let pushed = time::timeout(timeout, self.exchange(connection, body.into())).await;
        let answer = pushed.unwrap_or_else(|_| Err(format!("no answer within {} s", timeout.as_secs_f64())));
        answer.unwrap_or_else(|reason| {
            // What comes of a broken exchange is no answer to the next one.
            *connection = None;
            Answer::Later { reason, after: None }
        })
    }

    /// One request and its answer, on the connection of the last one where that is still open.
    async fn exchange(&self, connection: &mut Option<SendRequest<Full<Bytes>>>, body: Bytes) -> Result<Answer, String> {
        if let Some(open) = connection.as_mut()
            && open.ready().await.is_err()
        {
            *connection = None;
        }
        let open = match connection {
            Some(open) => open,
            None => connection.insert(self.connect().await?),
        };
        let mut request = Request::post(self.uri.path_and_query().map_or("/", |path| path.as_str()))
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        *request.headers_mut() = self.headers.clone();
        let response = open.send_request(request).await.map_err(|error| chain(&error))?;
        Ok(read(response).await)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let host = self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = self.uri.port_u16().unwrap_or(80);
        let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| chain(&error))?;
        // It ends with the sender; the request says what goes wrong there.
        tokio::spawn(async { connection.await.unwrap_or_default() });
        Ok(sender)
    }
}

/// What became of a push.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// All is well; with what the collector says besides.
    Taken(Option<String>),
    /// Not now.
    Later { reason: String, after: Option<Duration> },
    /// It would be refused again.
    Refused(String),
}

async fn read(response: Response<Incoming>) -> Answer {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MOST_ANSWER).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    answer(head.status, head.headers.get(RETRY_AFTER), &body, Timestamp::now())
}

fn answer(status: StatusCode, after: Option<&HeaderValue>, body: &[u8], now: Timestamp) -> Answer {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |text: &serde_json::Value| {
        let text = clean(text.as_str()?).chars().take(MOST_SAID).collect::<String>();
        (!text.is_empty()).then_some(text)
    };
    if status.is_success() {
        let partly = &body["partialSuccess"];
        // A number of 64 bits is a text there.
        let rejected = partly["rejectedDataPoints"].as_str().filter(|count| *count != "0").map(clean);
        let message = said(&partly["errorMessage"]);
        let note = match (rejected, message) {
            (None, message) => message,
            (Some(count), message) => {
                Some(format!("{count} points were rejected: {}", message.as_deref().unwrap_or("it does not say why")))
            }
        };
        return Answer::Taken(note);
    }
    let reason = said(&body["message"]).map_or_else(|| status.to_string(), |message| format!("{status}: {message}"));
    if LATER.contains(&status) {
        Answer::Later { reason, after: after.and_then(|after| retry_after(after, now)) }
    } else {
        Answer::Refused(reason)
    }
}

/// Seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(value: &HeaderValue, now: Timestamp) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = rfc2822::parse(text).ok()?.timestamp();
            Duration::try_from(date.duration_since(now)).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST))
}

/// When to push next, and what to log of it.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    wait: Duration,
    /// Failures in a row.
    failures: u32,
    /// What was logged last and still holds.
    logged: Option<String>,
}

impl Pace {
    fn new(interval: Duration) -> Self {
        Self { interval, wait: interval, failures: 0, logged: None }
    }

    /// `random` lies between 0 and 1.
    fn note(&mut self, answer: Answer, url: &str, random: f64) {
        // Warnings, because others are not shown unless they are asked for.
        match self.next(answer, random) {
            Some(line) => tracing::warn!("collector at {url}: {line}"),
            None => tracing::debug!("collector at {url}: next push in {:?}", self.wait),
        }
    }

    /// What is worth a line: that something began, or ended.
    fn next(&mut self, answer: Answer, random: f64) -> Option<String> {
        let was_away = self.failures > 0;
        self.failures = if matches!(answer, Answer::Later { .. }) { self.failures + 1 } else { 0 };
        self.wait = self.interval;
        let line = match answer {
            Answer::Taken(None) => {
                let ended = self.logged.take();
                return ended.map(|_| "takes metrics again; nothing is missing from the sums".to_owned());
            }
            Answer::Taken(Some(message)) => message,
            Answer::Refused(reason) => format!("refuses metrics: {reason}"),
            Answer::Later { reason, after } => {
                let doubled = FIRST * 2_u32.pow((self.failures - 1).min(DOUBLINGS));
                // Not all at once, where many have waited for the same collector.
                self.wait = after.unwrap_or(doubled).mul_f64(1.0 + random / 2.0);
                format!("takes no metrics: {reason}; trying again at growing intervals of up to {} s", {
                    (FIRST * 2_u32.pow(DOUBLINGS)).mul_f64(1.5).as_secs()
                })
            }
        };
        let is_new = !was_away && self.logged.as_ref() != Some(&line);
        if is_new {
            self.logged = Some(line.clone());
        }
        is_new.then_some(line)
    }
}

fn random() -> f64 {
    // Without random numbers nothing is spread out, and all works.
    getrandom::u32().map_or(0.0, |number| f64::from(number) / f64::from(u32::MAX))
}

/// An error with those that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests;
