//! The same datagrams, sent to the listed hosts one by one.
//!
//! There is a socket at each of this host's addresses that peers are sent to from, or that is
//! listed. The routes decide again at every rescan.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::net::{IpAddr, SocketAddr};

use mio::{Registry, Token};

use super::Settings;
use super::batch::Arrival;
use super::change::{Endpoint, LinkChange, Problem};
use super::outlet::Outlet;
use super::peers::{self, Remote, Routing};
use crate::control_api::PeerReport;
use crate::daemon::interfaces::Interfaces;

/// Most sockets, each at an address of its own.
pub(super) const OUTLETS_MAX: usize = 16;

/// The listed hosts, and the sockets to them.
#[derive(Debug)]
pub(super) struct Unicast {
    remotes: Vec<Remote>,
    /// Whose datagrams count.
    listed: BTreeSet<IpAddr>,
    outlets: Vec<Outlet>,
    port: u16,
    sends_only: bool,
    requires_key: bool,
    base: Token,
    /// Something was learned that a rescan has to see to.
    has_news: bool,
}

impl Unicast {
    /// Reports under [`OUTLETS_MAX`] tokens from `base` up.
    pub(super) fn new(settings: &Settings, base: Token) -> Self {
        let Settings { port, sends_only, requires_key, .. } = *settings;
        let remotes = settings.peers.iter().cloned().map(Remote::new).collect();
        let (listed, outlets) = (BTreeSet::new(), Vec::new());
        Unicast { remotes, listed, outlets, port, sends_only, requires_key, base, has_news: false }
    }

    /// The name of the peer at this place in the list was looked up.
    pub(super) fn resolve(&mut self, at: usize, found: Result<Vec<IpAddr>, String>) {
        if let Some(remote) = self.remotes.get_mut(at) {
            remote.resolve(found);
            self.has_news = true;
        }
    }

    /// The addresses of each peer, in the list's order.
    pub(super) fn addresses(&self) -> Vec<Vec<IpAddr>> {
        self.remotes.iter().map(|remote| remote.addresses().to_vec()).collect()
    }

    pub(super) fn set_requires_key(&mut self, requires_key: bool) {
        self.has_news |= self.requires_key != requires_key;
        self.requires_key = requires_key;
    }

    /// Whether the addresses of some peers were never known: what these send does not count.
    pub(super) fn has_unknown(&self) -> bool {
        self.remotes.iter().any(Remote::is_unknown)
    }

    pub(super) fn any_up(&self) -> bool {
        self.remotes.iter().any(Remote::is_up)
    }

    pub(super) fn needs_rescan(&self) -> bool {
        let has_news = |remote: &Remote| remote.targets.iter().any(|it| it.health.has_news());
        self.has_news
            || self.outlets.iter().any(|outlet| outlet.inlet.failed)
            || self.remotes.iter().any(has_news)
    }

    pub(super) fn reports(&self) -> Vec<PeerReport> {
        self.remotes.iter().map(Remote::report).collect()
    }

    /// Where the sockets are.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = Endpoint> {
        self.outlets.iter().map(|outlet| outlet.endpoint)
    }

    pub(super) fn handle_event(&mut self, token: Token) {
        if let Some(outlet) = self.outlets.iter_mut().find(|outlet| outlet.token == token) {
            outlet.inlet.handle_readable();
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.outlets.iter().any(|outlet| outlet.inlet.is_readable())
    }

    /// Brings the sockets in line with `interfaces` and the kernel's routes, and returns what
    /// changed.
    pub(super) fn update(
        &mut self,
        interfaces: &Interfaces,
        registry: &Registry,
    ) -> Vec<LinkChange> {
        self.has_news = false;
        self.listed = peers::listed(&self.remotes);
        let own: Vec<_> = self.remotes.iter().flat_map(|it| it.own(interfaces)).collect();
        let (port, requires_key) = (self.port, self.requires_key);
        let routing = Routing { interfaces, own: &own, port, requires_key };
        let found: Vec<_> = self.remotes.iter_mut().map(|it| it.locate(&routing)).collect();
        if self.remotes.iter().all(Remote::is_self) {
            self.remotes.iter_mut().for_each(Remote::note_alone);
        }
        let reached = found.iter().flatten().filter_map(|found| found.as_ref().ok());
        let mut wanted: BTreeSet<_> = reached.copied().collect();
        // A name of this host may stand for more of its addresses than there are sockets.
        for endpoint in &own {
            if wanted.len() < OUTLETS_MAX {
                wanted.insert(*endpoint);
            }
        }
        let shut = self.open(&wanted, registry);
        let with_socket = |found: Result<Endpoint, Problem>| match found {
            Ok(endpoint) => shut.get(&endpoint).map_or(Ok(endpoint), |why| Err(why.clone())),
            Err(problem) => Err(problem),
        };
        let settle = |(remote, found): (&mut Remote, Vec<_>)| {
            remote.settle(found.into_iter().map(with_socket).collect())
        };
        self.remotes.iter_mut().zip(found).flat_map(settle).collect()
    }

    /// Opens the sockets at `wanted`, and closes all others. Returns why some are not open.
    fn open(
        &mut self,
        wanted: &BTreeSet<Endpoint>,
        registry: &Registry,
    ) -> BTreeMap<Endpoint, Problem> {
        let is_usable = |outlet: &Outlet| wanted.contains(&outlet.endpoint) && !outlet.inlet.failed;
        let (usable, others) = mem::take(&mut self.outlets).into_iter().partition(is_usable);
        self.outlets = usable;
        self.outlets.iter_mut().for_each(Outlet::close_detours);
        Vec::into_iter(others).for_each(|outlet: Outlet| outlet.inlet.close(registry));
        let port = if self.sends_only { 0 } else { self.port };
        let mut shut = BTreeMap::new();
        for endpoint in wanted {
            if self.endpoints().any(|open| open == *endpoint) {
                continue;
            }
            let mut tokens = (self.base.0..).map(Token).take(OUTLETS_MAX);
            let free = tokens.find(|token| self.outlets.iter().all(|it| it.token != *token));
            let opened = match free {
                Some(token) => Outlet::open(*endpoint, port, registry, token),
                None => Err(Problem::TooManySources(OUTLETS_MAX)),
            };
            match opened {
                Ok(outlet) => self.outlets.push(outlet),
                Err(problem) => drop(shut.insert(*endpoint, problem)),
            }
        }
        shut
    }

    /// Sends to the peer that has the address `to`, or else to every peer. For each of this host's
    /// addresses, `write` fills an empty buffer; if it returns false, nothing more is sent.
    /// `may_leave` is asked before each system call. Returns how many datagrams the kernel accepted
    /// and how many it rejected.
    pub(super) fn send(
        &mut self,
        to: Option<IpAddr>,
        buffer: &mut Vec<u8>,
        mut write: impl FnMut(IpAddr, &mut Vec<u8>) -> bool,
        may_leave: &impl Fn() -> bool,
    ) -> (u64, u64) {
        let (mut sent, mut rejected) = (0, 0);
        let to = to.filter(|to| self.remotes.iter().any(|it| it.addresses().contains(to)));
        for outlet in &mut self.outlets {
            let leaves_here = |target: &&mut peers::Target| target.from == Ok(outlet.endpoint);
            let is_meant = |it: &&mut Remote| to.is_none_or(|to| it.addresses().contains(&to));
            let meant = self.remotes.iter_mut().filter(is_meant);
            let all = meant.flat_map(|remote| &mut remote.targets);
            let mut targets: Vec<_> = all.filter(leaves_here).collect();
            if targets.is_empty() {
                continue;
            }
            buffer.clear();
            if !write(outlet.endpoint.address, buffer) {
                break;
            }
            let addresses: Vec<SocketAddr> = targets.iter().map(|it| it.address).collect();
            let mut told = targets.iter_mut();
            outlet.send(buffer, &addresses, may_leave, |result| {
                *(if result.is_ok() { &mut sent } else { &mut rejected }) += 1;
                if let Some(target) = told.next() {
                    target.health.record(result);
                }
            });
        }
        (sent, rejected)
    }

    /// The sockets that have a datagram.
    pub(super) fn len(&self) -> usize {
        self.outlets.len()
    }

    pub(super) fn has_datagram(&mut self, at: usize) -> bool {
        self.outlets.get_mut(at).is_some_and(|outlet| outlet.inlet.has_datagram())
    }

    /// The next datagram at one of the sockets, and whether its sender is listed.
    pub(super) fn take(&mut self, at: usize) -> Option<(&[u8], Arrival, Endpoint, bool)> {
        let outlet = self.outlets.get_mut(at)?;
        let (datagram, arrival) = outlet.inlet.take()?;
        let is_listed = self.listed.contains(&arrival.sender.ip().to_canonical());
        Some((datagram, arrival, outlet.endpoint, is_listed))
    }
}
