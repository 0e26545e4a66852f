//! Who may ask, and what a page of another site can't make a browser ask.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};
use std::{net::IpAddr, sync::Arc};

use crate::routes::Site;

/// The name of the cookie that holds the token.
const COOKIE: &str = "fullpipe-token";
/// The header in which a script repeats what only a page of this server knows.
pub(crate) const CSRF: &str = "x-fullpipe";

/// Who may ask.
#[derive(Debug)]
pub struct Gate {
    token: Option<String>,
    names: Vec<String>,
    /// What only pages of this server know.
    secret: String,
}

impl Gate {
    /// With a token where one is wanted. `names` are those under which this machine is asked for besides its addresses and
    /// `localhost`.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(wants_token: bool, names: Vec<String>) -> Result<Self, std::io::Error> {
        let token = wants_token.then(random).transpose()?;
        Ok(Self { token, names, secret: random()? })
    }

    /// What a link needs at its end.
    pub fn query(&self) -> String {
        self.token.as_ref().map_or_else(String::new, |token| format!("?token={token}"))
    }

    /// What a form repeats.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Whether a request may pass; what to answer if not.
    fn look(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // HTTP/1.1 always has it. Another site's name that was made to resolve to this address (DNS rebinding) is no name of ours.
        let host = text(header::HOST).ok_or(Refused::Host)?;
        if !self.is_ours(name_of(host)) {
            return Err(Refused::Host);
        }
        if let Some(token) = &self.token {
            let given = query_token(uri).or_else(|| cookie(text(header::COOKIE)?));
            if !given.is_some_and(|given| same(given, token)) {
                return Err(Refused::Token);
            }
        }
        if method != Method::GET && method != Method::HEAD {
            let origin = text(header::ORIGIN).is_none_or(|origin| origin.strip_prefix("http://") == Some(host));
            let site = text(header::HeaderName::from_static("sec-fetch-site")).is_none_or(|site| site == "same-origin");
            if !origin || !site {
                return Err(Refused::Origin);
            }
            // A form can't send this header to another site without being asked first, and nobody answers that question here.
            if !text(header::HeaderName::from_static(CSRF)).is_some_and(|given| same(given, &self.secret)) {
                return Err(Refused::Origin);
            }
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    Host,
    Token,
    Origin,
}

impl Refused {
    fn words(self) -> &'static str {
        match self {
            Self::Host => {
                "This is not a name that this server answers to. Ask by address or as localhost, or start it with \
                 `fullpipe web --name NAME`.\n"
            }
            Self::Token => "This needs the token: open the link that `fullpipe web` printed.\n",
            Self::Origin => "This did not come from a page of this server.\n",
        }
    }
}

/// Lets pass what may, and says to browsers what they must not do with the answer.
pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let gate = site.gate();
    let mut response = match gate.look(request.method(), request.uri(), request.headers()) {
        Err(refused) => {
            let status = if refused == Refused::Token { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
            (status, refused.words()).into_response()
        }
        // The token moves from the address, which is kept and sent on, into a cookie.
        Ok(()) => match (query_token(request.uri()), request.method()) {
            (Some(token), &Method::GET) => moved(request.uri().path(), token),
            _ => next.run(request).await,
        },
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("default-src 'none'"));
    response
}

fn moved(path: &str, token: &str) -> Response {
    // A path that begins with two slashes would be another host's.
    let path = format!("/{}", path.trim_start_matches('/'));
    Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, path)
        .header(header::SET_COOKIE, format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"))
        .body(Body::empty())
        .unwrap_or_else(|_| StatusCode::BAD_REQUEST.into_response())
}

/// `localhost` of `localhost:7070`, `::1` of `[::1]:7070`.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn query_token(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn cookie(header: &str) -> Option<&str> {
    header.split(';').find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// Compares digests, so that the time taken says nothing of how much was right.
fn same(given: &str, wanted: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(wanted)
}

/// 128 random bits.
fn random() -> Result<String, std::io::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(gate: &Gate, method: Method, uri: &str, headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        gate.look(&method, &uri.parse().unwrap(), &map)
    }

    #[test]
    fn only_names_of_this_machine_are_answered_to() {
        let gate = Gate::new(false, vec!["tuner.example".to_owned()]).unwrap();
        for host in ["127.0.0.1:7070", "localhost", "LOCALHOST:1", "[::1]:7070", "192.0.2.7:80", "tuner.example:7070"] {
            assert_eq!(ask(&gate, Method::GET, "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7070", ""] {
            assert_eq!(ask(&gate, Method::GET, "/", &[("host", host)]), Err(Refused::Host), "{host}");
        }
        assert_eq!(ask(&gate, Method::GET, "/", &[]), Err(Refused::Host));
    }

    #[test]
    fn a_token_comes_by_link_or_by_cookie() {
        let gate = Gate::new(true, Vec::new()).unwrap();
        let host = ("host", "192.0.2.7:7070");
        assert_eq!(ask(&gate, Method::GET, "/", &[host]), Err(Refused::Token));
        assert_eq!(ask(&gate, Method::GET, "/?token=00", &[host]), Err(Refused::Token));
        assert_eq!(ask(&gate, Method::GET, &format!("/{}", gate.query()), &[host]), Ok(()));
        let token = gate.query().replace("?token=", "");
        let cookie = format!("other=1; {COOKIE}={token}");
        assert_eq!(ask(&gate, Method::GET, "/reports/x", &[host, ("cookie", &cookie)]), Ok(()));
        let wrong = format!("{COOKIE}=x{token}");
        assert_eq!(ask(&gate, Method::GET, "/", &[host, ("cookie", &wrong)]), Err(Refused::Token));
    }

    #[test]
    fn what_changes_something_must_come_from_a_page_of_this_server() {
        let gate = Gate::new(false, Vec::new()).unwrap();
        let host = ("host", "localhost:7070");
        let secret = (CSRF, gate.secret());
        let from = |origin: &'static str| ("origin", origin);
        assert_eq!(ask(&gate, Method::POST, "/runs", &[host, secret, from("http://localhost:7070")]), Ok(()));
        assert_eq!(ask(&gate, Method::POST, "/runs", &[host, secret]), Ok(()));
        for headers in [
            &[host][..],
            &[host, from("http://localhost:7070")],
            &[host, (CSRF, "0"), from("http://localhost:7070")],
            &[host, secret, from("http://evil.example")],
            &[host, secret, from("null")],
            &[host, secret, from("http://localhost:7071")],
            &[host, secret, ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(ask(&gate, Method::POST, "/runs", headers), Err(Refused::Origin), "{headers:?}");
        }
    }

    #[test]
    fn a_link_with_a_token_leads_to_this_server_only() {
        let response = moved("//evil.example/x", "t");
        assert_eq!(response.headers()[header::LOCATION], "/evil.example/x");
    }
}
