//! The flags of `agent`, and those of `serve --metrics`.

use std::time::Duration;

use clap::Args;
use fullpipe_units::Network;
use fullpipe_watch::{Destinations, MOST_NAMES};

use super::watch;

/// Export to Prometheus what limits this host's TCP connections
///
/// Watches as `watch` does and serves what it sees as OpenMetrics under /metrics: seconds by limiter for each process and
/// destination, payload, retransmissions, round trips, sockets whose buffers an application set, dropped connections. However
/// many connections come and go, the number of series has a bound (docs/watch.md). It sends nothing unless it is asked, and changes
/// nothing, but that on Windows an administrator's agent has the statistics of connections kept, as `watch` does. Untested but on
/// Linux. It speaks HTTP without TLS or password: listen where only your own machines reach it. With --otlp it also pushes the same
/// figures to an OpenTelemetry Collector.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe agent                                  http://127.0.0.1:7071/metrics
  fullpipe agent --listen 192.0.2.7:7071 --interval 5s
  fullpipe agent --destination 10.0.0.0/8 --destination 192.0.2.0/24      all others together
  fullpipe agent --otlp http://localhost:4318     also to an OpenTelemetry Collector
  systemctl enable --now fullpipe-agent           as a service with the rights that it needs")]
pub(crate) struct AgentArgs {
    /// Address and port to listen on; a port alone listens on localhost only
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7071")]
    pub(crate) listen: String,
    /// What is counted, and how often.
    #[command(flatten)]
    pub(crate) meter: MeterArgs,
    /// Also push the figures to an OpenTelemetry Collector, by OTLP over HTTP with JSON and without TLS [default URL:
    /// OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318]
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", help_heading = "OpenTelemetry")]
    pub(crate) otlp: Option<String>,
    /// How often they are pushed [default: OTEL_METRIC_EXPORT_INTERVAL, else 60s]
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "TIME", requires = "otlp", value_parser = watch::interval, help_heading = "OpenTelemetry")]
    pub(crate) otlp_interval: Option<Duration>,
}

/// What is counted, and how often.
#[derive(Args, Debug)]
pub(crate) struct MeterArgs {
    /// Length of each interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = watch::interval, help_heading = "Metrics")]
    pub(crate) interval: Duration,
    /// Count this network by itself; can be given several times, and all others are counted together [default: the first ones that
    /// come, by /24 and /48]
    #[arg(long, value_name = "NETWORK", help_heading = "Metrics")]
    pub(crate) destination: Vec<Network>,
    /// Also count connections that begin and end between two looks, resets, and the last bytes of others, by a BPF program at
    /// the kernel's tracepoint for TCP states (root, or CAP_BPF and CAP_PERFMON)
    #[arg(long, help_heading = "Metrics")]
    pub(crate) events: bool,
}

impl MeterArgs {
    /// How destinations are distinguished; says why not.
    pub(crate) fn destinations(&self) -> Result<Destinations, String> {
        match self.destination.len() {
            0 => Ok(Destinations::default()),
            1..=MOST_NAMES => Ok(Destinations::Named(self.destination.clone())),
            count => {
                Err(format!("{count} destinations are too many: {MOST_NAMES} at the most have labels of their own"))
            }
        }
    }
}

impl Default for MeterArgs {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), destination: Vec::new(), events: false }
    }
}
