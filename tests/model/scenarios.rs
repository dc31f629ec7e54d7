//! What is explored.

use std::time::Duration;

use lanelect::core::params::{Params, QuorumParams};
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::core::quorum::Voters;
use lanelect::types::{NodeId, Role};

use crate::clock::Clock;
use crate::explore::{Exploration, Failure, Tally};
use crate::fair;
use crate::group::{Budget, Group, HOSTS, State};
use crate::node::{Host, Node};
use crate::sabotage::Sabotage;
use crate::schedule::Schedule;

/// From where a scenario begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Everyone is switched off and remembers nothing.
    Unfounded,
    /// The best candidate is about to stand.
    Leaderless,
    /// The best candidate leads, and all follow it.
    Led,
}

/// Everything that may happen in a number of ticks.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub beginning: Beginning,
    pub schedule: Schedule,
    /// Ticks after the one in which it begins.
    pub ticks: u8,
    pub budget: Budget,
    /// How much too fast each clock runs, in percent.
    pub drift: [i64; HOSTS],
    /// The term of a lease, in milliseconds; a tick is 100.
    pub lease_ms: u64,
    pub grace_ms: u64,
    /// For how many ticks after the one that it was sent in a datagram may come late or again.
    pub lifetime: u8,
}

impl Scenario {
    /// Explores it, in a world that is broken or not, up to so many states.
    pub fn explore(&self, sabotage: Option<Sabotage>, states_max: usize) -> Result<Tally, Failure> {
        let mut group = Group::new(self.hosts(sabotage), self.schedule, self.lifetime);
        let root = self.begin(&mut group).map_err(|breach| Failure { breach, way: Vec::new() })?;
        let last_tick = root.tick + self.ticks;
        Exploration::new(group, root, last_tick).run(states_max)
    }

    fn hosts(&self, sabotage: Option<Sabotage>) -> [Host; HOSTS] {
        [0, 1, 2].map(|index| {
            let drift = match sabotage {
                Some(Sabotage::WrongClocks) => self.drift[index] * 5,
                _ => self.drift[index],
            };
            Host {
                node_id: node_id(index),
                params: self.params(),
                clock: Clock::new(drift),
                sabotage,
            }
        })
    }

    fn params(&self) -> Params {
        let voters = Voters::new([0, 1, 2].map(node_id)).expect("three voters");
        let demote_grace = Duration::from_millis(self.grace_ms);
        Params {
            leader_alive_threshold: Duration::from_millis(self.lease_ms),
            leader_election_duration: Duration::from_millis(40),
            membership_sample_interval: Duration::from_millis(50),
            startup_grace_period: Duration::from_millis(1200),
            quorum: Some(QuorumParams { voters, demote_grace }),
            ..Params::new(Duration::from_millis(80))
        }
    }

    fn begin(&self, group: &mut Group) -> Result<State, crate::group::Breach> {
        let enrolment = match self.beginning {
            Beginning::Unfounded => Enrolment::None,
            _ => Enrolment::Enrolled,
        };
        let disk = PersistentState { enrolment, ..PersistentState::default() };
        let off = group.all(&Node::off(disk));
        let state = match self.beginning {
            Beginning::Unfounded => off,
            Beginning::Leaderless => fair::run_until(group, off, &|group, state| {
                group
                    .node(state, 0)
                    .election()
                    .is_some_and(|election| election.role() != Role::Starting)
            })?,
            Beginning::Led => {
                let led = fair::run_until(group, off, &Group::is_led)?;
                fair::rest(group, led)?
            }
        };
        Ok(state.with_budget(self.budget))
    }
}

fn node_id(index: usize) -> NodeId {
    ["a", "b", "c"][index].parse().expect("a valid id")
}

/// The slowest leader and the fastest voters that are allowed for: a lease is at its longest, and the
/// promises that it rests on are at their shortest.
const WORST_DRIFT: [i64; HOSTS] = [-1, 1, 1];

const NOTHING: Budget =
    Budget { crashes: 0, lost_disks: 0, downtime: 0, cuts: 0, slips: 0, yields: 0 };

/// What is explored: in CI, or with wider bounds where it may take long.
pub fn all(deep: bool) -> Vec<Scenario> {
    let mut all = in_any_order();
    all.extend(with_slips());
    if deep {
        all.extend(wider());
    }
    all
}

/// All interleavings of everything, for as long as that can be explored.
fn in_any_order() -> Vec<Scenario> {
    let election = Scenario {
        name: "an election, in any order",
        beginning: Beginning::Leaderless,
        schedule: Schedule::AnyOrder,
        ticks: 0,
        budget: NOTHING,
        drift: WORST_DRIFT,
        lease_ms: 200,
        grace_ms: 0,
        lifetime: 0,
    };
    let reign = Scenario {
        name: "a reign, in any order",
        beginning: Beginning::Led,
        ticks: 2,
        ..election.clone()
    };
    vec![election, reign]
}

/// The expected with slips, over longer times.
fn with_slips() -> Vec<Scenario> {
    let failover = Scenario {
        name: "failover: a crash, a cut",
        beginning: Beginning::Led,
        schedule: Schedule::WithSlips,
        ticks: 8,
        budget: Budget { crashes: 1, downtime: 1, cuts: 1, ..NOTHING },
        drift: WORST_DRIFT,
        lease_ms: 200,
        grace_ms: 0,
        lifetime: 1,
    };
    let of = |name, budget| Scenario { name, budget, ..failover.clone() };
    vec![
        Scenario {
            beginning: Beginning::Leaderless,
            ticks: 3,
            ..of("election: a crash, a slip", Budget { crashes: 1, slips: 1, ..NOTHING })
        },
        Scenario {
            beginning: Beginning::Leaderless,
            ticks: 2,
            ..of("election: three slips", Budget { slips: 3, ..NOTHING })
        },
        of("failover: a cut, a slip", Budget { cuts: 1, slips: 1, ..NOTHING }),
        Scenario { ticks: 7, ..of("failover: two slips", Budget { slips: 2, ..NOTHING }) },
        Scenario {
            lease_ms: 300,
            ticks: 6,
            ..of("restart: a crash, a cut", Budget { crashes: 1, cuts: 1, ..NOTHING })
        },
        Scenario {
            grace_ms: 100,
            ..of("handover: a slip", Budget { yields: 1, slips: 1, ..NOTHING })
        },
        Scenario {
            grace_ms: 100,
            ticks: 5,
            ..of("handover: a crash", Budget { yields: 1, crashes: 1, ..NOTHING })
        },
        Scenario {
            lease_ms: 150,
            grace_ms: 50,
            ..of("grace: a cut, a slip", Budget { cuts: 1, slips: 1, ..NOTHING })
        },
        Scenario {
            ticks: 6,
            ..of("lost disk: a slip", Budget { lost_disks: 1, slips: 1, ..NOTHING })
        },
        Scenario {
            beginning: Beginning::Unfounded,
            ticks: 6,
            ..of("unfounded: a late start, a slip", Budget { downtime: 1, slips: 1, ..NOTHING })
        },
        Scenario {
            beginning: Beginning::Unfounded,
            ticks: 6,
            ..of("unfounded: a crash", Budget { crashes: 1, downtime: 1, ..NOTHING })
        },
        failover,
    ]
}

/// What takes minutes.
fn wider() -> Vec<Scenario> {
    Vec::new()
}
