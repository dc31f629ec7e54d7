//! Quorum mode. At one heartbeat a second a lease lasts 3 s, and the demote grace here is 5 s. A
//! pledge lasts 8.162 s after an acknowledgement, and 3.061 s after a vote.

mod candidates;
mod claims;
mod directed_yield;
mod enrolment;
mod hooks;
mod late_datagrams;
mod leases;
mod shared_life;
mod terms;
mod voters;

use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::{Ballot, Enrolment, Pledge};
use crate::core::quorum::Voters;
use crate::core::status::VoterStanding;
use crate::types::Life;

const THREE: [&str; 3] = ["a", "b", "c"];

pub(super) fn quorum(voters: &[&str]) -> Params {
    let voters = Voters::new(voters.iter().map(|name| id(name))).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..patient() }
}

/// A disk with the state of a voter that has founded a group.
fn enrolled() -> PersistentState {
    PersistentState { enrolment: Enrolment::Enrolled, ..PersistentState::default() }
}

/// Three voters that have founded their group and elected `a`.
fn three() -> Lan {
    let mut lan = Lan::stable(&THREE, &quorum(&THREE));
    assert_eq!(lan.leaders(), ["a"]);
    lan.pass(secs(1));
    for name in THREE {
        lan.take(name);
    }
    lan
}

/// Three voters whose leader `a` has been cut off for so long. Its hooks run until they are ended.
fn cut_off_with_a_hook_that_runs(duration: Duration) -> Lan {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.cut_off("a");
    lan.pass(duration);
    lan
}

/// A network on which only `name` is real, one of three voters, after its start-up.
fn alone(name: &str) -> Lan {
    alone_with(name, enrolled())
}

fn alone_with(name: &str, disk: PersistentState) -> Lan {
    let mut lan = Lan::new();
    let host = Host { hooks_end: Some(HookOutcome::Succeeded), disk, ..Host::default() };
    lan.hosts.insert(id(name), host);
    lan.start(name, quorum(&THREE));
    lan.pass(secs(3));
    lan.take(name);
    lan
}

/// A voter that a scenario plays, one of [`THREE`].
fn voter(name: &str) -> Peer {
    let flags = Flags::CANDIDATE.with(Flags::ELIGIBLE, true).with(Flags::ENROLLED, true);
    Peer { flags, voters: Some(quorum(&THREE).quorum.unwrap().voters.digest()), ..Peer::new(name) }
}

/// The same voter when it asks for votes or leads in `term`.
fn voter_in(name: &str, term: u64) -> Peer {
    Peer { term: Term(term), ..voter(name) }
}

impl Peer {
    /// A vote request at one heartbeat a second.
    fn asks_for_votes(&mut self) -> Message {
        self.role = Role::Candidate;
        self.sends(Body::VoteRequest { hold_us: 3_060_607 })
    }

    fn declares(&mut self) -> Message {
        self.role = Role::Leader;
        self.sends(Body::Declaration { interval_us: 1_000_000, hold_us: 8_161_617 })
    }

    /// A heartbeat that acknowledges `declaration`.
    fn acknowledges(&mut self, declaration: &Message) -> Message {
        let leader = Some(declaration.sender);
        let acknowledged = Some(declaration.id());
        self.sends(Body::Heartbeat { interval_us: 0, leader, conceded: None, acknowledged })
    }

    fn answers(&mut self, request: &Message, granted: bool) -> Message {
        let candidate = request.sender;
        self.sends(Body::Vote { candidate, request: request.id(), granted })
    }
}

impl Outputs {
    /// The last datagram for which `fits` holds.
    fn last(&self, fits: impl Fn(&Body) -> bool) -> Message {
        let fitting = self.sent().map(|(_, message)| message).filter(|message| fits(&message.body));
        fitting.last().expect("none was sent")
    }

    fn last_proposal(&self) -> Message {
        self.last(|body| matches!(body, Body::Proposal))
    }

    fn last_vote_request(&self) -> Message {
        self.last(|body| matches!(body, Body::VoteRequest { .. }))
    }

    fn last_declaration(&self) -> Message {
        self.last(|body| matches!(body, Body::Declaration { .. }))
    }

    /// The answers to candidates: to whom, and whether granted.
    fn votes(&self) -> Vec<(String, bool)> {
        let answer = |body| match body {
            Body::Vote { candidate, granted, .. } => Some((candidate.to_string(), granted)),
            _ => None,
        };
        self.bodies().into_iter().filter_map(answer).collect()
    }

    fn acknowledgements(&self) -> usize {
        let acknowledges =
            |body: &Body| matches!(body, Body::Heartbeat { acknowledged: Some(_), .. });
        self.bodies().iter().filter(|body| acknowledges(body)).count()
    }

    fn transitions(&self) -> Vec<Event> {
        self.events().filter(|event| matches!(event, Event::Transition(_))).collect()
    }

    fn saves(&self) -> usize {
        self.0.iter().filter(|(_, output)| matches!(output, Output::Persist(_))).count()
    }

    /// The times of the demote hook's runs.
    fn demotions(&self) -> Vec<Time> {
        let demoted = self.runs().filter(|(_, event, _)| *event == HookEvent::Demoted);
        demoted.map(|(at, ..)| at).collect()
    }

    fn fences(&self) -> Vec<Time> {
        let fenced = self.0.iter().filter(|(_, output)| matches!(output, Output::Fence { .. }));
        fenced.map(|(at, _)| *at).collect()
    }
}

fn yes(name: &str) -> (String, bool) {
    (name.to_owned(), true)
}

fn no(name: &str) -> (String, bool) {
    (name.to_owned(), false)
}
