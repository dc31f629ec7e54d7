//! Random groups under random faults, each wholly determined by its seed: faults first, with every
//! checker watching, then everything is mended and the group must settle within its bound.

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::params::{OnElectedFailure, Params, StaticRole, Thresholds};
use lanelect::types::{Priority, Role, Term, TieBreak};

use crate::available::checkers::{self, Checkers};
use crate::watch::{Violation, Watch, refuse};
use crate::world::attacker::Repertoire;
use crate::world::broken::{Broken, Lie};
use crate::world::keys::choose_modes;
use crate::world::network::Weather;
use crate::world::{DiskFault, HookHabit, Host, Sabotage, World, nanos, slow};

/// The clocks' largest drift: 1 %.
const DRIFT_PPB: i64 = 10_000_000;

/// So many hosts are in a large group: more than have a turn to probe.
pub const LARGE: RangeInclusive<usize> = 12..=20;

/// A group is large with one seed in so many, because large ones take long.
const LARGE_EVERY: u64 = 100;

/// How many old datagrams come in while a group settles, where they are authenticated.
const REPLAYS: u64 = 100;

/// How many writes a group may wait for, one after the other, until it has settled.
const WRITES_IN_A_ROW: u64 = 12;

/// What one run came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Simulated time, in nanoseconds.
    pub simulated: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Faults and commands.
    pub disturbances: u64,
}

/// Runs the scenario of `seed`.
pub fn run(seed: u64, trace: bool, sabotage: Option<Sabotage>) -> Result<Tally, Violation> {
    let mut scenario = Scenario::new(seed, trace, sabotage);
    scenario.play()?;
    Ok(Tally {
        simulated: scenario.world.now,
        sent: scenario.world.sent,
        disturbances: scenario.disturbances,
    })
}

struct Scenario {
    rng: Rng,
    world: World<Checkers>,
    heartbeat: u64,
    /// Nobody yields and no hook fails, so the group has to settle within the documented bound.
    gentle: bool,
    disturbances: u64,
}

impl Scenario {
    fn new(seed: u64, trace: bool, sabotage: Option<Sabotage>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let gentle = rng.bool();
        let hosts = choose_size(&mut rng, seed, 1..=7);
        let settings = choose_settings(&mut rng, hosts, gentle);
        let Params { heartbeat_interval, key_mode, .. } = settings[0].0;
        let heartbeat = nanos(heartbeat_interval);
        let bound = if gentle { gentle_settling_time } else { settling_time };
        let settling_time = settings.iter().map(|(p, h)| bound(p, h)).max().unwrap_or(0);
        let drift = if rng.bool() { DRIFT_PPB } else { 0 };
        let checkers = Checkers::new(settings.len());
        let mut world = World::new(rng.u64(..), settings, drift, checkers);
        let slowest = choose_slowest_write(&mut rng, &mut world);
        world.trace = trace;
        world.sabotage = sabotage;
        world.post_stop = 0.5;
        world.keeps_datagrams = key_mode.is_some() || world.mixes_modes();
        world.watch.settling_time = settling_time + slowest * WRITES_IN_A_ROW;
        world.watch.counts_candidates = world.hosts[0].params.min_candidates > 1;
        if world.watch.counts_candidates {
            // A leader counts those that it does not hear any more until they are gone.
            world.watch.settling_time += slow(world.gone_after);
        }
        Scenario { rng, world, heartbeat, gentle, disturbances: 0 }
    }

    fn play(&mut self) -> Result<(), Violation> {
        self.world.network.weather = self.choose_weather();
        for host in 0..self.world.hosts.len() {
            if self.rng.u8(0..4) > 0 {
                self.world.start(host)?;
            }
            self.let_pass(0..2)?;
        }
        for _ in 0..self.rng.usize(3..25) {
            self.disturb()?;
            self.disturbances += 1;
            match self.rng.u8(0..8) {
                0 => self.let_settle()?,
                1..=3 => self.let_pass(0..40)?,
                _ => self.let_pass(0..4)?,
            }
        }
        self.mend()?;
        self.settle()?;
        match self.rng.u8(0..5) {
            0 => self.endure_loss(),
            1 => self.endure_broken_member(),
            2 => self.lose_the_leader_beside_a_hung_disk(),
            3 => self.restart_a_follower(),
            _ => Ok(()),
        }
    }

    /// One follower's daemon breaks and tells wrong terms, as often as it likes, where disks are
    /// slow. The group keeps its leader, which at most takes terms: one that concedes cannot be
    /// told from one that has led.
    fn endure_broken_member(&mut self) -> Result<(), Violation> {
        let followers = self.hosts_of(Role::Follower);
        // What tells absurd terms is refused, and so is no candidate that can be counted on.
        if followers.is_empty() || self.world.watch.counts_candidates {
            return Ok(());
        }
        let broken = followers[self.rng.usize(0..followers.len())];
        let how = [Lie::Concede, Lie::Concede, Lie::Outbid, Lie::Term(Term(1 << 40))];
        let how = how[self.rng.usize(0..how.len())];
        let slowest = [0, self.heartbeat / 50, self.heartbeat / 2][self.rng.usize(0..3)];
        for host in &mut self.world.hosts {
            host.disk.slowest = slowest;
        }
        self.world.log(broken, || format!("breaks: {how:?}"));
        self.world.broken.push(Broken::new(broken, how));
        self.world.watch.broken = Some((broken, how));
        self.world.run_for(self.heartbeat * 50)
    }

    /// A settled group stays as it is though datagrams are lost, as long as not too many are in a
    /// row. At times some hear each other one way only, and the group settles so first.
    fn endure_loss(&mut self) -> Result<(), Violation> {
        let hosts = self.world.hosts.len();
        for _ in 0..[0, 1, 3][self.rng.usize(0..3)] {
            let (from, to) = (self.rng.usize(0..hosts), self.rng.usize(0..hosts));
            self.world.network.cut_one_way(from, to);
            if self.rng.bool() {
                self.world.network.cut_one_way(to, from);
            }
        }
        self.world.watch.disturb(self.world.now);
        self.let_settle()?;
        let loss = [0.02, 0.1, 0.3][self.rng.usize(0..3)];
        self.world.network.weather = Weather { loss, ..Weather::CALM };
        self.world.run_for(self.heartbeat * 300)
    }

    /// The disk of a host hangs, mostly of the one that is to take over, and the leader dies: the
    /// others do without that host, and with it once its disk works again.
    fn lose_the_leader_beside_a_hung_disk(&mut self) -> Result<(), Violation> {
        let hosts = 0..self.world.hosts.len();
        let election = |host: &usize| self.world.hosts[*host].election.as_ref();
        let Some(leader) = self.leader() else { return Ok(()) };
        let best = hosts.clone().filter(|host| *host != leader);
        let best = best.max_by_key(|host| election(host).map(checkers::rank));
        let any = self.rng.usize(hosts);
        let hung = best.filter(|_| self.rng.u8(0..4) > 0).unwrap_or(any);
        self.world.set_disk_fault(hung, DiskFault::Hangs);
        self.let_pass(0..10)?;
        self.world.crash(leader)?;
        self.let_settle()?;
        self.world.set_disk_fault(hung, DiskFault::None);
        self.let_settle()
    }

    /// A follower restarts, and its first datagrams are lost. At times it has lost its state, and
    /// its clock was set back. Where nobody preempts, and no hook or candidate is missing, the
    /// leader leads on.
    fn restart_a_follower(&mut self) -> Result<(), Violation> {
        let hosts = 0..self.world.hosts.len();
        let may_displace = |host: &Host| {
            let Params { preempt, static_role, .. } = host.params;
            preempt || static_role.is_some() || host.hooks.blocked
        };
        let is_excused = self.world.watch.attacked || self.world.watch.counts_candidates;
        if is_excused || self.world.hosts.iter().any(may_displace) {
            return Ok(());
        }
        let Some(leader) = self.leader() else { return Ok(()) };
        let Some(follower) = self.rng.choice(self.hosts_of(Role::Follower)) else { return Ok(()) };
        self.world.crash(follower)?;
        if self.rng.bool() {
            let host = &mut self.world.hosts[follower];
            host.disk.replace();
            host.clock_is_back = true;
        }
        let alone: Vec<_> = hosts.map(|host| usize::from(host == follower)).collect();
        self.world.network.partition(&alone);
        self.world.start(follower)?;
        self.world.run_for(self.rng.u64(0..=self.heartbeat / 4))?;
        self.world.network.heal();
        self.let_settle()?;
        refuse(!self.hosts_of(Role::Leader).contains(&leader), || {
            let [leader, follower] = [leader, follower].map(|it| self.world.hosts[it].node_id);
            format!("restart: {leader} does not lead since {follower} is back")
        })
    }

    /// The hosts whose nodes have this role.
    fn hosts_of(&self, role: Role) -> Vec<usize> {
        let has = |host: &usize| {
            let election = self.world.hosts[*host].election.as_ref();
            election.is_some_and(|election| election.role() == role)
        };
        (0..self.world.hosts.len()).filter(has).collect()
    }

    fn leader(&self) -> Option<usize> {
        self.hosts_of(Role::Leader).first().copied()
    }

    /// The group gets the time to settle, and a quarter as much to stay as it is.
    fn let_settle(&mut self) -> Result<(), Violation> {
        let longest = self.world.longest_holdoff();
        self.world.run_for(longest + self.world.watch.settling_time * 5 / 4)
    }

    /// The group gets the time to settle, and half as much to stay as it is; while old datagrams
    /// come in.
    fn settle(&mut self) -> Result<(), Violation> {
        let takes = self.world.longest_holdoff() + self.world.watch.settling_time * 3 / 2;
        let step = takes.div_ceil(REPLAYS);
        let is_protected = self.world.all_require_keys();
        for _ in 0..REPLAYS {
            if is_protected {
                self.world.replay(self.world.gone_after, step);
            }
            self.world.run_for(step)?;
        }
        Ok(())
    }

    /// Lets so many heartbeats' time pass.
    fn let_pass(&mut self, heartbeats: std::ops::Range<u64>) -> Result<(), Violation> {
        let longest = heartbeats.end * self.heartbeat;
        self.world.run_for(self.rng.u64(heartbeats.start * self.heartbeat..=longest))
    }

    /// One fault or command.
    fn disturb(&mut self) -> Result<(), Violation> {
        let hosts = self.world.hosts.len();
        let host = self.rng.usize(0..hosts);
        self.world.watch.disturb(self.world.now);
        match self.rng.u8(0..32) {
            0..=1 => return self.crash_some(host),
            2..=5 if !self.world.hosts[host].is_alive() => return self.world.start(host),
            2 => {
                self.world.crash(host)?;
                return self.world.start(host);
            }
            3 => return self.world.command(host, "is stopped", Election::stop),
            4..=5 => self.world.pause(host),
            6..=7 => return self.world.resume(host),
            8..=9 => self.partition(),
            10 => {
                let other = self.rng.usize(0..hosts);
                match self.rng.bool() {
                    true => self.world.network.cut_one_way(host, other),
                    false => self.world.network.remove_route(host, other),
                }
            }
            11 => self.world.network.heal(),
            12 => self.world.network.weather = self.choose_weather(),
            13 => self.world.network.weather = Weather::CALM,
            14..=15 if !self.gentle => {
                // Every other time to a certain node.
                let to = Some(self.rng.usize(0..hosts * 2)).filter(|to| *to < hosts);
                return self.world.yield_leadership(host, to);
            }
            16 => {
                let on = self.rng.bool();
                return self.world.command(host, "maintenance", |election, now| {
                    election.set_maintenance(now, on);
                    // Whoever does that looks besides.
                    election.ping(now);
                });
            }
            17 => {
                let up = self.rng.bool();
                return self.world.plug(host, up);
            }
            18 | 29 => return self.reload(host),
            30 => return self.change_hook(host),
            23 => return self.attack(),
            24..=25 => {
                let towards = self.rng.u8(0..3) > 0;
                self.world.take_key_step(host, towards)?;
                return self.forget_attack();
            }
            19..=20 => {
                self.world.watch.attacked |= self.may_be_deceived();
                for _ in 0..self.rng.usize(1..40) {
                    self.world.replay(0, self.heartbeat * 5);
                }
            }
            21 => {
                let healthy = self.rng.bool();
                return self.world.set_health(host, healthy);
            }
            26..=28 => self.change_disk(host),
            // Only where the group has the time for a run that is tried again.
            22 if self.world.hosts[host].hooks.longest_retry() > 0 => {
                self.world.hosts[host].block_hooks(self.rng.bool());
            }
            _ => {
                self.world.network.heal();
                self.world.network.weather = Weather::CALM;
            }
        }
        Ok(())
    }

    /// In a large group, others crash together with `first`.
    fn crash_some(&mut self, first: usize) -> Result<(), Violation> {
        let hosts = self.world.hosts.len();
        let count = if LARGE.contains(&hosts) { self.rng.usize(1..hosts) } else { 1 };
        (first..first + count).try_for_each(|host| self.world.crash(host % hosts))
    }

    /// A disk hangs or fails, for a while or until it works again with all others.
    fn change_disk(&mut self, host: usize) {
        let fault = [DiskFault::Hangs, DiskFault::Fails][self.rng.usize(0..2)];
        match self.rng.u8(0..3) {
            0 => self.world.set_disk_fault(host, fault),
            1 => {
                let duration = self.rng.u64(0..=self.heartbeat * 20);
                self.world.set_disk_fault_for(host, fault, duration);
            }
            _ => {
                for host in 0..self.world.hosts.len() {
                    self.world.set_disk_fault(host, DiskFault::None);
                }
            }
        }
    }

    /// Whether a host believes what anybody sends.
    fn may_be_deceived(&self) -> bool {
        self.world.mixes_modes() && !self.world.all_require_keys()
    }

    /// An attacker without the key sends; nothing comes of it where all hosts require one.
    fn attack(&mut self) -> Result<(), Violation> {
        if !self.world.mixes_modes() {
            return Ok(());
        }
        self.world.watch.attacked |= self.may_be_deceived();
        self.world.attack(Repertoire::Everything, self.heartbeat * 5)
    }

    /// Once all hosts require keys, nothing of what was forged before is an excuse.
    fn forget_attack(&mut self) -> Result<(), Violation> {
        if self.world.all_require_keys() {
            self.world.watch.attacked = false;
            self.world.watch.disturb(self.world.now);
        }
        Ok(())
    }

    /// Where somebody was deceived, all hosts come to require keys; the attacker goes on.
    fn shut_out_attacker(&mut self) -> Result<(), Violation> {
        if self.world.watch.attacked {
            self.world.require_keys(self.heartbeat / 10)?;
            self.forget_attack()?;
            self.attack()?;
        }
        Ok(())
    }

    fn partition(&mut self) {
        let colours: Vec<usize> = self.world.hosts.iter().map(|_| self.rng.usize(0..2)).collect();
        self.world.network.partition(&colours);
    }

    fn reload(&mut self, host: usize) -> Result<(), Violation> {
        let mut params = self.world.hosts[host].params.clone();
        choose_reload(&mut self.rng, &mut params, self.gentle);
        self.world.hosts[host].params = params.clone();
        self.world.command(host, "reloads", |election, now| election.reconfigure(now, params))?;
        // The checks run again under the new settings.
        self.world.set_health(host, self.world.hosts[host].healthy)
    }

    /// The hook's command changes, or the hook-runner's, so the two differ for a while.
    fn change_hook(&mut self, host: usize) -> Result<(), Violation> {
        let agrees = self.rng.bool();
        self.world.command(host, "has another hook", |election, now| {
            election.replace_hook(now);
            election.handle_hook_runner(now, agrees);
        })
    }

    fn choose_weather(&mut self) -> Weather {
        let delay_min = self.rng.u64(20_000..=self.heartbeat / 100);
        let delay_max = match self.rng.u8(0..4) {
            0 => delay_min,
            1..=2 => delay_min + self.heartbeat / 100,
            _ => delay_min + self.heartbeat * 3,
        };
        let loss = [0.0, 0.0, 0.05, 0.3][self.rng.usize(0..4)];
        let duplication = [0.0, 0.3][self.rng.usize(0..2)];
        let late = delay_max > self.heartbeat / 10;
        Weather { delay_min, delay_max, loss, duplication, is_late: late, ..Weather::CALM }
    }

    /// Mends every fault; hooks no longer fail. Where they are blocked, they may remain so, and the
    /// operator may take the leadership away. A disk that hangs may do so to the end, too.
    fn mend(&mut self) -> Result<(), Violation> {
        // A group may have settled across links that worked one way only.
        self.world.watch.disturb(self.world.now);
        self.world.network.heal();
        self.world.network.weather = Weather::CALM;
        for host in 0..self.world.hosts.len() {
            self.world.hosts[host].hooks.mend();
            if self.world.hosts[host].disk.fault != DiskFault::Hangs || self.rng.bool() {
                self.world.set_disk_fault(host, DiskFault::None);
            }
            let blocked = self.world.hosts[host].hooks.blocked && self.rng.bool();
            self.world.hosts[host].block_hooks(blocked);
            self.world.plug(host, true)?;
            self.world.resume(host)?;
            if !self.world.hosts[host].is_alive() {
                self.world.start(host)?;
            }
            self.world.command(host, "back in service", |election, now| {
                election.handle_hook_runner(now, true);
                election.set_maintenance(now, false);
            })?;
            self.world.set_health(host, true)?;
            if self.world.hosts[host].hooks.blocked && self.rng.bool() {
                self.world.yield_leadership(host, None)?;
            }
        }
        self.shut_out_attacker()
    }
}

/// How many hosts a group has.
pub fn choose_size(rng: &mut Rng, seed: u64, usual: RangeInclusive<usize>) -> usize {
    rng.usize(if seed % LARGE_EVERY == 0 { LARGE } else { usual })
}

fn choose_settings(rng: &mut Rng, hosts: usize, gentle: bool) -> Vec<(Params, HookHabit)> {
    let shared = choose_shared(rng, hosts);
    let slow = nanos(shared.heartbeat_interval) * [0, 1, 10][rng.usize(0..3)];
    let failure = if gentle { 0.0 } else { [0.0, 0.0, 0.2, 0.8][rng.usize(0..4)] };
    let absence = if gentle { 0.0 } else { [0.0, 0.0, 0.3][rng.usize(0..3)] };
    let hangs = if gentle { 0.0 } else { [0.0, 0.0, 0.2][rng.usize(0..3)] };
    let limit = if hangs > 0.0 { nanos(shared.heartbeat_interval) * 30 } else { 0 };
    let static_group = rng.u8(0..12) == 0;
    let some_preempt = rng.u8(0..4) == 0;
    let have_peers = choose_peers(rng, hosts);
    choose_modes(rng, hosts)
        .into_iter()
        .zip(have_peers)
        .map(|(key_mode, unicast)| {
            let mut params = Params { key_mode, unicast, ..shared.clone() };
            params.priority = choose_priority(rng);
            params.tie_break = choose_tie_break(rng);
            params.preempt = if some_preempt { rng.bool() } else { params.preempt };
            choose_checks(rng, &mut params, gentle);
            params.candidate = rng.u8(0..6) > 0;
            if static_group {
                params.static_role = match rng.u8(0..4) {
                    0 => Some(StaticRole::Leader),
                    1 => Some(StaticRole::Follower),
                    _ => None,
                };
                params.candidate |= params.static_role.is_some();
            }
            let hooks = HookHabit {
                hangs,
                demoted_hangs: hangs,
                limit,
                failure,
                stubbornness: failure,
                absence,
                ..HookHabit::of_length(slow)
            };
            (params, hooks)
        })
        .collect()
}

/// What a group's nodes have in common.
fn choose_shared(rng: &mut Rng, hosts: usize) -> Params {
    let heartbeat = Duration::from_millis([20, 100, 1000, 2500][rng.usize(0..4)]);
    let mut params = Params::new(heartbeat);
    if rng.bool() {
        params.leader_alive_threshold = heartbeat * rng.u32(2..=6);
        params.leader_election_duration = heartbeat * rng.u32(1..=8) / 4;
        params.membership_sample_interval = heartbeat * rng.u32(1..=4) / 2;
        params.startup_grace_period = heartbeat * rng.u32(3..=15);
    }
    params.preempt = rng.u8(0..4) == 0;
    params.preempt_delay = heartbeat * rng.u32(0..3);
    params.min_candidates = if rng.u8(0..4) == 0 { rng.u16(1..=hosts as u16) } else { 1 };
    params.failure_holdoff = heartbeat * rng.u32(1..20);
    params.refresh_interval = choose_refresh(rng, heartbeat);
    if rng.u8(0..4) == 0 {
        params.on_elected_failure = OnElectedFailure::Ignore;
    }
    params
}

/// How slow each host's disk is; in many groups none is. Returns the slowest.
fn choose_slowest_write(rng: &mut Rng, world: &mut World<Checkers>) -> u64 {
    let heartbeat = nanos(world.hosts[0].params.heartbeat_interval);
    let slowest = [0, 0, heartbeat / 50, heartbeat / 2, heartbeat * 4][rng.usize(0..5)];
    for host in &mut world.hosts {
        host.disk.slowest = if slowest > 0 { rng.u64(0..=slowest) } else { 0 };
    }
    slowest
}

/// Which hosts have peers: all, some or none.
pub fn choose_peers(rng: &mut Rng, hosts: usize) -> Vec<bool> {
    let share = [0.0, 0.0, 0.5, 1.0, 1.0][rng.usize(0..5)];
    (0..hosts).map(|_| rng.f64() < share).collect()
}

/// A check, on most hosts.
fn choose_check(rng: &mut Rng) -> Option<Thresholds> {
    (rng.u8(0..4) > 0).then(|| Thresholds { fall: rng.u32(1..4), rise: rng.u32(1..4) })
}

/// A check, or a leader's check. A failure of that makes the host stay out, which a gentle world
/// does without.
pub fn choose_checks(rng: &mut Rng, params: &mut Params, gentle: bool) {
    params.check = choose_check(rng);
    let is_checked = !gentle && params.check.is_none();
    params.check_leader = is_checked.then(Thresholds::default);
}

/// What the operator changes in the settings of a running node.
pub fn choose_reload(rng: &mut Rng, params: &mut Params, gentle: bool) {
    match rng.u8(0..5) {
        0..=1 => {
            params.priority = choose_priority(rng);
            params.tie_break = choose_tie_break(rng);
        }
        2 => params.candidate = params.static_role.is_some() || rng.bool(),
        3 => params.preempt = rng.bool(),
        _ => {
            choose_checks(rng, params, gentle);
            params.refresh_interval = choose_refresh(rng, params.heartbeat_interval);
            params.failure_holdoff = params.heartbeat_interval * rng.u32(1..20);
        }
    }
}

/// A refresh, with some hosts' hooks.
pub fn choose_refresh(rng: &mut Rng, heartbeat: Duration) -> Option<Duration> {
    (rng.u8(0..4) == 0).then(|| heartbeat * rng.u32(1..=20))
}

/// Mostly by id. The others may spread, and may have the same hash.
pub fn choose_tie_break(rng: &mut Rng) -> TieBreak {
    TieBreak([0, 0, 0, 1, 2, u32::MAX][rng.usize(0..6)])
}

pub fn choose_priority(rng: &mut Rng) -> Priority {
    Priority([0, 100, 100, 100, 101, 255][rng.usize(0..6)])
}

/// How long a group under these settings may take to settle after the last disturbance: the bound
/// of the documentation, and the time that nodes start, wait to preempt, or wait for a hook.
fn gentle_settling_time(params: &Params, hooks: &HookHabit) -> u64 {
    let own = nanos(params.settling_time() + params.startup_grace_period + params.preempt_delay);
    slow(own + hooks.longest_run() * 4)
}

/// The same where nodes may besides stay out by the operator's will, or wait to try a hook again.
pub fn settling_time(params: &Params, hooks: &HookHabit) -> u64 {
    let out = nanos(params.yield_time()) + hooks.longest_retry();
    gentle_settling_time(params, hooks) + slow(out)
}

impl Tally {
    /// Adds another run's counts to these.
    pub fn add(&mut self, other: &Tally) {
        self.simulated += other.simulated;
        self.sent += other.sent;
        self.disturbances += other.disturbances;
    }

    /// What came of many runs, in words.
    pub fn summary(&self) -> String {
        format!(
            "{:.1} simulated hours, {} datagrams, {} faults and commands",
            self.simulated as f64 / 3.6e12,
            self.sent,
            self.disturbances,
        )
    }
}
