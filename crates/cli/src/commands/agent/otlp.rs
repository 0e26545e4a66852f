//! Where metrics are pushed to: what the command line says, and for the rest the environment variables that OpenTelemetry gives
//! every exporter ("Environment Variable Specification" and "OTLP Exporter Configuration" of its specification).

use std::{
    fs,
    time::{Duration, SystemTime},
};

use fullpipe_watch::{Exposition, Resource};
use fullpipe_web::{Push, PushError};
use percent_encoding::percent_decode_str;
use sha1::{Digest as _, Sha1};

use crate::{exit::Exit, failure::Failure};

/// A collector on this machine.
const DEFAULT: &str = "http://localhost:4318";
/// Of OTEL_METRIC_EXPORT_INTERVAL.
const INTERVAL: Duration = Duration::from_secs(60);
/// Of OTEL_EXPORTER_OTLP_TIMEOUT.
const TIMEOUT: Duration = Duration::from_secs(10);
/// That of stable identifiers of services (semantic conventions, `service.instance.id`).
const NAMESPACE: u128 = 0x4d63_009a_8d0f_11ee_aad7_4c79_6ed8_e320;

/// What pushes, and for whom.
#[derive(Debug)]
pub(super) struct Otlp {
    pub(super) push: Push,
    pub(super) interval: Duration,
    resource: Resource,
}

impl Otlp {
    /// `url` is empty where the environment says where to.
    pub(super) fn new(url: &str, interval: Option<Duration>) -> Result<Self, Failure> {
        let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::from_environment(url, interval, &of).map_err(|text| Failure::new(Exit::Usage, &text))
    }

    fn from_environment(
        url: &str,
        interval: Option<Duration>,
        of: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let metrics_or_all = |what: &str| {
            of(&format!("OTEL_EXPORTER_OTLP_METRICS_{what}")).or_else(|| of(&format!("OTEL_EXPORTER_OTLP_{what}")))
        };
        if metrics_or_all("PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
            return Err(
                "OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, and fullpipe pushes by HTTP alone: give `http/json`, and the \
                        collector's port for HTTP (4318)"
                    .to_owned(),
            );
        }
        let interval = match interval {
            Some(interval) => interval,
            None => milliseconds("OTEL_METRIC_EXPORT_INTERVAL", of)?.unwrap_or(INTERVAL),
        };
        let timeout = match milliseconds("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", of)? {
            Some(timeout) => timeout,
            None => milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", of)?.unwrap_or(TIMEOUT),
        };
        let text = |error: PushError| error.to_string();
        let mut push = Push::new(&endpoint(url, of), interval, timeout).map_err(text)?;
        for (name, value) in pairs("OTEL_EXPORTER_OTLP_HEADERS", &metrics_or_all("HEADERS").unwrap_or_default())? {
            push = push.header(&name, &value).map_err(text)?;
        }
        let resource =
            Resource { attributes: attributes(of)?, version: env!("CARGO_PKG_VERSION"), start: SystemTime::now() };
        Ok(Self { push, interval, resource })
    }

    /// What is pushed now.
    pub(super) fn body(&self, exposition: &Exposition) -> String {
        exposition.otlp(&self.resource, SystemTime::now())
    }
}

/// The whole URL: one for metrics alone is as it stands, to one for all signals the path of metrics comes.
fn endpoint(url: &str, of: &dyn Fn(&str) -> Option<String>) -> String {
    let base = if url.is_empty() {
        if let Some(whole) = of("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
            return whole;
        }
        of("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|| DEFAULT.to_owned())
    } else {
        url.to_owned()
    };
    let base = base.trim_end_matches('/');
    if base.ends_with("/v1/metrics") { base.to_owned() } else { format!("{base}/v1/metrics") }
}

fn milliseconds(name: &str, of: &dyn Fn(&str) -> Option<String>) -> Result<Option<Duration>, String> {
    let Some(text) = of(name) else { return Ok(None) };
    match text.parse() {
        Ok(count @ 1_u64..) => Ok(Some(Duration::from_millis(count))),
        _ => Err(format!("{name} is `{text}`, and should be a number of milliseconds from 1 on")),
    }
}

/// `key=value,key=value`, with values in percent-encoding (W3C Baggage, as OpenTelemetry reads such variables).
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((key.trim().to_owned(), value.into_owned())).filter(|(key, _)| !key.is_empty())
    };
    // The value may be a secret.
    parts
        .map(|part| pair(part).ok_or_else(|| format!("{name} should be KEY=VALUE,KEY=VALUE, in percent-encoding")))
        .collect()
}

/// Whose metrics these are: what the environment says wins.
fn attributes(of: &dyn Fn(&str) -> Option<String>) -> Result<Vec<(String, String)>, String> {
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    let mut attributes = pairs(name, &of(name).unwrap_or_default())?;
    if let Some(service) = of("OTEL_SERVICE_NAME") {
        attributes.retain(|(key, _)| key != "service.name");
        attributes.push(("service.name".to_owned(), service));
    }
    let host = host_name();
    let own = [
        ("service.name", Some("fullpipe".to_owned())),
        ("service.version", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("service.instance.id", instance(host.as_deref())),
        ("host.name", host),
    ];
    for (key, value) in own {
        if !attributes.iter().any(|(there, _)| there == key) {
            attributes.extend(value.map(|value| (key.to_owned(), value)));
        }
    }
    Ok(attributes)
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// What tells this host's series from another's, the same after each start: a hash of what identifies the machine, since that
/// must not leave the machine (machine-id(5)).
fn instance(host: Option<&str>) -> Option<String> {
    let machine = fs::read_to_string("/etc/machine-id").ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    let identity = machine.as_deref().or(host)?;
    Some(uuid(identity))
}

/// Version 5 of RFC 9562.
fn uuid(name: &str) -> String {
    let hash = Sha1::new().chain_update(NAMESPACE.to_be_bytes()).chain_update(name).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(url: &str, variables: &[(&str, &str)]) -> Result<Otlp, String> {
        let of = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Otlp::from_environment(url, None, &of)
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_default() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:1/base/");
        let metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://metrics:2/as/it/is");
        let url = |url: &str, variables: &[(&str, &str)]| with(url, variables).unwrap().push.url();
        assert_eq!(url("", &[]), "http://localhost:4318/v1/metrics");
        assert_eq!(url("", &[all]), "http://all:1/base/v1/metrics");
        assert_eq!(url("", &[all, metrics]), "http://metrics:2/as/it/is");
        assert_eq!(url("http://given:3", &[all, metrics]), "http://given:3/v1/metrics");
        assert_eq!(url("http://given:3/v1/metrics", &[]), "http://given:3/v1/metrics");
    }

    #[test]
    fn variables_that_can_not_be_followed_are_named_and_secrets_are_not_repeated() {
        for (name, value, said) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon", "OTEL_METRIC_EXPORT_INTERVAL"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "OTEL_EXPORTER_OTLP_TIMEOUT"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret", "KEY=VALUE"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://far", "TLS"),
        ] {
            let error = with("", &[(name, value)]).unwrap_err();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
        let timed = with("", &[("OTEL_METRIC_EXPORT_INTERVAL", "500")]).unwrap();
        assert_eq!(timed.interval, Duration::from_millis(500));
    }

    #[test]
    fn who_tells_is_said_by_the_environment_where_it_says_so() {
        let variables = [("OTEL_RESOURCE_ATTRIBUTES", "service.name=a, site=B%20C"), ("OTEL_SERVICE_NAME", "edge")];
        let otlp = with("", &variables).unwrap();
        let of = |name: &str| {
            let mut found =
                otlp.resource.attributes.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
            (found.next(), found.next())
        };
        assert_eq!(of("service.name"), (Some("edge"), None));
        assert_eq!(of("site"), (Some("B C"), None));
        assert_eq!(of("service.version").0, Some(env!("CARGO_PKG_VERSION")));
        assert!(of("host.name").0.is_some());
    }

    #[test]
    fn an_instance_is_a_uuid_of_its_name() {
        // Python: uuid.uuid5(uuid.UUID("4d63009a-8d0f-11ee-aad7-4c796ed8e320"), "a")
        assert_eq!(uuid("a"), "81283a20-5c72-5bde-aa31-dd1b4cb93afd");
        assert_ne!(uuid("a"), uuid("b"));
    }
}
