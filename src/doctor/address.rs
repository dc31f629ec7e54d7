//! The addresses of the hook `floating-address`: a leader has them, and no other node has.

use std::net::IpAddr;

use super::finding::Finding;
use crate::control_api::StatusReport;
use crate::core::hook::HookEvent;
use crate::daemon::interfaces::Interfaces;
use crate::types::Role;

const TOPIC: &str = "address";

/// The name of the hook.
const HOOK: &str = "floating-address";

/// One address that the hook moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) interface: String,
    pub(super) address: IpAddr,
    pub(super) is_held: bool,
}

/// The addresses in a hook's command line, and whether this host has them.
pub(super) fn gather(hook: &str) -> Vec<Facts> {
    let Ok(interfaces) = Interfaces::scan() else { return Vec::new() };
    let is_held = |interface: &str, address| {
        let interface = interfaces.get(interface);
        interface.is_some_and(|at| at.addresses.iter().any(|held| held.ip == address))
    };
    addresses(hook)
        .into_iter()
        .map(|(interface, address)| {
            let is_held = is_held(&interface, address);
            Facts { interface, address, is_held }
        })
        .collect()
}

/// What follows the hook's name, wherever it is in the line.
fn addresses(hook: &str) -> Vec<(String, IpAddr)> {
    let mut words = hook.split(|c: char| c.is_whitespace() || "'\"\\".contains(c));
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let mut found = Vec::new();
    while words.by_ref().any(|word| word.rsplit('/').next() == Some(HOOK)) {
        let Some(interface) = words.next() else { break };
        let parsed = words.by_ref().map_while(|word| word.split('/').next()?.parse().ok());
        found.extend(parsed.map(|address| (interface.to_owned(), address)));
    }
    found
}

pub(super) fn judge(facts: &[Facts], report: &StatusReport) -> Vec<Finding> {
    // A run that has not ended may be moving them.
    if report.hook.running || report.hook.last_event.is_none() {
        return Vec::new();
    }
    facts.iter().map(|facts| state(facts, report)).collect()
}

fn state(facts: &Facts, report: &StatusReport) -> Finding {
    let Facts { interface, address, is_held } = facts;
    let leads = report.role == Role::Leader;
    let took_over =
        matches!(report.hook.last_event, Some(HookEvent::Elected | HookEvent::Reaffirmed));
    match (leads, is_held) {
        (false, true) => {
            Finding::fail(TOPIC, format!("{interface} has {address}, and this node does not lead"))
                .remedy(format!("run: ip address delete {address} dev {interface}, as root"))
        }
        (true, false) if took_over => Finding::fail(
            TOPIC,
            format!("this node leads, and {interface} does not have {address}"),
        )
        .remedy("another program may have removed it; yield, so that a hook runs again"),
        (true, _) => Finding::ok(TOPIC, format!("{interface} has {address}, and this node leads")),
        (false, false) => {
            Finding::ok(TOPIC, format!("{address} is not here, and this node does not lead"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;

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
        assert_eq!(found("floating-address"), [""; 0]);
        assert_eq!(found("/etc/hook eth0 10.0.0.1/24"), [""; 0]);
    }

    #[test]
    fn address_on_a_node_that_does_not_lead_is_a_fault() {
        let facts = |is_held| Facts {
            interface: "eth0".to_owned(),
            address: "10.0.0.100".parse().unwrap(),
            is_held,
        };
        let line = |role, event, is_held| {
            let mut report = StatusReport { role, ..follower() };
            report.hook.last_event = Some(event);
            judge(&[facts(is_held)], &report)[0].line(0)
        };
        let held = line(Role::Follower, HookEvent::Demoted, true);
        assert!(held.starts_with("fail     address  eth0 has 10.0.0.100, and this node does not"));
        let missing = line(Role::Leader, HookEvent::Elected, false);
        assert!(missing.starts_with("fail     address  this node leads, and eth0 does not have"));
        assert!(line(Role::Leader, HookEvent::Elected, true).starts_with("ok "));
        assert!(line(Role::Follower, HookEvent::Started, false).starts_with("ok "));
        let mut report = follower();
        report.hook.running = true;
        assert!(judge(&[facts(true)], &report).is_empty());
    }
}
