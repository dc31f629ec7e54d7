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

/// One exploration.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub beginning: Beginning,
    /// How much too fast each clock runs, in percent.
    pub drift: [i64; HOSTS],
    /// Alive threshold, which is the term of a lease, in milliseconds; a tick is 100.
    pub lease_ms: u64,
    pub grace_ms: u64,
    /// Ticks after the beginning.
    pub ticks: u8,
    /// Ticks that a datagram may be late.
    pub lifetime: u8,
    pub budget: Budget,
}

impl Scenario {
    pub fn explore(
        &self,
        sabotage: Option<Sabotage>,
        states_max: usize,
    ) -> Result<Tally, Failure> {
        let mut group = Group::new(self.hosts(sabotage), self.lifetime);
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
        let off = group.all_off(fair::NOTHING, &Node::off(disk));
        let state = match self.beginning {
            Beginning::Unfounded => off,
            Beginning::Leaderless => fair::run_until(group, off, &|group, state| {
                group.node(state, 0).election().is_some_and(|e| e.role() == Role::Follower)
            })?,
            Beginning::Led => {
                let led = fair::run_until(group, off, &Group::is_led)?;
                fair::settle(group, led, &|_, _| false)?
            }
        };
        Ok(state.with_budget(self.budget))
    }
}

fn node_id(index: usize) -> NodeId {
    ["a", "b", "c"][index].parse().expect("a valid id")
}

pub fn all(deep: bool) -> Vec<Scenario> {
    let more = u8::from(deep);
    let none = fair::NOTHING;
    vec![
        Scenario {
            name: "election",
            beginning: Beginning::Leaderless,
            drift: [0; HOSTS],
            lease_ms: 200,
            grace_ms: 0,
            ticks: 1 + more,
            lifetime: 0,
            budget: Budget { crashes: 0, ..none },
        },
        Scenario {
            name: "failover",
            beginning: Beginning::Led,
            drift: [0; HOSTS],
            lease_ms: 200,
            grace_ms: 0,
            ticks: 3 + more,
            lifetime: 0,
            budget: Budget { ..none },
        },
    ]
}
