//! A transition as a line of text.

use std::time::{Duration, UNIX_EPOCH};

use crate::control_api::Transition;
use crate::printable::time_of_day;
use crate::types::Role;

/// The transition as one line with its line feed. The time is the time of day in UTC:
///
/// ```text
/// 09:41:07.212Z  leader     term 8  web1 took over from web0 (election)
/// ```
pub fn render_transition(transition: &Transition) -> String {
    let reason = transition.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!(
        "{}  {:<9}  term {}  {}{reason}\n",
        time_of_day(transition.time_ms),
        transition.role,
        transition.term,
        story(transition)
    )
}

fn story(transition: &Transition) -> String {
    let led = transition.previous_role == Role::Leader;
    match (transition.previous_leader, transition.leader) {
        (Some(before), Some(now)) if before == now && transition.role == Role::Leader && led => {
            format!("{now} continues to lead")
        }
        (Some(before), Some(now)) if before == now => format!("{now} leads"),
        (Some(before), Some(now)) => format!("{now} took over from {before}"),
        (None, Some(now)) => format!("{now} leads"),
        (Some(before), None) if led => format!("{before} no longer leads"),
        (Some(before), None) => format!("lost the leader {before}"),
        (None, None) => "no leader known".to_owned(),
    }
}

/// The last time that can be shown.
const END_OF_9999_MS: u64 = 253_402_300_799_000;

/// The date and the time of day in UTC, as `2026-03-14 09:41:07Z`.
pub(super) fn date_and_time(since_1970_ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(since_1970_ms.min(END_OF_9999_MS));
    humantime::format_rfc3339_seconds(time).to_string().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::hook::Reason;
    use crate::types::{NodeId, Term};

    /// 2026-03-14T09:41:07.212Z.
    const TIME_MS: u64 = 1_773_481_267_212;

    fn line(before: (Role, &str), now: (Role, &str), reason: Option<Reason>) -> String {
        let id = |text: &str| text.parse::<NodeId>().ok();
        render_transition(&Transition {
            time_ms: TIME_MS,
            role: now.0,
            previous_role: before.0,
            term: Term(8),
            leader: id(now.1),
            previous_leader: id(before.1),
            reason,
        })
    }

    #[test]
    fn transition_is_described_by_old_and_new_leader() {
        use Role::{Candidate, Follower, Leader, Starting};
        let election = Some(Reason::Election);
        assert_eq!(
            line((Candidate, "web0"), (Leader, "web1"), election),
            "09:41:07.212Z  leader     term 8  web1 took over from web0 (election)\n"
        );
        assert_eq!(
            line((Candidate, ""), (Leader, "web1"), election),
            "09:41:07.212Z  leader     term 8  web1 leads (election)\n"
        );
        assert_eq!(
            line((Leader, "web1"), (Leader, "web1"), Some(Reason::Conflict)),
            "09:41:07.212Z  leader     term 8  web1 continues to lead (conflict)\n"
        );
        assert_eq!(
            line((Leader, "web1"), (Follower, ""), Some(Reason::Yield)),
            "09:41:07.212Z  follower   term 8  web1 no longer leads (yield)\n"
        );
        assert_eq!(
            line((Leader, "web1"), (Follower, "web0"), Some(Reason::BetterLeader)),
            "09:41:07.212Z  follower   term 8  web0 took over from web1 (better-leader)\n"
        );
        assert_eq!(
            line((Follower, "web0"), (Candidate, ""), None),
            "09:41:07.212Z  candidate  term 8  lost the leader web0\n"
        );
        assert_eq!(
            line((Starting, ""), (Follower, ""), None),
            "09:41:07.212Z  follower   term 8  no leader known\n"
        );
        assert_eq!(
            line((Starting, "web0"), (Follower, "web0"), None),
            "09:41:07.212Z  follower   term 8  web0 leads\n"
        );
    }
}
