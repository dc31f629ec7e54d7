//! What is done to the hosts, and when: drawn from a seed, so that a plan can be repeated. How the
//! hosts' processes interleave is up to the machine.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::harness::journal::Fault;

/// Hosts of a campaign.
pub(super) const HOSTS: usize = 5;

/// A host by its index; none for whoever leads when it comes to it.
pub(super) type Target = Option<usize>;

/// One thing that happens to the group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Deed {
    /// The daemon is killed without warning; the service manager cleans up.
    Kill(Target),
    /// The daemon is stopped in order.
    Stop(Target),
    /// The daemon starts, or that of the next host, which does not run.
    Start(usize),
    /// The daemon is asked to yield.
    Yield(Target),
    /// The host's hooks last so many tenths of a second from now on.
    SlowHooks(Target, u32),
    /// The host's hooks have a fault from now on.
    BreakHooks(Target, Fault),
    /// All hooks are sound again.
    MendHooks,
    /// Hosts hear each other only where their bits are equal.
    Partition(u32),
    /// The second does not hear the first.
    OneWay(usize, usize),
    /// Nobody hears the host.
    Mute(Target),
    /// The host hears nobody.
    Deafen(Target),
    /// So many of a hundred frames are lost.
    Lose(u32),
    /// Everybody hears everybody.
    Heal,
    /// The daemon's process stands still.
    Freeze(Target),
    /// It goes on.
    Thaw(usize),
}

impl Deed {
    /// The kind's name.
    pub(super) fn kind(self) -> String {
        let text = format!("{self:?}");
        text.split('(').next().unwrap_or_default().to_lowercase()
    }
}

/// A deed, and how long to wait before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) wait: Duration,
    pub(super) deed: Deed,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:4} ms later {:?}", self.wait.as_millis(), self.deed)
    }
}

/// The steps of a plan, without end.
pub(super) struct Plan {
    random: Rng,
    pauses: bool,
}

impl Plan {
    /// The plan of a seed; with `pauses` processes are frozen too.
    pub(super) fn new(seed: u64, pauses: bool) -> Plan {
        Plan { random: Rng::with_seed(seed), pauses }
    }

    fn deed(&mut self) -> Deed {
        let host = self.random.usize(..HOSTS);
        let target = (self.random.u32(..3) > 0).then_some(host);
        let other = (host + self.random.usize(1..HOSTS)) % HOSTS;
        // Most of the hosts run and hear each other most of the time: a group without a majority
        // has nothing to break.
        match self.random.u32(..if self.pauses { 110 } else { 94 }) {
            0..8 => Deed::Kill(target),
            8..15 => Deed::Stop(target),
            15..31 => Deed::Start(host),
            31..38 => Deed::Yield(target),
            38..45 => Deed::SlowHooks(target, self.random.u32(..=3)),
            45..51 => Deed::Partition(self.random.u32(1..(1 << HOSTS) - 1)),
            51..56 => Deed::OneWay(host, other),
            56..59 => Deed::Mute(target),
            59..62 => Deed::Deafen(target),
            62..65 => Deed::Lose(self.random.u32(10..=40)),
            65..84 => Deed::Heal,
            84..89 => Deed::BreakHooks(target, self.random.choice(Fault::ALL).unwrap().0),
            89..94 => Deed::MendHooks,
            94..100 => Deed::Freeze(target),
            _ => Deed::Thaw(host),
        }
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let wait = Duration::from_millis(self.random.u64(50..=900));
        Some(Step { wait, deed: self.deed() })
    }
}

#[test]
fn a_seed_gives_the_same_plan_and_another_seed_another() {
    let plan = |seed| Plan::new(seed, true).take(100).collect::<Vec<_>>();
    assert_eq!(plan(7), plan(7));
    assert_ne!(plan(7), plan(8));
    assert!(Plan::new(7, false).take(1000).all(|step| !matches!(step.deed, Deed::Freeze(_))));
}
