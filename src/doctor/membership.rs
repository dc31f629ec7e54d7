//! Whether the kernel has joined the multicast group, and whether switches can know that.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use super::finding::Finding;
use crate::control_api::StatusReport;

const TOPIC: &str = "multicast";

/// The kernel's lists of memberships.
const IGMP: &str = "/proc/self/net/igmp";
const IGMP6: &str = "/proc/self/net/igmp6";

/// What is known of one interface.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) interface: String,
    pub(super) group: IpAddr,
    /// Whether the kernel lists the group; `None` if it lists nothing.
    pub(super) is_joined: Option<bool>,
    /// The bridge of this host behind the interface, if there is one.
    pub(super) bridge: Option<Bridge>,
}

/// A bridge of this host.
#[derive(Debug)]
pub(super) struct Bridge {
    pub(super) name: String,
    pub(super) snoops: bool,
    pub(super) queries: bool,
}

/// Of each interface on which the daemon has a socket.
pub(super) fn gather(report: &StatusReport) -> Vec<Facts> {
    let Some(group) = report.multicast.map(|address| address.ip()) else { return Vec::new() };
    let path = if group.is_ipv4() { IGMP } else { IGMP6 };
    let list = fs::read_to_string(path).ok();
    let up = report.interfaces.iter().filter(|interface| interface.up);
    up.map(|interface| Facts {
        interface: interface.name.clone(),
        group,
        is_joined: list.as_ref().map(|list| is_listed(list, &interface.name, group)),
        bridge: bridge(&interface.name),
    })
    .collect()
}

fn is_listed(list: &str, interface: &str, group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => is_listed_v4(list, interface, group),
        IpAddr::V6(group) => is_listed_v6(list, interface, group),
    }
}

/// A line with a number and a name begins an interface; those of its groups are indented, and begin
/// with the group as this machine stores it.
fn is_listed_v4(list: &str, interface: &str, group: Ipv4Addr) -> bool {
    let wanted = format!("{:08X}", u32::from_ne_bytes(group.octets()));
    let mut is_here = false;
    list.lines().any(|line| {
        let mut words = line.split_whitespace();
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            is_here = words.nth(1).is_some_and(|name| name.trim_end_matches(':') == interface);
            return false;
        }
        is_here && words.next() == Some(wanted.as_str())
    })
}

/// Each line has the interface's number and name, and the group.
fn is_listed_v6(list: &str, interface: &str, group: Ipv6Addr) -> bool {
    let wanted: String = group.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    list.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(interface) && words.next() == Some(wanted.as_str())
    })
}

/// The bridge that the interface is, or that it is a port of.
fn bridge(interface: &str) -> Option<Bridge> {
    let device = Path::new("/sys/class/net").join(interface);
    let master = fs::canonicalize(device.join("master")).ok();
    let device = [Some(device), master].into_iter().flatten();
    let device = device.into_iter().find(|device| device.join("bridge").is_dir())?;
    let is_set = |name: &str| {
        fs::read_to_string(device.join("bridge").join(name)).is_ok_and(|value| value.trim() == "1")
    };
    Some(Bridge {
        name: device.file_name()?.to_string_lossy().into_owned(),
        snoops: is_set("multicast_snooping"),
        queries: is_set("multicast_querier"),
    })
}

pub(super) fn judge(facts: &[Facts]) -> Vec<Finding> {
    let mut findings: Vec<_> = facts.iter().map(membership).collect();
    if !facts.is_empty() {
        findings.push(querier(facts.iter().find_map(|facts| facts.bridge.as_ref())));
    }
    findings
}

fn membership(facts: &Facts) -> Finding {
    let Facts { interface, group, .. } = facts;
    match facts.is_joined {
        Some(true) => Finding::ok(TOPIC, format!("{interface} is a member of {group}")),
        Some(false) => Finding::fail(TOPIC, format!("{interface} is no member of {group}"))
            .remedy("restart the daemon"),
        None => Finding::unknown(TOPIC, "the kernel does not list the memberships"),
    }
}

fn querier(bridge: Option<&Bridge>) -> Finding {
    match bridge {
        Some(Bridge { name, snoops: true, queries: false }) => {
            let text = format!(
                "the bridge {name} of this host snoops on IGMP and sends no queries: without \
                 another querier on the LAN it forgets members"
            );
            let remedy = format!("run: ip link set {name} type bridge mcast_querier 1");
            Finding::warn("querier", text).remedy(remedy)
        }
        Some(Bridge { name, .. }) => {
            Finding::ok("querier", format!("the bridge {name} of this host forgets no members"))
        }
        None => Finding::unknown(
            "querier",
            "whether switches snoop on IGMP or MLD, and which host queries, cannot be seen here",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn membership_is_read_from_the_kernels_lists() {
        let group = Ipv4Addr::new(239, 255, 76, 69);
        let stored = format!("{:08X}", u32::from_ne_bytes(group.octets()));
        let list = format!(
            "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
             1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
             2\teth0      :     2      V3\n\t\t\t\t{stored}     1 0:00000000\t\t0\n"
        );
        assert!(is_listed(&list, "eth0", group.into()));
        assert!(!is_listed(&list, "lo", group.into()));
        assert!(!is_listed(&list, "eth0", Ipv4Addr::new(239, 255, 76, 70).into()));
        let list = "2    eth0            ff020000000000000000000000004c45     1 00000004 0\n";
        assert!(is_listed(list, "eth0", "ff02::4c45".parse().unwrap()));
        assert!(!is_listed(list, "eth1", "ff02::4c45".parse().unwrap()));
    }

    #[test]
    fn kernel_that_has_left_the_group_is_a_fault() {
        let facts = |is_joined, bridge| Facts {
            interface: "eth0".to_owned(),
            group: Ipv4Addr::new(239, 255, 76, 69).into(),
            is_joined,
            bridge,
        };
        let lines = |facts: Facts| {
            judge(&[facts]).iter().map(|finding| finding.line(0)).collect::<Vec<_>>()
        };
        let left = lines(facts(Some(false), None));
        assert!(left[0].starts_with("fail     multicast  eth0 is no member of 239.255.76.69"));
        assert!(left[1].starts_with("unknown  querier  whether switches snoop"));
        let silent = Bridge { name: "br0".to_owned(), snoops: true, queries: false };
        let bridged = lines(facts(Some(true), Some(silent)));
        assert!(bridged[0].starts_with("ok "));
        assert!(bridged[1].ends_with("run: ip link set br0 type bridge mcast_querier 1"));
    }
}
