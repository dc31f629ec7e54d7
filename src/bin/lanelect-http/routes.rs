//! Which path answers what.

use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderValue};
use hyper::{Method, StatusCode};
use lanelect::control_api::{Leadership, Readiness};
use serde::Serialize;

use crate::daemon::{Daemon, NoAnswer};
use crate::events::Events;
use crate::metrics::{self, Format};
use crate::page;
use crate::reply::{self, Reply};

/// The methods of every path. HAProxy sends OPTIONS unless it is told otherwise.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Answers requests.
#[derive(Debug, Clone)]
pub struct Routes {
    daemon: Daemon,
    events: Events,
}

impl Routes {
    /// About this daemon.
    pub fn new(daemon: Daemon) -> Self {
        Routes { events: Events::new(daemon.clone()), daemon }
    }

    /// Answers a request. `accepted` are the content types that the client prefers.
    pub async fn answer(&self, method: &Method, path: &str, accepted: &str) -> Reply {
        let reads = [Method::GET, Method::HEAD].contains(method);
        if !reads && *method != Method::OPTIONS {
            return with_methods(reply::failure(
                StatusCode::METHOD_NOT_ALLOWED,
                &format!("{path} can only be read: {METHODS}"),
            ));
        }
        let reply = match path {
            "/leader" | "/primary" => self.leader().await,
            "/follower" | "/replica" => self.follower().await,
            "/ready" => self.ready().await,
            "/health" => self.health().await,
            _ if *method == Method::OPTIONS => methods_of(path),
            "/status" => self.status().await,
            "/metrics" => self.metrics(Format::preferred(accepted)).await,
            // Nobody would read the events.
            "/events" if *method == Method::HEAD => self.health().await,
            "/events" => self.events.subscribe().await,
            _ => page::file(path).unwrap_or_else(|| not_found(path)),
        };
        match *method {
            Method::OPTIONS => with_methods(reply),
            _ => reply,
        }
    }

    /// Whether the node leads, asked for this very reply.
    async fn leader(&self) -> Reply {
        answer(self.daemon.leadership().await, |leadership: &Leadership| leadership.leads)
    }

    /// Whether the node follows another one.
    async fn follower(&self) -> Reply {
        answer(self.daemon.leadership().await, |leadership: &Leadership| {
            !leadership.leads && leadership.leader.is_some()
        })
    }

    /// Whether the node leads and its hook has taken over.
    async fn ready(&self) -> Reply {
        let readiness = self.daemon.readiness().await;
        let readiness = readiness.map(|readiness| ReadinessReply { readiness });
        answer(readiness, |reply| reply.readiness == Readiness::Ready)
    }

    /// Whether the daemon answers.
    async fn health(&self) -> Reply {
        answer(self.daemon.leadership().await, |_| true)
    }

    async fn status(&self) -> Reply {
        answer(self.daemon.status().await, |_| true)
    }

    /// Also of a daemon that does not answer there is something to say.
    async fn metrics(&self, format: Format) -> Reply {
        let report = self.daemon.status().await.ok();
        let text = metrics::render(self.daemon.group(), report.as_ref(), format);
        reply::text(StatusCode::OK, format.content_type(), text)
    }
}

#[derive(Serialize)]
struct ReadinessReply {
    readiness: Readiness,
}

/// 200 if it `is_so`, else 503.
fn answer<T: Serialize>(answer: Result<T, NoAnswer>, is_so: impl FnOnce(&T) -> bool) -> Reply {
    match answer {
        Ok(answer) if is_so(&answer) => reply::json(StatusCode::OK, &answer),
        Ok(answer) => reply::json(StatusCode::SERVICE_UNAVAILABLE, &answer),
        Err(why) => reply::failure(StatusCode::SERVICE_UNAVAILABLE, &why.to_string()),
    }
}

/// What OPTIONS says of a path that does not tell a state by its status.
fn methods_of(path: &str) -> Reply {
    let is_known = ["/status", "/metrics", "/events"].contains(&path) || page::file(path).is_some();
    if !is_known {
        return not_found(path);
    }
    let mut reply = reply::text(StatusCode::NO_CONTENT, "text/plain", "");
    // RFC 9110: a reply without content has no length either.
    reply.headers_mut().remove(CONTENT_LENGTH);
    reply
}

fn not_found(path: &str) -> Reply {
    reply::failure(
        StatusCode::NOT_FOUND,
        &format!("there is no {path}; / has a page, and lanelect-http(1) all paths"),
    )
}

fn with_methods(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
    reply
}
