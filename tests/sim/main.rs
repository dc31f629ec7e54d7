//! The simulator: the very election core of the daemon, thousands of times faster than time.
//!
//! ```text
//! cargo test --test sim                                  a fixed range, and one of this commit
//! cargo test --release --test sim -- --seeds 200000      a long run, of seeds that nobody has run
//! cargo test --release --test sim -- --minutes 60        as many as there is time for
//! cargo test --test sim -- --seeds 200000 --from 1000    the same seeds each time
//! cargo test --test sim -- --seed 42 --trace             one run again, with everything it does
//! cargo test --test sim -- --seed 42 --model --trace     one comparison with the model again
//! cargo test --test sim -- --seed 42 --quorum --trace    one run of quorum mode again
//! cargo test --test sim -- --record DIR --seeds 100      writes runs of quorum mode down
//! cargo test --release --test sim -- --speed             simulated time per wall-clock time
//! ```
//!
//! `--quorum` runs quorum mode alone and `--available` available mode alone; without either both
//! run. A failing seed does not end a run: all of them are listed at its end, each with the command
//! that replays it, and the exit status is not 0.

#![expect(clippy::expect_used, reason = "a test may fail where its own footing gives way")]

mod available;
mod fresh;
mod handovers;
mod quorum;
mod silence;
mod speed;
mod sweep;
mod watch;
mod world;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::available::{model, swarm};
use crate::sweep::{Seeds, sweep};
use crate::watch::Violation;
use crate::world::Sabotage;

/// Runs random groups under random faults and checks what must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds to run of each kind.
    #[arg(long)]
    seeds: Option<u64>,
    /// For how long to run, all kinds together.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// The first seed; without it a long run begins at the fresh range of this commit.
    #[arg(long)]
    from: Option<u64>,
    /// Run just this seed.
    #[arg(long, conflicts_with_all = ["seeds", "minutes", "from"])]
    seed: Option<u64>,
    /// End at the first failing seed.
    #[arg(long)]
    first: bool,
    /// Print everything that happens.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// With a seed: compare with the reference model instead of running the swarm.
    #[arg(long, requires = "seed")]
    model: bool,
    /// Quorum mode.
    #[arg(long, conflicts_with = "model")]
    quorum: bool,
    /// Available mode.
    #[arg(long)]
    available: bool,
    /// Write each run of quorum mode into this directory, for `tests/spec/traces`.
    #[arg(long, value_name = "DIRECTORY", requires = "seeds")]
    record: Option<PathBuf>,
    /// Lines of each of these files at the most.
    #[arg(long, requires = "record", default_value_t = 1000)]
    lines: usize,
    /// Measure simulated time per wall-clock time instead.
    #[arg(long)]
    speed: bool,
    /// Filters and options of other test harnesses; they select nothing here.
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    ignored: Vec<String>,
}

/// What a seed determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A group in available mode under faults.
    Swarm,
    /// A group in available mode beside the reference model.
    Model,
    /// A group in quorum mode under faults.
    Quorum,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Swarm, Kind::Model, Kind::Quorum];

    const fn name(self) -> &'static str {
        match self {
            Kind::Swarm => "swarm",
            Kind::Model => "model",
            Kind::Quorum => "quorum",
        }
    }

    /// How many seeds `cargo test` runs of the fresh range, and a fifth of that of the fixed one:
    /// seeds that were run before show little.
    const fn usual(self) -> u64 {
        match self {
            Kind::Swarm => 500,
            Kind::Model => 250,
            Kind::Quorum => 1000,
        }
    }

    fn replay(self, seed: u64) -> String {
        let mode = match self {
            Kind::Swarm => "--available",
            Kind::Model => "--model",
            Kind::Quorum => "--quorum",
        };
        format!("cargo test --test sim -- --seed {seed} {mode} --trace")
    }

    /// Runs `seeds`, and tells what came of them in words.
    fn run(self, seeds: &Seeds, trace: bool) -> Outcome {
        match self {
            Kind::Swarm => Outcome::of(
                sweep(seeds, |seed| swarm::run(seed, trace, None), swarm::Tally::add),
                swarm::Tally::summary,
            ),
            Kind::Model => Outcome::of(
                sweep(seeds, |seed| model::run(seed, trace), swarm::Tally::add),
                model::summary,
            ),
            Kind::Quorum => Outcome::of(
                sweep(seeds, |seed| quorum::run(seed, trace, None), quorum::Tally::add),
                quorum::Tally::summary,
            ),
        }
    }
}

/// What came of many seeds of one kind.
struct Outcome {
    count: u64,
    summary: String,
    failures: Vec<(u64, Violation)>,
}

impl Outcome {
    fn of<T>(sweep: sweep::Sweep<T>, summary: impl Fn(&T) -> String) -> Self {
        let sweep::Sweep { total, count, failures } = sweep;
        Outcome { count, summary: summary(&total), failures }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.speed {
        speed::measure();
        return ExitCode::SUCCESS;
    }
    let failures = run(&arguments);
    if failures.is_empty() {
        println!("no violation");
        return ExitCode::SUCCESS;
    }
    println!("\n{} failed:", failures.len());
    for failure in failures {
        println!("  {failure}");
    }
    ExitCode::FAILURE
}

/// Runs what is asked for, and returns what failed.
fn run(arguments: &Arguments) -> Vec<String> {
    if let Some(directory) = &arguments.record {
        let from = arguments.from.unwrap_or_else(|| announce_fresh().from);
        let seeds = from..from + arguments.seeds.unwrap_or_default();
        return record(directory, seeds, arguments.lines);
    }
    let kinds = arguments.kinds();
    if let Some(seed) = arguments.seed {
        let range = seed..seed + 1;
        return run_kind(kinds[0], &Seeds { range, until: None, first: true }, arguments.trace);
    }
    if arguments.is_long() {
        let from = arguments.from.unwrap_or_else(|| announce_fresh().from);
        let end = arguments.seeds.map_or(u64::MAX, |seeds| from.saturating_add(seeds));
        let share = arguments.minutes.map(|minutes| {
            Duration::from_secs_f64((minutes * 60.0 / kinds.len() as f64).clamp(0.0, 1e9))
        });
        let first = arguments.first;
        let run = |kind: &Kind| {
            let until = share.map(|share| now() + share);
            run_kind(*kind, &Seeds { range: from..end, until, first }, false)
        };
        return kinds.iter().flat_map(run).collect();
    }
    let fresh = announce_fresh().from;
    let run = |kind: &Kind| {
        let seeds = |from: u64, count: u64| {
            let range = from..from + count;
            Seeds { range, until: None, first: arguments.first }
        };
        let mut failures = run_kind(*kind, &seeds(1, kind.usual() / 5), false);
        failures.append(&mut run_kind(*kind, &seeds(fresh, kind.usual()), false));
        failures
    };
    let mut failures: Vec<_> = kinds.iter().flat_map(run).collect();
    failures.extend(check_that_checkers_bite(&kinds));
    failures
}

fn record(directory: &Path, seeds: Range<u64>, lines: usize) -> Vec<String> {
    let write = |seed: u64| {
        let Some(text) = quorum::record(seed, lines) else { return Ok(()) };
        let file = directory.join(format!("{seed}.jsonl"));
        fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
    };
    seeds.filter_map(|seed| write(seed).err()).collect()
}

impl Arguments {
    /// Whether it is a run of its own, and not what `cargo test` runs.
    const fn is_long(&self) -> bool {
        self.seeds.is_some() || self.minutes.is_some() || self.from.is_some()
    }

    fn kinds(&self) -> Vec<Kind> {
        let both = self.quorum == self.available;
        if self.model {
            return vec![Kind::Model];
        }
        let wanted = |kind: &Kind| match kind {
            Kind::Quorum => self.quorum || (both && self.seed.is_none()),
            Kind::Swarm | Kind::Model => self.available || both,
        };
        Kind::ALL.into_iter().filter(wanted).collect()
    }
}

fn announce_fresh() -> fresh::Fresh {
    let fresh = fresh::of_this_commit();
    println!("fresh seeds begin at {}, derived from {}", fresh.from, fresh.origin);
    fresh
}

#[expect(clippy::disallowed_methods, reason = "it ends when the time is up that really passes")]
fn now() -> Instant {
    Instant::now()
}

fn run_kind(kind: Kind, seeds: &Seeds, trace: bool) -> Vec<String> {
    let Outcome { count, summary, failures } = kind.run(seeds, trace);
    let (name, from) = (kind.name(), seeds.range.start);
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    println!("{name}: {verdict}, {count} seeds from {from} on, {summary}");
    let explain = |(seed, violation): (u64, Violation)| {
        format!("{name}, seed {seed}: {violation}\n    {}", kind.replay(seed))
    };
    failures.into_iter().map(explain).collect()
}

/// Breaks the world on purpose, in each way, and demands that some seed shows it.
fn check_that_checkers_bite(kinds: &[Kind]) -> Vec<String> {
    let bite = |kind: &Kind| {
        let (ways, seeds): (&[Sabotage], u64) = match kind {
            Kind::Swarm => (&Sabotage::OF_AVAILABLE_MODE, 200),
            Kind::Model => (&[], 0),
            Kind::Quorum => (&Sabotage::OF_QUORUM_MODE, 500),
        };
        let notices = |seed: u64, sabotage: Sabotage| match kind {
            Kind::Swarm | Kind::Model => swarm::run(seed, false, Some(sabotage)).is_err(),
            Kind::Quorum => quorum::run(seed, false, Some(sabotage)).is_err(),
        };
        let unnoticed = |way: &&Sabotage| !(1..seeds).any(|seed| notices(seed, **way));
        let unnoticed: Vec<_> = ways.iter().filter(unnoticed).collect();
        let name = kind.name();
        println!("{name}, sabotage: {} of {} ways unnoticed", unnoticed.len(), ways.len());
        let explain = |way| format!("{name}: {way:?} went unnoticed in {seeds} seeds");
        unnoticed.into_iter().map(explain).collect::<Vec<_>>()
    };
    kinds.iter().filter(|kind| **kind != Kind::Model).flat_map(bite).collect()
}
