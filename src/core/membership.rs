//! The table of the members. Each node keeps its own, from the datagrams that it receives.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;
use std::time::Duration;

use crate::core::member::{Heard, Member, Shared};
use crate::core::params::Params;
use crate::core::rank::Rank;
use crate::core::status::{MemberState, VoterStanding};
use crate::time::Time;
use crate::types::{DatagramId, Life, NodeId, Role, Sequence, Term};
use crate::wire::echo::Echo;
use crate::wire::message::{Flags, Message, VotersDigest};

/// Most members in the table, not counting this node. In a full table, a new member replaces one
/// that left or failed; without one, the new node is ignored.
pub const MEMBERS_MAX: usize = 8192;

/// How long a member that left or failed stays in the table, for operators to see.
pub const FORGET_AFTER: Duration = Duration::from_secs(600);

/// A full table is searched for room at most this many times in a member's patience. The search is
/// slow, and any node may cause it.
const LOOKS_FOR_ROOM: u32 = 16;

/// A member whose state changed because it is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fading {
    pub(crate) node_id: NodeId,
    pub(crate) state: MemberState,
    pub(crate) silence: Duration,
}

/// The times that a leader must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// When its next declaration is due.
    pub(crate) due: Time,
    /// When it is given up unless it has declared.
    pub(crate) until: Time,
}

/// The table of members. This node is not in it.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Members {
    table: BTreeMap<NodeId, Member>,
    /// Silence after which a leader is given up.
    alive_threshold: Duration,
    /// The least silence after which a member is suspected.
    patience: Duration,
    /// Grows whenever a member becomes visible or invisible.
    changes: u64,
    /// When the last search found no room.
    found_full: Option<Time>,
}

impl Members {
    pub(crate) fn new(params: &Params) -> Self {
        let (alive_threshold, patience) = (params.leader_alive_threshold, params.member_patience());
        Members { table: BTreeMap::new(), alive_threshold, patience, changes: 0, found_full: None }
    }

    /// The member with this id, visible or not.
    pub(crate) fn get(&self, node_id: &NodeId) -> Option<&Member> {
        self.table.get(node_id)
    }

    pub(crate) fn newest(&self, node_id: &NodeId) -> Option<DatagramId> {
        self.table.get(node_id).map(Member::newest)
    }

    /// The member's newest datagram, unless that was open.
    pub(crate) fn newest_sealed(&self, node_id: &NodeId) -> Option<DatagramId> {
        self.table.get(node_id).and_then(Member::newest_sealed)
    }

    /// Whether this life is known to be alive, as of the last sweep. Then a higher number proves
    /// that a datagram is new.
    pub(crate) fn knows(&self, life: Life) -> bool {
        let present = self.present(&life.node_id);
        present.is_some_and(|member| member.newest().incarnation == life.incarnation)
    }

    /// Whether this datagram is recent, and its sender is known to be alive.
    pub(crate) fn sent_lately(&self, Echo { node_id, datagram }: &Echo) -> bool {
        self.present(node_id).is_some_and(|member| member.sent_lately(*datagram))
    }

    fn present(&self, node_id: &NodeId) -> Option<&Member> {
        self.table.get(node_id).filter(|member| member.is_proven_alive())
    }

    /// If a later life than `life` is known, even a starting one: this node's own newest datagram
    /// when it first heard that.
    pub(crate) fn later_life_known_at(&self, life: Life) -> Option<Sequence> {
        self.table.get(&life.node_id)?.later_life_known_at(life.incarnation)
    }

    /// Notes this node's own newest datagram when it first heard a member's life.
    pub(crate) fn note_known_at(&mut self, node_id: &NodeId, own_newest: Sequence) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_known_at(own_newest);
        }
    }

    /// Whether this node heard the leader itself last, and not a probe reply about it.
    pub(crate) fn hears(&self, leader: &NodeId) -> bool {
        self.table.get(leader).is_some_and(|leader| !leader.is_known_by_reply)
    }

    /// Whether this datagram, or a newer one of its life, was received.
    pub(crate) fn has_heard(&self, message: &Message) -> bool {
        self.table.get(&message.sender).is_some_and(|member| member.has_heard(message.id()))
    }

    /// Every member must prove again that it is alive.
    pub(crate) fn doubt_all(&mut self) {
        self.table.values_mut().for_each(Member::doubt);
    }

    /// Notes that the datagram which was just received is open.
    pub(crate) fn note_open(&mut self, message: &Message) {
        if let Some(member) = self.table.get_mut(&message.sender) {
            member.note_open(message.id());
        }
    }

    /// The numbers, intervals and leaderships that members have told so far do not count any more:
    /// any node may have forged them.
    pub(crate) fn forget_forgeable(&mut self) {
        self.table.values_mut().for_each(Member::forget_forgeable);
    }

    /// Every member with its state, ordered by id.
    pub(crate) fn iter(&self, now: Time) -> impl Iterator<Item = (&NodeId, &Member, MemberState)> {
        self.table.iter().map(move |(id, member)| (id, member, member.state(now, self.patience)))
    }

    /// A number that stays the same as long as the same members are visible.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// How many candidates are visible: alive or suspect.
    pub(crate) fn visible_candidates(&self, now: Time) -> usize {
        self.iter(now)
            .filter(|(_, member, state)| state.is_visible() && member.is_candidate())
            .count()
    }

    /// How many other nodes are visible.
    pub(crate) fn visible(&self, now: Time) -> usize {
        self.iter(now).filter(|(_, _, state)| state.is_visible()).count()
    }

    /// Whether another node is visible.
    pub(crate) fn any_visible(&self, now: Time) -> bool {
        self.iter(now).any(|(_, _, state)| state.is_visible())
    }

    /// The ranks of the members that are alive and would stand if there were no leader.
    pub(crate) fn rivals(&self, now: Time) -> impl Iterator<Item = Rank> {
        self.rivals_heard(now).map(|(rank, _)| rank)
    }

    /// The same, and when each of them was heard last.
    pub(crate) fn rivals_heard(&self, now: Time) -> impl Iterator<Item = (Rank, Time)> {
        self.present_rivals(now)
            .map(|(id, member)| (Rank::new(*id, &member.standing), member.last_heard))
    }

    /// The best starting member that would stand.
    pub(crate) fn best_starting(&self, now: Time) -> Option<Rank> {
        self.present_rivals(now)
            .filter(|(_, member)| member.standing.role == Role::Starting)
            .map(|(id, member)| Rank::new(*id, &member.standing))
            .max()
    }

    fn present_rivals(&self, now: Time) -> impl Iterator<Item = (&NodeId, &Member)> {
        self.table.iter().filter(move |(_, member)| self.stands(now, member))
    }

    /// Whether this member would stand if there were no leader.
    pub(crate) fn is_rival(&self, now: Time, node_id: &NodeId) -> bool {
        self.table.get(node_id).is_some_and(|member| self.stands(now, member))
    }

    fn stands(&self, now: Time, member: &Member) -> bool {
        member.is_eligible() && member.state(now, self.patience) == MemberState::Alive
    }

    /// Whether the vote of this member counts now. An unknown one counts as silent.
    pub(crate) fn voter_standing(
        &self,
        now: Time,
        node_id: &NodeId,
        voters: VotersDigest,
    ) -> VoterStanding {
        let Some(member) = self.table.get(node_id) else { return VoterStanding::Silent };
        if !member.state(now, self.patience).is_visible() {
            VoterStanding::Silent
        } else if member.standing.voters != Some(voters) {
            VoterStanding::Disagrees
        } else if member.is_duplicated(now, self.patience) {
            VoterStanding::DuplicateNodeId
        } else if !member.standing.flags.contains(Flags::ENROLLED) {
            VoterStanding::Unenrolled
        } else {
            VoterStanding::Counts
        }
    }

    /// For how long the member's present life has been known; zero if it is unknown.
    pub(crate) fn known_for(&self, now: Time, node_id: &NodeId) -> Duration {
        self.table.get(node_id).map_or(Duration::ZERO, |member| member.known_for(now))
    }

    /// Notes that another setting of a member was reported, or is the same now. True if that
    /// changed.
    pub(crate) fn note_difference(&mut self, node_id: &NodeId, of: Shared, differs: bool) -> bool {
        self.table.get_mut(node_id).is_some_and(|member| member.note_difference(of, differs))
    }

    /// The best-ranked member whose declarations are not overdue by too much.
    pub(crate) fn best_active_leader(&self, now: Time) -> Option<Rank> {
        self.table
            .iter()
            .filter(|(_, member)| {
                member.silence_ends(self.alive_threshold).is_some_and(|end| now < end)
            })
            .map(|(id, member)| Rank::new(*id, &member.standing))
            .max()
    }

    /// The times that a leader must keep; none for a member that does not lead.
    pub(crate) fn awaited(&self, node_id: &NodeId) -> Option<Awaited> {
        let member = self.table.get(node_id)?;
        let until = member.silence_ends(self.alive_threshold)?;
        Some(Awaited { due: member.declaration_due()?, until })
    }

    /// Receives a datagram of another node.
    pub(crate) fn hear(&mut self, now: Time, from: IpAddr, message: &Message) -> Heard {
        let heard = if let Some(member) = self.table.get_mut(&message.sender) {
            member.hear(now, from, message, self.patience)
        } else if self.make_room(now) {
            self.table.insert(message.sender, Member::new(now, from, message));
            Heard::Joined
        } else {
            Heard::TableFull
        };
        if heard == Heard::Joined {
            self.changes += 1;
        }
        heard
    }

    /// Notes that a member's datagrams up to `newest` were received and ignored.
    pub(crate) fn note_heard(&mut self, node_id: &NodeId, newest: Sequence) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_heard(newest);
        }
    }

    /// Notes that a member declared, and its announced interval.
    pub(crate) fn note_declaration(&mut self, now: Time, node_id: &NodeId, interval: Duration) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_declaration(now, interval);
        }
    }

    /// Notes the announced interval of a member's heartbeats.
    pub(crate) fn note_report(&mut self, node_id: &NodeId, interval: Duration) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_report(interval);
        }
    }

    /// Notes that another node heard the datagram `newest` of a leader, so that it has declared in
    /// time. False if this node has heard that one, too, or the last such report named it.
    pub(crate) fn note_probe_reply(
        &mut self,
        now: Time,
        node_id: &NodeId,
        newest: DatagramId,
    ) -> bool {
        self.table.get_mut(node_id).is_some_and(|member| member.note_probe_reply(now, newest))
    }

    /// Notes that a life answered a ping of this node, to it alone or `to_all`. Each answer counts
    /// once.
    pub(crate) fn note_pong(&mut self, now: Time, life: Life, ping: Sequence, to_all: bool) {
        let patience = self.patience;
        if let Some(member) = self.in_life(life) {
            member.note_pong(now, ping, to_all, patience);
        }
    }

    /// Notes a member's ping. False if it, or a later one, was received before, or if this life of
    /// the sender is no member.
    pub(crate) fn note_pinged_by(&mut self, ping: &Message) -> bool {
        self.in_life(ping.life()).is_some_and(|member| member.note_pinged_by(ping.sequence))
    }

    /// The member, if this is its present life.
    fn in_life(&mut self, life: Life) -> Option<&mut Member> {
        let member = self.table.get_mut(&life.node_id)?;
        (member.newest().incarnation == life.incarnation).then_some(member)
    }

    /// Notes that a ping was sent to a member alone.
    pub(crate) fn note_ping(&mut self, now: Time, node_id: &NodeId, ping: Sequence) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.round_trip.ask(now, ping);
        }
    }

    /// The visible member that follows `last` in the order of the ids, or else the first one.
    pub(crate) fn visible_after(&self, now: Time, last: NodeId) -> Option<NodeId> {
        let later = self.table.range((Bound::Excluded(last), Bound::Unbounded));
        let is_visible =
            |(_, member): &(&NodeId, &Member)| member.state(now, self.patience).is_visible();
        later.chain(&self.table).find(is_visible).map(|(id, _)| *id)
    }

    /// Notes that a leader was given up.
    pub(crate) fn note_given_up(&mut self, node_id: &NodeId) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_given_up();
        }
    }

    /// This leader takes a term above the member's. False if it already has.
    pub(crate) fn note_outbid(&mut self, node_id: &NodeId, term: Term) -> bool {
        self.table.get_mut(node_id).is_some_and(|member| member.note_outbid(term))
    }

    /// Notes that a member stopped.
    pub(crate) fn note_farewell(&mut self, node_id: &NodeId) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_farewell();
            self.found_full = None;
            self.changes += 1;
        }
    }

    /// Notes that a member no longer leads, or was given up.
    pub(crate) fn note_resigned(&mut self, node_id: &NodeId) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.note_resigned();
        }
    }

    /// Reports members that have become silent since the last sweep, and removes those that have
    /// been silent for long. It keeps the followed `leader`: others may hear it and reply for it,
    /// and a node that was stopped for long probes it before it gives it up.
    pub(crate) fn sweep(
        &mut self,
        now: Time,
        leader: Option<NodeId>,
        mut report: impl FnMut(Fading),
    ) {
        let patience = self.patience;
        let mut changes = self.changes;
        self.table.retain(|node_id, member| {
            let (before, state) = member.look(now, patience);
            let silence = now.since(member.last_heard);
            changes += u64::from(before.is_visible() != state.is_visible());
            if before != state && state != MemberState::Alive {
                report(Fading { node_id: *node_id, state, silence });
            }
            let is_followed = leader == Some(*node_id);
            state.is_visible() || is_followed || silence <= FORGET_AFTER
        });
        self.changes = changes;
    }

    /// New settings apply to the present silence, too.
    pub(crate) fn set_params(&mut self, params: &Params) {
        self.alive_threshold = params.leader_alive_threshold;
        self.patience = params.member_patience();
    }

    /// Makes room for one more member. In a full table it removes the one that has been silent for
    /// longest.
    fn make_room(&mut self, now: Time) -> bool {
        if self.table.len() < MEMBERS_MAX {
            return true;
        }
        let again = self.patience / LOOKS_FOR_ROOM;
        if self.found_full.is_some_and(|at| now.since(at) < again) {
            return false;
        }
        let absent = self
            .iter(now)
            .filter(|(_, _, state)| !state.is_visible())
            .min_by_key(|(_, member, _)| member.last_heard)
            .map(|(id, _, _)| *id);
        let removed = absent.is_some_and(|id| self.table.remove(&id).is_some());
        self.found_full = (!removed).then_some(now);
        removed
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::types::{Incarnation, Priority, TieBreak};
    use crate::wire::echo::Echoes;
    use crate::wire::message::{Body, Standing};

    const THRESHOLD: Duration = Duration::from_secs(3);
    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const START: Time = Time::from_millis(1_000_000);

    fn settings(leader_alive_threshold: Duration) -> Params {
        Params { leader_alive_threshold, ..Params::new(Duration::from_secs(1)) }
    }

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    fn message(sender: &str, incarnation: u64, sequence: u64, role: Role) -> Message {
        let flags = Flags::CANDIDATE.with(Flags::ELIGIBLE, true);
        Message {
            sender: id(sender),
            incarnation: Incarnation(incarnation),
            sequence: Sequence(sequence),
            term: Term(0),
            standing: Standing {
                role,
                priority: Priority(100),
                tie_break: TieBreak::default(),
                flags,
                voters: None,
            },
            echoes: Echoes::NONE,
            body: Body::Heartbeat {
                interval_us: 0,
                leader: None,
                conceded: None,
                acknowledged: None,
            },
        }
    }

    fn heartbeat(sender: &str, incarnation: u64, sequence: u64) -> Message {
        message(sender, incarnation, sequence, Role::Follower)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A table with a member `a` that was heard at [`START`].
    fn with_a() -> Members {
        let mut members = Members::new(&settings(THRESHOLD));
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 1)), Heard::Joined);
        members
    }

    fn state(members: &Members, now: Time, name: &str) -> Option<MemberState> {
        members.get(&id(name)).map(|member| member.state(now, THRESHOLD))
    }

    fn sweep(members: &mut Members, now: Time) -> Vec<(NodeId, MemberState)> {
        let mut fading = Vec::new();
        members.sweep(now, None, |change| fading.push((change.node_id, change.state)));
        fading
    }

    #[test]
    fn a_members_state_follows_from_its_silence() {
        let members = with_a();
        let just_after = |duration| START + duration + Duration::from_nanos(1);
        assert_eq!(state(&members, START, "a"), Some(MemberState::Alive));
        assert_eq!(state(&members, START + THRESHOLD, "a"), Some(MemberState::Alive));
        assert_eq!(state(&members, just_after(THRESHOLD), "a"), Some(MemberState::Suspect));
        assert_eq!(state(&members, START + THRESHOLD * 2, "a"), Some(MemberState::Suspect));
        assert_eq!(state(&members, just_after(THRESHOLD * 2), "a"), Some(MemberState::Gone));
    }

    #[test]
    fn sweep_reports_each_change_once_and_counts_only_a_loss() {
        let mut members = with_a();
        let joined = members.changes();
        assert_eq!(sweep(&mut members, START + secs(3)), []);
        assert_eq!(sweep(&mut members, START + secs(4)), [(id("a"), MemberState::Suspect)]);
        assert_eq!(sweep(&mut members, START + secs(5)), []);
        assert_eq!(members.changes(), joined, "a suspect is still visible");
        assert_eq!(sweep(&mut members, START + secs(7)), [(id("a"), MemberState::Gone)]);
        assert_eq!(members.changes(), joined + 1);
        assert_eq!(sweep(&mut members, START + secs(8)), []);
    }

    #[test]
    fn suspect_member_is_only_known_again_and_a_gone_one_joins_again() {
        let mut members = with_a();
        let joined = members.changes();
        sweep(&mut members, START + secs(4));
        assert_eq!(members.hear(START + secs(5), ADDRESS, &heartbeat("a", 1, 2)), Heard::Known);
        assert_eq!(members.changes(), joined);
        sweep(&mut members, START + secs(12));
        assert_eq!(members.hear(START + secs(13), ADDRESS, &heartbeat("a", 1, 3)), Heard::Joined);
        assert_eq!(members.changes(), joined + 2);
    }

    #[test]
    fn datagram_that_is_old_or_of_an_earlier_life_is_ignored() {
        let mut members = with_a();
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 2, 5)), Heard::Joined);
        let changes = members.changes();
        for (old, expected) in [
            (heartbeat("a", 2, 5), Heard::Stale),
            (heartbeat("a", 2, 4), Heard::Stale),
            (heartbeat("a", 1, 900), Heard::Excluded),
            (heartbeat("a", 1, 900), Heard::Stale),
            (heartbeat("a", 0, 0), Heard::Excluded),
        ] {
            assert_eq!(members.hear(START + secs(2), ADDRESS, &old), expected, "{old:?}");
        }
        assert_eq!(members.get(&id("a")).unwrap().last_heard, START);
        assert_eq!(members.changes(), changes);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 2, 6)), Heard::Known);
    }

    #[test]
    fn new_datagram_updates_address_and_standing() {
        let mut members = with_a();
        let elsewhere = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));
        let mut news = heartbeat("a", 1, 2);
        news.standing.priority = Priority(7);
        members.hear(START + secs(1), elsewhere, &news);
        let member = members.get(&id("a")).unwrap();
        assert_eq!((member.address, member.standing.priority), (elsewhere, Priority(7)));
        assert_eq!(member.last_heard, START + secs(1));
    }

    #[test]
    fn starting_life_with_a_visible_members_id_is_a_newcomer() {
        let mut members = with_a();
        let changes = members.changes();
        let newcomer = message("a", 2, 1, Role::Starting);
        assert_eq!(members.hear(START, ADDRESS, &newcomer), Heard::Newcomer);
        assert_eq!(members.hear(START, ADDRESS, &newcomer), Heard::Stale, "a duplicate");
        let again = message("a", 2, 2, Role::Starting);
        assert_eq!(members.hear(START, ADDRESS, &again), Heard::Newcomer);
        assert_eq!(members.changes(), changes);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 2)), Heard::Known);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 2, 3)), Heard::Joined);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 3)), Heard::Excluded);
    }

    /// Otherwise an old recording that echoes one of them would prove a dead node alive.
    #[test]
    fn datagrams_of_a_start_up_are_recent_only_next_to_a_live_holder_of_the_id() {
        let sent_lately = |members: &Members, sequence| {
            let datagram = DatagramId { incarnation: Incarnation(2), sequence: Sequence(sequence) };
            members.sent_lately(&Echo { node_id: id("a"), datagram })
        };
        let fail = |members: &mut Members| {
            [4, 7].iter().for_each(|after| drop(sweep(members, START + secs(*after))));
        };
        for takes_over_first in [true, false] {
            let mut members = with_a();
            members.hear(START, ADDRESS, &message("a", 2, 1, Role::Starting));
            if takes_over_first {
                assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 2, 3)), Heard::Joined);
                assert!(sent_lately(&members, 1));
            }
            fail(&mut members);
            let late = START + secs(20);
            assert_eq!(members.hear(late, ADDRESS, &heartbeat("a", 2, 9)), Heard::Joined);
            assert!(!sent_lately(&members, 8), "{takes_over_first}");
        }
    }

    #[test]
    fn starting_life_with_an_absent_members_id_joins_at_once() {
        let mut members = with_a();
        members.note_farewell(&id("a"));
        let hello = message("a", 2, 1, Role::Starting);
        assert_eq!(members.hear(START, ADDRESS, &hello), Heard::Joined);
        let mut members = with_a();
        assert_eq!(members.hear(START + secs(10), ADDRESS, &hello), Heard::Joined);
    }

    #[test]
    fn member_that_left_is_absent_until_a_newer_datagram() {
        let mut members = with_a();
        let joined = members.changes();
        members.note_farewell(&id("a"));
        assert_eq!(state(&members, START, "a"), Some(MemberState::Left));
        assert_eq!(members.changes(), joined + 1);
        assert!(!members.any_visible(START));
        assert_eq!(sweep(&mut members, START + secs(60)), [], "it left before it was silent");
        assert_eq!(state(&members, START + secs(60), "a"), Some(MemberState::Left));
        assert_eq!(members.hear(START + secs(60), ADDRESS, &heartbeat("a", 2, 1)), Heard::Joined);
    }

    #[test]
    fn absent_members_are_forgotten_and_visible_ones_never() {
        let mut members = with_a();
        members.hear(START, ADDRESS, &heartbeat("b", 1, 1));
        members.note_farewell(&id("b"));
        sweep(&mut members, START + FORGET_AFTER);
        assert!(members.get(&id("a")).is_some() && members.get(&id("b")).is_some());
        members.hear(START + FORGET_AFTER, ADDRESS, &heartbeat("a", 1, 2));
        sweep(&mut members, START + FORGET_AFTER + secs(1));
        assert!(members.get(&id("a")).is_some());
        assert!(members.get(&id("b")).is_none());
    }

    #[test]
    fn older_life_may_join_after_a_farewell_and_late_datagrams_are_stale() {
        let mut members = with_a();
        let newcomer = |sequence| heartbeat("a", 9, sequence);
        assert_eq!(members.hear(START, ADDRESS, &newcomer(2)), Heard::Joined);
        members.note_farewell(&id("a"));
        assert_eq!(members.hear(START, ADDRESS, &newcomer(1)), Heard::Stale);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 2)), Heard::Joined);
        assert!(members.get(&id("a")).unwrap().is_duplicated(START, THRESHOLD));
    }

    /// Both announce that they send every second.
    #[test]
    fn id_is_duplicated_if_its_earlier_life_is_heard_after_a_later_one() {
        let duplicated = |members: &Members, after: u64| {
            let now = START + Duration::from_millis(after);
            members.get(&id("a")).unwrap().is_duplicated(now, THRESHOLD)
        };
        let mut members = with_a();
        members.note_report(&id("a"), secs(1));
        let restarted = START + Duration::from_millis(100);
        let starting = message("a", 2, 1, Role::Starting);
        assert_eq!(members.hear(restarted, ADDRESS, &starting), Heard::Newcomer);
        assert_eq!(members.hear(restarted, ADDRESS, &heartbeat("a", 2, 2)), Heard::Joined);
        assert!(duplicated(&members, 1250), "the earlier life may still send");
        assert!(!duplicated(&members, 1251));

        let late = START + secs(2);
        members.hear(late, ADDRESS, &heartbeat("a", 1, 1));
        assert!(!duplicated(&members, 2000), "a datagram in flight when it ended");
        members.hear(late, ADDRESS, &heartbeat("a", 1, 2));
        assert!(duplicated(&members, 2000) && duplicated(&members, 5000));
        assert!(!duplicated(&members, 5001));
    }

    /// The later life may have other settings.
    #[test]
    fn earlier_life_contests_the_id_for_its_own_announced_interval() {
        let mut members = with_a();
        members.note_report(&id("a"), secs(1));
        members.hear(START + Duration::from_millis(100), ADDRESS, &heartbeat("a", 2, 1));
        members.note_report(&id("a"), Duration::from_millis(200));
        let is_duplicated = |after| {
            let now = START + Duration::from_millis(after);
            members.get(&id("a")).unwrap().is_duplicated(now, THRESHOLD)
        };
        assert!(is_duplicated(1250));
        assert!(!is_duplicated(1251));
    }

    #[test]
    fn member_that_keeps_sending_while_another_life_starts_is_duplicated() {
        let mut members = with_a();
        members.note_report(&id("a"), secs(1));
        members.hear(START, ADDRESS, &message("a", 2, 1, Role::Starting));
        members.hear(START + secs(1), ADDRESS, &heartbeat("a", 1, 2));
        members.hear(START + secs(2), ADDRESS, &heartbeat("a", 2, 2));
        let is_duplicated =
            |after| members.get(&id("a")).unwrap().is_duplicated(START + secs(after), THRESHOLD);
        assert!(is_duplicated(2) && is_duplicated(4));
        assert!(!is_duplicated(5));
    }

    /// That one has not received the objection.
    #[test]
    fn member_is_duplicated_as_long_as_a_life_that_it_refused_sends() {
        let mut members = with_a();
        members.note_report(&id("a"), secs(1));
        let body = Body::Objection { newcomer: Incarnation(9) };
        members.hear(START, ADDRESS, &Message { body, ..heartbeat("a", 1, 2) });
        assert_eq!(members.hear(START + secs(2), ADDRESS, &heartbeat("a", 9, 1)), Heard::Excluded);
        members.hear(START + secs(3), ADDRESS, &heartbeat("a", 1, 3));
        let is_duplicated =
            |after| members.get(&id("a")).unwrap().is_duplicated(START + secs(after), THRESHOLD);
        assert!(is_duplicated(3) && is_duplicated(5));
        assert!(!is_duplicated(6));
    }

    /// A datagram that was in flight when the earlier life ended does not prove it alive.
    #[test]
    fn late_copy_of_an_earlier_life_does_not_bring_back_a_member_that_left() {
        let mut members = with_a();
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 2, 1)), Heard::Joined);
        members.note_farewell(&id("a"));
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 1)), Heard::Stale);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 2)), Heard::Joined);
    }

    #[test]
    fn late_copy_of_a_later_life_that_gave_way_does_not_bring_it_back() {
        let mut members = with_a();
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 9, 1)), Heard::Joined);
        members.note_farewell(&id("a"));
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 2)), Heard::Joined);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 9, 1)), Heard::Stale);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 9, 2)), Heard::Joined);
    }

    #[test]
    fn forged_number_of_an_earlier_life_does_not_shut_it_out_once_keys_are_required() {
        let mut members = with_a();
        members.hear(START, ADDRESS, &heartbeat("a", 1, 1 << 60));
        members.hear(START, ADDRESS, &heartbeat("a", 2, 1));
        members.forget_forgeable();
        members.note_farewell(&id("a"));
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("a", 1, 2)), Heard::Joined);
    }

    #[test]
    fn full_table_keeps_visible_members_and_replaces_the_longest_absent() {
        let mut members = Members::new(&settings(THRESHOLD));
        let name = |number: usize| format!("n{number:05}");
        for number in 0..MEMBERS_MAX {
            let heard = members.hear(START, ADDRESS, &heartbeat(&name(number), 1, 1));
            assert_eq!(heard, Heard::Joined);
        }
        let changes = members.changes();
        assert_eq!(members.hear(START, ADDRESS, &heartbeat("new", 1, 1)), Heard::TableFull);
        assert_eq!(members.changes(), changes);
        assert_eq!(members.hear(START, ADDRESS, &heartbeat(&name(7), 1, 2)), Heard::Known);

        let later = START + secs(1);
        members.hear(later, ADDRESS, &heartbeat(&name(4), 1, 2));
        members.note_farewell(&id(&name(4)));
        members.note_farewell(&id(&name(5)));
        assert_eq!(members.hear(later, ADDRESS, &heartbeat("new", 1, 1)), Heard::Joined);
        assert!(members.get(&id(&name(5))).is_none(), "absent for longer than the other");
        assert!(members.get(&id(&name(4))).is_some());
        assert_eq!(members.iter(later).count(), MEMBERS_MAX);
    }

    #[test]
    fn rivals_are_eligible_and_alive() {
        let mut members = with_a();
        let mut observer = heartbeat("o", 1, 1);
        observer.standing.flags = Flags::default();
        let mut idle = heartbeat("i", 1, 1);
        idle.standing.flags = Flags::CANDIDATE;
        members.hear(START, ADDRESS, &observer);
        members.hear(START, ADDRESS, &idle);
        members.hear(START + secs(2), ADDRESS, &heartbeat("b", 1, 1));
        let rivals = |now| members.rivals(now).map(Rank::node_id).collect::<Vec<_>>();
        assert_eq!(rivals(START + secs(2)), [id("a"), id("b")]);
        assert_eq!(rivals(START + secs(4)), [id("b")], "a is suspect");
        assert!(members.is_rival(START + secs(4), &id("b")));
        assert!(!members.is_rival(START + secs(4), &id("a")));
        assert!(!members.is_rival(START, &id("i")) && !members.is_rival(START, &id("nobody")));
        assert_eq!(members.visible_candidates(START + secs(4)), 3, "suspects still count");
        assert_eq!(members.visible_candidates(START + secs(7)), 1);
    }

    #[test]
    fn best_starting_member_is_eligible_and_visible() {
        let mut members = with_a();
        assert_eq!(members.best_starting(START), None);
        members.hear(START, ADDRESS, &message("c", 1, 1, Role::Starting));
        members.hear(START, ADDRESS, &message("b", 1, 1, Role::Starting));
        assert_eq!(members.best_starting(START).map(Rank::node_id), Some(id("b")));
        assert_eq!(members.best_starting(START + secs(4)), None);
    }

    #[test]
    fn a_leader_is_active_for_a_threshold_or_a_quarter_more_than_its_own_interval() {
        let mut members = with_a();
        members.hear(START, ADDRESS, &message("b", 1, 1, Role::Leader));
        assert_eq!(members.best_active_leader(START), None, "it has not declared");
        members.note_declaration(START, &id("b"), secs(1));
        assert_eq!(members.awaited(&id("b")).map(|it| it.until), Some(START + THRESHOLD));
        members.note_declaration(START, &id("b"), secs(5));
        assert_eq!(members.awaited(&id("b")).map(|it| it.until), Some(START + secs(5) * 5 / 4));
        members.note_declaration(START, &id("b"), secs(4000));
        let longest = secs(60) * 5 / 4;
        assert_eq!(members.awaited(&id("b")).map(|it| it.until), Some(START + longest));
        assert_eq!(members.best_active_leader(START).map(Rank::node_id), Some(id("b")));
        members.hear(START, ADDRESS, &message("a", 1, 2, Role::Leader));
        members.note_declaration(START, &id("a"), secs(1));
        assert_eq!(members.best_active_leader(START).map(Rank::node_id), Some(id("a")));
        let later = START + THRESHOLD;
        assert_eq!(members.best_active_leader(later).map(Rank::node_id), Some(id("b")));
        members.note_resigned(&id("b"));
        assert_eq!(members.best_active_leader(later), None);
    }

    #[test]
    fn a_leader_heard_in_another_role_or_life_no_longer_leads() {
        for fallen in [heartbeat("b", 1, 2), message("b", 2, 1, Role::Leader)] {
            let mut members = Members::new(&settings(THRESHOLD));
            members.hear(START, ADDRESS, &message("b", 1, 1, Role::Leader));
            members.note_declaration(START, &id("b"), secs(1));
            members.hear(START, ADDRESS, &fallen);
            assert_eq!(members.awaited(&id("b")).map(|it| it.until), None, "{fallen:?}");
        }
    }

    #[test]
    fn a_new_threshold_counts_from_now_on() {
        let mut members = with_a();
        let now = START + secs(5);
        assert_eq!(sweep(&mut members, now), [(id("a"), MemberState::Suspect)]);
        let before = members.changes();
        members.set_params(&settings(secs(10)));
        assert_eq!(members.rivals(now).count(), 1);
        assert_eq!(sweep(&mut members, now), [], "a member that is alive again is not reported");
        assert_eq!(members.changes(), before);
    }

    #[test]
    fn a_new_threshold_that_brings_a_gone_member_back_changes_the_membership() {
        let mut members = with_a();
        sweep(&mut members, START + secs(7));
        let before = members.changes();
        members.set_params(&settings(secs(10)));
        sweep(&mut members, START + secs(7));
        assert_eq!(members.changes(), before + 1);
    }
}
