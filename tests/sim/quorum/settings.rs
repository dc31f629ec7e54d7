//! How a group is set up.

use std::time::Duration;

use fastrand::Rng;
use lanelect::core::params::{OnElectedFailure, Params, QuorumParams};
use lanelect::core::quorum::Voters;
use lanelect::types::NodeId;

use crate::available::swarm::{
    choose_checks, choose_peers, choose_priority, choose_refresh, choose_tie_break,
};
use crate::world::keys::choose_modes;
use crate::world::{FenceHabit, Guard, HookHabit, nanos, node_id, slow};

/// The clocks' largest drift: 1 %.
pub const DRIFT_PPB: i64 = 10_000_000;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Real hosts; one more, the last, is there to be a duplicate.
    pub hosts: usize,
    /// The voters at first, as indices of hosts.
    pub voters: Vec<usize>,
    /// What each host is set to at first, and in the end.
    pub params: Vec<Params>,
    pub hooks: HookHabit,
    /// Intervals that a reload may set: heartbeat, threshold, election, grace.
    pub intervals: Vec<Intervals>,
    pub drift: Drift,
    pub guard: Option<Guard>,
    /// Nobody yields and no hook fails.
    pub gentle: bool,
}

/// How far clocks are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    None,
    Any,
    /// Each runs as fast or as slow as it may.
    Extreme,
}

/// The intervals on which leases and pledges rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    pub heartbeat: Duration,
    pub threshold: Duration,
    pub election: Duration,
    pub grace: Duration,
}

impl Intervals {
    fn choose(rng: &mut Rng, heartbeat: Duration, some_grace: bool) -> Self {
        let usual = rng.bool();
        let grace = [0, 1, 4, 8, 20][rng.usize(usize::from(some_grace)..5)];
        Intervals {
            heartbeat,
            threshold: heartbeat * if usual { 4 } else { rng.u32(3..=12) } / 2,
            election: heartbeat * if usual { 1 } else { rng.u32(1..=8) } / 4,
            grace: heartbeat * grace / 2,
        }
    }

    /// `params` with these intervals.
    pub fn set(&self, params: &Params) -> Params {
        let mut params = params.clone();
        params.heartbeat_interval = self.heartbeat;
        params.leader_alive_threshold = self.threshold;
        params.leader_election_duration = self.election;
        if let Some(quorum) = &mut params.quorum {
            quorum.demote_grace = self.grace;
        }
        params
    }
}

impl Settings {
    pub fn choose(rng: &mut Rng) -> Self {
        let hosts = rng.usize(3..=7);
        let mut order: Vec<usize> = (0..hosts).collect();
        rng.shuffle(&mut order);
        let voters = order[..choose_voters(rng).min(hosts)].to_vec();
        let guarded = rng.u8(0..4) > 0;
        let heartbeat = Duration::from_millis([20, 100, 1000][rng.usize(0..3)]);
        let intervals = choose_intervals(rng, heartbeat, guarded);
        let gentle = rng.bool();
        let grace = intervals.iter().map(|i| i.grace).min().unwrap_or_default();
        let guard = guarded.then(|| choose_guard(rng, grace, &intervals));
        let hooks = choose_hooks(rng, heartbeat, grace, guard.as_ref(), gentle);
        let params = choose_params(rng, hosts, &voters, intervals[0], gentle);
        let drift = [Drift::None, Drift::Any, Drift::Extreme, Drift::Extreme][rng.usize(0..4)];
        Settings { hosts, voters, params, hooks, intervals, drift, guard, gentle }
    }

    /// The shortest grace that any setting gives.
    pub fn grace(&self) -> Duration {
        self.intervals.iter().map(|intervals| intervals.grace).min().unwrap_or_default()
    }

    /// The longest grace that any setting gives.
    pub fn longest_grace(&self) -> Duration {
        self.intervals.iter().map(|intervals| intervals.grace).max().unwrap_or_default()
    }

    /// Whether a host claims the leadership in the end, if it is better.
    pub fn any_preempts(&self) -> bool {
        self.params.iter().any(|params| params.preempt)
    }

    /// The longest hold that anybody may ask for.
    pub fn longest_hold(&self) -> Duration {
        let holds = self.intervals.iter().map(|i| i.set(&self.params[0]).declaration_hold());
        holds.max().unwrap_or_default()
    }

    /// For how many nanoseconds a pledge can bind, whatever the voter's clock does.
    pub fn longest_pledge(&self) -> u64 {
        nanos(self.longest_hold()) * 103 / 100
    }
}

/// The voters' ids, as the configuration names them.
pub fn voters_of(indices: &[usize]) -> Voters {
    let ids: Vec<NodeId> = indices.iter().map(|index| node_id(*index)).collect();
    Voters::new(ids).expect("some different ids")
}

fn choose_voters(rng: &mut Rng) -> usize {
    [1, 2, 3, 3, 3, 3, 4, 5, 5][rng.usize(0..9)]
}

fn choose_intervals(rng: &mut Rng, heartbeat: Duration, some_grace: bool) -> Vec<Intervals> {
    let mut intervals = vec![Intervals::choose(rng, heartbeat, some_grace)];
    if rng.u8(0..3) == 0 {
        for _ in 0..rng.usize(1..3) {
            let heartbeat = heartbeat * rng.u32(1..=4) / 2;
            intervals.push(Intervals::choose(rng, heartbeat, some_grace));
        }
    }
    intervals
}

/// A watchdog that leaves time for an `elected` that is cut short, and a `demoted`. The first may
/// take half of the grace, and the daemon may be held at the end of that.
fn choose_guard(rng: &mut Rng, grace: Duration, intervals: &[Intervals]) -> Guard {
    let part = [1, 3, 4][rng.usize(0..3)];
    let longest = intervals.iter().map(|i| i.threshold + i.grace).max().unwrap_or_default();
    Guard {
        watchdog: nanos(grace) * part / 10,
        grace,
        // In true time, on the slowest clock.
        between_holds: slow(nanos(longest)),
    }
}

fn choose_hooks(
    rng: &mut Rng,
    heartbeat: Duration,
    grace: Duration,
    guard: Option<&Guard>,
    gentle: bool,
) -> HookHabit {
    let slow = nanos(heartbeat) * [0, 1, 12][rng.usize(0..3)];
    let demoted_longest = match guard {
        Some(guard) => nanos(grace) / 2 - guard.watchdog,
        // Some need more than the grace.
        None => nanos(grace) * [0, 10, 15][rng.usize(0..3)] / 10,
    };
    let demoted_longest = demoted_longest * u64::from(rng.u8(0..4) > 0);
    let failure = if gentle { 0.0 } else { [0.0, 0.2][rng.usize(0..2)] };
    let hangs = if gentle { 0.0 } else { [0.0, 0.0, 0.2][rng.usize(0..3)] };
    let fence = [FenceHabit::Mixed, FenceHabit::Fails, FenceHabit::Hangs][rng.usize(0..3)];
    let may_hang = hangs > 0.0 || fence == FenceHabit::Hangs;
    let limit = nanos(heartbeat) * if may_hang { [15, 40][rng.usize(0..2)] } else { 0 };
    HookHabit {
        longest: slow,
        demoted_longest,
        hangs,
        demoted_hangs: if guard.is_some() { 0.0 } else { hangs },
        limit,
        fence,
        failure,
        // Where they are guarded, they let go in time.
        stubbornness: if guard.is_some() { 0.0 } else { failure },
        absence: if gentle || guard.is_some() { 0.0 } else { [0.0, 0.2][rng.usize(0..2)] },
        blocked: false,
    }
}

fn choose_params(
    rng: &mut Rng,
    hosts: usize,
    voters: &[usize],
    intervals: Intervals,
    gentle: bool,
) -> Vec<Params> {
    let mut shared = intervals.set(&Params::new(intervals.heartbeat));
    shared.membership_sample_interval = intervals.heartbeat * rng.u32(1..=3) / 2;
    shared.startup_grace_period = intervals.heartbeat * rng.u32(3..=15);
    shared.preempt = rng.u8(0..4) == 0;
    shared.preempt_delay = intervals.heartbeat * rng.u32(0..3);
    shared.failure_holdoff = intervals.heartbeat * rng.u32(1..20);
    shared.refresh_interval = choose_refresh(rng, intervals.heartbeat);
    if rng.u8(0..4) == 0 {
        shared.on_elected_failure = OnElectedFailure::Ignore;
    }
    shared.quorum = Some(QuorumParams { voters: voters_of(voters), demote_grace: intervals.grace });
    let leads = voters[rng.usize(0..voters.len())];
    let (modes, have_peers) = (choose_modes(rng, hosts), choose_peers(rng, hosts));
    let some_preempt = rng.u8(0..4) == 0;
    (0..hosts)
        .map(|host| {
            let mut params = Params {
                key_mode: modes[host],
                unicast: have_peers[host],
                priority: choose_priority(rng),
                tie_break: choose_tie_break(rng),
                // Some voters are witnesses, and some nodes that have no vote would like to lead.
                candidate: host == leads || rng.u8(0..5) > 0,
                ..shared.clone()
            };
            params.preempt = if some_preempt { rng.bool() } else { params.preempt };
            choose_checks(rng, &mut params, gentle);
            params
        })
        .collect()
}
