//! Changes of an interface, in the words of the log and of the status.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;

use nix::errno::Errno;

use super::holders;
use crate::daemon::interfaces::RouteError;

/// Where on this host a socket is: any change needs a new socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The interface's number.
    pub index: NonZeroU32,
    /// The address that datagrams leave with.
    pub address: IpAddr,
}

/// Why the group cannot be reached through an interface, or a peer not be sent to. No reason is
/// final: each rescan retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No rescan has checked it yet.
    #[error("not checked yet")]
    Unknown,
    /// There is no interface of that name.
    #[error("missing: this host has no such interface; waiting for it")]
    Missing,
    /// No interface is configured, and the kernel has no route to the group.
    #[error("no route: {0}")]
    NoRoute(#[from] RouteError),
    /// The kernel has no route to the peer.
    #[error("no route: {0}")]
    NoRouteToPeer(String),
    /// It is administratively down.
    #[error("down: bring it up with `ip link set … up`")]
    Down,
    /// It is up, but has no carrier, or port authentication is not complete.
    #[error("no carrier: check the cable, the switch port and the other end")]
    NoCarrier,
    /// It has no address of the group's family, or none that is ready.
    #[error("no address: no {family} address is ready; add one, or wait for DHCP")]
    NoAddress {
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// The kernel has no route to the IPv6 group through this interface, as on a fresh loopback.
    #[error(
        "no route: the interface has no route to the group; \
         run `ip -6 route add {kind} {group}/128 dev {interface} table local`"
    )]
    Unroutable {
        /// The group's address.
        group: IpAddr,
        /// The interface's name.
        interface: String,
        /// The kind of route that helps: `local` on a loopback, else `multicast`.
        kind: &'static str,
    },
    /// A program has bound the port, and does not share it.
    #[error(
        "port {port} is taken by another program of this host ({}); stop it, or set another port \
         in multicast on every node; groups of one host that have peers need a port each",
        holders::describe(.holders)
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// The users with a socket on the port.
        holders: Vec<u32>,
    },
    /// A router is between this host and the peer, and nothing would prove who sends.
    #[error(
        "not in a network of this host: a peer beyond a router needs key_file, with key_mode \
         \"require\" on every node; create a key with `lanelect keygen`"
    )]
    KeyRequired,
    /// The peer's name was not looked up yet.
    #[error("its name is being looked up for the first time")]
    LookingUp,
    /// The peer's name is not known.
    #[error("its name has no address: {0}; looking it up again")]
    Unresolved(String),
    /// The list says that this host is at another port.
    #[error("it is this host, which uses port {0}; correct the port in peers or in multicast")]
    OwnPort(u16),
    /// No other host is listed.
    #[error(
        "it is this host, and no other one is listed, so nothing is sent by unicast; list every \
         host of the group in peers"
    )]
    NoOtherHost,
    /// Peers are reached from too many of this host's addresses.
    #[error("this host would need more than {0} addresses for its peers; list one address of it")]
    TooManySources(usize),
    /// The kernel rejected the socket.
    #[error("socket error: {0}")]
    Refused(String),
}

/// Why the kernel rejected a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// The interface, its address or its route has changed since the socket was opened.
    #[error("sending fails: the interface, its address or its route changed ({0})")]
    Stale(Errno),
    /// A local rule forbids it.
    #[error("sending fails: the kernel forbids it ({0}); allow UDP to its port in the firewall")]
    Forbidden(Errno),
    /// The interface's queue is full.
    #[error("sending fails: the interface's queue is full ({0})")]
    Congested(Errno),
    /// Something else.
    #[error("sending fails: {0}")]
    Other(Errno),
}

impl From<&io::Error> for SendFailure {
    fn from(error: &io::Error) -> Self {
        SendFailure::from(Errno::from_raw(error.raw_os_error().unwrap_or_default()))
    }
}

impl From<rustix::io::Errno> for SendFailure {
    fn from(errno: rustix::io::Errno) -> Self {
        SendFailure::from(Errno::from_raw(errno.raw_os_error()))
    }
}

impl From<Errno> for SendFailure {
    fn from(errno: Errno) -> Self {
        match errno {
            // EINVAL: the source address that the socket is fixed to no longer exists.
            Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::ENETDOWN
            | Errno::ENODEV
            | Errno::ENXIO
            | Errno::EADDRNOTAVAIL
            | Errno::EINVAL => SendFailure::Stale(errno),
            Errno::EPERM | Errno::EACCES => SendFailure::Forbidden(errno),
            Errno::ENOBUFS | Errno::ENOMEM | Errno::EAGAIN => SendFailure::Congested(errno),
            _ => SendFailure::Other(errno),
        }
    }
}

/// Why a socket joined the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinCause {
    /// The interface is used for the first time.
    FirstUse,
    /// Its problem has ended.
    Recovered,
    /// It was deleted and created again under another number.
    Recreated,
    /// The previous interface could no longer be used, and the kernel's route had moved to this
    /// one.
    Rerouted,
    /// Its address changed.
    Readdressed,
    /// The socket reported an error, or lost its membership.
    SocketFailed,
}

/// What happened to an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// The group can be reached through it, with a new socket.
    Joined {
        /// Where the socket is.
        endpoint: Endpoint,
        /// Why there is a new one.
        cause: JoinCause,
    },
    /// A peer is sent to, from another of this host's addresses than before.
    SendingFrom(IpAddr),
    /// Neither the group can be reached through it nor the peer, or the reason has changed.
    Lost(Problem),
    /// It is up, but the kernel rejects datagrams for it.
    SendFailing(SendFailure),
    /// The kernel accepts datagrams for it again.
    SendRecovered,
}

/// What carries datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carrier {
    /// The interface of this name, by multicast.
    Interface(String),
    /// The peer that is listed so, by unicast.
    Peer(String),
}

/// A change of an interface or a peer, reported once. Its text is one line for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// Of what.
    pub carrier: Carrier,
    /// What happened.
    pub event: LinkEvent,
}

impl LinkChange {
    /// Whether it makes things worse.
    pub const fn is_loss(&self) -> bool {
        matches!(self.event, LinkEvent::Lost(_) | LinkEvent::SendFailing(_))
    }
}

impl fmt::Display for LinkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.carrier {
            Carrier::Interface(name) => write!(f, "interface {name}: ")?,
            Carrier::Peer(name) => write!(f, "peer {name}: ")?,
        }
        match &self.event {
            LinkEvent::Joined { endpoint, cause } => {
                write!(f, "{cause}, joined the group with address {}", endpoint.address)
            }
            LinkEvent::SendingFrom(source) => write!(f, "sending to it from {source}"),
            LinkEvent::Lost(problem) => problem.fmt(f),
            LinkEvent::SendFailing(failure) => failure.fmt(f),
            LinkEvent::SendRecovered => f.write_str("sending works again"),
        }
    }
}

impl fmt::Display for JoinCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinCause::FirstUse => "up",
            JoinCause::Recovered => "up again",
            JoinCause::Recreated => "created again",
            JoinCause::Rerouted => "now on the kernel's route to the group",
            JoinCause::Readdressed => "address changed",
            JoinCause::SocketFailed => "socket failed",
        })
    }
}

pub(super) fn refused(error: impl fmt::Display) -> Problem {
    Problem::Refused(error.to_string())
}
