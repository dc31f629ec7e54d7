//! The addresses of the hook `floating-address`: a leader has them, and no other node has.

use std::net::IpAddr;

use super::finding::Finding;
use crate::control_api::StatusReport;
use crate::core::hook::HookEvent;
use crate::daemon::interfaces::{Interface, Interfaces};
use crate::types::{Role, Term};

const TOPIC: &str = "address";

/// The name of the hook.
const HOOK: &str = "floating-address";

/// The addresses that the hook moves, and what they have to match.
#[derive(Debug)]
pub(super) struct Facts {
    addresses: Vec<Held>,
    /// None while that changes.
    standing: Option<Standing>,
}

/// One address that the hook moves.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    /// The interface that has it, or else the one that the hook names.
    interface: String,
    address: IpAddr,
    /// The length of its prefix; none if this host does not have it.
    prefix: Option<u32>,
}

/// What this node is, and the last run of its hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    role: Role,
    term: Term,
    last_event: HookEvent,
    last_start_ms: Option<u64>,
}

impl Standing {
    /// None if the addresses may be moving: the hook runs or waits, or this node hands over. While
    /// a run that is overdue waits to be tried again, nothing moves them.
    fn of(report: &StatusReport) -> Option<Self> {
        let waits = report.hook.pending && report.hook.overdue_term.is_none();
        let moves = report.hook.running || waits || report.handing_over.is_some();
        let StatusReport { role, term, .. } = *report;
        let last_event = report.hook.last_event.filter(|_| !moves)?;
        Some(Standing { role, term, last_event, last_start_ms: report.hook.last_start_ms })
    }
}

/// Looks at the addresses in a hook's command line, between two statuses. If these differ, the
/// addresses may have moved before or after the look at them.
pub(super) fn gather(hook: &str, status: impl Fn() -> Option<StatusReport>) -> Facts {
    let standing = || Standing::of(&status()?);
    let before = standing();
    let addresses = held(hook);
    Facts { addresses, standing: before.filter(|_| standing() == before) }
}

/// The addresses in a hook's command line, and where this host has them.
fn held(hook: &str) -> Vec<Held> {
    let Ok(interfaces) = Interfaces::scan() else { return Vec::new() };
    let found = addresses(hook).into_iter();
    found.map(|(interface, address)| find(&interfaces, interface, address)).collect()
}

/// Where the hook would look: at the interface that it names, or if there is none, at all the
/// others but the loopback.
fn find(interfaces: &Interfaces, interface: String, address: IpAddr) -> Held {
    let prefix = |interface: &Interface| {
        let mut addresses = interface.addresses.iter();
        Some(addresses.find(|held| held.ip == address)?.prefix)
    };
    if let Some(named) = interfaces.get(&interface) {
        return Held { interface, address, prefix: prefix(named) };
    }
    let mut others = interfaces.iter().filter(|other| !other.is_loopback());
    match others.find_map(|other| Some((other.name.clone(), prefix(other)?))) {
        Some((interface, prefix)) => Held { interface, address, prefix: Some(prefix) },
        None => Held { interface, address, prefix: None },
    }
}

/// What follows the hook's name, wherever it is in the line.
fn addresses(hook: &str) -> Vec<(String, IpAddr)> {
    let mut words = hook.split(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    let mut words = words.by_ref().filter(|word| !word.is_empty()).peekable();
    let mut found = Vec::new();
    while words.by_ref().any(|word| word.rsplit('/').next() == Some(HOOK)) {
        let Some(interface) = words.next() else { break };
        while let Some(address) = words.peek().and_then(|word| word.split('/').next()?.parse().ok())
        {
            found.push((interface.to_owned(), address));
            words.next();
        }
    }
    found
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    match facts.standing {
        _ if facts.addresses.is_empty() => Vec::new(),
        Some(standing) => facts.addresses.iter().map(|held| state(held, standing)).collect(),
        None => {
            let text = "not judged: the role of this node or its hook is changing just now";
            vec![Finding::unknown(TOPIC, text).remedy("run the doctor again when that is over")]
        }
    }
}

fn state(held: &Held, standing: Standing) -> Finding {
    let Held { interface, address, prefix } = held;
    let leads = standing.role == Role::Leader;
    let took_over = standing.last_event.takes_over();
    match (leads, prefix) {
        // By the time that it is read, this node may lead.
        (false, Some(prefix)) => {
            Finding::fail(TOPIC, format!("{interface} has {address}, and this node does not lead"))
                .remedy(format!(
                    "if it still does not, run: ip address delete {address}/{prefix} dev \
                     {interface}, as root"
                ))
        }
        (true, None) if took_over => Finding::fail(
            TOPIC,
            format!("this node leads, and {interface} does not have {address}"),
        )
        .remedy("another program may have removed it; yield, so that a hook runs again"),
        (true, None) => Finding::ok(TOPIC, "this node leads, and its hook has not taken over"),
        (true, Some(_)) => {
            Finding::ok(TOPIC, format!("{interface} has {address}, and this node leads"))
        }
        (false, None) => {
            Finding::ok(TOPIC, format!("{address} is not here, and this node does not lead"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::tests::follower;
    use super::*;
    use crate::core::hook::Reason;

    #[test]
    fn addresses_are_found_in_a_hook_and_in_a_list_of_hooks() {
        let found = |hook: &str| {
            let found = addresses(hook).into_iter();
            found.map(|(at, ip)| format!("{at} {ip}")).collect::<Vec<_>>()
        };
        let path = "/usr/share/lanelect/hooks/floating-address";
        assert_eq!(
            found(&format!("{path} eth0 10.0.0.100/24 2001:db8::1/64")),
            ["eth0 10.0.0.100", "eth0 2001:db8::1"]
        );
        let all =
            "/usr/share/lanelect/hooks/all \\\n 'floating-address eth1 10.0.0.9/24' leader-target";
        assert_eq!(found(all), ["eth1 10.0.0.9"]);
        let two = "all 'floating-address eth0 10.0.0.9/24' 'floating-address eth1 10.1.0.9/24'";
        assert_eq!(found(two), ["eth0 10.0.0.9", "eth1 10.1.0.9"]);
        assert_eq!(found("floating-address"), [""; 0]);
        assert_eq!(found("/etc/hook eth0 10.0.0.1/24"), [""; 0]);
    }

    /// The line about an address that is here or not, between these two statuses.
    fn line(before: &StatusReport, after: &StatusReport, is_held: bool) -> String {
        let [before, after] = [before, after].map(Standing::of);
        let held = Held {
            interface: "eth0".to_owned(),
            address: "10.0.0.100".parse().unwrap(),
            prefix: is_held.then_some(24),
        };
        let standing = before.filter(|_| before == after);
        judge(&Facts { addresses: vec![held], standing })[0].line(0)
    }

    /// A node whose hook has run for this event.
    fn node(role: Role, event: HookEvent) -> StatusReport {
        let mut report = StatusReport { role, ..follower() };
        report.hook.last_event = Some(event);
        report
    }

    #[test]
    fn address_on_a_node_that_does_not_lead_is_a_fault() {
        let line = |role, event, is_held| {
            let report = node(role, event);
            line(&report, &report, is_held)
        };
        let held = line(Role::Follower, HookEvent::Demoted, true);
        assert!(held.starts_with("fail     address  eth0 has 10.0.0.100, and this node does not"));
        assert!(held.ends_with(
            "if it still does not, run: ip address delete 10.0.0.100/24 dev eth0, as root"
        ));
        let missing = line(Role::Leader, HookEvent::Elected, false);
        assert!(missing.starts_with("fail     address  this node leads, and eth0 does not have"));
        assert!(line(Role::Leader, HookEvent::Elected, true).starts_with("ok "));
        assert!(line(Role::Follower, HookEvent::Started, false).starts_with("ok "));
    }

    /// To delete the address would break the leader's service.
    #[test]
    fn address_that_may_be_moving_is_not_judged() {
        let follower = node(Role::Follower, HookEvent::Demoted);
        let is_unknown = |before: &StatusReport, after: &StatusReport| {
            line(before, after, true).starts_with("unknown  address  not judged: ")
        };
        assert!(is_unknown(&follower, &node(Role::Leader, HookEvent::Elected)));
        let mut again = node(Role::Follower, HookEvent::Demoted);
        again.hook.last_start_ms = Some(1);
        assert!(is_unknown(&follower, &again), "it led in between");
        let mut hands_over = node(Role::Follower, HookEvent::Elected);
        hands_over.handing_over = Some(Reason::Yield);
        assert!(is_unknown(&hands_over, &hands_over));
        let mut waits = node(Role::Follower, HookEvent::Elected);
        waits.hook.pending = true;
        assert!(is_unknown(&waits, &waits));
        let mut runs = node(Role::Follower, HookEvent::Elected);
        runs.hook.running = true;
        assert!(is_unknown(&runs, &runs));
    }

    #[test]
    fn address_that_an_overdue_hook_has_left_is_a_fault_although_the_hook_runs_again() {
        let mut fails = node(Role::Follower, HookEvent::Demoted);
        fails.hook.pending = true;
        fails.hook.overdue_term = Some(Term(7));
        assert!(line(&fails, &fails, true).starts_with("fail     address  eth0 has 10.0.0.100"));
    }

    #[test]
    fn statuses_are_asked_for_before_and_after_the_look() {
        let asked = Cell::new(0);
        let facts = gather("floating-address lo 127.0.0.1/8", || {
            asked.set(asked.get() + 1);
            let role = if asked.get() == 1 { Role::Follower } else { Role::Leader };
            Some(node(role, HookEvent::Demoted))
        });
        assert_eq!((asked.get(), facts.standing), (2, None));
        assert_eq!(facts.addresses[0].prefix, Some(8));
    }
}
