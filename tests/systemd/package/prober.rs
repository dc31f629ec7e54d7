//! A host that pings an address all the time.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use socket2::{Domain, Protocol, Socket, Type};

use crate::harness::patience::now;
use crate::harness::wait_until;
use crate::hosts::Host;

/// Between two echo requests.
const INTERVAL: Duration = Duration::from_millis(10);

/// So many answers, and the address is there again.
const ANSWERS: usize = 50;

/// The kinds of ICMP messages.
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// A thread in the host's network namespace. It ends when this is dropped.
pub(super) struct Prober {
    /// When requests were sent that have been answered, in the order of the answers.
    answered: Arc<Mutex<Vec<Instant>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Starts it, and returns when the address has answered.
    pub(super) fn start(host: &Host, address: &str) -> Prober {
        let namespace = File::open(format!("/run/netns/{}", host.name)).unwrap();
        let address: Ipv4Addr = address.parse().unwrap();
        let (answered, is_over) = (Arc::<Mutex<Vec<Instant>>>::default(), Arc::default());
        let (answers, over) = (Arc::clone(&answered), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            ping(address, &answers, &over);
        });
        let prober = Prober { answered, is_over, thread: Some(thread) };
        prober.wait_until_answered();
        prober
    }

    /// Waits until requests are answered again and again.
    #[track_caller]
    pub(super) fn wait_until_answered(&self) {
        let before = self.answered.lock().unwrap().len();
        wait_until("the address answers", || {
            self.answered.lock().unwrap().len() >= before + ANSWERS
        });
    }

    /// The longest time between two requests that were answered, with none in between.
    pub(super) fn longest_gap(&self) -> Duration {
        let answered = self.answered.lock().unwrap();
        let gaps = answered.windows(2).map(|pair| pair[1].saturating_duration_since(pair[0]));
        gaps.max().expect("two answers")
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|end| end.is_ok()), "the prober failed");
    }
}

/// Sends a request every [`INTERVAL`], and notes which ones are answered.
fn ping(address: Ipv4Addr, answered: &Mutex<Vec<Instant>>, is_over: &AtomicBool) {
    let mut socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
    socket.connect(&SocketAddr::from((address, 0)).into()).unwrap();
    let mut sent: Vec<Instant> = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let time = now();
        let sequence = u16::try_from(sent.len()).expect("a prober is started for each round");
        sent.push(time);
        // The kernel refuses while nobody answers for the address: that is no answer.
        let _ = socket.write(&request(sequence));
        while let Some(rest) = INTERVAL.checked_sub(time.elapsed()).filter(|rest| !rest.is_zero()) {
            socket.set_read_timeout(Some(rest)).unwrap();
            if let Some(sequence) = reply(&mut socket) {
                answered.lock().unwrap().extend(sent.get(usize::from(sequence)));
            }
        }
    }
}

fn request(sequence: u16) -> [u8; 8] {
    let [high, low] = sequence.to_be_bytes();
    let mut request = [ECHO_REQUEST, 0, 0, 0, 0, 0, high, low];
    let words =
        request.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let checksum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    request[2..4].copy_from_slice(&checksum.to_be_bytes());
    request
}

/// The sequence number of a reply, if one arrives in time.
fn reply(socket: &mut Socket) -> Option<u16> {
    let mut packet = [0; 128];
    let length = socket.read(&mut packet).ok()?;
    let header = usize::from(packet[0] & 0x0f) * 4;
    let message = packet[..length].get(header..header + 8)?;
    (message[0] == ECHO_REPLY).then(|| u16::from_be_bytes([message[6], message[7]]))
}
