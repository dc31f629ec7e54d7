//! Carries the group's datagrams: by multicast with a socket for each interface, by unicast with
//! one for each address that peers are sent to from, kept in line with the host.
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
mod inlet;
mod link;
mod origin;
mod outlet;
mod peers;
mod send_health;
mod socket;
mod source;
mod unicast;

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use mio::{Registry, Token};

pub use self::change::{Carrier, Endpoint, JoinCause, LinkChange, LinkEvent, Problem, SendFailure};
pub use self::holders::of_port as users_of_port;
use self::link::Link;
pub use self::link::REJOIN_INTERVAL;
pub use self::origin::Stray;
pub use self::peers::is_beyond_a_router;
use self::unicast::{OUTLETS_MAX, Unicast};
use crate::config::{Config, INTERFACES_MAX, Peer};
use crate::control_api::{InterfaceReport, PeerReport};
use crate::daemon::interfaces::{Interfaces, Monitor};
use crate::time::Time;
use crate::wire::frame::Mark;

/// How many tokens a transport uses, from its base token up: one for the netlink monitor, one for
/// each interface, and one for each address that peers are sent to from.
pub const TOKENS: usize = 1 + INTERFACES_MAX + OUTLETS_MAX;

/// Time between rescans that nothing requested.
pub const RESCAN_INTERVAL: Duration = Duration::from_secs(10);

/// The same while no interface is up or the interfaces cannot be read: a route or an address that
/// becomes ready causes no event.
pub const RESCAN_INTERVAL_DOWN: Duration = Duration::from_secs(1);

/// Shortest time between two rescans: a storm of netlink messages does not cause a storm of
/// rescans.
pub const RESCAN_PAUSE: Duration = Duration::from_millis(50);

/// How long the names of peers are waited for, from when the group or a peer is first within reach.
/// Longer than a resolver tries a name server that does not answer, which is twice for 5 s.
pub const NAMES_PATIENCE: Duration = Duration::from_secs(15);

/// Where the group is, and which interfaces reach it, as a checked configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The multicast address and the port, without a scope id. None: there is no multicast.
    pub group: Option<SocketAddr>,
    /// The interfaces' names, at most [`INTERFACES_MAX`], each once. Empty: the interface of the
    /// kernel's route to the group.
    pub interfaces: Vec<String>,
    /// The mark of the sender's own datagrams. If the kernel returns them, the sockets drop them.
    /// None: they are received.
    pub own: Option<Mark>,
    /// The hosts that are sent to by unicast.
    pub peers: Vec<Peer>,
    /// The port of this host's addresses to its peers.
    pub port: u16,
    /// Whether nothing is received from peers. Then datagrams to them leave from any port: a daemon
    /// that was killed and cannot end keeps its own.
    pub sends_only: bool,
    /// Whether no datagram counts without a key. Otherwise no peer beyond a router is sent to.
    pub requires_key: bool,
}

impl Settings {
    /// Those of a configuration.
    pub fn of(config: &Config, own: Option<Mark>) -> Self {
        Settings {
            group: config.multicast_group(),
            interfaces: config.interfaces.clone(),
            own,
            peers: config.peers.clone(),
            port: config.port,
            sends_only: false,
            requires_key: config.requires_key(),
        }
    }
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
    /// Its bytes, or why it is neither from this LAN nor from a peer. If it is too long to be
    /// well-formed, it is cut off, but still too long.
    pub datagram: Result<&'a [u8], Stray>,
    /// Its source address, which may be forged.
    pub source: IpAddr,
    /// The number of the interface where it arrived.
    pub interface: NonZeroU32,
    /// Whether it was sent to this host's own address.
    pub is_unicast: bool,
    /// Whether it has passed a router, or was sent by unicast from another network than its source
    /// is in: then it counts only with a seal.
    pub is_routed: bool,
}

/// The sockets of one group on all configured interfaces.
#[derive(Debug)]
pub struct Transport {
    registry: Registry,
    base: Token,
    links: Vec<Link>,
    unicast: Unicast,
    monitor: Monitor,
    /// The monitor reported something since the last rescan.
    changed: bool,
    scanned_at: Option<Time>,
    /// What the last successful scan found.
    interfaces: Interfaces,
    /// The addresses of this host, without those that its hook may have added.
    own: BTreeSet<IpAddr>,
    /// When the group or a peer was first within reach.
    reached_at: Option<Time>,
    /// Nothing counts as up until more names of peers have an address.
    awaits_names: bool,
    /// A scan missed an address that the one before found.
    has_lost_address: bool,
    /// The last rescan failed.
    blind: bool,
    /// The link or the socket to peers to read next.
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
            unicast: Unicast::new(&settings, Token(base.0 + 1 + INTERFACES_MAX)),
            links: links(settings, base),
            monitor,
            changed: false,
            scanned_at: None,
            interfaces: Interfaces::default(),
            own: BTreeSet::new(),
            reached_at: None,
            awaits_names: false,
            has_lost_address: false,
            blind: false,
            turn: 0,
            outgoing: Vec::new(),
            sent: 0,
            send_errors: 0,
        })
    }

    /// Whether the group can be reached through any interface, or any peer can be sent to. One
    /// whose datagrams the kernel rejects does not count. At first nothing is up before each peer's
    /// name has an address, or [`NAMES_PATIENCE`] is over: a leader among the others would not be
    /// heard.
    pub fn any_up(&self) -> bool {
        self.reaches_any() && !self.awaits_names
    }

    fn reaches_any(&self) -> bool {
        self.links.iter().any(Link::reaches_group) || self.unicast.any_up()
    }

    /// The name of the peer at this place in the list was looked up. The next rescan, which is due
    /// soon, acts on it.
    pub fn resolve(&mut self, peer: usize, found: Result<Vec<IpAddr>, String>) {
        self.unicast.resolve(peer, found);
    }

    /// The addresses of each peer, in the list's order.
    pub fn peer_addresses(&self) -> Vec<Vec<IpAddr>> {
        self.unicast.addresses()
    }

    /// Replaces [`Settings::requires_key`].
    pub fn set_requires_key(&mut self, requires_key: bool) {
        self.unicast.set_requires_key(requires_key);
    }

    /// Whether the kernel did not list the interfaces at the last scan.
    pub const fn is_blind(&self) -> bool {
        self.blind
    }

    /// The source address of datagrams through the first interface that is up.
    pub fn source_address(&self) -> Option<IpAddr> {
        let mut endpoints =
            self.links.iter().filter_map(Link::endpoint).chain(self.unicast.endpoints());
        endpoints.next().map(|endpoint| endpoint.address)
    }

    /// The names of the interfaces in use: those of the links, or else those that peers are reached
    /// through.
    pub fn interface_names(&self) -> Vec<String> {
        let of_links: Vec<_> =
            self.links.iter().filter_map(Link::name).map(str::to_owned).collect();
        if !of_links.is_empty() {
            return of_links;
        }
        let names = self.unicast.endpoints().filter_map(|endpoint| {
            self.interfaces.owner_of(endpoint.address).map(|owner| owner.name.clone())
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Every peer for the status, in the list's order.
    pub fn peer_reports(&self) -> Vec<PeerReport> {
        self.unicast.reports()
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
        self.links.iter().any(Link::is_readable) || self.unicast.is_readable()
    }

    /// When [`Transport::rescan`] is due. An event or a failed send may make it due earlier.
    pub fn next_rescan(&self) -> Time {
        let Some(scanned_at) = self.scanned_at else { return Time::ZERO };
        let has_news = self.links.iter().any(Link::needs_rescan) || self.unicast.needs_rescan();
        let interval = if self.changed || has_news {
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
        } else {
            self.unicast.handle_event(token);
        }
    }

    /// Reads the host's interfaces, opens, replaces and closes sockets accordingly, renews
    /// memberships that are due, and returns each change once. `holds`: this node leads, or its
    /// hook may not have released what it took; addresses that come meanwhile are not the host's
    /// own.
    ///
    /// # Errors
    ///
    /// If the kernel does not list its interfaces. Then nothing changes.
    pub fn rescan(&mut self, now: Time, holds: bool) -> Result<Vec<LinkChange>, RescanError> {
        self.scanned_at = Some(now);
        self.changed = false;
        self.blind = true;
        let mut scanned = Interfaces::scan()?;
        self.blind = false;
        if holds {
            scanned.mark_guests(&self.own);
        } else {
            self.own = scanned.addresses().collect();
        }
        self.has_lost_address |= self.interfaces.have_lost_any_in(&scanned);
        self.interfaces = scanned;
        let (links, registry) = (self.links.iter_mut(), &self.registry);
        let changes = links.flat_map(|link| link.update(&self.interfaces, registry, now));
        let mut changes: Vec<_> = changes.collect();
        changes.extend(self.unicast.update(&self.interfaces, registry));
        self.await_names(now);
        Ok(changes)
    }

    fn await_names(&mut self, now: Time) {
        if self.reaches_any() {
            let since = *self.reached_at.get_or_insert(now);
            self.awaits_names = self.unicast.has_unknown() && now.since(since) < NAMES_PATIENCE;
        }
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

    /// Sends to the group on every interface that is up, and to the peer that has the address `to`;
    /// to every peer without one, or if no peer has it. For each source address, `write` fills an
    /// empty buffer; if it returns false, nothing more is sent. `may_leave` is asked right before
    /// each system call that sends, and nothing leaves where it returns false. Never blocks;
    /// rejected datagrams are counted, and the next rescan reports them.
    pub fn send(
        &mut self,
        to: Option<IpAddr>,
        mut write: impl FnMut(IpAddr, &mut Vec<u8>) -> bool,
        may_leave: impl Fn() -> bool,
    ) {
        for link in &mut self.links {
            let Some(endpoint) = link.endpoint() else { continue };
            self.outgoing.clear();
            if !write(endpoint.address, &mut self.outgoing) {
                return;
            }
            match link.send(&self.outgoing, &may_leave) {
                Some(true) => self.sent += 1,
                Some(false) => self.send_errors += 1,
                None => {}
            }
        }
        let (sent, rejected) = self.unicast.send(to, &mut self.outgoing, write, &may_leave);
        self.sent += sent;
        self.send_errors += rejected;
    }

    /// The next datagram, taking turns between the sockets; none if all are empty. Includes
    /// those of this host, except those that [`Settings::own`] names. Datagrams are read from the
    /// socket in advance: the caller must read the clock after this call to date one.
    pub fn receive(&mut self) -> Option<Received<'_>> {
        let links = self.links.len();
        let count = links + self.unicast.len();
        let mut turns = (0..count).map(|ahead| (self.turn + ahead) % count);
        let turn = turns.find(|turn| match self.links.get_mut(*turn) {
            Some(link) => link.has_datagram(),
            None => self.unicast.has_datagram(turn - links),
        })?;
        self.turn = (turn + 1) % count;
        if let Some(link) = self.links.get_mut(turn) {
            let (datagram, arrival, endpoint) = link.take()?;
            let source = arrival.sender.ip().to_canonical();
            let datagram = origin::check(arrival.hops, source, endpoint.address).map(|()| datagram);
            return Some(Received {
                datagram,
                source,
                interface: endpoint.index,
                is_unicast: false,
                is_routed: false,
            });
        }
        let (datagram, arrival, endpoint, is_listed) = self.unicast.take(turn - links)?;
        let source = arrival.sender.ip().to_canonical();
        let interface = arrival.interface.unwrap_or(endpoint.index);
        let is_near = self.interfaces.numbered(interface).is_some_and(|it| it.is_near(source));
        let checked = match is_listed {
            true => origin::check_unicast(arrival.hops, is_near, source, endpoint.address),
            false => Err(Stray::Unlisted),
        };
        let is_routed = checked.unwrap_or_default();
        let datagram = checked.map(|_| datagram);
        Some(Received { datagram, source, interface, is_unicast: true, is_routed })
    }
}

/// A link for each configured interface, or one for the kernel's route; none without multicast.
fn links(settings: Settings, base: Token) -> Vec<Link> {
    let Some(group) = settings.group else { return Vec::new() };
    let names: Vec<Option<String>> = match settings.interfaces {
        none if none.is_empty() => vec![None],
        some => some.into_iter().map(Some).collect(),
    };
    let tokens = (base.0 + 1..).map(Token);
    let own = settings.own.map(Rc::new);
    let link = |(name, token)| Link::new(group, token, name, own.clone());
    names.into_iter().zip(tokens).map(link).collect()
}
