//! Looks the names of peers up, each on a thread: a name server that does not answer delays nothing
//! else. Only the start waits, for a while, until each name was looked up once: before, a leader
//! among the peers may not be heard.

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

/// A lookup that takes longer has failed for now: a resolver tries a server twice, for 5 s each.
const PATIENCE: Duration = Duration::from_secs(12);

/// Most addresses that a name may have. Each is sent to. A host's own name may stand for all of its
/// addresses, of which the others know one.
const ADDRESSES_MAX: usize = 16;

/// What a lookup found: the place in the list of peers, and its addresses in order, or why there
/// are none.
pub(super) type Found = (usize, Result<Vec<IpAddr>, String>);

/// A name in the list of peers, and the thread that looks it up.
#[derive(Debug)]
struct Name {
    at: usize,
    orders: Sender<()>,
    results: Results<Result<Vec<IpAddr>, String>>,
    next: Next,
}

/// What happens to a name next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// It is looked up.
    LookUp(Time),
    /// Its lookup has failed for now, unless it ends before.
    Fail(Time),
    /// Its lookup ends, some day.
    End,
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
                names.0.push(Name { at, orders, results, next: Next::LookUp(now) });
            }
        }
        Ok(names)
    }

    /// When a lookup is due, or has taken too long.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let due = |name: &Name| match name.next {
            Next::LookUp(at) | Next::Fail(at) => Some(at),
            Next::End => None,
        };
        self.0.iter().filter_map(due).min()
    }

    /// Begins the lookups that are due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        for name in &mut self.0 {
            if matches!(name.next, Next::LookUp(due) if due <= now) {
                name.next = Next::Fail(now + PATIENCE);
                // A thread that has ended finds nothing more: the last addresses stay.
                let _ = name.orders.send(());
            }
        }
    }

    /// What a lookup has found, or that it takes too long, each once.
    pub(super) fn poll_found(&mut self, now: Time) -> Option<Found> {
        self.0.iter_mut().find_map(|name| Some((name.at, name.poll_found(now)?)))
    }
}

impl Name {
    fn poll_found(&mut self, now: Time) -> Option<Result<Vec<IpAddr>, String>> {
        if let Ok(found) = self.results.try_recv() {
            let pause = if found.is_ok() { INTERVAL } else { RETRY };
            self.next = Next::LookUp(now + pause);
            return Some(found);
        }
        if matches!(self.next, Next::Fail(due) if due <= now) {
            self.next = Next::End;
            return Some(Err(format!("no answer within {} s", PATIENCE.as_secs())));
        }
        None
    }
}

fn look_up(name: &str) -> Result<Vec<IpAddr>, String> {
    /// Any: what is looked up is the host.
    const PORT: u16 = 9;
    let found = (name, PORT).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut addresses: Vec<_> = found.map(|address| address.ip().to_canonical()).collect();
    // Without its interface, a link-local address means nothing.
    addresses.retain(|ip| !matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()));
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
        assert_eq!(names.poll_timeout(), Some(now + PATIENCE), "both are being looked up");
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
        assert_eq!(names.poll_timeout(), Some(now + RETRY + PATIENCE));
    }

    /// A name whose lookup ends when the test says so, beside others.
    fn hanging(at: usize, now: Time, wake: impl Fn() + Send + 'static) -> (Name, Sender<()>) {
        let (end, ended) = mpsc::channel::<()>();
        let look_up = move |()| ended.recv().map(|()| Vec::new()).map_err(|_| "over".to_owned());
        let (orders, results) = worker::start("names", look_up, wake).unwrap();
        (Name { at, orders, results, next: Next::LookUp(now) }, end)
    }

    #[test]
    fn a_lookup_that_hangs_delays_no_other_and_fails_for_now() {
        let now = Time::ZERO;
        let (wake, woken) = mpsc::channel();
        let wake = move || wake.send(()).unwrap();
        let peers = [peer(PeerHost::Name("localhost".to_owned()))];
        let mut names = Names::start(&peers, now, wake.clone()).unwrap();
        let (name, end) = hanging(7, now, wake);
        names.0.insert(0, name);
        names.handle_timeout(now);
        woken.recv().unwrap();
        assert!(matches!(names.poll_found(now), Some((0, Ok(_)))), "it had to wait");
        assert_eq!(names.poll_found(now), None);
        let late = now + PATIENCE;
        let failed = Err("no answer within 12 s".to_owned());
        assert_eq!(names.poll_found(late), Some((7, failed)));
        assert_eq!(names.poll_found(late), None, "it was told");
        assert_eq!(names.poll_timeout(), Some(now + INTERVAL), "it is not asked again");
        end.send(()).unwrap();
        woken.recv().unwrap();
        assert_eq!(names.poll_found(late), Some((7, Ok(Vec::new()))));
    }

    #[test]
    fn without_a_name_nothing_is_due() {
        let peers = [peer(PeerHost::Address([127, 0, 0, 9].into()))];
        let mut names = Names::start(&peers, Time::ZERO, || {}).unwrap();
        assert_eq!(names.poll_timeout(), None);
        assert_eq!(names.poll_found(Time::ZERO), None);
    }
}
