//! What a daemon keeps while everything happens around it: it must not grow.

use std::fs;

use super::Host;
use super::patience::wait_for;

/// How much more memory a daemon may keep in the end than after its beginning, in kilobytes: the
/// allocator's slack, not what leaks with every datagram or election.
const GROWTH_MAX_KB: u64 = 256;

/// The allocator's settings for daemons whose memory is measured: large blocks have pages of their
/// own, and the top of the heap is given back. Otherwise glibc keeps several megabytes after an
/// answer about a full table, and a leak would fill these first.
pub(super) const GIVE_BACK: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536:glibc.malloc.trim_threshold=65536");

/// How many more descriptors: those of clients that ask just then.
const DESCRIPTORS_MORE: usize = 8;

/// What a host's daemon keeps, once it is the only process there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) resident_kb: u64,
    pub(crate) descriptors: usize,
}

impl Usage {
    pub(crate) fn of(host: &Host) -> Usage {
        // A hook, or a query that was just answered, may still be there.
        let pid = wait_for(&format!("{} runs nothing but its daemon", host.name), || {
            let pids = host.processes();
            pids.first().filter(|_| pids.len() == 1).copied()
        });
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kb = resident.split_whitespace().next().unwrap().parse().unwrap();
        Usage { resident_kb, descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() }
    }

    /// Panics where `later` shows that the daemon leaks.
    pub(crate) fn check_growth(self, later: Usage) {
        let grows = later.resident_kb > self.resident_kb + GROWTH_MAX_KB
            || later.descriptors > self.descriptors + DESCRIPTORS_MORE;
        assert!(!grows, "the daemon grows: {self:?} at first, {later:?} in the end");
    }
}
