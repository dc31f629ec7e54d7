//! The multicast transport: one socket for each interface, kept in line with the host.
//!
//! The event loop passes every event's token to [`Transport::handle_event`]. It calls
//! [`Transport::rescan`] whenever [`Transport::next_rescan`] is due, and logs the changes. It calls
//! [`Transport::receive`] up to a budget, and does not sleep while [`Transport::has_more`].
//!
//! An interface can appear and disappear without an error on any socket: without a carrier, the
//! kernel still accepts datagrams and still delivers one's own copies. So a socket is open exactly
//! as long as its interface exists, is up, and has a carrier and the address that the socket was
//! opened with. A netlink monitor triggers an early rescan; a slow poll covers whatever the monitor
//! misses.

mod batch;
mod change;
mod filter;
mod holders;
mod link;
mod origin;
mod send_health;
mod socket;
mod source;

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use mio::{Registry, Token};

pub use self::change::{Endpoint, JoinCause, LinkChange, LinkEvent, Problem, SendFailure};
pub use self::holders::of_port as users_of_port;
use self::link::Link;
pub use self::link::REJOIN_INTERVAL;
pub use self::origin::Stray;
use crate::config::INTERFACES_MAX;
use crate::control_api::InterfaceReport;
use crate::daemon::interfaces::{Interfaces, Monitor};
use crate::time::Time;
use crate::wire::frame::Mark;

/// How many tokens a transport uses, from its base token up: one for the netlink monitor and one
/// for each interface.
pub const TOKENS: usize = 1 + INTERFACES_MAX;

/// Time between rescans that nothing requested.
pub const RESCAN_INTERVAL: Duration = Duration::from_secs(10);

/// The same while no interface is up or the interfaces cannot be read: a route or an address that
/// becomes ready causes no event.
pub const RESCAN_INTERVAL_DOWN: Duration = Duration::from_secs(1);

/// Shortest time between two rescans: a storm of netlink messages does not cause a storm of
/// rescans.
pub const RESCAN_PAUSE: Duration = Duration::from_millis(50);

/// Where the group is, and which interfaces reach it, as a checked configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The multicast address and the port, without a scope id.
    pub group: SocketAddr,
    /// The interfaces' names, at most [`INTERFACES_MAX`], each once. Empty: the interface of the
    /// kernel's route to the group.
    pub interfaces: Vec<String>,
    /// The mark of the sender's own datagrams, which the sockets then drop. None: they are
    /// received.
    pub own: Option<Mark>,
}

/// Why a transport could not be created. It has sent and joined nothing.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The kernel provided no netlink socket.
    #[error("cannot watch the network interfaces by netlink: {0}")]
    Monitor(#[source] io::Error),
    /// The event loop's registry cannot be shared.
    #[error("cannot share the event loop's registry: {0}")]
    Registry(#[source] io::Error),
}

/// The kernel did not list the interfaces. The sockets are unchanged; the next rescan retries.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the network interfaces: {0}; retrying")]
pub struct RescanError(#[from] io::Error);

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its bytes, or why it is not from this LAN. If it is too long to be well-formed, it is cut
    /// off, but still too long.
    pub datagram: Result<&'a [u8], Stray>,
    /// Its source address, which may be forged.
    pub source: IpAddr,
    /// The number of the interface where it arrived.
    pub interface: NonZeroU32,
}

/// The sockets of one group on all configured interfaces.
#[derive(Debug)]
pub struct Transport {
    registry: Registry,
    base: Token,
    links: Vec<Link>,
    monitor: Monitor,
    /// The monitor reported something since the last rescan.
    changed: bool,
    scanned_at: Option<Time>,
    /// What the last successful scan found.
    interfaces: Interfaces,
    /// A scan missed an address that the one before found.
    has_lost_address: bool,
    /// The last rescan failed.
    blind: bool,
    /// The link to read next.
    turn: usize,
    /// The datagram being sent; kept for its capacity.
    outgoing: Vec<u8>,
    sent: u64,
    send_errors: u64,
}

impl Transport {
    /// A transport whose first rescan is due at once. It reports under [`TOKENS`] tokens from
    /// `base` up.
    ///
    /// # Errors
    ///
    /// If the kernel provides no netlink socket. An interface that does not exist is no error: the
    /// transport waits for it.
    pub fn new(
        registry: &Registry,
        base: Token,
        settings: Settings,
    ) -> Result<Self, TransportError> {
        let monitor = Monitor::new(registry, base).map_err(TransportError::Monitor)?;
        Ok(Transport {
            registry: registry.try_clone().map_err(TransportError::Registry)?,
            base,
            links: links(settings, base),
            monitor,
            changed: false,
            scanned_at: None,
            interfaces: Interfaces::default(),
            has_lost_address: false,
            blind: false,
            turn: 0,
            outgoing: Vec::new(),
            sent: 0,
            send_errors: 0,
        })
    }

    /// Whether the group can be reached through any interface. An interface whose datagrams the
    /// kernel rejects does not count.
    pub fn any_up(&self) -> bool {
        self.links.iter().any(Link::reaches_group)
    }

    /// Whether the kernel did not list the interfaces at the last scan.
    pub const fn is_blind(&self) -> bool {
        self.blind
    }

    /// The source address of datagrams through the first interface that is up.
    pub fn source_address(&self) -> Option<IpAddr> {
        self.links.iter().find_map(Link::endpoint).map(|endpoint| endpoint.address)
    }

    /// Every configured interface for the status, in the configured order.
    pub fn reports(&self) -> Vec<InterfaceReport> {
        self.links.iter().map(Link::report).collect()
    }

    /// Datagrams that the kernel accepted, counted once for each interface.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Datagrams that the kernel rejected, counted once for each interface.
    pub fn send_errors(&self) -> u64 {
        self.send_errors
    }

    /// Whether datagrams may be left that [`Transport::receive`] has not returned. No further event
    /// reports them.
    pub fn has_more(&self) -> bool {
        self.links.iter().any(Link::is_readable)
    }

    /// When [`Transport::rescan`] is due. An event or a failed send may make it due earlier.
    pub fn next_rescan(&self) -> Time {
        let Some(scanned_at) = self.scanned_at else { return Time::ZERO };
        let interval = if self.changed || self.links.iter().any(Link::needs_rescan) {
            RESCAN_PAUSE
        } else if self.any_up() && !self.blind {
            RESCAN_INTERVAL
        } else {
            RESCAN_INTERVAL_DOWN
        };
        scanned_at + interval
    }

    /// An event arrived under `token`. Tokens of other modules are harmless.
    pub fn handle_event(&mut self, token: Token) {
        if token == self.base {
            self.changed |= self.monitor.drain();
        } else if let Some(link) = self.links.iter_mut().find(|link| link.reports_under(token)) {
            link.handle_readable();
        }
    }

    /// Reads the host's interfaces, opens, replaces and closes sockets accordingly, renews
    /// memberships that are due, and returns each change once.
    ///
    /// # Errors
    ///
    /// If the kernel does not list its interfaces. Then nothing changes.
    pub fn rescan(&mut self, now: Time) -> Result<Vec<LinkChange>, RescanError> {
        self.scanned_at = Some(now);
        self.changed = false;
        self.blind = true;
        let scanned = Interfaces::scan()?;
        self.blind = false;
        self.has_lost_address |= self.interfaces.have_lost_any_in(&scanned);
        self.interfaces = scanned;
        let (links, registry) = (self.links.iter_mut(), &self.registry);
        Ok(links.flat_map(|link| link.update(&self.interfaces, registry, now)).collect())
    }

    /// Whether this host has lost an address since the last call, on any interface.
    pub fn take_lost_address(&mut self) -> bool {
        mem::take(&mut self.has_lost_address)
    }

    /// Another member is no longer heard. Perhaps a switch has forgotten this host, which then
    /// receives nothing: announces the memberships again, but not more often than every few
    /// seconds.
    pub fn announce_anew(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.announce_anew(now));
    }

    /// Sends to the group on every interface that is up. For each one, `write` fills an empty
    /// buffer right before the send, for the source address of that interface. If `write` returns
    /// false, nothing more is sent. Never blocks; rejected datagrams are counted, and the next
    /// rescan reports them.
    pub fn send(&mut self, mut write: impl FnMut(IpAddr, &mut Vec<u8>) -> bool) {
        for link in &mut self.links {
            let Some(endpoint) = link.endpoint() else { continue };
            self.outgoing.clear();
            if !write(endpoint.address, &mut self.outgoing) {
                return;
            }
            match link.send(&self.outgoing) {
                Some(true) => self.sent += 1,
                Some(false) => self.send_errors += 1,
                None => {}
            }
        }
    }

    /// The next datagram, taking turns between the interfaces; none if all are empty. Includes
    /// those of this host, except those that [`Settings::own`] names. Datagrams are read from the
    /// socket in advance: the caller must read the clock after this call to date one.
    pub fn receive(&mut self) -> Option<Received<'_>> {
        let count = self.links.len();
        let turn = (0..count)
            .map(|ahead| (self.turn + ahead) % count)
            .find(|turn| self.links.get_mut(*turn).is_some_and(Link::has_datagram))?;
        self.turn = (turn + 1) % count;
        let (datagram, arrival, endpoint) = self.links.get_mut(turn)?.take()?;
        let source = arrival.sender.ip().to_canonical();
        let datagram = origin::check(arrival.hops, source, endpoint.address).map(|()| datagram);
        Some(Received { datagram, source, interface: endpoint.index })
    }
}

/// A link for each configured interface, or one for the kernel's route.
fn links(settings: Settings, base: Token) -> Vec<Link> {
    let names: Vec<Option<String>> = match settings.interfaces {
        none if none.is_empty() => vec![None],
        some => some.into_iter().map(Some).collect(),
    };
    let tokens = (base.0 + 1..).map(Token);
    let own = settings.own.map(Rc::new);
    let link = |(name, token)| Link::new(settings.group, token, name, own.clone());
    names.into_iter().zip(tokens).map(link).collect()
}
