//! A UDP socket at one of this host's addresses: it sends to peers and receives from them.
//!
//! The kernel keeps datagrams to a host that does not answer for seconds, and all that time they
//! take room in the send buffer of their socket. A few dead hosts fill it, and then it has no room
//! for the living either. What finds no room leaves by a socket for that peer alone, its detour.
//! A larger buffer is no help: the kernel grants twice its usual size, and keeps as much as the
//! usual size for each dead host.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use mio::net::UdpSocket;
use mio::{Registry, Token};
use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use socket2::{Domain, Protocol, Socket, Type};

use super::change::{Endpoint, Problem, SendFailure};
use super::inlet::Inlet;
use super::origin::HOPS;
use super::socket::{at, report_full_queues, unbound, widen_queue};

/// An open socket at one address.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) endpoint: Endpoint,
    pub(super) token: Token,
    pub(super) inlet: Inlet,
    /// Sockets that only send, each to one peer. They are closed at each rescan, which alone
    /// changes who is sent to, so there is at most one for each address of a peer.
    detours: BTreeMap<SocketAddr, Socket>,
}

impl Outlet {
    /// Opens a socket at `endpoint`, and shares its port with no other program: the kernel would
    /// give that one the datagrams of the peers. Port 0 is any that is free.
    pub(super) fn open(
        endpoint: Endpoint,
        port: u16,
        registry: &Registry,
        token: Token,
    ) -> Result<Self, Problem> {
        let own = SocketAddr::new(endpoint.address, port);
        let socket = prepare(endpoint.address).map_err(at("set the socket's options"))?;
        socket.bind(&own.into()).map_err(|error| unbound(&error, own))?;
        let inlet = Inlet::register(UdpSocket::from_std(socket.into()), registry, token)?;
        Ok(Outlet { endpoint, token, inlet, detours: BTreeMap::new() })
    }

    /// Closes the detours. If there is still no room without them, they are opened again.
    pub(super) fn close_detours(&mut self) {
        self.detours.clear();
    }

    /// Sends the same to each of `addresses`, with one system call if the kernel accepts all, and
    /// tells what became of each, in their order. Once it `may_leave` no more, the rest get
    /// nothing, and nothing is told of them.
    pub(super) fn send(
        &mut self,
        datagram: &[u8],
        addresses: &[SocketAddr],
        may_leave: &impl Fn() -> bool,
        mut tell: impl FnMut(Result<(), SendFailure>),
    ) {
        let to: Vec<SocketAddrAny> = addresses.iter().map(|address| (*address).into()).collect();
        let content = [IoSlice::new(datagram)];
        let mut control: Vec<_> = to.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let headers = to.iter().zip(&mut control);
        let mut headers: Vec<_> = headers
            .map(|(address, control)| MMsgHdr::new_with_addr(address, &content, control))
            .collect();
        let mut left = headers.as_mut_slice();
        let source = self.endpoint.address;
        report_full_queues(&self.inlet.socket, source, true);
        while !left.is_empty() {
            let (taken, result) = match self.send_some(left, may_leave) {
                Ok(sent) if sent > 0 => (sent, Ok(())),
                Err(Errno::INTR) => continue,
                Ok(_) | Err(Errno::AGAIN) => break,
                Err(errno) => (1, Err(SendFailure::from(errno))),
            };
            (0..taken).for_each(|_| tell(result));
            left = left.get_mut(taken..).unwrap_or_default();
        }
        report_full_queues(&self.inlet.socket, source, false);
        // There is no room for any of the rest, or they may not leave.
        let reached = addresses.len() - left.len();
        for address in addresses.get(reached..).unwrap_or_default() {
            let Some(detour) = self.detour_to(*address) else {
                tell(Err(SendFailure::from(Errno::AGAIN)));
                continue;
            };
            if !may_leave() {
                return;
            }
            let sent = detour.send_to(datagram, &(*address).into());
            tell(sent.map(drop).map_err(|error| SendFailure::from(&error)));
        }
    }

    /// Sends the first so many of these. The kernel stops at the first that it rejects, and tells
    /// why only if it is the first of a call. The error may have come back by ICMP for an earlier
    /// datagram, to another peer. So that one is sent once more when no such error can reach it.
    /// It sends 0 if they may not leave.
    fn send_some(
        &self,
        datagrams: &mut [MMsgHdr<'_>],
        may_leave: &impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        let send = |datagrams: &mut [MMsgHdr<'_>]| match may_leave() {
            true => sendmmsg(&self.inlet.socket, datagrams, SendFlags::DONTWAIT),
            false => Ok(0),
        };
        match send(datagrams) {
            Err(errno) if !matches!(errno, Errno::AGAIN | Errno::NOBUFS) => {
                let source = self.endpoint.address;
                report_full_queues(&self.inlet.socket, source, false);
                let result = send(datagrams.get_mut(..1).unwrap_or_default());
                report_full_queues(&self.inlet.socket, source, true);
                result
            }
            result => result,
        }
    }

    /// None if the system gives no socket.
    fn detour_to(&mut self, address: SocketAddr) -> Option<&Socket> {
        match self.detours.entry(address) {
            Entry::Occupied(detour) => Some(detour.into_mut()),
            Entry::Vacant(entry) => Some(entry.insert(detour(self.endpoint.address).ok()?)),
        }
    }
}

/// A socket that sends from `source`. Its port is any other: the port of the peers cannot be
/// shared, and receivers do not look at the source port.
fn detour(source: IpAddr) -> io::Result<Socket> {
    let socket = prepare(source)?;
    // Nothing that arrives there is read.
    let _ = socket.set_recv_buffer_size(0);
    socket.bind(&SocketAddr::new(source, 0).into())?;
    Ok(socket)
}

fn prepare(source: IpAddr) -> io::Result<Socket> {
    let domain = if source.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    // Each datagram's hop count tells whether it has passed a router, and its interface whether it
    // comes from another network: the socket is not bound to one.
    if source.is_ipv4() {
        socket.set_ttl_v4(HOPS.into())?;
        setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
    } else {
        socket.set_only_v6(true)?;
        socket.set_unicast_hops_v6(HOPS.into())?;
        setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
        setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
    }
    widen_queue(&socket);
    Ok(socket)
}
