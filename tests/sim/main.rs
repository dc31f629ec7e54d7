//! The simulator: the very election core of the daemon, thousands of times faster than time.
//!
//! ```text
//! cargo test --test sim                                  what CI runs
//! cargo test --release --test sim -- --seeds 1000000     a long run
//! cargo test --test sim -- --seed 42 --trace             one run again, with everything it does
//! cargo test --release --test sim -- --speed             simulated time per wall-clock time
//! ```

#![expect(clippy::expect_used, reason = "a test may fail where its own footing gives way")]

mod checkers;
mod model;
mod network;
mod speed;
mod swarm;
mod world;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use clap::Parser;

use crate::checkers::Violation;
use crate::swarm::Tally;
use crate::world::Sabotage;

/// How many seeds CI runs.
const SEEDS: u64 = 3000;

/// Runs random groups under random faults and checks what must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Run just this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print everything that happens.
    #[arg(long)]
    trace: bool,
    /// Measure simulated time per wall-clock time instead.
    #[arg(long)]
    speed: bool,
    /// Filters and options of other test harnesses; they select nothing here.
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    ignored: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.speed {
        speed::measure();
        return ExitCode::SUCCESS;
    }
    let seeds = match arguments.seed {
        Some(seed) => seed..seed + 1,
        None => arguments.from..arguments.from + arguments.seeds,
    };
    let mut passed = 0;
    let mut failed = 0;
    let mut report = |name: &str, outcome: Result<String, String>| match outcome {
        Ok(summary) => {
            passed += 1;
            println!("{name}: ok, {summary}");
        }
        Err(failure) => {
            failed += 1;
            println!("{name}: FAILED\n{failure}");
        }
    };
    report("swarm", run_swarm(seeds.clone(), arguments.trace));
    if arguments.seed.is_none() {
        report("model", model::compare(arguments.from..arguments.from + arguments.seeds / 2));
        report("sabotage", check_that_checkers_bite());
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs every seed, on as many threads as there are processors.
fn run_swarm(seeds: std::ops::Range<u64>, trace: bool) -> Result<String, String> {
    let count = seeds.end - seeds.start;
    let total = for_all(seeds, |seed| swarm::run(seed, trace, None))
        .map_err(|(seed, violation)| explain(seed, &violation))?;
    Ok(format!(
        "{count} seeds, {:.1} simulated hours, {} datagrams, {} faults and commands",
        total.simulated as f64 / 3.6e12,
        total.sent,
        total.disturbances,
    ))
}

fn explain(seed: u64, violation: &Violation) -> String {
    format!("  seed {seed}: {violation}\n  replay: cargo test --test sim -- --seed {seed} --trace")
}

/// Breaks the world on purpose, in each way, and demands that some seed shows it.
fn check_that_checkers_bite() -> Result<String, String> {
    let ways = [
        Sabotage::IgnoreBetterLeaders,
        Sabotage::ForgetPersisted,
        Sabotage::ReportHooksEarly,
        Sabotage::SpeakAfterStop,
    ];
    for sabotage in ways {
        let caught = (1..200).any(|seed| swarm::run(seed, false, Some(sabotage)).is_err());
        if !caught {
            return Err(format!("  {sabotage:?} went unnoticed in 200 seeds"));
        }
    }
    Ok(format!("{} ways to break the world, all noticed", ways.len()))
}

/// Runs `run` for each seed on every processor; the first violation ends it all.
pub fn for_all(
    seeds: std::ops::Range<u64>,
    run: impl Fn(u64) -> Result<Tally, Violation> + Sync,
) -> Result<Tally, (u64, Violation)> {
    let next = AtomicU64::new(seeds.start);
    let over = AtomicBool::new(false);
    let worker = || {
        let mut total = Tally::default();
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let tally = run(seed).map_err(|violation| {
                over.store(true, Ordering::Relaxed);
                (seed, violation)
            })?;
            total.add(&tally);
        }
        Ok(total)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut total = Tally::default();
        for handle in workers {
            total.add(&handle.join().expect("a worker panicked")?);
        }
        Ok(total)
    })
}
