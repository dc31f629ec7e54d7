//! Looks the names of peers up, on a thread: a name server that does not answer delays nothing.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::worker::{self, Results};
use crate::config::{Peer, PeerHost};
use crate::time::Time;

/// Time from the end of one lookup of a name to the next.
const INTERVAL: Duration = Duration::from_secs(30);

/// The same after a lookup that failed.
const RETRY: Duration = Duration::from_secs(5);

/// Most addresses that a name may have. Each is sent to.
const ADDRESSES_MAX: usize = 4;

/// What a lookup found: the place in the list of peers, and its addresses in order, or why there
/// are none.
pub(super) type Found = (usize, Result<Vec<IpAddr>, String>);

/// A name in the list of peers.
#[derive(Debug)]
struct Name {
    at: usize,
    name: String,
    /// When it is looked up again; none while that goes on.
    due: Option<Time>,
}

/// The names in the list, and the thread that looks them up one after another.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<Name>,
    thread: Option<Thread>,
}

type Thread = (Sender<(usize, String)>, Results<Found>);

impl Names {
    /// The first lookups are due at once. Calls `wake` after each lookup. Without a name there is
    /// no thread.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub(super) fn start(
        peers: &[Peer],
        now: Time,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let name = |(at, peer): (usize, &Peer)| match &peer.host {
            PeerHost::Name(name) => Some(Name { at, name: name.clone(), due: Some(now) }),
            PeerHost::Address(_) => None,
        };
        let names: Vec<_> = peers.iter().enumerate().filter_map(name).collect();
        let look_up = |(at, name): (usize, String)| (at, look_up(&name));
        let thread = match names.is_empty() {
            true => None,
            false => Some(worker::start("names", look_up, wake)?),
        };
        Ok(Names { names, thread })
    }

    /// When a lookup is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.names.iter().filter_map(|name| name.due).min()
    }

    /// Begins the lookups that are due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let Some((orders, _)) = &self.thread else { return };
        for name in self.names.iter_mut().filter(|name| name.due.is_some_and(|due| due <= now)) {
            name.due = None;
            // A thread that has ended finds nothing more: the last addresses stay.
            let _ = orders.send((name.at, name.name.clone()));
        }
    }

    /// What a lookup has found, once.
    pub(super) fn poll_found(&mut self, now: Time) -> Option<Found> {
        let (at, found) = self.thread.as_ref()?.1.try_recv().ok()?;
        let pause = if found.is_ok() { INTERVAL } else { RETRY };
        if let Some(name) = self.names.iter_mut().find(|name| name.at == at) {
            name.due = Some(now + pause);
        }
        Some((at, found))
    }
}

fn look_up(name: &str) -> Result<Vec<IpAddr>, String> {
    /// Any: what is looked up is the host.
    const PORT: u16 = 9;
    let found = (name, PORT).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut addresses: Vec<_> = found.map(|address| address.ip().to_canonical()).collect();
    // The order changes from answer to answer.
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(ADDRESSES_MAX);
    if addresses.is_empty() { Err("none is known".to_owned()) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn peer(host: PeerHost) -> Peer {
        Peer { host, port: None }
    }

    #[test]
    fn names_are_looked_up_at_once_and_again_and_addresses_never() {
        let peers = [
            peer(PeerHost::Address([127, 0, 0, 9].into())),
            peer(PeerHost::Name("localhost".to_owned())),
            peer(PeerHost::Name("no-such-host.invalid".to_owned())),
        ];
        let (wake, woken) = mpsc::channel();
        let now = Time::ZERO;
        let wake = move || wake.send(()).unwrap();
        let mut names = Names::start(&peers, now, wake).unwrap();
        assert_eq!(names.poll_timeout(), Some(now));
        names.handle_timeout(now);
        assert_eq!(names.poll_timeout(), None, "both are being looked up");
        for _ in 0..2 {
            woken.recv().unwrap();
            match names.poll_found(now).unwrap() {
                (1, Ok(found)) => assert!(found.iter().all(IpAddr::is_loopback), "{found:?}"),
                (2, Err(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names.poll_timeout(), Some(now + RETRY));
        names.handle_timeout(now + RETRY);
        assert_eq!(names.poll_timeout(), Some(now + INTERVAL));
    }

    #[test]
    fn without_a_name_nothing_is_due() {
        let peers = [peer(PeerHost::Address([127, 0, 0, 9].into()))];
        let mut names = Names::start(&peers, Time::ZERO, || {}).unwrap();
        assert_eq!(names.poll_timeout(), None);
        assert_eq!(names.poll_found(Time::ZERO), None);
    }
}
