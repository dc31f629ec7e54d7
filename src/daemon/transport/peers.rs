//! The listed hosts: the addresses that datagrams go to one by one, and come from.
//!
//! Every host may have the same list. An address of this host in it is where the others expect its
//! datagrams from, so those leave with it. On a host that is not in its own list they leave with
//! the address that the kernel's route has when the peer is first sent to, and keep it as long as
//! the host has it: an address that a hook adds must not change who sends. So what came while this
//! node led or its hook held counts neither as listed nor as this host's, whatever a name stands
//! for.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::change::{Carrier, Endpoint, LinkChange, LinkEvent, Problem};
use super::send_health::SendHealth;
use super::source;
use crate::config::{Peer, PeerHost};
use crate::control_api::PeerReport;
use crate::daemon::interfaces::{Address, Interfaces, is_link_local};

/// Most addresses of a peer that are sent to.
const TARGETS_MAX: usize = 4;

/// One address of a peer.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    /// Where datagrams to it leave, or why they do not.
    pub(super) from: Result<Endpoint, Problem>,
    pub(super) health: SendHealth,
}

/// One listed host.
#[derive(Debug)]
pub(super) struct Remote {
    peer: Peer,
    /// The one that is listed, or those that its name had last.
    addresses: Vec<IpAddr>,
    /// What is wrong with the entry itself.
    problem: Option<Problem>,
    /// The same, as last reported.
    told: Option<Problem>,
    /// Its addresses, if none is this host's own.
    pub(super) targets: Vec<Target>,
    /// Whether one of its addresses is this host's own.
    is_self: bool,
}

/// What decides where datagrams to a peer leave.
pub(super) struct Routing<'a> {
    pub(super) interfaces: &'a Interfaces,
    /// The listed addresses of this host.
    pub(super) own: &'a [Endpoint],
    /// The port of this host.
    pub(super) port: u16,
    /// Whether no datagram counts without a key.
    pub(super) requires_key: bool,
}

impl Remote {
    pub(super) fn new(peer: Peer) -> Self {
        let (addresses, problem) = match peer.host {
            PeerHost::Address(address) => (vec![address], None),
            PeerHost::Name(_) => (Vec::new(), Some(Problem::LookingUp)),
        };
        let (told, targets, is_self) = (problem.clone(), Vec::new(), false);
        Remote { peer, addresses, problem, told, targets, is_self }
    }

    /// Whether no address of it was ever known.
    pub(super) fn is_unknown(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether an address of it is only how this host's resolver names this host: a host's own name
    /// often stands for the loopback.
    fn is_looped(&self, address: IpAddr) -> bool {
        address.is_loopback() && matches!(self.peer.host, PeerHost::Name(_))
    }

    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Its name was looked up. If that failed, the last addresses stay.
    pub(super) fn resolve(&mut self, found: Result<Vec<IpAddr>, String>) {
        match found {
            Ok(addresses) => {
                self.addresses = addresses;
                self.problem = None;
            }
            Err(_) if !self.addresses.is_empty() => {}
            Err(why) => self.problem = Some(Problem::Unresolved(why)),
        }
    }

    /// Its addresses that are this host's own, where datagrams can arrive.
    pub(super) fn own<'a>(
        &'a self,
        interfaces: &'a Interfaces,
    ) -> impl Iterator<Item = Endpoint> + 'a {
        let listed = self.addresses.iter().filter(|it| !self.is_looped(**it));
        listed.filter_map(|address| {
            let owner = interfaces.owner_of(*address)?;
            let is_usable = |own: &Address| own.ip == *address && own.is_ready && !own.is_guest;
            let endpoint = Endpoint { index: owner.index, address: *address };
            (owner.addresses.iter().any(is_usable) && owner.is_running()).then_some(endpoint)
        })
    }

    /// Finds out anew where datagrams to its addresses leave.
    pub(super) fn locate(&mut self, routing: &Routing<'_>) -> Vec<Result<Endpoint, Problem>> {
        let port = self.peer.port.unwrap_or(routing.port);
        let is_own = |it: &IpAddr| self.is_looped(*it) || routing.interfaces.is_own(*it);
        self.is_self = self.addresses.iter().any(is_own);
        if self.is_self {
            self.problem = (port != routing.port).then_some(Problem::OwnPort(routing.port));
            self.targets.clear();
        } else {
            // What was wrong with it as this host.
            self.problem.take_if(|it| !matches!(it, Problem::Unresolved(_) | Problem::LookingUp));
            let mut former = std::mem::take(&mut self.targets);
            let target = |address: IpAddr| {
                let address = SocketAddr::new(address, port);
                let known = former.iter().position(|target| target.address == address);
                let (from, health) = (Err(Problem::Unknown), SendHealth::default());
                known.map_or(Target { address, from, health }, |at| former.swap_remove(at))
            };
            self.targets = self.sent_to(routing.interfaces).into_iter().map(target).collect();
        }
        self.targets.iter().map(|target| target.locate(routing)).collect()
    }

    /// Its addresses that this host does not have. A name may also have some of a family that this
    /// host does not use.
    fn sent_to(&self, interfaces: &Interfaces) -> Vec<IpAddr> {
        let is_other = |address: &&IpAddr| interfaces.owner_of(**address).is_none();
        let others = self.addresses.iter().filter(is_other).copied();
        let of_used = others.clone().filter(|other| interfaces.use_family_of(*other));
        let of_used: Vec<_> = of_used.take(TARGETS_MAX).collect();
        if of_used.is_empty() { others.take(TARGETS_MAX).collect() } else { of_used }
    }

    /// Whether one of its addresses is this host's own, as last located.
    pub(super) fn is_self(&self) -> bool {
        self.is_self
    }

    /// All that is listed is this host.
    pub(super) fn note_alone(&mut self) {
        self.problem.get_or_insert(Problem::NoOtherHost);
    }

    /// Datagrams to its addresses leave as `found` says from now on. Returns what changed.
    pub(super) fn settle(&mut self, found: Vec<Result<Endpoint, Problem>>) -> Vec<LinkChange> {
        let mut events = Vec::new();
        if self.problem != self.told {
            events.extend(self.problem.clone().map(LinkEvent::Lost));
            self.told.clone_from(&self.problem);
        }
        for (target, found) in self.targets.iter_mut().zip(found) {
            events.extend(target.settle(found));
            events.extend(target.health.review());
        }
        let name = self.peer.to_string();
        let change = |event| LinkChange { carrier: Carrier::Peer(name.clone()), event };
        events.into_iter().map(change).collect()
    }

    pub(super) fn is_up(&self) -> bool {
        self.targets.iter().any(Target::is_up)
    }

    pub(super) fn report(&self) -> PeerReport {
        let problem = || {
            let mut of_targets = self.targets.iter().filter_map(|target| match &target.from {
                Ok(_) => target.health.failure().map(|failure| failure.to_string()),
                Err(problem) => Some(problem.to_string()),
            });
            self.problem.as_ref().map(ToString::to_string).or_else(|| of_targets.next())
        };
        let sources = || self.targets.iter().filter_map(|target| target.from.as_ref().ok());
        PeerReport {
            peer: self.peer.to_string(),
            addresses: self.addresses.clone(),
            is_self: self.is_self,
            source: sources().next().map(|endpoint| endpoint.address),
            up: self.is_up() || (self.is_self && self.problem.is_none()),
            problem: problem(),
        }
    }
}

impl Target {
    fn is_up(&self) -> bool {
        self.from.is_ok() && !self.health.is_mute()
    }

    fn locate(&self, routing: &Routing<'_>) -> Result<Endpoint, Problem> {
        let Routing { interfaces, own, requires_key, .. } = routing;
        let address = self.address.ip();
        let (interface, by_route) = interfaces
            .route_to_host(address)
            .map_err(|error| Problem::NoRouteToPeer(error.to_string()))?;
        if !interface.is_up() {
            return Err(Problem::Down);
        }
        if !interface.is_running() {
            return Err(Problem::NoCarrier);
        }
        if !interface.is_near(address) && !requires_key {
            return Err(Problem::KeyRequired);
        }
        let of_family = own.iter().filter(|own| own.address.is_ipv4() == address.is_ipv4());
        let (listed, elsewhere): (Vec<_>, Vec<_>) =
            of_family.copied().partition(|own: &Endpoint| own.index == interface.index);
        if let (None, Some(elsewhere)) = (listed.first(), elsewhere.first()) {
            return Ok(*elsewhere);
        }
        let is_listed = |ip| listed.is_empty() || listed.iter().any(|own| own.address == ip);
        let counts = |own: &&Address| {
            let fits = own.ip.is_ipv4() == address.is_ipv4()
                && is_link_local(own.ip) == is_link_local(by_route);
            own.is_ready && fits && is_listed(own.ip)
        };
        let last = self.from.as_ref().ok().map(|last| last.address);
        let key = |own: &&Address| (source::rank(own, last), own.ip != by_route);
        let best = interface.addresses.iter().filter(counts).min_by_key(key);
        let address = best.map_or(by_route, |best| best.ip);
        Ok(Endpoint { index: interface.index, address })
    }

    fn settle(&mut self, found: Result<Endpoint, Problem>) -> Option<LinkEvent> {
        if self.from == found {
            return None;
        }
        self.health = SendHealth::default();
        self.from = found;
        Some(match &self.from {
            Ok(endpoint) => LinkEvent::SendingFrom(endpoint.address),
            Err(problem) => LinkEvent::Lost(problem.clone()),
        })
    }
}

/// Whether a router is between this host and `address`, as far as its routes tell.
pub fn is_beyond_a_router(interfaces: &Interfaces, address: IpAddr) -> bool {
    let route = interfaces.route_to_host(address);
    route.is_ok_and(|(interface, _)| !interface.is_near(address))
}

/// The addresses of all listed hosts.
pub(super) fn listed(remotes: &[Remote]) -> BTreeSet<IpAddr> {
    remotes.iter().flat_map(Remote::addresses).copied().collect()
}
