//! Whole daemons under a seeded schedule: their event loops, the threads that write and read files,
//! the clients of their hook-runners and their control sockets, in virtual time.
//!
//! ```text
//! cargo test --lib daemon::event_loop::simulation                              some seeds
//! LANELECT_SHELL_SEEDS=1000 LANELECT_SHELL_FROM=7 cargo test --lib simulation  a thousand, from 7
//! LANELECT_SHELL_SEEDS=1 LANELECT_SHELL_FROM=7 LANELECT_SHELL_TRACE=1 …        one, told in full
//! ```
//!
//! The simulator in `tests/sim` proves what it proves of the election. Here the daemon around that
//! election is the real one: its sockets, its files and its poll are the kernel's. Of a seed come
//! the time, which may jump wherever the daemon reads the clock; what the network does with each
//! datagram; when a disk, a hook or a reload is done, and how it ends; and who asks what.

mod clients;
mod crash;
mod guarantees;
mod hook_runner;
mod host;
mod process;
mod scenario;
mod world;

use std::env;
use std::panic;
use std::process::Command;

use tempfile::TempDir;

use super::tests::run_alone;

/// Seeds of each test if nothing else is said.
const SEEDS: u64 = 25;

/// Seeds that have failed, each for a reason of its own. They run before those that begin at 1.
const FAILED_BEFORE: [u64; 3] = [376, 170_710_431_132, 170_710_431_533];

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// Runs a share of the seeds.
fn run_seeds(share: u64) {
    // On a disk in memory, each save takes no time.
    let dir = TempDir::new().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(dir.path()).status();
    assert!(mounted.unwrap().success());
    let from = number("LANELECT_SHELL_FROM");
    let before = FAILED_BEFORE.into_iter().filter(|_| from.is_none());
    let from = from.unwrap_or(1);
    let seeds = number("LANELECT_SHELL_SEEDS").unwrap_or(2 * SEEDS);
    let trace = env::var_os("LANELECT_SHELL_TRACE").is_some();
    let mut total = scenario::Tally::default();
    for seed in before.chain(from..from + seeds).filter(|seed| seed % 2 == share) {
        let tally = panic::catch_unwind(|| scenario::run(seed, dir.path(), trace));
        match tally {
            Ok(tally) => total.add(&tally),
            Err(payload) => {
                eprintln!(
                    "seed {seed} failed; replay: LANELECT_SHELL_SEEDS=1 LANELECT_SHELL_FROM={seed} \
                     LANELECT_SHELL_TRACE=1 cargo test --lib simulation -- --nocapture"
                );
                panic::resume_unwind(payload);
            }
        }
    }
    println!("{total}");
    let unmounted = Command::new("umount").arg("-l").arg(dir.path()).status();
    assert!(unmounted.unwrap().success());
}

#[test]
fn daemons_keep_their_promises_in_available_mode() {
    run_alone("simulation::daemons_keep_their_promises_in_available_mode", || run_seeds(0));
}

#[test]
fn daemons_keep_their_promises_in_quorum_mode() {
    run_alone("simulation::daemons_keep_their_promises_in_quorum_mode", || run_seeds(1));
}
