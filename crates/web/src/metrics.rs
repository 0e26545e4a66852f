//! A page of figures for Prometheus and its kin: one text, made anew for whoever asks.
//!
//! It has no secrets to keep from pages of other sites, which can't read it, so there is no gate: who may reach the address is
//! the choice of whoever gave it.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{Router, http::header, response::IntoResponse, routing::get};

use crate::{LOOK, WebError};

/// What OpenMetrics 1.0 calls itself.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const WHERE: &str = "fullpipe: the figures are at /metrics\n";

/// An address that is listened on already, so that it can be printed before anything else begins.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
}

impl Metrics {
    /// Listens.
    ///
    /// # Errors
    ///
    /// The address is taken or not this machine's.
    pub fn listen(address: SocketAddr) -> Result<Self, WebError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|source| WebError::Listen { address, source })
    }

    /// Where.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with what `text` makes, until `stop` is set.
    ///
    /// # Errors
    ///
    /// The server itself failed.
    pub fn serve(self, text: impl Fn() -> String + Send + Sync + 'static, stop: &AtomicBool) -> Result<(), WebError> {
        let text = Arc::new(text);
        let figures = move || {
            let text = Arc::clone(&text);
            async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], text()).into_response() }
        };
        let router = Router::new().route("/metrics", get(figures)).route("/", get(async || WHERE));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(WebError::Serve)?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(WebError::Serve)?;
            let stopped = async || {
                while !stop.load(Ordering::Relaxed) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let serving = axum::serve(listener, router);
            tokio::select! {
                served = async { serving.await } => served.map_err(WebError::Serve),
                () = stopped() => Ok(()),
            }
        })
    }
}
