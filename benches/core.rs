//! What one datagram costs: taking it in at different sizes of the group, encoding and decoding.
//!
//! ```text
//! cargo bench
//! cargo bench -- declaration
//! ```
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use divan::{Bencher, black_box};
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::params::Params;
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Priority, Role, Sequence, Term};
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Flags, Message, Standing};

/// Members of a group: a usual one, a large one, and one far beyond what multicast is used for.
const GROUP_SIZES: [usize; 3] = [3, 100, 1000];

/// The default interval between declarations, in microseconds.
const INTERVAL_US: u32 = 1_000_000;

/// Small enough that no timer comes due while a benchmark runs.
const STEP: Duration = Duration::from_nanos(1);

fn main() {
    divan::main();
}

#[divan::bench(args = GROUP_SIZES)]
fn heartbeat(bencher: Bencher<'_, '_>, members: usize) {
    take_in(
        bencher,
        members,
        members - 1,
        Role::Follower,
        Body::Heartbeat { leader: None, conceded: None, acknowledged: None },
    );
}

#[divan::bench(args = GROUP_SIZES)]
fn declaration(bencher: Bencher<'_, '_>, members: usize) {
    take_in(
        bencher,
        members,
        0,
        Role::Leader,
        Body::Declaration { interval_us: INTERVAL_US, hold_us: 0 },
    );
}

#[divan::bench(args = [false, true])]
fn encode(bencher: Bencher<'_, '_>, sealed: bool) {
    let (codec, message) = (codec(sealed), declaration_of(0, 1));
    let mut buffer = Vec::new();
    bencher.bench_local(|| codec.encode(black_box(&message), &mut buffer).unwrap());
}

#[divan::bench(args = [false, true])]
fn decode(bencher: Bencher<'_, '_>, sealed: bool) {
    let codec = codec(sealed);
    let mut datagram = Vec::new();
    codec.encode(&declaration_of(0, 1), &mut datagram).unwrap();
    bencher.bench_local(|| codec.decode(black_box(&datagram)).unwrap());
}

/// Hands a follower in a settled group one new datagram after the other from one `sender`.
fn take_in(bencher: Bencher<'_, '_>, members: usize, sender: usize, role: Role, body: Body) {
    let mut election = follower_among(members);
    let mut message = message(sender, 1, role, body);
    let mut now = Time::from_millis(1);
    bencher.bench_local(|| {
        now += STEP;
        message.sequence.0 += 1;
        election.handle_datagram(now, address(sender), black_box(&message));
        drain(&mut election)
    });
    assert_eq!(election.leader(), Some(node_id(0)), "the group did not stay settled");
}

/// A node that follows the first of `members` others and knows them all.
fn follower_among(members: usize) -> Election {
    let setup = Setup {
        node_id: "self".parse().unwrap(),
        incarnation: Incarnation(1),
        persisted: PersistentState::default(),
        params: Params::default(),
        links_up: true,
        seed: 1,
    };
    let mut election = Election::new(setup, Time::ZERO);
    for member in 1..members {
        let hello = message(
            member,
            1,
            Role::Follower,
            Body::Heartbeat { leader: None, conceded: None, acknowledged: None },
        );
        election.handle_datagram(Time::ZERO, address(member), &hello);
    }
    election.handle_datagram(Time::ZERO, address(0), &declaration_of(0, 1));
    drain(&mut election);
    election
}

/// Counts the outputs, so that taking them is not optimised away.
fn drain(election: &mut Election) -> usize {
    std::iter::from_fn(|| election.poll_output()).count()
}

fn declaration_of(sender: usize, sequence: u64) -> Message {
    message(
        sender,
        sequence,
        Role::Leader,
        Body::Declaration { interval_us: INTERVAL_US, hold_us: 0 },
    )
}

fn message(sender: usize, sequence: u64, role: Role, body: Body) -> Message {
    let flags = Flags::default().with(Flags::CANDIDATE, true).with(Flags::ELIGIBLE, true);
    Message {
        sender: node_id(sender),
        incarnation: Incarnation(1),
        sequence: Sequence(sequence),
        term: Term(1),
        standing: Standing { role, priority: Priority::default(), flags, voters: None },
        body,
    }
}

fn node_id(index: usize) -> NodeId {
    format!("node-{index:05}").parse().unwrap()
}

fn address(index: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + u32::try_from(index).unwrap()).into()
}

fn codec(sealed: bool) -> Codec {
    let keyring = sealed.then(|| Keyring::new(&Key::new([7; KEY_LEN]), &[]).unwrap());
    Codec::new("default".parse().unwrap(), keyring)
}
