//! Promotion hooks that start although the leader lives: under loss, and on busy cores.

use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::pass;
use crate::harness::switch::Rule;
use crate::harness::{Host, Lan};
use crate::options;
use crate::programs::{self, Contender, Group, HOSTS, Pace, YARDSTICK};
use crate::report::svg::{self, Bars};
use crate::report::{self, Table, ratio};

/// For how long false takeovers are counted under loss, and on busy cores.
const LOSS: &str = "LANELECT_BENCH_LOSS";
const BUSY: &str = "LANELECT_BENCH_BUSY";
const USUAL: Duration = Duration::from_secs(600);

/// The probability that a receiver does not get a frame.
const LOSSES: [f64; 3] = [0.0, 0.1, 0.3];

const LOSSY_HOSTS: usize = LOSSES.len() * 3 * HOSTS;
const BUSY_HOSTS: usize = 3 * HOSTS;

/// Busy processes for each core.
const LOOPS: usize = 2;

/// What happened to one group while its leader lived.
struct Count {
    program: &'static str,
    /// Another host's promotion script started.
    takeovers: usize,
    /// The leader's own script ran again.
    reaffirmed: usize,
}

/// All programs and all rates at once, each in a group of its own: they share the machine, not the
/// wire.
pub(crate) fn under_loss() {
    scenario_with(programs::needs(), |lan, hosts| lose(lan, hosts, "default", Pace::Default));
}

pub(crate) fn under_loss_at_100ms() {
    let pace = Pace::Every(Duration::from_millis(100));
    scenario_with(programs::needs(), |lan, hosts| lose(lan, hosts, "100ms", pace));
}

fn lose(lan: &Lan, hosts: [&Host; LOSSY_HOSTS], name: &str, pace: Pace) {
    let contenders = programs::available(pace);
    let kinds = LOSSES.iter().flat_map(|&loss| contenders.iter().map(move |&c| (c, loss)));
    let (kinds, losses): (Vec<_>, Vec<_>) = kinds.unzip();
    let groups = start(lan, &hosts, &kinds);
    for (group, loss) in groups.iter().zip(losses) {
        lose_within(lan, group, loss);
    }
    let lasted = options::duration(LOSS, USUAL);
    let counts = count(&groups, lasted);
    groups.iter().for_each(|group| lose_within(lan, group, 0.0));
    assert_alive(&groups);
    let conditions = LOSSES.map(|loss| format!("{:.0} % loss", loss * 100.0));
    let (file, what) = (format!("false-takeovers-loss-{name}"), format!("interval: {name}"));
    report(&file, &what, lasted, &conditions, &counts);
}

/// Other processes keep every core busy.
pub(crate) fn on_busy_cores() {
    scenario_with(programs::needs(), |lan, hosts: [_; BUSY_HOSTS]| {
        let groups = start(lan, &hosts, &programs::available(Pace::Default));
        let cores = thread::available_parallelism().unwrap().get();
        let busy: Vec<Busy> = (0..cores * LOOPS).map(|_| Busy::start()).collect();
        let lasted = options::duration(BUSY, USUAL);
        let counts = count(&groups, lasted);
        let condition = format!("{} busy processes on {cores} cores", busy.len());
        drop(busy);
        assert_alive(&groups);
        report("false-takeovers-busy", "interval: default", lasted, &[condition], &counts);
    });
}

/// Starts programs in groups that do not hear each other, and waits until each has its leader.
fn start<'a>(lan: &Lan, hosts: &[&'a Host], contenders: &[Contender]) -> Vec<Group<'a>> {
    let groups = programs::start_apart(lan, hosts, contenders);
    assert_alive(&groups);
    groups
}

fn lose_within(lan: &Lan, group: &Group<'_>, loss: f64) {
    for from in &group.hosts {
        for to in group.hosts.iter().filter(|to| to.number != from.number) {
            lan.link(from, to, &Rule { loss, ..Rule::default() });
        }
    }
}

/// Waits so long; returns what happened meanwhile.
fn count(groups: &[Group<'_>], lasting: Duration) -> Vec<Count> {
    groups.iter().for_each(|group| group.bell.silence());
    pass(lasting);
    let count = |group: &Group<'_>| {
        let rings = group.bell.rings();
        let of = |event: &str| rings.iter().filter(|ring| ring.event == event).count();
        let program = group.program.name();
        Count { program, takeovers: of("elected"), reaffirmed: of("reaffirmed") }
    };
    groups.iter().map(count).collect()
}

/// A program that has ended takes over nothing.
fn assert_alive(groups: &[Group<'_>]) {
    for group in groups {
        group.settled_leader();
    }
}

/// `counts` has the programs' groups for one condition after the other.
fn report(file: &str, what: &str, lasted: Duration, conditions: &[String], counts: &[Count]) {
    let programs = counts.len() / conditions.len();
    let lasted = humantime::format_duration(lasted);
    let title = format!("False takeovers in {lasted}, {what}");
    let headings = ["", "", "takeovers", "reaffirmed", &format!("to {YARDSTICK}")];
    let mut table = Table::new(2, headings);
    for (condition, counts) in conditions.iter().zip(counts.chunks(programs)) {
        let yardstick = counts.iter().find(|count| count.program == YARDSTICK);
        let yardstick = yardstick.map(|count| count.takeovers as f64);
        for count in counts {
            table.row([
                condition,
                count.program,
                &count.takeovers.to_string(),
                &count.reaffirmed.to_string(),
                &ratio(count.takeovers as f64, yardstick),
            ]);
        }
    }
    println!("{title}\n{table}");
    let series = |nth: usize| Bars {
        name: counts[nth].program.to_owned(),
        values: counts.chunks(programs).map(|counts| Some(counts[nth].takeovers as f64)).collect(),
    };
    let groups: Vec<&str> = conditions.iter().map(String::as_str).collect();
    let series: Vec<Bars> = (0..programs).map(series).collect();
    report::save(file, &svg::bars(&title, "takeovers", &groups, &series));
}

/// A process that does nothing, as fast as it can. Dropping it ends it.
struct Busy(Child);

impl Busy {
    fn start() -> Busy {
        Busy(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
