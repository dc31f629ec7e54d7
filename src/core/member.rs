//! One other node, as it last presented itself.
//!
//! It is known by the latest datagram of its latest life. Its state follows from how long it has
//! been silent; nothing is sent to find it out.

use std::mem;
use std::net::IpAddr;
use std::time::Duration;

use crate::core::params::patience_for;
use crate::core::replay::Recent;
use crate::core::status::MemberState;
use crate::time::Time;
use crate::types::{DatagramId, Incarnation, Role, Sequence, Term};
use crate::wire::message::{Body, Flags, Message, Standing};

/// No announced interval between declarations counts for more than this, so that nobody can make
/// the group wait for ever.
const ANNOUNCED_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// No announced interval between heartbeats counts for more than this.
const ANNOUNCED_REPORT_MAX: Duration = Duration::from_secs(600);

/// A member that is silent for this many times its patience is gone.
const GONE_AFTER_PATIENCES: u32 = 2;

/// What a datagram meant for the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// News from a member that was visible.
    Known,
    /// News from a node that was not visible before: new, back, or in a new life.
    Joined,
    /// From a node that starts under the id of a member that is still visible: either that member
    /// has just restarted, or somebody else uses its id. It counts once it is past its start-up,
    /// in which the holder of the id, if it lives, objects.
    Newcomer,
    /// Old, seen before, or of an earlier life: it means nothing.
    Stale,
    /// The table is full of members that are present: it means nothing.
    TableFull,
}

/// One other node, as it last presented itself.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Member {
    pub(crate) address: IpAddr,
    pub(crate) standing: Standing,
    pub(crate) last_heard: Time,
    /// When it last declared, unless it has resigned since.
    pub(crate) last_declared: Option<Time>,
    /// How often it declares.
    declares_every: Duration,
    /// How often it sends at the least; zero until it has said so.
    reports_every: Duration,
    /// Whether it was given up as the leader and has not been heard since.
    given_up: bool,
    /// The newest of its datagrams that others told of, as they heard it lead.
    seen_by_others: Sequence,
    /// Whether it was not heard itself since others told of it.
    pub(crate) is_told_of: bool,
    /// When this life of it was first heard.
    since: Time,
    /// This node's own newest datagram when this life of it, or one that still starts, was first
    /// heard.
    met_at: Sequence,
    /// Its newest datagram.
    newest: DatagramId,
    /// Which of them are recent.
    recent: Recent,
    /// Whether it has to show anew that it is there.
    doubted: bool,
    /// The newest datagram of a life that still starts under this id.
    newcomer: Option<DatagramId>,
    /// The last term of this member's leadership that this node, leading, has got above.
    outbid: Option<Term>,
    /// Another life that was heard under its id while this one had not said farewell.
    other_life: Option<OtherLife>,
    /// Whether it was reported that it names other voters.
    disagreement_reported: bool,
    /// The state that was last reported; the true one follows from the silence.
    reported: MemberState,
}

/// A life under the id of a member that is heard in another one.
#[derive(Debug, Clone, Copy, Hash)]
struct OtherLife {
    /// Its newest datagram.
    newest: DatagramId,
    /// When that was heard.
    heard: Time,
    /// Whether the earlier of the two lives was heard after the later one.
    overlaps: bool,
    /// How often the life speaks that was known when the other came, as it said itself.
    speaks_every: Duration,
}

impl Member {
    /// As its first datagram presents it.
    pub(crate) fn new(now: Time, from: IpAddr, message: &Message) -> Self {
        Member {
            address: from,
            standing: message.standing,
            last_heard: now,
            last_declared: None,
            declares_every: Duration::ZERO,
            reports_every: Duration::ZERO,
            given_up: false,
            seen_by_others: Sequence::default(),
            is_told_of: false,
            since: now,
            met_at: Sequence::default(),
            newest: message.id(),
            recent: Recent::since(message.sequence),
            doubted: false,
            newcomer: None,
            outbid: None,
            other_life: None,
            disagreement_reported: false,
            reported: MemberState::Alive,
        }
    }

    /// Its state at `now`, where one that has not told its interval gets `least` patience.
    pub(crate) fn state(&self, now: Time, least: Duration) -> MemberState {
        let silence = now.since(self.last_heard);
        let patience = self.patience(least);
        if self.reported == MemberState::Left {
            MemberState::Left
        } else if silence > patience.saturating_mul(GONE_AFTER_PATIENCES) {
            MemberState::Gone
        } else if silence > patience || self.given_up {
            MemberState::Suspect
        } else {
            MemberState::Alive
        }
    }

    fn patience(&self, least: Duration) -> Duration {
        patience_for(self.reports_every).max(least)
    }

    /// Whether it may lead at all.
    pub(crate) const fn is_candidate(&self) -> bool {
        self.standing.flags.contains(Flags::CANDIDATE)
    }

    /// Whether two daemons may be there under its id: then nobody knows which of them is meant. One
    /// that restarted is silent in its earlier life as soon as the later one is heard, and a daemon
    /// that is there is silent for no longer than it said.
    pub(crate) fn is_contested(&self, now: Time, least: Duration) -> bool {
        let patience = self.patience(least);
        self.other_life.is_some_and(|other| {
            let restarted_after = match other.speaks_every {
                Duration::ZERO => patience,
                every => (every * 5 / 4).min(patience),
            };
            let limit = if other.overlaps { patience } else { restarted_after };
            now.since(other.heard) <= limit
        })
    }

    /// Whether it stands for leadership now.
    pub(crate) const fn is_eligible(&self) -> bool {
        self.standing.flags.contains(Flags::ELIGIBLE)
    }

    /// Its newest datagram.
    pub(crate) const fn newest(&self) -> DatagramId {
        self.newest
    }

    /// Whether it is there, as of the last sweep, so that its next datagram is known to be new by
    /// its number.
    pub(crate) const fn is_known_to_be_there(&self) -> bool {
        self.reported.is_visible() && !self.doubted
    }

    /// Whether this datagram of it was sent lately.
    pub(crate) fn sent_lately(&self, datagram: DatagramId) -> bool {
        self.newest.incarnation == datagram.incarnation && self.recent.covers(datagram.sequence)
    }

    /// Whether this datagram of it, or a newer one of the same life, was heard.
    pub(crate) fn has_heard(&self, datagram: DatagramId) -> bool {
        self.newest.incarnation == datagram.incarnation && datagram <= self.newest
    }

    /// Where it has a later life than this, be it one that still starts: the newest datagram of
    /// this node when it came to know that.
    pub(crate) fn later_life_met_at(&self, life: Incarnation) -> Option<Sequence> {
        let newcomer_is_later = self.newcomer.is_some_and(|newcomer| newcomer.incarnation > life);
        (newcomer_is_later || self.newest.incarnation > life).then_some(self.met_at)
    }

    /// For how long it has been known in its present life.
    pub(crate) const fn known_for(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// When its next declaration is due; none where it does not lead.
    pub(crate) fn declaration_due(&self) -> Option<Time> {
        self.last_declared.map(|at| at + self.declares_every)
    }

    /// When it counts as gone as a leader unless it declares, where one is gone after `threshold`.
    /// Who announces a longer interval than this node expects, as happens while a new interval is
    /// rolled out, is given a quarter more than its own.
    pub(crate) fn silence_ends(&self, threshold: Duration) -> Option<Time> {
        let patience = threshold.max(self.declares_every * 5 / 4);
        self.last_declared.map(|at| at + patience)
    }

    /// Takes in a datagram of it. One that has not told its interval gets `least` patience.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        from: IpAddr,
        message: &Message,
        least: Duration,
    ) -> Heard {
        let was_visible = self.state(now, least).is_visible();
        if was_visible {
            self.compare_lives(now, message);
        }
        let restarted = message.incarnation > self.newest.incarnation;
        // The newcomer's life and the known one each have numbers of their own.
        let is_newcomer_again = self.newcomer.is_some_and(|newcomer| {
            message.incarnation == newcomer.incarnation && message.id() <= newcomer
        });
        let older = message.id() <= self.newest;
        if self.gives_way_to(message, was_visible) {
            let displaced = OtherLife {
                newest: self.newest,
                heard: self.last_heard,
                overlaps: true,
                speaks_every: self.reports_every,
            };
            *self = Member { other_life: Some(displaced), ..Member::new(now, from, message) };
            return Heard::Joined;
        }
        if older || is_newcomer_again {
            return Heard::Stale;
        }
        if restarted && was_visible && message.standing.role == Role::Starting {
            self.newcomer = Some(message.id());
            return Heard::Newcomer;
        }
        *self = self.renewed(now, from, message, restarted);
        if restarted || !was_visible { Heard::Joined } else { Heard::Known }
    }

    /// Takes in which lives are heard under its id, and in which order.
    fn compare_lives(&mut self, now: Time, message: &Message) {
        let (known, heard) = (self.newest, message.id());
        if heard.incarnation == known.incarnation {
            let later = self.other_life.as_mut().filter(|other| other.newest > known);
            if let Some(later) = later.filter(|_| heard > known) {
                later.overlaps = true;
            }
            return;
        }
        let before = self.other_life.filter(|other| other.newest.incarnation == heard.incarnation);
        if before.is_some_and(|before| heard <= before.newest) {
            // What was under way when that life ended says nothing of its being there.
            return;
        }
        let overlaps = heard < known || before.is_some_and(|before| before.overlaps);
        let takes_over = heard > known && message.standing.role != Role::Starting;
        let (newest, heard) = if takes_over { (known, self.last_heard) } else { (heard, now) };
        let speaks_every = self.reports_every;
        self.other_life = Some(OtherLife { newest, heard, overlaps, speaks_every });
    }

    /// It as a newer datagram presents it, in the same life unless it `restarted`.
    fn renewed(&self, now: Time, from: IpAddr, message: &Message, restarted: bool) -> Self {
        let anew = restarted || !self.is_known_to_be_there();
        let declares = matches!(message.standing.role, Role::Leader) && !restarted;
        Member {
            last_declared: self.last_declared.filter(|_| declares),
            declares_every: self.declares_every,
            reports_every: self.reports_every,
            seen_by_others: if restarted { Sequence::default() } else { self.seen_by_others },
            since: if restarted { now } else { self.since },
            met_at: self.met_at,
            recent: if anew { Recent::since(message.sequence) } else { self.recent },
            newcomer: self.newcomer,
            outbid: self.outbid,
            other_life: self.other_life,
            disagreement_reported: self.disagreement_reported,
            ..Member::new(now, from, message)
        }
    }

    /// From now on it has to show anew that it is there.
    pub(crate) const fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Takes in that its datagrams were heard up to this one, and meant nothing.
    pub(crate) fn note_heard(&mut self, newest: Sequence) {
        self.newest.sequence = self.newest.sequence.max(newest);
    }

    /// Takes in which datagram of this node was its newest when it came to know this member's life.
    pub(crate) const fn note_met(&mut self, own_newest: Sequence) {
        self.met_at = own_newest;
    }

    /// Takes in that it declared, and how often it will.
    pub(crate) fn note_declaration(&mut self, now: Time, interval: Duration) {
        self.last_declared = Some(now);
        self.declares_every = interval.min(ANNOUNCED_INTERVAL_MAX);
        self.reports_every = self.declares_every;
    }

    /// Takes in how often it sends heartbeats.
    pub(crate) fn note_report(&mut self, interval: Duration) {
        self.reports_every = interval.min(ANNOUNCED_REPORT_MAX);
    }

    /// Takes in that somebody else heard its datagram `newest` while it leads: then it has declared
    /// when it was due to. True where that is news; each datagram is so once.
    pub(crate) fn note_probe_reply(&mut self, now: Time, newest: DatagramId) -> bool {
        let known = self.newest.sequence.max(self.seen_by_others);
        let Some(due) = self.declaration_due() else { return false };
        if newest.incarnation != self.newest.incarnation || newest.sequence <= known {
            return false;
        }
        self.seen_by_others = newest.sequence;
        self.is_told_of = true;
        self.last_declared = Some(now.min(due));
        true
    }

    /// Takes in that it was given up as the leader because of its silence.
    pub(crate) const fn note_given_up(&mut self) {
        self.last_declared = None;
        self.given_up = true;
    }

    /// Takes in that it no longer leads, or counts as silent.
    pub(crate) const fn note_resigned(&mut self) {
        self.last_declared = None;
    }

    /// This node, leading, gets above the member's term; false if it has before.
    pub(crate) fn note_outbid(&mut self, term: Term) -> bool {
        self.outbid.replace(term) != Some(term)
    }

    /// Takes in that it stopped.
    pub(crate) const fn note_farewell(&mut self) {
        self.reported = MemberState::Left;
    }

    /// Remembers that its disagreement about the voters was reported, or is over; true where that
    /// is news.
    pub(crate) const fn note_disagreement(&mut self, disagrees: bool) -> bool {
        mem::replace(&mut self.disagreement_reported, disagrees) != disagrees
    }

    /// Remembers its state as reported; returns the one that was reported before, and the state.
    /// Which of its datagrams are recent moves on.
    pub(crate) fn look(&mut self, now: Time, least: Duration) -> (MemberState, MemberState) {
        self.recent.move_on(self.newest.sequence);
        let state = self.state(now, least);
        (mem::replace(&mut self.reported, state), state)
    }

    /// Whether another life under this id counts in place of the known one, though it began
    /// earlier: the known one has fallen silent, or its own id's holder tells it to stop.
    fn gives_way_to(&self, message: &Message, was_visible: bool) -> bool {
        let another = message.incarnation < self.newest.incarnation;
        let objects = matches!(
            message.body,
            Body::Objection { newcomer } if newcomer == self.newest.incarnation
        );
        another && (!was_visible || objects)
    }
}
