//! A UDP socket that sends to one multicast group through one interface and receives nothing else.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;

use mio::net::UdpSocket;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn6, sendmsg, setsockopt, sockopt};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket, Type};

use super::change::{Endpoint, Problem, refused};
use super::origin::HOPS;
use super::{filter, holders};
use crate::wire::frame::Mark;

/// Requested size of the receive buffer, in bytes. The kernel grants at most `rmem_max`; its
/// default overflows at 256 small datagrams.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Opens a socket on `endpoint` that is a member of `group` and does not receive this host's own
/// datagrams with the mark `own`. Its queue contains nothing that arrived before it joined.
pub(super) fn open(
    group: SocketAddr,
    endpoint: Endpoint,
    own: Option<&Mark>,
) -> Result<UdpSocket, Problem> {
    let socket = prepare(group, endpoint).map_err(at("set the socket's options"))?;
    if let Some(mark) = own {
        // Without the filter, the daemon receives its own datagrams, which costs time but is
        // otherwise harmless.
        let _ = socket.attach_filter(&filter::dropping(mark, endpoint.address.is_loopback()));
    }
    bind_device(&socket, endpoint).map_err(at("bind the socket to the interface"))?;
    socket.bind(&group.into()).map_err(|error| unbound(&error, group))?;
    join(&socket, group.ip(), endpoint.index).map_err(at("join the group"))?;
    Ok(UdpSocket::from_std(socket.into()))
}

/// Sends to the group with the source address of `endpoint`, and never with another. The result is
/// that of this datagram, whatever came back by ICMP; none if it `may_leave` no more.
pub(super) fn send(
    socket: &UdpSocket,
    datagram: &[u8],
    group: SocketAddr,
    endpoint: Endpoint,
    may_leave: &impl Fn() -> bool,
) -> Option<io::Result<()>> {
    let send = || may_leave().then(|| send_once(socket, datagram, group, endpoint));
    report_full_queues(socket, endpoint.address, true);
    let result = send();
    report_full_queues(socket, endpoint.address, false);
    match result {
        Some(Err(error)) if !is_full(&error) => send(),
        result => result,
    }
}

/// Has the kernel report datagrams that do not fit the queue of an interface; otherwise it drops
/// them, and reports success. It then also reports what came back by ICMP for earlier datagrams,
/// to any host, and anyone on the LAN can forge that. So this holds only during a send, and what
/// was reported meanwhile is forgotten.
pub(super) fn report_full_queues(socket: &UdpSocket, source: IpAddr, yes: bool) {
    // Without it, a full queue goes unnoticed, and nothing else changes.
    let _ = match source {
        IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4RecvErr, &yes),
        IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvErr, &yes),
    };
    if !yes {
        let _ = socket.take_error();
    }
}

/// Whether there was no room for a datagram. No ICMP error says that.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}

fn send_once(
    socket: &UdpSocket,
    datagram: &[u8],
    group: SocketAddr,
    endpoint: Endpoint,
) -> io::Result<()> {
    match (group, endpoint.address) {
        (SocketAddr::V6(group), IpAddr::V6(source)) => {
            send_from(socket, datagram, group, source, endpoint.index)
        }
        // An IPv4 socket was fixed to its source when it was opened.
        _ => socket.send_to(datagram, group).map(drop),
    }
}

/// Leaves the group and joins it again, which makes the kernel announce the membership again.
pub(super) fn rejoin(socket: &UdpSocket, group: IpAddr, index: NonZeroU32) -> io::Result<()> {
    let socket = SockRef::from(socket);
    // Fails if the kernel has already dropped the membership, which is equally good.
    let _ = leave(&socket, group, index);
    join(&socket, group, index)
}

/// The step that failed while a socket was set up.
pub(super) fn at(step: &'static str) -> impl FnOnce(io::Error) -> Problem {
    move |error| refused(format!("cannot {step}: {error}"))
}

/// Any user of this host may bind the port first, and the kernel then refuses it. The problem names
/// the users that have it, because the administrator must stop one of their programs.
pub(super) fn unbound(error: &io::Error, own: SocketAddr) -> Problem {
    if error.kind() == io::ErrorKind::AddrInUse {
        let holders = holders::of_port(own.port());
        return Problem::PortTaken { port: own.port(), holders };
    }
    refused(format!("cannot bind the socket to {own}: {error}"))
}

/// A socket with all its options set, receiving nothing yet.
fn prepare(group: SocketAddr, endpoint: Endpoint) -> io::Result<Socket> {
    let domain = Domain::for_address(group);
    let socket = Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    match endpoint.address {
        IpAddr::V4(source) => {
            // The group's datagrams must not arrive before this socket itself has joined.
            socket.set_multicast_all_v4(false)?;
            socket.set_multicast_loop_v4(true)?;
            socket.set_multicast_ttl_v4(HOPS.into())?;
            // The kernel does not apply IP_MINTTL to UDP: each datagram carries its own hop count.
            setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
            // Fixes the source address; `bind_device` fixes the interface. In this order, because a
            // bound socket rejects an address that another interface has as well.
            socket.set_multicast_if_v4(&source)?;
        }
        IpAddr::V6(_) => {
            socket.set_only_v6(true)?;
            socket.set_multicast_all_v6(false)?;
            socket.set_multicast_loop_v6(true)?;
            socket.set_multicast_hops_v6(HOPS.into())?;
            setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
            socket.set_multicast_if_v6(endpoint.index.get())?;
        }
    }
    widen_queue(&socket);
    Ok(socket)
}

/// Makes room for datagrams that wait. Less is worse but works.
pub(super) fn widen_queue(socket: &Socket) {
    let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
}

/// An IPv6 socket cannot have a fixed source while it is bound to the group, so each datagram names
/// its own source.
fn send_from(
    socket: &UdpSocket,
    datagram: &[u8],
    group: SocketAddrV6,
    source: Ipv6Addr,
    index: NonZeroU32,
) -> io::Result<()> {
    let source = libc::in6_pktinfo {
        ipi6_addr: libc::in6_addr { s6_addr: source.octets() },
        ipi6_ifindex: index.get(),
    };
    let (content, control) = ([IoSlice::new(datagram)], [ControlMessage::Ipv6PacketInfo(&source)]);
    let group = SockaddrIn6::from(group);
    sendmsg(socket.as_raw_fd(), &content, &control, MsgFlags::empty(), Some(&group))?;
    Ok(())
}

/// Ties the socket to the interface, in both directions. Needs no privilege since Linux 5.7.
fn bind_device(socket: &Socket, endpoint: Endpoint) -> io::Result<()> {
    match endpoint.address {
        IpAddr::V4(_) => socket.bind_device_by_index_v4(Some(endpoint.index)),
        IpAddr::V6(_) => socket.bind_device_by_index_v6(Some(endpoint.index)),
    }
}

fn join(socket: &Socket, group: IpAddr, index: NonZeroU32) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.join_multicast_v4_n(&group, &by_index(index)),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index.get()),
    }
}

fn leave(socket: &Socket, group: IpAddr, index: NonZeroU32) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => socket.leave_multicast_v4_n(&group, &by_index(index)),
        IpAddr::V6(group) => socket.leave_multicast_v6(&group, index.get()),
    }
}

fn by_index(index: NonZeroU32) -> InterfaceIndexOrAddress {
    InterfaceIndexOrAddress::Index(index.get())
}
