//! Replies, and the headers that all of them have.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Either;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

/// What is sent after the headers: something whole, or one piece after the other.
pub type ReplyBody = Either<Full<Bytes>, Stream>;

/// A reply to a request.
pub type Reply = Response<ReplyBody>;

/// Pieces as they come, until their sender is gone.
#[derive(Debug)]
pub struct Stream(pub mpsc::Receiver<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// With this body, of this type. Nothing is to be kept: each answer is of the moment.
pub fn reply(status: StatusCode, content_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let sniffing = HeaderName::from_static("x-content-type-options");
    headers.insert(sniffing, HeaderValue::from_static("nosniff"));
    reply
}

/// With this text.
pub fn text(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Reply {
    reply(status, content_type, Either::Left(Full::new(text.into())))
}

/// With this object as JSON.
pub fn json(status: StatusCode, object: &impl Serialize) -> Reply {
    let mut line = serde_json::to_string(object).unwrap_or_default();
    line.push('\n');
    text(status, "application/json", line)
}

/// With the reason why there is no better reply.
pub fn failure(status: StatusCode, why: &str) -> Reply {
    json(status, &Failure { error: why })
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
}
