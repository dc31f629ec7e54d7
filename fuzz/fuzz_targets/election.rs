//! Whatever datagrams, times, commands, crashes and ends of hooks and disk writes come in, in
//! whatever order: the election does not panic, asks for a bounded number of things, tells no term,
//! vote or pledge that is not on disk, votes once in a term, declares under a lease only, runs one
//! hook at a time, and says nothing once it has stopped.

#![no_main]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use arbitrary::Arbitrary;
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::HookOutcome;
use lanelect::core::output::Output;
use lanelect::core::params::{OnElectedFailure, Params, QuorumParams, StaticRole, Thresholds};
use lanelect::core::persist::{Ballot, Enrolment, PersistentState, Pledge};
use lanelect::core::quorum::Voters;
use lanelect::time::Time;
use lanelect::types::{Incarnation, Life, NodeId, Priority, Role, Sequence, Term};
use lanelect::wire::message::{Body, DatagramId, Flags, Message, Standing, VotersDigest};
use libfuzzer_sys::fuzz_target;

/// Nodes that talk: this one's namesake and a few others.
const NODES: u8 = 5;

/// No single call asks for more than this: far above what any does, far below a loop that grows.
const OUTPUTS_MAX: usize = 64;

#[derive(Debug, Arbitrary)]
struct Run {
    settings: Settings,
    disk: Disk,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Arbitrary)]
struct Settings {
    quorum: Option<Quorum>,
    heartbeat_ms: u16,
    threshold_ms: u16,
    election_ms: u16,
    priority: u8,
    candidate: bool,
    fixed: Option<bool>,
    min_candidates: u8,
    preempt: bool,
    ignores_failures: bool,
    /// Failures to fall and successes to rise.
    check: Option<(u8, u8)>,
    links_up: bool,
    seed: u64,
}

/// The first nodes vote, this one among them; or all but this one.
#[derive(Debug, Clone, Arbitrary)]
struct Quorum {
    voters: u8,
    this_one_too: bool,
    grace_ms: u16,
}

/// What an earlier life left behind, and how the disk does now.
#[derive(Debug, Arbitrary)]
struct Disk {
    term: u64,
    incarnation: u64,
    in_maintenance: bool,
    /// None: the life before was in a group that was being founded.
    enrolled: Option<bool>,
    ballot: Option<(u64, u8)>,
    pledge: Option<(u64, u8, u16)>,
    /// Writes end only where a step says so.
    slow: bool,
}

#[derive(Debug, Arbitrary)]
enum Step {
    Hear(Heard),
    /// Time passes; the clock may also stand still.
    Wait(u16),
    /// Sleeps until the election asked to be woken.
    SleepUntilDue,
    EndHook {
        succeeded: bool,
    },
    /// What is being written reaches the disk.
    EndWrite,
    /// The daemon dies, with whatever is not on disk, and starts again.
    Crash,
    Yield,
    Maintain(bool),
    Plug(bool),
    /// The check passes or fails.
    Check(bool),
    Reconfigure(Settings),
    Stop,
}

#[derive(Debug, Arbitrary)]
struct Heard {
    sender: u8,
    incarnation: u8,
    sequence: u16,
    term: u64,
    role: u8,
    priority: u8,
    candidate: bool,
    eligible: bool,
    fixed: bool,
    enrolled: bool,
    founding: bool,
    voters: Agreement,
    body: Said,
}

#[derive(Debug, Arbitrary)]
enum Agreement {
    Same,
    Other,
    Available,
}

/// `back` counts from this node's last datagram, so that answers concern it.
#[derive(Debug, Arbitrary)]
enum Said {
    Heartbeat { interval_us: u32, leader: Option<u8>, conceded: Option<u64>, back: Option<u8> },
    Proposal,
    Declaration { interval_us: u32, hold_us: u32 },
    VoteRequest { hold_us: u32 },
    Vote { candidate: u8, back: u8, granted: bool },
    Inquiry,
    Probe(u8),
    Sighting { leader: u8, back: u8 },
    Resignation(Option<u8>),
    Farewell(bool),
    Claim,
    Objection(u8),
}

fuzz_target!(|run: Run| Host::start(run.settings, &run.disk).live(run.steps));

/// An election and what a daemon around it would know.
struct Host {
    election: Election,
    settings: Settings,
    now: Time,
    /// What is on disk, and what is on its way there.
    persisted: PersistentState,
    writing: Option<PersistentState>,
    disk_is_slow: bool,
    hook_runs: bool,
    stopped: bool,
    /// This node's newest datagram.
    last_sent: DatagramId,
    /// For whom it voted, in this life and those before.
    votes: BTreeMap<Term, Life>,
    /// Until when it had a lease before the step that is being carried out.
    lease_end: Option<Time>,
}

impl Host {
    fn start(settings: Settings, disk: &Disk) -> Self {
        let persisted = persisted(disk);
        let now = Time::from_millis(1);
        let votes = persisted.ballot.map(|ballot| (ballot.term, ballot.candidate));
        Host {
            election: Election::new(setup(&settings, persisted), now),
            settings,
            now,
            persisted,
            writing: None,
            disk_is_slow: disk.slow,
            hook_runs: false,
            stopped: false,
            last_sent: DatagramId { incarnation: Incarnation(0), sequence: Sequence(0) },
            votes: votes.into_iter().collect(),
            lease_end: None,
        }
    }

    fn live(mut self, steps: Vec<Step>) {
        self.carry_out();
        for step in steps {
            self.lease_end = self.election.lease_end();
            self.take(step);
            self.carry_out();
            self.look();
        }
    }

    /// What can be asked at any time must not panic in any state, and is true.
    fn look(&self) {
        let status = self.election.status(self.now);
        assert_eq!(status.role == Role::Leader, self.election.is_leader());
        if self.election.is_leader() && self.settings.quorum.is_some() {
            assert!(status.quorum.is_some_and(|quorum| quorum.lease.is_some()), "no lease");
        }
    }

    fn take(&mut self, step: Step) {
        let (election, now) = (&mut self.election, self.now);
        match step {
            Step::Hear(heard) => {
                let from = Ipv4Addr::new(10, 0, 0, heard.sender % NODES).into();
                let message = message(&heard, &self.settings, self.last_sent);
                election.handle_datagram(now, from, &message);
            }
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms.into());
                election.handle_timeout(self.now);
            }
            Step::SleepUntilDue => {
                self.now = election.poll_timeout().map_or(now, |deadline| deadline.at.max(now));
                election.handle_timeout(self.now);
            }
            Step::EndHook { succeeded } if self.hook_runs => {
                self.hook_runs = false;
                let outcome = if succeeded { HookOutcome::Succeeded } else { HookOutcome::Failed };
                election.handle_hook_finished(now, outcome);
            }
            Step::EndHook { .. } => {}
            Step::Yield => {
                let _ = election.yield_leadership(now);
            }
            Step::Maintain(on) => election.set_maintenance(now, on),
            Step::Plug(up) => election.handle_links(now, up),
            Step::Check(passed) => election.handle_check(now, passed),
            Step::Reconfigure(settings) => {
                election.reconfigure(now, params(&settings));
                // The mode and the voters change with the next life.
                self.settings = Settings { quorum: self.settings.quorum.take(), ..settings };
            }
            Step::Stop => election.stop(now),
            Step::EndWrite => self.end_write(),
            Step::Crash => self.crash(),
        }
    }

    fn end_write(&mut self) {
        if let Some(state) = self.writing.take() {
            self.persisted = state;
            self.election.handle_persisted(self.now, state);
        }
    }

    fn crash(&mut self) {
        self.writing = None;
        self.hook_runs = false;
        self.stopped = false;
        self.lease_end = None;
        self.election = Election::new(setup(&self.settings, self.persisted), self.now);
    }

    /// Does what the daemon would, and checks the calling contract.
    fn carry_out(&mut self) {
        let mut outputs = 0;
        while let Some(output) = self.election.poll_output() {
            outputs += 1;
            assert!(outputs <= OUTPUTS_MAX, "more than {OUTPUTS_MAX} outputs of one step");
            assert!(!self.stopped, "{output:?} after the end");
            match output {
                Output::Persist(state) => self.write(state),
                Output::Transmit(message) => self.check_sent(&message),
                Output::RunHook(_) => {
                    assert!(!self.hook_runs, "two hooks at a time");
                    self.hook_runs = true;
                }
                Output::CutHookShort { .. } => assert!(self.hook_runs, "no hook to cut short"),
                Output::Bequeath | Output::Fence { .. } | Output::Notify(_) => {}
                Output::Stopped(_) => self.stopped = true,
            }
        }
    }

    fn write(&mut self, state: PersistentState) {
        let before = self.writing.as_ref().unwrap_or(&self.persisted);
        assert!(state.term >= before.term, "the term shrinks");
        assert!(state.incarnation >= before.incarnation, "an earlier life");
        if let (Some(old), Some(new)) = (before.ballot, state.ballot) {
            assert!(new.term > old.term || new == old, "a second vote in a term");
        }
        assert!(before.ballot.is_none() || state.ballot.is_some(), "a vote is forgotten");
        if before.enrolment == Enrolment::Enrolled {
            assert_eq!(state.enrolment, Enrolment::Enrolled);
        }
        self.writing = Some(state);
        if !self.disk_is_slow {
            self.end_write();
        }
    }

    /// Nothing is told that is not on disk.
    fn check_sent(&mut self, message: &Message) {
        let disk = &self.persisted;
        assert_eq!(message.sender, node_id(0));
        assert_eq!(message.incarnation, disk.incarnation, "a life that is not on disk");
        assert!(message.term <= disk.term, "a term that is not on disk");
        let enrolled = message.standing.flags.contains(Flags::ENROLLED);
        assert!(!enrolled || disk.enrolment == Enrolment::Enrolled);
        self.last_sent =
            DatagramId { incarnation: message.incarnation, sequence: message.sequence };
        match message.body {
            Body::Declaration { .. } if self.settings.quorum.is_some() => {
                let end = self.lease_end.max(self.election.lease_end());
                assert!(end.is_some_and(|end| self.now < end), "a declaration without a lease");
            }
            Body::VoteRequest { .. } => self.check_vote(message.life(), message.term),
            Body::Vote { candidate, request, granted: true } if is_vote_request(request) => {
                let incarnation = request.incarnation;
                self.check_vote(Life { node_id: candidate, incarnation }, message.term);
            }
            Body::Heartbeat { leader, acknowledged: Some(_), .. } => {
                assert_eq!(disk.pledge.map(|pledge| pledge.to.node_id), leader);
            }
            _ => {}
        }
    }

    fn check_vote(&mut self, candidate: Life, term: Term) {
        let ballot = self.persisted.ballot.expect("a vote is on disk before it is told");
        assert_eq!(ballot.candidate, candidate, "a vote that is not on disk");
        assert!(ballot.term <= term);
        let first = *self.votes.entry(ballot.term).or_insert(candidate);
        assert_eq!(first, candidate, "two votes in {}", ballot.term);
        assert_eq!(self.persisted.pledge.map(|pledge| pledge.to), Some(candidate));
        assert_eq!(self.persisted.enrolment, Enrolment::Enrolled);
    }
}

fn setup(settings: &Settings, persisted: PersistentState) -> Setup {
    Setup {
        node_id: node_id(0),
        incarnation: Incarnation(persisted.incarnation.0.saturating_add(1)),
        persisted,
        params: params(settings),
        links_up: settings.links_up,
        seed: settings.seed,
    }
}

fn persisted(disk: &Disk) -> PersistentState {
    // No vote or pledge is remembered whose term is not.
    let term = |term: u64| Term(term.min(disk.term));
    PersistentState {
        term: Term(disk.term),
        incarnation: Incarnation(disk.incarnation),
        maintenance: disk.in_maintenance,
        enrolment: match disk.enrolled {
            None => Enrolment::Founding,
            Some(false) => Enrolment::None,
            Some(true) => Enrolment::Enrolled,
        },
        ballot: disk
            .ballot
            .map(|(cast, candidate)| Ballot { term: term(cast), candidate: life(candidate) }),
        pledge: disk.pledge.map(|(given, to, ms)| {
            Pledge::new(life(to), term(given), Duration::from_millis(ms.into()))
        }),
    }
}

fn params(settings: &Settings) -> Params {
    let ms = |ms: u16| Duration::from_millis(ms.into());
    Params {
        priority: Priority(settings.priority),
        candidate: settings.candidate,
        static_role: settings.fixed.filter(|_| settings.quorum.is_none()).map(
            |leads| match leads {
                true => StaticRole::Leader,
                false => StaticRole::Follower,
            },
        ),
        leader_alive_threshold: ms(settings.threshold_ms),
        leader_election_duration: ms(settings.election_ms),
        min_candidates: settings.min_candidates.into(),
        preempt: settings.preempt,
        on_elected_failure: match settings.ignores_failures {
            true => OnElectedFailure::Ignore,
            false => OnElectedFailure::Resign,
        },
        check: settings
            .check
            .map(|(fall, rise)| Thresholds { fall: fall.into(), rise: rise.into() }),
        quorum: settings.quorum.as_ref().map(|quorum| QuorumParams {
            voters: voters(quorum),
            demote_grace: ms(quorum.grace_ms),
        }),
        ..Params::new(ms(settings.heartbeat_ms))
    }
}

fn voters(quorum: &Quorum) -> Voters {
    let first = u8::from(!quorum.this_one_too);
    let last = first.max(quorum.voters % NODES);
    Voters::new((first..=last).map(node_id)).expect("each node once, and one at the least")
}

fn message(heard: &Heard, settings: &Settings, last_sent: DatagramId) -> Message {
    let flags = Flags::default()
        .with(Flags::CANDIDATE, heard.candidate)
        .with(Flags::ELIGIBLE, heard.eligible)
        .with(Flags::FIXED, heard.fixed)
        .with(Flags::ENROLLED, heard.enrolled)
        .with(Flags::FOUNDING, heard.founding);
    let role = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
    let body = body(&heard.body, last_sent);
    let sequence =
        u64::from(heard.sequence) * 2 + u64::from(matches!(body, Body::VoteRequest { .. }));
    Message {
        sender: node_id(heard.sender),
        incarnation: Incarnation(heard.incarnation.into()),
        sequence: Sequence(sequence),
        term: Term(heard.term),
        standing: Standing {
            role: role[usize::from(heard.role) % role.len()],
            priority: Priority(heard.priority),
            flags,
            voters: match heard.voters {
                Agreement::Same => settings.quorum.as_ref().map(|q| voters(q).digest()),
                Agreement::Other => Some(VotersDigest([7; 8])),
                Agreement::Available => None,
            },
        },
        body,
    }
}

/// Of the datagrams that arrive, vote requests have odd numbers and no others have.
const fn is_vote_request(datagram: DatagramId) -> bool {
    datagram.sequence.0 % 2 == 1
}

fn body(said: &Said, last_sent: DatagramId) -> Body {
    let earlier = |back: u8| DatagramId {
        sequence: Sequence(last_sent.sequence.0.saturating_sub(back.into())),
        ..last_sent
    };
    match *said {
        Said::Heartbeat { interval_us, leader, conceded, back } => Body::Heartbeat {
            interval_us,
            leader: leader.map(node_id),
            conceded: conceded.map(Term),
            acknowledged: back.map(earlier),
        },
        Said::Proposal => Body::Proposal,
        Said::Declaration { interval_us, hold_us } => Body::Declaration { interval_us, hold_us },
        Said::VoteRequest { hold_us } => Body::VoteRequest { hold_us },
        Said::Vote { candidate, back, granted } => {
            Body::Vote { candidate: node_id(candidate), request: earlier(back), granted }
        }
        Said::Inquiry => Body::Inquiry,
        Said::Probe(leader) => Body::Probe { leader: node_id(leader) },
        Said::Sighting { leader, back } => {
            Body::Sighting { leader: node_id(leader), newest: earlier(back) }
        }
        Said::Resignation(successor) => Body::Resignation { successor: successor.map(node_id) },
        Said::Farewell(id_taken) => Body::Farewell { id_taken },
        Said::Claim => Body::Claim,
        Said::Objection(newcomer) => Body::Objection { newcomer: Incarnation(newcomer.into()) },
    }
}

/// A node in its first life.
fn life(index: u8) -> Life {
    Life { node_id: node_id(index), incarnation: Incarnation(0) }
}

/// This node is the first of the nodes.
fn node_id(index: u8) -> NodeId {
    format!("n{}", index % NODES).parse().expect("a valid name")
}
