//! No needless leaderships. A leadership that changes hands costs an outage and two hook runs, and
//! a fault that lasts must not cost them again and again.
//!
//! From one thing that happens to the group to the next, each host's hooks take over at most
//! [`USUAL`] times, and once more for each of these:
//!
//! * *A run that failed*, of any host's hooks. The leader whose hook failed hands over. If it is
//!   better than the next one, it claims the leadership again when it may.
//! * *A claim that failed*: the leader handed over, and leads again, or a third node does. Nothing
//!   tells a node that it could not lead, but after `n` such claims it waits for `2ⁿ⁻¹` yield times
//!   before the next. So in a time in which no more than `n` of these pauses fit, one node makes
//!   `n + 1` such claims.
//!
//! While datagrams are lost or late, or a host may still believe a forged one, nothing is counted:
//! each may cost the leader its leadership. A host that believes that the leader declares once in a
//! minute, and that its number is higher, claims for a minute and hears no answer. A node must not
//! claim at all while it knows that it could not lead.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::watch::{Violation, refuse};
use crate::world::network::Network;
use crate::world::{Host, nanos};

/// After a disturbance a node may lead before it hears of a better leader, or of enough candidates.
/// It gives that up, and may be the one that is left in the end.
const USUAL: u32 = 2;

/// Counts leaderships.
#[derive(Debug)]
pub struct Handovers {
    /// True time of the last disturbance.
    disturbed_at: u64,
    /// How often who hears whom was changed until then.
    network_changes: u32,
    /// How often each host's hooks have taken over since.
    taken_over: Vec<u32>,
    /// How many runs have failed since.
    failed: u32,
    /// Who has claimed the leadership since.
    claimants: BTreeSet<usize>,
}

impl Handovers {
    /// Of so many hosts.
    pub fn of(hosts: usize) -> Self {
        Handovers {
            disturbed_at: 0,
            network_changes: 0,
            taken_over: vec![0; hosts],
            failed: 0,
            claimants: BTreeSet::new(),
        }
    }

    /// Something happens to the group that may cost a leader its leadership.
    pub fn disturb(&mut self, now: u64) {
        self.disturbed_at = now;
        self.taken_over.fill(0);
        self.failed = 0;
        self.claimants.clear();
    }

    /// So do links that fail or return, and all the time datagrams that are not in time, and a host
    /// that may believe a forged one.
    pub fn check_step(&mut self, now: u64, hosts: &[Host], network: &Network) {
        let is_calm = network.weather.is_calm() && !hosts.iter().any(|host| host.is_deceived);
        if !is_calm || network.changes() != self.network_changes {
            self.disturb(now);
            self.network_changes = network.changes();
        }
    }

    /// A run has failed, or could not begin.
    pub fn note_failed_run(&mut self) {
        self.failed += 1;
    }

    /// A node asks the leader to hand over. It knows whether its own disk answers, and whether it
    /// is pledged to a third node: then it could not lead.
    pub fn note_claim(&mut self, index: usize, now: u64, host: &Host) -> Result<(), Violation> {
        self.claimants.insert(index);
        let id = host.node_id;
        refuse(host.disk.is_busy(), || {
            format!("handovers: {id} claims the leadership, and its disk does not answer")
        })?;
        let Some(election) = &host.election else { return Ok(()) };
        let quorum = election.status(host.local(now)).quorum;
        let pledged = quorum.and_then(|quorum| quorum.pledged).map(|(to, _)| to);
        // One that was held may claim, and lose its leader at the same time.
        let is_bound = pledged.zip(election.leader()).is_some_and(|(to, leader)| to != leader);
        refuse(is_bound, || {
            format!("handovers: {id} claims the leadership, and is pledged to {pledged:?}")
        })
    }

    /// A host's hooks take over.
    pub fn note_taken_over(
        &mut self,
        index: usize,
        now: u64,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        self.taken_over[index] += 1;
        let yield_time = hosts.iter().map(|host| host.params.yield_time()).min();
        let claims = self.claimants.len() as u32
            * claims_within(now - self.disturbed_at, yield_time.unwrap_or_default());
        let count = self.taken_over[index];
        refuse(count > USUAL + self.failed + claims, || {
            let since = Duration::from_nanos(now - self.disturbed_at);
            format!(
                "handovers: {} leads {count} times within {since:?}, after {} runs that failed and \
                 claims of {:?}",
                hosts[index].node_id, self.failed, self.claimants
            )
        })
    }
}

/// How often the claims of one node can fail within `elapsed`.
fn claims_within(elapsed: u64, yield_time: Duration) -> u32 {
    // A clock that runs 1 % fast makes every pause shorter.
    let shortest = (nanos(yield_time) * 98 / 100).max(1);
    (elapsed / shortest + 1).ilog2() + 1
}
