//! One host: the very election core of the daemon, its disk, and the hooks that its hooks move.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::{HookEvent, HookOutcome};
use lanelect::core::output::Output;
use lanelect::core::params::Params;
use lanelect::core::persist::{Ballot, PersistentState};
use lanelect::time::Time;
use lanelect::types::{DatagramId, Incarnation, Life, NodeId, Term};
use lanelect::wire::message::{Body, Message};

use crate::clock::Clock;
use crate::sabotage::Sabotage;

/// What does not change about a host.
#[derive(Debug, Clone)]
pub struct Host {
    pub node_id: NodeId,
    pub params: Params,
    pub clock: Clock,
    pub sabotage: Option<Sabotage>,
}

/// What may happen to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// It is woken.
    Wake,
    /// The datagram of this number reaches it.
    Hear(u32),
    /// Of what it asked to be written, this is on disk, and what is older is skipped.
    Written(usize),
    /// Its hook ends well.
    HookEnds,
    /// The operator asks it to yield.
    Yield,
    /// Its daemon is gone. Of what was not yet on disk, nothing gets there.
    Crash,
    /// The same, and the disk is lost as well.
    LoseDisk,
    /// Its daemon starts with what the disk kept.
    Start,
}

/// A host as it stands.
#[derive(Debug, Clone)]
pub struct Node {
    election: Option<Election>,
    incarnation: Incarnation,
    disk: PersistentState,
    /// What is to be written and is not on disk yet, the oldest first.
    writes: Vec<PersistentState>,
    /// The hook that runs.
    hook: Option<HookEvent>,
    /// Whether hooks have begun to take over and not let go since, in this life or an earlier.
    hooks_hold: bool,
    /// Until when a majority keeps the time free in which they do so.
    covered_until: Time,
    /// The vote requests that this life has heard.
    requests: Vec<(NodeId, DatagramId, Term)>,
    /// Every vote that this host ever told anybody, in any life.
    votes: Vec<Ballot>,
}

/// What came of an input.
#[derive(Debug, Default)]
pub struct Effects {
    pub sent: Vec<Message>,
    /// The term of a declaration among that.
    pub declared: Option<Term>,
    /// The term that the hooks were told to take over with.
    pub elected: Option<Term>,
    /// What must not happen and did.
    pub breach: Option<String>,
}

impl Node {
    /// A host that is switched off.
    pub const fn off(disk: PersistentState) -> Self {
        Node {
            election: None,
            incarnation: Incarnation(0),
            disk,
            writes: Vec::new(),
            hook: None,
            hooks_hold: false,
            covered_until: Time::ZERO,
            requests: Vec::new(),
            votes: Vec::new(),
        }
    }

    /// Its election, while its daemon runs.
    pub const fn election(&self) -> Option<&Election> {
        self.election.as_ref()
    }

    /// How many writes are under way.
    pub fn writes(&self) -> usize {
        self.writes.len()
    }

    /// Whether a hook runs.
    pub const fn hook_runs(&self) -> bool {
        self.hook.is_some()
    }

    /// Whether the election wants to be woken by `now`.
    pub fn is_due(&self, now: Time) -> bool {
        let deadline = self.election.as_ref().and_then(Election::poll_timeout);
        deadline.is_some_and(|deadline| deadline.at <= now)
    }

    /// Whether whoever asks at `now` is told that this node leads.
    pub fn leads(&self, host: &Host, now: Time) -> bool {
        self.election.as_ref().is_some_and(|election| match host.sabotage {
            Some(Sabotage::AnswerWithoutClock) => election.is_leader(),
            _ => election.is_leader_at(now),
        })
    }

    /// Whether the hooks hold what only one host may hold, at a time at which they may.
    pub fn holds(&self, now: Time) -> bool {
        self.hooks_hold && now < self.covered_until
    }

    /// Whether a majority follows it and its hooks were told so.
    pub fn leaderships(&self, host: &Host, now: Time) -> bool {
        self.leads(host, now) && self.hooks_hold
    }

    /// Identifies the state, as far as anything depends on it.
    pub fn fingerprint(&self, clock: Clock) -> u64 {
        let mut hasher = clock.hasher();
        (&self.election, self.incarnation, self.disk, &self.writes).hash(&mut hasher);
        (self.hook, self.hooks_hold, self.covered_until).hash(&mut hasher);
        (&self.requests, &self.votes).hash(&mut hasher);
        hasher.finish()
    }

    /// Takes in what happens at `now`; `messages` are the datagrams by their numbers.
    pub fn take(&mut self, host: &Host, now: Time, input: Input, messages: &[Message]) -> Effects {
        let mut effects = Effects::default();
        match input {
            Input::Crash | Input::LoseDisk => self.end_life(input == Input::LoseDisk),
            Input::Start => self.begin_life(host, now),
            Input::HookEnds => self.end_hook(now),
            Input::Written(index) => self.finish_write(host, now, index),
            Input::Hear(message) => self.hear(now, &messages[message as usize]),
            Input::Wake => self.ask(|election| election.handle_timeout(now)),
            Input::Yield => self.ask(|election| {
                let _ = election.yield_leadership(now);
            }),
        }
        self.carry_out(host, now, &mut effects);
        self.note_cover(host);
        effects
    }

    fn ask(&mut self, what: impl FnOnce(&mut Election)) {
        if let Some(election) = &mut self.election {
            what(election);
        }
    }

    fn end_life(&mut self, disk_lost: bool) {
        self.election = None;
        self.hook = None;
        self.writes.clear();
        self.requests.clear();
        if disk_lost {
            self.disk = PersistentState::default();
        }
    }

    fn begin_life(&mut self, host: &Host, now: Time) {
        self.incarnation.0 += 1;
        let mut persisted = self.disk;
        match host.sabotage {
            Some(Sabotage::LoseVotes) => (persisted.ballot, persisted.pledge) = (None, None),
            Some(Sabotage::LosePledges) => persisted.pledge = None,
            _ => {}
        }
        let setup = Setup {
            node_id: host.node_id,
            incarnation: self.incarnation,
            persisted,
            params: host.params.clone(),
            links_up: true,
            seed: 7,
        };
        self.election = Some(Election::new(setup, now));
    }

    fn hear(&mut self, now: Time, message: &Message) {
        if let Body::VoteRequest { .. } = message.body {
            self.requests.push((message.sender, id_of(message), message.term));
        }
        let from: IpAddr = Ipv4Addr::LOCALHOST.into();
        self.ask(|election| election.handle_datagram(now, from, message));
    }

    fn finish_write(&mut self, host: &Host, now: Time, index: usize) {
        let Some(state) = self.writes.drain(..=index).next_back() else { return };
        if host.sabotage != Some(Sabotage::ReportWritesEarly) {
            self.disk = state;
        }
        self.ask(|election| election.handle_persisted(now, state));
    }

    fn end_hook(&mut self, now: Time) {
        if let Some(HookEvent::Started | HookEvent::Demoted) = self.hook.take() {
            self.hooks_hold = false;
            self.covered_until = Time::ZERO;
        }
        self.ask(|election| election.handle_hook_finished(now, HookOutcome::Succeeded));
    }

    fn carry_out(&mut self, host: &Host, now: Time, effects: &mut Effects) {
        while let Some(output) = self.election.as_mut().and_then(Election::poll_output) {
            match output {
                Output::Persist(state) => self.writes.push(state),
                Output::Transmit(message) => self.transmit(host, now, message, effects),
                Output::RunHook(run) => {
                    self.hook = Some(run.event);
                    if run.event == HookEvent::Elected {
                        self.hooks_hold = true;
                        effects.elected = Some(run.term);
                    }
                }
                // There is no fence command here: it never runs.
                Output::Fence { .. } => {
                    self.ask(|election| election.handle_fence_finished(now, HookOutcome::NotRun));
                }
                Output::UpdateCrashPlan
                | Output::CutHookShort { .. }
                | Output::Notify(_)
                | Output::Stopped(_) => {}
            }
        }
    }

    /// Notes how long the leadership that the hooks serve is covered.
    fn note_cover(&mut self, host: &Host) {
        let end = self.election.as_ref().and_then(Election::lease_end);
        if let Some(end) = end.filter(|_| self.hooks_hold) {
            self.covered_until = self.covered_until.max(end + host.params.demote_grace());
        }
    }

    fn transmit(&mut self, host: &Host, now: Time, message: Message, effects: &mut Effects) {
        let lawful = self.check_lease(now, &message);
        if let Err(breach) = lawful.and_then(|()| self.check_promises(host, &message)) {
            effects.breach.get_or_insert(breach);
        }
        if let Body::Declaration { .. } = message.body {
            effects.declared = Some(message.term);
        }
        effects.sent.push(message);
    }

    /// Only under a lease does anybody say that it leads.
    fn check_lease(&self, now: Time, message: &Message) -> Result<(), String> {
        let lease_end = self.election.as_ref().and_then(Election::lease_end);
        let claims = matches!(message.body, Body::Declaration { .. });
        if claims && lease_end.is_none_or(|end| end <= now) {
            return Err("it declared itself without a lease".into());
        }
        Ok(())
    }

    /// What a datagram promises must be on disk, and must not be against what was promised before.
    fn check_promises(&mut self, host: &Host, message: &Message) -> Result<(), String> {
        let disk = &self.disk;
        if message.term > disk.term || message.incarnation != disk.incarnation {
            let (term, life) = (message.term, message.incarnation.0);
            return Err(format!("it told term {term} or life {life}, which is not on disk"));
        }
        match message.body {
            Body::VoteRequest { .. } => {
                self.check_vote(Ballot { term: message.term, candidate: message.life() })
            }
            Body::Vote { candidate, request, granted: true } => {
                let asked = |(from, id, _): &&(NodeId, DatagramId, Term)| {
                    (*from, *id) == (candidate, request)
                };
                match self.requests.iter().find(asked) {
                    Some((_, _, term)) => {
                        let incarnation = request.incarnation;
                        let candidate = Life { node_id: candidate, incarnation };
                        self.check_vote(Ballot { term: *term, candidate })
                    }
                    None => Ok(()),
                }
            }
            Body::Heartbeat { leader: Some(leader), acknowledged: Some(_), .. } => {
                let hold = host.params.declaration_hold();
                let kept = disk.pledge.filter(|pledge| pledge.to.node_id == leader);
                match kept.filter(|pledge| pledge.hold() >= hold) {
                    Some(_) => Ok(()),
                    None => Err(format!("it acknowledged {leader} without a pledge on disk")),
                }
            }
            _ => Ok(()),
        }
    }

    /// A vote is told: it is on disk, with its pledge, and the only one in its term.
    fn check_vote(&mut self, vote: Ballot) -> Result<(), String> {
        let pledged = self.disk.pledge.is_some_and(|pledge| pledge.to == vote.candidate);
        if self.disk.ballot != Some(vote) || !pledged {
            return Err(format!("it told a vote that is not on disk: {vote:?}"));
        }
        match self.votes.iter().find(|told| told.term == vote.term) {
            Some(told) if *told != vote => Err(format!("it told {told:?} before {vote:?}")),
            Some(_) => Ok(()),
            None => {
                self.votes.push(vote);
                Ok(())
            }
        }
    }
}

const fn id_of(message: &Message) -> DatagramId {
    DatagramId { incarnation: message.incarnation, sequence: message.sequence }
}
