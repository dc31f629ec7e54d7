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
use lanelect::core::output::Output;
use lanelect::core::params::{Params, QuorumParams};
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::core::quorum::Voters;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Priority, Role, Sequence, Term};
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Flags, Message, Standing};

/// Members of a group: a usual one, a large one, and one far beyond what multicast is used for.
const GROUP_SIZES: [usize; 3] = [3, 100, 1000];

/// The default interval between declarations, in microseconds.
const INTERVAL_US: u32 = 1_000_000;

/// The default lease and demote grace, with the margin for drifting clocks, in microseconds.
const HOLD_US: u32 = 8_161_617;

/// Small enough that no timer comes due while a benchmark runs.
const STEP: Duration = Duration::from_nanos(1);

fn main() {
    divan::main();
}

#[divan::bench(args = GROUP_SIZES)]
fn heartbeat(bencher: Bencher<'_, '_>, members: usize) {
    let sender = members - 1;
    take_in(bencher, follower_among(members), sender, heartbeat_of(sender));
}

#[divan::bench(args = GROUP_SIZES)]
fn declaration(bencher: Bencher<'_, '_>, members: usize) {
    take_in(bencher, follower_among(members), 0, declaration_of(0));
}

/// In quorum mode: a voter renews its pledge and acknowledges.
#[divan::bench]
fn declaration_acknowledged(bencher: Bencher<'_, '_>) {
    take_in(bencher, voter_of_three(), 0, in_quorum_mode(declaration_of(0)));
}

#[divan::bench(args = [false, true])]
fn encode(bencher: Bencher<'_, '_>, sealed: bool) {
    let (codec, message) = (codec(sealed), declaration_of(0));
    let mut buffer = Vec::new();
    bencher.bench_local(|| codec.encode(black_box(&message), &mut buffer).unwrap());
}

#[divan::bench(args = [false, true])]
fn decode(bencher: Bencher<'_, '_>, sealed: bool) {
    let codec = codec(sealed);
    let mut datagram = Vec::new();
    codec.encode(&declaration_of(0), &mut datagram).unwrap();
    bencher.bench_local(|| codec.decode(black_box(&datagram)).unwrap());
}

/// Hands `election`, which follows node 0 in a settled group, `message` again and again, each time
/// with the next number. Nothing of it may have to go to the disk.
fn take_in(bencher: Bencher<'_, '_>, mut election: Election, sender: usize, mut message: Message) {
    let mut now = Time::from_millis(1);
    let mut saves = 0;
    bencher.bench_local(|| {
        now += STEP;
        message.sequence.0 += 1;
        election.handle_datagram(now, address(sender), black_box(&message));
        saves += drain(&mut election, now);
    });
    assert_eq!(election.leader(), Some(node_id(0)), "the group did not stay settled");
    assert_eq!(saves, 0, "the disk was needed");
}

/// A node that follows the first of `members` others and knows them all.
fn follower_among(members: usize) -> Election {
    let mut election = start(Params::default(), PersistentState::default());
    for member in 1..members {
        let hello = heartbeat_of(member);
        election.handle_datagram(Time::ZERO, address(member), &hello);
    }
    election.handle_datagram(Time::ZERO, address(0), &declaration_of(0));
    drain(&mut election, Time::ZERO);
    election
}

/// A node that follows the first of two others in quorum mode.
fn voter_of_three() -> Election {
    let quorum = QuorumParams { voters: voters(), demote_grace: Duration::from_secs(5) };
    let params = Params { quorum: Some(quorum), ..Params::default() };
    let persisted = PersistentState { enrolment: Enrolment::Enrolled, ..Default::default() };
    let mut election = start(params, persisted);
    drain(&mut election, Time::ZERO);
    election.handle_datagram(Time::ZERO, address(0), &in_quorum_mode(declaration_of(0)));
    drain(&mut election, Time::ZERO);
    election
}

fn start(params: Params, persisted: PersistentState) -> Election {
    let setup = Setup {
        node_id: own_id(),
        incarnation: Incarnation(1),
        persisted,
        params,
        links_up: true,
        seed: 1,
    };
    Election::new(setup, Time::ZERO)
}

fn own_id() -> NodeId {
    "self".parse().unwrap()
}

fn voters() -> Voters {
    Voters::new([own_id(), node_id(0), node_id(1)]).unwrap()
}

/// Does as little for the outputs as the calling contract allows: the disk answers at once. Counts
/// how often it was needed.
fn drain(election: &mut Election, now: Time) -> usize {
    let mut saves = 0;
    while let Some(output) = election.poll_output() {
        if let Output::Persist(state) = black_box(output) {
            saves += 1;
            election.handle_persisted(now, state);
        }
    }
    saves
}

fn heartbeat_of(sender: usize) -> Message {
    let body = Body::Heartbeat { interval_us: 0, leader: None, conceded: None, acknowledged: None };
    message(sender, Role::Follower, body)
}

fn declaration_of(sender: usize) -> Message {
    message(sender, Role::Leader, Body::Declaration { interval_us: INTERVAL_US, hold_us: 0 })
}

/// The same from a voter, a declaration asking for a pledge.
fn in_quorum_mode(mut message: Message) -> Message {
    message.standing.flags = message.standing.flags.with(Flags::ENROLLED, true);
    message.standing.voters = Some(voters().digest());
    if let Body::Declaration { hold_us, .. } = &mut message.body {
        *hold_us = HOLD_US;
    }
    message
}

fn message(sender: usize, role: Role, body: Body) -> Message {
    let flags = Flags::default().with(Flags::CANDIDATE, true).with(Flags::ELIGIBLE, true);
    Message {
        sender: node_id(sender),
        incarnation: Incarnation(1),
        sequence: Sequence(1),
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
