//! Quorum mode on real hosts. After every scenario the merged hooks and everything that was said
//! on the wire are checked: never two leaders, never a term twice.

mod cost;
mod elections;
mod failures;
mod memory;
mod partitions;
mod pauses;
mod voters;

use crate::harness::{Host, Lan};

/// The lease is wide enough that a loaded machine's stalls do not end it.
pub(crate) const LEASE: &str = "leader_alive_threshold = \"2s\"\n";

/// The config lines of a group in which these hosts vote.
pub(crate) fn voters(hosts: &[&Host]) -> String {
    voters_with_grace(hosts, "500ms")
}

fn voters_with_grace(hosts: &[&Host], grace: &str) -> String {
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    format!("mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"{grace}\"\n{LEASE}")
}

/// Starts these hosts as the voters of a group; returns the leader that they elect, and the others.
fn elect<'a>(lan: &Lan, hosts: &[&'a Host]) -> (&'a Host, Vec<&'a Host>) {
    elect_with(lan, hosts, &voters(hosts))
}

/// Starts these hosts with these config lines; returns the leader, and the others.
pub(crate) fn elect_with<'a>(
    lan: &Lan,
    hosts: &[&'a Host],
    lines: &str,
) -> (&'a Host, Vec<&'a Host>) {
    hosts.iter().for_each(|host| host.start(lines));
    let leader = lan.sole_leader_of(hosts);
    lan.wait_until_all_vote(hosts);
    (leader, without(hosts, leader))
}

fn without<'a>(hosts: &[&'a Host], host: &Host) -> Vec<&'a Host> {
    hosts.iter().copied().filter(|other| other.number != host.number).collect()
}

/// How often a hook of the group started whose line begins so, such as `elected`.
fn count(lan: &Lan, hook: &str) -> usize {
    lan.journal().text().matches(&format!(" start {hook}")).count()
}
