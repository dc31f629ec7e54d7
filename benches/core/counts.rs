//! Instructions and allocations of one message, which are the same wherever they are counted.
//!
//! This program runs itself under valgrind, for each kind of work with two numbers of messages;
//! what the one run needs more than the other, divided by how many more messages it handles, is
//! what one message needs. Work with an authenticator is left out: valgrind hides the processor's
//! instructions for SHA-256, so that other code runs.

use std::env;
use std::process::{Command, Stdio};

use crate::WORK;

/// Asks for a kind of work and a number of messages, as `heartbeat 3=100`.
const REPEAT: &str = "LANELECT_BENCH_REPEAT";

/// The two numbers of messages; their difference is a multiple of every size of a group.
const FEW: u64 = 1_000;
const MANY: u64 = 13_000;

/// A tool of valgrind, and the words before the figure that it is run for.
struct Tool {
    options: &'static [&'static str],
    before_figure: &'static str,
}

const INSTRUCTIONS: Tool = Tool {
    options: &["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"],
    before_figure: "I   refs:",
};

const ALLOCATIONS: Tool =
    Tool { options: &["--tool=dhat", "--dhat-out-file=/dev/null"], before_figure: "bytes in " };

/// Does what valgrind is to count, where this is such a run.
pub(crate) fn repeat_as_asked() -> bool {
    let Ok(asked) = env::var(REPEAT) else { return false };
    let (name, times) = asked.split_once('=').unwrap();
    let (_, work) = WORK.iter().find(|(known, _)| *known == name).unwrap();
    let mut work = work();
    (0..times.parse().unwrap()).for_each(|_: u64| work());
    true
}

/// Prints a table of what was asked for on the command line.
pub(crate) fn report() {
    let asked: Vec<String> = env::args().skip(1).collect();
    if !asked.iter().any(|word| word == "--bench") || asked.iter().any(|word| word == "--list") {
        return;
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return println!(
            "no counts of instructions: `apt-get install valgrind` makes them possible"
        );
    }
    println!("{:<25} {:>12} {:>12}", "one message", "instructions", "allocations");
    let filters: Vec<&String> = asked.iter().filter(|word| !word.starts_with('-')).collect();
    let is_asked =
        |name: &str| filters.is_empty() || filters.iter().any(|word| name.contains(word.as_str()));
    for (name, _) in WORK {
        if is_asked(name) {
            let [instructions, allocations] =
                [INSTRUCTIONS, ALLOCATIONS].map(|tool| tool.count(name));
            println!("{name:<25} {instructions:>12.0} {allocations:>12.2}");
        }
    }
}

impl Tool {
    /// What one message of this work needs.
    fn count(&self, name: &str) -> f64 {
        let [few, many] = [FEW, MANY].map(|messages| self.run(name, messages));
        (many - few) as f64 / (MANY - FEW) as f64
    }

    fn run(&self, name: &str, messages: u64) -> u64 {
        let mut command = Command::new("valgrind");
        command.args(self.options).arg(env::current_exe().unwrap());
        let output = command.env(REPEAT, format!("{name}={messages}")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        self.figure(&text).unwrap_or_else(|| panic!("valgrind: {text}"))
    }

    fn figure(&self, text: &str) -> Option<u64> {
        let (_, rest) = text.split_once(self.before_figure)?;
        rest.split_whitespace().next()?.replace(',', "").parse().ok()
    }
}
