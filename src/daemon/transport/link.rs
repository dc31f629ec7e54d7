//! One configured interface: whether the group can be reached through it, and the socket if so.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use mio::{Registry, Token};

use super::batch::Arrival;
use super::change::{Carrier, Endpoint, JoinCause, LinkChange, LinkEvent, Problem, SendFailure};
use super::inlet::Inlet;
use super::send_health::SendHealth;
use super::{socket, source};
use crate::control_api::InterfaceReport;
use crate::daemon::interfaces::{Interface, Interfaces};
use crate::time::Time;
use crate::wire::frame::Mark;

/// How often an open socket leaves the group and joins it again. A switch that snoops on IGMP or
/// MLD forgets a host whose report was lost, and nothing else makes the host repeat it; most
/// switches forget after 260 s.
pub const REJOIN_INTERVAL: Duration = Duration::from_secs(60);

/// The same when another member is no longer heard, because a switch may just have forgotten this
/// host. A lower bound, however many members fall silent.
const REJOIN_PAUSE: Duration = Duration::from_secs(5);

/// The interface name in a report while the kernel has no route to the group.
const NO_NAME: &str = "(none)";

/// An open socket.
#[derive(Debug)]
struct Port {
    inlet: Inlet,
    endpoint: Endpoint,
    /// When the membership was last announced.
    joined_at: Time,
}

/// Where a link joined the group.
#[derive(Debug)]
struct Place {
    /// The interface's name.
    interface: String,
    /// The source address of its datagrams, to be used again if nothing better is there.
    source: IpAddr,
}

/// One configured interface, or the one that the kernel's route to the group leads to.
#[derive(Debug)]
pub(super) struct Link {
    group: SocketAddr,
    token: Token,
    /// None if the kernel's route decides and was not found yet.
    name: Option<String>,
    follows_route: bool,
    /// The mark of this daemon's own datagrams, which the socket need not receive.
    own: Option<Rc<Mark>>,
    /// Where it last joined, kept while it is closed.
    last: Option<Place>,
    /// The open socket, or why there is none.
    port: Result<Box<Port>, Problem>,
    health: SendHealth,
}

impl Link {
    /// A link through the interface of this name, or through the kernel's route if there is no
    /// name. Its socket reports under `token`, and does not receive this host's own datagrams with
    /// the mark `own`.
    pub(super) fn new(
        group: SocketAddr,
        token: Token,
        name: Option<String>,
        own: Option<Rc<Mark>>,
    ) -> Self {
        Link {
            group,
            token,
            follows_route: name.is_none(),
            name,
            own,
            last: None,
            port: Err(Problem::Unknown),
            health: SendHealth::default(),
        }
    }

    /// Where the socket is; none if it is closed.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        self.port.as_ref().ok().map(|port| port.endpoint)
    }

    /// The interface's name; none while the kernel has no route to the group.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether datagrams leave through it, as far as the kernel reports.
    pub(super) fn reaches_group(&self) -> bool {
        self.port.is_ok() && !self.health.is_mute()
    }

    /// Whether events under this token are its socket's.
    pub(super) fn reports_under(&self, token: Token) -> bool {
        self.token == token
    }

    /// Whether there may be datagrams to receive.
    pub(super) fn is_readable(&self) -> bool {
        self.port.as_ref().is_ok_and(|port| port.inlet.is_readable())
    }

    /// Whether something happened that a rescan should check soon.
    pub(super) fn needs_rescan(&self) -> bool {
        self.port.as_ref().is_ok_and(|port| port.inlet.failed) || self.health.has_news()
    }

    /// The link as the status shows it.
    pub(super) fn report(&self) -> InterfaceReport {
        let problem = match &self.port {
            Ok(_) => self.health.failure().map(|failure| failure.to_string()),
            Err(problem) => Some(problem.to_string()),
        };
        InterfaceReport {
            name: self.label().to_owned(),
            address: self.endpoint().map(|endpoint| endpoint.address),
            up: self.reaches_group(),
            problem,
        }
    }

    /// Announces the membership again, unless that was just done.
    pub(super) fn announce_anew(&mut self, now: Time) {
        if let Ok(port) = &mut self.port {
            port.renew_membership(self.group.ip(), now, REJOIN_PAUSE);
        }
    }

    /// The socket's event came.
    pub(super) fn handle_readable(&mut self) {
        if let Ok(port) = &mut self.port {
            port.inlet.handle_readable();
        }
    }

    /// Brings the socket in line with `interfaces`, and returns what changed.
    pub(super) fn update(
        &mut self,
        interfaces: &Interfaces,
        registry: &Registry,
        now: Time,
    ) -> Vec<LinkChange> {
        let moved = self.follow(interfaces, registry, now);
        let moved = moved.unwrap_or_else(|problem| self.lose(problem, registry));
        let events = [moved, self.health.review()];
        let interface = self.label();
        let change =
            |event| LinkChange { carrier: Carrier::Interface(interface.to_owned()), event };
        events.into_iter().flatten().map(change).collect()
    }

    /// Sends with the socket, unless the datagram may not leave any more. None if it was not sent
    /// because of that, or because the socket is closed; else whether the kernel accepted it.
    pub(super) fn send(&mut self, datagram: &[u8], may_leave: &impl Fn() -> bool) -> Option<bool> {
        let Ok(port) = &mut self.port else { return None };
        let (socket, endpoint) = (&port.inlet.socket, port.endpoint);
        let result = socket::send(socket, datagram, self.group, endpoint, may_leave)?
            .map_err(|error| SendFailure::from(&error));
        self.health.record(result);
        Some(result.is_ok())
    }

    /// Whether there is a datagram to return. Reads from the socket if none is left from the last
    /// read.
    pub(super) fn has_datagram(&mut self) -> bool {
        self.port.as_mut().is_ok_and(|port| port.inlet.has_datagram())
    }

    /// The next datagram and where it arrived.
    pub(super) fn take(&mut self) -> Option<(&[u8], Arrival, Endpoint)> {
        let Ok(port) = &mut self.port else { return None };
        let (datagram, arrival) = port.inlet.take()?;
        Some((datagram, arrival, port.endpoint))
    }

    fn label(&self) -> &str {
        self.name().unwrap_or(NO_NAME)
    }

    /// Where a socket would have to be now. The kernel's route is looked up again only if its
    /// previous interface cannot be used: a route that appears later, for example of a VPN, must
    /// not move the election to another network.
    fn locate(&mut self, interfaces: &Interfaces) -> Result<Endpoint, Problem> {
        let known = self.name.as_deref().and_then(|name| interfaces.get(name));
        let problem = match known.ok_or(Problem::Missing).and_then(|known| self.endpoint_on(known))
        {
            Err(problem) if self.follows_route => problem,
            found => return found,
        };
        match interfaces.route_to(self.group.ip()) {
            Ok(routed) => {
                self.name = Some(routed.name.clone());
                self.endpoint_on(routed)
            }
            Err(error) if known.is_none() => Err(error.into()),
            Err(_) => Err(problem),
        }
    }

    /// Where a socket on `interface` would have to be.
    fn endpoint_on(&self, interface: &Interface) -> Result<Endpoint, Problem> {
        if !interface.is_up() {
            return Err(Problem::Down);
        }
        if !interface.is_running() {
            return Err(Problem::NoCarrier);
        }
        let last = self.last.as_ref().map(|last| last.source);
        let address = source::choose(interface, self.group.ip(), last)?;
        Ok(Endpoint { index: interface.index, address })
    }

    /// Opens or replaces the socket, or renews its membership.
    fn follow(
        &mut self,
        interfaces: &Interfaces,
        registry: &Registry,
        now: Time,
    ) -> Result<Option<LinkEvent>, Problem> {
        let endpoint = self.locate(interfaces)?;
        let Some(cause) = self.reason_to_join(endpoint, now) else { return Ok(None) };
        self.open(endpoint, registry, now)?;
        Ok(Some(LinkEvent::Joined { endpoint, cause }))
    }

    /// Why a new socket is needed at `endpoint`; none if the open one is usable.
    fn reason_to_join(&mut self, endpoint: Endpoint, now: Time) -> Option<JoinCause> {
        let group = self.group.ip();
        let Some(last) = &self.last else { return Some(JoinCause::FirstUse) };
        if last.interface != self.label() {
            return Some(JoinCause::Rerouted);
        }
        match &mut self.port {
            Err(_) => Some(JoinCause::Recovered),
            Ok(port) if port.endpoint.index != endpoint.index => Some(JoinCause::Recreated),
            Ok(port) if port.endpoint != endpoint => Some(JoinCause::Readdressed),
            Ok(port) => {
                port.renew_membership(group, now, REJOIN_INTERVAL);
                port.inlet.failed.then_some(JoinCause::SocketFailed)
            }
        }
    }

    /// Replaces any socket by one at `endpoint`. If that fails, nothing changes.
    fn open(&mut self, endpoint: Endpoint, registry: &Registry, now: Time) -> Result<(), Problem> {
        let socket = socket::open(self.group, endpoint, self.own.as_deref())?;
        let inlet = Inlet::register(socket, registry, self.token)?;
        self.replace(Ok(Box::new(Port { inlet, endpoint, joined_at: now })), registry);
        self.last = Some(Place { interface: self.label().to_owned(), source: endpoint.address });
        Ok(())
    }

    /// Closes the socket, and reports it unless that was known.
    fn lose(&mut self, problem: Problem, registry: &Registry) -> Option<LinkEvent> {
        if self.port.as_ref().is_err_and(|before| *before == problem) {
            return None;
        }
        self.replace(Err(problem.clone()), registry);
        Some(LinkEvent::Lost(problem))
    }

    /// Every change of socket goes through here: it closes an open one, and forgets the results of
    /// its sends.
    fn replace(&mut self, port: Result<Box<Port>, Problem>, registry: &Registry) {
        self.health = SendHealth::default();
        if let Ok(port) = std::mem::replace(&mut self.port, port) {
            port.inlet.close(registry);
        }
    }
}

impl Port {
    /// Announces the membership again if that was not done within `interval`.
    fn renew_membership(&mut self, group: IpAddr, now: Time, interval: Duration) {
        if now.since(self.joined_at) < interval {
            return;
        }
        self.joined_at = now;
        let rejoined = socket::rejoin(&self.inlet.socket, group, self.endpoint.index);
        self.inlet.failed |= rejoined.is_err();
    }
}
