//! The listed hosts: the addresses that datagrams go to one by one, and come from.
//!
//! Every host may have the same list. An address of this host in it is where the others expect its
//! datagrams from, so those leave with it. On a host that is not in its own list they leave with
//! the address that the kernel's route has when the peer is first sent to, and keep it as long as
//! the host has it: an address that a hook adds must not change who sends. For the same reason they
//! keep it when a name of this host comes to stand for that address, too.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use super::change::{Carrier, Endpoint, LinkChange, LinkEvent, Problem};
use super::send_health::SendHealth;
use super::source;
use crate::config::{Peer, PeerHost};
use crate::control_api::PeerReport;
use crate::daemon::interfaces::{Address, Interface, Interfaces};

/// One address of a peer.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    /// Where datagrams to it leave, or why they do not.
    pub(super) from: Result<Endpoint, Problem>,
    /// The source addresses of datagrams to it, and their interface.
    sources: Option<(NonZeroU32, source::Known)>,
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
    /// Its addresses that are not this host's.
    pub(super) targets: Vec<Target>,
    /// Whether all of its addresses are this host's.
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

    /// Whether its name was not looked up yet. What the host sends does not count until then, and
    /// it may be the leader.
    pub(super) fn is_looked_up_first(&self) -> bool {
        self.problem == Some(Problem::LookingUp)
    }

    fn is_name(&self) -> bool {
        matches!(self.peer.host, PeerHost::Name(_))
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

    /// Its addresses that are this host's, where datagrams can arrive: a name of this host often
    /// stands for the loopback there.
    pub(super) fn own<'a>(
        &'a self,
        interfaces: &'a Interfaces,
    ) -> impl Iterator<Item = Endpoint> + 'a {
        let listed = self.addresses.iter().filter(|it| !(self.is_name() && it.is_loopback()));
        listed.filter_map(|address| {
            let owner = interfaces.owner_of(*address)?;
            let is_ready = owner.addresses.iter().any(|own| own.ip == *address && own.is_ready);
            let endpoint = Endpoint { index: owner.index, address: *address };
            (is_ready && owner.is_running()).then_some(endpoint)
        })
    }

    /// Finds out anew where datagrams to its addresses leave.
    pub(super) fn locate(&mut self, routing: &Routing<'_>) -> Vec<Result<Endpoint, Problem>> {
        let port = self.peer.port.unwrap_or(routing.port);
        let others = self.others(routing.interfaces);
        self.is_self = others.is_empty() && !self.addresses.is_empty();
        if self.is_self {
            self.problem = (port != routing.port).then_some(Problem::OwnPort(routing.port));
        } else {
            // What was wrong with it as this host.
            self.problem.take_if(|it| !matches!(it, Problem::Unresolved(_) | Problem::LookingUp));
        }
        let mut former = std::mem::take(&mut self.targets);
        let target = |address: IpAddr| {
            let address = SocketAddr::new(address, port);
            let known = former.iter().position(|target| target.address == address);
            known.map_or_else(|| Target::new(address), |at| former.swap_remove(at))
        };
        self.targets = others.into_iter().map(target).collect();
        self.targets.iter().map(|target| target.locate(routing)).collect()
    }

    /// Its addresses that are not this host's. A name may also have some of a family that this host
    /// does not use.
    fn others(&self, interfaces: &Interfaces) -> Vec<IpAddr> {
        let is_own = |address: &IpAddr| {
            (self.is_name() && address.is_loopback()) || interfaces.owner_of(*address).is_some()
        };
        let others = self.addresses.iter().filter(|address| !is_own(address)).copied();
        let of_used = others.clone().filter(|other| interfaces.use_family_of(*other));
        let of_used: Vec<_> = of_used.collect();
        if of_used.is_empty() { others.collect() } else { of_used }
    }

    /// Whether all of its addresses are this host's, as last located.
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
    fn new(address: SocketAddr) -> Self {
        let (from, health) = (Err(Problem::Unknown), SendHealth::default());
        Target { address, from, sources: None, health }
    }

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
        let address = match (listed.first(), elsewhere.first()) {
            (None, Some(elsewhere)) => return Ok(*elsewhere),
            (Some(first), _) => {
                let is_listed = |ip| listed.iter().any(|own| own.address == ip);
                let by_route = Some(by_route).filter(|ip| is_listed(*ip));
                let known = self.known_on(interface, is_listed);
                known.or(by_route).unwrap_or(first.address)
            }
            (None, None) => self.known_on(interface, |_| true).unwrap_or(by_route),
        };
        Ok(Endpoint { index: interface.index, address })
    }

    /// A source address that was used before on this interface, and can be used again.
    fn known_on(&self, interface: &Interface, counts: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let (_, known) = self.sources.filter(|(index, _)| *index == interface.index)?;
        let is_of_family = |ip: IpAddr| ip.is_ipv4() == self.address.is_ipv4();
        let usable = |own: &&Address| own.is_ready && is_of_family(own.ip) && counts(own.ip);
        known.among(interface.addresses.iter().filter(usable))
    }

    fn settle(&mut self, found: Result<Endpoint, Problem>) -> Option<LinkEvent> {
        if self.from == found {
            return None;
        }
        self.health = SendHealth::default();
        self.from = found;
        if let Ok(Endpoint { index, address }) = self.from {
            let before = self.sources.filter(|(before, _)| *before == index);
            let before = before.map(|(_, known)| known);
            self.sources = Some((index, source::Known::after(before, address)));
        }
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
