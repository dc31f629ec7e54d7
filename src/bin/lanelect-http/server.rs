//! Connections: how many there are, and what each may take.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;

use crate::daemon::Daemon;
use crate::reply::Reply;
use crate::routes::Routes;

/// Most connections at the same time; more are closed at once.
const CONNECTIONS_MAX: usize = 512;

/// Most bytes of a request's headers; hyper takes no less.
const HEADERS_MAX: usize = 8192;

/// Most lines of them.
const HEADER_LINES_MAX: usize = 64;

/// Longest time for the headers of a request, the wait for the first byte of the next one included.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// Longest time in which a client takes nothing of its answer.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// Longest time for which a client may not be there, without having said so.
const ABSENCE: Duration = Duration::from_secs(30);

/// Pause after a connection could not be accepted: too many files are open, or memory is short.
const PAUSE: Duration = Duration::from_millis(100);

/// What listens.
#[derive(Debug)]
pub struct Server {
    routes: Routes,
    places: Arc<Semaphore>,
}

impl Server {
    /// In front of this daemon.
    pub fn new(daemon: Daemon) -> Self {
        Server { routes: Routes::new(daemon), places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }

    /// Serves connections to this address, until the process ends.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        tokio::spawn(accept(listener, self.routes.clone(), Arc::clone(&self.places)));
        Ok(())
    }
}

async fn accept(listener: TcpListener, routes: Routes, places: Arc<Semaphore>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                    tokio::spawn(serve(stream, routes.clone(), place));
                }
            }
            Err(error) => {
                log::debug!("cannot accept a connection: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one connection. What a client does wrong ends its connection, and is no news.
async fn serve(stream: TcpStream, routes: Routes, _place: OwnedSemaphorePermit) {
    if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(Some(ABSENCE)) {
        log::debug!("a client that vanishes is noticed late: {error}");
    }
    let mut stream = Box::pin(TimeoutStream::new(stream));
    stream.as_mut().set_write_timeout_pinned(Some(READER_PATIENCE));
    let service = service_fn(|request| respond(&routes, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADERS_MAX)
        .max_headers(HEADER_LINES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        log::debug!("a connection ended: {error}");
    }
}

async fn respond(routes: &Routes, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let (method, path) = (request.method(), request.uri().path());
    Ok(routes.answer(method, path, accepted.unwrap_or_default()).await)
}
