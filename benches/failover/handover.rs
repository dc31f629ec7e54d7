//! The leader is told to go: how long until the successor's promotion script starts.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::now;
use crate::harness::{Host, Lan};
use crate::programs::{self, Group, HOSTS, Pace};
use crate::report::Samples;
use crate::{millis, options, report_times};

pub(crate) fn by_default() {
    scenario_with(programs::needs(), |_: &Lan, hosts| measure(hosts, "default", Pace::Default));
}

pub(crate) fn at_100ms() {
    let pace = Pace::Every(Duration::from_millis(100));
    scenario_with(programs::needs(), |_: &Lan, hosts| measure(hosts, "100ms", pace));
}

fn measure(hosts: [&Host; HOSTS], name: &str, pace: Pace) {
    let mut sets = Vec::new();
    for contender in programs::available(pace) {
        let (program, group) = (contender.program, contender.start(hosts));
        sets.push(sample(&format!("{}, SIGTERM", program.name()), || group.handover()));
        if program.can_yield() {
            sets.push(sample(&format!("{}, yield", program.name()), || by_command(&group)));
        }
    }
    let title = format!("Leader told to go to the successor's script, interval: {name}");
    report_times(&format!("handover-{name}"), &title, &sets);
}

fn sample(name: &str, handover: impl Fn() -> Duration) -> Samples {
    Samples::new(name, (0..options::samples()).map(|_| millis(handover())).collect())
}

fn by_command(group: &Group<'_>) -> Duration {
    let leader = group.hosts[group.settled_leader()];
    let told = now();
    group.program.yield_leadership(leader);
    group.bell.await_successor(&leader.name).at - told
}
