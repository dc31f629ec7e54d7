//! How long it takes in quorum mode until there is a leader again, beside what available mode
//! takes.
//!
//! Three or five daemons with a heartbeat of 100 ms and whatever follows from it. Each sample
//! begins at a random moment between two heartbeats, and ends when the hook of the successor has
//! written its first line.

use std::time::Duration;

use crate::harness::journal::What;
use crate::harness::patience::{LIMIT, now, pass};
use crate::harness::{Host, Lan, quorum_scenario, scenario};

/// Samples of a failover, and of a split.
const FAILOVERS: usize = 25;
const SPLITS: usize = 10;

/// How long a split lasts at least, for something to go wrong in.
const SPLIT: Duration = Duration::from_secs(1);

pub(crate) fn three_nodes_available() {
    scenario(|lan, hosts: [_; 3]| {
        measure_failover(lan, hosts, "available mode", "");
    });
}

/// Without a grace the hooks overlap: the demote hook of the old leader has no time.
pub(crate) fn three_voters_without_grace() {
    scenario(|lan, hosts: [_; 3]| {
        measure_failover(lan, hosts, "quorum mode, demote_grace = 0s", &voters(&hosts, "0s"));
    });
}

pub(crate) fn three_voters_with_grace() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        let lines = voters(&hosts, "500ms");
        measure_failover(lan, hosts, "quorum mode, demote_grace = 500ms", &lines);
    });
}

pub(crate) fn five_voters_split_3_2() {
    quorum_scenario(|lan, hosts: [_; 5]| {
        start(lan, &hosts, &voters(&hosts, "500ms"));
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..SPLITS {
            let old = settled_leader(lan);
            let others = without(&hosts, old);
            let (minority, majority) = ([old, others[0]], [others[1], others[2], others[3]]);
            let elections = count(lan, "elected");
            let (cut, before) = (now(), count(lan, "demoted"));
            lan.partition(&[&minority, &majority]);
            wait_closely("the old leader demotes", || count(lan, "demoted") > before);
            samples[0].push(cut.elapsed());
            wait_closely("the majority elects", || count(lan, "elected") > elections);
            samples[1].push(cut.elapsed());
            let new = lan.sole_leader_of(&majority);
            pass(SPLIT);
            assert!(minority.iter().all(|host| !host.leads()), "the minority has a leader");
            let healed = now();
            lan.heal();
            lan.wait_for_leader(new);
            samples[2].push(healed.elapsed());
            assert_eq!(count(lan, "elected"), elections + 1, "the minority disturbed the leader");
        }
        let [demoted, elected, healed] = samples;
        report("split 3/2, demote_grace = 500ms: the minority's leader demotes", demoted);
        report("split 3/2, demote_grace = 500ms: the majority's leader is elected", elected);
        report(
            "split 3/2, demote_grace = 500ms: healed, all five follow it (looked at every 0.1 s or so)",
            healed,
        );
    });
}

pub(crate) fn five_voters_split_2_2_1() {
    quorum_scenario(|lan, hosts: [_; 5]| {
        start(lan, &hosts, &voters(&hosts, "500ms"));
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..SPLITS {
            let old = settled_leader(lan);
            let others = without(&hosts, old);
            let elections = count(lan, "elected");
            let (cut, before) = (now(), count(lan, "demoted"));
            lan.partition(&[&[old, others[0]], &[others[1], others[2]], &[others[3]]]);
            wait_closely("the old leader demotes", || count(lan, "demoted") > before);
            samples[0].push(cut.elapsed());
            pass(SPLIT);
            assert!(hosts.iter().all(|host| !host.leads()), "somebody leads");
            assert_eq!(count(lan, "elected"), elections, "somebody was elected");
            let healed = now();
            lan.heal();
            wait_closely("a leader is elected", || count(lan, "elected") > elections);
            samples[1].push(healed.elapsed());
            lan.sole_leader();
            samples[2].push(healed.elapsed());
        }
        let [demoted, elected, followed] = samples;
        report("split 2/2/1, demote_grace = 500ms: the leader demotes, and nobody leads", demoted);
        report("split 2/2/1, demote_grace = 500ms: healed, a leader is elected", elected);
        report(
            "split 2/2/1, demote_grace = 500ms: healed, all five follow it (looked at every 0.1 s or so)",
            followed,
        );
    });
}

/// Cuts the leader off again and again.
fn measure_failover(lan: &Lan, hosts: [&Host; 3], what: &str, lines: &str) {
    start(lan, &hosts, lines);
    let sample = |_| {
        let leader = settled_leader(lan);
        let before = elected_elsewhere(lan, leader);
        let cut = now();
        lan.cut(leader);
        wait_closely("a successor is elected", || elected_elsewhere(lan, leader) > before);
        let took = cut.elapsed();
        lan.sole_leader_of(&without(&hosts, leader));
        lan.heal();
        took
    };
    let samples = (0..FAILOVERS).map(sample).collect();
    report(&format!("leader of three cut off, {what}"), samples);
    lan.sole_leader();
}

/// The sole leader, at a random moment between two heartbeats.
fn settled_leader(lan: &Lan) -> &Host {
    loop {
        // Members that were cut off are alive again to all, and acknowledge.
        lan.sole_leader();
        pass(Duration::from_millis(fastrand::u64(400..500)));
        let leader = lan.sole_leader();
        pass(Duration::from_millis(fastrand::u64(..100)));
        if leader.leads() {
            return leader;
        }
    }
}

fn start(lan: &Lan, hosts: &[&Host], lines: &str) {
    for host in hosts {
        host.write_config(&with_derived_threshold(&host.config(lines)));
        host.restart();
    }
    lan.wait_until_all_vote(hosts);
}

/// Without the threshold that the tests set, which is wider than the one that follows from the
/// heartbeat.
fn with_derived_threshold(config: &str) -> String {
    let mut config: toml::Table = config.parse().unwrap();
    config.remove("leader_alive_threshold").expect("the tests set it");
    config.to_string()
}

fn voters(hosts: &[&Host], grace: &str) -> String {
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    format!("mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"{grace}\"\n")
}

fn without<'a>(hosts: &[&'a Host], host: &Host) -> Vec<&'a Host> {
    hosts.iter().copied().filter(|other| other.number != host.number).collect()
}

fn count(lan: &Lan, event: &str) -> usize {
    lan.journal().text().matches(&format!(" start {event}")).count()
}

/// The `elected` hooks of hosts other than this one.
fn elected_elsewhere(lan: &Lan, host: &Host) -> usize {
    let elected = |what: &What| matches!(what, What::Start(run) if run.event == "elected");
    let entries = lan.journal().entries();
    entries.iter().filter(|entry| entry.host != host.name && elected(&entry.what)).count()
}

/// [`wait_until`], looking so often that it does not show.
fn wait_closely(what: &str, mut condition: impl FnMut() -> bool) {
    let started = now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "gave up waiting until {what}");
        pass(Duration::from_millis(1));
    }
}

fn report(what: &str, mut samples: Vec<Duration>) {
    samples.sort_unstable();
    let millis = |at: usize| samples[at].as_millis();
    let last = samples.len() - 1;
    println!(
        "measured: {what}: median {} ms, {} to {} ms, n = {}",
        millis(samples.len() / 2),
        millis(0),
        millis(last),
        samples.len(),
    );
}
