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

    /// The newest of what arrived, however much that is; [`News::HungUp`] is the last of all.
    pub(super) fn receive(&mut self) -> Option<News> {
        let mut chunk = [0; LINE_MAX];
        // Some of it may have come with the answer to the request.
        let mut news = self.newest();
        while !self.is_over {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.is_over = true,
                Ok(count) => self.input.extend(chunk.iter().take(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.is_over = true,
            }
            news = self.newest().or(news);
            self.is_over |= self.input.len() >= LINE_MAX;
        }
        if self.is_over {
            news = Some(News::HungUp);
        }
        news
    }

    /// Takes all whole lines out of the input, and reads the last one.
    fn newest(&mut self) -> Option<News> {
        let end = self.input.iter().rposition(|byte| *byte == b'\n')?;
        let lines: Vec<u8> = self.input.drain(..=end).collect();
        lines.split_inclusive(|byte| *byte == b'\n').next_back().map(read)
    }
}

fn read(line: &[u8]) -> News {
    match serde_json::from_slice::<Option<Grant>>(line) {
        Ok(Some(grant)) => News::Grant(grant),
        Ok(None) => News::End,
        Err(_) => News::HungUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Term;

    fn grant(until_ns: u64) -> Grant {
        let (node_id, group) = ("web1".parse().unwrap(), "default".parse().unwrap());
        Grant { node_id, group, term: Term(7), until_ns, stop_within_ms: 5_000 }
    }

    /// A link, and the daemon's end of it.
    fn link() -> (Link, std::os::unix::net::UnixStream) {
        let (own, daemon) = std::os::unix::net::UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        let stream = UnixStream::from_std(own);
        // What came with the answer to the request.
        let input = serde_json::to_vec(&grant(0)).unwrap();
        (Link { stream, input, is_over: false }, daemon)
    }

    #[test]
    fn the_newest_of_many_grants_counts() {
        let (mut link, mut daemon) = link();
        for number in 1..=100 {
            let line = serde_json::to_string(&grant(number)).unwrap();
            write!(daemon, "\n{line}").unwrap();
        }
        assert_eq!(link.receive(), Some(News::Grant(grant(99))));
        assert_eq!(link.receive(), None);
        daemon.write_all(b"\n").unwrap();
        assert_eq!(link.receive(), Some(News::Grant(grant(100))));
        daemon.write_all(b"null\n").unwrap();
        assert_eq!(link.receive(), Some(News::End));
        drop(daemon);
        assert_eq!(link.receive(), Some(News::HungUp));
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let (mut link, mut daemon) = link();
        daemon.write_all(&[b'x'; LINE_MAX]).unwrap();
        assert_eq!(link.receive(), Some(News::HungUp));
    }
}
