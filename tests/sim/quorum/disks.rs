//! Disks that hang, and disks that fail.

use std::cmp::Reverse;

use super::broken;
use super::scenario::Scenario;
use crate::available::checkers::rank;
use crate::watch::Violation;
use crate::world::{DiskFault, nanos};

impl Scenario {
    /// A disk hangs or fails: for a moment, for about as long as a pledge lasts, or until it works
    /// again with all others.
    pub fn change_disk(&mut self, host: usize) {
        let fault = [DiskFault::Hangs, DiskFault::Fails][self.rng.usize(0..2)];
        let hold = nanos(self.settings.longest_hold());
        match self.rng.u8(0..5) {
            0 => self.world.set_disk_fault(host, fault),
            1..=3 => {
                let longest = [self.heartbeat, hold / 2, hold * 3][self.rng.usize(0..3)];
                let duration = self.rng.u64(0..=longest);
                self.world.set_disk_fault_for(host, fault, duration);
            }
            _ => self.mend_disks(),
        }
    }

    pub fn mend_disks(&mut self) {
        for host in 0..self.world.hosts.len() {
            self.world.set_disk_fault(host, DiskFault::None);
        }
    }

    /// Disks hang or fail, the best candidates' before others, while a majority of the voters has
    /// disks that work: a leader that is lost then is replaced as if those hosts were gone.
    pub fn lose_the_leader_beside_hung_disks(&mut self) -> Result<(), Violation> {
        let Some(leader) = (0..self.settings.hosts).find(|host| self.leads(*host)) else {
            return Ok(());
        };
        let vanishes = self.rng.bool();
        let spare = ((self.voters.len() - 1) / 2).saturating_sub(usize::from(vanishes));
        let mut others: Vec<_> = self.voters.iter().copied().filter(|it| *it != leader).collect();
        let standing = |voter: &usize| self.world.hosts[*voter].election.as_ref().map(rank);
        others.sort_by_key(|voter| Reverse(standing(voter)));
        let is_candidate = |voter: &usize| self.settings.params[*voter].candidate;
        let left: Vec<_> = others.split_off(spare.min(others.len()));
        if others.is_empty() || !left.iter().any(is_candidate) {
            return Ok(());
        }
        for host in others {
            let fault = [DiskFault::Hangs, DiskFault::Fails][self.rng.usize(0..2)];
            self.world.set_disk_fault(host, fault);
        }
        self.let_pass(0, 10)?;
        if vanishes {
            self.cut_off(leader);
        } else {
            self.world.command(leader, "goes into maintenance", |election, now| {
                election.set_maintenance(now, true);
            })?;
        }
        self.expect_successor(leader, &left)
    }

    fn expect_successor(&mut self, leader: usize, candidates: &[usize]) -> Result<(), Violation> {
        let bound = self.recovery_bound() + self.handover_bound() + self.startup_bound();
        let end = self.world.now + bound;
        while !candidates.iter().any(|host| self.leads(*host)) {
            broken("liveness", self.world.now >= end, || {
                format!("nobody succeeds host {leader} beside disks that hang")
            })?;
            self.world.run_for(self.heartbeat)?;
        }
        // A better candidate may preempt the first that leads, once if its disk hangs.
        self.world.run_for(bound)?;
        self.settle(candidates.to_vec(), "beside disks that hang");
        self.world.run_for(bound)
    }
}
