//! Another node, as its newest datagrams present it.
//!
//! Its state follows from how long it has been silent; this node sends nothing to find it out.

use std::mem;
use std::net::IpAddr;
use std::time::Duration;

use crate::core::other_lives::{HeardLife, OtherLives};
use crate::core::params::patience_for;
use crate::core::recent::Recent;
use crate::core::round_trip::RoundTrip;
use crate::core::status::MemberState;
use crate::time::Time;
use crate::types::{DatagramId, Incarnation, Role, Sequence, Term};
use crate::wire::message::{Body, Flags, Message, Standing};

/// An announced interval between declarations counts only up to this, so that no node makes the
/// group wait for ever.
const ANNOUNCED_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// An announced interval between heartbeats counts only up to this.
const ANNOUNCED_REPORT_MAX: Duration = Duration::from_secs(600);

/// A member that is silent for this many times its patience has failed.
const GONE_AFTER_PATIENCES: u32 = 2;

/// How a datagram affects the membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A new datagram of a visible member.
    Known,
    /// A new datagram of a node that was not visible: it is new, was silent, or has restarted.
    Joined,
    /// From a node that starts with the id of a visible member. Either that member has restarted,
    /// or a second daemon uses its id. It becomes the member after its start-up, in which a live
    /// holder of the id objects.
    Newcomer,
    /// Ignored: of another life than the one that counts under its id.
    Excluded,
    /// Ignored: old, or a copy.
    Stale,
    /// Ignored: the table is full of visible members.
    TableFull,
}

/// Another node, as its newest datagrams present it.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Member {
    pub(crate) address: IpAddr,
    pub(crate) standing: Standing,
    pub(crate) last_heard: Time,
    /// Which ping of this node to all it answered last, and when.
    answered: Option<(Sequence, Time)>,
    pub(crate) round_trip: RoundTrip,
    /// The last ping of its present life.
    pinged: Sequence,
    /// When it last declared, unless it has resigned since.
    pub(crate) last_declared: Option<Time>,
    /// How often it declares.
    declares_every: Duration,
    /// How often it sends at least; zero until it has announced that.
    reports_every: Duration,
    /// Whether it was given up as the leader and has not been heard since.
    given_up: bool,
    /// Its datagram in the last probe reply that counted.
    seen_by_others: Sequence,
    /// Whether the last news of it was a probe reply.
    pub(crate) is_known_by_reply: bool,
    /// When its present life was first heard.
    since: Time,
    /// This node's own newest datagram when it first heard the present life, or a starting one.
    known_at: Sequence,
    /// Its newest datagram.
    newest: DatagramId,
    /// Whether its newest datagram was open.
    is_open: bool,
    /// Which of them are recent.
    recent: Recent,
    /// Whether it must prove again that it is alive.
    doubted: bool,
    /// The last term in which its present life led and which this leader has outbid. A life that
    /// lost its disk may lead in the same term again.
    outbid: Option<Term>,
    other_lives: OtherLives,
    /// Which of its other settings were reported.
    differences_reported: [bool; Shared::COUNT],
    /// The state that was last reported; the silence may have changed it since.
    reported: MemberState,
}

/// A setting that is the same on every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shared {
    /// The mode and the voters.
    Voters,
    /// The rule `tie_break`.
    TieBreak,
}

impl Shared {
    /// How many there are.
    const COUNT: usize = Shared::TieBreak as usize + 1;
}

impl Member {
    pub(crate) fn new(now: Time, from: IpAddr, message: &Message) -> Self {
        Member {
            address: from,
            standing: message.standing,
            last_heard: now,
            answered: None,
            round_trip: RoundTrip::default(),
            pinged: Sequence::default(),
            last_declared: None,
            declares_every: Duration::ZERO,
            reports_every: Duration::ZERO,
            given_up: false,
            seen_by_others: Sequence::default(),
            is_known_by_reply: false,
            since: now,
            known_at: Sequence::default(),
            newest: message.id(),
            is_open: false,
            recent: Recent::since(message.sequence),
            doubted: false,
            outbid: None,
            other_lives: OtherLives::known_from(message),
            differences_reported: [false; Shared::COUNT],
            reported: MemberState::Alive,
        }
    }

    /// Its state at `now`. Its patience is `least` until it has announced its interval.
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

    /// Whether two daemons may use its id, so that its votes do not count.
    pub(crate) fn is_duplicated(&self, now: Time, least: Duration) -> bool {
        self.other_lives.may_be_alive(now, self.patience(least))
    }

    /// Whether it announced that it may stand for leadership now.
    pub(crate) const fn is_eligible(&self) -> bool {
        self.standing.flags.contains(Flags::ELIGIBLE)
    }

    /// Its newest datagram.
    pub(crate) const fn newest(&self) -> DatagramId {
        self.newest
    }

    /// Its newest datagram, unless that was open.
    pub(crate) fn newest_sealed(&self) -> Option<DatagramId> {
        (!self.is_open).then_some(self.newest)
    }

    /// Whether it is known to be alive, as of the last sweep. Then a higher number proves that a
    /// datagram is new.
    pub(crate) const fn is_proven_alive(&self) -> bool {
        self.reported.is_visible() && !self.doubted
    }

    /// Whether this datagram of it is recent.
    pub(crate) fn sent_lately(&self, datagram: DatagramId) -> bool {
        self.newest.incarnation == datagram.incarnation && self.recent.covers(datagram.sequence)
    }

    /// Whether this datagram of it, or a newer one of the same life, was heard.
    pub(crate) fn has_heard(&self, datagram: DatagramId) -> bool {
        self.newest.incarnation == datagram.incarnation && datagram <= self.newest
    }

    /// If a later life than `life` is known, even a starting one: this node's own newest datagram
    /// when it first heard that.
    pub(crate) fn later_life_known_at(&self, life: Incarnation) -> Option<Sequence> {
        (self.other_lives.has_started_after(life) || self.newest.incarnation > life)
            .then_some(self.known_at)
    }

    /// For how long its present life has been known.
    pub(crate) const fn known_for(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// When its next declaration is due; none if it does not lead.
    pub(crate) fn declaration_due(&self) -> Option<Time> {
        self.last_declared.map(|at| at + self.declares_every)
    }

    /// When it is given up as the leader unless it declares, with a patience of `threshold`. A
    /// member may announce a longer interval, as while a new one is rolled out. Then it gets a
    /// quarter more than that.
    pub(crate) fn silence_ends(&self, threshold: Duration) -> Option<Time> {
        let patience = threshold.max(self.declares_every * 5 / 4);
        self.last_declared.map(|at| at + patience)
    }

    /// Receives a datagram of it. Its patience is `least` until it has announced its interval.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        from: IpAddr,
        message: &Message,
        least: Duration,
    ) -> Heard {
        let was_visible = self.state(now, least).is_visible();
        if self.gives_way_to(message, was_visible) {
            let displaced = self.as_heard();
            *self = Member::new(now, from, message);
            self.other_lives.note_displaced(displaced);
            return Heard::Joined;
        }
        if self.other_lives.have_sent(message.id()) {
            return Heard::Stale;
        }
        if was_visible {
            self.other_lives.compare(now, self.as_heard(), message);
        }
        let restarted = message.incarnation > self.newest.incarnation;
        // A gone member is heard, even while it starts.
        let asks = restarted && was_visible && message.standing.role == Role::Starting;
        // The starting life and the known one number their datagrams separately.
        let is_newcomer_again = self.other_lives.newcomer_has_sent(message.id(), asks);
        let is_refused = was_visible && self.other_lives.is_refused(message);
        if message.incarnation < self.newest.incarnation || is_refused {
            return Heard::Excluded;
        }
        if message.id() <= self.newest || is_newcomer_again {
            return Heard::Stale;
        }
        if asks {
            self.other_lives.note_newcomer(message.id());
            return Heard::Newcomer;
        }
        *self = self.renewed(now, from, message, restarted);
        if restarted || !was_visible { Heard::Joined } else { Heard::Known }
    }

    /// Its present life, for comparison with another one that sends.
    const fn as_heard(&self) -> HeardLife {
        HeardLife {
            newest: self.newest,
            at: self.last_heard,
            speaks_every: self.reports_every,
            overlaps: true,
        }
    }

    /// This member with the contents of a newer datagram, in the same life unless it `restarted`.
    fn renewed(&self, now: Time, from: IpAddr, message: &Message, restarted: bool) -> Self {
        let anew = restarted || !self.is_proven_alive();
        let declares = matches!(message.standing.role, Role::Leader) && !restarted;
        // The holder of the id, if it is alive, may have objected to one of its hellos.
        let has_started =
            self.is_proven_alive() && self.other_lives.has_started(message.incarnation);
        let first = if has_started { Sequence::default() } else { message.sequence };
        Member {
            answered: self.answered.filter(|_| !restarted),
            round_trip: if restarted { RoundTrip::default() } else { self.round_trip },
            pinged: if restarted { Sequence::default() } else { self.pinged },
            last_declared: self.last_declared.filter(|_| declares),
            declares_every: self.declares_every,
            reports_every: self.reports_every,
            seen_by_others: if restarted { Sequence::default() } else { self.seen_by_others },
            since: if restarted { now } else { self.since },
            known_at: self.known_at,
            recent: if anew { Recent::since(first) } else { self.recent },
            outbid: self.outbid.filter(|_| !restarted),
            other_lives: self.other_lives.after(message),
            differences_reported: self.differences_reported,
            ..Member::new(now, from, message)
        }
    }

    /// Notes an answer to a ping of this node, once.
    pub(crate) fn note_pong(&mut self, now: Time, ping: Sequence, to_all: bool, least: Duration) {
        self.round_trip.answer(now, ping, least);
        if to_all && self.answered.is_none_or(|(answered, _)| answered != ping) {
            self.answered = Some((ping, now));
        }
    }

    /// Notes a ping of its present life. False if that is no newer than the last one.
    pub(crate) fn note_pinged_by(&mut self, ping: Sequence) -> bool {
        let is_new = ping > self.pinged;
        self.pinged = self.pinged.max(ping);
        is_new
    }

    /// When it last answered a ping of this node to all.
    pub(crate) fn answered(&self) -> Option<Time> {
        self.answered.map(|(_, at)| at)
    }

    /// It must prove again that it is alive.
    pub(crate) const fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Notes that this datagram was open.
    pub(crate) fn note_open(&mut self, datagram: DatagramId) {
        self.is_open |= self.newest == datagram;
    }

    /// Any number of its present life, or of another one, is newer than the known ones. It has yet
    /// to announce its intervals, and no leadership of it was outbid.
    pub(crate) const fn forget_forgeable(&mut self) {
        self.newest.sequence = Sequence(0);
        self.pinged = Sequence(0);
        self.seen_by_others = Sequence(0);
        self.other_lives.forget_forgeable();
        self.declares_every = Duration::ZERO;
        self.reports_every = Duration::ZERO;
        self.outbid = None;
    }

    /// Notes that its datagrams up to `newest` were received and ignored.
    pub(crate) fn note_heard(&mut self, newest: Sequence) {
        self.newest.sequence = self.newest.sequence.max(newest);
    }

    /// Notes this node's own newest datagram when it first heard this member's life.
    pub(crate) const fn note_known_at(&mut self, own_newest: Sequence) {
        self.known_at = own_newest;
    }

    /// Notes that it declared, and its announced interval.
    pub(crate) fn note_declaration(&mut self, now: Time, interval: Duration) {
        self.last_declared = Some(now);
        self.declares_every = interval.min(ANNOUNCED_INTERVAL_MAX);
        self.reports_every = self.declares_every;
    }

    /// Notes the announced interval of its heartbeats.
    pub(crate) fn note_report(&mut self, interval: Duration) {
        self.reports_every = interval.min(ANNOUNCED_REPORT_MAX);
    }

    /// Notes that another node heard its datagram `newest` while it leads, so that it has declared
    /// in time. False if this node has heard that one, too, or the last such report named it. A
    /// number below that report's counts, because that one may be forged.
    pub(crate) fn note_probe_reply(&mut self, now: Time, newest: DatagramId) -> bool {
        let Some(due) = self.declaration_due() else { return false };
        let is_news = newest > self.newest && newest.sequence != self.seen_by_others;
        if newest.incarnation != self.newest.incarnation || !is_news {
            return false;
        }
        self.seen_by_others = newest.sequence;
        self.is_known_by_reply = true;
        self.last_declared = Some(now.min(due));
        true
    }

    /// Notes that it was given up as the leader.
    pub(crate) const fn note_given_up(&mut self) {
        self.last_declared = None;
        self.given_up = true;
    }

    /// Notes that it no longer leads, or was given up.
    pub(crate) const fn note_resigned(&mut self) {
        self.last_declared = None;
    }

    /// This leader takes a term above the member's. False if it already has.
    pub(crate) fn note_outbid(&mut self, term: Term) -> bool {
        self.outbid.replace(term) != Some(term)
    }

    /// Notes that it stopped.
    pub(crate) const fn note_farewell(&mut self) {
        self.reported = MemberState::Left;
    }

    /// Notes that another setting than this node's was reported, or that it is the same now. True
    /// if that changed.
    pub(crate) const fn note_difference(&mut self, of: Shared, differs: bool) -> bool {
        mem::replace(&mut self.differences_reported[of as usize], differs) != differs
    }

    /// Updates the reported state and the recent datagrams. Returns the state that was reported
    /// before, and the new one.
    pub(crate) fn look(&mut self, now: Time, least: Duration) -> (MemberState, MemberState) {
        self.recent.move_on(self.newest.sequence);
        let state = self.state(now, least);
        (mem::replace(&mut self.reported, state), state)
    }

    /// Whether an earlier life under this id replaces the known one: because it sends anew while
    /// the known one is silent or must prove again that it is alive, or because the holder of the
    /// id objects to the known one. A newer datagram may have overtaken the objection.
    fn gives_way_to(&self, message: &Message, was_visible: bool) -> bool {
        let is_earlier = message.incarnation < self.newest.incarnation;
        let objects = matches!(
            message.body,
            Body::Objection { newcomer } if newcomer == self.newest.incarnation
        );
        let is_free = !was_visible || self.doubted;
        is_earlier && (objects || is_free && !self.other_lives.have_sent(message.id()))
    }
}
