//! Datagrams read from a socket with one system call, and returned one by one.

use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;

use arrayvec::ArrayVec;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg,
};

use crate::os::address;
use crate::wire::frame::EXTENDED_MAX;

/// Most datagrams in a batch. In a small group usually one waits at a time; this number makes the
/// system call cheap in a flood.
const BATCH_MAX: usize = 8;

/// One byte more than the longest datagram: a longer one is recognized by its length.
const SLOT: usize = EXTENDED_MAX + 1;

/// Buffers for a batch, and the rest of the last one.
#[derive(Debug)]
pub(super) struct Batch {
    slots: [[u8; SLOT]; BATCH_MAX],
    headers: MultiHeaders<SockaddrStorage>,
    arrivals: ArrayVec<Arrival, BATCH_MAX>,
    /// The first datagram that was not returned yet.
    next: usize,
}

/// What the network layer reports about a datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    length: usize,
    pub(super) sender: SocketAddr,
    /// Its remaining hop count.
    pub(super) hops: u8,
    /// The number of the interface where it arrived, if the socket requests it.
    pub(super) interface: Option<NonZeroU32>,
}

impl Batch {
    /// An empty one.
    pub(super) fn new() -> Self {
        Batch {
            slots: [[0; SLOT]; BATCH_MAX],
            headers: MultiHeaders::preallocate(BATCH_MAX, Some(control_space())),
            arrivals: ArrayVec::new(),
            next: 0,
        }
    }

    /// Whether all of it was returned.
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.arrivals.len()
    }

    /// Replaces the batch by the datagrams that wait in `socket`, and returns whether there may
    /// have been more than it has room for. Does not wait and allocates nothing.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if nothing waits. The batch is empty after an error.
    pub(super) fn refill(&mut self, socket: &impl AsRawFd) -> nix::Result<bool> {
        self.arrivals.clear();
        self.next = 0;
        let mut slots = self.slots.each_mut().map(|slot| [IoSliceMut::new(slot)]);
        let flags = MsgFlags::MSG_DONTWAIT;
        let received =
            recvmmsg(socket.as_raw_fd(), &mut self.headers, slots.iter_mut(), flags, None)?;
        for message in received {
            let sender = message.address.as_ref().and_then(address::internet);
            // A datagram of the internet protocols has a sender.
            let sender = sender.ok_or(Errno::EAFNOSUPPORT)?;
            self.arrivals.push(Arrival::of(&message, sender));
        }
        Ok(self.arrivals.is_full())
    }

    /// The next datagram.
    pub(super) fn take(&mut self) -> Option<(&[u8], Arrival)> {
        let arrival = *self.arrivals.get(self.next)?;
        let datagram = self.slots.get(self.next)?.get(..arrival.length)?;
        self.next += 1;
        Some((datagram, arrival))
    }
}

impl Arrival {
    /// Every socket requests the hop count. A datagram without one is rejected.
    fn of(message: &RecvMsg<'_, '_, SockaddrStorage>, sender: SocketAddr) -> Self {
        let mut arrival = Arrival { length: message.bytes, sender, hops: 0, interface: None };
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4Ttl(hops) | ControlMessageOwned::Ipv6HopLimit(hops) => {
                    arrival.hops = u8::try_from(hops).unwrap_or(0);
                }
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    arrival.interface = NonZeroU32::new(info.ipi_ifindex.unsigned_abs());
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    arrival.interface = NonZeroU32::new(info.ipi6_ifindex);
                }
                _ => {}
            }
        }
        arrival
    }
}

/// Room for the hop count and the interface of a datagram of either family.
fn control_space() -> Vec<u8> {
    cmsg_space!(c_int, libc::in6_pktinfo)
}
