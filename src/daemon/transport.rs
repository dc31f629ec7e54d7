//! The multicast transport: one socket for each interface, kept in line with the host.
//!
//! The event loop drives it so: pass every event's token to [`Transport::handle_event`]; call
//! [`Transport::rescan`] whenever [`Transport::next_rescan`] is due, and log what it tells; then
//! call [`Transport::receive`] up to a budget, and come back without waiting while
//! [`Transport::has_more`].
//!
//! An interface comes and goes without an error on any socket: without a carrier, datagrams are
//! still accepted and one's own copies still arrive. So a socket is open exactly as long as its
//! interface exists, is up, has a carrier and the address that the socket was opened with. A
//! netlink monitor brings the next rescan forward; a slow poll covers whatever it misses.

mod batch;
mod change;
mod filter;
mod link;
mod origin;
mod send_health;
mod socket;
mod source;

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use mio::{Registry, Token};

pub use self::change::{Endpoint, JoinCause, LinkChange, LinkEvent, Problem, SendFailure};
use self::link::Link;
pub use self::link::REJOIN_INTERVAL;
pub use self::origin::Stray;
use crate::control_api::InterfaceReport;
use crate::daemon::interfaces::{Interfaces, Monitor};
use crate::time::Time;
use crate::wire::frame::Mark;

/// Most interfaces that one daemon sends on.
pub const INTERFACES_MAX: usize = 16;

/// How many tokens a transport uses, from its base token up: one for the netlink monitor and one
/// for each interface.
pub const TOKENS: usize = 1 + INTERFACES_MAX;

/// Between rescans that nothing asked for.
pub const RESCAN_INTERVAL: Duration = Duration::from_secs(10);

/// The same while no interface is up, as a route or an address that becomes ready has no event; and
/// while the interfaces cannot be read.
pub const RESCAN_INTERVAL_DOWN: Duration = Duration::from_secs(1);

/// Shortest time between two rescans, so that a storm of netlink messages does not become one of
/// rescans.
pub const RESCAN_PAUSE: Duration = Duration::from_millis(50);

/// Where the group is and by which interfaces to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The multicast address and the port.
    pub group: SocketAddr,
    /// The interfaces' names, at most [`INTERFACES_MAX`], each once. Empty: the one that the
    /// kernel's route to the group leads to.
    pub interfaces: Vec<String>,
    /// What the sender's own datagrams carry, to be spared hearing them again. None: they are
    /// heard.
    pub own: Option<Mark>,
}

/// Why a transport could not be made. Nothing was sent or joined.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The group is no multicast address.
    #[error("{0} is not a multicast address; set `multicast` to one, such as 239.255.76.69:7669")]
    NotMulticast(IpAddr),
    /// More interfaces than [`INTERFACES_MAX`].
    #[error("`interface` names {0} interfaces; name at most {INTERFACES_MAX}")]
    TooManyInterfaces(usize),
    /// An interface is named twice.
    #[error("`interface` names {0} twice; name it once")]
    DuplicateInterface(String),
    /// The kernel gave no netlink socket.
    #[error("cannot watch the network interfaces by netlink: {0}")]
    Monitor(#[source] io::Error),
    /// The event loop's registry cannot be shared.
    #[error("cannot share the event loop's registry: {0}")]
    Registry(#[source] io::Error),
}

/// The kernel did not tell the interfaces. The sockets are as they were; the next rescan tries
/// again.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the network interfaces: {0}; retrying")]
pub struct RescanError(#[from] io::Error);

/// A datagram that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its bytes, or why it is not from this LAN. Of one that is longer than any that is
    /// well-formed, more than that one has.
    pub datagram: Result<&'a [u8], Stray>,
    /// Who sent it, or claims to.
    pub source: IpAddr,
    /// The number of the interface by which it came.
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
    /// The last rescan failed.
    blind: bool,
    /// The link whose turn it is to be read.
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
    /// Where the settings cannot work, or the kernel gives no netlink socket. An interface that
    /// is not there is no error: it is waited for.
    pub fn new(
        registry: &Registry,
        base: Token,
        settings: Settings,
    ) -> Result<Self, TransportError> {
        check(&settings)?;
        let monitor = Monitor::new(registry, base).map_err(TransportError::Monitor)?;
        Ok(Transport {
            registry: registry.try_clone().map_err(TransportError::Registry)?,
            base,
            links: links(settings, base),
            monitor,
            changed: false,
            scanned_at: None,
            blind: false,
            turn: 0,
            outgoing: Vec::new(),
            sent: 0,
            send_errors: 0,
        })
    }

    /// Whether the group can be reached by any interface. One by which the kernel takes nothing
    /// does not count.
    pub fn any_up(&self) -> bool {
        self.links.iter().any(Link::reaches_group)
    }

    /// Whether the kernel did not tell the interfaces when it was asked last.
    pub const fn is_blind(&self) -> bool {
        self.blind
    }

    /// The address that datagrams leave with by the first interface that is up.
    pub fn source_address(&self) -> Option<IpAddr> {
        self.endpoint().map(|endpoint| endpoint.address)
    }

    /// Every configured interface for the status, in the configured order.
    pub fn reports(&self) -> Vec<InterfaceReport> {
        self.links.iter().map(Link::report).collect()
    }

    /// Datagrams that the kernel took, counted once for each interface.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Datagrams that the kernel refused, counted once for each interface.
    pub fn send_errors(&self) -> u64 {
        self.send_errors
    }

    /// Whether datagrams may be left that [`Transport::receive`] was not asked for. No further
    /// event tells of them.
    pub fn has_more(&self) -> bool {
        self.links.iter().any(Link::is_readable)
    }

    /// When [`Transport::rescan`] is due. An event or a failed send may bring it forward.
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

    /// An event came under `token`. False where that is none of this transport's tokens.
    pub fn handle_event(&mut self, token: Token) -> bool {
        let Some(offset) = token.0.checked_sub(self.base.0).filter(|offset| *offset < TOKENS)
        else {
            return false;
        };
        match offset.checked_sub(1) {
            None => self.changed |= self.monitor.drain(),
            Some(position) => {
                if let Some(link) = self.links.get_mut(position) {
                    link.handle_readable();
                }
            }
        }
        true
    }

    /// Looks at the host's interfaces, opens, replaces and closes sockets accordingly, renews
    /// memberships that are due, and tells what changed, each change once.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell its interfaces, which leaves everything as it was.
    pub fn rescan(&mut self, now: Time) -> Result<Vec<LinkChange>, RescanError> {
        self.scanned_at = Some(now);
        self.changed = false;
        self.blind = true;
        let interfaces = Interfaces::scan()?;
        self.blind = false;
        let (links, registry) = (self.links.iter_mut(), &self.registry);
        Ok(links.flat_map(|link| link.update(&interfaces, registry, now)).collect())
    }

    /// Somebody is no longer heard. It may be this host that hears nobody any more, because a
    /// switch has forgotten it: announces the memberships anew, though not more often than every
    /// few seconds.
    pub fn announce_anew(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.announce_anew(now));
    }

    /// Sends to the group on every interface that is up what `write` puts into an empty buffer for
    /// the address that it leaves with, right before it does. Where `write` says false, nothing
    /// more is sent. Never blocks; what the kernel refuses is counted, and told by the next rescan.
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

    /// The next datagram, taking turns between the interfaces; none where all are empty. Includes
    /// those of this host, but for what [`Settings::own`] names. The socket was read some datagrams
    /// ahead: whoever dates one reads the clock after this.
    pub fn receive(&mut self) -> Option<Received<'_>> {
        let count = self.links.len();
        let turn = (0..count)
            .map(|ahead| (self.turn + ahead) % count)
            .find(|turn| self.links.get_mut(*turn).is_some_and(Link::has_datagram))?;
        self.turn = (turn + 1) % count;
        let (taken, endpoint) = self.links.get_mut(turn)?.take()?;
        let source = taken.sender.ip().to_canonical();
        let origin = origin::check(taken.hops, source, endpoint.address);
        let datagram = origin.map(|()| taken.datagram);
        Some(Received { datagram, source, interface: endpoint.index })
    }

    fn endpoint(&self) -> Option<Endpoint> {
        self.links.iter().find_map(Link::endpoint)
    }
}

fn check(settings: &Settings) -> Result<(), TransportError> {
    let Settings { group, interfaces, .. } = settings;
    if !group.ip().is_multicast() {
        return Err(TransportError::NotMulticast(group.ip()));
    }
    if interfaces.len() > INTERFACES_MAX {
        return Err(TransportError::TooManyInterfaces(interfaces.len()));
    }
    let mut seen = HashSet::new();
    match interfaces.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(TransportError::DuplicateInterface(twice.clone())),
        None => Ok(()),
    }
}

/// A link for each configured interface, or one for the kernel's route.
fn links(settings: Settings, base: Token) -> Vec<Link> {
    // Without scope or flow: each socket is bound to an interface anyway.
    let group = SocketAddr::new(settings.group.ip(), settings.group.port());
    let names: Vec<Option<String>> = match settings.interfaces {
        none if none.is_empty() => vec![None],
        some => some.into_iter().map(Some).collect(),
    };
    let tokens = (base.0 + 1..).map(Token);
    let own = settings.own.map(Rc::new);
    let link = |(name, token)| Link::new(group, token, name, own.clone());
    names.into_iter().zip(tokens).map(link).collect()
}
