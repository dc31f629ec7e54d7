//! What safety costs: the disk is written for votes and terms, never for a heartbeat.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{elect, voters};
use crate::harness::{Host, Lan, quorum_scenario, wait_until};

/// What the daemon counts, and what the file system knows of the file: a write replaces it.
fn writes(host: &Host) -> (u64, u64, (i64, i64)) {
    let saves = host.status()["counters"]["state_saves"].as_u64().unwrap();
    let file = fs::metadata(host.path("state/default.state")).unwrap();
    (saves, file.ino(), (file.mtime(), file.mtime_nsec()))
}

/// Waits until so many more declarations were sent.
fn declares(lan: &Lan, count: usize) {
    let before = lan.claims().len();
    wait_until("the leader has declared itself", || lan.claims().len() >= before + count);
}

#[test]
fn heartbeats_write_nothing_to_disk() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        let (leader, others) = elect(lan, &hosts);
        // The first declaration that a voter acknowledges is written down as its pledge.
        declares(lan, 10);
        let settled = hosts.map(writes);
        declares(lan, 100);
        assert_eq!(hosts.map(writes), settled);
        println!("measured: saves since the start, 100 declarations later too: {settled:?}");

        leader.crash_under_service_manager();
        let survivors: Vec<_> = others;
        lan.sole_leader_of(&survivors);
        let before: u64 = settled.iter().map(|(saves, ..)| saves).sum();
        let after: u64 = survivors.iter().map(|host| writes(host).0).sum();
        assert!(after > before - settled[leader.number - 1].0, "an election is written down");
        leader.start(&voters(&hosts));
        lan.sole_leader();
    });
}
