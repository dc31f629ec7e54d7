//! `tie_break = "spread"`: many groups with the same file on each host.

use std::collections::BTreeMap;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::doctor::doctor;
use crate::harness::host::status_at;
use crate::harness::program::Program;
use crate::harness::{Host, PATIENT, scenario, wait_until};

const GROUPS: usize = 20;

/// The leader of each group is always the best node, however the hosts' starts overlap.
const LINES: &str = "tie_break = \"spread\"\npreempt = true\nhook = \"true\"\n";

/// A host with a daemon for each group. All have the same file.
struct Server<'a> {
    host: &'a Host,
    /// Killed when they are dropped.
    _daemons: Vec<Program>,
}

impl<'a> Server<'a> {
    fn start(host: &'a Host) -> Server<'a> {
        host.configure(&format!("{PATIENT}{LINES}"));
        let daemons = groups().map(|group| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
            command.args(["run", "--config", &host.path("config.toml"), "--group", &group]);
            command.args(["--socket", &host.path(&group)]);
            command.args(["--state-dir", &host.path(&format!("state-{group}"))]);
            Program::start(host, command, &host.path(&format!("{group}.log")))
        });
        Server { host, _daemons: daemons.collect() }
    }

    fn leader(&self, group: &str) -> Option<String> {
        let status = status_at(self.host.path(group));
        status["leader"]["node_id"].as_str().map(str::to_owned)
    }
}

fn groups() -> impl Iterator<Item = String> {
    (1..=GROUPS).map(|number| format!("group{number}"))
}

/// The best of these hosts, as docs/election.md has it.
fn best<'a>(group: &str, servers: &[Server<'a>]) -> &'a str {
    let hash = |name: &str| Sha256::digest(format!("{group}\0{name}"));
    let names = servers.iter().map(|server| server.host.name.as_str());
    names.min_by_key(|name| hash(name)).unwrap()
}

/// Waits until each group is led by its best host, and counts the groups of each one.
fn distribution(servers: &[Server<'_>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for group in groups() {
        let best = best(&group, servers);
        wait_until(&format!("{best} leads {group}"), || {
            servers.iter().all(|server| server.leader(&group).as_deref() == Some(best))
        });
        *counts.entry(best.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn groups_with_one_file_are_spread_over_the_hosts() {
    scenario(|_, hosts: [_; 3]| {
        let mut servers = hosts.map(Server::start).into_iter().collect::<Vec<_>>();
        let all = distribution(&servers);
        let (busiest, lost) = all.iter().max_by_key(|(_, count)| **count).unwrap();
        // Their daemons are killed.
        servers.retain(|server| server.host.name != *busiest);
        let rest = distribution(&servers);
        println!("{GROUPS} groups on three hosts: {all:?}; {busiest} dies: {rest:?}");
        assert_eq!(rest.values().sum::<usize>(), GROUPS);
        for (name, count) in rest {
            let gained = count - all[&name];
            assert!(gained > 0 && gained < *lost, "{name} gained {gained} of {lost}");
        }
    });
}

#[test]
fn host_with_another_tie_break_is_reported() {
    scenario(|lan, [h1, h2, h3]| {
        for (host, rule) in [(h1, "spread"), (h2, "spread"), (h3, "lowest-id")] {
            host.start(&format!("{PATIENT}tie_break = \"{rule}\"\npreempt = true"));
        }
        // Every node finds the same order, though h3's rule is another.
        lan.wait_for_leader(h3);
        wait_until("it is in the logs", || {
            h1.log().contains("member h3 has tie_break = \"lowest-id\", unlike this node")
                && h3.log().contains("member h1 has tie_break = \"spread\", unlike this node")
        });
        assert!(!h1.log().contains("member h2 has tie_break"));
        let found = |host: &Host| String::from_utf8(doctor(host, &[], &[]).stdout).unwrap();
        wait_until("the doctor finds it", || {
            found(h1).contains("h3 has tie_break = \"lowest-id\"")
        });
        let noted = String::from_utf8(h1.ask(&["status"]).stdout).unwrap();
        assert!(noted.contains("tie_break"), "{noted}");
    });
}
