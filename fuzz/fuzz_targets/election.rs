//! Whatever datagrams, times, commands and ends of hooks come in, in whatever order: the election
//! does not panic, asks for a bounded number of things, tells no term that it has not asked to be
//! persisted, runs one hook at a time, and says nothing once it has stopped.

#![no_main]

use std::net::Ipv4Addr;
use std::time::Duration;

use arbitrary::Arbitrary;
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::HookOutcome;
use lanelect::core::output::Output;
use lanelect::core::params::{OnElectedFailure, Params, StaticRole};
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Priority, Role, Sequence, Term};
use lanelect::wire::message::{Body, Flags, Message, Standing};
use libfuzzer_sys::fuzz_target;

/// Nodes that talk: this one's namesake and a few others.
const NODES: u8 = 5;

/// No single call asks for more than this: far above what any does, far below a loop that grows.
const OUTPUTS_MAX: usize = 64;

#[derive(Debug, Arbitrary)]
struct Run {
    settings: Settings,
    steps: Vec<Step>,
}

#[derive(Debug, Arbitrary)]
struct Settings {
    heartbeat_ms: u16,
    threshold_ms: u16,
    election_ms: u16,
    priority: u8,
    candidate: bool,
    fixed: Option<bool>,
    min_candidates: u8,
    preempt: bool,
    ignores_failures: bool,
    in_maintenance: bool,
    links_up: bool,
    term: u64,
    incarnation: u64,
    seed: u64,
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
    Yield,
    Maintain(bool),
    Plug(bool),
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
    body: Said,
}

#[derive(Debug, Arbitrary)]
enum Said {
    Heartbeat,
    Proposal,
    Declaration(u32),
    Resignation(Option<u8>),
    Farewell(bool),
    Claim,
    Objection(u8),
}

fuzz_target!(|run: Run| Host::start(&run.settings).live(run.steps));

/// An election and what a daemon around it would know.
struct Host {
    election: Election,
    now: Time,
    persisted: PersistentState,
    hook_runs: bool,
    stopped: bool,
}

impl Host {
    fn start(settings: &Settings) -> Self {
        let persisted = PersistentState {
            term: Term(settings.term),
            incarnation: Incarnation(settings.incarnation),
            maintenance: settings.in_maintenance,
        };
        let setup = Setup {
            node_id: node_id(0),
            incarnation: Incarnation(settings.incarnation.saturating_add(1)),
            persisted,
            params: params(settings),
            links_up: settings.links_up,
            seed: settings.seed,
        };
        let now = Time::from_millis(1);
        let election = Election::new(setup, now);
        Host { election, now, persisted, hook_runs: false, stopped: false }
    }

    fn live(mut self, steps: Vec<Step>) {
        self.carry_out();
        for step in steps {
            self.take(step);
            self.carry_out();
            // Must not panic in any state.
            let _ = self.election.status(self.now);
        }
    }

    fn take(&mut self, step: Step) {
        let (election, now) = (&mut self.election, self.now);
        match step {
            Step::Hear(heard) => {
                let from = Ipv4Addr::new(10, 0, 0, heard.sender % NODES).into();
                election.handle_datagram(now, from, &message(&heard));
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
            Step::Reconfigure(settings) => election.reconfigure(now, params(&settings)),
            Step::Stop => election.stop(now),
        }
    }

    /// Does what the daemon would, and checks the calling contract.
    fn carry_out(&mut self) {
        let outputs: Vec<Output> =
            std::iter::from_fn(|| self.election.poll_output()).take(OUTPUTS_MAX + 1).collect();
        assert!(outputs.len() <= OUTPUTS_MAX, "more than {OUTPUTS_MAX} outputs of one call");
        for output in outputs {
            assert!(!self.stopped, "{output:?} after the end");
            match output {
                Output::Persist(state) => {
                    assert!(state.term >= self.persisted.term, "the term shrinks");
                    self.persisted = state;
                }
                Output::Transmit(message) => {
                    assert!(message.term <= self.persisted.term, "a term that is not on disk");
                }
                Output::RunHook(_) => {
                    assert!(!self.hook_runs, "two hooks at a time");
                    self.hook_runs = true;
                }
                Output::Notify(_) => {}
                Output::Stopped(_) => self.stopped = true,
            }
        }
    }
}

fn params(settings: &Settings) -> Params {
    let ms = |ms: u16| Duration::from_millis(ms.into());
    Params {
        priority: Priority(settings.priority),
        candidate: settings.candidate,
        static_role: settings.fixed.map(|leads| match leads {
            true => StaticRole::Leader,
            false => StaticRole::Follower,
        }),
        leader_alive_threshold: ms(settings.threshold_ms),
        leader_election_duration: ms(settings.election_ms),
        min_candidates: settings.min_candidates.into(),
        preempt: settings.preempt,
        on_elected_failure: match settings.ignores_failures {
            true => OnElectedFailure::Ignore,
            false => OnElectedFailure::Resign,
        },
        ..Params::new(ms(settings.heartbeat_ms))
    }
}

fn message(heard: &Heard) -> Message {
    let flags = Flags::default()
        .with(Flags::CANDIDATE, heard.candidate)
        .with(Flags::ELIGIBLE, heard.eligible)
        .with(Flags::FIXED, heard.fixed);
    let role = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
    Message {
        sender: node_id(heard.sender),
        incarnation: Incarnation(heard.incarnation.into()),
        sequence: Sequence(heard.sequence.into()),
        term: Term(heard.term),
        standing: Standing {
            role: role[usize::from(heard.role) % role.len()],
            priority: Priority(heard.priority),
            flags,
        },
        body: body(&heard.body),
    }
}

fn body(said: &Said) -> Body {
    match *said {
        Said::Heartbeat => Body::Heartbeat { leader: None, conceded: None, acknowledged: None },
        Said::Proposal => Body::Proposal,
        Said::Declaration(interval_us) => Body::Declaration { interval_us },
        Said::Resignation(successor) => Body::Resignation { successor: successor.map(node_id) },
        Said::Farewell(id_taken) => Body::Farewell { id_taken },
        Said::Claim => Body::Claim,
        Said::Objection(newcomer) => Body::Objection { newcomer: Incarnation(newcomer.into()) },
    }
}

/// This node is the first of the nodes.
fn node_id(index: u8) -> NodeId {
    format!("n{}", index % NODES).parse().expect("a valid name")
}
