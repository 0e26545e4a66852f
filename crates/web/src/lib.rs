//! The local web view: reports that were kept, checks and measurements started from a page and followed live, captures looked
//! at, and the page to try settings on. Beside it, the page of figures that Prometheus asks for ([`Metrics`]), and what pushes them to a collector
//! (`Push`).
//!
//! An edge. It measures and judges nothing itself: every run is the program's own command, started beside the server, whose
//! progress is passed on and whose page is kept. What is *not* here: the pages of results (`report`), the flags (`cli`).
#![forbid(unsafe_code)]

mod gate;
mod metrics;
mod pages;
#[cfg(feature = "otlp")]
mod push;
mod routes;
mod runs;
mod store;
mod words;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub use gate::Gate;
pub use metrics::Metrics;
#[cfg(feature = "otlp")]
pub use push::{Push, PushError};
pub use store::Store;

/// What the server is to do.
#[derive(Debug)]
pub struct Options {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who may ask.
    pub gate: Gate,
    /// The program whose commands are run.
    pub program: PathBuf,
    /// Where reports are kept.
    pub folder: PathBuf,
    /// The page to try settings on.
    pub what_if: String,
    /// The largest capture that is taken, in bytes.
    pub largest: u64,
}

/// Why there is no web view.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address can't be listened on.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder of reports can't be used.
    #[error("keeping reports in {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The server itself failed.
    #[error("serving the web view: {0}")]
    Serve(std::io::Error),
}

/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long a run may take to end after the stop.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until `stop` is set; `ready` is called with the address once it listens.
///
/// # Errors
///
/// The address is taken or not this machine's, or the folder can't be written.
pub fn serve(options: Options, stop: &AtomicBool, ready: impl FnOnce(SocketAddr)) -> Result<(), WebError> {
    let store =
        Store::open(&options.folder).map_err(|source| WebError::Folder { folder: options.folder.clone(), source })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(WebError::Serve)?;
    runtime.block_on(async {
        let address = options.address;
        let listener =
            tokio::net::TcpListener::bind(address).await.map_err(|source| WebError::Listen { address, source })?;
        let local = listener.local_addr().map_err(|source| WebError::Listen { address, source })?;
        let site = Arc::new(routes::Site::new(options, store));
        ready(local);
        let stopped = async || {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
        };
        let serving = axum::serve(listener, routes::router(&site));
        tokio::select! {
            served = async { serving.await } => served.map_err(WebError::Serve),
            () = stopped() => {
                site.runs().stop_all(GRACE).await;
                Ok(())
            }
        }
    })
}
