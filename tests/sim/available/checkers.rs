//! What must hold at every step, whatever happens.
//!
//! Loss is no excuse: a settled group keeps its leader, unless as many datagrams in a row were lost
//! as it takes to give up a leader that is there. These are excuses, and why:
//!
//! * *Datagrams that are late by a tenth of an interval or more.* The answers to probes come too
//!   late then, and the group may change its leader as if they were lost.
//! * *Loss where candidates are counted.* A leader steps down that hears too few of them. They are
//!   not asked: heartbeats alone say that they are there.
//! * *Loss while the group settles.* How long it takes rests on datagrams that arrive.
//! * *Some that hear each other one way only.* How many lead then is not promised, only that it
//!   stays so. With keys not even that: a leader that the other one cannot hear cannot challenge
//!   it, and hears of it through a third node, whenever that one says something.
//! * *What an attacker without the key sends to hosts that accept it.* Until all hosts require a
//!   key it can be anything, also a number that its sender has yet to reach, so the group need not
//!   settle. What a host does by itself is checked all the same: its terms and its hooks, and that
//!   it probes if it was not deceived itself. Once all require a key, what was forged before is no
//!   excuse.
//! * *Hooks that are blocked.* They cannot be told that their leader has won a conflict.
//! * *One whose disk hangs.* It says that it leads, and declares nothing, until its term is on
//!   disk: it is neither counted as a leader nor expected to lead, and what it becomes while it
//!   follows nobody is its own affair. One that leads already goes on.
//! * *A disk that fails.* The node goes on without what was not saved, and forgets it in a restart:
//!   the terms of its hooks begin anew.
//! * *One that lost its state, and whose clock was set back.* What it concedes is not heard until
//!   its last life has failed.
//! * *One whose daemon is broken.* What it takes for its leader is its own affair.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lanelect::core::election::Election;
use lanelect::core::hook::{HookEvent, HookRun, Reason};
use lanelect::core::output::{Event, Transition};
use lanelect::core::params::{OnElectedFailure, Params, StaticRole};
use lanelect::core::persist::PersistentState;
use lanelect::core::rank::Rank;
use lanelect::time::Time;
use lanelect::types::{Incarnation, Life, NodeId, Role, Sequence, Term};
use lanelect::wire::message::{Body, Flags, Message, Standing};

use crate::available::swarm::LARGE;
use crate::handovers::Handovers;
use crate::silence::Silence;
use crate::watch::{Violation, Watch, refuse};
use crate::world::broken::Lie;
use crate::world::network::Network;
use crate::world::{DiskFault, Host, nanos, node_id};

/// A wake may come so much later than asked for, where a host's clock is not in step with true
/// time.
const CLOCK_GRAIN: Duration = Duration::from_nanos(10);

/// No leader is given up before so many probes for it were sent.
const ASKED_AT_LEAST: u32 = 3;

/// No leader that is there and reached is given up before so many datagrams were lost: the
/// declaration that was due, and of each probe since then either the probe or what answered it.
const LOST_AT_LEAST: u32 = 8;

/// The same of a follower that cannot lead, or may be none of the best in a large group: it leaves
/// it to the others to ask first.
const LOST_AT_LEAST_ELSE: u32 = ASKED_AT_LEAST + 1;

/// A copy of a datagram comes before so many others have.
const COPIES_WITHIN: usize = 64;

/// A leader gets above the leaderships that it hears of within so many intervals: at the end of
/// one, and that may be when its last term is not on a slow disk yet.
const OUTDOES_WITHIN: u32 = 3;

/// What is known about one host, over all its lives.
#[derive(Debug, Clone, Default)]
struct Record {
    /// In this life: the last hook that was started, and whether it still runs.
    last_hook: Option<HookEvent>,
    hook_before: Option<HookEvent>,
    hook_runs: bool,
    /// The highest term a hook has seen, and the highest of a leadership.
    hook_term: Term,
    term: Option<Term>,
    /// The last leadership of its hooks that a better leader ended.
    lost: Option<Term>,
    /// In this life: each node's newest datagram so far, by life and number.
    newest: BTreeMap<NodeId, (Incarnation, Sequence)>,
    /// In this life: the newest datagram of each that could not be told from a replayed one.
    discarded: BTreeMap<Life, Sequence>,
    /// In this life: when each node's newest declaration was taken in, by the host's own clock.
    declarations: BTreeMap<NodeId, Time>,
    /// In this life: how often each leader was asked for, by this host or as it heard, since it
    /// declared.
    asked: BTreeMap<NodeId, u32>,
    /// What was lost since each node's newest declaration was taken in.
    missed: BTreeMap<NodeId, Missed>,
    /// What arrived last, as far as a copy of it may still come. It is searched for each delivery,
    /// so what differs most comes first.
    arrived: VecDeque<(Sequence, Incarnation, NodeId)>,
    /// How many datagrams to this host were lost so far. One that a newer one overtook means
    /// nothing.
    lost_to_it: u32,
    leads: bool,
    /// In this life: whether it has declared itself in its leadership, if it leads.
    declares: bool,
    /// Whether it has taken a higher term in its leadership before it declared.
    begins_above: bool,
    /// In this life: what it last asked its disk to keep, and what it takes for kept.
    asked_to_keep: Option<PersistentState>,
    told_kept: Option<PersistentState>,
    /// In this life: whether it learned that since its last declaration.
    has_waited_for_disk: bool,
    /// In this life: until when a worse leader's declaration or a probe has to be answered, by its
    /// own clock.
    answer_by: Option<Time>,
    /// In this life: the terms that it has to get to while it leads, and until when, by its own
    /// clock.
    to_reach: Vec<(Term, Time)>,
    /// In this life: whose leaderships it heard of while it led.
    met: BTreeSet<(Life, Term)>,
    /// In this life: whether it yields, and still declares.
    yields: bool,
    /// In this life: until when it asks nobody to hand over, by its own clock, as it yielded and
    /// has not led since.
    no_claim_before: Time,
    /// In this life: when it last took a higher term while it led, by its own clock, and whether it
    /// had to do so at once for a leadership that the last datagram was the first to tell of. What
    /// it puts off it does by itself, within the time of `to_reach`.
    raised_at: Option<Time>,
    may_raise: bool,
    sequence: Sequence,
    /// In this life: when it first said something, by its own clock.
    speaks_since: Option<Time>,
    last_sent: Option<Message>,
    stopped: bool,
    /// In this life: until when it stays out after a failure, or claims nothing after a claim that
    /// failed, in true time.
    stays_out_until: Option<u64>,
}

/// Since a node's declaration was taken in.
#[derive(Debug, Clone, Copy)]
struct Missed {
    /// Which disturbance was the last one before it.
    disturbances: u64,
    /// How many datagrams from there were lost.
    from: u32,
    /// How many datagrams to it had been lost.
    to_before: u32,
}

impl Record {
    /// The term that a leader has to get to now that it has heard `message`. A leadership that it
    /// had not heard of may have run its hook after that of its own, also in a lower term.
    fn term_to_reach(&mut self, message: &Message, election: &Election) -> Option<Term> {
        match message.body {
            Body::Declaration { .. } if is_worse(message, election) => {
                let is_new = self.met.insert((message.life(), message.term));
                let own = election.term();
                Some(if is_new { own.max(message.term) } else { message.term }.next())
            }
            Body::Heartbeat { leader, conceded, .. } => {
                conceded.filter(|_| leader == Some(election.node_id()))
            }
            _ => None,
        }
    }

    /// Whether nothing that it wants to keep waits for its disk.
    fn has_saved(&self) -> bool {
        self.asked_to_keep == self.told_kept
    }

    /// Takes in that somebody asked for a leader, where this does.
    fn note_asked(&mut self, body: &Body) {
        if let Body::Probe { leader } = body {
            *self.asked.entry(*leader).or_default() += 1;
        }
    }
}

/// Watches every host at every step.
#[derive(Debug)]
pub struct Checkers {
    records: Vec<Record>,
    silence: Silence,
    handovers: Handovers,
    /// True time of the last fault or command, or of the last end of a holdoff.
    disturbed_at: u64,
    /// So long after that, on a calm network, the election must have settled.
    pub settling_time: u64,
    /// Whether a leader steps down that sees too few candidates.
    pub counts_candidates: bool,
    /// The member that is broken, where one is: what it takes for its leader is its own affair.
    /// Where it concedes leaderships that never were, the leader may take terms.
    pub broken: Option<(usize, Lie)>,
    /// Whether an attacker has been believed since all hosts required a key.
    pub attacked: bool,
    /// Whether every datagram arrives in time now.
    is_calm: bool,
    /// Whether anything changed since the leaders were last counted.
    uncounted: bool,
    /// How many faults and commands there were.
    disturbances: u64,
    /// Whether the group had settled since the last of them: from then on nothing changes, whatever
    /// is lost.
    settled: bool,
    /// Whether everybody that runs hears everybody; none where nobody has looked since.
    connected: Option<bool>,
    /// Those who run and hear each other, as [`Network::cliques`] has them.
    cliques: Option<Vec<Vec<usize>>>,
    /// The changes of the network and the set of the running hosts that they are of.
    looked_at: Option<(u32, u64)>,
}

impl Checkers {
    pub fn new(hosts: usize) -> Self {
        Checkers {
            records: vec![Record::default(); hosts],
            silence: Silence::of(hosts),
            handovers: Handovers::of(hosts),
            disturbed_at: 0,
            settling_time: u64::MAX,
            counts_candidates: false,
            broken: None,
            attacked: false,
            is_calm: true,
            uncounted: true,
            disturbances: 0,
            settled: false,
            connected: None,
            cliques: None,
            looked_at: None,
        }
    }
}

impl Watch for Checkers {
    fn disturb(&mut self, now: u64) {
        self.handovers.disturb(now);
        self.stir(now);
    }

    fn stir(&mut self, now: u64) {
        self.disturbed_at = now;
        self.uncounted = true;
        self.disturbances += 1;
        self.settled = false;
        self.connected = None;
    }

    fn note_failed_run(&mut self) {
        self.handovers.note_failed_run();
    }

    fn note_late(&mut self, now: u64) {
        self.handovers.disturb(now);
    }

    fn note_lost(&mut self, from: usize, to: usize) {
        self.records[to].lost_to_it += 1;
        if let Some(missed) = self.records[to].missed.get_mut(&node_id(from)) {
            missed.from += 1;
        }
    }

    fn note_start(&mut self, host: usize, _now: u64, hosts: &[Host]) {
        let record = &mut self.records[host];
        let Record { hook_term, term, lost, lost_to_it, .. } = *record;
        *record = Record { hook_term, term, lost, lost_to_it, ..Record::default() };
        if hosts[host].disk.has_lost_terms {
            *record = Record { lost_to_it, ..Record::default() };
        }
        self.silence.note_start(host);
    }

    fn note_stopped(&mut self, host: usize) {
        self.records[host].stopped = true;
        self.records[host].stays_out_until = None;
        self.uncounted = true;
    }

    /// A loser that crashes before the term that it concedes is on disk concedes the one that is.
    fn note_crash(&mut self, host: usize, _now: u64, hosts: &[Host]) {
        let below = Term(hosts[host].disk.kept.term.0.saturating_sub(1));
        let record = &mut self.records[host];
        record.lost = record.lost.map(|lost| lost.min(below));
        record.stays_out_until = None;
    }

    /// A held host does nothing in time.
    fn note_held(&mut self, host: usize) {
        self.records[host].answer_by = None;
        self.records[host].to_reach.clear();
    }

    fn note_delivery(
        &mut self,
        host: usize,
        now: Time,
        message: &Message,
        election: &Election,
    ) -> bool {
        let missed = Missed {
            disturbances: self.disturbances,
            from: 0,
            to_before: self.records[index_of(&message.sender)].lost_to_it,
        };
        let number = (message.incarnation, message.sequence);
        self.note_overtaken(host, message);
        let record = &mut self.records[host];
        let newest = record.newest.entry(message.sender).or_default();
        let discarded = record.discarded.get(&message.life());
        let is_news = number > *newest && discarded.is_none_or(|it| message.sequence > *it);
        *newest = number.max(*newest);
        if matches!(message.body, Body::Declaration { .. }) && is_news {
            record.declarations.insert(message.sender, now);
            record.missed.insert(message.sender, missed);
            record.asked.remove(&message.sender);
        }
        let wants_answer = match message.body {
            Body::Declaration { .. } => is_worse(message, election),
            Body::Probe { leader } => leader == election.node_id(),
            _ => false,
        };
        if is_news && wants_answer && election.is_leader() && record.declares {
            let answer_by = now + election.params().declaration_gap() + CLOCK_GRAIN;
            record.answer_by.get_or_insert(answer_by);
        }
        let interval = election.params().heartbeat_interval;
        let may_raise = record.raised_at.is_none_or(|raised| now.since(raised) >= interval);
        let is_new = !record.met.contains(&(message.life(), message.term));
        record.may_raise = may_raise && is_new && record.has_saved();
        // What was forged may hide from this record what the host still believes.
        if (is_news || self.attacked) && election.is_leader() {
            let term = record.term_to_reach(message, election).filter(|_| is_news);
            record.to_reach.extend(term.map(|term| (term, now + interval * OUTDOES_WITHIN)));
        }
        is_news
    }

    fn note_taken_in(&mut self, host: usize, message: &Message) {
        self.records[host].note_asked(&message.body);
    }

    /// The numbers of a forgery stay. It is no news of its sender otherwise: nothing has to come of
    /// it. But a probe is one. And until a leader requires keys, it takes a forged leadership for
    /// one of its sender's.
    fn note_forged(&mut self, host: usize, now: u64, message: &Message, election: &Election) {
        self.handovers.disturb(now);
        self.silence.note_forged(host, message, election);
        let record = &mut self.records[host];
        let newest = record.newest.entry(message.sender).or_default();
        *newest = (message.incarnation, message.sequence).max(*newest);
        record.note_asked(&message.body);
        if election.is_leader() {
            record.term_to_reach(message, election);
        }
        record.answer_by = None;
        record.to_reach.clear();
    }

    fn note_key_required(&mut self, host: usize) {
        self.records[host].newest.clear();
        self.records[host].discarded.clear();
        self.records[host].met.clear();
    }

    fn note_unproven(&mut self, host: usize, message: &Message) {
        let discarded = self.records[host].discarded.entry(message.life()).or_default();
        *discarded = message.sequence.max(*discarded);
    }

    /// After news from a better node a leader follows its declaration, and a candidate leaves it to
    /// its proposal. Once a worse leader's leadership is declared for the first time, a leader
    /// leads under a term above that, unless it took another one less than an interval before.
    fn check_reaction(
        &self,
        host: usize,
        message: &Message,
        election: &Election,
    ) -> Result<(), Violation> {
        let theirs = Rank::new(message.sender, &message.standing);
        let own = rank(election);
        if message.sender == own.node_id() {
            return Ok(());
        }
        let persists = match message.body {
            Body::Declaration { .. } => election.is_leader() && !own.is_fixed(),
            Body::Proposal => election.role() == Role::Candidate,
            _ => false,
        };
        refuse(persists && theirs > own, || {
            format!("{} ignores {:?} of the better {theirs:?}", own.node_id(), message.body)
        })?;
        let met_rival = matches!(message.body, Body::Declaration { .. })
            && election.is_leader()
            && is_worse(message, election);
        let may_raise = self.records[host].may_raise;
        refuse(met_rival && may_raise && election.term() <= message.term, || {
            format!("{} leads on under a term not above {}'s", own.node_id(), message.sender)
        })
    }

    fn note_asked_to_keep(
        &mut self,
        host: usize,
        state: &PersistentState,
    ) -> Result<(), Violation> {
        self.records[host].asked_to_keep = Some(*state);
        Ok(())
    }

    fn note_told_kept(&mut self, host: usize, state: &PersistentState) {
        self.records[host].told_kept = Some(*state);
        self.records[host].has_waited_for_disk = true;
    }

    /// Terms and lives on disk only grow.
    fn note_kept(
        &mut self,
        host: usize,
        before: &PersistentState,
        after: &PersistentState,
    ) -> Result<(), Violation> {
        let shrinks = after.term < before.term || after.incarnation < before.incarnation;
        refuse(shrinks, || {
            format!("{} persists less than before: {before:?} → {after:?}", node_id(host))
        })
    }

    /// Nothing is sent after the end, numbers only grow, no term is told before it is on disk, a
    /// leadership begins under a new term, nobody resigns while a hook runs, and a leader answers a
    /// worse one and whoever asks for it within the declaration gap.
    fn note_sent(
        &mut self,
        host: usize,
        now: u64,
        message: &Message,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        self.silence.note_sent(host, now, message, &hosts[host]);
        if message.body == Body::Claim {
            self.handovers.note_claim(host, now, &hosts[host])?;
        }
        let (now, settled) = (hosts[host].local(now), hosts[host].disk.settled_term());
        let record = &mut self.records[host];
        let id = node_id(host);
        refuse(record.stopped, || format!("{id} sends {:?} after it stopped", message.body))?;
        refuse(message.sequence <= record.sequence, || format!("{id} repeats a sequence number"))?;
        refuse(message.term > settled, || format!("{id} tells a term that is not on disk"))?;
        let resigns = matches!(message.body, Body::Resignation { .. });
        // What comes after it is the same resignation, said again.
        let led = record.last_sent.is_some_and(|last| last.standing.role == Role::Leader);
        if resigns && led && record.yields {
            record.no_claim_before = now + hosts[host].params.yield_time();
        }
        refuse(resigns && led && record.hook_runs, || format!("{id} resigns while its hook runs"))?;
        if matches!(message.body, Body::Declaration { .. }) {
            let before = record.last_sent.filter(|last| last.standing.role != Role::Leader);
            let old_term = before.is_some_and(|last| message.term <= last.term);
            refuse(old_term, || format!("{id} begins a leadership under an old term"))?;
            if !record.declares {
                record.no_claim_before = Time::default();
            }
            let late = record.answer_by.take().is_some_and(|answer_by| now > answer_by);
            refuse(late, || format!("{id} answered too late"))?;
            record.declares = true;
            record.to_reach.retain(|(term, _)| message.term < *term);
            if std::mem::take(&mut record.has_waited_for_disk) || !record.has_saved() {
                // It gets there when its present term is on disk.
                let by = now + hosts[host].params.heartbeat_interval * OUTDOES_WITHIN;
                record.to_reach.iter_mut().for_each(|(_, old)| *old = by.max(*old));
            }
            let missed = record.to_reach.iter().find(|(_, by)| now > *by);
            refuse(missed.is_some(), || {
                format!("{id} leads on under {} instead of {missed:?}", message.term)
            })?;
        }
        let claims_early =
            message.body == Body::Claim && now + CLOCK_GRAIN < record.no_claim_before;
        refuse(claims_early, || format!("{id} has yielded and wants the leadership back"))?;
        record.note_asked(&message.body);
        record.sequence = message.sequence;
        record.speaks_since.get_or_insert(now);
        record.last_sent = Some(*message);
        Ok(())
    }

    /// Hooks run one at a time, alternate, and see terms that only grow, and take over under terms
    /// that are on disk. A refresh has the term of its leadership.
    fn note_hook_start(
        &mut self,
        host: usize,
        now: u64,
        run: &HookRun,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        use HookEvent::{Demoted, Elected, Reaffirmed, Started};
        let record = &mut self.records[host];
        let id = node_id(host);
        refuse(record.hook_runs, || format!("{id} starts {} while a hook runs", run.event))?;
        let fits = matches!(
            (record.last_hook, run.event),
            (None, Started)
                | (Some(Started | Demoted), Elected)
                | (Some(Elected | Reaffirmed), Reaffirmed | Demoted)
        );
        refuse(!fits, || format!("{id} runs {} after {:?}", run.event, record.last_hook))?;
        refuse(run.term < record.hook_term, || format!("{id} runs a hook under a shrunken term"))?;
        if matches!(run.event, Elected | Reaffirmed) {
            let refreshes = (run.event, run.reason) == (Reaffirmed, Reason::Refresh);
            let again = record.term.is_some_and(|term| run.term <= term) && !refreshes;
            refuse(again, || format!("{id} leaderships again under term {}", run.term))?;
            let is_early = run.term > hosts[host].disk.settled_term();
            refuse(is_early, || format!("{id} runs {} before its term is on disk", run.event))?;
            record.term = Some(run.term);
        } else if run.reason == Reason::BetterLeader {
            record.lost = record.term;
        }
        // `demoted` may have a term that is not on disk, and a crash forgets that.
        record.hook_term = record.hook_term.max(run.term.min(hosts[host].disk.settled_term()));
        record.hook_before = record.last_hook.replace(run.event);
        record.hook_runs = true;
        if run.event == Elected {
            self.handovers.note_taken_over(host, now, hosts)?;
        }
        Ok(())
    }

    fn note_hook_end(&mut self, host: usize, _event: HookEvent, repeats: bool) {
        let record = &mut self.records[host];
        record.hook_runs = false;
        if repeats {
            record.last_hook = record.hook_before;
        }
    }

    /// A leader is given up only after it has really been silent and was asked, and nothing changes
    /// in a group that has settled. That a node is held off is no excuse, only that it comes back.
    fn note_event(
        &mut self,
        index: usize,
        now: u64,
        event: &Event,
        host: &Host,
    ) -> Result<(), Violation> {
        self.note_returns(now);
        match event {
            Event::LeaderSilent { leader, .. } => {
                let threshold = host.params.leader_alive_threshold;
                let heard = self.records[index].declarations.get(leader);
                let local = host.local(now);
                let silent = heard.is_none_or(|heard| local.since(*heard) >= threshold);
                let id = host.node_id;
                // One whose disk hung until just now could say nothing, and probed nobody.
                let spoke = self.records[index].speaks_since;
                let is_audible = spoke.is_some_and(|since| local.since(since) >= threshold);
                // A forged number hides what it hears, and forged probes count.
                let is_sound = !host.is_deceived && is_audible;
                refuse(!silent && is_sound, || format!("{id} gave up {leader}, which it hears"))?;
                let asked = self.records[index].asked.get(leader).copied().unwrap_or_default();
                refuse(asked < ASKED_AT_LEAST && is_sound, || {
                    format!("{id} gave up {leader}, asked {asked} times")
                })?;
                let eligible = host.election.as_ref().is_some_and(Election::is_eligible);
                let asks_in_turn = eligible && self.records.len() < *LARGE.start();
                if is_audible {
                    self.check_loss(index, leader, asks_in_turn)?;
                }
                // That many were lost in a row: the group may settle again.
                self.stir(now);
                Ok(())
            }
            Event::HeldOff { holdoff, .. } => {
                let holdoff = host.clock.span(nanos(*holdoff));
                self.records[index].stays_out_until = Some(now + holdoff);
                Ok(())
            }
            Event::ClaimFailed { .. } => {
                self.records[index].stays_out_until = Some(host.claims_again_at);
                Ok(())
            }
            Event::Transition(transition) => {
                let Transition { role, previous_role, leader, reason, .. } = transition;
                let is_hung = self.is_hung_and_alone(index, transition, host);
                self.uncounted = true;
                let record = &mut self.records[index];
                if *reason == Some(Reason::Yield) {
                    record.no_claim_before = host.local(now) + host.params.yield_time();
                }
                record.yields = *reason == Some(Reason::Yield) && leader.is_none();
                if (*role, *previous_role) == (Role::Leader, Role::Leader) {
                    self.note_raised(index, host, now)?;
                } else if *role == Role::Leader {
                    let record = &mut self.records[index];
                    (record.declares, record.begins_above) = (false, false);
                }
                self.records[index].leads = *role == Role::Leader;
                if *role != Role::Leader {
                    self.records[index].answer_by = None;
                    self.records[index].to_reach.clear();
                }
                let settled = self.settled || (self.is_calm && now > self.settles_by());
                let id = host.node_id;
                let reaffirms = (*role, *previous_role) == (Role::Leader, Role::Leader);
                let is_borne = self.broken.is_some_and(|(broken, how)| {
                    broken == index || (how == Lie::Concede && reaffirms)
                });
                refuse(settled && !is_borne && !is_hung, || {
                    format!("{id} becomes {role} under {leader:?} without cause")
                })
            }
            _ => Ok(()),
        }
    }

    /// A group that has had the time to settle has exactly the leader it should. Where datagrams
    /// are lost there is no such time; but once it has its leader it keeps it.
    fn check_step(&mut self, now: u64, hosts: &[Host], network: &Network) -> Result<(), Violation> {
        self.silence.check(now, hosts)?;
        self.handovers.check_step(now, hosts, network);
        self.note_returns(now);
        // Answers that come too late are no answers, and candidates are counted by what is heard of
        // them within some intervals, without asking: nothing is promised of either.
        let is_borne = network.weather.is_prompt() && !self.counts_candidates;
        self.look_who_hears_whom(hosts, network);
        let is_authenticated = hosts.iter().any(|host| host.params.demands_proof());
        let may_meet_late = is_authenticated && self.cliques.is_none();
        self.is_calm = network.weather.is_calm() && !may_meet_late;
        if self.attacked || !self.is_calm && (!is_borne || may_meet_late) {
            self.stir(now);
        }
        if !self.uncounted || now <= self.settles_by() {
            return Ok(());
        }
        self.uncounted = false;
        self.connected = Some(self.cliques.as_ref().is_some_and(|cliques| cliques.len() == 1));
        // Where some hear each other one way only: how many lead is not promised, only that it
        // stays as it is.
        let checked = self.cliques.iter().flatten().try_for_each(|clique| {
            let is_silent = |host: &usize| self.is_silenced(*host, &hosts[*host]);
            let (silent, clique): (Vec<_>, Vec<_>) = clique.iter().copied().partition(is_silent);
            check_clique(&clique, now, hosts)?;
            check_silent(&silent, &clique, hosts)?;
            check_hooks(&clique, hosts)?;
            self.check_leaderships(&clique, hosts)
        });
        self.settled = checked.is_ok();
        match checked {
            Err(_) if !self.is_calm => {
                self.stir(now);
                Ok(())
            }
            checked => checked,
        }
    }
}

impl Checkers {
    /// Only what changes the network, and the start and end of a daemon, changes that.
    fn look_who_hears_whom(&mut self, hosts: &[Host], network: &Network) {
        let up = |host: &usize| hosts[*host].is_up();
        let set = (0..hosts.len()).filter(up).fold(0, |set, host| set | 1_u64 << host);
        let looked_at = (network.changes(), set);
        if self.looked_at != Some(looked_at) {
            self.looked_at = Some(looked_at);
            self.cliques = network.cliques(&(0..hosts.len()).filter(up).collect::<Vec<_>>());
        }
    }

    /// A node that was held off comes back, and that changes the group.
    fn note_returns(&mut self, now: u64) {
        let is_back = |until: &mut u64| *until <= now + nanos(CLOCK_GRAIN);
        let mut records = self.records.iter_mut();
        if records.any(|record| record.stays_out_until.take_if(is_back).is_some()) {
            self.stir(now);
        }
    }

    /// When the election must have settled.
    fn settles_by(&self) -> u64 {
        self.disturbed_at.saturating_add(self.settling_time)
    }

    /// A datagram that arrives after a newer one of its sender counts as lost, once.
    fn note_overtaken(&mut self, host: usize, message: &Message) {
        let record = &mut self.records[host];
        let arrived = (message.sequence, message.incarnation, message.sender);
        let newest = record.newest.get(&message.sender);
        let is_late =
            newest.is_some_and(|newest| (message.incarnation, message.sequence) < *newest);
        let is_first = !record.arrived.contains(&arrived);
        if is_first {
            record.arrived.push_back(arrived);
        }
        if record.arrived.len() > COPIES_WITHIN {
            record.arrived.pop_front();
        }
        if is_late && is_first {
            self.note_lost(index_of(&message.sender), host);
        }
    }

    /// A leader takes a higher term once an interval at the most, whatever it hears. But before it
    /// declares it may do so once in each leadership, to begin above what it has heard meanwhile.
    fn note_raised(&mut self, index: usize, host: &Host, now: u64) -> Result<(), Violation> {
        let (now, interval) = (host.local(now), host.params.heartbeat_interval);
        let record = &mut self.records[index];
        let last = record.raised_at.replace(now);
        let begins = !record.declares && !std::mem::replace(&mut record.begins_above, true);
        let is_soon = last.is_some_and(|last| now.since(last) + CLOCK_GRAIN < interval);
        let too_soon = is_soon && !begins;
        refuse(too_soon, || format!("{} takes terms one after the other", host.node_id))
    }

    /// In a group that nothing has disturbed since `index` heard `leader`, and in which everybody
    /// reaches everybody, a leader is given up only after as many datagrams were lost as probing
    /// bears.
    fn check_loss(&self, index: usize, leader: &NodeId, in_turn: bool) -> Result<(), Violation> {
        let Some(missed) = self.records[index].missed.get(leader) else { return Ok(()) };
        let theirs = &self.records[index_of(leader)];
        let undisturbed = missed.disturbances == self.disturbances && self.connected == Some(true);
        let lost = missed.from + theirs.lost_to_it - missed.to_before;
        let least = if in_turn { LOST_AT_LEAST } else { LOST_AT_LEAST_ELSE };
        refuse(undisturbed && theirs.leads && lost < least, || {
            format!("{} gave up {leader} after {lost} lost datagrams", node_id(index))
        })
    }

    /// The hooks of the one leader of a settled group have been run under a term above the
    /// leaderships that others lost to a better leader: the winner of a conflict was told of it.
    /// Blocked ones cannot be told.
    fn check_leaderships(&self, clique: &[usize], hosts: &[Host]) -> Result<(), Violation> {
        let leads = |host: &&usize| hosts[**host].election.as_ref().is_some_and(|e| e.is_leader());
        let mut leaders = clique.iter().filter(leads);
        let (Some(leader), None) = (leaders.next(), leaders.next()) else { return Ok(()) };
        if hosts[*leader].hooks.blocked || !self.records[*leader].has_saved() {
            return Ok(());
        }
        let term = self.records[*leader].term;
        clique.iter().filter(|other| *other != leader).try_for_each(|other| {
            let lost = self.records[*other].lost.filter(|_| !hosts[*other].is_set_back());
            refuse(lost.is_some() && lost >= term, || {
                let (leader, other) = (node_id(*leader), node_id(*other));
                format!("{leader} leads under {term:?}, though {other} lost {lost:?}")
            })
        })
    }

    /// Whether a host's disk hangs, and it neither follows another one nor has declared that it
    /// leads, before and after the transition.
    fn is_hung_and_alone(&self, index: usize, transition: &Transition, host: &Host) -> bool {
        let Transition { previous_role, leader, previous_leader, .. } = transition;
        let is_alone =
            [leader, previous_leader].into_iter().flatten().all(|it| *it == host.node_id);
        let has_declared = *previous_role == Role::Leader && self.records[index].declares;
        host.disk.fault == DiskFault::Hangs && is_alone && !has_declared
    }

    /// Whether a host's disk hangs, so it has said nothing in this life, or not that it leads.
    fn is_silenced(&self, index: usize, host: &Host) -> bool {
        let leads = host.election.as_ref().is_some_and(Election::is_leader);
        let is_mute = self.records[index].last_sent.is_none();
        host.disk.fault == DiskFault::Hangs && (is_mute || leads && !self.records[index].declares)
    }
}

/// In a connected group that has settled there is exactly one leader, known to all; or none, where
/// nobody may lead; or every static leader. A node whose claim has failed lets the leader be for a
/// while.
fn check_clique(clique: &[usize], now: u64, hosts: &[Host]) -> Result<(), Violation> {
    let elections: Vec<&Election> =
        clique.iter().filter_map(|host| hosts[*host].election.as_ref()).collect();
    let candidates = elections.iter().filter(|election| election.params().candidate).count();
    let leads_by_order =
        |election: &&&Election| election.params().static_role == Some(StaticRole::Leader);
    let may_lead = |election: &&&Election| {
        let needed = usize::from(election.params().min_candidates);
        election.is_eligible() && (candidates >= needed || leads_by_order(election))
    };
    let able = clique.iter().map(|host| &hosts[*host]).filter(|host| may_save_or_leads(host));
    let able = able.filter_map(|host| host.election.as_ref());
    let able: Vec<&Election> = able.filter(|election| may_lead(&election)).collect();
    let ordered: Vec<NodeId> =
        able.iter().filter(leads_by_order).map(|election| election.node_id()).collect();
    let leaders: Vec<NodeId> =
        elections.iter().filter(|e| e.is_leader()).map(|e| e.node_id()).collect();
    let expected = if able.is_empty() { 0 } else { ordered.len().max(1) };
    refuse(leaders.len() != expected, || {
        let ids: Vec<_> = elections.iter().map(|e| (e.node_id(), e.role(), e.leader())).collect();
        format!("{} leaders instead of {expected} among {ids:?}", leaders.len())
    })?;
    refuse(!ordered.is_empty() && ordered != leaders, || {
        format!("{leaders:?} lead instead of the static {ordered:?}")
    })?;
    let [leader] = leaders[..] else { return Ok(()) };
    for election in &elections {
        refuse(election.leader() != Some(leader), || {
            format!("{} follows {:?}, not {leader}", election.node_id(), election.leader())
        })?;
    }
    let preempting = able.iter().filter(|election| election.params().preempt);
    let best = preempting.map(|election| rank(election)).max();
    let own = able.iter().find(|election| election.is_leader()).map(|election| rank(election));
    let waits = best.is_some_and(|best| hosts[index_of(&best.node_id())].claims_again_at > now);
    refuse(!waits && best.is_some() && best > own, || {
        format!("{leader} leads though {best:?} preempts")
    })
}

/// Where a leader declares, a node whose disk hangs does not take itself for the leader: it has
/// heard the other one. Static leaders let each other be.
fn check_silent(silent: &[usize], clique: &[usize], hosts: &[Host]) -> Result<(), Violation> {
    let leading = |hosts_of: &[usize]| {
        let elections = hosts_of.iter().filter_map(|host| hosts[*host].election.as_ref());
        let leaders = elections.filter(|election| election.is_leader());
        leaders.map(rank).collect::<Vec<_>>()
    };
    let leaders = leading(clique);
    leading(silent).iter().try_for_each(|silent| {
        let rival = leaders.iter().find(|leader| !(leader.is_fixed() && silent.is_fixed()));
        refuse(rival.is_some(), || format!("{silent:?} leads in silence beside {rival:?}"))
    })
}

/// Whether a host's disk lets it take office, or it leads already.
fn may_save_or_leads(host: &Host) -> bool {
    let leads = host.election.as_ref().is_some_and(Election::is_leader);
    leads || host.disk.fault != DiskFault::Hangs
}

/// In a group that has settled the hooks of a leader have taken over, or are doing it, unless the
/// leader is to lead without.
fn check_hooks(clique: &[usize], hosts: &[Host]) -> Result<(), Violation> {
    clique.iter().map(|index| &hosts[*index]).try_for_each(|host| {
        let leads = host.election.as_ref().is_some_and(Election::is_leader);
        let needs_them = host.params.on_elected_failure == OnElectedFailure::Resign;
        let have_them = host.hooks_hold || host.runs_hook() && !host.hooks.blocked;
        refuse(leads && needs_them && !have_them, || {
            format!("{} leads, and its hooks have not taken over", host.node_id)
        })
    })
}

/// Whether a message comes from a node that ranks below an election, not both being static.
fn is_worse(message: &Message, election: &Election) -> bool {
    let (theirs, own) = (Rank::new(message.sender, &message.standing), rank(election));
    let another = message.sender != election.node_id();
    another && theirs < own && !(theirs.is_fixed() && own.is_fixed())
}

/// A running election's rank, from its public settings.
pub fn rank(election: &Election) -> Rank {
    let fixed = election.params().static_role == Some(StaticRole::Leader);
    let flags =
        Flags::default().with(Flags::ELIGIBLE, election.is_eligible()).with(Flags::FIXED, fixed);
    let Params { priority, tie_break, .. } = *election.params();
    let standing = Standing { role: election.role(), priority, tie_break, flags, voters: None };
    Rank::new(election.node_id(), &standing)
}

/// Which host has this id; see `node_id`.
fn index_of(id: &NodeId) -> usize {
    id.as_str()[1..].parse().expect("the number of a host")
}
