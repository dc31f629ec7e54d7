//! The leader is cut off the wire: how long until the successor's promotion script starts.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::now;
use crate::harness::{Host, Lan};
use crate::programs::{self, Group, HOSTS};
use crate::report::Samples;
use crate::{millis, options, report_times};

pub(crate) fn at_1s() {
    scenario_with(programs::needs(), |lan, hosts: [_; HOSTS]| measure(lan, hosts, "1s"));
}

pub(crate) fn at_100ms() {
    scenario_with(programs::needs(), |lan, hosts: [_; HOSTS]| measure(lan, hosts, "100ms"));
}

fn measure(lan: &Lan, hosts: [&Host; HOSTS], interval: &str) {
    let duration = humantime::parse_duration(interval).unwrap();
    let mut sets = Vec::new();
    for program in programs::available(duration) {
        let group = Group::start(program, hosts, duration);
        let samples = (0..options::samples()).map(|_| takeover(lan, &group));
        sets.push(Samples::new(program.name(), samples.map(millis).collect()));
    }
    let title = format!("Leader cut off to the successor's script, interval {interval}");
    report_times(&format!("takeover-{interval}"), &title, &sets);
}

/// Cuts the leader off once.
fn takeover(lan: &Lan, group: &Group<'_>) -> Duration {
    let leader = group.hosts[group.settled_leader()];
    let cut = now();
    lan.cut(leader);
    let successor = group.bell.await_successor(&leader.name);
    lan.heal();
    successor.at - cut
}
