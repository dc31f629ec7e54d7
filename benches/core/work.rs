//! The work that is measured, each kind one message at a time.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::output::Output;
use lanelect::core::params::{Params, QuorumParams};
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::core::quorum::Voters;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Priority, Role, Sequence, Term, TieBreak};
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::echo::Echoes;
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Flags, Message, Standing};

/// The default interval between declarations, in microseconds.
const INTERVAL_US: u32 = 1_000_000;

/// The default lease and demote grace, with the margin for drifting clocks, in microseconds.
const HOLD_US: u32 = 8_161_617;

/// Where all datagrams come from.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Small enough that no timer comes due while a benchmark runs.
const STEP: Duration = Duration::from_nanos(1);

/// What is done again and again, each time with one message.
pub(crate) type Work = Box<dyn FnMut()>;

/// Takes in heartbeats of all members but the leader in turn, in no order that a cache could profit
/// from.
pub(crate) fn heartbeats(members: usize) -> Work {
    taking_in_from_all(members, heartbeat())
}

/// The same with questions whether the leader is still there, which every follower hears.
pub(crate) fn probes(members: usize) -> Work {
    taking_in_from_all(members, said_by_follower(|body| matches!(body, Body::Probe { .. })))
}

/// Takes in the leader's declarations.
pub(crate) fn declarations(members: usize) -> Work {
    taking_in(follower_among(members), vec![node_id(0)], declaration())
}

/// In quorum mode: takes in the leader's declarations, and acknowledges them.
pub(crate) fn acknowledgements() -> Work {
    taking_in(voter_of_three(), vec![node_id(0)], in_quorum_mode(declaration()))
}

/// Turns a message into a datagram.
pub(crate) fn encoding(sealed: bool) -> Work {
    let (codec, message) = (codec(sealed), declaration());
    let mut buffer = Vec::new();
    Box::new(move || {
        codec.encode(ADDRESS, black_box(&message), &mut buffer).unwrap();
        black_box(&buffer);
    })
}

/// Turns a datagram into a message.
pub(crate) fn decoding(sealed: bool) -> Work {
    let codec = codec(sealed);
    let mut datagram = Vec::new();
    codec.encode(ADDRESS, &declaration(), &mut datagram).unwrap();
    Box::new(move || {
        let _ = black_box(codec.decode(ADDRESS, black_box(&datagram)).unwrap());
    })
}

fn taking_in_from_all(members: usize, message: Message) -> Work {
    let mut senders: Vec<NodeId> = (1..members).map(node_id).collect();
    Rng::with_seed(1).shuffle(&mut senders);
    taking_in(follower_among(members), senders, message)
}

/// Hands `election`, which is settled in its group, `message` again and again, each time with the
/// next number and from the next of `senders`.
fn taking_in(mut election: Election, senders: Vec<NodeId>, mut message: Message) -> Work {
    let mut now = Time::from_millis(1);
    let mut turn = 0;
    Box::new(move || {
        now += STEP;
        turn = if turn + 1 < senders.len() { turn + 1 } else { 0 };
        message.sender = senders[turn];
        message.sequence.0 += 1;
        election.handle_datagram(now, ADDRESS, black_box(&message));
        send_all(&mut election);
    })
}

/// Takes what the election asks for: in a settled group nothing but to send something.
fn send_all(election: &mut Election) {
    while let Some(output) = election.poll_output() {
        assert!(matches!(black_box(output), Output::Transmit(_)), "not settled: {output:?}");
    }
}

/// A node that follows the first of `members` others and knows them all.
fn follower_among(members: usize) -> Election {
    let mut election = start(own_id(), Params::default(), PersistentState::default());
    for member in 1..members {
        let hello = Message { sender: node_id(member), ..heartbeat() };
        election.handle_datagram(Time::ZERO, ADDRESS, &hello);
    }
    follow(&mut election, &declaration());
    election
}

/// A node that follows the first of two others in quorum mode.
fn voter_of_three() -> Election {
    let quorum = QuorumParams { voters: voters(), demote_grace: Duration::from_secs(5) };
    let params = Params { quorum: Some(quorum), ..Params::default() };
    let persisted = PersistentState { enrolment: Enrolment::Enrolled, ..Default::default() };
    let mut election = start(own_id(), params, persisted);
    follow(&mut election, &in_quorum_mode(declaration()));
    election
}

fn follow(election: &mut Election, declaration: &Message) {
    drain(election, Time::ZERO);
    election.handle_datagram(Time::ZERO, ADDRESS, declaration);
    drain(election, Time::ZERO);
}

fn heartbeat() -> Message {
    said_by_follower(|body| matches!(body, Body::Heartbeat { .. }))
}

/// The first such message of a node that follows node 0 and hears no more of it.
fn said_by_follower(is_wanted: fn(&Body) -> bool) -> Message {
    let mut election = start(node_id(1), Params::default(), PersistentState::default());
    drain(&mut election, Time::ZERO);
    election.handle_datagram(Time::ZERO, ADDRESS, &declaration());
    let mut now = Time::ZERO;
    while election.leader() == Some(node_id(0)) {
        let mut sent = drain(&mut election, now).into_iter();
        if let Some(message) = sent.find(|message| is_wanted(&message.body)) {
            return message;
        }
        now = election.poll_timeout().unwrap().at;
        election.handle_timeout(now);
    }
    panic!("a follower does not say such a thing");
}

fn start(node_id: NodeId, params: Params, persisted: PersistentState) -> Election {
    let setup =
        Setup { node_id, incarnation: Incarnation(1), persisted, params, links_up: true, seed: 1 };
    Election::new(setup, Time::ZERO)
}

/// Carries out what the election asks for, with a disk that answers at once; returns what was sent.
fn drain(election: &mut Election, now: Time) -> Vec<Message> {
    let mut sent = Vec::new();
    while let Some(output) = election.poll_output() {
        match output {
            Output::Persist(state) => election.handle_persisted(now, state),
            Output::Transmit(message) => sent.push(message),
            _ => {}
        }
    }
    sent
}

fn own_id() -> NodeId {
    "self".parse().unwrap()
}

fn voters() -> Voters {
    Voters::new([own_id(), node_id(0), node_id(1)]).unwrap()
}

/// What node 0 says, which leads.
fn declaration() -> Message {
    let flags = Flags::default().with(Flags::CANDIDATE, true).with(Flags::ELIGIBLE, true);
    let (role, priority) = (Role::Leader, Priority::default());
    Message {
        sender: node_id(0),
        incarnation: Incarnation(1),
        sequence: Sequence(1),
        term: Term(1),
        standing: Standing { role, priority, tie_break: TieBreak::default(), flags, voters: None },
        echoes: Echoes::NONE,
        body: Body::Declaration { interval_us: INTERVAL_US, hold_us: 0 },
    }
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

fn node_id(index: usize) -> NodeId {
    format!("node-{index:05}").parse().unwrap()
}

fn codec(sealed: bool) -> Codec {
    let keyring = sealed.then(|| Keyring::new(&Key::new([7; KEY_LEN]), &[]).unwrap());
    Codec::new("default".parse().unwrap(), keyring)
}
