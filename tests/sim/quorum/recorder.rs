//! Writes down what a run does in the words of the specification, docs/spec/Quorum.tla, one JSON
//! line for each thing that a daemon does. `tests/spec/traces` has TLC check that it is a run of
//! the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lanelect::core::Election;
use lanelect::core::hook::HookEvent;
use lanelect::core::params::Params;
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::core::status::VoterStanding;
use lanelect::time::Time;
use lanelect::types::{Life, NodeId, Role, Sequence, Term};
use lanelect::wire::message::{Body, Message};
use serde::Serialize;

use crate::watch::Decided;
use crate::world::Host;

/// A life, as the specification counts lives: the node, and the how-manieth of its daemons.
type LifeName = (String, u64);

/// A datagram of the kinds that the specification has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Datagram {
    kind: &'static str,
    from: LifeName,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<LifeName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    term: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Enrolment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    testifies: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    voters: Option<Vec<String>>,
}

/// What a node keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Kept {
    term: u64,
    enrolment: Enrolment,
    ballot: Option<(u64, LifeName)>,
    pledge: Option<(u64, LifeName)>,
}

/// One thing that happens at a node, and what it is afterwards.
#[derive(Debug, Serialize)]
struct Line {
    node: String,
    does: &'static str,
    /// How many microseconds have passed on each node's clock since the line before.
    passed: Vec<u64>,
    /// What it heard, if that is of a kind that the specification has.
    #[serde(skip_serializing_if = "Option::is_none")]
    hears: Option<Datagram>,
    /// Whose datagram it heard, of any kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    hears_from: Option<LifeName>,
    /// The highest term that this life has heard.
    hears_term: u64,
    /// Whether the sender's votes and acknowledgements count here.
    counts: bool,
    /// Whether an answer of the sender to this voter's inquiry is heeded here.
    heeds: bool,
    /// What it decided to send.
    sends: Vec<Datagram>,
    /// What it decided to keep, last.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Kept>,
    /// What it was told to be on its disk, one after the other.
    told_kept: Vec<Kept>,
    /// What is on its disk, where that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<Kept>,
    /// The term of an `elected` hook that it decided to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    elected: Option<u64>,
    /// Whether it has just asked for support.
    canvasses: bool,
    #[serde(flatten)]
    shows: Shows,
}

/// What a node shows of itself.
#[derive(Debug, Default, Serialize)]
struct Shows {
    /// Whether its hooks hold what the leader holds.
    holds: bool,
    leads: bool,
    /// Whether it asks for support or votes.
    stands: bool,
    /// What is left of its lease, and of its pledge, in microseconds.
    lease: u64,
    pledged: u64,
    /// Its own setting.
    voters: Vec<String>,
}

impl Shows {
    fn of(host: &Host, local: Time) -> Self {
        let holds = host.hooks_hold;
        let Some(election) = &host.election else { return Shows { holds, ..Shows::default() } };
        let left = |end: Time| micros(end.since(local));
        let pledged = election.status(local).quorum.and_then(|quorum| quorum.pledged);
        Shows {
            holds,
            leads: election.is_leader(),
            stands: election.role() == Role::Candidate,
            lease: election.lease_end().map_or(0, left),
            pledged: pledged.map_or(0, |(_, left)| micros(left)),
            voters: voters_of(election.params()),
        }
    }

    /// What changes otherwise than by the passing of time.
    const fn changes(&self) -> [bool; 4] {
        [self.holds, self.leads, self.stands, self.lease > 0]
    }
}

/// What a host's daemon has done since its last line.
#[derive(Debug, Default)]
struct Pending {
    heard: Option<Heard>,
    sends: Vec<Datagram>,
    memory: Option<Kept>,
    told_kept: Vec<Kept>,
    disk: Option<Kept>,
    elected: Option<u64>,
    canvasses: bool,
    starts: bool,
    ends: bool,
}

impl Pending {
    /// Whether it means nothing to the specification where nothing comes of it.
    fn is_silent(&self) -> bool {
        self.heard.as_ref().is_none_or(Heard::is_silent)
            && self.sends.is_empty()
            && self.memory.is_none()
            && self.told_kept.is_empty()
            && self.disk.is_none()
            && self.elected.is_none()
            && !self.canvasses
    }
}

/// A run that was written down.
#[derive(Debug)]
pub struct Record {
    /// `leader_alive_threshold` and `demote_grace` of every node.
    pub lease: Duration,
    pub grace: Duration,
    pub lines: Vec<String>,
}

impl Record {
    /// All of it, the settings first.
    pub fn text(&self, seed: u64) -> String {
        let settings = serde_json::json!({
            "seed": seed, "lease": micros(self.lease), "grace": micros(self.grace),
        });
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{settings}\n{lines}")
    }
}

/// A datagram that was handed in.
#[derive(Debug)]
struct Heard {
    from: LifeName,
    sender: NodeId,
    term: Term,
    /// What it says, if it is of a kind that the specification has.
    datagram: Option<Datagram>,
    /// Whether this life has heard that one before.
    knows: bool,
    /// Whether it has heard nothing newer of it.
    is_news: bool,
}

/// Writes a run down, until something happens that the specification does not have.
#[derive(Debug)]
pub struct Recorder {
    lines: Vec<String>,
    longest: usize,
    ended: bool,
    pending: Vec<Pending>,
    /// The clocks at the last line, in microseconds.
    clocks: Vec<u64>,
    /// How many lives each host has had, and which number each of them has.
    lives: Vec<u64>,
    names: BTreeMap<Life, u64>,
    sent: BTreeMap<(Life, Sequence), Datagram>,
    /// The declarations of each life's present leadership.
    declared: BTreeMap<Life, (Term, u64)>,
    /// What each host showed in its last line.
    last: Vec<[bool; 4]>,
    disks: Vec<Kept>,
    /// Which life of which host has heard which life.
    known: BTreeSet<(usize, u64, LifeName)>,
    /// The highest term that each host's life has heard.
    heard_terms: Vec<Term>,
}

impl Recorder {
    pub fn new(hosts: usize, longest: usize) -> Self {
        Recorder {
            lines: Vec::new(),
            longest,
            ended: false,
            pending: (0..hosts).map(|_| Pending::default()).collect(),
            clocks: Vec::new(),
            lives: vec![0; hosts],
            names: BTreeMap::new(),
            sent: BTreeMap::new(),
            declared: BTreeMap::new(),
            last: vec![Default::default(); hosts],
            disks: vec![Kept::nothing(); hosts],
            known: BTreeSet::new(),
            heard_terms: vec![Term::default(); hosts],
        }
    }

    /// What comes now the specification does not have.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// The lines.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// A new life begins, on the disk that it finds.
    pub fn note_start(&mut self, index: usize, now: u64, hosts: &[Host]) {
        let host = &hosts[index];
        let disk = self.kept(&host.disk.kept);
        if disk != self.disks[index] {
            self.disks[index] = disk.clone();
            self.pending[index].disk = Some(disk);
            self.write(index, "loses its disk", now, hosts);
        }
        self.lives[index] += 1;
        self.heard_terms[index] = Term::default();
        let life = Life { node_id: host.node_id, incarnation: host.incarnation };
        self.names.insert(life, self.lives[index]);
        let disk = self.pending[index].disk.take();
        self.pending[index] = Pending { starts: true, disk, ..Pending::default() };
    }

    /// A life is over.
    pub fn note_stopped(&mut self, index: usize) {
        self.pending[index].ends = true;
    }

    /// A daemon died. What has reached its disk without a word is there.
    pub fn note_crash(&mut self, index: usize, now: u64, hosts: &[Host]) {
        let disk = self.pending[index].disk.take();
        self.pending[index] = Pending { disk, ..Pending::default() };
        self.write(index, "ends", now, hosts);
    }

    /// What a datagram says that is about to be handed in.
    pub fn note_delivery(&mut self, index: usize, message: &Message, to: NodeId, is_news: bool) {
        if message.sender == to {
            return;
        }
        let own = (name(to), self.lives[index]);
        let is_for_it = |datagram: &&Datagram| datagram.to.as_ref().is_none_or(|to| *to == own);
        let datagram =
            self.sent.get(&(message.life(), message.sequence)).filter(is_for_it).cloned();
        let from = self.life(message.life());
        let knows = !self.known.insert((index, self.lives[index], from.clone()));
        self.pending[index].heard = Some(Heard {
            from,
            sender: message.sender,
            term: message.term,
            datagram,
            knows,
            is_news,
        });
    }

    /// What a daemon decides to do.
    pub fn note_decided(&mut self, index: usize, decided: &Decided, host: &Host) {
        match decided {
            Decided::Send(message) => {
                self.pending[index].canvasses |= message.body == Body::Proposal;
                self.note_sends(index, message, host);
            }
            Decided::Keep(state) => self.pending[index].memory = Some(self.kept(state)),
            Decided::Run(run) if run.event == HookEvent::Elected => {
                self.pending[index].elected = Some(run.term.0);
            }
            Decided::Run(_) | Decided::Fence(_) => {}
        }
    }

    fn note_sends(&mut self, index: usize, message: &Message, host: &Host) {
        let Some(datagram) = self.datagram(message, host) else { return };
        self.sent.insert((message.life(), message.sequence), datagram.clone());
        self.pending[index].sends.push(datagram);
    }

    /// The disk holds this from now on.
    pub fn note_kept(&mut self, index: usize, state: &PersistentState) {
        let kept = self.kept(state);
        self.disks[index] = kept.clone();
        self.pending[index].disk = Some(kept);
    }

    /// The daemon is about to be told that its disk holds this.
    pub fn note_told_kept(&mut self, index: usize, state: &PersistentState) {
        let kept = self.kept(state);
        self.pending[index].told_kept.push(kept);
    }

    /// The daemon has done all that there was to do.
    pub fn note_turn(&mut self, index: usize, now: u64, hosts: &[Host]) {
        let Pending { starts, ends, .. } = self.pending[index];
        let does = match (starts, ends) {
            (true, _) => "starts",
            (false, true) => "stops",
            (false, false) => "acts",
        };
        self.write(index, does, now, hosts);
        if ends {
            self.write(index, "ends", now, hosts);
        }
    }

    /// `post-stop` has carried a crash plan out, and sends this.
    pub fn note_cleaned_up(&mut self, index: usize, now: u64, last: &Message, hosts: &[Host]) {
        self.note_sends(index, last, &hosts[index]);
        self.write(index, "is cleaned up after", now, hosts);
    }

    fn write(&mut self, index: usize, does: &'static str, now: u64, hosts: &[Host]) {
        if self.lines.len() >= self.longest {
            self.ended = true;
        }
        if self.ended {
            return;
        }
        let host = &hosts[index];
        let local = host.local(now);
        let pending = std::mem::take(&mut self.pending[index]);
        if let Some(heard) = &pending.heard {
            self.heard_terms[index] = heard.term.max(self.heard_terms[index]);
        }
        let shows = Shows::of(host, local);
        let last = std::mem::replace(&mut self.last[index], shows.changes());
        if does == "acts" && pending.is_silent() && shows.changes() == last {
            return;
        }
        let standing = pending.heard.as_ref().and_then(|heard| heard.standing_at(host, local));
        let counts = standing == Some(VoterStanding::Counts);
        let (hears_from, hears) =
            pending.heard.map_or((None, None), |heard| (Some(heard.from), heard.datagram));
        let line = Line {
            node: name(host.node_id),
            does,
            passed: self.passed(now, hosts),
            hears,
            hears_from,
            hears_term: self.heard_terms[index].0,
            counts,
            heeds: counts || standing == Some(VoterStanding::Unenrolled),
            sends: pending.sends,
            memory: pending.memory,
            told_kept: pending.told_kept,
            disk: pending.disk,
            elected: pending.elected,
            canvasses: pending.canvasses,
            shows,
        };
        self.lines.push(serde_json::to_string(&line).expect("a line is plain data"));
    }

    fn passed(&mut self, now: u64, hosts: &[Host]) -> Vec<u64> {
        let clocks: Vec<_> = hosts.iter().map(|host| host.local(now).as_nanos() / 1000).collect();
        let before = std::mem::replace(&mut self.clocks, clocks.clone());
        if before.is_empty() {
            return vec![0; hosts.len()];
        }
        clocks.iter().zip(before).map(|(now, before)| now - before).collect()
    }

    fn life(&self, life: Life) -> LifeName {
        (name(life.node_id), self.names.get(&life).copied().unwrap_or_default())
    }

    fn kept(&self, state: &PersistentState) -> Kept {
        Kept {
            term: state.term.0,
            enrolment: state.enrolment,
            ballot: state.ballot.map(|ballot| (ballot.term.0, self.life(ballot.candidate))),
            pledge: state.pledge.map(|pledge| (pledge.term.0, self.life(pledge.to))),
        }
    }

    fn datagram(&mut self, message: &Message, host: &Host) -> Option<Datagram> {
        let params = host.election.as_ref().map_or(&host.params, Election::params);
        let from = self.life(message.life());
        let term = Some(message.term.0);
        let voters = Some(voters_of(params));
        let plain = |kind| Datagram {
            kind,
            from: from.clone(),
            to: None,
            term: None,
            number: None,
            memory: None,
            testifies: None,
            voters: None,
        };
        let datagram = match message.body {
            Body::VoteRequest { .. } => Datagram { term, voters, ..plain("VoteRequest") },
            Body::Declaration { .. } => {
                let last = self.declared.entry(message.life()).or_default();
                *last = (message.term, if last.0 == message.term { last.1 + 1 } else { 1 });
                Datagram { term, number: Some(last.1), voters, ..plain("Declaration") }
            }
            Body::Resignation { .. } | Body::Farewell => Datagram { term, ..plain("Resignation") },
            Body::Inquiry => Datagram { voters, ..plain("Inquiry") },
            Body::Heartbeat { leader: Some(leader), acknowledged: Some(declaration), .. } => {
                let life = Life { node_id: leader, incarnation: declaration.incarnation };
                let asked = self.sent.get(&(life, declaration.sequence))?;
                Datagram {
                    to: Some(self.life(life)),
                    term: asked.term,
                    number: asked.number,
                    voters,
                    ..plain("Acknowledgement")
                }
            }
            Body::Vote { candidate, request, granted } => {
                let life = Life { node_id: candidate, incarnation: request.incarnation };
                let asked = self.sent.get(&(life, request.sequence))?;
                let to = Some(self.life(life));
                match asked.kind {
                    "VoteRequest" if granted => {
                        Datagram { to, term: asked.term, voters, ..plain("Vote") }
                    }
                    "Inquiry" => Datagram {
                        to,
                        term,
                        memory: Some(Enrolment::told_by(message.standing.flags)),
                        testifies: Some(granted),
                        voters,
                        ..plain("Answer")
                    },
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(datagram)
    }
}

impl Heard {
    /// Whether it means nothing to the specification where nothing comes of it.
    fn is_silent(&self) -> bool {
        let is_inquiry = |datagram: &Datagram| datagram.kind == "Inquiry";
        self.datagram.as_ref().is_none_or(is_inquiry) && self.knows
    }

    /// Whether the sender's votes count at `host`, and why not; none if this is old.
    fn standing_at(&self, host: &Host, local: Time) -> Option<VoterStanding> {
        let voters = host.election.as_ref().filter(|_| self.is_news)?.status(local).quorum?.voters;
        Some(voters.iter().find(|voter| voter.node_id == self.sender)?.standing)
    }
}

impl Kept {
    const fn nothing() -> Self {
        Kept { term: 0, enrolment: Enrolment::None, ballot: None, pledge: None }
    }
}

fn voters_of(params: &Params) -> Vec<String> {
    params.quorum.iter().flat_map(|quorum| quorum.voters.ids()).copied().map(name).collect()
}

fn name(node_id: NodeId) -> String {
    node_id.to_string()
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
