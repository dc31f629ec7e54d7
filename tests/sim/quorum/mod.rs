//! Quorum mode: random groups of three to seven hosts with one to five voters, under every fault
//! that the promise is made against, and a few that break it where the documentation says so.
//!
//! # What is assumed, and so kept to by the faults
//!
//! * **Clocks** drift at most 1 % either way, and in half of the runs each is at one of the ends.
//! * **Disks** keep what was synced. While one hangs or fails no daemon starts on it. One that is
//!   lost, or torn and removed by the operator, is replaced by an empty one only where
//!   `faults::may_lose_disk` allows it: a majority of the voters still remember their votes, while
//!   the voters are being changed also of those of before; and for longer than any pledge lasts all
//!   nodes have had the same settings, by which the voters that testify reckon how long the
//!   forgotten pledges may be in force.
//! * **Voters** are changed one at a time, by restarting every node. A change begins only where all
//!   nodes run under the voters of the last one, and every voter that stays sees each other one
//!   count. One node at a time may have a wrong set, of at least two.
//! * **Duplicates** run in a network in which everybody hears everybody and has heard the holder of
//!   the id; the holder is not held meanwhile.
//! * **Hooks**, in guarded runs: a watchdog kills a daemon that is held for `W`, its unit's
//!   `post-stop` then has the hooks let go, and a demote hook takes at most `D`, where `W + 2 D ≤
//!   G`, the demote grace. A daemon that is held when its lease ends has lost up to `W` of the
//!   grace; then it may have to cut an `elected` short, which takes up to half of what is left, and
//!   the other half must do for `demoted`. A daemon is not held twice within one lease and its
//!   grace. Without that guard overlaps of hooks are counted; leadership is promised all the same.
//!
//! * **Broken members**: fewer than half of the voters, and any others, tell wrong terms. None lies
//!   in what asks for a promise, gives one or ends one: no majority protocol bears that.
//! * **An attacker without the key**, where a host accepts open datagrams, lies in nothing of that
//!   either. From then on no disk is lost and no duplicate runs, until the end: a forged number
//!   hides them. In the end all hosts require keys, and what was forged excuses only that a voter
//!   waits for its patience before its own vote counts.
//!
//! Nothing else is: datagrams are lost, doubled, late by minutes, replayed alone or in
//! the order of a life's words, however old; daemons are held at any
//! point for any time, and crash at any point between deciding, saving and sending.

mod disks;
mod duplicates;
mod endings;
mod faults;
mod guarantees;
mod leaderships;
mod ledger;
mod recorder;
mod scenario;
mod settings;
mod voters;

use crate::watch::Violation;
use crate::world::Sabotage;
use scenario::Scenario;

/// What came of one run, or of many.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Simulated time, in nanoseconds.
    pub simulated: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Faults and commands.
    pub disturbances: u64,
    /// `elected` hooks.
    pub elected: u64,
    /// Votes and acknowledgements.
    pub granted: u64,
    /// Requests to save something.
    pub saves: u64,
    /// Runs without watchdog and post-stop, and how often hooks overlapped in them.
    pub unguarded: u64,
    pub overlaps: u64,
    /// Fence commands in them.
    pub fences: u64,
    /// The longest time that a mended group took for a leader, in thousandths of the bound.
    pub slowest: u64,
}

impl Tally {
    /// Adds another run's counts to these.
    pub fn add(&mut self, other: &Tally) {
        self.simulated += other.simulated;
        self.sent += other.sent;
        self.disturbances += other.disturbances;
        self.elected += other.elected;
        self.granted += other.granted;
        self.saves += other.saves;
        self.unguarded += other.unguarded;
        self.overlaps += other.overlaps;
        self.fences += other.fences;
        self.slowest = self.slowest.max(other.slowest);
    }

    /// What came of many runs, in words.
    pub fn summary(&self) -> String {
        format!(
            "{:.1} simulated hours, {} datagrams, {} faults and commands, {} leaderships, \
             {} promises, {} saves; mended groups had their leader within {:.1} % of the bound; \
             without watchdog and post-stop, hooks overlapped {} times in {} seeds, {:.1} in a \
             thousand, and the fence ran {} times",
            self.simulated as f64 / 3.6e12,
            self.sent,
            self.disturbances,
            self.elected,
            self.granted,
            self.saves,
            self.slowest as f64 / 10.0,
            self.overlaps,
            self.unguarded,
            self.overlaps as f64 * 1000.0 / self.unguarded.max(1) as f64,
            self.fences,
        )
    }
}

/// Runs the scenario of `seed`.
pub fn run(seed: u64, trace: bool, sabotage: Option<Sabotage>) -> Result<Tally, Violation> {
    Scenario::new(seed, trace, sabotage).play()
}

/// Runs the scenario of `seed`, and returns what is to be written of it: JSON lines, the settings
/// first. None if the specification does not have the settings.
pub fn record(seed: u64, longest: usize) -> Option<String> {
    let record = Scenario::new(seed, false, None).record(longest);
    record.map(|record| record.text(seed))
}

/// A violation of the guarantee `which`, where `bad`.
fn broken(which: &str, bad: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    crate::watch::refuse(bad, || format!("{which}: {}", what()))
}
