//! What happens in a run: faults and commands at random, then none, until the group has settled.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use signal_hook::consts::{SIGHUP, SIGTERM};
use tempfile::TempDir;

use super::crash::Runtime;
use super::host::Host;
use super::process::{BOOT, Holds};
use super::world::{Weather, World};
use crate::control_api::StatusReport;
use crate::core::hook::HookEvent;
use crate::core::status::Ineligible;
use crate::types::{NodeId, Role, Term};

/// How long a group may take to settle, whatever happened before.
const SETTLES_WITHIN: Duration = Duration::from_secs(180);

/// For how long a leader leads in the same term once the group has settled.
const LASTS_FOR: Duration = Duration::from_secs(5);

/// How long a group is disturbed.
const DISTURBED_FOR: Duration = Duration::from_secs(30);

/// What the runs amount to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    seeds: u64,
    simulated: Duration,
    datagrams: u64,
    events: u64,
    leaderships: u64,
    observations: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.seeds += other.seeds;
        self.simulated += other.simulated;
        self.datagrams += other.datagrams;
        self.events += other.events;
        self.leaderships += other.leaderships;
        self.observations += other.observations;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        write!(
            f,
            "daemons: {} seeds, {hours:.1} simulated hours, {} datagrams, {} faults and commands, \
             {} leaderships seen {} times",
            self.seeds, self.datagrams, self.events, self.leaderships, self.observations
        )
    }
}

/// Runs a seed. Even seeds are of available mode, odd ones of quorum mode.
pub(super) fn run(seed: u64, dir: &Path, trace: bool) -> Tally {
    let mut rng = Rng::with_seed(seed);
    let quorum = seed % 2 == 1;
    let dir = TempDir::new_in(dir).unwrap();
    let configs = choose_configs(&mut rng, quorum);
    let weather = choose_weather(&mut rng);
    let mut world = World::new(rng.u64(..), dir.path(), &configs, weather);
    world.trace = trace;
    world.seen.quorum = quorum;
    for index in 0..world.hosts.len() {
        let delay = world.some_of(Duration::from_millis(300));
        world.after(delay, move |world| world.start(index));
    }
    world.pass(Duration::from_secs(1));
    // A group that is disturbed all the time has no leader, and nothing to lose.
    let pause = Duration::from_millis([400, 1500, 8000][rng.usize(0..3)]);
    let mut events = 0;
    while world.now < BOOT + DISTURBED_FOR {
        let pause = world.some_of(pause);
        world.pass(pause);
        events += 1;
        disturb(&mut world, &mut rng);
        world.check_answers();
    }
    mend(&mut world);
    settle(&mut world);
    Tally {
        seeds: 1,
        simulated: world.now.since(BOOT),
        datagrams: world.datagrams,
        events,
        leaderships: world.seen.leaderships,
        observations: world.seen.observations,
    }
}

fn choose_configs(rng: &mut Rng, quorum: bool) -> Vec<String> {
    let hosts = if quorum { 3 } else { rng.usize(2..5) };
    let heartbeat = rng.u64(50..200);
    let threshold = heartbeat * rng.u64(20..40) / 10;
    let check = rng.bool();
    let own = |rng: &mut Rng| {
        let mut text = format!(
            "heartbeat_interval = \"{heartbeat}ms\"\nleader_alive_threshold = \"{threshold}ms\"\n\
             priority = {}\n",
            rng.u8(90..110)
        );
        if quorum {
            text += "mode = \"quorum\"\nvoters = [\"n0\", \"n1\", \"n2\"]\n\
                     demote_grace = \"500ms\"\nhook_timeout = \"400ms\"\n";
        }
        if check {
            text += "check = 'true'\ncheck_interval = \"500ms\"\n";
        }
        text
    };
    (0..hosts).map(|_| own(rng)).collect()
}

fn choose_weather(rng: &mut Rng) -> Weather {
    let millis = |rng: &mut Rng, choices: &[u64]| {
        Duration::from_millis(choices[rng.usize(0..choices.len())])
    };
    let chance = [0.0, 0.00003, 0.0001, 0.0003][rng.usize(0..4)];
    Weather {
        loss: [0.0, 0.02, 0.2][rng.usize(0..3)],
        duplication: [0.0, 0.2][rng.usize(0..2)],
        delay: millis(rng, &[1, 5, 40]),
        disk: millis(rng, &[1, 20, 400]),
        hook: millis(rng, &[5, 100, 800]),
        hook_fails: [0.0, 0.1, 0.5][rng.usize(0..3)],
        holds: Holds { chance, longest: millis(rng, &[50, 1000, 6000, 6000]) },
    }
}

fn disturb(world: &mut World, rng: &mut Rng) {
    let index = rng.usize(0..world.hosts.len());
    match rng.u8(0..30) {
        0 => world.kill(index),
        1 => world.signal(index, SIGTERM),
        2..=4 => (0..world.hosts.len()).for_each(|index| world.start(index)),
        5 => {
            let priority = rng.u8(90..110).to_string();
            world.configure(index, "priority", &priority);
            world.signal(index, SIGHUP);
        }
        6 => world.hold(index, Duration::from_millis(rng.u64(1..4000))),
        7 | 22..=23 => world.cuts.clear(),
        8..=9 => {
            let others = (0..world.hosts.len()).filter(|other| *other != index);
            let cut: Vec<_> = others.flat_map(|other| [(index, other), (other, index)]).collect();
            world.cuts.extend(cut);
        }
        10 => {
            let to = rng.usize(0..world.hosts.len());
            world.cuts.push((index, to));
        }
        11 => world.hosts[index].disk_is_full = true,
        12 => world.hosts[index].disk_is_full = false,
        13 => world.hosts[index].is_healthy = rng.bool(),
        14 => world.hosts[index].runner.stop(),
        15 => world.hosts[index].runner.start(),
        16 => world.ask(index, r#"{"command":"yield"}"#),
        17 => world.ask(index, r#"{"command":"maintenance","on":true}"#),
        18 => world.ask(index, r#"{"command":"maintenance","on":false}"#),
        19 => world.ask(index, r#"{"command":"watch"}"#),
        20 => world.ask(index, r#"{"command":"hold"}"#),
        21 => world.ask(index, r#"{"command":"yield-failed"}"#),
        24 => world.change_runtime(index, [Runtime::IsFull, Runtime::IsGone][rng.usize(0..2)]),
        25..=26 => world.change_runtime(index, Runtime::Works),
        27 => world.start_a_second(index),
        28 => world.kill(index),
        _ => {
            for index in 0..world.hosts.len() {
                world.ask(index, r#"{"command":"is-leader"}"#);
                world.ask(index, r#"{"command":"status"}"#);
            }
        }
    }
}

/// Ends every fault, and starts each daemon that does not run.
fn mend(world: &mut World) {
    world.cuts.clear();
    world.weather.loss = 0.0;
    world.weather.hook_fails = 0.0;
    world.weather.holds = Holds::default();
    world.weather.delay = Duration::from_millis(1);
    // No voter's answer is in time if its disk takes longer than a candidate waits.
    world.weather.disk = world.weather.disk.min(Duration::from_millis(10));
    for index in 0..world.hosts.len() {
        world.hosts[index].disk_is_full = false;
        world.hosts[index].is_healthy = true;
        world.hosts[index].runner.start();
        // Its socket is back at the next rescan at the latest.
        world.change_runtime(index, Runtime::Works);
    }
    let end = world.now + SETTLES_WITHIN;
    while world.hosts.iter().any(|host| host.is_ending() || host.is_cleaned) {
        assert!(world.now < end, "a daemon does not end");
        world.pass(Duration::from_secs(1));
    }
    for index in 0..world.hosts.len() {
        world.start(index);
        world.pass(Duration::from_secs(1));
    }
}

/// Ends the maintenance of each node whose last status says that it is in maintenance. As long as
/// its socket is not back, it cannot be asked.
fn end_maintenance(world: &mut World) {
    for index in 0..world.hosts.len() {
        let status = world.hosts[index].status.as_ref();
        let reasons = status.map(|status| &status.ineligible_reasons);
        if reasons.is_some_and(|reasons| reasons.contains(&Ineligible::Maintenance)) {
            world.ask(index, r#"{"command":"maintenance","on":false}"#);
        }
    }
}

/// Waits until one node leads in one term for a while, all others follow it, and the last hook of
/// each says so. A conflict that is not over raises the leader's term. That another node knows a
/// higher term is none: it was taken in vain.
fn settle(world: &mut World) {
    let end = world.now + SETTLES_WITHIN;
    let mut settled = (world.now, leadership(world));
    while settled.1.is_none() || world.now.since(settled.0) < LASTS_FOR {
        assert!(world.now < end, "the group does not settle: {}", describe(world));
        end_maintenance(world);
        world.pass(Duration::from_secs(1));
        world.check_answers();
        let leadership = leadership(world);
        if leadership != settled.1 {
            settled = (world.now, leadership);
        }
    }
    world.pass(LASTS_FOR);
    assert_eq!(settled.1, leadership(world), "the group settles and moves on: {}", describe(world));
}

/// Who leads the group, and in which term, if it has settled.
fn leadership(world: &mut World) -> Option<(NodeId, Term)> {
    for index in 0..world.hosts.len() {
        world.hosts[index].status = None;
        world.ask(index, r#"{"command":"status"}"#);
    }
    world.pass(Duration::from_millis(100));
    let statuses = world.hosts.iter().map(|host| host.status.as_deref());
    let statuses: Option<Vec<&StatusReport>> = statuses.collect();
    let statuses = statuses?;
    let leaders: Vec<_> = statuses.iter().filter(|status| status.role == Role::Leader).collect();
    let [leader] = leaders[..] else { return None };
    let follows = |status: &&StatusReport| {
        status.leader.as_ref().is_some_and(|it| it.node_id == leader.node_id)
    };
    let hooks_fit = world.hosts.iter().all(|host| {
        let leads = host.node_id == leader.node_id;
        let has_led = matches!(host.hooks.last, Some(HookEvent::Elected | HookEvent::Reaffirmed));
        leads == has_led
    });
    // A hook that failed for `reaffirmed` is not run again by itself.
    let failed = |host: &Host| host.node_id == leader.node_id && !host.hooks.succeeded;
    let is_ready = leader.ready || world.hosts.iter().any(failed);
    let is_settled = statuses.iter().all(follows) && is_ready && hooks_fit;
    is_settled.then_some((leader.node_id, leader.term))
}

fn describe(world: &World) -> String {
    let of = |host: &Host| {
        let status = host.status.as_ref();
        let role = status.map(|status| (status.role, status.term, status.ineligible_reason));
        let leader = status.and_then(|status| status.leader.as_ref().map(|it| it.node_id));
        format!("{}: {role:?} of {leader:?}, last hook {:?}; ", host.node_id, host.hooks.last)
    };
    world.hosts.iter().map(of).collect()
}
