//! The status as text: the leader, since when, how fresh each member is, and what is wrong.

mod quorum;
mod runs;

use crate::client::Target;
use crate::control_api::{
    CheckReport, ConfigReport, InterfaceReport, MemberReport, PeerReport, StatusReport,
    milliseconds, why_ineligible,
};
use crate::core::params::Mode;
use crate::core::status::{HealthState, Ineligible, MemberState};
use crate::types::{KeyMode, NodeId, Role};

/// The status as text that ends with a line feed. Besides the members, only problems get a line,
/// and the mode, hook, check and key. `*` marks this node. The commands in it reach `target`.
///
/// ```text
/// web1: follower of web0 (10.0.0.10) for 1 min 23 s, term 7, group default at 239.255.76.69:7669
///
///   NODE  ROLE      ADDRESS    PRIORITY  STATE    HEARD
///   web0  leader    10.0.0.10       100  alive    0.2 s ago
/// * web1  follower  10.0.0.11       100  alive    -
///   web2  follower  10.0.0.12        50  suspect  4.1 s ago
///
/// hook  started, exit 0, 3 ms
/// mode  available: each side of a network partition has a leader
/// ```
pub fn render(report: &StatusReport, target: &Target) -> String {
    let notes = notes(report, &target.options());
    format!("{}\n\n{}\n{notes}", headline(report), members(report))
}

fn headline(report: &StatusReport) -> String {
    format!(
        "{}: {} for {}, term {}, group {}{}",
        report.node_id,
        standing(report),
        span(report.since_ms),
        report.term,
        report.group,
        match report.multicast {
            Some(address) => format!(" at {address}"),
            None if report.peers.is_empty() => String::new(),
            None => " by unicast".to_owned(),
        }
    )
}

fn standing(report: &StatusReport) -> String {
    let role = report.role;
    let Some(leader) = report.leader.as_ref().filter(|_| role != Role::Leader) else {
        return match role {
            Role::Leader => role.to_string(),
            _ if report.handing_over.is_some() => format!("{role}, handing over,"),
            _ => match report.previous_leader {
                Some(last) => format!("{role}, no leader known (last leader {last}),"),
                None => format!("{role}, no leader known,"),
            },
        };
    };
    match leader.address {
        Some(address) => format!("{role} of {} ({address})", leader.node_id),
        None => format!("{role} of {}", leader.node_id),
    }
}

/// Most nodes that one line names.
const LISTED_MAX: usize = 5;

/// A row of the table, before its columns are aligned.
type Row = Vec<String>;

/// The column whose cells end at the same place.
const NUMBERS: usize = 3;

/// The last columns are there only if the way to the members is measured.
fn members(report: &StatusReport) -> String {
    let titles = ["  NODE", "ROLE", "ADDRESS", "PRIORITY", "STATE", "HEARD", "ROUND TRIP", "LOSS"];
    let mut rows: Vec<Row> = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(report.members.iter().map(|member| row(report, member)));
    if report.round_trip_max_us.is_none() {
        rows.iter_mut().for_each(|row| row.truncate(titles.len() - 2));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..rows[0].len()).filter_map(width).collect();
    rows.iter().map(|row| aligned(row, &widths)).collect()
}

fn row(report: &StatusReport, member: &MemberReport) -> Row {
    let is_self = member.node_id == report.node_id;
    let mark = if is_self { '*' } else { ' ' };
    vec![
        format!("{mark} {}", member.node_id),
        role(member),
        member.address.map_or_else(|| "-".to_owned(), |address| address.to_string()),
        member.priority.0.to_string(),
        state(member).to_owned(),
        if is_self { "-".to_owned() } else { ago(member.last_heard_ms) },
        member.round_trip().map_or_else(|| "-".to_owned(), milliseconds),
        member.loss_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent} %")),
    ]
}

fn aligned(row: &Row, widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
        NUMBERS => format!("{cell:>width$}"),
        _ => format!("{cell:width$}"),
    });
    let line = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

fn role(member: &MemberReport) -> String {
    let is_lost = matches!(member.state, MemberState::Gone | MemberState::Left);
    match member.role {
        Role::Leader if is_lost => "was leader".to_owned(),
        Role::Follower if !member.candidate => "observer".to_owned(),
        role => role.to_string(),
    }
}

fn state(member: &MemberReport) -> &'static str {
    match member.state {
        MemberState::Alive if member.candidate && !member.eligible => "alive, not eligible",
        MemberState::Alive => "alive",
        MemberState::Suspect => "suspect",
        MemberState::Left => "left",
        MemberState::Gone => "gone",
    }
}

/// The key that signs, and what a step on the way to keys, or away from them, leaves open.
fn keys(report: &StatusReport) -> Option<String> {
    let key = report.key_fingerprint.as_deref().unwrap_or("of an unknown fingerprint");
    Some(match report.key_mode? {
        KeyMode::Accept => {
            format!("{key} accepted, not sent and not required: the group is not protected")
        }
        KeyMode::Prefer => format!("{key} sent, not required: the group is not protected"),
        KeyMode::Require => format!("{key} signs"),
    })
}

/// Lines, each with a label and a text.
type Notes = Vec<(&'static str, String)>;

fn notes(report: &StatusReport, options: &str) -> String {
    let mut notes = Notes::new();
    notes.extend(exclusions(report, options).map(|text| ("not eligible", text)));
    if let Some(reason) = report.handing_over {
        notes.push(("handing over", format!("this node gives up its leadership ({reason})")));
    }
    notes.extend(report.interfaces.iter().filter_map(interface).map(|text| ("interface", text)));
    notes.extend(report.peers.iter().filter_map(peer).map(|text| ("peer", text)));
    notes.extend(report.too_far_here().map(|far| ("too far", far.to_string())));
    if report.counters.send_errors > 0 {
        let text = format!("{} datagrams could not be sent", report.counters.send_errors);
        notes.push(("send errors", text));
    }
    notes.extend(tie_break(report).map(|text| ("tie_break", text)));
    notes.extend(report.state_failure.iter().map(|why| ("not saved", why.clone())));
    notes.extend(keys(report).map(|text| ("key", text)));
    config(&mut notes, &report.config);
    notes.extend(rejected(report).map(|text| ("rejected", text)));
    notes.extend(runs::hook(&report.hook).map(|text| ("hook", text)));
    notes.extend(runs::elected_failures(&report.hook).map(|text| ("failed", text)));
    notes.extend(runs::fence(report).map(|text| ("fence", text)));
    notes.extend(report.check.as_ref().map(|report| ("check", check(report))));
    notes.extend(leader_check(report).map(|report| ("check_leader", check(report))));
    if let Some(quorum) = &report.quorum {
        quorum::note(&mut notes, report, quorum);
    }
    notes.push(("mode", mode(report.mode).to_owned()));
    let width = notes.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    notes.iter().map(|(label, text)| format!("{label:width$}  {text}\n")).collect()
}

/// Why this node is not eligible, and the rest of the hold-off time where that is the reason.
fn exclusions(report: &StatusReport, options: &str) -> impl Iterator<Item = String> {
    let reasons = &report.ineligible_reasons;
    let held_off = reasons.iter().rposition(|reason| {
        use Ineligible::{CheckFailed, HookFailed, ServiceFailed};
        matches!(reason, CheckFailed | HookFailed | ServiceFailed)
    });
    reasons.iter().enumerate().map(move |(at, reason)| {
        let left = report.holdoff_ms.filter(|_| held_off == Some(at));
        let left = left.map_or(String::new(), |ms| format!(", {} left", short(ms)));
        why_ineligible(*reason, options) + &left
    })
}

fn interface(interface: &InterfaceReport) -> Option<String> {
    let name = &interface.name;
    match (&interface.problem, interface.up) {
        (Some(problem), false) => Some(format!("{name} is down: {problem}")),
        (None, false) => Some(format!("{name} is down")),
        (Some(problem), true) => Some(format!("{name}: {problem}")),
        (None, true) => None,
    }
}

fn peer(peer: &PeerReport) -> Option<String> {
    let problem = peer.problem.as_ref()?;
    Some(format!("{}: {problem}", peer.peer))
}

/// The problems of a file that was refused have a line each, below one that says so.
fn config(notes: &mut Notes, config: &ConfigReport) {
    if let Some(failure) = &config.reload_failure {
        let text = "the config file was refused, and the previous configuration stays in force:";
        notes.push(("not reloaded", text.to_owned()));
        notes.extend(failure.lines().map(|line| ("", line.to_owned())));
    }
    if !config.restart_needed.is_empty() {
        let keys = config.restart_needed.join(", ");
        notes.push(("not applied", format!("{keys}: restart the daemon to apply the config file")));
    }
}

/// The members that order nodes of equal priority by another rule.
fn tie_break(report: &StatusReport) -> Option<String> {
    let own = report.members.iter().find(|member| member.node_id == report.node_id)?.tie_break;
    let others = report.members.iter().filter(|it| it.state.is_visible() && it.tie_break != own);
    let others: Vec<_> = others.map(|member| &member.node_id).collect();
    (!others.is_empty()).then(|| format!("not \"{own}\", as here, on {}", listed(&others)))
}

/// With several interfaces each datagram arrives several times, and repeated ones are normal. So
/// are datagrams of other groups that share address and port: only the JSON status counts them.
fn rejected(report: &StatusReport) -> Option<String> {
    let rejected = &report.counters.rejected;
    // What arrives by several ways counts once.
    let several = report.interfaces.len() > 1 || !report.peers.is_empty();
    let replayed = if several { 0 } else { rejected.replayed };
    let counts = [
        (rejected.malformed, "malformed"),
        (rejected.auth, "with a wrong or missing key"),
        (replayed, "old or repeated"),
        (rejected.version, "of another protocol version"),
        (rejected.table_full, "from nodes for which the member table has no room"),
        (rejected.absurd_term, "with an absurdly high term"),
        (rejected.hops, "from outside the LAN"),
        (rejected.source, "from addresses that are invalid or not in peers"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The leader's check, if it says anything: on a leader, and after it failed.
fn leader_check(report: &StatusReport) -> Option<&CheckReport> {
    let check = report.check_leader.as_ref()?;
    (report.role == Role::Leader || check.state == HealthState::Failing).then_some(check)
}

fn check(check: &CheckReport) -> String {
    let CheckReport { failures, fall, successes, rise, .. } = check;
    let state = match check.state {
        HealthState::Pending if check.last_ms.is_none() => return "no result yet".to_owned(),
        HealthState::Pending => "not passed yet".to_owned(),
        HealthState::Healthy if *failures > 0 => format!("failed {failures} of {fall} times"),
        HealthState::Healthy => "passes".to_owned(),
        HealthState::Failing if *successes > 0 => {
            format!("fails, passed {successes} of {rise} times")
        }
        HealthState::Failing => "fails".to_owned(),
    };
    match (check.last_ms, check.running) {
        (Some(_), _) => format!("{state}, {}", ending(check.last_exit, check.last_ms)),
        (None, true) => format!("{state}, running now"),
        (None, false) => state,
    }
}

/// The exit status and the duration of a run.
fn ending(exit: Option<i32>, ms: Option<u64>) -> String {
    let exit = match exit {
        Some(exit @ 129..) => format!("exit {exit} (signal {})", exit - 128),
        Some(exit) => format!("exit {exit}"),
        None => "no exit status".to_owned(),
    };
    let took = ms.map(|ms| format!(", {}", short(ms))).unwrap_or_default();
    exit + &took
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Available => "available: each side of a network partition has a leader",
        Mode::Quorum => {
            "quorum: never two leaders; a side without a majority of the voters has none"
        }
    }
}

/// The names of the first nodes, and the number of the others.
pub(super) fn listed(nodes: &[&NodeId]) -> String {
    let shown: Vec<_> = nodes.iter().take(LISTED_MAX).map(|id| id.as_str()).collect();
    let more = match nodes.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.join(", ") + &more
}

/// A duration in its two largest units.
fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// A time ago, with tenths of a second below ten seconds.
fn ago(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s ago", ms / 1000, ms % 1000 / 100),
        _ => format!("{} ago", span(ms)),
    }
}

/// A duration, precise if it is short.
fn short(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => span(ms),
    }
}

#[cfg(test)]
pub(in crate::commands) mod tests {
    use super::*;
    use crate::control_api::{Counters, HookReport, LeaderReport, Rejected};
    use crate::core::hook::{HookEvent, Reason};
    use crate::types::{Priority, Term, TieBreakRule};

    /// The status of the daemon of the default group.
    pub(in crate::commands) fn render(report: &StatusReport) -> String {
        super::render(report, &Target::of_group(&report.group))
    }

    fn member(id: &str, address: Option<&str>, role: Role) -> MemberReport {
        MemberReport {
            node_id: id.parse().unwrap(),
            address: address.map(|text| text.parse().unwrap()),
            role,
            priority: Priority(100),
            tie_break: TieBreakRule::LowestId,
            candidate: true,
            eligible: true,
            state: MemberState::Alive,
            last_heard_ms: 212,
            answered_ms: None,
            round_trip_us: None,
            loss_percent: None,
        }
    }

    /// web1 follows web0; web2 is suspected.
    pub(crate) fn follower() -> StatusReport {
        StatusReport {
            version: "0.1.0".to_owned(),
            group: "default".parse().unwrap(),
            node_id: "web1".parse().unwrap(),
            role: Role::Follower,
            ready: false,
            eligible: true,
            ineligible_reason: None,
            ineligible_reasons: Vec::new(),
            handing_over: None,
            holdoff_ms: None,
            term: Term(7),
            leader: Some(LeaderReport {
                node_id: "web0".parse().unwrap(),
                address: Some("10.0.0.10".parse().unwrap()),
                last_heard_ms: 212,
            }),
            previous_leader: None,
            mode: Mode::Available,
            quorum: None,
            since_ms: 83_211,
            uptime_ms: 90_022,
            members: vec![
                member("web0", Some("10.0.0.10"), Role::Leader),
                MemberReport {
                    last_heard_ms: 0,
                    ..member("web1", Some("10.0.0.11"), Role::Follower)
                },
                MemberReport {
                    priority: Priority(50),
                    state: MemberState::Suspect,
                    last_heard_ms: 4_120,
                    ..member("web2", Some("10.0.0.12"), Role::Follower)
                },
            ],
            multicast: "239.255.76.69:7669".parse().ok(),
            peers: Vec::new(),
            round_trip_max_us: None,
            interfaces: vec![InterfaceReport {
                name: "eth0".to_owned(),
                address: Some("10.0.0.11".parse().unwrap()),
                up: true,
                problem: None,
            }],
            hook: HookReport {
                running: false,
                last_event: Some(HookEvent::Started),
                last_reason: Some(Reason::Startup),
                last_exit: Some(0),
                last_ms: Some(3),
                ..HookReport::default()
            },
            fence: None,
            check: None,
            check_leader: None,
            key_mode: None,
            key_fingerprint: None,
            state_failure: None,
            duplicate: None,
            rejected_from: Vec::new(),
            config: ConfigReport::default(),
            counters: Counters::default(),
        }
    }

    /// A node that knows only itself.
    pub(in crate::commands) fn alone(role: Role) -> StatusReport {
        StatusReport {
            role,
            leader: None,
            members: vec![member("web1", None, role)],
            hook: HookReport::default(),
            ..follower()
        }
    }

    #[test]
    fn state_that_is_not_saved_gets_a_line() {
        let why = "cannot write the state file /x: no space left".to_owned();
        let report = StatusReport { state_failure: Some(why.clone()), ..follower() };
        assert!(render(&report).contains(&format!("not saved  {why}\n")));
        assert!(!render(&follower()).contains("not saved"));
    }

    #[test]
    fn config_that_is_not_in_force_gets_lines() {
        let config = ConfigReport {
            reload_failure: Some("/c:1: a: unknown key\n/c:7: b: is empty".to_owned()),
            restart_needed: vec!["group".to_owned(), "voters".to_owned()],
            ..ConfigReport::default()
        };
        let text = render(&StatusReport { config, ..follower() });
        let expected = "\
not reloaded  the config file was refused, and the previous configuration stays in force:
              /c:1: a: unknown key
              /c:7: b: is empty
not applied   group, voters: restart the daemon to apply the config file
hook          started";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_follower() {
        assert_eq!(
            render(&follower()),
            "\
web1: follower of web0 (10.0.0.10) for 1 min 23 s, term 7, group default at 239.255.76.69:7669

  NODE  ROLE      ADDRESS    PRIORITY  STATE    HEARD
  web0  leader    10.0.0.10       100  alive    0.2 s ago
* web1  follower  10.0.0.11       100  alive    -
  web2  follower  10.0.0.12        50  suspect  4.1 s ago

hook  started, exit 0, 3 ms
mode  available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn a_leader() {
        let report = StatusReport {
            leader: Some(LeaderReport {
                node_id: "web1".parse().unwrap(),
                address: None,
                last_heard_ms: 0,
            }),
            since_ms: 7_503_000,
            hook: HookReport {
                running: true,
                last_event: Some(HookEvent::Elected),
                ..HookReport::default()
            },
            ..alone(Role::Leader)
        };
        assert_eq!(
            render(&report),
            "\
web1: leader for 2 h 5 min, term 7, group default at 239.255.76.69:7669

  NODE  ROLE    ADDRESS  PRIORITY  STATE  HEARD
* web1  leader  -             100  alive  -

hook  elected, running
mode  available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn node_that_hands_over_is_not_shown_as_without_a_leader() {
        let mut report = StatusReport { leader: None, ..follower() };
        report.handing_over = Some(Reason::Yield);
        assert!(
            render(&report).starts_with("web1: follower, handing over, for 1 min 23 s, term 7")
        );
    }

    #[test]
    fn leader_that_is_lost_is_shown_as_the_last_one() {
        let mut report = StatusReport { leader: None, ..follower() };
        report.previous_leader = "web0".parse().ok();
        report.members[0].state = MemberState::Gone;
        let text = render(&report);
        let headline = "web1: follower, no leader known (last leader web0), for 1 min 23 s";
        assert!(text.starts_with(headline), "{text}");
        assert!(text.contains("  web0  was leader  10.0.0.10       100  gone"), "{text}");
    }

    #[test]
    fn rest_of_the_holdoff_is_shown() {
        let report = StatusReport {
            ineligible_reasons: vec![Ineligible::Maintenance, Ineligible::HookFailed],
            holdoff_ms: Some(61_200),
            ..follower()
        };
        let text = render(&report);
        assert!(
            text.contains("not eligible  maintenance is on, until `lanelect maintenance off`\n")
        );
        assert!(text.contains("end of the hold-off time, 1 min 1 s left\n"), "{text}");
    }

    #[test]
    fn key_is_shown_by_its_fingerprint() {
        let key_fingerprint = Some("5f3a91c2".to_owned());
        for (mode, line) in [
            (KeyMode::Require, "key   5f3a91c2 signs\n"),
            (KeyMode::Prefer, "key   5f3a91c2 sent, not required: the group is not protected\n"),
        ] {
            let key_mode = Some(mode);
            let text = render(&StatusReport {
                key_mode,
                key_fingerprint: key_fingerprint.clone(),
                ..follower()
            });
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn no_leader_known() {
        let report = StatusReport { since_ms: 400, ..alone(Role::Candidate) };
        assert_eq!(
            render(&report),
            "\
web1: candidate, no leader known, for 0 s, term 7, group default at 239.255.76.69:7669

  NODE  ROLE       ADDRESS  PRIORITY  STATE  HEARD
* web1  candidate  -             100  alive  -

mode  available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn starting_without_any_member() {
        let report = StatusReport { members: Vec::new(), ..alone(Role::Starting) };
        assert_eq!(
            render(&report),
            "\
web1: starting, no leader known, for 1 min 23 s, term 7, group default at 239.255.76.69:7669

  NODE  ROLE  ADDRESS  PRIORITY  STATE  HEARD

mode  available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn commands_reach_the_daemon_that_was_asked() {
        let report =
            StatusReport { ineligible_reasons: vec![Ineligible::Maintenance], ..follower() };
        let text = super::render(&report, &Target::at("/run/lanelect/web.sock"));
        assert!(text.contains("until `lanelect maintenance off --group web`\n"), "{text}");
    }

    #[test]
    fn maintenance_and_an_observer() {
        let mut report = follower();
        report.eligible = false;
        report.ineligible_reasons = vec![Ineligible::Maintenance];
        report.members[1].eligible = false;
        report.members[2].candidate = false;
        report.members[2].eligible = false;
        report.members[2].state = MemberState::Left;
        report.members[2].last_heard_ms = 183_000;
        assert_eq!(
            render(&report),
            "\
web1: follower of web0 (10.0.0.10) for 1 min 23 s, term 7, group default at 239.255.76.69:7669

  NODE  ROLE      ADDRESS    PRIORITY  STATE                HEARD
  web0  leader    10.0.0.10       100  alive                0.2 s ago
* web1  follower  10.0.0.11       100  alive, not eligible  -
  web2  observer  10.0.0.12        50  left                 3 min 3 s ago

not eligible  maintenance is on, until `lanelect maintenance off`
hook          started, exit 0, 3 ms
mode          available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn every_problem_gets_a_line() {
        let mut report = alone(Role::Leader);
        report.ineligible_reasons = vec![Ineligible::InterfaceDown];
        report.handing_over = Some(Reason::InterfaceDown);
        report.interfaces[0].up = false;
        report.interfaces[0].problem = Some("no carrier".to_owned());
        report.counters.send_errors = 41;
        report.counters.rejected =
            Rejected { malformed: 3, auth: 12, hops: 5, ..Rejected::default() };
        report.hook = HookReport {
            running: false,
            last_event: Some(HookEvent::Demoted),
            last_reason: Some(Reason::InterfaceDown),
            last_exit: Some(137),
            last_ms: Some(35_021),
            overdue_term: Some(Term(7)),
            ..HookReport::default()
        };
        assert_eq!(
            render(&report),
            "\
web1: leader for 1 min 23 s, term 7, group default at 239.255.76.69:7669

  NODE  ROLE    ADDRESS  PRIORITY  STATE  HEARD
* web1  leader  -             100  alive  -

not eligible  no interface can reach the group, or a peer's name is not known yet
handing over  this node gives up its leadership (interface-down)
interface     eth0 is down: no carrier
send errors   41 datagrams could not be sent
rejected      3 malformed, 12 with a wrong or missing key, 5 from outside the LAN
hook          demoted, exit 137 (signal 9), 35 s, HAS NOT RELEASED term 7
mode          available: each side of a network partition has a leader
"
        );
    }

    #[test]
    fn check_shows_how_many_runs_are_left_until_its_state_changes() {
        let healthy = CheckReport {
            state: HealthState::Healthy,
            running: false,
            failures: 0,
            fall: 3,
            successes: 7,
            rise: 2,
            last_exit: Some(0),
            last_ms: Some(12),
        };
        let failed = CheckReport { failures: 1, successes: 0, last_exit: Some(22), ..healthy };
        let failing = CheckReport { state: HealthState::Failing, failures: 4, ..failed };
        let rising = CheckReport { failures: 0, successes: 1, last_exit: Some(0), ..failing };
        let hanging = CheckReport { running: true, last_exit: None, last_ms: None, ..failing };
        let pending = CheckReport { state: HealthState::Pending, ..hanging };
        for (check, line) in [
            (healthy, "check  passes, exit 0, 12 ms\n"),
            (failed, "check  failed 1 of 3 times, exit 22, 12 ms\n"),
            (failing, "check  fails, exit 22, 12 ms\n"),
            (rising, "check  fails, passed 1 of 2 times, exit 0, 12 ms\n"),
            (hanging, "check  fails, running now\n"),
            (pending, "check  no result yet\n"),
        ] {
            let mut report = follower();
            report.check = Some(check);
            let text = render(&report);
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn leaders_check_has_a_line_on_a_leader_and_after_it_failed() {
        let check = CheckReport {
            state: HealthState::Pending,
            running: false,
            failures: 2,
            fall: 3,
            successes: 0,
            rise: 2,
            last_exit: Some(7),
            last_ms: Some(12),
        };
        let failing = CheckReport { state: HealthState::Failing, failures: 3, ..check };
        for (role, check, line) in [
            (Role::Leader, check, Some("check_leader  not passed yet, exit 7, 12 ms\n")),
            (Role::Follower, check, None),
            (Role::Follower, failing, Some("check_leader  fails, exit 7, 12 ms\n")),
        ] {
            let mut report = follower();
            (report.role, report.check_leader) = (role, Some(check));
            let text = render(&report);
            assert!(text.contains(line.unwrap_or("hook")), "{text}");
            assert_eq!(text.contains("check_leader"), line.is_some(), "{text}");
        }
    }

    #[test]
    fn repeated_datagrams_get_a_line_only_with_a_single_interface() {
        let mut report = follower();
        report.counters.rejected.replayed = 4;
        assert!(render(&report).contains("rejected  4 old or repeated\n"));
        report
            .interfaces
            .push(InterfaceReport { name: "eth1".to_owned(), ..report.interfaces[0].clone() });
        assert!(!render(&report).contains("rejected"));
        report.counters.rejected.malformed = 1;
        assert!(render(&report).contains("rejected  1 malformed\n"));
    }

    #[test]
    fn peer_that_is_not_sent_to_has_a_line() {
        let peer = PeerReport {
            peer: "db3".to_owned(),
            addresses: Vec::new(),
            is_self: false,
            source: None,
            up: false,
            problem: Some("its name has no address".to_owned()),
        };
        let fine = PeerReport { peer: "db2".to_owned(), up: true, problem: None, ..peer.clone() };
        let mut report = StatusReport { peers: vec![fine, peer], multicast: None, ..follower() };
        report.counters.rejected.replayed = 9;
        let text = render(&report);
        assert!(text.contains("group default by unicast\n"), "{text}");
        assert!(text.contains("\npeer  db3: its name has no address\n"), "{text}");
        assert!(!text.contains("db2") && !text.contains("rejected"), "{text}");
    }

    #[test]
    fn datagrams_of_other_groups_are_no_problem() {
        let mut report = follower();
        report.counters.rejected.foreign_group = 1_000;
        assert_eq!(render(&report), render(&follower()));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_in_characters() {
        let mut report = follower();
        report.members = (0..200).map(|n| member(&format!("n{n}"), None, Role::Follower)).collect();
        report.members.push(member(&"é".repeat(32), Some("2001:db8::1"), Role::Leader));
        let text = render(&report);
        let table: Vec<&str> = text.lines().skip(2).take(202).collect();
        assert_eq!(table.len(), 202);
        for line in table {
            let heard = line.chars().skip(2 + 32 + 2 + 8 + 2 + 11 + 2 + 8 + 2 + 5 + 2);
            let heard: String = heard.collect();
            assert!(heard == "HEARD" || heard == "0.2 s ago", "{line}");
        }
    }

    #[test]
    fn spans_show_their_two_largest_units() {
        assert_eq!(span(59_999), "59 s");
        assert_eq!(span(60_000), "1 min 0 s");
        assert_eq!(span(3_599_999), "59 min 59 s");
        assert_eq!(span(3_600_000), "1 h 0 min");
        assert_eq!(span(90_061_000), "1 d 1 h");
        assert_eq!(ago(9_999), "9.9 s ago");
        assert_eq!(ago(10_000), "10 s ago");
        assert_eq!(short(999), "999 ms");
        assert_eq!(short(1_250), "1.2 s");
    }
}
