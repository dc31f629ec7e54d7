//! A group of elections on a simulated network, made for thousands of nodes.
//!
//! The world of `tests/sim` decodes, delays and checks each datagram at each of its receivers. Here
//! a datagram is one event however many receive it, and nothing is lost, so that a group of 5,000
//! fits into a few minutes and gigabytes. What is driven is the same: the election core of the
//! daemon.
//!
//! Disks and hooks are done at once, and all clocks show the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::HookOutcome;
use lanelect::core::output::{Event, Output, Transition};
use lanelect::core::params::Params;
use lanelect::core::persist::PersistentState;
use lanelect::core::timers::Timer;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Role};
use lanelect::wire::message::{Body, Message};

/// How long a datagram is on its way, the same to everyone.
const LATENCY_MICROS: RangeInclusive<u64> = 150..=250;

/// A second of the simulation, by which received datagrams are counted.
const SECOND: Duration = Duration::from_secs(1);

/// The kind of a heartbeat that comes in its turn, and not because of what happens.
pub(crate) const ROUTINE: &str = "routine heartbeat";

/// Nodes that run the daemon's election, and the network between them.
pub(crate) struct Group {
    pub(crate) now: Time,
    params: Params,
    nodes: Vec<Option<Node>>,
    /// Whom the next thing happens to, unless a datagram arrives before.
    wakes: BTreeSet<(Time, usize)>,
    /// Datagrams by their arrival; the number keeps those of the same time in order.
    wire: BTreeMap<(Time, u64), Datagram>,
    /// Datagrams sent so far.
    sent: u64,
    rng: Rng,
    tally: Tally,
    /// When the second ends in which datagrams are counted now.
    second_ends: Time,
    /// Whether somebody's role or leader has changed since it was last asked who leads.
    changed: bool,
}

/// What happened since it was last asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Datagrams sent, by what they were.
    pub(crate) sent: BTreeMap<String, u64>,
    /// Datagrams received, all nodes together.
    pub(crate) received: u64,
    /// How often a node became the leader, and when it last happened.
    pub(crate) accessions: u64,
    pub(crate) last_accession: Time,
    /// How often one that runs stopped being the leader.
    pub(crate) demotions: u64,
    /// Most datagrams that one node received in one second.
    pub(crate) busiest_second: u32,
}

struct Node {
    election: Election,
    /// When it wants to be woken: its entry in [`Group::wakes`].
    wakes_at: Option<Time>,
    received_this_second: u32,
}

struct Datagram {
    from: usize,
    message: Message,
}

impl Group {
    /// A group of `size` nodes with these settings, which all start within `spread`.
    pub(crate) fn start(size: usize, params: &Params, spread: Duration, seed: u64) -> Group {
        let mut group = Group {
            now: Time::ZERO,
            params: params.clone(),
            nodes: (0..size).map(|_| None).collect(),
            wakes: BTreeSet::new(),
            wire: BTreeMap::new(),
            sent: 0,
            rng: Rng::with_seed(seed),
            tally: Tally::default(),
            second_ends: Time::ZERO + SECOND,
            changed: false,
        };
        let mut starts: Vec<_> =
            (0..size).map(|index| (group.random_duration(spread), index)).collect();
        starts.sort_unstable();
        for (at, index) in starts {
            group.run_until(Time::ZERO + at);
            group.start_node(index);
        }
        group
    }

    /// Starts a node, with an empty disk.
    pub(crate) fn start_node(&mut self, index: usize) {
        let setup = Setup {
            node_id: node_id(index),
            // Above that of any life before.
            incarnation: Incarnation(self.now.as_nanos()),
            persisted: PersistentState::default(),
            params: self.params.clone(),
            links_up: true,
            seed: self.rng.u64(..),
        };
        let election = Election::new(setup, self.now);
        self.nodes[index] = Some(Node { election, wakes_at: None, received_this_second: 0 });
        self.carry_out(index, None);
    }

    /// Ends a node without any warning.
    pub(crate) fn crash(&mut self, index: usize) {
        if let Some(at) = self.nodes[index].take().and_then(|node| node.wakes_at) {
            self.wakes.remove(&(at, index));
        }
        self.changed = true;
    }

    /// Runs for `duration`.
    pub(crate) fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// Runs until one node leads and all the others follow it, and returns which; none where that
    /// takes longer than `limit`.
    pub(crate) fn run_until_led(&mut self, limit: Duration) -> Option<usize> {
        let end = self.now + limit;
        loop {
            let leader = if std::mem::take(&mut self.changed) { self.leader() } else { None };
            if leader.is_some() {
                return leader;
            }
            if !self.step(end) {
                return None;
            }
        }
    }

    /// The node that leads and that all the others follow.
    pub(crate) fn leader(&self) -> Option<usize> {
        let mut leaders = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.as_ref().is_some_and(|node| node.election.is_leader()));
        let (Some((index, Some(leader))), None) = (leaders.next(), leaders.next()) else {
            return None;
        };
        let id = Some(leader.election.node_id());
        let agreed = self.nodes.iter().flatten().all(|node| node.election.leader() == id);
        agreed.then_some(index)
    }

    /// What happened since this was last asked for, and begins a new count.
    pub(crate) fn take_tally(&mut self) -> Tally {
        self.end_second();
        self.second_ends = self.now + SECOND;
        std::mem::take(&mut self.tally)
    }

    /// Any time up to `most`.
    pub(crate) fn random_duration(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.rng.u64(0..=u64::try_from(most.as_nanos()).unwrap()))
    }

    /// Does what is next, unless that is after `end`. A datagram that arrives is handed in before a
    /// timer that is due.
    fn step(&mut self, end: Time) -> bool {
        let arrives = self.wire.first_key_value().map(|((at, _), _)| *at);
        let wakes = self.wakes.first().map(|(at, _)| *at);
        match (arrives, wakes) {
            (Some(at), wakes) if at <= end && wakes.is_none_or(|wake| at <= wake) => {
                self.now = at;
                self.deliver();
            }
            (_, Some(at)) if at <= end => {
                self.now = at;
                self.wake();
            }
            _ => return false,
        }
        true
    }

    fn deliver(&mut self) {
        let Some((_, Datagram { from, message })) = self.wire.pop_first() else { return };
        while self.now >= self.second_ends {
            self.end_second();
        }
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            let Some(node) = &mut self.nodes[to] else { continue };
            node.received_this_second += 1;
            self.tally.received += 1;
            node.election.handle_datagram(self.now, address(from), &message);
            self.carry_out(to, None);
        }
    }

    /// Counts the second that is over, and begins another.
    fn end_second(&mut self) {
        for node in self.nodes.iter_mut().flatten() {
            let received = std::mem::take(&mut node.received_this_second);
            self.tally.busiest_second = self.tally.busiest_second.max(received);
        }
        self.second_ends += SECOND;
    }

    fn wake(&mut self) {
        let Some((_, index)) = self.wakes.pop_first() else { return };
        let Some(node) = &mut self.nodes[index] else { return };
        node.wakes_at = None;
        let why = node.election.poll_timeout().map(|deadline| deadline.timer);
        node.election.handle_timeout(self.now);
        self.carry_out(index, why);
    }

    /// Carries out what a node's election asks for, after the timer `why` fired, and schedules its
    /// next wake.
    fn carry_out(&mut self, index: usize, why: Option<Timer>) {
        let Some(mut node) = self.nodes[index].as_mut() else { return };
        while let Some(output) = node.election.poll_output() {
            match output {
                Output::Persist(state) => node.election.handle_persisted(self.now, state),
                Output::RunHook(_) => {
                    node.election.handle_hook_finished(self.now, HookOutcome::Succeeded);
                }
                Output::Notify(Event::Transition(transition)) => self.note(&transition),
                Output::Transmit(message) => self.send(index, message, why),
                _ => {}
            }
            node = self.nodes[index].as_mut().unwrap();
        }
        let wakes_at = node.election.poll_timeout().map(|deadline| deadline.at);
        if wakes_at != node.wakes_at {
            let before = std::mem::replace(&mut node.wakes_at, wakes_at);
            before.map(|at| self.wakes.remove(&(at, index)));
            wakes_at.map(|at| self.wakes.insert((at, index)));
        }
    }

    fn note(&mut self, transition: &Transition) {
        self.changed = true;
        match (transition.previous_role, transition.role) {
            (Role::Leader, Role::Leader) => {}
            (_, Role::Leader) => {
                self.tally.accessions += 1;
                self.tally.last_accession = self.now;
            }
            (Role::Leader, _) => self.tally.demotions += 1,
            _ => {}
        }
    }

    fn send(&mut self, from: usize, message: Message, why: Option<Timer>) {
        let is_heartbeat = matches!(message.body, Body::Heartbeat { .. });
        let is_routine = is_heartbeat && why == Some(Timer::Heartbeat);
        let kind = if is_routine { ROUTINE.to_owned() } else { kind(&message.body) };
        *self.tally.sent.entry(kind).or_default() += 1;
        self.sent += 1;
        let arrives = self.now + Duration::from_micros(self.rng.u64(LATENCY_MICROS));
        self.wire.insert((arrives, self.sent), Datagram { from, message });
    }
}

/// The name of what a datagram is about.
pub(crate) fn kind(body: &Body) -> String {
    let text = format!("{body:?}");
    let name = text.split(|c: char| !c.is_alphanumeric()).next();
    name.unwrap_or_default().to_lowercase()
}

/// Named so that byte order is the order of the numbers.
fn node_id(index: usize) -> NodeId {
    format!("node-{index:05}").parse().unwrap()
}

fn address(index: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + u32::try_from(index).unwrap()).into()
}
