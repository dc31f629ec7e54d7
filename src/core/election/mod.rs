//! One node's election.
//!
//! ```text
//!                 membership stable, or nobody heard for the grace period
//!   ┌──────────┐ ──────────────────────────────────────────────▶ ┌──────────┐
//!   │ Starting │      declaration heard                           │ Following│◀──┐
//!   └──────────┘ ───────────────────────────────────────────────▶└──────────┘   │
//!                                    no leader, and eligible      │   ▲          │
//!                                                                 ▼   │ better candidate,
//!                                                             ┌──────────┐ or a leader
//!                                                             │ Standing │      │
//!                                                             └──────────┘      │
//!                     nobody better, or named as successor        │             │
//!                                                                 ▼             │
//!   ┌──────────────┐  yield, preempted, stop, ineligible      ┌─────────┐       │
//!   │ HandingOver  │ ◀──────────────────────────────────────── │ Leading │ ──────┤
//!   └──────────────┘                                           └─────────┘ better leader
//!          └──────────── demote hook ended: resign ─────────────────────────────┘
//! ```
//!
//! Each arrow has its own file: `startup`, `following`, `candidacy`, `leadership`, `handover`;
//! `datagrams` says what each kind of datagram does, `freshness` which of them count, `outlook` which
//! elections will do the same.

mod candidacy;
mod commands;
mod datagrams;
mod eligibility;
mod far_terms;
mod following;
mod freshness;
mod handover;
mod leadership;
mod outlook;
mod probing;
mod quorum;
mod report;
mod startup;
#[cfg(test)]
mod tests;
mod will;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use crate::core::hook::{HookEvent, HookOutcome, HookRun, Reason};
use crate::core::hook_schedule::HookSchedule;
use crate::core::membership::Members;
use crate::core::output::{Event, Output, StopCause, Transition};
use crate::core::params::{Params, StaticRole};
use crate::core::persist::{Enrolment, PersistentState};
use crate::core::quorum::Voter;
use crate::core::rank::Rank;
use crate::core::timers::{Deadline, Timer, Timers};
use crate::core::will::Estate;
use crate::time::Time;
use crate::types::{Incarnation, Life, NodeId, Role, Sequence, Term};
use crate::wire::echo::Echoes;
use crate::wire::message::{Body, Flags, Message, Standing};

pub use commands::{YieldError, Yielding};
use eligibility::Exclusions;
use freshness::Freshness;
use probing::{Probing, Telling};
use quorum::Quorum;

/// What an election starts from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// This node's id.
    pub node_id: NodeId,
    /// This life's number; above every earlier one's.
    pub incarnation: Incarnation,
    /// What an earlier life persisted; the default where there was none.
    pub persisted: PersistentState,
    /// The settings.
    pub params: Params,
    /// Whether an interface can reach the group.
    pub links_up: bool,
    /// Seeds the jitter of heartbeats. The same seed and inputs give the same outputs.
    pub seed: u64,
}

/// Datagrams that were handed in and meant nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Of an earlier life, out of order, or seen before.
    pub stale: u64,
    /// From a node beyond [`MEMBERS_MAX`](crate::core::membership::MEMBERS_MAX).
    pub table_full: u64,
    /// From a node that had not shown that it is there.
    pub unproven: u64,
    /// Under a term that is absurdly far above the highest known one.
    pub absurd_term: u64,
}

/// Where in its life an election is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    /// Listens; `sampled` is the membership's state at the last of so many `samples`.
    Starting { sampled: Option<u64>, samples: u32 },
    /// Follows `Election::leader`, or waits for a leader where that is none.
    Following,
    /// Has proposed itself and collects proposals.
    Standing,
    /// Leads.
    Leading,
    /// Led, and keeps the group informed until its demote hook has ended.
    HandingOver { reason: Reason, successor: Option<NodeId> },
    /// Over.
    Stopped,
}

/// One node's side of the election.
///
/// Invariants, kept by the methods that change the state:
/// * `leader` is this node exactly while it is `Leading`.
/// * In `Following`, one of these holds: there is a leader and `Timer::Silence` is set; there is
///   none and `Timer::Candidacy` is set; or the node is not eligible.
/// * `term` never shrinks, and no datagram shows one that is not on disk.
/// * A leader does not learn of higher terms: until it has resigned, `term` is that of its reign,
///   or in available mode the next one, which it takes once that is on disk.
/// * In quorum mode this node acts as the leader only while it has a lease.
#[derive(Debug, Clone)]
pub struct Election {
    node_id: NodeId,
    incarnation: Incarnation,
    params: Params,
    rng: fastrand::Rng,
    state: State,
    exclusions: Exclusions,
    term: Term,
    /// The term that the leader which this node follows, or is, declared last, or will declare
    /// first; of the last leader where there is none. It may be lower than the highest known one.
    reign: Term,
    /// The highest term that this node heard of while it led, and does not lead in (available mode).
    heard_term: Term,
    /// What is on disk, as far as this node was told.
    durable: PersistentState,
    /// What it asked for last to be put on disk.
    asked_to_keep: Option<PersistentState>,
    leader: Option<NodeId>,
    previous_leader: Option<NodeId>,
    /// The hook that is to tell of this node's reign, until it may.
    untold: Option<(HookEvent, Reason)>,
    /// What this node promised as a voter.
    voter: Voter,
    quorum: Quorum,
    /// A leader in a lower term than this has missed a leadership that has ended, and hears of it
    /// from this node (available mode).
    conceded: Term,
    /// When it last took a higher term while it led.
    last_reaffirmed: Option<Time>,
    /// Why leadership last changed hands here; goes into the next [`Transition`].
    cause: Option<Reason>,
    since: Time,
    members: Members,
    /// Whom it does not know to be there.
    freshness: Freshness,
    timers: Timers,
    hooks: HookSchedule,
    /// `elected` hooks that failed since one last succeeded.
    failures_in_a_row: u32,
    /// Runs that failed or were lost, and are repeated, since one last ended as it should.
    hook_failures: u32,
    /// Who is to lead where this leader dies.
    heir: Option<NodeId>,
    /// What the will that was asked to be kept depends on.
    bequeathed: Option<Estate>,
    /// A better candidate that yielded leaves the successor alone until then.
    no_claim_before: Time,
    /// When it resigned, as long as it repeats that.
    resigned_at: Option<Time>,
    /// Whether it was reported that too few candidates are visible.
    reported_short: bool,
    /// The rival leader that was reported last.
    reported_rival: Option<NodeId>,
    /// What it knows of a leader that does not declare.
    probing: Probing,
    /// What it is about to tell of one that does.
    telling: Telling,
    /// How often it declares again soon, as somebody did not hear it.
    answers_owed: u32,
    sequence: Sequence,
    last_declared: Option<Time>,
    last_proposed: Option<Time>,
    /// When it last told a namesake to stop, and which life of it.
    last_objected: Option<(Time, Incarnation)>,
    /// Why it stops, until that is reported.
    stop_cause: Option<StopCause>,
    ignored: Ignored,
    outputs: VecDeque<Output>,
}

impl Election {
    /// Starts listening at `now`. The first outputs persist the new incarnation, say hello, and
    /// run the hook for `started`.
    pub fn new(setup: Setup, now: Time) -> Self {
        let Setup { node_id, incarnation, persisted, params, links_up, seed } = setup;
        // What this node promised itself ended with the life that led or stood.
        let pledge = persisted.pledge.filter(|pledge| pledge.to.node_id != node_id);
        let mut election = Election {
            node_id,
            incarnation,
            voter: Voter::restored(now, persisted.enrolment, persisted.ballot, pledge),
            quorum: Quorum::default(),
            durable: persisted,
            reign: Term::default(),
            heard_term: Term::default(),
            asked_to_keep: None,
            untold: None,
            members: Members::new(&params),
            freshness: Freshness::default(),
            exclusions: Exclusions::new(&params, node_id, &persisted, links_up),
            params,
            rng: fastrand::Rng::with_seed(seed),
            state: State::Starting { sampled: None, samples: 0 },
            term: persisted.term,
            leader: None,
            previous_leader: None,
            conceded: Term::default(),
            last_reaffirmed: None,
            cause: None,
            since: now,
            timers: Timers::default(),
            hooks: HookSchedule::default(),
            failures_in_a_row: 0,
            hook_failures: 0,
            heir: None,
            bequeathed: None,
            no_claim_before: now,
            resigned_at: None,
            reported_short: false,
            reported_rival: None,
            probing: Probing::default(),
            telling: Telling::default(),
            answers_owed: 0,
            sequence: Sequence::default(),
            last_declared: None,
            last_proposed: None,
            last_objected: None,
            stop_cause: None,
            ignored: Ignored::default(),
            outputs: VecDeque::new(),
        };
        // It may have led in that term.
        election.note_ended(persisted.term);
        election.persist();
        election.schedule_hook(HookEvent::Started, Reason::Startup);
        election.begin_startup(now);
        election.begin_enrolment(now);
        election
    }

    /// This node's id.
    pub const fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// This node in this life.
    const fn life(&self) -> Life {
        Life { node_id: self.node_id, incarnation: self.incarnation }
    }

    /// What this node does. One that hands over is a follower already: its scripts are being told
    /// to let go.
    pub const fn role(&self) -> Role {
        match self.state {
            State::Starting { .. } => Role::Starting,
            State::Following | State::HandingOver { .. } | State::Stopped => Role::Follower,
            State::Standing => Role::Candidate,
            State::Leading => Role::Leader,
        }
    }

    /// Whether this node leads, as of the last call that told it the time.
    pub const fn is_leader(&self) -> bool {
        matches!(self.state, State::Leading)
    }

    /// Whether this node leads at `now`, also where nothing has told it the time since its lease ran
    /// out.
    pub fn is_leader_at(&self, now: Time) -> bool {
        let may_act = match self.lease_end() {
            Some(end) => now < end,
            None => !self.in_quorum_mode(),
        };
        self.is_leader() && may_act
    }

    /// The leader that this node follows or is.
    pub const fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// The highest term that this node knows.
    pub const fn term(&self) -> Term {
        self.term
    }

    /// The settings in force.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Whether the node is out of service by the operator's order.
    pub const fn in_maintenance(&self) -> bool {
        self.exclusions.maintenance
    }

    /// Datagrams that meant nothing.
    pub const fn ignored(&self) -> Ignored {
        self.ignored
    }

    /// The next thing to do, if any.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.timers.next()
    }

    /// A datagram arrived from `from`.
    pub fn handle_datagram(&mut self, now: Time, from: IpAddr, message: &Message) {
        self.act(now, |election| election.receive(now, from, message));
    }

    /// Time has passed. Does at most one thing per [`Timer`]; whatever is still due then shows in
    /// [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        self.act(now, |_| ());
        for _ in 0..Timer::COUNT {
            let Some(timer) = self.timers.take_due(now) else { return };
            self.act(now, |election| election.fire(now, timer));
        }
    }

    /// The hook run that was asked for last has ended.
    pub fn handle_hook_finished(&mut self, now: Time, outcome: HookOutcome) {
        self.act(now, |election| {
            let held = election.hooks.hold();
            if let Some(run) = election.hooks.finish() {
                election.judge_hook(now, run, outcome, held);
            }
            election.go_on_without_hook(now);
        });
    }

    /// The fence command that was asked for last has ended. Where it succeeded, the scripts hold nothing any
    /// more; otherwise it runs again.
    pub fn handle_fence_finished(&mut self, now: Time, outcome: HookOutcome) {
        self.act(now, |election| {
            election.judge_fence(now, outcome);
            election.go_on_without_hook(now);
        });
    }

    /// Does what waited for the scripts.
    fn go_on_without_hook(&mut self, now: Time) {
        self.note_scripts();
        self.start_next_hook();
        self.advance_handover(now);
        self.advance_stop(now);
    }

    /// `state`, which was asked for, or a newer one, is on disk.
    pub fn handle_persisted(&mut self, now: Time, state: PersistentState) {
        if self.state == State::Stopped {
            // Nothing rests on it any more, and what is left to be done is told.
            return;
        }
        self.act(now, |election| {
            let is_first = election.durable.incarnation != election.incarnation;
            election.durable = state;
            if is_first && matches!(election.state, State::Starting { .. }) {
                election.say_hello(now);
                election.inquire(now);
            }
            election.go_on_persisted(now);
        });
    }

    /// Does `what` to this election, at `now`: under a lease that still holds, believing nobody who may
    /// have died during a pause, and telling what changed.
    fn act<T>(&mut self, now: Time, what: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.snapshot();
        self.check_lease(now);
        self.doubt_after_pause(now);
        let result = what(self);
        self.expect_to_wake(now);
        self.renew_will();
        self.report_transition(now, before);
        self.report_end();
        result
    }

    fn fire(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Sample => self.sample_membership(now),
            Timer::Grace => self.end_startup(now),
            Timer::Silence => self.give_leader_up(now),
            Timer::Candidacy => self.stand(now),
            Timer::Repropose => self.propose(now),
            Timer::Certainty => self.declare_if_certain(now),
            Timer::ElectionEnd => self.end_election(now),
            Timer::Declare => self.declare(now),
            Timer::Heartbeat => self.send_heartbeat(now),
            Timer::Claim => self.claim(now),
            Timer::YieldEnd => self.end_yield(now),
            Timer::HoldoffEnd => self.end_holdoff(now),
            Timer::Sweep => self.sweep(now),
            Timer::HookRetry => self.start_next_hook(),
            Timer::Lease => self.check_lease(now),
            Timer::GraceEnd => self.end_grace(),
            Timer::PledgeEnd => self.answer_postponed(now),
            Timer::Inquiry => self.inquire(now),
            Timer::Probe => self.probe(now),
            Timer::Sighting => self.tell_sighting(now),
            Timer::Challenge => self.challenge(now),
            Timer::Answer => self.answer_challenge(now),
            Timer::Resignation => self.resign_again(now),
            Timer::Reaffirm => self.reaffirm(now),
        }
    }

    /// Nothing is sent once the election is over, nor before this life's number is on disk: a later
    /// life might take it again. Nor is anything if another daemon speaks in this life.
    fn may_send(&self) -> bool {
        self.state != State::Stopped
            && self.durable.incarnation == self.incarnation
            && !self.shares_life()
    }

    /// Whether another daemon runs in this very life.
    const fn shares_life(&self) -> bool {
        matches!(self.stop_cause, Some(StopCause::LifeShared { .. }))
    }

    /// Sends `body` with the next sequence number, where anything may be sent.
    fn send(&mut self, body: Body) {
        if self.may_send() {
            let echoes = self.take_echoes();
            self.transmit(body, echoes);
        }
    }

    fn transmit(&mut self, body: Body, echoes: Echoes) {
        self.sequence.0 += 1;
        self.outputs.push_back(Output::Transmit(Message {
            sender: self.node_id,
            incarnation: self.incarnation,
            sequence: self.sequence,
            term: self.durable.term,
            standing: self.standing(),
            echoes,
            body,
        }));
    }

    /// What this node tells about itself.
    fn standing(&self) -> Standing {
        let handing_over = matches!(self.state, State::HandingOver { .. });
        let role = if self.holds_leadership() { Role::Leader } else { self.role() };
        let eligible = self.is_eligible() && !handing_over;
        let fixed = self.params.static_role == Some(StaticRole::Leader) && eligible;
        let flags = Flags::default()
            .with(Flags::CANDIDATE, self.params.candidate)
            .with(Flags::ELIGIBLE, eligible)
            .with(Flags::FIXED, fixed)
            .with(Flags::ENROLLED, self.is_voter() && self.is_enrolled())
            .with(Flags::FOUNDING, self.durable.enrolment == Enrolment::Founding);
        let voters = self.quorum_params().map(|params| params.voters.digest());
        Standing { role, priority: self.params.priority, flags, voters }
    }

    fn rank(&self) -> Rank {
        Rank::new(self.node_id, &self.standing())
    }

    /// Asks for what must be remembered to be put on disk, where it is not.
    fn persist(&mut self) {
        let last = self.asked_to_keep;
        let state = PersistentState {
            revision: last.unwrap_or(self.durable).revision + 1,
            term: self.term,
            incarnation: self.incarnation,
            maintenance: self.exclusions.maintenance,
            enrolment: self.voter.enrolment(),
            ballot: self.voter.ballot(),
            pledge: self.voter.pledge(),
        };
        if !last.is_some_and(|last| last.says_the_same_as(&state)) {
            self.asked_to_keep = Some(state);
            self.outputs.push_back(Output::Persist(state));
        }
    }

    /// Whether nothing waits for the disk. What is there may otherwise be replaced, by something that
    /// was asked for in between, before the end of a write is told. So it is not enough that the last
    /// state says the same as the one that is known to be there.
    fn all_is_kept(&self) -> bool {
        self.asked_to_keep == Some(self.durable)
    }

    /// Takes a term above every known one, for a reign of this node.
    fn take_next_term(&mut self) {
        self.term = self.term.next();
        self.persist();
    }

    fn set_leader(&mut self, leader: Option<NodeId>) {
        if self.leader == leader {
            return;
        }
        self.previous_leader = self.leader.or(self.previous_leader);
        self.leader = leader;
    }

    fn schedule_hook(&mut self, event: HookEvent, reason: Reason) {
        let leads = matches!(event, HookEvent::Elected | HookEvent::Reaffirmed);
        self.hooks.push(HookRun {
            event,
            reason,
            role: if leads { Role::Leader } else { Role::Follower },
            term: self.term,
            leader: self.leader,
            leader_address: self.leader.and_then(|id| Some(self.members.get(&id)?.address)),
            previous_leader: self.previous_leader,
        });
        self.start_next_hook();
    }

    fn start_next_hook(&mut self) {
        if self.timers.get(Timer::HookRetry).is_some() {
            return;
        }
        if let Some(run) = self.hooks.start_next() {
            // Before the scripts take over: nothing that they hold is without a will.
            self.renew_will();
            self.outputs.push_back(Output::RunHook(run));
        }
    }

    fn notify(&mut self, event: Event) {
        self.outputs.push_back(Output::Notify(event));
    }

    const fn snapshot(&self) -> Snapshot {
        Snapshot { role: self.role(), leader: self.leader, term: self.term }
    }

    /// Tells what the call that began at `before` changed.
    fn report_transition(&mut self, now: Time, before: Snapshot) {
        let after = self.snapshot();
        let reason = self.cause.take();
        let reaffirmed = after.role == Role::Leader && after.term != before.term;
        if (after.role, after.leader) == (before.role, before.leader) && !reaffirmed {
            return;
        }
        if after.role != before.role || after.leader != before.leader {
            self.since = now;
        }
        self.notify(Event::Transition(Transition {
            role: after.role,
            previous_role: before.role,
            term: after.term,
            leader: after.leader,
            previous_leader: before.leader,
            reason,
        }));
    }
}

/// What [`Election::report_transition`] compares.
#[derive(Debug, Clone, Copy)]
struct Snapshot {
    role: Role,
    leader: Option<NodeId>,
    term: Term,
}

/// `part` of an interval as announced or waited for: never zero, so that no timer spins.
fn at_least_a_millisecond(interval: Duration) -> Duration {
    interval.max(Duration::from_millis(1))
}
