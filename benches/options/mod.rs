//! What is asked of a benchmark by its arguments and by the environment.

use std::time::Duration;
use std::{env, process};

/// Samples of a time; 30 where it is not set.
const SAMPLES: &str = "LANELECT_BENCH_SAMPLES";

/// Runs the measurements whose name, or its last part, begins with the word that was given, or all.
/// Where none does, or an option is given, it tells their names instead.
///
/// Each runs in a process of its own, which is told its name as the tests' are.
pub(crate) fn run(measurements: &[(&str, fn())]) {
    let asked: Vec<String> = env::args().skip(1).collect();
    let exact = asked.iter().any(|word| word == "--exact");
    if !exact && !asked.iter().any(|word| word == "--bench") {
        return println!("measures only under `cargo bench`");
    }
    let word = asked.iter().find(|word| !word.starts_with('-'));
    let is_asked = |name: &str| match word {
        Some(word) if exact => name == word,
        Some(word) => name.starts_with(word) || name.rsplit("::").next().unwrap().starts_with(word),
        None => true,
    };
    let chosen: Vec<_> = measurements.iter().filter(|(name, _)| is_asked(name)).collect();
    let has_option = asked.iter().any(|word| word.starts_with('-') && word != "--bench");
    if chosen.is_empty() || has_option && !exact {
        let names: Vec<&str> = measurements.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: cargo bench --bench BENCHMARK [-- MEASUREMENT], of: {}", names.join(" "));
        process::exit(2);
    }
    for (name, measurement) in chosen {
        if !exact {
            println!("{name}");
        }
        measurement();
    }
}

/// How many samples of a time are taken.
pub(crate) fn samples() -> usize {
    env::var(SAMPLES).map_or(30, |text| text.parse().expect("a number of samples"))
}

/// A duration that the environment may set, such as `60s`.
pub(crate) fn duration(variable: &str, default: Duration) -> Duration {
    env::var(variable).map_or(default, |text| humantime::parse_duration(&text).expect("a duration"))
}
