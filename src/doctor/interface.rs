//! The interfaces to the group, and the route if none is named.

use std::net::IpAddr;

use super::finding::Finding;
use crate::config::Config;
use crate::control_api::{InterfaceReport, StatusReport};
use crate::daemon::interfaces::Interfaces;

const TOPIC: &str = "interface";

/// By what the daemon says of its interfaces.
pub(super) fn judge(report: &StatusReport) -> Vec<Finding> {
    let any_up = report.interfaces.iter().any(|interface| interface.up);
    let mut findings: Vec<_> =
        report.interfaces.iter().map(|interface| state(interface, any_up)).collect();
    let errors = report.counters.send_errors;
    let fails_now = report.interfaces.iter().any(|interface| interface.problem.is_some());
    if errors > 0 && !fails_now {
        let text = format!("the kernel has refused {errors} datagrams since the daemon started");
        findings.push(Finding::ok(TOPIC, format!("{text}, and accepts them now")));
    }
    findings
}

fn state(interface: &InterfaceReport, any_up: bool) -> Finding {
    let name = &interface.name;
    match (&interface.problem, interface.up) {
        (None, true) => {
            let from = interface.address.map_or(String::new(), |ip| format!(", sends from {ip}"));
            Finding::ok(TOPIC, format!("{name} is up{from}"))
        }
        // The others carry the datagrams.
        (problem, false) if any_up => Finding::warn(TOPIC, down(name, problem.as_deref())),
        (problem, false) => Finding::fail(TOPIC, down(name, problem.as_deref())),
        (Some(problem), true) => Finding::fail(TOPIC, format!("{name}: {problem}")),
    }
}

fn down(name: &str, problem: Option<&str>) -> String {
    format!("{name}: {}", problem.unwrap_or("it is down"))
}

/// By what the kernel says, if there is no daemon to ask.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let Ok(interfaces) = Interfaces::scan() else {
        return vec![Finding::unknown(TOPIC, "the kernel does not list the interfaces")];
    };
    let Some(group) = config.multicast else { return Vec::new() };
    if config.interfaces.is_empty() {
        return vec![match interfaces.route_to(group) {
            Ok(interface) => {
                Finding::ok(TOPIC, format!("the route to {group} is by {}", interface.name))
            }
            Err(error) => Finding::fail(TOPIC, error.to_string()),
        }];
    }
    config.interfaces.iter().map(|name| named(&interfaces, name, group)).collect()
}

fn named(interfaces: &Interfaces, name: &str, group: IpAddr) -> Finding {
    let Some(interface) = interfaces.get(name) else {
        return Finding::fail(TOPIC, format!("this host has no interface {name}"))
            .remedy("correct interface in the config file");
    };
    let has_address =
        interface.addresses.iter().any(|address| address.ip.is_ipv4() == group.is_ipv4());
    match (interface.is_up(), interface.is_running(), has_address) {
        (false, _, _) => Finding::fail(TOPIC, format!("{name} is down"))
            .remedy(format!("run: ip link set {name} up")),
        (_, false, _) => Finding::fail(TOPIC, format!("{name} has no carrier"))
            .remedy("check the cable, the switch port and the other end"),
        (_, _, false) => {
            Finding::fail(TOPIC, format!("{name} has no address of the group's family"))
        }
        _ => Finding::ok(TOPIC, format!("{name} is up")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;

    fn lines(change: impl FnOnce(&mut StatusReport)) -> Vec<String> {
        let mut report = follower();
        change(&mut report);
        judge(&report).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn interface_that_is_down_is_a_fault_unless_another_is_up() {
        assert_eq!(lines(|_| {}), ["ok       interface  eth0 is up, sends from 10.0.0.11"]);
        let down = |report: &mut StatusReport| {
            report.interfaces[0].up = false;
            report.interfaces[0].problem = Some("no carrier: check the cable".to_owned());
        };
        assert_eq!(lines(down), ["fail     interface  eth0: no carrier: check the cable"]);
        let one_of_two = lines(|report| {
            report.interfaces.push(report.interfaces[0].clone());
            down(report);
        });
        assert!(one_of_two[0].starts_with("warn     interface  eth0: no carrier"));
    }

    #[test]
    fn sending_that_fails_is_a_fault_and_one_that_failed_is_none() {
        let failing = lines(|report| report.interfaces[0].problem = Some("sending fails".into()));
        assert_eq!(failing, ["fail     interface  eth0: sending fails"]);
        let failed = lines(|report| report.counters.send_errors = 7);
        assert!(failed[1].starts_with("ok       interface  the kernel has refused 7 datagrams"));
    }

    #[test]
    fn interface_that_this_host_does_not_have_is_a_fault() {
        let config = Config::from_toml("node_id = \"a\"\ninterface = \"no-such0\"").unwrap();
        let line = look(&config)[0].line(0);
        assert!(line.starts_with("fail     interface  this host has no interface no-such0"));
    }
}
