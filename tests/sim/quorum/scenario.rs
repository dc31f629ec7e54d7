//! One run: the group founds itself, faults come, everything is mended, and the group must recover.

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::persist::Enrolment;

use super::guarantees::Guarantees;
use super::recorder::{Record, Recorder};
use super::settings::{DRIFT_PPB, Drift, Settings};
use super::{Tally, leaderships};
use crate::watch::Violation;
use crate::world::network::Weather;
use crate::world::{Hiccups, HookHabit, Sabotage, World, nanos};

pub struct Scenario {
    pub rng: Rng,
    pub world: World<Guarantees>,
    pub settings: Settings,
    /// Who votes, by the configuration.
    pub voters: Vec<usize>,
    /// Who voted before the last change of the voters.
    pub former_voters: Vec<usize>,
    /// Whether all of the voters have counted for each other since the last change of them.
    pub change_is_over: bool,
    /// The host that is set to wrong voters.
    pub misled: Option<usize>,
    /// True time at which some node last got other settings.
    pub changed_at: u64,
    /// Whether an attacker without the key has been believed.
    pub attacked: bool,
    pub heartbeat: u64,
    pub tally: Tally,
}

impl Scenario {
    pub fn new(seed: u64, trace: bool, sabotage: Option<Sabotage>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let settings = Settings::choose(&mut rng);
        let mut hosts: Vec<_> =
            settings.params.iter().map(|params| (params.clone(), settings.hooks)).collect();
        hosts.push((settings.params[0].clone(), HookHabit::of_length(0)));
        let mut watch = Guarantees::new(hosts.len(), settings.guard.is_some(), settings.grace());
        watch.longest_grace = settings.longest_grace();
        let drift = if settings.drift == Drift::None { 0 } else { DRIFT_PPB };
        let mut world = World::new(rng.u64(..), hosts, drift, watch);
        if settings.drift == Drift::Extreme {
            for host in &mut world.hosts {
                host.clock.drift = if rng.bool() { DRIFT_PPB } else { -DRIFT_PPB };
            }
        }
        let heartbeat = nanos(settings.intervals[0].heartbeat);
        for host in &mut world.hosts {
            host.disk.slowest = [0, heartbeat / 20, heartbeat / 2, heartbeat * 4][rng.usize(0..4)];
        }
        world.group = settings.hosts;
        world.trace = trace;
        world.sabotage = sabotage;
        world.guard = settings.guard;
        world.post_stop = if settings.guard.is_some() { 1.0 } else { 0.0 };
        if trace {
            println!("{settings:#?}");
        }
        Scenario {
            voters: settings.voters.clone(),
            former_voters: settings.voters.clone(),
            change_is_over: true,
            misled: None,
            changed_at: 0,
            attacked: false,
            heartbeat,
            tally: Tally::default(),
            rng,
            world,
            settings,
        }
    }

    pub fn play(mut self) -> Result<Tally, Violation> {
        self.run()?;
        Ok(self.count())
    }

    /// Plays, and returns a record of `longest` lines at the most; none if the specification does
    /// not have the settings. A run that breaks a guarantee is written down up to there.
    pub fn record(mut self, longest: usize) -> Option<Record> {
        let intervals = self.settings.intervals[0];
        if self.settings.guard.is_none() || intervals.threshold != intervals.heartbeat * 2 {
            return None;
        }
        self.world.watch.recorder = Some(Recorder::new(self.world.hosts.len(), longest));
        let _judged_by_a_sweep = self.run();
        let lines = self.world.watch.recorder.map_or_else(Vec::new, Recorder::into_lines);
        Some(Record { lease: intervals.threshold, grace: intervals.grace, lines })
    }

    /// What comes now the specification does not have.
    pub fn end_record(&mut self) {
        if let Some(recorder) = &mut self.world.watch.recorder {
            recorder.end();
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        self.begin()?;
        for _ in 0..self.rng.usize(3..40) {
            self.disturb()?;
            self.tally.disturbances += 1;
            match self.rng.u8(0..8) {
                0 => self.let_pass(0, 60)?,
                1 => self.let_pass_one_lease()?,
                2..=3 => self.let_pass(0, 15)?,
                _ => self.let_pass(0, 4)?,
            }
            self.note_change_of_voters();
        }
        self.mend()?;
        self.recover()?;
        self.end()
    }

    /// Most groups found themselves in peace.
    fn begin(&mut self) -> Result<(), Violation> {
        let calm = self.rng.u8(0..5) > 0;
        for host in 0..self.settings.hosts {
            if calm || self.rng.bool() {
                self.world.start(host)?;
            }
        }
        if calm {
            self.let_pass(20, 40)?;
        }
        self.world.network.weather = self.choose_weather();
        if self.rng.bool() {
            let longest = self.heartbeat * [1, 8, 40][self.rng.usize(0..3)];
            self.world.hiccups = Hiccups { chance: 0.002, longest };
        }
        Ok(())
    }

    /// Lets so many heartbeats' time pass.
    pub fn let_pass(&mut self, least: u64, most: u64) -> Result<(), Violation> {
        let duration = self.rng.u64(least * self.heartbeat..=most * self.heartbeat);
        self.world.run_for(duration)
    }

    /// Lets about as much time pass as a pledge lasts.
    fn let_pass_one_lease(&mut self) -> Result<(), Violation> {
        let hold = nanos(self.settings.longest_hold());
        self.world.run_for(self.rng.u64(hold / 2..=hold * 5 / 4))
    }

    /// A host: the leader more often than another.
    pub fn choose_host(&mut self) -> usize {
        let leads = |host: &usize| leaderships::may_act(&self.world.hosts[*host], self.world.now);
        let leader = (0..self.settings.hosts).find(leads);
        leader.filter(|_| self.rng.u8(0..5) < 2).unwrap_or(self.rng.usize(0..self.settings.hosts))
    }

    /// One fault or command.
    fn disturb(&mut self) -> Result<(), Violation> {
        let host = self.choose_host();
        let hosts = self.settings.hosts;
        match self.rng.u8(0..51) {
            0..=1 => return self.world.crash(host),
            2..=5 => return self.start_all_but_some(),
            6..=7 => {
                self.world.crash(host)?;
                return self.world.start(host);
            }
            8 => return self.world.command(host, "is stopped", Election::stop),
            9..=12 => self.hold(host),
            13..=15 => self.partition(),
            16..=17 => {
                let (other, to_it) = (self.rng.usize(0..hosts), self.rng.bool());
                let (from, to) = if to_it { (other, host) } else { (host, other) };
                match self.rng.u8(0..3) {
                    0..=1 => self.world.network.cut_one_way(from, to),
                    _ => self.world.network.remove_route(from, to),
                }
            }
            18 => self.cut_off(host),
            19..=20 => self.world.network.heal(),
            21..=22 => self.world.network.weather = self.choose_weather(),
            23 => self.world.network.weather = Weather::CALM,
            24..=25 if !self.settings.gentle => {
                // Every other time to a certain node.
                let to = Some(self.rng.usize(0..hosts * 2)).filter(|to| *to < hosts);
                return self.world.yield_leadership(host, to);
            }
            26 => {
                let on = self.rng.bool();
                return self.world.command(host, "maintenance", |election, now| {
                    election.set_maintenance(now, on);
                    // Whoever does that looks besides.
                    election.ping(now);
                });
            }
            27 => {
                let up = self.rng.bool();
                return self.world.plug(host, up);
            }
            28..=29 => return self.reload(host),
            30..=31 => return self.replay(),
            32 => {
                self.replace_broken()?;
                return self.change_voters();
            }
            33..=34 => return self.restart_for_voters(),
            35 => {
                self.replace_broken()?;
                return self.mislead();
            }
            36..=37 => return self.lose_disk(host),
            38 => {
                self.replace_broken()?;
                return self.let_clone_run();
            }
            39..=40 => return self.break_member(),
            42..=43 => return self.attack(),
            44..=45 => {
                let towards = self.rng.u8(0..3) > 0;
                return self.world.take_key_step(host, towards);
            }
            41 => {
                let healthy = self.rng.bool();
                return self.world.set_health(host, healthy);
            }
            47..=49 => self.change_disk(host),
            50 => return self.change_hook(host),
            46 if self.settings.guard.is_none() && self.settings.hooks.longest_retry() > 0 => {
                self.world.hosts[host].block_hooks(self.rng.bool());
            }
            _ => {
                self.world.network.heal();
                self.world.network.weather = Weather::CALM;
            }
        }
        Ok(())
    }

    /// Whether every voter remembers its votes.
    pub fn all_enrolled(&self) -> bool {
        self.voters.iter().all(|voter| self.remembers(*voter))
    }

    /// Whether a host's disk holds the memory of its votes.
    pub fn remembers(&self, host: usize) -> bool {
        let disk = &self.world.hosts[host].disk;
        disk.kept.enrolment == Enrolment::Enrolled && !disk.torn
    }

    fn count(mut self) -> Tally {
        let counts = self.world.watch.counts;
        self.tally.simulated = self.world.now;
        self.tally.sent = self.world.sent;
        self.tally.elected = self.world.watch.leaderships.elected;
        self.tally.granted = self.world.watch.ledger.granted;
        self.tally.saves = counts.asked_to_keep;
        if self.settings.guard.is_none() {
            self.tally.unguarded = 1;
            self.tally.overlaps = counts.overlaps;
            self.tally.fences = counts.fences;
        }
        self.tally
    }
}
