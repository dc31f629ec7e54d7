//! The networks: a bridge of the kernel for each group.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::host::ip;
use crate::harness::tap::Tap;
use crate::harness::{Host, Lan};

/// Joins the hosts of each group by a bridge of its own.
pub(crate) fn lay(lan: &Lan, groups: &[&[&Host]]) {
    lan.use_bridges();
    // That of the network namespace.
    run(Command::new("mount").args(["-t", "sysfs", "sysfs", "/sys"]));
    for (number, hosts) in groups.iter().enumerate() {
        ip(&format!("link add wire{number} type bridge mcast_snooping 0"));
        ip(&format!("link set wire{number} addrgenmode none up"));
        for host in *hosts {
            let port = host.port(0);
            ip(&format!("link set {port} master wire{number}"));
            deliver_by_thread(host, &port);
        }
        introduce(hosts);
    }
}

/// Has a thread of the kernel deliver what a host sends by this port. Otherwise the sender would
/// pay for the reception by all others, which it does not in a real network.
fn deliver_by_thread(host: &Host, port: &str) {
    // The kernel has no such thread for a sender that leaves segmentation to its interface.
    host.run(|| run(Command::new("ethtool").args(["-K", "eth0", "tso", "off"])));
    run(Command::new("ethtool").args(["-K", port, "gro", "on"]));
    fs::write(format!("/sys/class/net/{port}/threaded"), "1").unwrap();
}

/// Has each host know where each other one is. The kernel has one table for the neighbours of all
/// namespaces, and it has no room for those that 64 hosts find by themselves.
fn introduce(hosts: &[&Host]) {
    let neighbour = |host: &&Host| {
        let mac = Tap::deaf_on(host).mac().map(|byte| format!("{byte:02x}")).join(":");
        let address = host.address(0);
        format!("neigh replace {address} dev eth0 nud permanent lladdr {mac}\n")
    };
    let neighbours: Vec<String> = hosts.iter().map(neighbour).collect();
    for (own, host) in hosts.iter().enumerate() {
        let others = neighbours.iter().enumerate().filter(|(other, _)| *other != own);
        let commands: String = others.map(|(_, neighbour)| neighbour.as_str()).collect();
        let mut batch = Command::new("ip");
        batch.args(["-n", &host.name, "-batch", "-"]).stdin(Stdio::piped());
        let mut child = batch.spawn().unwrap();
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{batch:?}: {commands}");
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?} failed");
}
