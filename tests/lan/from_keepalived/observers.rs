//! Who holds an address, and whether a client gets answers from it.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use socket2::{Domain, Protocol, Socket, Type};

use crate::harness::Host;
use crate::harness::patience::{now, pass, wait_until};

/// Between two looks at the addresses of a host.
const LOOK: Duration = Duration::from_millis(5);

/// Between two questions of a client.
const PING: Duration = Duration::from_millis(10);

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// The header of IPv4, which a raw socket delivers too.
const HEADER: usize = 20;

/// A thread on a host, which ends when this is dropped.
struct Observer<T> {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Observer<T> {
    /// Calls `look` until the end; `finish` is what remains.
    fn start<S: Send + 'static>(
        host: &Host,
        mut state: S,
        every: Duration,
        look: fn(&mut S),
        finish: fn(S) -> T,
    ) -> Observer<T> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let work = move || {
            while !flag.load(Ordering::Relaxed) {
                look(&mut state);
                pass(every);
            }
            finish(state)
        };
        // It inherits the network namespace.
        let thread = host.run(|| thread::spawn(work));
        Observer { is_over, thread: Some(thread) }
    }

    fn finish(mut self) -> T {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl<T> Drop for Observer<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// One look: when it began and ended, and whether any of the addresses was there.
struct Look {
    began: Instant,
    ended: Instant,
    is_held: bool,
}

struct Watched {
    addresses: Vec<IpAddr>,
    looks: Vec<Look>,
}

impl Watched {
    fn look(&mut self) {
        let began = now();
        let held = getifaddrs().unwrap().filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        });
        let is_held = held.into_iter().any(|address| self.addresses.contains(&address));
        self.looks.push(Look { began, ended: now(), is_held });
    }

    /// The times in which the host had an address for certain, as far as its looks show.
    fn tenures(self) -> Vec<(Instant, Instant)> {
        let runs = self.looks.chunk_by(|a, b| a.is_held == b.is_held);
        let held = runs.filter(|run| run[0].is_held);
        held.map(|run| (run[0].ended, run.last().unwrap().began)).collect()
    }
}

/// Looks at the addresses of hosts.
pub(super) struct Holders(Vec<Observer<Vec<(Instant, Instant)>>>);

impl Holders {
    /// Looks from now on whether these hosts have any of these addresses.
    pub(super) fn watch(hosts: &[&Host], addresses: &[&str]) -> Holders {
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let watch = |host: &&Host| {
            let watched = Watched { addresses: addresses.clone(), looks: Vec::new() };
            Observer::start(host, watched, LOOK, Watched::look, Watched::tenures)
        };
        Holders(hosts.iter().map(watch).collect())
    }

    /// Panics where two hosts had an address at the same time, or where none ever had.
    pub(super) fn assert_one_at_a_time(self) {
        let tenures: Vec<_> = self.0.into_iter().map(Observer::finish).collect();
        assert!(tenures.iter().any(|of_host| !of_host.is_empty()), "no host had the address");
        let (first, second) = tenures.split_first().unwrap();
        for (from, to) in first {
            for (other_from, other_to) in second.iter().flatten() {
                let both = (*to.min(other_to)).saturating_duration_since(*from.max(other_from));
                assert!(both.is_zero(), "two hosts had the address for {both:?}");
            }
        }
    }
}

struct Pinger {
    socket: Socket,
    address: Ipv4Addr,
    sent: Vec<Instant>,
    answered: Arc<Mutex<Vec<Instant>>>,
}

impl Pinger {
    fn ping(&mut self) {
        self.receive();
        let sequence = self.sent.len() as u16;
        self.sent.push(now());
        let request = echo_request(self.address, sequence);
        // It fails while the neighbour is not found.
        let _ = self.socket.send_to(&request, &SocketAddrV4::new(self.address, 0).into());
    }

    /// Notes when the requests were sent whose answers have arrived.
    fn receive(&mut self) {
        let mut packet = [0; 64];
        while let Ok(length) = self.socket.read(&mut packet) {
            let reply = packet.get(HEADER..length).unwrap_or_default();
            let [ECHO_REPLY, _, _, _, a, b, high, low, ..] = *reply else { continue };
            let sequence = u16::from_be_bytes([high, low]);
            if [a, b] == identity(self.address) {
                let sent = self.sent[usize::from(sequence)];
                self.answered.lock().unwrap().push(sent);
            }
        }
    }
}

/// Distinguishes the clients on one host.
fn identity(address: Ipv4Addr) -> [u8; 2] {
    [0x4c, address.octets()[3]]
}

fn echo_request(address: Ipv4Addr, sequence: u16) -> [u8; 8] {
    let [a, b] = identity(address);
    let [high, low] = sequence.to_be_bytes();
    let words = [[ECHO_REQUEST, 0], [a, b], [high, low]].map(u16::from_be_bytes);
    let sum: u32 = words.into_iter().map(u32::from).sum();
    // The sum of three words carries at most 2.
    let folded = (sum & 0xffff) + (sum >> 16);
    let [sum_high, sum_low] = (!(((folded & 0xffff) + (folded >> 16)) as u16)).to_be_bytes();
    [ECHO_REQUEST, 0, sum_high, sum_low, a, b, high, low]
}

/// Asks an address for an echo, all the time.
pub(super) struct Client {
    answered: Arc<Mutex<Vec<Instant>>>,
    _observer: Observer<()>,
}

impl Client {
    /// Begins to ask from this host, and waits for the first answer.
    pub(super) fn of(host: &Host, address: &str) -> Client {
        let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        let socket = host.run(open);
        socket.set_nonblocking(true).unwrap();
        let answered: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let address = address.parse().unwrap();
        let pinger = Pinger { socket, address, sent: Vec::new(), answered: Arc::clone(&answered) };
        let observer = Observer::start(host, pinger, PING, Pinger::ping, drop);
        let client = Client { answered, _observer: observer };
        client.await_answer();
        client
    }

    /// The longest time without an answer from now until `work` is done and the address answers.
    pub(super) fn longest_gap(&self, work: impl FnOnce()) -> Duration {
        self.await_answer();
        let start = self.count() - 1;
        work();
        self.await_answer();
        let answered = self.answered.lock().unwrap();
        answered[start..].windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
    }

    /// Waits for the answer to a request that is sent from now on.
    fn await_answer(&self) {
        let from = now();
        wait_until("the address answers", || {
            self.answered.lock().unwrap().last().is_some_and(|sent| *sent > from)
        });
    }

    fn count(&self) -> usize {
        self.answered.lock().unwrap().len()
    }
}
