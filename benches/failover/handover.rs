//! The leader is told to go: how long until the successor's promotion script starts.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::now;
use crate::harness::{Host, Lan};
use crate::programs::{self, Group, HOSTS};
use crate::report::Samples;
use crate::{millis, options, report_times};

pub(crate) fn at_1s() {
    scenario_with(programs::needs(), |_: &Lan, hosts: [_; HOSTS]| measure(hosts, "1s"));
}

pub(crate) fn at_100ms() {
    scenario_with(programs::needs(), |_: &Lan, hosts: [_; HOSTS]| measure(hosts, "100ms"));
}

fn measure(hosts: [&Host; HOSTS], interval: &str) {
    let duration = humantime::parse_duration(interval).unwrap();
    let mut sets = Vec::new();
    for program in programs::available(duration) {
        let group = Group::start(program, hosts, duration);
        sets.push(sample(&format!("{}, SIGTERM", program.name()), || by_signal(&group)));
        if program.can_yield() {
            sets.push(sample(&format!("{}, yield", program.name()), || by_command(&group)));
        }
    }
    let title = format!("Leader told to go to the successor's script, interval {interval}");
    report_times(&format!("handover-{interval}"), &title, &sets);
}

fn sample(name: &str, handover: impl Fn() -> Duration) -> Samples {
    Samples::new(name, (0..options::samples()).map(|_| millis(handover())).collect())
}

fn by_signal(group: &Group<'_>) -> Duration {
    let leader = group.settled_leader();
    let told = now();
    group.terminate(leader);
    let successor = group.bell.await_successor(&group.hosts[leader].name);
    group.restart(leader);
    successor.at - told
}

fn by_command(group: &Group<'_>) -> Duration {
    let leader = group.hosts[group.settled_leader()];
    let told = now();
    group.program.yield_leadership(leader);
    group.bell.await_successor(&leader.name).at - told
}
