//! The web server of a host, and a client that says exactly what it is told to.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::Host;
use crate::harness::patience::{LIMIT, wait_until};

pub(crate) const EXECUTABLE: &str = env!("CARGO_BIN_EXE_lanelect-http");

/// Where it listens on its host.
pub(crate) const ADDRESS: &str = "127.0.0.1:7680";

/// A web server. Dropping it kills it.
pub(crate) struct Server<'a> {
    host: &'a Host,
    child: Child,
}

impl<'a> Server<'a> {
    /// Starts it, whether or not the host's daemon runs.
    pub(crate) fn start(host: &'a Host) -> Server<'a> {
        let log = File::create(host.path("http.log")).unwrap();
        let mut command = Command::new(EXECUTABLE);
        command.args(["--socket", &host.path("control.sock"), "--listen", ADDRESS]);
        command.args(["--listen", &Server::address(host)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = host.run(|| command.spawn().unwrap());
        let server = Server { host, child };
        wait_until("the web server listens", || host.run(|| TcpStream::connect(ADDRESS).is_ok()));
        server
    }

    /// Where other hosts reach it.
    pub(crate) fn address(host: &Host) -> String {
        format!("{}:7680", host.address(0))
    }

    /// GET, as most clients say it.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// A request with these headers besides.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        let answer = self.say(request.as_bytes());
        Answer::read(&answer).unwrap_or_else(|| panic!("{method} {path}: {answer:?}"))
    }

    /// Everything that comes back before the server ends the connection.
    pub(crate) fn say(&self, bytes: &[u8]) -> String {
        self.host.run(|| exchange(ADDRESS, bytes)).unwrap()
    }

    /// A connection from the host itself.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = self.host.run(|| TcpStream::connect(ADDRESS).unwrap());
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    /// Ends it with a signal; returns its exit status.
    pub(crate) fn end(mut self, signal: Signal) -> Option<i32> {
        kill(self.pid(), signal).unwrap();
        self.child.wait().unwrap().code()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.host.path("http.log")).unwrap()
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything that comes back from a server; none if there is no server.
pub(crate) fn exchange(address: &str, bytes: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // It may have heard enough.
    let _ = stream.write_all(bytes);
    Some(read_all(&mut stream))
}

/// Until the end of the connection, however that comes.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8(answer).unwrap(),
    }
}

/// An answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(text: &str) -> Option<Answer> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let (line, headers) = head.split_once("\r\n")?;
        let status = line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
        Some(Answer { status, headers: headers.to_lowercase(), body: body.to_owned() })
    }

    /// Its body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
