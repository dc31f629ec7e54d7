//! A switch in user space: takes frames from the far ends of the hosts' cables and floods them to
//! the others, as far as the rules allow.
//!
//! It sees every frame of every port through one packet socket of its namespace. What happens to
//! a frame is drawn from a seeded generator; when frames arrive is up to the kernel, so a seed
//! repeats the dice, not the run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use lanelect::types::Role;
use lanelect::wire::frame::Codec;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc::PACKET_OUTGOING;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, sendto, socket,
};

use super::carrier::Carrier;
use super::claims::{Claim, How};
use super::forge::{GROUP, codec};
use super::frame::{complete_udp_checksum, udp_from, udp_port};
use super::keys::KEY;
use super::later::Later;
use super::patience::{self, wait_until};

/// Longest frame: more than any MTU used here.
pub(crate) const FRAME_MAX: usize = 65_536;

/// How soon the switch notices that it is to stop.
const TICK: Duration = Duration::from_millis(50);

/// What happens to the frames from one host to another.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Whether any frame passes.
    pub(crate) pass: bool,
    /// The probability that a frame is dropped.
    pub(crate) loss: f64,
    /// The probability that a frame is delivered twice, each after a delay of its own.
    pub(crate) duplicate: f64,
    /// How long a frame is held back. A range wider than the gap between frames reorders them.
    pub(crate) delay: RangeInclusive<Duration>,
}

impl Rule {
    /// Nothing passes.
    pub(crate) fn cut() -> Rule {
        Rule { pass: false, ..Rule::default() }
    }
}

impl Default for Rule {
    /// Everything passes at once.
    fn default() -> Self {
        Rule { pass: true, loss: 0.0, duplicate: 0.0, delay: Duration::ZERO..=Duration::ZERO }
    }
}

/// One network's switch. Hosts are known by their numbers, one port each.
pub(crate) struct Switch {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    table: Mutex<Table>,
    stop: AtomicBool,
}

struct Table {
    ports: Vec<Port>,
    /// By sender and receiver; a pair that is not here passes everything.
    rules: BTreeMap<(usize, usize), Rule>,
    /// UDP datagrams that each host sent.
    datagrams: BTreeMap<usize, u64>,
    /// The datagrams that said "I lead", in the order in which they were sent.
    claims: Vec<Claim>,
    /// What was sent before has been taken in.
    drained: Instant,
    /// Without a key, and with the one that tests give.
    codecs: [Codec; 2],
    /// Hosts that run a later release.
    upgraded: BTreeSet<usize>,
    /// Hosts that forward what others have said.
    routers: BTreeSet<usize>,
    later: Later,
    random: Rng,
}

struct Port {
    host: usize,
    link: LinkAddr,
}

/// Frames on their way.
#[derive(Default)]
struct Queue {
    /// By when they are due; the number keeps frames of the same time in order.
    frames: BTreeMap<(Instant, u64), (LinkAddr, Vec<u8>)>,
    next_number: u64,
}

impl Switch {
    /// A switch without ports in the current network namespace. It notes who leads in `group`.
    pub(crate) fn new(seed: u64, group: &str) -> Switch {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )
        .expect("a packet socket");
        let table = Table {
            ports: Vec::new(),
            rules: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            claims: Vec::new(),
            drained: patience::now(),
            codecs: [None, Some(KEY)].map(|key| codec(group, key)),
            upgraded: BTreeSet::new(),
            routers: BTreeSet::new(),
            later: Later::new(group),
            random: Rng::with_seed(seed),
        };
        let shared = Arc::new(Shared { table: Mutex::new(table), stop: AtomicBool::new(false) });
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || forward(&socket, &shared)
        });
        Switch { shared, thread: Mutex::new(Some(thread)) }
    }

    /// Connects `host` by the interface named `port`, instead of any port it had.
    pub(crate) fn plug(&self, host: usize, port: &str) {
        let link = link_address(port);
        let mut table = self.table();
        table.ports.retain(|p| p.host != host);
        table.ports.push(Port { host, link });
    }

    /// Sets the rule for frames from one host to another.
    pub(crate) fn link(&self, from: usize, to: usize, rule: Rule) {
        self.table().rules.insert((from, to), rule);
    }

    /// Lets everything pass again.
    pub(crate) fn heal(&self) {
        self.table().rules.clear();
    }

    /// Has `host` run a later release from now on, or this one again.
    pub(crate) fn upgrade(&self, host: usize, is_later: bool) {
        let mut table = self.table();
        table.upgraded.remove(&host);
        if is_later {
            table.upgraded.insert(host);
        }
    }

    /// Notes no more who leads by what `host` sends: it forwards what others have said.
    pub(crate) fn note_no_claims_of(&self, host: usize) {
        self.table().routers.insert(host);
    }

    /// UDP datagrams that `host` has sent.
    pub(crate) fn datagrams_from(&self, host: usize) -> u64 {
        self.table().datagrams.get(&host).copied().unwrap_or(0)
    }

    /// Waits until the switch has taken in whatever has been sent by now.
    pub(crate) fn catch_up(&self) {
        let asked = patience::now();
        wait_until("the switch has caught up", || self.table().drained > asked);
    }

    /// The datagrams of hosts that said they lead, in order.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.table().claims.clone()
    }

    /// Forwards nothing from now on: something else joins the ports.
    pub(crate) fn retire(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap().take();
        thread.map(JoinHandle::join);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.retire();
    }
}

impl Table {
    /// Puts what becomes of a frame that came in by interface `ifindex` into the queue.
    fn switch(&mut self, ifindex: usize, frame: &mut [u8], queue: &mut Queue) {
        let Some(from) = self.ports.iter().find(|p| p.link.ifindex() == ifindex) else {
            return;
        };
        let from = from.host;
        let port = udp_port(frame);
        if complete_udp_checksum(frame) {
            *self.datagrams.entry(from).or_default() += 1;
            if !self.routers.contains(&from) {
                self.note_claim(from, frame);
            }
        }
        let rewritten =
            if self.upgraded.contains(&from) { self.later.rewritten(frame) } else { None };
        let frame = rewritten.as_deref().unwrap_or(frame);
        let now = patience::now();
        let carrier = Carrier::chosen();
        let is_to_group = port == Some(GROUP.1) && frame[0] & 1 == 1;
        let passes = |to: &&Port| {
            to.host != from && (carrier.delivers_multicast_to(to.host) || !is_to_group)
        };
        for to in self.ports.iter().filter(passes) {
            let rule = self.rules.get(&(from, to.host)).cloned().unwrap_or_default();
            for _ in 0..copies(&rule, &mut self.random) {
                let due = now + delay(&rule, &mut self.random);
                queue.push(due, to.link, frame.to_vec());
            }
        }
    }
}

impl Table {
    fn note_claim(&mut self, host: usize, frame: &mut [u8]) {
        let codecs = &self.codecs;
        let message = udp_from(frame).and_then(|(source, payload)| {
            codecs.iter().find_map(|codec| codec.decode(source, payload).ok())
        });
        let message = message.map(|decoded| decoded.message);
        if let Some(message) = message.filter(|message| message.standing.role == Role::Leader) {
            let (term, after, by) = (Some(message.term.0), self.drained, patience::now());
            self.claims.push(Claim { host, term, after, by, how: How::Datagram });
        }
    }
}

fn copies(rule: &Rule, random: &mut Rng) -> usize {
    if !rule.pass || random.f64() < rule.loss {
        0
    } else if random.f64() < rule.duplicate {
        2
    } else {
        1
    }
}

fn delay(rule: &Rule, random: &mut Rng) -> Duration {
    let micros = |d: &Duration| u64::try_from(d.as_micros()).unwrap();
    Duration::from_micros(random.u64(micros(rule.delay.start())..=micros(rule.delay.end())))
}

impl Queue {
    fn push(&mut self, due: Instant, to: LinkAddr, frame: Vec<u8>) {
        self.frames.insert((due, self.next_number), (to, frame));
        self.next_number += 1;
    }

    fn pop_due(&mut self, now: Instant) -> Option<(LinkAddr, Vec<u8>)> {
        let first = self.frames.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// How long until the next frame is due, at most [`TICK`].
    fn pause(&self, now: Instant) -> Duration {
        let next = self.frames.first_key_value().map(|((due, _), _)| *due);
        next.map_or(TICK, |due| due.saturating_duration_since(now)).min(TICK)
    }
}

/// The switch's thread.
fn forward(socket: &OwnedFd, shared: &Shared) {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
    epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
    let mut queue = Queue::default();
    let mut buffer = vec![0; FRAME_MAX];
    while !shared.stop.load(Ordering::Relaxed) {
        while let Some((to, frame)) = queue.pop_due(patience::now()) {
            // A port that is down loses the frame, as a cable would.
            let _ = sendto(socket.as_raw_fd(), &frame, &to, MsgFlags::empty());
        }
        wait(&epoll, queue.pause(patience::now()));
        loop {
            let looked = patience::now();
            let Some((length, from)) = receive(socket, &mut buffer) else {
                shared.table.lock().unwrap().drained = looked;
                break;
            };
            // What the ports themselves send is not from a host.
            if from.pkttype() != PACKET_OUTGOING {
                let mut table = shared.table.lock().unwrap();
                table.switch(from.ifindex(), &mut buffer[..length], &mut queue);
            }
        }
    }
}

fn wait(epoll: &Epoll, pause: Duration) {
    let millis = u16::try_from(pause.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
    match epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::from(millis)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(e) => panic!("the switch cannot wait: {e}"),
    }
}

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<(usize, LinkAddr)> {
    match recvfrom::<LinkAddr>(socket.as_raw_fd(), buffer) {
        Ok((length, from)) => Some((length, from.expect("a packet socket tells the interface"))),
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => None,
        Err(e) => panic!("the switch cannot receive: {e}"),
    }
}

/// The hardware address and number of an interface here.
pub(crate) fn link_address(interface: &str) -> LinkAddr {
    let mut all = getifaddrs().unwrap().filter(|a| a.interface_name == interface);
    let address = all.find_map(|a| a.address.and_then(|a| a.as_link_addr().copied()));
    address.unwrap_or_else(|| panic!("no interface {interface}"))
}
