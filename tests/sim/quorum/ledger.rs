//! What voters have promised, written down as their datagrams leave: ballots, which keep terms
//! apart, and pledges, which keep leaderships apart in time.
//!
//! A promise counts here only from what the network saw of it. So the ledger knows less than the
//! voters do, and whatever breaks a promise in it breaks a promise.

use std::collections::BTreeMap;
use std::time::Duration;

use lanelect::core::Election;
use lanelect::core::persist::{Ballot, Enrolment, Pledge};
use lanelect::core::quorum::Voters;
use lanelect::time::Time;
use lanelect::types::{DatagramId, Incarnation, Life, NodeId, Sequence, Term};
use lanelect::wire::message::{Body, Message};

use super::broken;
use crate::watch::Violation;
use crate::world::Host;

/// A datagram that asks voters for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Support,
    Vote { term: Term, hold: Duration },
    Acknowledgement { term: Term, hold: Duration },
    Testimony { asker: usize },
}

/// A voter's promise to hold still for everyone else.
#[derive(Debug, Clone, Copy)]
struct Promise {
    /// Which life of the voter's gave it.
    by: Incarnation,
    to: Life,
    /// The highest term in which it was given to that life: only what ends that ends the promise.
    term: Term,
    /// In true time.
    until: u64,
    /// How much of that may be relied on, as nobody knows the voter's clock: as if it ran as fast
    /// as a clock may.
    relied_on: u64,
}

/// The books.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What was asked for, and by which set of voters.
    asked: BTreeMap<(Life, Sequence), (Asked, usize)>,
    /// Every set of voters under which somebody has asked or answered.
    sets: Vec<Voters>,
    /// When a host first took in what asked for something, by its own clock.
    taken_in: BTreeMap<(usize, Life, Sequence), Time>,
    /// By host: of two daemons under one id each has its own.
    ballots: BTreeMap<(usize, Term), Life>,
    /// Up to which term a host has heard that a life's candidacies and leaderships are over.
    ended: BTreeMap<(usize, Life), Term>,
    /// The newest promise of each host.
    promises: BTreeMap<usize, Promise>,
    /// Terms for which a life has asked for votes.
    candidacies: BTreeMap<Term, Vec<Life>>,
    /// Votes and acknowledgements that were sent.
    pub granted: u64,
}

impl Ledger {
    /// A host's disk is lost: what it voted for is known to others, or to nobody.
    pub fn forget_ballots(&mut self, index: usize) {
        self.ballots.retain(|(host, _), _| *host != index);
    }

    /// A host that is only a duplicate now and then is another one from now on.
    pub fn forget_host(&mut self, index: usize) {
        self.forget_ballots(index);
        self.promises.remove(&index);
    }

    /// Whether this life has asked for votes in `term`.
    pub fn stood_in(&self, message: &Message) -> bool {
        let lives = self.candidacies.get(&message.term);
        lives.is_some_and(|lives| lives.contains(&message.life()))
    }

    /// A host takes a datagram in.
    pub fn note_delivery(&mut self, index: usize, local: Time, message: &Message) {
        match message.body {
            Body::VoteRequest { .. } | Body::Declaration { .. } => {
                let key = (index, message.life(), message.sequence);
                self.taken_in.entry(key).or_insert(local);
            }
            Body::Resignation { .. } | Body::Farewell => {
                let ended = self.ended.entry((index, message.life())).or_default();
                *ended = message.term.max(*ended);
            }
            _ => {}
        }
    }

    /// A datagram leaves: what it asks is written down, and what it answers must be in order.
    pub fn note_sent(
        &mut self,
        index: usize,
        now: u64,
        message: &Message,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        let host = &hosts[index];
        let asked = match message.body {
            Body::Proposal => Asked::Support,
            Body::Inquiry => Asked::Testimony { asker: index },
            Body::VoteRequest { hold_us } => {
                self.check_candidacy(index, now, message, host)?;
                Asked::Vote { term: message.term, hold: micros(hold_us) }
            }
            Body::Declaration { hold_us, .. } => {
                Asked::Acknowledgement { term: message.term, hold: micros(hold_us) }
            }
            Body::Vote { candidate, request, granted: true } => {
                return self.check_vote(index, now, candidate, request, hosts);
            }
            Body::Heartbeat { leader: Some(leader), acknowledged: Some(declaration), .. } => {
                return self.check_acknowledgement(index, now, leader, declaration, host);
            }
            _ => return Ok(()),
        };
        let set = self.set_of(host);
        self.asked.insert((message.life(), message.sequence), (asked, set));
        Ok(())
    }

    /// Which set of voters a host's daemon runs under.
    fn set_of(&mut self, host: &Host) -> usize {
        let params = host.election.as_ref().map(Election::params);
        let Some(quorum) = params.and_then(|params| params.quorum.as_ref()) else { return 0 };
        let voters = &quorum.voters;
        let known = self.sets.iter().position(|set| set.ids() == voters.ids());
        known.unwrap_or_else(|| {
            self.sets.push(voters.clone());
            self.sets.len() - 1
        })
    }

    /// What `life` has asked for; it names the same voters as `host`, which says yes.
    fn find_asked(
        &mut self,
        life: Life,
        sequence: Sequence,
        host: &Host,
    ) -> Result<Option<Asked>, Violation> {
        let set = self.set_of(host);
        let Some((asked, asking)) = self.asked.get(&(life, sequence)).copied() else {
            return Ok(None);
        };
        let id = host.node_id;
        broken("voters", asking != set, || {
            format!("{id} says yes to {life:?}, which names other voters")
        })?;
        Ok(Some(asked))
    }

    /// A candidate's own vote is on disk before it asks for others', and it keeps its promises too.
    fn check_candidacy(
        &mut self,
        index: usize,
        now: u64,
        message: &Message,
        host: &Host,
    ) -> Result<(), Violation> {
        let own = Ballot { term: message.term, candidate: message.life() };
        broken("disk", host.disk.kept.ballot != Some(own), || {
            format!("{own:?} asks for votes before its own is on disk")
        })?;
        self.cast(index, own)?;
        self.check_promise(index, now, message.life(), "stands")?;
        let who = message.life();
        let lives = self.candidacies.entry(message.term).or_default();
        if !lives.contains(&who) {
            lives.push(who);
        }
        Ok(())
    }

    fn check_vote(
        &mut self,
        index: usize,
        now: u64,
        candidate: NodeId,
        request: DatagramId,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        let host = &hosts[index];
        let voter = host.node_id;
        let candidate = Life { node_id: candidate, incarnation: request.incarnation };
        let Some(asked) = self.find_asked(candidate, request.sequence, host)? else {
            return broken("ballots", true, || format!("{voter} answers what nobody asked"));
        };
        if let Asked::Testimony { asker } = asked {
            let is_over = hosts[asker].incarnation != candidate.incarnation;
            return self.check_testimony(asker, now, host, candidate, is_over);
        }
        check_enrolled(host, "says yes")?;
        let holds = host.hooks_hold;
        broken("hooks", holds, || {
            format!("{voter} says yes to {candidate:?} though its hooks have not let go")
        })?;
        let Asked::Vote { term, hold } = asked else { return Ok(()) };
        let kept = host.disk.kept;
        let ballot = Ballot { term, candidate };
        broken("disk", !remembers(kept.ballot, ballot), || {
            format!("{voter} tells its vote for {candidate:?} in term {term} before it is on disk")
        })?;
        self.cast(index, ballot)?;
        self.promise(index, now, (candidate, request, term), hold, host)
    }

    /// Whoever is told the term may vote again: nobody relies on what it has promised and
    /// forgotten. An old question of a life that `is_over` may come again; nobody uses the answer.
    fn check_testimony(
        &self,
        asker: usize,
        now: u64,
        host: &Host,
        life: Life,
        is_over: bool,
    ) -> Result<(), Violation> {
        let voter = host.node_id;
        broken("enrolment", host.disk.kept.enrolment == Enrolment::None, || {
            format!("{voter} testifies, and remembers nothing")
        })?;
        let binds = |promise: &&Promise| {
            let is_forgotten = promise.by != life.incarnation && !is_over;
            is_forgotten && now < promise.relied_on && !self.has_ended(asker, promise)
        };
        let forgotten = self.promises.get(&asker).filter(binds);
        broken("enrolment", forgotten.is_some(), || {
            format!(
                "{voter} tells {life:?} the term at {now}, while that is bound by {forgotten:?}"
            )
        })
    }

    fn check_acknowledgement(
        &mut self,
        index: usize,
        now: u64,
        leader: NodeId,
        declaration: DatagramId,
        host: &Host,
    ) -> Result<(), Violation> {
        check_enrolled(host, "acknowledges")?;
        let leader = Life { node_id: leader, incarnation: declaration.incarnation };
        let asked = self.find_asked(leader, declaration.sequence, host)?;
        let Some(Asked::Acknowledgement { term, hold }) = asked else {
            return broken("pledges", true, || {
                format!("{} acknowledges what {leader:?} never declared", host.node_id)
            });
        };
        self.promise(index, now, (leader, declaration, term), hold, host)
    }

    /// One ballot a term.
    fn cast(&mut self, index: usize, ballot: Ballot) -> Result<(), Violation> {
        let Ballot { term, candidate } = ballot;
        let first = *self.ballots.entry((index, term)).or_insert(candidate);
        broken("ballots", first != candidate, || {
            format!("host {index} votes for {candidate:?} in term {term} after {first:?}")
        })
    }

    /// A voter promises itself, from when it took the request in, if no other promise forbids it.
    fn promise(
        &mut self,
        index: usize,
        now: u64,
        (to, request, term): (Life, DatagramId, Term),
        hold: Duration,
        host: &Host,
    ) -> Result<(), Violation> {
        self.granted += 1;
        self.check_promise(index, now, to, "promises itself")?;
        let kept = host.disk.kept.pledge;
        let is_kept = kept.is_some_and(|pledge: Pledge| pledge.to == to && pledge.hold() >= hold);
        broken("disk", !is_kept, || {
            format!("{} promises itself to {to:?} for {hold:?}, and keeps {kept:?}", host.node_id)
        })?;
        let taken_in = self.taken_in.get(&(index, to, request.sequence));
        let Some(taken_in) = taken_in else {
            return broken("pledges", true, || {
                format!("{} answers {request:?}, which it never took in", host.node_id)
            });
        };
        let true_time = |local| host.clock.true_time(local).saturating_sub(GRAIN);
        let until = true_time(*taken_in + hold);
        let relied_on = true_time(*taken_in) + shortest(hold);
        let renewed = self.promises.get(&index).filter(|promise| promise.to == to);
        let is_over = |promise: &Promise| {
            promise.until <= true_time(*taken_in) || self.has_ended(index, promise)
        };
        let renewed = renewed.filter(|promise| !is_over(promise));
        // Within one life of its holder a promise that binds only grows, whatever old datagram
        // renews it.
        let until = renewed.map_or(until, |promise| promise.until.max(until));
        let relied_on = renewed.map_or(relied_on, |promise| promise.relied_on.max(relied_on));
        let term = renewed.map_or(term, |promise| promise.term.max(term));
        self.promises.insert(index, Promise { by: host.incarnation, to, term, until, relied_on });
        Ok(())
    }

    /// What a leader relies on is promised to it: by a majority of the voters, itself included, for
    /// as long as its lease lasts, and its hooks may take to let go.
    pub fn check_lease(
        &self,
        index: usize,
        hosts: &[Host],
        end: Time,
        grace: Duration,
    ) -> Result<(), Violation> {
        let host = &hosts[index];
        let Some(election) = &host.election else { return Ok(()) };
        let Some(quorum) = &election.params().quorum else { return Ok(()) };
        let life = Life { node_id: host.node_id, incarnation: host.incarnation };
        let grace = if host.hooks_hold { grace } else { Duration::ZERO };
        let relied_on = host.clock.true_time(end + grace).saturating_sub(2 * GRAIN);
        let promised = |id: &&NodeId| {
            let of = |(index, promise): (&usize, &Promise)| {
                hosts[*index].node_id == **id && promise.to == life && promise.until >= relied_on
            };
            **id == host.node_id || self.promises.iter().any(of)
        };
        let count = quorum.voters.ids().iter().filter(promised).count();
        broken("leases", count < quorum.voters.ids().len() / 2 + 1, || {
            format!("{life:?} relies on {count} until {relied_on}: {:?}", self.promises)
        })
    }

    /// Whether the host has heard that what it promised itself for is over.
    fn has_ended(&self, index: usize, promise: &Promise) -> bool {
        self.ended.get(&(index, promise.to)).is_some_and(|end| *end >= promise.term)
    }

    fn check_promise(&self, index: usize, now: u64, to: Life, what: &str) -> Result<(), Violation> {
        let binds = |promise: &&Promise| {
            promise.to != to && now < promise.until && !self.has_ended(index, promise)
        };
        let other = self.promises.get(&index).filter(binds);
        broken("pledges", other.is_some(), || {
            format!("host {index} {what} for {to:?} at {now}, and is bound by {other:?}")
        })
    }
}

/// A clock's reading is not in step with true time by so much, in nanoseconds.
const GRAIN: u64 = 10;

/// Whether a voter that keeps `kept` cannot vote otherwise in the term of `ballot` any more.
fn remembers(kept: Option<Ballot>, ballot: Ballot) -> bool {
    kept.is_some_and(|kept| kept == ballot || kept.term > ballot.term)
}

fn check_enrolled(host: &Host, what: &str) -> Result<(), Violation> {
    let id = host.node_id;
    let quorum = host.election.as_ref().and_then(|election| election.params().quorum.as_ref());
    let is_voter = quorum.is_some_and(|quorum| quorum.voters.contains(&id));
    broken("enrolment", !is_voter, || format!("{id} {what}, and is no voter"))?;
    let remembers = host.disk.kept.enrolment == Enrolment::Enrolled;
    broken("enrolment", !remembers, || format!("{id} {what}, and does not remember its votes"))
}

/// How long `hold` lasts in true time where a clock runs 1 % too fast, as far as any may.
const fn shortest(hold: Duration) -> u64 {
    (hold.as_nanos() * 100 / 101) as u64
}

const fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros as u64)
}
