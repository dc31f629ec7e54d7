//! What quorum mode promises, checked in true time at every step.
//!
//! | check | what |
//! |---|---|
//! | leadership | at every instant at most one daemon may act as the leader |
//! | terms | no two lives lead in one term; `elected` hooks get terms that only grow; only voters move them |
//! | leases | a majority has promised what a leader relies on, for as long as it does |
//! | ballots, pledges | a voter votes once a term, and holds still as long as it promised |
//! | voters | nobody says yes to a node that names other voters |
//! | disk | what a datagram rests on is on disk before it leaves |
//! | enrolment | only voters that remember their votes vote, acknowledge and stand |
//! | hooks | at every instant at most one node is between `elected` and the end of `demoted` |
//! | fence | it runs where hooks have not let go in time, only there, and one at a time |
//! | duplicates | an id under which two daemons are heard does not count |
//! | silence | nobody says nothing for longer than it has announced |
//! | order | hooks alternate, numbers grow, nothing is sent after the end or for a dead lease |
//! | handovers | no fault costs a leader its leadership again and again; see `handovers` |
//! | liveness | see `endings` |

use std::collections::BTreeMap;
use std::time::Duration;

use lanelect::core::election::Election;
use lanelect::core::hook::{HookEvent, HookRun};
use lanelect::core::output::{Event, Transition};
use lanelect::core::persist::{Ballot, PersistentState};
use lanelect::core::status::Ineligible;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Role, Sequence, Term};
use lanelect::wire::message::{Body, Message};

use super::broken;
use super::duplicates::Duplicates;
use super::leaderships::{Leaderships, may_act};
use super::ledger::Ledger;
use super::recorder::Recorder;
use crate::handovers::Handovers;
use crate::silence::Silence;
use crate::watch::{Decided, Violation, Watch};
use crate::world::network::Network;
use crate::world::{Clock, Host, label};

/// In one life of one host.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    last_hook: Option<HookEvent>,
    hook_before: Option<HookEvent>,
    hook_runs: bool,
    /// The last vote that it asked to be kept, or remembered.
    ballot: Option<Ballot>,
    sequence: Sequence,
    stopped: bool,
    /// When this life began, by its own clock.
    began: Time,
    /// Whether the fence command ran for what its hooks hold.
    fenced: bool,
    /// The end of its lease, and whether its hooks have to let go after it.
    relied_on: Option<(Time, bool)>,
}

/// What came of it all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Transitions of a role or leader.
    pub transitions: u64,
    /// Times at which a node took over while another's hooks had not let go.
    pub overlaps: u64,
    /// Fence commands.
    pub fences: u64,
    /// Requests to keep something.
    pub asked_to_keep: u64,
}

/// Watches every host at every step.
#[derive(Debug)]
pub struct Guarantees {
    records: Vec<Record>,
    /// By host, over all its lives: true time until which nobody else may take over what its
    /// hooks hold.
    covered: Vec<u64>,
    newest: BTreeMap<(usize, NodeId), (Incarnation, Sequence)>,
    silence: Silence,
    handovers: Handovers,
    pub leaderships: Leaderships,
    pub ledger: Ledger,
    /// The highest term that a voter has announced. A node that is no voter moves nobody's term.
    voters_term: Term,
    /// The id that two daemons use at present.
    pub duplicates: Option<Duplicates>,
    /// Whether a watchdog and a post-stop see to it that hooks let go.
    pub guarded: bool,
    /// The shortest grace of any setting: no fence may come before it is over.
    pub grace: Duration,
    /// The longest: hooks that were to let go are fenced after it.
    pub longest_grace: Duration,
    /// From when on nothing may change any more, where so much is known.
    pub settled: Option<Settled>,
    pub counts: Counts,
    /// Writes the run down, if that is asked for.
    pub recorder: Option<Recorder>,
}

/// A group in which nothing is to change.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Whose transitions are forbidden.
    pub hosts: Vec<usize>,
    /// Why.
    pub why: &'static str,
}

impl Guarantees {
    pub fn new(hosts: usize, guarded: bool, grace: Duration) -> Self {
        Guarantees {
            records: vec![Record::default(); hosts],
            covered: vec![0; hosts],
            newest: BTreeMap::new(),
            silence: Silence::of(hosts),
            handovers: Handovers::of(hosts),
            leaderships: Leaderships::default(),
            ledger: Ledger::default(),
            voters_term: Term::default(),
            duplicates: None,
            guarded,
            grace,
            longest_grace: grace,
            settled: None,
            counts: Counts::default(),
            recorder: None,
        }
    }

    /// A node knows no higher term than a voter has announced, or it has itself asked for votes in.
    fn check_term(&mut self, message: &Message, host: &Host) -> Result<(), Violation> {
        let own = host.disk.kept.ballot.filter(|own| own.candidate.node_id == message.sender);
        let known = own.map_or(Term::default(), |own| own.term).max(self.voters_term);
        broken("terms", message.term > known, || {
            format!("{} is in term {}, and voters in {known}", message.sender, message.term)
        })?;
        if host.election.as_ref().is_some_and(|election| has_vote(election, &message.sender)) {
            self.voters_term = message.term.max(self.voters_term);
        }
        Ok(())
    }

    /// Every lease rests on promises, whenever it or what it has to cover has changed.
    fn check_leases(&mut self, hosts: &[Host]) -> Result<(), Violation> {
        for (index, host) in hosts.iter().enumerate() {
            let lease = host.election.as_ref().and_then(Election::lease_end);
            let relied_on = lease.map(|end| (end, host.hooks_hold));
            let last = std::mem::replace(&mut self.records[index].relied_on, relied_on);
            if let Some(end) = lease.filter(|_| last != relied_on) {
                let covered = host.clock.true_time(end + self.grace).saturating_sub(Clock::GRAIN);
                self.covered[index] = self.covered[index].max(covered);
                self.ledger.check_lease(index, hosts, end, self.grace)?;
            }
        }
        Ok(())
    }

    /// At every instant at most one node is between the start of `elected` and the end of
    /// `demoted`. Where nothing guards the hooks it is counted how often that fails; but not
    /// before they have had the grace.
    fn check_takeover(&mut self, index: usize, now: u64, hosts: &[Host]) -> Result<(), Violation> {
        let other = (0..hosts.len()).find(|other| *other != index && hosts[*other].hooks_hold);
        let Some(other) = other else { return Ok(()) };
        self.counts.overlaps += 1;
        // Whatever becomes of the daemon and its hooks, they have had their grace.
        let too_early = now < self.covered[other] && may_act(&hosts[index], now);
        broken("hooks", self.guarded || too_early, || {
            let (one, other) = (label(hosts, index), label(hosts, other));
            format!("{one} takes over though {other}'s hooks have not let go, early: {too_early}")
        })
    }

    /// The fence command is for hooks that have not let go when the grace is over, after the
    /// lease or a demote hook that failed, and for those of a daemon that stops and cannot run
    /// their demote hook. Where they are guarded neither happens.
    fn check_fence(
        &mut self,
        index: usize,
        now: u64,
        term: Term,
        host: &Host,
    ) -> Result<(), Violation> {
        self.counts.fences += 1;
        self.records[index].fenced = true;
        let local = host.local(now);
        let mut graces = host.lease_seen.into_iter().chain(host.late_since);
        let overran = graces.any(|begin| local >= begin + self.grace);
        let why = host.election.as_ref().and_then(|election| election.ineligible(local));
        let holds = host.hooks_hold || host.runs_hook();
        let needed = holds && (overran || why == Some(Ineligible::Stopping));
        broken("fence", !needed, || format!("{} is fenced for term {term} in vain", host.node_id))?;
        broken("fence", self.guarded, || format!("{}'s hooks were late", host.node_id))
    }

    /// Hooks that were to let go, and have not when the grace is over, are fenced, unless the
    /// daemon stops: then `post-stop` does that.
    fn check_overdue(&mut self, now: u64, hosts: &[Host]) -> Result<(), Violation> {
        for (record, host) in self.records.iter_mut().zip(hosts) {
            record.fenced &= host.hooks_hold;
            let (Some(since), Some(election)) = (host.late_since, &host.election) else { continue };
            let stops = election.ineligible(host.local(now)) == Some(Ineligible::Stopping);
            // A daemon that was held learns of it when it goes on.
            let known = since.max(host.local(host.released_at));
            let overdue = host.clock.true_time(known + self.longest_grace) + Clock::GRAIN;
            let is_due = since >= record.began && now > overdue;
            broken("fence", is_due && host.is_up() && !stops && !record.fenced, || {
                format!("{} is not fenced, though its hooks have not let go", host.node_id)
            })?;
        }
        Ok(())
    }

    /// One hook at a time; `elected` and `demoted` alternate, `started` comes first.
    fn check_order(&mut self, index: usize, run: &HookRun, host: &Host) -> Result<(), Violation> {
        use HookEvent::{Demoted, Elected, Reaffirmed, Started};
        let record = &mut self.records[index];
        let (id, last) = (host.node_id, record.last_hook);
        broken("order", record.hook_runs, || format!("{id} starts {} beside a hook", run.event))?;
        let fits = matches!(
            (last, run.event),
            (None, Started)
                | (Some(Started | Demoted), Elected)
                | (Some(Elected | Reaffirmed), Reaffirmed | Demoted)
        );
        broken("order", !fits, || format!("{id} runs {} after {last:?}", run.event))?;
        record.hook_before = record.last_hook.replace(run.event);
        record.hook_runs = true;
        Ok(())
    }
}

impl Watch for Guarantees {
    const DUPLICATES_MEAN_NOTHING: bool = false;

    fn disturb(&mut self, now: u64) {
        self.handovers.disturb(now);
    }

    fn stir(&mut self, _now: u64) {}

    fn note_failed_run(&mut self) {
        self.handovers.note_failed_run();
    }

    fn note_late(&mut self, now: u64) {
        self.handovers.disturb(now);
    }

    fn note_start(&mut self, index: usize, now: u64, hosts: &[Host]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_start(index, now, hosts);
        }
        let ballot = hosts[index].disk.kept.ballot;
        let began = hosts[index].local(now);
        self.records[index] = Record { ballot, began, ..Record::default() };
        self.newest.retain(|(host, _), _| *host != index);
        self.silence.note_start(index);
    }

    fn note_stopped(&mut self, index: usize) {
        self.records[index].stopped = true;
        if let Some(recorder) = &mut self.recorder {
            recorder.note_stopped(index);
        }
    }

    fn note_turn(&mut self, index: usize, now: u64, hosts: &[Host]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_turn(index, now, hosts);
        }
    }

    fn note_crash(&mut self, index: usize, now: u64, hosts: &[Host]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_crash(index, now, hosts);
        }
    }

    fn note_cleaned_up(&mut self, index: usize, now: u64, last: &Message, hosts: &[Host]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_cleaned_up(index, now, last, hosts);
        }
    }

    fn note_told_kept(&mut self, index: usize, state: &PersistentState) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_told_kept(index, state);
        }
    }

    fn note_delivery(
        &mut self,
        index: usize,
        local: Time,
        message: &Message,
        election: &Election,
    ) -> bool {
        self.ledger.note_delivery(index, local, message);
        if has_vote(election, &message.sender) {
            self.voters_term = message.term.max(self.voters_term);
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.note_delivery(index, local, message);
        }
        let number = (message.incarnation, message.sequence);
        let newest = self.newest.entry((index, message.sender)).or_default();
        let is_news = number > *newest;
        *newest = number.max(*newest);
        if let Some(recorder) = &mut self.recorder {
            recorder.note_delivery(index, message, election.node_id(), is_news);
        }
        is_news
    }

    /// A forgery in a voter's name announces a term as the voter does. It is in no other book: the
    /// attacker asks for no promise, gives none and ends none.
    fn note_forged(&mut self, index: usize, now: u64, message: &Message, election: &Election) {
        self.handovers.disturb(now);
        if has_vote(election, &message.sender) {
            self.voters_term = message.term.max(self.voters_term);
        }
        self.silence.note_forged(index, message, election);
        let newest = self.newest.entry((index, message.sender)).or_default();
        *newest = (message.incarnation, message.sequence).max(*newest);
    }

    fn note_key_required(&mut self, index: usize) {
        self.newest.retain(|(host, _), _| *host != index);
    }

    /// Who votes, votes in the highest term that it knows.
    fn note_asked_to_keep(
        &mut self,
        index: usize,
        state: &PersistentState,
    ) -> Result<(), Violation> {
        self.counts.asked_to_keep += 1;
        let last = &mut self.records[index].ballot;
        let new = state.ballot.filter(|ballot| last.replace(*ballot) != Some(*ballot));
        broken("ballots", new.is_some_and(|ballot| ballot.term != state.term), || {
            format!("host {index} casts {new:?} though it knows term {}", state.term)
        })
    }

    fn note_kept(
        &mut self,
        index: usize,
        before: &PersistentState,
        after: &PersistentState,
    ) -> Result<(), Violation> {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_kept(index, after);
        }
        let ballot = |state: &PersistentState| state.ballot.map(|ballot| ballot.term);
        let shrinks = after.term < before.term
            || after.incarnation < before.incarnation
            || ballot(after) < ballot(before);
        broken("disk", shrinks, || format!("host {index} keeps less: {before:?} → {after:?}"))
    }

    /// Nothing is decided under a lease that is over.
    fn note_decided(
        &mut self,
        index: usize,
        now: u64,
        decided: &Decided,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        let host = &hosts[index];
        if let Some(recorder) = &mut self.recorder {
            recorder.note_decided(index, decided, host);
        }
        let acts = match decided {
            Decided::Send(message) => matches!(message.body, Body::Declaration { .. }),
            Decided::Run(run) => run.event == HookEvent::Elected,
            Decided::Fence(_) | Decided::Keep(_) => false,
        };
        broken("order", acts && !may_act(host, now), || {
            format!("{} acts under a lease that is over: {decided:?}", host.node_id)
        })?;
        match decided {
            Decided::Run(run) => self.leaderships.note_decided(run, host),
            Decided::Fence(term) => self.check_fence(index, now, *term, host),
            Decided::Send(_) | Decided::Keep(_) => Ok(()),
        }
    }

    fn note_sent(
        &mut self,
        index: usize,
        now: u64,
        message: &Message,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        let host = &hosts[index];
        let record = &mut self.records[index];
        let (id, disk) = (message.sender, host.disk.kept);
        broken("order", record.stopped, || format!("{id} speaks after it stopped"))?;
        broken("order", message.sequence <= record.sequence, || format!("{id} repeats a number"))?;
        record.sequence = message.sequence;
        broken("disk", message.term > disk.term, || format!("{id} tells a term too early"))?;
        broken("disk", message.incarnation > disk.incarnation, || {
            format!("{id} speaks before its life is on disk")
        })?;
        self.check_term(message, host)?;
        if message.body == Body::Claim {
            self.handovers.note_claim(index, now, host)?;
        }
        if matches!(message.body, Body::Resignation { .. }) {
            broken("hooks", host.hooks_hold, || {
                format!("{id} resigns though its hooks have not let go")
            })?;
        }
        if matches!(message.body, Body::Declaration { .. }) {
            broken("terms", !self.ledger.stood_in(message), || {
                format!("{id} leads in term {}, for which it asked no votes", message.term)
            })?;
            self.leaderships.note_declaration(index, now, message, hosts)?;
        }
        self.silence.note_sent(index, now, message, host);
        self.ledger.note_sent(index, now, message, hosts)
    }

    /// The election takes it for sent.
    fn note_dropped(&mut self, index: usize, now: u64, message: &Message, host: &Host) {
        self.silence.note_sent(index, now, message, host);
    }

    fn note_hook_start(
        &mut self,
        index: usize,
        now: u64,
        run: &HookRun,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        self.check_order(index, run, &hosts[index])?;
        self.leaderships.note_begun(run, &hosts[index], self.guarded)?;
        if run.event == HookEvent::Elected {
            self.handovers.note_taken_over(index, now, hosts)?;
            self.check_takeover(index, now, hosts)
        } else {
            Ok(())
        }
    }

    fn note_hook_end(&mut self, index: usize, _event: HookEvent, repeats: bool) {
        let record = &mut self.records[index];
        record.hook_runs = false;
        if repeats {
            record.last_hook = record.hook_before;
        }
    }

    fn note_fenced(&mut self, index: usize) {
        self.records[index].last_hook = Some(HookEvent::Demoted);
    }

    fn note_event(
        &mut self,
        index: usize,
        _now: u64,
        event: &Event,
        host: &Host,
    ) -> Result<(), Violation> {
        let Event::Transition(Transition { role, leader, .. }) = event else { return Ok(()) };
        self.counts.transitions += 1;
        let Some(settled) = &self.settled else { return Ok(()) };
        let calm = *role != Role::Starting && settled.hosts.contains(&index);
        broken("liveness", calm, || {
            format!("{} becomes {role} under {leader:?}, {}", host.node_id, settled.why)
        })
    }

    fn check_step(&mut self, now: u64, hosts: &[Host], network: &Network) -> Result<(), Violation> {
        self.handovers.check_step(now, hosts, network);
        Leaderships::check_one(now, hosts)?;
        self.check_leases(hosts)?;
        self.check_overdue(now, hosts)?;
        self.silence.check(now, hosts)?;
        self.duplicates.as_ref().map_or(Ok(()), |duplicates| duplicates.check(now, hosts))
    }
}

/// Whether a node is one of the voters that `election` knows.
fn has_vote(election: &Election, node_id: &NodeId) -> bool {
    let quorum = election.params().quorum.as_ref();
    quorum.is_some_and(|quorum| quorum.voters.contains(node_id))
}
