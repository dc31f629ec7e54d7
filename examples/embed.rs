//! Embeds the election in a program: three nodes elect a leader by UDP multicast, the leader dies,
//! and another takes over.
//!
//! ```sh
//! cargo run --no-default-features --example embed                 # on the loopback interface
//! cargo run --no-default-features --example embed -- 192.0.2.10   # on the one with this address
//! ```
//!
//! Each node is a thread with a socket of its own, and keeps its state in memory. A real program
//! writes it to disk.

#![expect(clippy::disallowed_methods, reason = "a program that embeds the election has the clock")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lanelect::core::election::{Election, Setup};
use lanelect::core::hook::HookOutcome;
use lanelect::core::output::{Event, Output, Transition};
use lanelect::core::params::Params;
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId};
use lanelect::wire::frame::{Codec, EXTENDED_MAX};
use socket2::{Domain, Socket, Type};

/// Where this example elects. Daemons have another port.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 76, 69), 7670);

const HEARTBEAT: Duration = Duration::from_millis(100);

/// How long the example waits for a leader.
const PATIENCE: Duration = Duration::from_secs(20);

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let interface = match std::env::args().nth(1) {
        Some(address) => address.parse()?,
        None => Ipv4Addr::LOCALHOST,
    };
    let (reports, transitions) = mpsc::channel();
    // The leader that each running node follows, and what ends the node when it is dropped.
    let mut nodes = BTreeMap::new();
    for name in ["web0", "web1", "web2"] {
        let node_id = name.parse()?;
        let (life, end) = mpsc::channel();
        let reports = reports.clone();
        thread::spawn(move || match run(node_id, interface, &end, &reports) {
            Ok(()) => println!("{name}: dies without a word"),
            Err(error) => eprintln!("{name}: {error}"),
        });
        nodes.insert(node_id, (None, life));
    }
    let first = wait_for_leader(&transitions, &mut nodes)?;
    nodes.remove(&first);
    let second = wait_for_leader(&transitions, &mut nodes)?;
    println!("{second} took over from {first}");
    Ok(())
}

/// Prints each transition, until all nodes that run follow the same one of them.
fn wait_for_leader<T>(
    transitions: &Receiver<(NodeId, Transition)>,
    nodes: &mut BTreeMap<NodeId, (Option<NodeId>, T)>,
) -> Result<NodeId, AnyError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Ok((node_id, Transition { role, term, leader, .. })) = transitions.recv_timeout(left)
        else {
            return Err(format!("no leader within {} s", PATIENCE.as_secs()).into());
        };
        let name = leader.map_or("nobody".to_string(), |leader| leader.to_string());
        println!("{node_id}: {role} in term {term}, led by {name}");
        if let Some((follows, _)) = nodes.get_mut(&node_id) {
            *follows = leader;
        }
        let Some(leader) = leader.filter(|leader| nodes.contains_key(leader)) else { continue };
        if nodes.values().all(|(follows, _)| *follows == Some(leader)) {
            return Ok(leader);
        }
    }
}

/// One node of the group: takes part in elections until the other end of `end` is dropped.
fn run(
    node_id: NodeId,
    interface: Ipv4Addr,
    end: &Receiver<()>,
    reports: &Sender<(NodeId, Transition)>,
) -> Result<(), AnyError> {
    let origin = Instant::now();
    let now = || Time::between(origin, Instant::now());
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let setup = Setup {
        node_id,
        // Above that of every earlier life, because the wall clock goes on.
        incarnation: Incarnation(u64::try_from(wall.as_micros())?),
        persisted: PersistentState::default(),
        params: Params::new(HEARTBEAT),
        links_up: true,
        seed: u64::from(wall.subsec_nanos()),
    };
    let mut election = Election::new(setup, now());
    let codec = Codec::new("embed".parse()?, None);
    let socket = join(interface)?;
    let mut datagram = Vec::new();
    let mut buffer = [0; EXTENDED_MAX];
    while end.try_recv() != Err(TryRecvError::Disconnected) {
        while let Some(output) = election.poll_output() {
            match output {
                Output::Transmit(message) => {
                    codec.encode(IpAddr::V4(interface), &message, &mut datagram)?;
                    socket.send_to(&datagram, GROUP)?;
                }
                // A real program reports this once the state is on disk.
                Output::Persist(state) => election.handle_persisted(now(), state),
                // A real program starts or stops here what only the leader runs.
                Output::RunHook(_) => {
                    election.handle_hook_finished(now(), HookOutcome::Succeeded);
                }
                Output::Notify(Event::Transition(transition)) => {
                    reports.send((node_id, transition))?;
                }
                _ => {}
            }
        }
        let deadline = election.poll_timeout().map_or(now() + HEARTBEAT, |deadline| deadline.at);
        let left = deadline.since(now());
        // A time-out of zero would be none at all.
        socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                if let Ok(datagram) = codec.decode(from.ip(), &buffer[..length]) {
                    election.handle_datagram(now(), from.ip(), &datagram.message);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                election.handle_timeout(now());
            }
            Err(error) => return Err(error.into()),
        }
        // However many datagrams come, what is due is done.
        if left.is_zero() {
            election.handle_timeout(now());
        }
    }
    Ok(())
}

/// A socket that sends to the group, and hears it beside others on this host.
fn join(interface: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_multicast_if_v4(&interface)?;
    socket.join_multicast_v4(GROUP.ip(), &interface)?;
    socket.bind(&GROUP.into())?;
    Ok(socket.into())
}
