//! What the log reports about an election: one line for each event, as a story, at a rate that
//! people can read.

use std::time::Duration;

use log::Level;

use crate::core::hook::Reason;
use crate::core::output::{Event, Transition};
use crate::time::Time;
use crate::types::{NodeId, Role};

/// Most lines in a minute about events that other nodes cause, also the change of a leader that
/// this node follows. Lines about this node's own actions are not limited.
const LINES_PER_MINUTE: u32 = 120;

/// How long a minute is.
const MINUTE: Duration = Duration::from_secs(60);

/// Writes the log.
#[derive(Debug)]
pub(super) struct Narration {
    node_id: NodeId,
    minute_began: Time,
    lines: u32,
    withheld: u64,
    /// Candidacies since the last leader. Without a majority there may be no leader for long, and
    /// one line then stands for all candidacies.
    candidacies: u32,
}

impl Narration {
    pub(super) const fn new(node_id: NodeId, now: Time) -> Self {
        Narration { node_id, minute_began: now, lines: 0, withheld: 0, candidacies: 0 }
    }

    /// Logs what happened.
    pub(super) fn tell(&mut self, now: Time, event: &Event) {
        let Event::Transition(transition) = event else {
            if is_own_doing(event) || self.has_room(now) {
                tell_event(event);
            }
            return;
        };
        if let Some(level) = self.level_of(now, transition) {
            log::log!(level, "{}", self.describe_transition(transition));
        }
    }

    /// At which level this is logged, if at all. Whom this node follows is what other nodes say.
    fn level_of(&mut self, now: Time, transition: &Transition) -> Option<Level> {
        if self.is_repeated(transition) {
            return Some(Level::Debug);
        }
        let leads_or_led = [transition.role, transition.previous_role].contains(&Role::Leader);
        (leads_or_led || self.has_room(now)).then_some(Level::Info)
    }

    fn has_room(&mut self, now: Time) -> bool {
        if now.since(self.minute_began) >= MINUTE {
            if self.withheld > 0 {
                log::warn!(
                    "{} log lines about other nodes were dropped: at most {LINES_PER_MINUTE} a \
                     minute",
                    self.withheld
                );
            }
            let candidacies = self.candidacies;
            *self = Narration { candidacies, ..Narration::new(self.node_id, now) };
        }
        self.lines += 1;
        let has_room = self.lines <= LINES_PER_MINUTE;
        self.withheld += u64::from(!has_room);
        has_room
    }

    /// Whether this node only stands for election again, or has again failed to become the leader.
    fn is_repeated(&mut self, transition: &Transition) -> bool {
        if transition.leader.is_some() {
            self.candidacies = 0;
            return false;
        }
        let stands = transition.role == Role::Candidate;
        let stood_in_vain = transition.previous_role == Role::Candidate;
        self.candidacies = self.candidacies.saturating_add(u32::from(stands));
        self.candidacies > 1 && (stands || stood_in_vain)
    }

    fn describe_transition(&self, transition: &Transition) -> String {
        let Transition { role, term, leader, previous_leader, reason, .. } = *transition;
        let why = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let after = previous_leader
            .filter(|previous| Some(*previous) != leader)
            .map_or(String::new(), |previous| format!("; previous leader {previous}"));
        match (role, leader) {
            (Role::Leader, _) => {
                format!("this node, {}, leads in term {term}{why}{after}", self.node_id)
            }
            (_, Some(leader)) => format!("following {leader} in term {term}{why}{after}"),
            (Role::Candidate, None) => "candidate: this node stands for election".to_owned(),
            (role, None) => format!("{role}, no leader known{why}{after}"),
        }
    }
}

/// Whether other nodes cannot cause this event repeatedly. Such an event needs no rate limit, and
/// must not get lost among lines that others cause.
const fn is_own_doing(event: &Event) -> bool {
    matches!(
        event,
        Event::Enrolled { .. }
            | Event::GraceOverrun { .. }
            | Event::NotReleased { .. }
            | Event::HeldOff { .. }
    )
}

fn tell_event(event: &Event) {
    match *event {
        Event::Transition(_) => {}
        Event::MemberJoined { node_id, address } => {
            log::info!("member {node_id} at {address} joined")
        }
        Event::MemberSuspect { node_id, silence } => {
            log::debug!("member {node_id} is suspected: silent for {silence:.1?}");
        }
        Event::MemberGone { node_id, silence } => {
            log::info!("member {node_id} failed: silent for {silence:.1?}");
        }
        Event::MemberLeft { node_id } => log::info!("member {node_id} left"),
        Event::LeaderSilent { leader, silence } => {
            log::warn!(
                "lost the leader {leader}: no declaration for {silence:.1?}, and no reply to a \
                 probe"
            );
        }
        Event::LeaderResigned { leader } => log::info!("leader {leader} resigned"),
        Event::DeferredTo { candidate } => {
            log::info!("waiting for candidate {candidate}, which ranks higher, to lead");
        }
        Event::RivalLeader { rival, address } => log::warn!(
            "{rival} at {address} leads too; this node ranks higher and continues to lead in a \
             higher term"
        ),
        Event::RivalStaticLeader { rival, address } => log::error!(
            "{rival} at {address} and this node both lead by static_role; remove static_role = \
             \"leader\" from one of them"
        ),
        Event::DuplicateNodeId { newcomer } => log::warn!(
            "duplicate node id: the daemon at {newcomer} has the node_id of this node and was \
             asked to stop; give it another node_id"
        ),
        Event::NoProof { node_id } => log::warn!(
            "ignoring datagrams from {node_id}: no node with this id answers a challenge; they are \
             replayed, or {node_id} does not receive the datagrams of this node"
        ),
        Event::TooFewCandidates { visible, needed } => {
            log::warn!(
                "this node does not lead: {visible} candidates are visible, and min_candidates \
                 requires {needed}"
            );
        }
        Event::VotersDisagree { node_id, in_quorum_mode: true } => log::error!(
            "member {node_id} is in quorum mode with other voters than this node: neither counts \
             the votes of the other; set the same voters on both"
        ),
        Event::VotersDisagree { node_id, in_quorum_mode: false } => log::error!(
            "member {node_id} is in available mode: it may lead at the same time as the leader \
             that the voters elect; set the same mode on every node of the group"
        ),
        Event::TieBreakDiffers { node_id, theirs } => log::warn!(
            "member {node_id} has tie_break = \"{theirs}\", unlike this node: of equal priorities \
             the nodes with \"lowest-id\" lead; set the same tie_break on every node of the group"
        ),
        Event::AwaitingEnrolment { silent, enrolled } => log::warn!(
            "this node does not vote yet: it has no saved votes, because this is its first start \
             or its state was lost. A new group waits for every voter (silent: {silent}); an \
             existing group waits for a majority of the voters with saved votes (so far: \
             {enrolled})"
        ),
        Event::Enrolled { above } => {
            log::info!(
                "voter recovery finished: this node votes from now on, in terms above {above}"
            );
        }
        Event::GraceOverrun { term } => log::error!(
            "THE HOOK EXCEEDED demote_grace: it has not released term {term}; if this node has \
             lost its lease, another node may lead now"
        ),
        Event::NotReleased { event, term, retry_in } => log::error!(
            "THE HOOK DID NOT RELEASE TERM {term}: its run for {event} did not succeed and is \
             repeated in {retry_in:?}; meanwhile this node is not eligible to lead, and in quorum \
             mode it neither resigns nor votes"
        ),
        Event::ClaimFailed { pause } => log::warn!(
            "this node ranks higher than the leader, and claimed the leadership, but did not get \
             it; it claims it again in {pause:.1?} at the earliest"
        ),
        Event::HeldOff { reason: Reason::CheckFailed, holdoff } => {
            log::error!(
                "this node is not eligible to lead for {holdoff:.1?}, because check_leader failed"
            );
        }
        Event::HeldOff { reason: Reason::Yield, holdoff } => {
            log::error!(
                "this node is not eligible to lead for {holdoff:.1?}, because a unit or program \
                 failed, and ran `lanelect yield --failed`"
            );
        }
        Event::HeldOff { holdoff, .. } => {
            log::error!(
                "the hook failed for elected: this node is not eligible to lead for {holdoff:.1?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Term;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    #[test]
    fn a_transition_reads_as_a_sentence() {
        let narration = Narration::new(id("web1"), Time::ZERO);
        let mut transition = Transition {
            role: Role::Leader,
            previous_role: Role::Candidate,
            term: Term(8),
            leader: Some(id("web1")),
            previous_leader: Some(id("web0")),
            reason: Some(Reason::Election),
        };
        assert_eq!(
            narration.describe_transition(&transition),
            "this node, web1, leads in term 8 (election); previous leader web0"
        );
        transition.role = Role::Follower;
        transition.leader = None;
        transition.reason = Some(Reason::Yield);
        assert_eq!(
            narration.describe_transition(&transition),
            "follower, no leader known (yield); previous leader web0"
        );
    }

    #[test]
    fn what_must_not_be_missed_is_not_limited() {
        assert!(is_own_doing(&Event::GraceOverrun { term: Term(8) }));
        let flood = Event::VotersDisagree { node_id: id("web2"), in_quorum_mode: true };
        assert!(!is_own_doing(&flood), "anybody can send other voters");
    }

    #[test]
    fn candidacies_in_vain_are_told_once_until_there_is_a_leader() {
        let mut narration = Narration::new(id("web1"), Time::ZERO);
        let change = |previous_role, role, leader| Transition {
            role,
            previous_role,
            term: Term(8),
            leader,
            previous_leader: None,
            reason: None,
        };
        let stands = change(Role::Follower, Role::Candidate, None);
        let fails = change(Role::Candidate, Role::Follower, None);
        let follows = change(Role::Follower, Role::Follower, Some(id("web0")));
        let told = [stands, fails, stands, fails, follows, stands, fails]
            .map(|transition| !narration.is_repeated(&transition));
        assert_eq!(told, [true, true, false, false, true, true, true]);
    }

    #[test]
    fn leaders_that_others_announce_are_limited_and_own_leaderships_are_not() {
        let mut narration = Narration::new(id("web1"), Time::ZERO);
        let change = |previous_role, role, leader: &str| Transition {
            role,
            previous_role,
            term: Term(8),
            leader: Some(id(leader)),
            previous_leader: None,
            reason: None,
        };
        let follows = change(Role::Follower, Role::Follower, "web0");
        let told = (0..LINES_PER_MINUTE * 2)
            .filter(|_| narration.level_of(Time::ZERO, &follows).is_some())
            .count();
        assert_eq!(told, LINES_PER_MINUTE as usize);
        let takes_over = change(Role::Follower, Role::Leader, "web1");
        let steps_down = change(Role::Leader, Role::Follower, "web0");
        for own in [takes_over, steps_down] {
            assert_eq!(narration.level_of(Time::ZERO, &own), Some(Level::Info));
        }
    }

    #[test]
    fn lines_about_members_are_limited_by_the_minute() {
        let mut narration = Narration::new(id("web1"), Time::ZERO);
        let told = (0..LINES_PER_MINUTE * 2).filter(|_| narration.has_room(Time::ZERO)).count();
        assert_eq!(told, LINES_PER_MINUTE as usize);
        assert!(narration.has_room(Time::ZERO + MINUTE));
    }
}
