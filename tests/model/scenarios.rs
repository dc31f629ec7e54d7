//! What is explored.

#![expect(clippy::expect_used, reason = "a test may fail where its own footing gives way")]

use std::time::Duration;

use lanelect::core::params::{Params, QuorumParams};
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::core::quorum::Voters;
use lanelect::types::{NodeId, Role};

use crate::clock::Clock;
use crate::explore::{Exploration, Failure, Tally};
use crate::fair;
use crate::group::{Action, Breach, Budget, Group, HOSTS, State, host_indices};
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
    /// The best candidate leads for the second time in its life, and the network has kept how it
    /// led and resigned before.
    Again,
    /// Nobody has heard of anybody for so long that all stand at the next moment.
    Vacant,
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
                let election = group.node(state, 0).election();
                election.is_some_and(|election| election.role() != Role::Starting)
            })?,
            Beginning::Led | Beginning::Again | Beginning::Vacant => {
                let led = fair::run_until(group, off, &Group::is_led)?;
                fair::rest(group, led)?
            }
        };
        let state = match self.beginning {
            Beginning::Vacant => fair::silence(group, state)?,
            Beginning::Again => lead_again(group, state)?,
            _ => state,
        };
        Ok(State { budget: self.budget, ..state })
    }
}

/// Lets leaders yield until the one that leads now leads again; its first leadership is kept.
fn lead_again(group: &mut Group, led: State) -> Result<State, Breach> {
    let leader = |group: &Group, state: &State| {
        let leads = |host: &u8| group.node(state, *host).election().is_some_and(|e| e.is_leader());
        host_indices().find(leads)
    };
    let first = leader(group, &led);
    let mut state = led;
    for _ in 0..HOSTS {
        let Some(now) = leader(group, &state) else { break };
        state.budget.yields = 1;
        let yielded = group.next(&state, Action::Yield(now))?.unwrap_or(state);
        let passed =
            |group: &Group, state: &State| group.is_led(state) && leader(group, state) != Some(now);
        let next = fair::run_until(group, yielded, &passed)?;
        state = fair::rest(group, next)?;
        if leader(group, &state) == first {
            group.keep_first_leadership();
            return Ok(State { wire: Vec::new(), ..state });
        }
    }
    Err(Breach("the first leader does not lead again".into()))
}

fn node_id(index: usize) -> NodeId {
    ["a", "b", "c"][index].parse().expect("a valid id")
}

/// The slowest leader and the fastest voters that are allowed for: a lease is at its longest, and
/// the promises that it rests on are at their shortest.
const WORST_DRIFT: [i64; HOSTS] = [-1, 1, 1];

const NOTHING: Budget =
    Budget { crashes: 0, lost_disks: 0, downtime: 0, cuts: 0, slips: 0, yields: 0, recalls: 0 };

/// How much is explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// What takes half a minute of two processors.
    Quick,
    /// What takes a few minutes more.
    Long,
    /// What takes minutes, and at its peak almost 20 GB.
    Deep,
}

/// What is explored to this extent.
pub fn all(extent: Extent) -> Vec<Scenario> {
    let mut all = with_slips();
    all.push(term());
    if extent >= Extent::Long {
        all.extend(large());
    }
    if extent >= Extent::Deep {
        all.extend(wider());
    }
    all
}

/// All interleavings of everything, from when the best candidate is about to stand.
const fn election() -> Scenario {
    Scenario {
        name: "an election, in any order",
        beginning: Beginning::Leaderless,
        schedule: Schedule::AnyOrder,
        ticks: 0,
        budget: NOTHING,
        drift: WORST_DRIFT,
        lease_ms: 200,
        grace_ms: 0,
        lifetime: 0,
    }
}

/// All interleavings of everything while somebody leads, until the lease may have run out.
const fn term() -> Scenario {
    Scenario {
        name: "a leadership, in any order",
        beginning: Beginning::Led,
        ticks: 1,
        drift: [0; HOSTS],
        ..election()
    }
}

/// Somebody leads, and what is expected happens but for what `budget` allows.
const fn failover(name: &'static str, budget: Budget) -> Scenario {
    Scenario {
        name,
        budget,
        beginning: Beginning::Led,
        schedule: Schedule::WithSlips,
        ticks: 8,
        lifetime: 1,
        ..election()
    }
}

fn with_slips() -> Vec<Scenario> {
    let crash = Budget { crashes: 1, ..NOTHING };
    let slip = Budget { slips: 1, ..NOTHING };
    let (crash_and_cut, crash_and_slip) =
        (Budget { cuts: 1, ..crash }, Budget { slips: 1, ..crash });
    let cut_and_slip = Budget { cuts: 1, ..slip };
    let handover =
        |name, budget| Scenario { grace_ms: 100, ..failover(name, Budget { yields: 1, ..budget }) };
    let unfounded = |name, budget| Scenario {
        beginning: Beginning::Unfounded,
        ticks: 6,
        ..failover(name, Budget { downtime: 1, ..budget })
    };
    // The longest comes first, so that the others fill the other processors meanwhile.
    vec![
        Scenario {
            beginning: Beginning::Again,
            ticks: 6,
            ..failover("kept datagrams: a crash, a cut", Budget { recalls: 2, ..crash_and_cut })
        },
        failover("failover: a crash, a cut", Budget { downtime: 1, ..crash_and_cut }),
        failover("failover: a cut, a slip", cut_and_slip),
        Scenario { drift: [0; HOSTS], ..failover("steady clocks: a cut, a slip", cut_and_slip) },
        Scenario { ticks: 7, ..failover("failover: two slips", Budget { slips: 2, ..NOTHING }) },
        Scenario {
            beginning: Beginning::Leaderless,
            ticks: 3,
            ..failover("election: a crash, a slip", crash_and_slip)
        },
        Scenario {
            beginning: Beginning::Vacant,
            ticks: 3,
            ..failover("race: a crash, a slip", crash_and_slip)
        },
        Scenario { lease_ms: 300, ticks: 6, ..failover("restart: a crash, a cut", crash_and_cut) },
        Scenario {
            beginning: Beginning::Vacant,
            ticks: 0,
            ..failover("race: three slips", Budget { slips: 3, ..NOTHING })
        },
        handover("handover: a slip", slip),
        Scenario { ticks: 5, ..handover("handover: a crash", crash) },
        Scenario { lease_ms: 150, grace_ms: 50, ..failover("grace: a cut, a slip", cut_and_slip) },
        Scenario {
            lease_ms: 150,
            grace_ms: 150,
            ticks: 6,
            ..failover("grace: a crash, a slip", Budget { downtime: 4, ..crash_and_slip })
        },
        Scenario { ticks: 6, ..failover("lost disk: a slip", Budget { lost_disks: 1, ..slip }) },
        unfounded("unfounded: a late start, a slip", slip),
        unfounded("unfounded: a crash", crash),
    ]
}

fn large() -> Vec<Scenario> {
    let cut_and_two_slips = Budget { cuts: 1, slips: 2, ..NOTHING };
    vec![
        election(),
        Scenario { ticks: 5, ..failover("failover: a cut, two slips", cut_and_two_slips) },
        Scenario {
            beginning: Beginning::Leaderless,
            ticks: 2,
            ..failover("election: three slips", Budget { slips: 3, ..NOTHING })
        },
        Scenario {
            beginning: Beginning::Leaderless,
            lease_ms: 150,
            grace_ms: 150,
            ticks: 2,
            ..failover("grace: a cut, two slips", cut_and_two_slips)
        },
    ]
}

fn wider() -> Vec<Scenario> {
    let slips = |slips| Budget { slips, ..NOTHING };
    vec![
        Scenario { name: "a leadership, in any order, a pause", budget: slips(1), ..term() },
        Scenario { ticks: 6, ..failover("failover: three slips", slips(3)) },
        Scenario {
            ticks: 5,
            ..failover(
                "failover: a crash, a cut, a slip",
                Budget { crashes: 1, cuts: 1, ..slips(1) },
            )
        },
        Scenario {
            beginning: Beginning::Vacant,
            ticks: 2,
            ..failover("race: a crash, two slips", Budget { crashes: 1, ..slips(2) })
        },
        Scenario {
            grace_ms: 100,
            ticks: 3,
            ..failover("handover: a crash, a slip", Budget { yields: 1, crashes: 1, ..slips(1) })
        },
        Scenario {
            ticks: 2,
            ..failover("lost disk: a cut, a slip", Budget { lost_disks: 1, cuts: 1, ..slips(1) })
        },
    ]
}
