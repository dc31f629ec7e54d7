//! One node's election.
//!
//! ```text
//!                 membership stable, or grace period over
//!   ┌──────────┐ ──────────────────────────────────────────────▶ ┌──────────┐
//!   │ Starting │      declaration heard                           │ Following│◀──┐
//!   └──────────┘ ───────────────────────────────────────────────▶└──────────┘   │
//!                                    no leader, and eligible      │   ▲          │
//!                                                                 ▼   │ better candidate,
//!                                                             ┌──────────┐ or a leader
//!                                                             │ Standing │      │
//!                                                             └──────────┘      │
//!                     no better candidate, or named as successor  │             │
//!                                                                 ▼             │
//!   ┌──────────────┐  yield, preempted, stop, ineligible      ┌─────────┐       │
//!   │ HandingOver  │ ◀──────────────────────────────────────── │ Leading │ ──────┤
//!   └──────────────┘                                           └─────────┘ better leader
//!          └──────────── demote hook ended: resign ─────────────────────────────┘
//! ```
//!
//! Each arrow has its own file: `startup`, `following`, `candidacy`, `leadership`, `handover`.
//! `probing` is for a leader that is overdue. `datagrams` decides whether a datagram counts, by
//! `challenges` (replay protection), `terms` and `duplicates` (of this node's id). `mode` then
//! chooses between `available` and `quorum`, which handle each kind of datagram. `commands` are the
//! host's, `eligibility` and `checks` say whether this node may lead, and `hook_runs` when hooks
//! run, `refresh` when a leader's hook runs again. `claims` are those of a better node on a worse
//! leader. `pings` show who hears this node, and how far away it is.

mod available;
mod candidacy;
mod challenges;
mod checks;
mod claims;
mod commands;
pub mod crash_plan;
mod datagrams;
mod duplicates;
mod eligibility;
mod following;
mod handover;
mod hook_runs;
mod leadership;
mod mode;
mod outbox;
mod pings;
mod probing;
mod quorum;
mod refresh;
mod report;
mod startup;
mod terms;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use crate::core::disk::Disk;
use crate::core::hook::{HookEvent, HookOutcome, Reason};
use crate::core::membership::Members;
use crate::core::output::{Event, Output, Transition};
use crate::core::params::{Params, StaticRole};
use crate::core::persist::{Enrolment, PersistentState};
use crate::core::quorum::Voter;
use crate::core::rank::Rank;
use crate::core::recent::Recent;
use crate::core::replay::ReplayProtection;
use crate::core::timers::{Deadline, Timer, Timers};
use crate::time::Time;
use crate::types::{Incarnation, Life, NodeId, Role, Sequence, Term};
use crate::wire::echo::Echoes;
use crate::wire::message::{Body, Flags, Message, Standing};

use available::Conflicts;
use claims::Claims;
pub use commands::{YieldError, Yielding};
use duplicates::Duplicates;
use eligibility::Exclusions;
pub use handover::NoSuccessor;
use hook_runs::HookRuns;
use outbox::{Chance, Outbox};
use pings::Pings;
use probing::Probing;
use quorum::Quorum;
pub use refresh::REFRESH_PAUSE;
use terms::Terms;

/// What an election starts from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// This node's id.
    pub node_id: NodeId,
    /// This life's number. It is higher than every earlier life's.
    pub incarnation: Incarnation,
    /// What an earlier life persisted; the default if there was none.
    pub persisted: PersistentState,
    /// The settings.
    pub params: Params,
    /// Whether an interface can reach the group.
    pub links_up: bool,
    /// Seeds the jitter of heartbeats. The same seed and inputs give the same outputs.
    pub seed: u64,
}

/// Counts of datagrams that were ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Of an earlier life, out of order, or seen before.
    pub stale: u64,
    /// From a node beyond [`MEMBERS_MAX`](crate::core::membership::MEMBERS_MAX).
    pub table_full: u64,
    /// From a node without a proof of liveness.
    pub unproven: u64,
    /// Under a term that is absurdly far above the highest known one.
    pub absurd_term: u64,
}

/// Where in its life an election is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    /// Listens; `sampled` is the membership's state at the last of so many `samples`.
    Starting { sampled: Option<u64>, samples: u32 },
    /// Follows `Election::leader`, or waits for a leader if there is none.
    Following,
    /// Has proposed itself and collects proposals.
    Standing,
    /// Leads.
    Leading,
    /// Led, and keeps declaring until its demote hook has ended.
    HandingOver { reason: Reason, successor: Option<NodeId> },
    /// Over.
    Stopped,
}

impl State {
    const fn is_starting(self) -> bool {
        matches!(self, State::Starting { .. })
    }

    /// Whether this node leads or hands over.
    const fn is_in_office(self) -> bool {
        matches!(self, State::Leading | State::HandingOver { .. })
    }
}

/// What this life has sent.
#[derive(Debug, Clone, Copy, Hash, Default)]
struct Sent {
    /// The number of its newest datagram.
    newest: Sequence,
    /// When it last declared in its present leadership.
    declared: Option<Time>,
    /// Whether another node has asked for a declaration since.
    owes_declaration: bool,
    /// The interval that it announced last to all, without the jitter.
    announced: Option<Duration>,
    /// When it declares next at the latest, as it said then.
    declaration_due: Option<Time>,
    /// When it last proposed itself, or asked for votes.
    proposed: Option<Time>,
    /// When it resigned, as long as it repeats the resignation.
    resigned: Option<Time>,
}

/// One node's side of the election.
///
/// Invariants, kept by the methods that change the state:
/// * `leader` is this node exactly while it is `Leading`.
/// * In `Following`, one of these holds: there is a leader and `Timer::Silence` is set; there is
///   none and `Timer::Candidacy` is set; or the node is not eligible.
/// * In quorum mode this node acts as the leader only while it has a lease.
///
/// `terms.rs` has the invariants of the terms.
#[derive(Debug, Clone, Hash)]
pub struct Election {
    /// This node in this life.
    life: Life,
    params: Params,
    state: State,
    exclusions: Exclusions,
    claims: Claims,
    terms: Terms,
    conflicts: Conflicts,
    disk: Disk,
    leader: Option<NodeId>,
    /// After its links were down, this node does not stand before, unless it has heard a leader
    /// since.
    listens_until: Time,
    quorum: Quorum,
    members: Members,
    replay: ReplayProtection,
    duplicates: Duplicates,
    timers: Timers,
    hooks: HookRuns,
    probing: Probing,
    pings: Pings,
    sent: Sent,
    chance: Chance,
    outbox: Outbox,
}

impl Election {
    /// Starts to listen at `now`. The first outputs persist the new incarnation, send a heartbeat,
    /// and run the hook for `started`.
    pub fn new(setup: Setup, now: Time) -> Self {
        let Setup { node_id, incarnation, persisted, params, links_up, seed } = setup;
        // A pledge to itself ended with the life that led or stood.
        let pledge = persisted.pledge.filter(|pledge| pledge.to.node_id != node_id);
        let voter = Voter::restored(now, persisted.enrolment, persisted.ballot, pledge);
        let life = Life { node_id, incarnation };
        let mut election = Election {
            life,
            quorum: Quorum::new(voter),
            disk: Disk::holding(persisted),
            members: Members::new(&params),
            replay: ReplayProtection::new(life, &params, Recent::since(Sequence::default())),
            duplicates: Duplicates::default(),
            exclusions: Exclusions::new(&params, node_id, &persisted, links_up),
            claims: Claims::default(),
            params,
            state: State::Starting { sampled: None, samples: 0 },
            terms: Terms::restored(persisted.term),
            conflicts: Conflicts::default(),
            leader: None,
            listens_until: Time::ZERO,
            timers: Timers::default(),
            hooks: HookRuns::default(),
            probing: Probing::default(),
            pings: Pings::default(),
            sent: Sent::default(),
            chance: Chance::seeded(seed),
            outbox: Outbox::new(now),
        };
        // The earlier life may have led in that term.
        election.note_led(persisted.term);
        election.persist();
        election.schedule_hook(HookEvent::Started, Reason::Startup);
        election.begin_startup(now);
        if election.lacks_state() {
            election.timers.set(Timer::Inquiry, now);
        }
        election.expect_to_wake(now);
        election
    }

    /// This node's id.
    pub const fn node_id(&self) -> NodeId {
        self.life.node_id
    }

    /// What this node does. A node that hands over is a follower already, because its `demoted`
    /// hook runs.
    pub const fn role(&self) -> Role {
        match self.state {
            State::Starting { .. } => Role::Starting,
            State::Following | State::HandingOver { .. } | State::Stopped => Role::Follower,
            State::Standing => Role::Candidate,
            State::Leading => Role::Leader,
        }
    }

    /// Whether this node leads, as of the last call with a time.
    pub const fn is_leader(&self) -> bool {
        matches!(self.state, State::Leading)
    }

    /// Whether this node leads at `now`. False after the lease has expired, even before a call
    /// reports that time.
    pub fn is_leader_at(&self, now: Time) -> bool {
        self.is_leader() && self.may_act_at(now)
    }

    /// The address that a member was last heard from; none if it is unknown.
    pub fn address_of(&self, node_id: &NodeId) -> Option<IpAddr> {
        self.members.get(node_id).map(|member| member.address)
    }

    /// The leader that this node follows or is.
    pub const fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// The highest term that this node knows.
    pub const fn term(&self) -> Term {
        self.terms.known
    }

    /// The settings in force.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Whether the operator took the node out of service.
    pub const fn in_maintenance(&self) -> bool {
        self.exclusions.maintenance
    }

    /// Counts of datagrams that were ignored.
    pub const fn ignored(&self) -> Ignored {
        self.outbox.ignored
    }

    /// The next thing to do, if any.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.outputs.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest, and why.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.timers.next()
    }

    /// A datagram arrived from `from`.
    pub fn handle_datagram(&mut self, now: Time, from: IpAddr, message: &Message) {
        self.act(now, |election| election.receive(now, from, message));
    }

    /// A datagram without an authenticator arrived from `from`. A node with keys, too, must pass it
    /// here if its [`KeyMode`](crate::types::KeyMode) accepts it. This node never echoes it.
    pub fn handle_open_datagram(&mut self, now: Time, from: IpAddr, message: &Message) {
        self.act(now, |election| {
            election.replay.set_receiving_open(true);
            election.receive(now, from, message);
            election.replay.set_receiving_open(false);
        });
    }

    /// Time has passed. Handles at most one expiry of each [`Timer`];
    /// [`poll_timeout`](Self::poll_timeout) then shows what is still due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.act(now, |_| ());
        for _ in 0..Timer::COUNT {
            let Some(timer) = self.timers.take_due(now) else { return };
            self.act(now, |election| election.fire(now, timer));
        }
    }

    /// The last requested hook run has ended.
    pub fn handle_hook_finished(&mut self, now: Time, outcome: HookOutcome) {
        self.act(now, |election| {
            let held = election.hooks.schedule.hold();
            if let Some(run) = election.hooks.schedule.finish(outcome) {
                election.judge_hook(now, run, outcome, held);
            }
            election.go_on_without_hook(now);
            election.plan_refresh(now);
        });
    }

    /// This host has lost an address. A leader with a `refresh_interval` runs its hook again after
    /// [`REFRESH_PAUSE`], unless it runs now: then the hook itself may have removed it.
    pub fn handle_address_lost(&mut self, now: Time) {
        self.act(now, |election| election.refresh_soon(now));
    }

    /// The last requested fence command has ended. If it succeeded, and began when no hook could
    /// take over any more, the hooks have released everything; otherwise it runs again.
    pub fn handle_fence_finished(&mut self, now: Time, outcome: HookOutcome) {
        self.act(now, |election| {
            election.judge_fence(now, outcome);
            election.go_on_without_hook(now);
        });
    }

    /// `state`, which was requested, or a newer one, is on disk.
    pub fn handle_persisted(&mut self, now: Time, state: PersistentState) {
        if self.state == State::Stopped {
            // No later step depends on the disk, and the end is already reported.
            return;
        }
        self.act(now, |election| {
            election.disk.note_written(state);
            let is_first = election.exclusions.disk_pending;
            election.change_exclusions(now, Reason::Startup, |exclusions| {
                exclusions.disk_pending = false;
            });
            if is_first && election.state.is_starting() {
                election.begin_startup(now);
                election.inquire(now);
            }
            election.go_on_persisted(now);
        });
    }

    /// Runs `what` at `now`. An expired lease ends first, members that may have failed during a
    /// pause must prove themselves again, and changes are reported.
    fn act<T>(&mut self, now: Time, what: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.snapshot();
        self.check_lease(now);
        self.doubt_after_pause(now);
        let result = what(self);
        self.expect_to_wake(now);
        self.update_crash_plan();
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
            Timer::Refresh => self.refresh(),
            Timer::Lease => self.check_lease(now),
            Timer::GraceEnd => self.end_grace(),
            Timer::PledgeEnd => self.answer_postponed(now),
            Timer::Inquiry => self.inquire(now),
            Timer::Probe => self.probe(now),
            Timer::ProbeReply => self.send_probe_reply(now),
            Timer::Challenge => self.challenge(now),
            Timer::Answer => self.answer_challenge(now),
            Timer::Resignation => self.resign_again(now),
            Timer::Reaffirm => self.reaffirm(now),
            Timer::Pong => self.answer_ping_to_all(),
        }
    }

    /// Sends nothing once the election is over, or this daemon gives way to another one. Nor before
    /// this life's number is on disk, because a later life might use the number again.
    fn may_send(&self) -> bool {
        self.state != State::Stopped && !self.exclusions.disk_pending && !self.gives_way()
    }

    /// Sends `body` with the next sequence number, if this node may send.
    fn send(&mut self, body: Body) {
        if self.may_send() {
            let addressee = body.addressee().filter(|_| self.params.unicast);
            let echoes = self.take_echoes(addressee);
            self.transmit(body, echoes);
        }
    }

    fn transmit(&mut self, body: Body, echoes: Echoes) {
        self.sent.newest.0 += 1;
        let term = self.disk.written().term;
        self.note_told_term(term);
        self.outbox.push(Output::Transmit(Message {
            sender: self.life.node_id,
            incarnation: self.life.incarnation,
            sequence: self.sent.newest,
            term,
            standing: self.standing(),
            echoes,
            body,
        }));
    }

    /// This node's role, rank and flags, as its datagrams announce them.
    fn standing(&self) -> Standing {
        let handing_over = matches!(self.state, State::HandingOver { .. });
        let role = if self.holds_leadership() { Role::Leader } else { self.role() };
        let eligible = self.is_eligible() && !handing_over;
        let fixed = self.params.static_role == Some(StaticRole::Leader) && eligible;
        let flags = Flags::default()
            .with(Flags::CANDIDATE, self.params.candidate)
            .with(Flags::ELIGIBLE, eligible)
            .with(Flags::FIXED, fixed)
            .with(Flags::ENROLLED, self.is_voter() && self.disk.is_enrolled())
            .with(Flags::FOUNDING, self.disk.written().enrolment == Enrolment::Founding);
        let voters = self.params.quorum.as_ref().map(|params| params.voters.digest());
        let Params { priority, tie_break, .. } = self.params;
        Standing { role, priority, tie_break, flags, voters }
    }

    fn rank(&self) -> Rank {
        Rank::new(self.life.node_id, &self.standing())
    }

    /// Requests a write of the persistent state if it has changed.
    fn persist(&mut self) {
        let state = PersistentState {
            revision: 0,
            term: self.terms.known,
            incarnation: self.life.incarnation,
            maintenance: self.exclusions.maintenance,
            enrolment: self.quorum.voter.enrolment(),
            ballot: self.quorum.voter.ballot(),
            pledge: self.quorum.voter.pledge(),
        };
        if let Some(state) = self.disk.ask_for(state) {
            self.outbox.push(Output::Persist(state));
        }
    }

    fn set_leader(&mut self, leader: Option<NodeId>) {
        if self.leader == leader {
            return;
        }
        self.outbox.previous_leader = self.leader.or(self.outbox.previous_leader);
        self.leader = leader;
        if leader.is_some() {
            self.quorum.deferred_to.clear();
            self.quorum.refused.clear();
        }
    }

    fn notify(&mut self, event: Event) {
        self.outbox.push(Output::Notify(event));
    }

    const fn snapshot(&self) -> Snapshot {
        Snapshot { role: self.role(), leader: self.leader, term: self.terms.known }
    }

    /// Reports what the call that began at `before` changed.
    fn report_transition(&mut self, now: Time, before: Snapshot) {
        let after = self.snapshot();
        let reason = self.outbox.cause.take();
        let reaffirmed = after.role == Role::Leader && after.term != before.term;
        if (after.role, after.leader) == (before.role, before.leader) && !reaffirmed {
            return;
        }
        if after.role != before.role || after.leader != before.leader {
            self.outbox.since = now;
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

/// `interval`, but never zero: a timer of zero would spin.
fn at_least_a_millisecond(interval: Duration) -> Duration {
    interval.max(Duration::from_millis(1))
}
