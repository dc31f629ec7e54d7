//! The connection to the daemon, which sends grants.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use nix::unistd::{Pid, getpid};

use crate::client::{ClientError, Target};
use crate::control_api::{CommandStarted, Grant};

/// Longest line that is accepted, in bytes.
const LINE_MAX: usize = 4096;

/// What the daemon sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The command may run.
    Grant(Grant),
    /// The command has to end.
    End,
    /// The daemon has hung up, or sends what cannot be read.
    HungUp,
}

#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    input: Vec<u8>,
    is_over: bool,
}

impl Link {
    /// Asks the daemon for grants. They show up under `token`.
    pub(super) fn open(
        target: &Target,
        registry: &Registry,
        token: Token,
    ) -> Result<Self, ClientError> {
        let (stream, input) = target.hold()?;
        let failed = |source| ClientError::Io { socket: target.socket().to_owned(), source };
        stream.set_nonblocking(true).map_err(failed)?;
        let mut stream = UnixStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE).map_err(failed)?;
        Ok(Link { stream, input, is_over: false })
    }

    /// Another descriptor of the connection, which keeps it open.
    pub(super) fn share(&self) -> io::Result<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned()
    }

    /// Says that the command has started, and that `guard` lives as long as it does.
    pub(super) fn report_start(&mut self, guard: Pid) {
        let started = CommandStarted { pid: getpid().as_raw(), guard: guard.as_raw() };
        let line = serde_json::to_string(&started).unwrap_or_default() + "\n";
        // Where it fails, the daemon has hung up.
        let _ = self.stream.write_all(line.as_bytes());
    }

    /// The newest of what arrived; [`News::HungUp`] is the last of all.
    pub(super) fn receive(&mut self) -> Option<News> {
        let mut chunk = [0; LINE_MAX];
        while !self.is_over && self.input.len() < LINE_MAX {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.is_over = true,
                Ok(count) => self.input.extend(chunk.iter().take(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_over = true,
            }
        }
        let mut news = None;
        while let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            news = Some(read(&line));
        }
        self.is_over |= self.input.len() >= LINE_MAX;
        if self.is_over {
            news = Some(News::HungUp);
        }
        news
    }
}

fn read(line: &[u8]) -> News {
    match serde_json::from_slice::<Option<Grant>>(line) {
        Ok(Some(grant)) => News::Grant(grant),
        Ok(None) => News::End,
        Err(_) => News::HungUp,
    }
}
