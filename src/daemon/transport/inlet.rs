//! The receiving side of an open socket.

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use nix::errno::Errno;

use super::batch::{Arrival, Batch};
use super::change::{Problem, refused};

/// An open socket and what was read from it.
#[derive(Debug)]
pub(super) struct Inlet {
    pub(super) socket: UdpSocket,
    /// May hold datagrams: set by an event, cleared by a read that emptied it. mio reports edges
    /// only.
    readable: bool,
    /// Datagrams that were read and not returned yet.
    batch: Batch,
    /// Reported an error: the next rescan replaces it.
    pub(super) failed: bool,
}

impl Inlet {
    /// Reports under `token`.
    pub(super) fn register(
        mut socket: UdpSocket,
        registry: &Registry,
        token: Token,
    ) -> Result<Self, Problem> {
        registry.register(&mut socket, token, Interest::READABLE).map_err(refused)?;
        Ok(Inlet { socket, readable: false, batch: Batch::new(), failed: false })
    }

    /// Whether there may be datagrams to receive.
    pub(super) fn is_readable(&self) -> bool {
        self.readable || !self.batch.is_empty()
    }

    /// The socket's event came.
    pub(super) fn handle_readable(&mut self) {
        self.readable = true;
    }

    /// Whether there is a datagram to return. Reads from the socket if none is left from the last
    /// read.
    pub(super) fn has_datagram(&mut self) -> bool {
        if self.batch.is_empty() && self.readable {
            self.read();
        }
        !self.batch.is_empty()
    }

    /// The next datagram and where it comes from.
    pub(super) fn take(&mut self) -> Option<(&[u8], Arrival)> {
        self.batch.take()
    }

    /// The hook's child may hold a copy of the descriptor until its exec, so dropping the socket
    /// would leave it registered.
    pub(super) fn close(mut self, registry: &Registry) {
        // Fails only if it is not registered.
        let _ = registry.deregister(&mut self.socket);
    }

    /// Reads the waiting datagrams. A read that is not full has emptied the socket, and later
    /// datagrams cause a new event: another read would only cost time.
    fn read(&mut self) {
        match self.batch.refill(&self.socket) {
            Ok(is_full) => self.readable = is_full,
            Err(Errno::EINTR) => {}
            Err(errno) => {
                self.readable = false;
                self.failed |= errno != Errno::EAGAIN;
            }
        }
    }
}
