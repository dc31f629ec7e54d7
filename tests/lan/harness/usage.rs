//! What a daemon keeps while everything happens around it: it must not grow.

use std::fs;

use super::Host;
use super::host::ip;

/// How much more memory a daemon may keep in the end than after its beginning, in kilobytes: the
/// allocator's slack, not what leaks with every datagram or election.
const GROWTH_MAX_KB: u64 = 1024;

/// How many more descriptors: those of clients that ask just then.
const DESCRIPTORS_MORE: usize = 8;

/// What a host's daemon keeps now. It must be the only process there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) resident_kb: u64,
    pub(crate) descriptors: usize,
}

impl Usage {
    pub(crate) fn of(host: &Host) -> Usage {
        // Numbers of the machine's, as is `/proc`.
        let pids = ip(&format!("netns pids {}", host.name));
        let [pid] = pids.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{} runs more than its daemon: {pids:?}", host.name)
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kb = resident.split_whitespace().next().unwrap().parse().unwrap();
        Usage { resident_kb, descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() }
    }

    /// Panics where a daemon keeps more memory after each of several equal rounds. What the
    /// allocator needs for telling of a full table it takes once, in any of them; what leaks comes
    /// with every round.
    pub(crate) fn check_that_it_rests(rounds: &[Usage]) {
        let rests = rounds.windows(2).any(|pair| pair[1].resident_kb <= pair[0].resident_kb);
        assert!(rests, "the daemon grows with every round: {rounds:?}");
        let descriptors = || rounds.iter().map(|usage| usage.descriptors);
        let more = descriptors().max().zip(descriptors().min()).map(|(most, least)| most - least);
        assert!(more <= Some(DESCRIPTORS_MORE), "the daemon keeps descriptors: {rounds:?}");
    }

    /// Panics where `later` shows that the daemon leaks.
    pub(crate) fn check_growth(self, later: Usage) {
        let grows = later.resident_kb > self.resident_kb + GROWTH_MAX_KB
            || later.descriptors > self.descriptors + DESCRIPTORS_MORE;
        assert!(!grows, "the daemon grows: {self:?} at first, {later:?} in the end");
    }
}
