//! The model checker: everything that may happen to three voters within bounds, played with the
//! very election core of the daemon.
//!
//! ```text
//! cargo test --test model                                 half a minute of two processors
//! LANELECT_LONG=1 cargo test --test model                 before a release
//! cargo test --release --test model -- --deep --threads 1 wider bounds; minutes, and 20 GB
//! cargo test --test model -- --only "failover: two slips"
//! ```
//!
//! The bounds are a number of ticks, and what may go wrong meanwhile. Within them a scenario
//! explores either all interleavings of everything, which a few ticks of one election are enough
//! for, or the expected course with every combination of a few exceptions from it, over whole
//! failovers. The exceptions: a daemon crashes, before any step that it is about to take, and
//! starts again at once or later; its disk is lost as well; links are cut; a datagram is lost,
//! late, out of order or comes twice; a write or a hook takes its time; a daemon is held.
//!
//! Checked in every state: at most one node leads, asked with a fresh clock; the hooks of at most
//! one hold what is for one, within the grace that is theirs; no term has two leaders, and terms
//! told to hooks only grow; nobody says that it leads without a lease; nobody votes twice in a
//! term, and no vote, acknowledgement, term or life is told before it is on disk. And from wherever
//! an exploration ends somebody is elected once nothing goes wrong any more; as time can always go
//! on to there, an election is in reach from every state.
//!
//! The search is breadth-first over hashes, so what is found first has the shortest way to it.

mod clock;
mod explore;
mod fair;
mod group;
mod node;
mod sabotage;
mod scenarios;
mod schedule;
mod words;

use std::env;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::explore::{Failure, Tally};
use crate::sabotage::Sabotage;
use crate::scenarios::{Extent, Scenario};

/// Explores what may happen to three voters, and checks what must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// With wider bounds.
    #[arg(long)]
    deep: bool,
    /// The scenario of this name alone.
    #[arg(long)]
    only: Option<String>,
    /// How many explorations go on at once; as many as there are processors if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Filters and options of other test harnesses; they select nothing here.
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    ignored: Vec<String>,
}

/// Set: the tests that may take any time take more than in every run.
const LONG: &str = "LANELECT_LONG";

/// More states than any scenario has; beyond, something makes equal states differ.
const STATES_MAX: usize = 60_000_000;

impl Arguments {
    fn extent(&self) -> Extent {
        if self.deep || self.only.is_some() {
            Extent::Deep
        } else if env::var_os(LONG).is_some() {
            Extent::Long
        } else {
            Extent::Quick
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut scenarios = scenarios::all(arguments.extent());
    if let Some(name) = &arguments.only {
        scenarios.retain(|scenario| scenario.name == name);
        if scenarios.is_empty() {
            println!("there is no scenario {name:?}");
            return ExitCode::FAILURE;
        }
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(processors);
    println!(
        "{:32} {:>9} {:>11} {:>6} {:>8} {:>9} {:>8} {:>8}",
        "scenario", "states", "transitions", "depth", "hosts'", "ends", "vacancy", "seconds"
    );
    let mut well = in_parallel(threads, scenarios, |scenario| {
        let (outcome, took) = timed(|| scenario.explore(None, STATES_MAX));
        report(&scenario, outcome, took)
    });
    if arguments.only.is_none() && !arguments.deep {
        well = well && in_parallel(threads, Sabotage::ALL.to_vec(), shows_sabotage);
    }
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what became of an exploration, and tells whether all was well.
fn report(scenario: &Scenario, outcome: Result<Tally, Failure>, took: Duration) -> bool {
    match outcome {
        Ok(Tally { states, transitions, depth, nodes, ends, vacancy }) => {
            println!(
                "{:32} {states:9} {transitions:11} {depth:6} {nodes:8} {ends:9} {vacancy:8} {:8.1}",
                scenario.name,
                took.as_secs_f64()
            );
            true
        }
        Err(failure) => {
            println!("{}: FAILED\n{failure}", scenario.name);
            false
        }
    }
}

/// Demands that the scenario in which a broken world shows itself fails.
fn shows_sabotage(sabotage: Sabotage) -> bool {
    let name = sabotage.scenario();
    let scenarios = scenarios::all(Extent::Long);
    let scenario = scenarios.iter().find(|scenario| scenario.name == name);
    match scenario.map(|scenario| scenario.explore(Some(sabotage), STATES_MAX)) {
        Some(Err(Failure { breach, way })) => {
            println!("{sabotage:?}: noticed after {} steps of {name}: {breach}", way.len());
            true
        }
        Some(Ok(_)) => {
            println!("{sabotage:?}: FAILED, {name} does not notice it");
            false
        }
        None => {
            println!("{sabotage:?}: FAILED, there is no scenario {name:?}");
            false
        }
    }
}

/// Does `what` to each of `jobs`, and tells whether all was well. What is not will be explained at
/// length, so nothing is begun after it.
fn in_parallel<T: Send>(threads: usize, jobs: Vec<T>, what: impl Fn(T) -> bool + Sync) -> bool {
    let jobs = Mutex::new(jobs.into_iter());
    let well = AtomicBool::new(true);
    let next = || jobs.lock().ok()?.next().filter(|_| well.load(Ordering::Relaxed));
    let worker = || {
        while let Some(job) = next() {
            well.fetch_and(what(job), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
    });
    well.into_inner()
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "tells how long an exploration takes")]
    let start = Instant::now();
    let result = what();
    (result, start.elapsed())
}
