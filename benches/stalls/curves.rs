//! The longest pause that every leader survives, against the time of a takeover, at several
//! intervals of each program.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::pass;
use crate::harness::{Host, Lan};
use crate::options;
use crate::programs::{self, Contender, Group, HOSTS, Held, PROGRAMS, Pace};
use crate::report::svg::{self, Curve};
use crate::report::{self, Samples, Table};

/// Intervals, beside each program's default.
const INTERVALS: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_millis(1000),
];

/// No program bears a pause of so many intervals.
const HOLD_MAX: f64 = 5.0;

/// The longest pause is found to within this part of an interval.
const HOLD_STEP: f64 = 0.1;

/// So many holds without a move count as survived.
const TRIALS: usize = 5;

/// What was measured of one program at one interval, in milliseconds.
struct Point {
    contender: Contender,
    survived: f64,
    takeovers: Samples,
}

pub(crate) fn at_intervals() {
    scenario_with(programs::needs(), |lan, hosts: [_; HOSTS]| {
        let settings: Vec<_> = PROGRAMS.into_iter().flat_map(settings).collect();
        let points: Vec<_> = settings.iter().map(|setting| point(lan, hosts, *setting)).collect();
        report(&points);
    });
}

/// A program at all the intervals that it knows, the shortest first.
fn settings(program: &'static dyn programs::Program) -> Vec<Contender> {
    let mut paces: Vec<_> = INTERVALS.map(Pace::Every).into();
    paces.push(Pace::Default);
    let mut settings: Vec<_> =
        paces.into_iter().map(|pace| Contender::new(program, pace)).collect();
    settings.retain(|setting| program.version().is_ok() && program.supports(setting.interval));
    settings.sort_by_key(|setting| setting.interval);
    settings.dedup_by_key(|setting| setting.interval);
    settings
}

fn point(lan: &Lan, hosts: [&Host; HOSTS], contender: Contender) -> Point {
    let group = contender.start(hosts);
    let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let takeovers = (0..options::samples()).map(|_| millis(group.takeover(lan))).collect();
    let takeovers = Samples::new(contender.program.name(), takeovers);
    Point { contender, survived: millis(longest_hold(&group)), takeovers }
}

/// By halving: the programs differ, and so do their intervals.
fn longest_hold(group: &Group<'_>) -> Duration {
    let (mut survived, mut moved) = (0.0, HOLD_MAX);
    while moved - survived > HOLD_STEP {
        let middle = f64::midpoint(survived, moved);
        if survives(group, group.interval.mul_f64(middle)) {
            survived = middle;
        } else {
            moved = middle;
        }
    }
    group.interval.mul_f64(survived)
}

fn survives(group: &Group<'_>, hold: Duration) -> bool {
    (0..TRIALS).all(|_| {
        let leader = group.settled_leader();
        group.hold(leader, Held::Host);
        pass(hold);
        group.release(leader, Held::Host);
        pass(group.interval);
        !group.has_moved_from(leader)
    })
}

fn report(points: &[Point]) {
    let title = "Takeover against the longest pause that a leader survives";
    let mut table = Table::new(2, ["", "interval", "survives, ms", "takeover, median, ms"]);
    for Point { contender, survived, takeovers } in points {
        table.row([
            contender.program.name().to_owned(),
            format!("{:?}", contender.interval),
            format!("{survived:.0}"),
            format!("{:.0}", takeovers.median()),
        ]);
    }
    println!("{title}\n{table}");
    let curve = |points: &[Point]| Curve {
        name: points[0].contender.program.name().to_owned(),
        points: points.iter().map(|point| (point.survived, point.takeovers.median())).collect(),
    };
    let same = |a: &Point, b: &Point| a.contender.program.name() == b.contender.program.name();
    let curves: Vec<_> = points.chunk_by(same).map(curve).collect();
    let svg = svg::curves(title, "survived pause, ms", "takeover, ms", &curves);
    report::save("stalls", &svg);
}
