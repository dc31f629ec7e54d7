//! Scenarios, one for each rule of the election, through the public API only.
//!
//! All of them use one heartbeat a second: alive threshold 3 s, election 1 s, slot 125 ms, answer
//! time 250 ms, deference 2 s, yield time 18 s. Of nodes with the same priority, the one whose id
//! is first in the alphabet is better.

mod absurd_terms;
mod claims;
mod conflicts;
mod crash_plan;
mod directed_yield;
mod elections;
mod eligibility;
mod following;
mod handover;
mod identity;
mod key_modes;
mod leader_checks;
mod pings;
mod probing;
mod quorum;
mod quorum_model_regressions;
mod quorum_regressions;
mod refresh;
mod regressions;
mod replay_protection;
mod replays;
mod startup;
mod statics;
mod unicast;
mod unreleased_hooks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::{Election, Setup};
use crate::core::hook::{HookEvent, HookOutcome, Reason};
use crate::core::output::{Event, Output, StopCause};
use crate::core::params::Params;
use crate::core::persist::PersistentState;
use crate::time::Time;
use crate::types::{Incarnation, NodeId, Priority, Role, Sequence, Term, TieBreak, TieBreakRule};
use crate::wire::echo::Echoes;
use crate::wire::message::{Body, Flags, Message, Standing, VotersDigest};

/// More steps than any scenario takes. Above it, the nodes send to each other without end.
const STEPS_MAX: usize = 100_000;

/// A heartbeat that says nothing, not even when the next one comes.
const HEARTBEAT: Body =
    Body::Heartbeat { interval_us: 0, leader: None, conceded: None, acknowledged: None };

/// A declaration at one heartbeat a second.
const EVERY_SECOND: Body = Body::Declaration { interval_us: 1_000_000, hold_us: 0 };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(text: &str) -> NodeId {
    text.parse().unwrap()
}

/// One heartbeat a second, and a threshold that leaves a quarter of it for probes.
fn every_second() -> Params {
    Params { leader_alive_threshold: ms(1250), ..Params::new(secs(1)) }
}

/// Longer times: a threshold of three intervals, and an election of one.
fn patient() -> Params {
    let params = every_second();
    Params {
        leader_alive_threshold: params.heartbeat_interval * 3,
        leader_election_duration: params.heartbeat_interval,
        ..params
    }
}

fn priority(priority: u8) -> Params {
    Params { priority: Priority(priority), ..patient() }
}

/// Elections on a network without delay or loss, which may cut hosts off. Time passes only when a
/// scenario says so. Hooks end at once, unless they are held. Multicast loopback returns every
/// datagram to its sender.
struct Lan {
    now: Time,
    hosts: BTreeMap<NodeId, Host>,
    cut_off: BTreeSet<NodeId>,
    /// Links that lose every datagram: sender, receiver.
    deaf: BTreeSet<(NodeId, NodeId)>,
    wire: VecDeque<Message>,
}

/// A machine, whose disk survives its daemon.
#[derive(Default)]
struct Host {
    election: Option<Election>,
    disk: PersistentState,
    outputs: Outputs,
    /// How hooks end; held if none.
    hooks_end: Option<HookOutcome>,
    /// How the fence command ends; held if none.
    fence_ends: Option<HookOutcome>,
    /// The disk is slow: writes wait for [`Lan::end_write`].
    disk_is_slow: bool,
    unwritten: Option<PersistentState>,
}

impl Lan {
    fn new() -> Self {
        Lan {
            now: Time::from_millis(1_000_000),
            hosts: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            deaf: BTreeSet::new(),
            wire: VecDeque::new(),
        }
    }

    /// A network on which `name` leads alone, with the settings of [`patient`].
    fn led_by(name: &str) -> Self {
        let mut lan = Lan::new();
        lan.start(name, patient());
        lan.pass(secs(3));
        assert_eq!(lan.leaders(), [name]);
        lan.take(name);
        lan
    }

    /// A network on which `name` follows `leader`, which has just declared under `leader`'s term.
    fn following(name: &str, params: Params, leader: &mut Peer) -> Self {
        let mut lan = Lan::new();
        lan.start(name, params);
        lan.hear(leader.sends(EVERY_SECOND));
        assert_eq!(lan.at(name).leader(), Some(leader.node_id));
        lan.take(name);
        lan
    }

    /// A network on which all of `names` have run with `params` for long enough to be stable.
    fn stable(names: &[&str], params: &Params) -> Self {
        let mut lan = Lan::new();
        for name in names {
            lan.start(name, params.clone());
        }
        lan.pass(secs(20));
        for name in names {
            lan.take(name);
        }
        lan
    }

    /// Starts a daemon with the state on its disk.
    fn start(&mut self, name: &str, params: Params) {
        self.start_linked(name, params, true);
    }

    fn start_linked(&mut self, name: &str, params: Params, links_up: bool) {
        let host = self
            .hosts
            .entry(id(name))
            .or_insert_with(|| Host { hooks_end: Some(HookOutcome::Succeeded), ..Host::default() });
        let setup = Setup {
            node_id: id(name),
            incarnation: Incarnation(host.disk.incarnation.0 + 1),
            persisted: host.disk,
            params,
            links_up,
            seed: 7,
        };
        host.election = Some(Election::new(setup, self.now));
        self.carry_out();
    }

    /// Ends a daemon without warning.
    fn crash(&mut self, name: &str) {
        self.host(name).election = None;
    }

    /// This host's links lose every datagram, unknown to its daemon.
    fn cut_off(&mut self, name: &str) {
        self.cut_off.insert(id(name));
    }

    fn reconnect(&mut self, name: &str) {
        self.cut_off.remove(&id(name));
    }

    /// This host's hooks end like that from now on, or are held.
    fn set_hooks(&mut self, name: &str, end: Option<HookOutcome>) {
        self.host(name).hooks_end = end;
    }

    /// This host's fence command ends like that from now on, or not at all.
    fn set_fence(&mut self, name: &str, end: Option<HookOutcome>) {
        self.host(name).fence_ends = end;
    }

    /// The held hook of this host ends.
    fn end_hook(&mut self, name: &str, outcome: HookOutcome) {
        self.on(name, |election, now| election.handle_hook_finished(now, outcome));
    }

    /// This host's disk writes at once from now on, or waits for [`Lan::end_write`].
    fn set_slow_disk(&mut self, name: &str, is_slow: bool) {
        self.host(name).disk_is_slow = is_slow;
    }

    /// Starts a daemon on a host whose disk hangs.
    fn start_unsaved(&mut self, name: &str, params: Params) {
        let hooks_end = Some(HookOutcome::Succeeded);
        let host = Host { hooks_end, disk_is_slow: true, ..Host::default() };
        self.hosts.insert(id(name), host);
        self.start(name, params);
    }

    /// The disk of this host no longer hangs.
    fn mend_disk(&mut self, name: &str) {
        self.set_slow_disk(name, false);
        if self.host(name).unwritten.is_some() {
            self.end_write(name);
        }
    }

    /// The slow disk of this host has written its newest state.
    fn end_write(&mut self, name: &str) {
        let state = self.host(name).unwritten.take().unwrap();
        self.host(name).disk = state;
        self.on(name, |election, now| election.handle_persisted(now, state));
    }

    /// A datagram of a peer arrives.
    fn hear(&mut self, message: Message) {
        self.wire.push_back(message);
        self.carry_out();
    }

    /// Runs `act` on this host's election.
    fn on<T>(&mut self, name: &str, act: impl FnOnce(&mut Election, Time) -> T) -> T {
        let now = self.now;
        let result = act(self.host(name).election.as_mut().unwrap(), now);
        self.carry_out();
        result
    }

    /// Lets time pass, and wakes each election at its deadlines.
    fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        for _ in 0..STEPS_MAX {
            let next = self
                .elections()
                .filter_map(|election| Some((election.poll_timeout()?.at, election.node_id())))
                .min()
                .filter(|(at, _)| *at <= end);
            let Some((at, node_id)) = next else {
                self.now = end;
                return;
            };
            self.now = self.now.max(at);
            self.on(node_id.as_str(), |election, now| election.handle_timeout(now));
        }
        panic!("never gets through {duration:?}");
    }

    /// Lets time pass while `peers` send `body` twice a second.
    fn pass_with(&mut self, duration: Duration, peers: &mut [(&mut Peer, Body)]) {
        let end = self.now + duration;
        while self.now < end {
            for (peer, body) in &mut *peers {
                let message = peer.sends(*body);
                self.hear(message);
            }
            self.pass(ms(500).min(end.since(self.now)));
        }
    }

    fn at(&self, name: &str) -> &Election {
        self.hosts[&id(name)].election.as_ref().unwrap()
    }

    /// All leaders.
    fn leaders(&self) -> Vec<String> {
        let leading = self.elections().filter(|election| election.is_leader());
        leading.map(|election| election.node_id().to_string()).collect()
    }

    /// The outputs of a host since the last call.
    fn take(&mut self, name: &str) -> Outputs {
        std::mem::take(&mut self.host(name).outputs)
    }

    fn elections(&self) -> impl Iterator<Item = &Election> {
        self.hosts.values().filter_map(|host| host.election.as_ref())
    }

    fn host(&mut self, name: &str) -> &mut Host {
        self.hosts.get_mut(&id(name)).unwrap()
    }

    /// Carries out the outputs of all elections until there are none.
    fn carry_out(&mut self) {
        for _ in 0..STEPS_MAX {
            let now = self.now;
            let silent: Vec<NodeId> = self.cut_off.iter().copied().collect();
            for (node_id, host) in &mut self.hosts {
                for message in host.carry_out(now) {
                    if !silent.contains(node_id) {
                        self.wire.push_back(message);
                    }
                }
            }
            let Some(message) = self.wire.pop_front() else { return };
            let alone = self.sends_to_one(&message);
            let sender = self.hosts.get(&message.sender).and_then(|host| host.election.as_ref());
            let is_open = sender.is_some_and(|sender| !sender.params().gives_proof());
            for (node_id, host) in &mut self.hosts {
                let is_other = alone.is_some_and(|alone| alone != *node_id);
                if is_other
                    || silent.contains(node_id)
                    || self.deaf.contains(&(message.sender, *node_id))
                {
                    continue;
                }
                if let Some(election) = &mut host.election {
                    let from = address(message.sender);
                    if is_open {
                        election.handle_open_datagram(now, from, &message);
                    } else {
                        election.handle_datagram(now, from, &message);
                    }
                }
            }
        }
        panic!("the elections keep each other busy");
    }

    /// The only node that receives a datagram by unicast.
    fn sends_to_one(&self, message: &Message) -> Option<NodeId> {
        let sender = self.hosts.get(&message.sender).and_then(|host| host.election.as_ref());
        message.body.addressee().filter(|_| sender.is_some_and(|sender| sender.params().unicast))
    }
}

impl Host {
    /// Carries out the outputs of the election and returns the datagrams, which may carry only what
    /// is on disk.
    fn carry_out(&mut self, now: Time) -> Vec<Message> {
        let mut sent = Vec::new();
        while let Some(output) = self.election.as_mut().and_then(Election::poll_output) {
            self.outputs.0.push((now, output));
            match output {
                Output::Persist(state) if self.disk_is_slow => self.unwritten = Some(state),
                Output::Persist(state) => {
                    self.disk = state;
                    if let Some(election) = &mut self.election {
                        election.handle_persisted(now, state);
                    }
                }
                Output::Transmit(message) => {
                    assert!(message.term <= self.disk.term, "{message:?} is ahead of the disk");
                    assert!(message.incarnation <= self.disk.incarnation);
                    sent.push(message);
                }
                Output::RunHook(_) => {
                    if let (Some(election), Some(outcome)) = (&mut self.election, self.hooks_end) {
                        election.handle_hook_finished(now, outcome);
                    }
                }
                Output::UpdateCrashPlan
                | Output::Notify(_)
                | Output::Stopped(_)
                | Output::CutHookShort { .. } => {}
                Output::Fence { .. } => {
                    if let (Some(election), Some(outcome)) = (&mut self.election, self.fence_ends) {
                        election.handle_fence_finished(now, outcome);
                    }
                }
            }
        }
        sent
    }
}

/// The address of a node.
fn address(node_id: NodeId) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, node_id.as_str().as_bytes()[0]).into()
}

/// The outputs of one host, with their times.
#[derive(Debug, Default)]
struct Outputs(Vec<(Time, Output)>);

impl Outputs {
    fn sent(&self) -> impl Iterator<Item = (Time, Message)> {
        self.0.iter().filter_map(|(at, output)| match output {
            Output::Transmit(message) => Some((*at, *message)),
            _ => None,
        })
    }

    /// When it announced which interval.
    fn announced(&self) -> Vec<(Time, Duration)> {
        let announced = |(at, message): (Time, Message)| match message.body {
            Body::Heartbeat { interval_us, .. } | Body::Declaration { interval_us, .. } => {
                Some((at, Duration::from_micros(interval_us.into())))
            }
            _ => None,
        };
        self.sent().filter_map(announced).collect()
    }

    /// Each silence that was longer than announced, and what was announced.
    fn overlong_silences(&self) -> Vec<(Duration, Duration)> {
        let announced = self.announced();
        let silences = announced.windows(2).map(|pair| (pair[1].0.since(pair[0].0), pair[0].1));
        silences.filter(|(silence, announced)| silence > announced).collect()
    }

    fn bodies(&self) -> Vec<Body> {
        self.sent().map(|(_, message)| message.body).collect()
    }

    /// The times of the declarations.
    fn declarations(&self) -> Vec<Time> {
        self.declared().map(|(at, _)| at).collect()
    }

    /// The terms of the declarations.
    fn declared_terms(&self) -> Vec<Term> {
        self.declared().map(|(_, message)| message.term).collect()
    }

    fn declared(&self) -> impl Iterator<Item = (Time, Message)> {
        self.sent().filter(|(_, message)| matches!(message.body, Body::Declaration { .. }))
    }

    /// The hook runs.
    fn hooks(&self) -> Vec<(HookEvent, Reason)> {
        self.runs().map(|(_, event, reason)| (event, reason)).collect()
    }

    fn runs(&self) -> impl Iterator<Item = (Time, HookEvent, Reason)> {
        self.0.iter().filter_map(|(at, output)| match output {
            Output::RunHook(run) => Some((*at, run.event, run.reason)),
            _ => None,
        })
    }

    fn events(&self) -> impl Iterator<Item = Event> {
        self.0.iter().filter_map(|(_, output)| match output {
            Output::Notify(event) => Some(*event),
            _ => None,
        })
    }

    fn has_event(&self, event: Event) -> bool {
        self.events().any(|seen| seen == event)
    }

    fn stopped(&self) -> Option<StopCause> {
        self.0.iter().find_map(|(_, output)| match output {
            Output::Stopped(cause) => Some(*cause),
            _ => None,
        })
    }
}

/// A node that a scenario plays.
#[derive(Debug, Clone)]
struct Peer {
    node_id: NodeId,
    incarnation: Incarnation,
    sequence: Sequence,
    term: Term,
    role: Role,
    priority: Priority,
    tie_break: TieBreak,
    flags: Flags,
    voters: Option<VotersDigest>,
}

impl Peer {
    /// A candidate that follows.
    fn new(name: &str) -> Self {
        Peer {
            node_id: id(name),
            incarnation: Incarnation(1),
            sequence: Sequence(0),
            term: Term(0),
            role: Role::Follower,
            priority: Priority::default(),
            tie_break: TieBreak::default(),
            flags: Flags::CANDIDATE.with(Flags::ELIGIBLE, true),
            voters: None,
        }
    }

    /// A candidate that leads under `term`.
    fn leading(name: &str, term: u64) -> Self {
        Peer { role: Role::Leader, term: Term(term), ..Peer::new(name) }
    }

    fn sends(&mut self, body: Body) -> Message {
        self.sequence.0 += 1;
        Message {
            sender: self.node_id,
            incarnation: self.incarnation,
            sequence: self.sequence,
            term: self.term,
            standing: Standing {
                role: self.role,
                priority: self.priority,
                tie_break: self.tie_break,
                flags: self.flags,
                voters: self.voters,
            },
            echoes: Echoes::NONE,
            body,
        }
    }
}
