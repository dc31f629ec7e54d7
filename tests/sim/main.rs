//! The simulator: the very election core of the daemon, thousands of times faster than time.
//!
//! ```text
//! cargo test --test sim                                  what CI runs
//! cargo test --release --test sim -- --seeds 1000000     a long run
//! cargo test --test sim -- --seed 42 --trace             one run again, with everything it does
//! cargo test --test sim -- --seed 42 --model --trace     one comparison with the model again
//! cargo test --release --test sim -- --quorum --seeds 200000    a long run of quorum mode alone
//! cargo test --test sim -- --seed 42 --quorum --trace    one run of it again
//! cargo test --release --test sim -- --speed             simulated time per wall-clock time
//! ```

#![expect(clippy::expect_used, reason = "a test may fail where its own footing gives way")]

mod available;
mod quorum;
mod speed;
mod watch;
mod world;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use clap::Parser;

use crate::available::model;
use crate::available::swarm::{self, Tally};
use crate::watch::Violation;
use crate::world::Sabotage;

/// How many seeds CI runs, of available and of quorum mode.
const SEEDS: u64 = 3000;
const QUORUM_SEEDS: u64 = 5000;

/// Runs random groups under random faults and checks what must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Run just this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print everything that happens.
    #[arg(long)]
    trace: bool,
    /// With a seed: compare with the reference model instead of running the swarm.
    #[arg(long, requires = "seed")]
    model: bool,
    /// Quorum mode alone.
    #[arg(long, conflicts_with = "model")]
    quorum: bool,
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
    let mut passed = 0;
    let mut failed = 0;
    for (name, check) in checks(&arguments) {
        match check() {
            Ok(summary) => {
                passed += 1;
                println!("{name}: ok, {summary}");
            }
            Err(failure) => {
                failed += 1;
                println!("{name}: FAILED\n{failure}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Check<'a> = (&'static str, Box<dyn Fn() -> Result<String, String> + 'a>);

/// What is asked for.
fn checks(arguments: &Arguments) -> Vec<Check<'_>> {
    let Arguments { from, trace, .. } = *arguments;
    let seeds = move |count: u64| match arguments.seed {
        Some(seed) => seed..seed + 1,
        None => from..from + arguments.seeds.unwrap_or(count),
    };
    let swarm: Check = ("swarm", Box::new(move || run_swarm(seeds(SEEDS), trace)));
    let quorum: Check = ("quorum", Box::new(move || run_quorum(seeds(QUORUM_SEEDS), trace)));
    let bite: Check = ("quorum sabotage", Box::new(quorum_checkers_bite));
    match (arguments.seed, arguments.quorum) {
        (Some(_), true) => vec![quorum],
        (Some(seed), _) if arguments.model => {
            vec![("model", Box::new(move || run_model(seed, trace)))]
        }
        (Some(_), false) => vec![swarm],
        (None, true) => vec![quorum, bite],
        (None, false) => {
            let halved = from..from + arguments.seeds.unwrap_or(SEEDS) / 2;
            let model: Check = ("model", Box::new(move || model::compare(halved.clone())));
            vec![swarm, model, ("sabotage", Box::new(check_that_checkers_bite)), quorum, bite]
        }
    }
}

/// Runs every seed, on as many threads as there are processors.
fn run_swarm(seeds: std::ops::Range<u64>, trace: bool) -> Result<String, String> {
    let count = seeds.end - seeds.start;
    let total = for_all(seeds, |seed| swarm::run(seed, trace, None), Tally::add)
        .map_err(|(seed, violation)| explain(seed, &violation))?;
    Ok(format!(
        "{count} seeds, {:.1} simulated hours, {} datagrams, {} faults and commands",
        total.simulated as f64 / 3.6e12,
        total.sent,
        total.disturbances,
    ))
}

/// The same for quorum mode.
fn run_quorum(seeds: std::ops::Range<u64>, trace: bool) -> Result<String, String> {
    let count = seeds.end - seeds.start;
    let run = |seed| quorum::run(seed, trace, None);
    let total = for_all(seeds, run, quorum::Tally::add).map_err(|(seed, violation)| {
        let replay = format!("cargo test --test sim -- --seed {seed} --quorum --trace");
        format!("  seed {seed}: {violation}\n  replay: {replay}")
    })?;
    Ok(total.summary(count))
}

fn run_model(seed: u64, trace: bool) -> Result<String, String> {
    let tally = model::run(seed, trace).map_err(|violation| format!("  {violation}"))?;
    Ok(format!("{} events, the same leaders after each", tally.disturbances))
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

/// The same for quorum mode.
fn quorum_checkers_bite() -> Result<String, String> {
    let ways = [
        Sabotage::ForgetPersisted,
        Sabotage::ReportHooksEarly,
        Sabotage::SpeakAfterStop,
        Sabotage::ReportWritesEarly,
        Sabotage::SendDeadDeclarations,
    ];
    for sabotage in ways {
        let caught = (1..500).any(|seed| quorum::run(seed, false, Some(sabotage)).is_err());
        if !caught {
            return Err(format!("  {sabotage:?} went unnoticed in 500 seeds"));
        }
    }
    Ok(format!("{} ways to break the world, all noticed", ways.len()))
}

/// Runs `run` for each seed on every processor; the first violation ends it all.
pub fn for_all<T: Default + Send>(
    seeds: std::ops::Range<u64>,
    run: impl Fn(u64) -> Result<T, Violation> + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> Result<T, (u64, Violation)> {
    let next = AtomicU64::new(seeds.start);
    let over = AtomicBool::new(false);
    let worker = || {
        let mut total = T::default();
        while !over.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let tally = run(seed).map_err(|violation| {
                over.store(true, Ordering::Relaxed);
                (seed, violation)
            })?;
            add(&mut total, &tally);
        }
        Ok(total)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut total = T::default();
        for handle in workers {
            add(&mut total, &handle.join().expect("a worker panicked")?);
        }
        Ok(total)
    })
}
