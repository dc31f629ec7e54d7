//! A flood: somebody on the LAN sends what is not to count, as much and as fast as he can.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use lanelect::types::{Incarnation, Sequence, Term};
use lanelect::wire::frame::{DATAGRAM_MAX, VERSION};
use lanelect::wire::message::Message;

use super::Host;
use super::forge::{Envelope, codec, declaration, encoded, from_mac, with_ttl};
use super::patience::{now, pass};
use super::tap::{Heard, Tap};

/// Frames that a flood repeats.
const FRAMES: usize = 6000;

/// Nothing of this group's is for the hosts.
const OTHER_GROUP: &str = "elsewhere";

/// The key that whoever floods has, and nobody else.
const OWN_KEY: &str = "f";

/// The address that whoever floods seals for. It sends from others too, but nobody has its key to
/// notice.
const FORGER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 200);

/// How long a sender that is ahead of its rate waits.
const PAUSE: Duration = Duration::from_millis(1);

/// Most frames that a sender makes up for at once.
const BURST_MAX: u64 = 4096;

/// Makes up the frames of a flood.
pub(crate) struct Mix<'a> {
    pub(crate) random: Rng,
    /// Where it is sent from.
    pub(crate) mac: [u8; 6],
    /// The nodes of the group, whose names and addresses are forged.
    pub(crate) members: &'a [&'a Host],
    /// What they sent: before they were started anew, and just now.
    pub(crate) captured: &'a [Heard],
}

impl Mix<'_> {
    /// Of each kind as many, in no order: forged, malformed, foreign, replayed, replayed from afar.
    pub(crate) fn frames(mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while frames.len() < FRAMES {
            let forged = self.forged();
            frames.extend(self.sent(&forged));
            let malformed = self.malformed();
            frames.extend(self.sent(&malformed));
            let foreign = self.foreign();
            frames.extend(self.sent(&foreign));
            let captured = &self.random.choice(self.captured).unwrap().frame;
            frames.push(from_mac(captured, self.mac));
            frames.push(with_ttl(&from_mac(captured, self.mac), self.random.u8(..255)));
        }
        self.random.shuffle(&mut frames);
        frames
    }

    /// From an address that may be anything, and often is a member's.
    fn sent(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let member: Ipv4Addr =
            self.random.choice(self.members).unwrap().address(0).parse().unwrap();
        let neighbour = Ipv4Addr::new(10, 77, self.random.u8(..), self.random.u8(..));
        let anything = Ipv4Addr::from(self.random.u32(..));
        let source = *self.random.choice(&[member, member, neighbour, anything]).unwrap();
        Envelope { mac: self.mac, source, ttl: 255 }.frames(datagram)
    }

    /// Sealed with a key that the group does not have.
    fn forged(&mut self) -> Vec<u8> {
        encoded(&codec("default", Some(OWN_KEY)), FORGER, &self.message())
    }

    /// For another group, or of another version, or without a key.
    fn foreign(&mut self) -> Vec<u8> {
        let message = self.message();
        match self.random.u8(..3) {
            0 => encoded(&codec(OTHER_GROUP, Some(OWN_KEY)), FORGER, &message),
            1 => encoded(&codec("default", None), FORGER, &message),
            _ => {
                let mut datagram = encoded(&codec("default", Some(OWN_KEY)), FORGER, &message);
                datagram[0] = self.random.u8(VERSION + 1..);
                datagram
            }
        }
    }

    /// No datagram at all: cut short, of any bytes, or much too long.
    fn malformed(&mut self) -> Vec<u8> {
        match self.random.u8(..4) {
            0 => {
                let whole = encoded(&codec("default", Some(OWN_KEY)), FORGER, &self.message());
                // Not even the group's name is whole.
                whole[..self.random.usize(..8)].to_vec()
            }
            1 => self.bytes(2..DATAGRAM_MAX),
            2 => self.bytes(DATAGRAM_MAX..1472),
            _ => self.bytes(1473..4000),
        }
    }

    fn bytes(&mut self, length: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![VERSION; self.random.usize(length)];
        let any = self.random.usize(..bytes.len());
        self.random.fill(&mut bytes[any..]);
        bytes
    }

    /// A leader's, which would depose any other if it counted.
    fn message(&mut self) -> Message {
        let member = self.random.choice(self.members).unwrap().name.clone();
        let invented = format!("x{}", self.random.u16(..));
        let sender = if self.random.bool() { member } else { invented };
        let mut message = declaration(&sender);
        message.incarnation = Incarnation(self.random.u64(..));
        message.sequence = Sequence(self.random.u64(..));
        message.term = Term(self.random.u64(..1 << 32));
        message.standing.priority.0 = u8::MAX;
        message
    }
}

/// Threads that send the same frames again and again.
pub(crate) struct Flood {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    frames: Vec<Vec<u8>>,
    /// Frames a second, of each thread.
    rate: u32,
    sent: AtomicU64,
    stop: AtomicBool,
}

impl Flood {
    /// Begins to send so many frames a second from a host, by so many threads; as many as it can
    /// where that is too many.
    pub(crate) fn start(host: &Host, frames: Vec<Vec<u8>>, rate: u32, threads: u32) -> Flood {
        let (rate, sent, stop) = (rate / threads, AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { frames, rate, sent, stop });
        let sender = |_| {
            let (tap, shared) = (Tap::deaf_on(host), Arc::clone(&shared));
            thread::spawn(move || send(&tap, &shared))
        };
        let threads = (0..threads).map(sender).collect();
        Flood { shared, threads }
    }

    /// How many frames have left.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn send(tap: &Tap, shared: &Shared) {
    let (frames, started) = (&shared.frames, now());
    let (mut asked, mut next) = (0, 0);
    while !shared.stop.load(Ordering::Relaxed) {
        let due = (started.elapsed().as_secs_f64() * f64::from(shared.rate)) as u64;
        if asked >= due {
            pass(PAUSE);
            continue;
        }
        // What it cannot make up for is not sent: a burst later would be another flood.
        asked = asked.max(due.saturating_sub(BURST_MAX));
        let count = usize::try_from(due - asked).unwrap().min(frames.len() - next);
        let sent = tap.send(&frames[next..next + count]);
        shared.sent.fetch_add(sent as u64, Ordering::Relaxed);
        asked += count as u64;
        next = (next + count) % frames.len();
    }
}
