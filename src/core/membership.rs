//! Who is there, inferred from what is heard.
//!
//! Each member is known by the latest datagram of its latest life. A member's state follows from
//! how long it has been silent; nothing is sent to find it out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::core::rank::Rank;
use crate::core::status::MemberState;
use crate::time::Time;
use crate::types::{Incarnation, NodeId, Role, Sequence};
use crate::wire::message::{Flags, Message, Standing};

/// Most members that are remembered, this node not counted. At the bound, one that left or is gone
/// makes room for a new one; where all are present, the newcomer is not counted.
pub const MEMBERS_MAX: usize = 8192;

/// How long a member that left or is gone stays in the table, so that operators see it.
pub const FORGET_AFTER: Duration = Duration::from_secs(600);

/// No announced interval between declarations counts for more than this, so that nobody can make
/// the group wait for ever.
const ANNOUNCED_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// After this many alive thresholds of silence a member is gone.
const GONE_AFTER_THRESHOLDS: u32 = 2;

/// One other node, as it last presented itself.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) address: IpAddr,
    pub(crate) standing: Standing,
    pub(crate) last_heard: Time,
    /// When it last declared, unless it has resigned since.
    pub(crate) last_declared: Option<Time>,
    /// How often it declares.
    pub(crate) declares_every: Duration,
    /// Its newest datagram.
    newest: (Incarnation, Sequence),
    /// The newest datagram of a life that still starts under this id.
    knocked: (Incarnation, Sequence),
    /// The state that was last reported; the true one follows from the silence.
    reported: MemberState,
}

impl Member {
    fn new(now: Time, from: IpAddr, message: &Message) -> Self {
        Member {
            address: from,
            standing: message.standing,
            last_heard: now,
            last_declared: None,
            declares_every: Duration::ZERO,
            newest: number(message),
            knocked: Default::default(),
            reported: MemberState::Alive,
        }
    }

    /// Its state at `now`.
    pub(crate) fn state(&self, now: Time, alive_threshold: Duration) -> MemberState {
        let silence = now.since(self.last_heard);
        if self.reported == MemberState::Left {
            MemberState::Left
        } else if silence > alive_threshold * GONE_AFTER_THRESHOLDS {
            MemberState::Gone
        } else if silence > alive_threshold {
            MemberState::Suspect
        } else {
            MemberState::Alive
        }
    }

    /// Whether it may lead at all.
    pub(crate) const fn is_candidate(&self) -> bool {
        self.standing.flags.contains(Flags::CANDIDATE)
    }

    /// Whether it stands for leadership now.
    pub(crate) const fn is_eligible(&self) -> bool {
        self.standing.flags.contains(Flags::ELIGIBLE)
    }
}

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
    Knocking,
    /// Old, seen before, or of an earlier life: it means nothing.
    Stale,
    /// The table is full of members that are present: it means nothing.
    TableFull,
}

/// A member whose state changed by its silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fading {
    pub(crate) node_id: NodeId,
    pub(crate) state: MemberState,
    pub(crate) silence: Duration,
}

/// The table of members. This node is not in it.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    table: BTreeMap<NodeId, Member>,
    alive_threshold: Duration,
    /// Grows whenever a member becomes visible or stops being so.
    changes: u64,
}

impl Members {
    /// An empty table.
    pub(crate) const fn new(alive_threshold: Duration) -> Self {
        Members { table: BTreeMap::new(), alive_threshold, changes: 0 }
    }

    /// The member with this id, present or not.
    pub(crate) fn get(&self, node_id: &NodeId) -> Option<&Member> {
        self.table.get(node_id)
    }

    /// Every member with its state, ordered by id.
    pub(crate) fn iter(&self, now: Time) -> impl Iterator<Item = (&NodeId, &Member, MemberState)> {
        self.table
            .iter()
            .map(move |(id, member)| (id, member, member.state(now, self.alive_threshold)))
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

    /// Whether anybody else is visible.
    pub(crate) fn any_visible(&self, now: Time) -> bool {
        self.iter(now).any(|(_, _, state)| state.is_visible())
    }

    /// Those who would stand if there were no leader, alive without doubt, with their ranks.
    pub(crate) fn rivals(&self, now: Time) -> impl Iterator<Item = Rank> {
        self.present_rivals(now).map(|(id, member)| Rank::new(*id, &member.standing))
    }

    /// The best of those that are starting and would stand.
    pub(crate) fn best_starting(&self, now: Time) -> Option<Rank> {
        self.present_rivals(now)
            .filter(|(_, member)| member.standing.role == Role::Starting)
            .map(|(id, member)| Rank::new(*id, &member.standing))
            .max()
    }

    fn present_rivals(&self, now: Time) -> impl Iterator<Item = (&NodeId, &Member)> {
        self.iter(now)
            .filter(|(_, member, state)| *state == MemberState::Alive && member.is_eligible())
            .map(|(id, member, _)| (id, member))
    }

    /// Whether this member would stand if there were no leader.
    pub(crate) fn is_rival(&self, now: Time, node_id: &NodeId) -> bool {
        self.table.get(node_id).is_some_and(|member| {
            member.is_eligible() && member.state(now, self.alive_threshold) == MemberState::Alive
        })
    }

    /// The best-ranked member that has declared within the time that its declarations may take.
    pub(crate) fn best_active_leader(&self, now: Time) -> Option<Rank> {
        self.table
            .iter()
            .filter(|(_, member)| self.silence_ends(member).is_some_and(|end| now < end))
            .map(|(id, member)| Rank::new(*id, &member.standing))
            .max()
    }

    /// When a member counts as gone as a leader unless it declares again; none where it does not
    /// lead. A leader that announces a longer interval than this node expects, as happens while a
    /// new interval is rolled out, is given two of its own.
    pub(crate) fn leads_until(&self, node_id: &NodeId) -> Option<Time> {
        self.silence_ends(self.table.get(node_id)?)
    }

    fn silence_ends(&self, member: &Member) -> Option<Time> {
        let patience = self.alive_threshold.max(member.declares_every * 2);
        member.last_declared.map(|at| at + patience)
    }

    /// Takes in a datagram from another node.
    pub(crate) fn hear(&mut self, now: Time, from: IpAddr, message: &Message) -> Heard {
        let threshold = self.alive_threshold;
        let heard = if let Some(member) = self.table.get_mut(&message.sender) {
            member.hear(now, from, message, threshold)
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

    /// Takes in that a member declared, and how often it will.
    pub(crate) fn note_declaration(&mut self, now: Time, node_id: &NodeId, interval: Duration) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.last_declared = Some(now);
            member.declares_every = interval.min(ANNOUNCED_INTERVAL_MAX);
        }
    }

    /// Takes in that a member stopped.
    pub(crate) fn note_farewell(&mut self, node_id: &NodeId) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.reported = MemberState::Left;
            self.changes += 1;
        }
    }

    /// Forgets a member altogether.
    pub(crate) fn forget(&mut self, node_id: &NodeId) {
        if self.table.remove(node_id).is_some() {
            self.changes += 1;
        }
    }

    /// Takes in that a member no longer leads, or counts as silent.
    pub(crate) fn note_resigned(&mut self, node_id: &NodeId) {
        if let Some(member) = self.table.get_mut(node_id) {
            member.last_declared = None;
        }
    }

    /// Looks for members that fell silent since the last sweep, and forgets those long gone.
    pub(crate) fn sweep(&mut self, now: Time, mut report: impl FnMut(Fading)) {
        let threshold = self.alive_threshold;
        let mut changes = self.changes;
        self.table.retain(|node_id, member| {
            let state = member.state(now, threshold);
            if state != member.reported {
                member.reported = state;
                changes += u64::from(state == MemberState::Gone);
                report(Fading { node_id: *node_id, state, silence: now.since(member.last_heard) });
            }
            state.is_visible() || now.since(member.last_heard) <= FORGET_AFTER
        });
        self.changes = changes;
    }

    /// Silence is measured against a new threshold from now on.
    pub(crate) const fn set_alive_threshold(&mut self, alive_threshold: Duration) {
        self.alive_threshold = alive_threshold;
    }

    /// Whether there is room for one more, at the cost of the one that has been away the longest.
    fn make_room(&mut self, now: Time) -> bool {
        if self.table.len() < MEMBERS_MAX {
            return true;
        }
        let absent = self
            .iter(now)
            .filter(|(_, _, state)| !state.is_visible())
            .min_by_key(|(_, member, _)| member.last_heard)
            .map(|(id, _, _)| *id);
        absent.is_some_and(|id| self.table.remove(&id).is_some())
    }
}

impl Member {
    fn hear(&mut self, now: Time, from: IpAddr, message: &Message, threshold: Duration) -> Heard {
        let was_visible = self.state(now, threshold).is_visible();
        let restarted = message.incarnation > self.newest.0;
        if number(message) <= self.newest.max(self.knocked) {
            return Heard::Stale;
        }
        if restarted && was_visible && message.standing.role == Role::Starting {
            self.knocked = number(message);
            return Heard::Knocking;
        }
        let declares = matches!(message.standing.role, Role::Leader) && !restarted;
        *self = Member {
            last_declared: self.last_declared.filter(|_| declares),
            declares_every: self.declares_every,
            knocked: self.knocked,
            ..Member::new(now, from, message)
        };
        if restarted || !was_visible { Heard::Joined } else { Heard::Known }
    }
}

/// What tells a newer datagram of a node from an older one: its life first.
const fn number(message: &Message) -> (Incarnation, Sequence) {
    (message.incarnation, message.sequence)
}
