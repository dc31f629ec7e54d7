//! Hears everything that the daemons send, on the bridge.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use lanelect::wire::frame::Codec;

use super::crowd::BRIDGE_ADDRESS;
use crate::group::kind;
use crate::harness::patience::now;

/// The daemons' default group.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 69);
const PORT: u16 = 7669;

/// What was heard, in order. Hears until the process ends.
#[derive(Clone)]
pub(super) struct Listener(Arc<Mutex<Vec<Heard>>>);

/// A datagram.
struct Heard {
    at: Instant,
    kind: String,
}

impl Listener {
    /// Begins to listen on the bridge of the current network namespace.
    pub(super) fn new() -> Listener {
        let socket = UdpSocket::bind((GROUP, PORT)).unwrap();
        socket.join_multicast_v4(&GROUP, &BRIDGE_ADDRESS.into()).unwrap();
        let listener = Listener(Arc::default());
        let heard = Arc::clone(&listener.0);
        thread::spawn(move || listen(&socket, &heard));
        listener
    }

    /// How many datagrams of each kind were sent between two times.
    pub(super) fn between(&self, from: Instant, to: Instant) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        let heard = self.0.lock().unwrap();
        for heard in heard.iter().filter(|heard| from <= heard.at && heard.at < to) {
            *counts.entry(heard.kind.clone()).or_default() += 1;
        }
        counts
    }
}

fn listen(socket: &UdpSocket, all: &Mutex<Vec<Heard>>) {
    let codec = Codec::new("default".parse().unwrap(), None);
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let decoded = codec.decode(from.ip(), &buffer[..length]).unwrap();
        all.lock().unwrap().push(Heard { at: now(), kind: kind(&decoded.message.body) });
    }
}
