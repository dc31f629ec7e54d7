//! Whatever datagrams, times, commands, crashes and ends of hooks and disk writes come in, in
//! whatever order: the election does not panic, asks for a bounded number of things and to be woken
//! for something, tells no term, vote or pledge that is not on disk, votes once in a term, leads
//! under a lease only, has the hooks take over and let go in turn, keeps its crash plan up to date,
//! takes nothing in twice, takes no notice of what may be replayed, and stops when it is asked to,
//! saying nothing afterwards.

mod script;
mod scripts;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use lanelect::core::Election;
use lanelect::core::crash_plan::CrashPlan;
use lanelect::core::hook::{HookEvent, HookOutcome, HookRun};
use lanelect::core::output::{Event, Output};
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::time::Time;
use lanelect::types::{DatagramId, Incarnation, Life, Role, Sequence, Term};
use lanelect::wire::message::{Body, Flags, Message, VotersDigest};

pub use self::script::Script;
use self::script::{Disk, Settings, Step};
use self::scripts::Scripts;
use crate::heard::{Heard, NODES, is_vote_request, node_id};

/// No single call asks for more than this: far above what any does, far below a loop that grows.
const OUTPUTS_MAX: usize = 64;

/// No election is woken so often at one time: then all that is due is done.
const WAKES_MAX: usize = 8;

/// No election that is to stop, and whose hooks and disk writes end, goes on for so many wakes.
const WAKES_TO_STOP: usize = 32;

/// Lives a node's lives, and ends the last one.
pub fn run(Script { settings, disk, steps }: Script) {
    let mut host = Host::start(settings, &disk);
    host.carry_out();
    for step in steps {
        host.lease_end = host.election.lease_end();
        host.take(step);
        host.carry_out();
        host.look();
    }
    host.stop();
}

/// An election and what a daemon around it would know.
struct Host {
    election: Election,
    settings: Settings,
    now: Time,
    /// What is on disk, and what is on its way there.
    persisted: PersistentState,
    writing: Option<PersistentState>,
    disk_is_slow: bool,
    scripts: Scripts,
    plan: Option<CrashPlan>,
    stopped: bool,
    /// The highest term that this life has known.
    term: Term,
    /// This node's newest datagram.
    last_sent: DatagramId,
    /// Its last ping to all.
    pinged: Option<DatagramId>,
    /// For whom it voted, in this life and those before.
    votes: BTreeMap<Term, Life>,
    /// Until when it had a lease before the step that is being carried out.
    lease_end: Option<Time>,
}

impl Host {
    fn start(settings: Settings, disk: &Disk) -> Self {
        let persisted = disk.persisted();
        let now = Time::from_millis(1);
        let votes = persisted.ballot.map(|ballot| (ballot.term, ballot.candidate));
        Host {
            election: Election::new(settings.setup(persisted), now),
            settings,
            now,
            persisted,
            writing: None,
            disk_is_slow: disk.is_slow,
            scripts: Scripts::default(),
            plan: None,
            stopped: false,
            term: persisted.term,
            last_sent: DatagramId { incarnation: Incarnation(0), sequence: Sequence(0) },
            pinged: None,
            votes: votes.into_iter().collect(),
            lease_end: None,
        }
    }

    fn take(&mut self, step: Step) {
        let (election, now) = (&mut self.election, self.now);
        match step {
            Step::Hear(heard) => self.hear(&heard),
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms.into());
                self.wake();
            }
            Step::SleepUntilDue => self.sleep_until_due(),
            Step::EndHook(outcome) => self.end_hook(outcome.into()),
            Step::Yield => {
                let _ = election.yield_leadership(now);
            }
            Step::Maintain(on) => election.set_maintenance(now, on),
            Step::Ping => {
                election.ping(now);
            }
            Step::Plug(up) => election.handle_links(now, up),
            Step::Check(passed) => {
                election.handle_check(now, passed);
                election.handle_leader_check(now, passed);
            }
            Step::Reconfigure(settings) => {
                election.reconfigure(now, settings.params());
                self.settings = settings.after(&mut self.settings);
            }
            Step::Stop => election.stop(now),
            Step::EndWrite => self.end_write(),
            Step::Crash => self.crash(),
        }
    }

    /// Takes a datagram in, and then its duplicate, which means nothing.
    fn hear(&mut self, heard: &Heard) {
        let from = Ipv4Addr::new(10, 0, 0, heard.sender % NODES).into();
        let message = heard.message(self.voters_digest(), self.last_sent);
        if !self.may_count(&message) {
            // What is due is noticed with whatever comes in. It may end a lease, or a pause during
            // which nothing proved anything.
            self.election.handle_timeout(self.now);
            self.carry_out();
        }
        if self.may_count(&message) {
            self.election.handle_datagram(self.now, from, &message);
            self.carry_out();
        } else {
            self.receive_unproven(from, &message);
        }
        if message.sender != node_id(0) {
            self.hear_again(from, &message);
        }
    }

    /// Whether it is no replay: it proves that, or is of this very life, which has not sent it. So
    /// it comes from a copy.
    fn may_count(&self, message: &Message) -> bool {
        let DatagramId { incarnation, sequence } = self.last_sent;
        let is_unsent = message.incarnation != incarnation || message.sequence > sequence;
        message.life() == self.life() && is_unsent || self.election.is_proven(self.now, message)
    }

    /// What may be an old datagram changes nothing, and is met with a challenge at the most, or
    /// a ping with a pong. A pong says no more than that its sender answered.
    fn receive_unproven(&mut self, from: IpAddr, message: &Message) {
        let names_last_ping = self.answers_last_ping(message);
        let known = |election: &Election, now| {
            let mut status = election.status(now);
            if names_last_ping {
                for member in &mut status.members {
                    member.answered.take_if(|_| member.node_id == message.sender);
                }
            }
            (status.role, status.term, status.leader, status.members)
        };
        let before = known(&self.election, self.now);
        self.election.handle_datagram(self.now, from, message);
        assert_eq!(known(&self.election, self.now), before, "it means something: {message:?}");
        while let Some(output) = self.election.poll_output() {
            match output {
                Output::Transmit(said) => {
                    let is_answer = matches!(
                        (&message.body, &said.body),
                        (_, Body::Challenge) | (Body::Ping { .. }, Body::Pong { .. })
                    );
                    assert!(is_answer, "{said:?} to {message:?}");
                    self.check_sent(&said);
                }
                Output::Notify(Event::NoProof { .. }) => {}
                other => panic!("an unproven node causes {other:?}"),
            }
        }
    }

    fn answers_last_ping(&self, message: &Message) -> bool {
        let Body::Pong { asker, ping } = message.body else { return false };
        asker == node_id(0) && Some(ping) == self.pinged
    }

    fn hear_again(&mut self, from: IpAddr, message: &Message) {
        let deadline = self.election.poll_timeout();
        self.election.handle_datagram(self.now, from, message);
        assert_eq!(self.election.poll_output(), None, "a duplicate means something: {message:?}");
        assert_eq!(self.election.poll_timeout(), deadline, "a duplicate moves a deadline");
    }

    fn sleep_until_due(&mut self) {
        if let Some(deadline) = self.election.poll_timeout() {
            self.now = self.now.max(deadline.at);
        }
        self.wake();
    }

    /// Does what is due, all of it.
    fn wake(&mut self) {
        for _ in 0..WAKES_MAX {
            self.election.handle_timeout(self.now);
            self.carry_out();
            if self.election.poll_timeout().is_none_or(|deadline| deadline.at > self.now) {
                return;
            }
        }
        panic!("spins for {:?}", self.election.poll_timeout());
    }

    fn end_hook(&mut self, outcome: HookOutcome) {
        if self.scripts.is_running() {
            self.scripts.end(outcome, self.election.params().quorum.is_some());
            self.election.handle_hook_finished(self.now, outcome);
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
        self.scripts = Scripts::default();
        self.plan = None;
        self.stopped = false;
        self.lease_end = None;
        self.term = self.persisted.term;
        self.election = Election::new(self.settings.setup(self.persisted), self.now);
    }

    /// Where everything else does its part, an election that is to stop does.
    fn stop(mut self) {
        self.lease_end = self.election.lease_end();
        self.election.stop(self.now);
        self.carry_out();
        for _ in 0..WAKES_TO_STOP {
            if self.stopped {
                return;
            }
            self.lease_end = self.election.lease_end();
            self.end_write();
            self.carry_out();
            self.end_hook(HookOutcome::Succeeded);
            self.carry_out();
            self.sleep_until_due();
        }
        panic!("does not stop");
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
                Output::RunHook(run) => self.run_hook(&run),
                Output::CutHookShort { .. } => {
                    assert!(self.scripts.is_running(), "no hook to cut short");
                }
                Output::UpdateCrashPlan => self.plan = self.election.crash_plan(),
                Output::Fence { .. } => {
                    self.election.handle_fence_finished(self.now, HookOutcome::Failed);
                }
                Output::Notify(_) => {}
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
        let has_promised = state.ballot.is_some() || state.pledge.is_some();
        if has_promised || before.enrolment == Enrolment::Enrolled {
            assert_eq!(state.enrolment, Enrolment::Enrolled);
        }
        self.writing = Some(state);
        if !self.disk_is_slow {
            self.end_write();
        }
    }

    /// In quorum mode the hooks take over under a lease, and under a term that no later life
    /// takes again.
    fn run_hook(&mut self, run: &HookRun) {
        self.scripts.start(run);
        let takes_over = matches!(run.event, HookEvent::Elected | HookEvent::Reaffirmed);
        if takes_over && self.in_quorum_mode() {
            assert!(self.has_lease(), "{} without a lease", run.event);
            assert!(run.term <= self.persisted.term, "{} under a term not on disk", run.event);
        }
    }

    /// Nothing is told that is not on disk.
    fn check_sent(&mut self, message: &Message) {
        let disk = self.persisted;
        assert_eq!(message.sender, node_id(0));
        assert_eq!(message.incarnation, disk.incarnation, "a life that is not on disk");
        assert!(message.term <= disk.term, "a term that is not on disk");
        let enrolled = message.standing.flags.contains(Flags::ENROLLED);
        assert!(!enrolled || disk.enrolment == Enrolment::Enrolled);
        self.check_number(message);
        match message.body {
            Body::Declaration { .. } if self.in_quorum_mode() => {
                assert!(self.has_lease(), "a declaration without a lease");
            }
            Body::Resignation { .. } => {
                let waits = self.in_quorum_mode() || !self.scripts.lets_go_again();
                assert!(!waits || !self.scripts.is_running(), "a resignation while the hook runs");
            }
            Body::Ping { node: None } => self.pinged = Some(message.id()),
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

    /// Numbers grow within a life, and leave the last one to the crash plan.
    fn check_number(&mut self, message: &Message) {
        let DatagramId { incarnation, sequence } = self.last_sent;
        let is_next = message.incarnation != incarnation || message.sequence > sequence;
        assert!(is_next && message.sequence < Sequence(u64::MAX), "{:?}", message.sequence);
        self.last_sent =
            DatagramId { incarnation: message.incarnation, sequence: message.sequence };
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

    /// What can be asked at any time must not panic in any state, and is true.
    fn look(&mut self) {
        let (election, status) = (&self.election, self.election.status(self.now));
        assert_eq!(status.role == Role::Leader, election.is_leader());
        assert_eq!(election.is_leader_at(self.now), election.is_leader());
        if election.is_leader() && self.in_quorum_mode() {
            assert!(status.quorum.is_some_and(|quorum| quorum.lease.is_some()), "no lease");
        }
        assert!(election.term() >= self.term, "the term shrinks");
        self.term = election.term();
        self.check_will();
    }

    /// What is kept for `post-stop` is what this node would say now.
    fn check_will(&self) {
        let plan = self.election.crash_plan();
        let basis = |plan: &CrashPlan| {
            let hook = plan.hook.map(|run| (run.event, run.term));
            (hook, plan.grace, plan.resignation.map(|last| (last.term, last.body)))
        };
        assert_eq!(self.plan.as_ref().map(basis), plan.as_ref().map(basis), "an old crash plan");
        let hook = plan.as_ref().and_then(|plan| plan.hook);
        assert_eq!(hook.is_some(), self.scripts.hold(), "a crash plan without regard to the hooks");
        if let Some(CrashPlan { resignation: Some(resignation), .. }) = plan {
            assert!(
                resignation.term <= self.persisted.term,
                "a crash plan under a term not on disk"
            );
            assert_eq!(resignation.sequence, Sequence(u64::MAX));
        }
    }

    /// The election's first output saves its incarnation.
    fn life(&self) -> Life {
        let kept = self.writing.as_ref().unwrap_or(&self.persisted);
        Life { node_id: node_id(0), incarnation: kept.incarnation }
    }

    const fn in_quorum_mode(&self) -> bool {
        self.settings.quorum.is_some()
    }

    /// Whether it has a lease, or had one until this step.
    fn has_lease(&self) -> bool {
        let end = self.lease_end.max(self.election.lease_end());
        end.is_some_and(|end| self.now < end)
    }

    fn voters_digest(&self) -> Option<VotersDigest> {
        self.settings.quorum.as_ref().map(|quorum| quorum.voters().digest())
    }
}
