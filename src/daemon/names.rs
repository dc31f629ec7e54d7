//! Looks the names of peers up, each on a thread of its own: a name server that does not answer
//! delays nothing, not even the other names.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::interfaces::is_link_local;
use super::worker::{self, Results};
use crate::config::{Peer, PeerHost};
use crate::time::Time;

/// Time from the end of one lookup of a name to the next.
const INTERVAL: Duration = Duration::from_secs(30);

/// The same after a lookup that failed.
const RETRY: Duration = Duration::from_secs(2);

/// Most addresses of a name that are looked at: a host's own name may stand for all that it has.
const ADDRESSES_MAX: usize = 64;

/// What a lookup found: the place in the list of peers, and its addresses in order, or why there
/// are none.
pub(super) type Found = (usize, Result<Vec<IpAddr>, String>);

/// A name in the list of peers, and the thread that looks it up.
#[derive(Debug)]
struct Name {
    at: usize,
    orders: Sender<()>,
    results: Results<Result<Vec<IpAddr>, String>>,
    /// When it is looked up again; none while that goes on.
    due: Option<Time>,
}

/// The names in the list.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Name>);

impl Names {
    /// The first lookups are due at once. Calls `wake` after each lookup.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub(super) fn start(
        peers: &[Peer],
        now: Time,
        wake: impl Fn() + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let mut names = Names::default();
        for (at, peer) in peers.iter().enumerate() {
            if let PeerHost::Name(name) = peer.host.clone() {
                let look_up = move |()| look_up(&name);
                let (orders, results) = worker::start("names", look_up, wake.clone())?;
                names.0.push(Name { at, orders, results, due: Some(now) });
            }
        }
        Ok(names)
    }

    /// When a lookup is due.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.0.iter().filter_map(|name| name.due).min()
    }

    /// Begins the lookups that are due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        for name in self.0.iter_mut().filter(|name| name.due.is_some_and(|due| due <= now)) {
            name.due = None;
            // A thread that has ended finds nothing more: the last addresses stay.
            let _ = name.orders.send(());
        }
    }

    /// What a lookup has found, once.
    pub(super) fn poll_found(&mut self, now: Time) -> Option<Found> {
        self.0.iter_mut().find_map(|name| {
            let found = name.results.try_recv().ok()?;
            name.due = Some(now + if found.is_ok() { INTERVAL } else { RETRY });
            Some((name.at, found))
        })
    }
}

fn look_up(name: &str) -> Result<Vec<IpAddr>, String> {
    /// Any: what is looked up is the host.
    const PORT: u16 = 9;
    let found = (name, PORT).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut addresses: Vec<_> = found.map(|address| address.ip().to_canonical()).collect();
    // Nothing can be sent to a link-local address without its interface.
    addresses.retain(|ip| !is_link_local(*ip));
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
    fn a_lookup_that_hangs_delays_no_other() {
        let now = Time::ZERO;
        let (wake, woken) = mpsc::channel();
        let wake = move || wake.send(()).unwrap();
        let peers = [peer(PeerHost::Name("localhost".to_owned()))];
        let mut names = Names::start(&peers, now, wake.clone()).unwrap();
        let (end, ended) = mpsc::channel::<()>();
        let hang = move |()| ended.recv().map(|()| Vec::new()).map_err(|_| "over".to_owned());
        let (orders, results) = worker::start("names", hang, wake).unwrap();
        names.0.insert(0, Name { at: 7, orders, results, due: Some(now) });
        names.handle_timeout(now);
        woken.recv().unwrap();
        assert!(matches!(names.poll_found(now), Some((0, Ok(_)))), "it had to wait");
        assert_eq!(names.poll_found(now), None);
        end.send(()).unwrap();
        woken.recv().unwrap();
        assert_eq!(names.poll_found(now), Some((7, Ok(Vec::new()))));
    }

    #[test]
    fn without_a_name_nothing_is_due() {
        let peers = [peer(PeerHost::Address([127, 0, 0, 9].into()))];
        let mut names = Names::start(&peers, Time::ZERO, || {}).unwrap();
        assert_eq!(names.poll_timeout(), None);
        assert_eq!(names.poll_found(Time::ZERO), None);
    }
}
