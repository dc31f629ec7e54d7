//! The leader is cut off the wire: how long until the successor's promotion script starts.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::{Host, Lan};
use crate::programs::{self, HOSTS, Pace};
use crate::report::Samples;
use crate::{millis, options, report_times};

pub(crate) fn by_default() {
    scenario_with(programs::needs(), |lan, hosts| measure(lan, hosts, "default", Pace::Default));
}

pub(crate) fn at_100ms() {
    let pace = Pace::Every(Duration::from_millis(100));
    scenario_with(programs::needs(), |lan, hosts| measure(lan, hosts, "100ms", pace));
}

fn measure(lan: &Lan, hosts: [&Host; HOSTS], name: &str, pace: Pace) {
    let mut sets = Vec::new();
    for contender in programs::available(pace) {
        let group = contender.start(hosts);
        let samples = (0..options::samples()).map(|_| group.takeover(lan));
        sets.push(Samples::new(contender.program.name(), samples.map(millis).collect()));
    }
    let title = format!("Leader cut off to the successor's script, interval: {name}");
    report_times(&format!("takeover-{name}"), &title, &sets);
}
