//! The model checker: everything that may happen to three voters within bounds.
//!
//! ```text
//! cargo test --test model                             what CI runs
//! cargo test --release --test model -- --deep         wider bounds
//! cargo test --test model -- --scenario failover      one scenario
//! ```

mod clock;
mod explore;
mod fair;
mod group;
mod node;
mod sabotage;
mod scenarios;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

/// Explores what may happen to three voters, and checks what must hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// With wider bounds.
    #[arg(long)]
    deep: bool,
    /// This scenario alone.
    #[arg(long)]
    scenario: Option<String>,
    #[arg(long, default_value_t = 20_000_000)]
    states_max: usize,
    /// Filters and options of other test harnesses; they select nothing here.
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    ignored: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut failed = false;
    for scenario in scenarios::all(arguments.deep) {
        if arguments.scenario.as_ref().is_some_and(|name| name != scenario.name) {
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "tells how long it took")]
        let start = Instant::now();
        match scenario.explore(None, arguments.states_max) {
            Ok(tally) => println!("{}: ok {tally:?} {:?}", scenario.name, start.elapsed()),
            Err(failure) => {
                failed = true;
                println!("{}: FAILED: {}  {:?}", scenario.name, failure.breach, start.elapsed());
                failure.way.iter().for_each(|line| println!("    {line}"));
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
