//! What a settled group costs: CPU time, wakeups, system calls, traffic and memory of lanelect
//! beside keepalived and ucarp.
//!
//! ```text
//! cargo bench --bench cost
//! LANELECT_BENCH_COST=15s cargo bench --bench cost -- at_100ms
//! ```
//!
//! Three hosts in network namespaces, joined by the switch of `tests/lan`, which takes over what
//! the network costs: a sender pays for handing a frame to its interface, a receiver for taking a
//! datagram from its socket. The programs take turns on the same hosts, several times, so that
//! whatever else the machine does burdens all of them; the median turn counts. System calls are
//! counted in a turn of their own, as counting them costs more than they do. What a bare datagram
//! costs is measured in the same way: the floor under all of them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real hosts, in real time")]

#[path = "../../tests/lan/harness/mod.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
#[expect(unused_imports, reason = "the tests need more of it")]
mod harness;
#[path = "../options/mod.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod options;
#[path = "../programs/mod.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod programs;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod report;

mod bare;
mod meter;

use std::time::Duration;

use harness::Host;
use harness::lan::scenario_with;
use harness::patience::{now, pass};
use meter::Reading;
use programs::{Contender, Group, HOSTS, Pace, Program, YARDSTICK};
use report::svg::{self, Bars};
use report::{Samples, Table, ratio};

/// For how long each program is measured, all its turns together.
const WINDOW: &str = "LANELECT_BENCH_COST";
const USUAL_WINDOW: Duration = Duration::from_secs(60);

/// How often each program has its turn.
const TURNS: u32 = 3;

/// How long a group is left alone before it counts as settled. keepalived announces its address a
/// second time after five seconds.
const SETTLING: Duration = Duration::from_secs(7);

/// For how long system calls are counted: so long, and so many intervals.
const TRACE: Duration = Duration::from_secs(10);
const TRACED_INTERVALS: u32 = 20;

/// What is measured, a word for the plot, and the unit.
const QUANTITIES: [(&str, &str); 7] = [
    ("CPU", "µs per second"),
    ("wakeups", "per second"),
    ("frames", "sent per second"),
    ("bytes", "sent per second"),
    ("RSS", "MB"),
    ("PSS", "MB"),
    ("syscalls", "per second"),
];

const MEASUREMENTS: [(&str, fn()); 2] =
    [("at_100ms", at_100ms), ("at_equal_takeover", at_equal_takeover)];

/// One quantity on the leader's host, and on its two followers' together.
#[derive(Debug, Clone, Copy)]
struct Cost {
    leader: f64,
    followers: f64,
}

/// A program's quantities, in the order of [`QUANTITIES`]; the last may be missing.
struct Bill {
    program: &'static str,
    interval: Duration,
    costs: Vec<Cost>,
}

fn main() {
    bare::run_if_asked();
    options::run(&MEASUREMENTS);
}

fn at_100ms() {
    let pace = Pace::Every(Duration::from_millis(100));
    scenario_with(programs::needs(), |_, hosts| compare(hosts, "at-100ms", pace));
}

/// lanelect at its defaults, the others at the interval that makes their takeover as long.
fn at_equal_takeover() {
    let program = &programs::lanelect::Lanelect;
    let takeover = program.default_interval().mul_f64(program.takeover());
    let pace = Pace::Takeover(takeover);
    scenario_with(programs::needs(), |_, hosts| compare(hosts, "at-equal-takeover", pace));
}

fn compare(hosts: [&Host; HOSTS], name: &str, pace: Pace) {
    let window = options::duration(WINDOW, USUAL_WINDOW) / TURNS;
    let mut contenders = programs::available(pace);
    // It costs what lanelect would cost at least.
    contenders.push(Contender { program: &bare::Bare, ..contenders[0] });
    let mut turns = vec![Vec::new(); contenders.len()];
    for _ in 0..TURNS {
        for (turns, contender) in turns.iter_mut().zip(&contenders) {
            turns.push(turn(&contender.start(hosts), window));
        }
    }
    let bill = |(turns, contender): (Vec<_>, &Contender)| {
        let mut costs = medians(&turns);
        costs.extend(system_calls(&contender.start(hosts)));
        let Contender { program, interval } = contender;
        Bill { program: program.name(), interval: *interval, costs }
    };
    let bills: Vec<Bill> = turns.into_iter().zip(&contenders).map(bill).collect();
    report(name, &bills);
}

/// Measures everything but system calls within one window.
fn turn(group: &Group<'_>, window: Duration) -> Vec<Cost> {
    let leader = calm_leader(group);
    let hosts: [&Host; HOSTS] = group.hosts[..].try_into().unwrap();
    let (started, before) = (now(), hosts.map(Reading::of));
    pass(window);
    let (lasted, after) = (started.elapsed(), hosts.map(Reading::of));
    assert!(group.bell.rings().is_empty(), "the leader did not stay the leader");
    let seconds = lasted.as_secs_f64();
    let used = |what: fn(&Reading) -> u64| {
        std::array::from_fn(|host| (what(&after[host]) - what(&before[host])) as f64)
    };
    let memory = hosts.map(meter::memory);
    vec![
        cost(used(|reading| reading.cpu_ns), leader, 1000.0 * seconds),
        cost(used(|reading| reading.waits), leader, seconds),
        cost(used(|reading| reading.frames), leader, seconds),
        cost(used(|reading| reading.bytes), leader, seconds),
        cost(memory.map(|(resident, _)| resident as f64), leader, 1024.0),
        cost(memory.map(|(_, proportional)| proportional as f64), leader, 1024.0),
    ]
}

/// Counts system calls; says so where that does not work.
fn system_calls(group: &Group<'_>) -> Option<Cost> {
    let leader = calm_leader(group);
    let lasting = TRACE.max(group.interval * TRACED_INTERVALS);
    match meter::system_calls(group.hosts[..].try_into().unwrap(), lasting) {
        Ok(counts) => Some(cost(counts.map(|count| count as f64), leader, lasting.as_secs_f64())),
        Err(reason) => {
            println!("  no system calls of {}: {reason}", group.program.name());
            None
        }
    }
}

fn calm_leader(group: &Group<'_>) -> usize {
    group.settled_leader();
    pass(SETTLING);
    group.settled_leader()
}

fn cost(hosts: [f64; HOSTS], leader: usize, unit: f64) -> Cost {
    let all: f64 = hosts.iter().sum();
    Cost { leader: hosts[leader] / unit, followers: (all - hosts[leader]) / unit }
}

fn medians(turns: &[Vec<Cost>]) -> Vec<Cost> {
    let median = |quantity: usize, part: fn(&Cost) -> f64| {
        let values = turns.iter().map(|turn| part(&turn[quantity])).collect();
        Samples::new("", values).median()
    };
    let cost = |quantity| Cost {
        leader: median(quantity, |cost| cost.leader),
        followers: median(quantity, |cost| cost.followers),
    };
    (0..turns[0].len()).map(cost).collect()
}

impl Cost {
    fn all(&self) -> f64 {
        self.leader + self.followers
    }
}

fn report(name: &str, bills: &[Bill]) {
    let pace = |bill: &Bill| format!("{} every {:?}", bill.program, bill.interval);
    let paces: Vec<_> = bills.iter().map(pace).collect();
    let title = format!("Cost of three settled hosts: {}", paces.join(", "));
    let to = format!("to {YARDSTICK}");
    let mut table = Table::new(
        2,
        [
            "",
            "",
            "leader",
            "a follower",
            "all three",
            &format!("leader {to}"),
            &format!("all {to}"),
        ],
    );
    for (nth, (quantity, unit)) in QUANTITIES.iter().enumerate() {
        let yardstick = cost_of(bills, YARDSTICK, nth);
        for bill in bills {
            let Some(cost) = bill.costs.get(nth) else { continue };
            let figure = |value: f64| format!("{value:.2}");
            table.row([
                format!("{quantity} {unit}"),
                bill.program.to_owned(),
                figure(cost.leader),
                figure(cost.followers / (HOSTS - 1) as f64),
                figure(cost.all()),
                ratio(cost.leader, yardstick.map(|base| base.leader)),
                ratio(cost.all(), yardstick.map(|base| base.all())),
            ]);
        }
    }
    println!("{title}\n{table}");
    plot(name, &title, bills);
}

/// Draws each quantity in relation to keepalived's, or where it is missing to the first program's.
fn plot(name: &str, title: &str, bills: &[Bill]) {
    let yardstick = if bills.iter().any(|bill| bill.program == YARDSTICK) {
        YARDSTICK
    } else {
        bills[0].program
    };
    let relative = |bill: &Bill, nth| {
        let base = cost_of(bills, yardstick, nth)?.all();
        bill.costs.get(nth).map(|cost| cost.all() / base)
    };
    let series = bills.iter().map(|bill| Bars {
        name: bill.program.to_owned(),
        values: (0..QUANTITIES.len()).map(|nth| relative(bill, nth)).collect(),
    });
    let unit = format!("all three hosts, {yardstick} = 1");
    let words = QUANTITIES.map(|(word, _)| word);
    let svg = svg::bars(title, &unit, &words, &series.collect::<Vec<_>>());
    report::save(&format!("cost-{name}"), &svg);
}

fn cost_of(bills: &[Bill], program: &str, nth: usize) -> Option<Cost> {
    let bill = bills.iter().find(|bill| bill.program == program)?;
    bill.costs.get(nth).copied()
}
