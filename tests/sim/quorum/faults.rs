//! Faults of quorum groups that need more than a line.

use lanelect::core::Election;
use lanelect::core::params::Params;
use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::types::Term;

use super::duplicates::Duplicates;
use super::scenario::Scenario;
use crate::available::swarm::choose_reload;
use crate::watch::Violation;
use crate::world::attacker::Repertoire;
use crate::world::broken::{Broken, Lie};
use crate::world::network::Weather;
use crate::world::{DiskFault, Hiccups, HookHabit, Host, nanos, node_id, slow};

impl Scenario {
    /// Starts what is down, but for a host here and there; the operator removes what cannot be
    /// read.
    pub fn start_all_but_some(&mut self) -> Result<(), Violation> {
        for host in 0..self.settings.hosts {
            if !self.world.hosts[host].is_alive() && self.rng.u8(0..4) > 0 {
                self.remove_torn_state(host);
                self.world.start(host)?;
            }
        }
        Ok(())
    }

    /// Holds a daemon: for a moment, for about as long as its lease and grace last, or for longer.
    pub fn hold(&mut self, host: usize) {
        let hold = nanos(self.settings.longest_hold());
        let longest = [self.heartbeat, hold / 2, hold * 2, hold * 5][self.rng.usize(0..4)];
        let duration = self.rng.u64(0..=longest);
        self.world.hold_for(host, duration);
    }

    pub fn partition(&mut self) {
        let sides = self.rng.usize(2..4);
        let colours: Vec<usize> =
            self.world.hosts.iter().map(|_| self.rng.usize(0..sides)).collect();
        self.world.network.partition(&colours);
    }

    /// Nothing gets to or from a host any more.
    pub fn cut_off(&mut self, host: usize) {
        for other in 0..self.world.hosts.len() {
            self.world.network.cut_one_way(host, other);
            self.world.network.cut_one_way(other, host);
        }
    }

    pub fn choose_weather(&mut self) -> Weather {
        let delay_min = self.rng.u64(20_000..=self.heartbeat / 100);
        let delay_max = match self.rng.u8(0..4) {
            0..=1 => delay_min + self.heartbeat / 100,
            2 => delay_min + self.heartbeat,
            _ => delay_min + self.heartbeat * 4,
        };
        Weather {
            delay_min,
            delay_max,
            loss: [0.0, 0.0, 0.05, 0.3][self.rng.usize(0..4)],
            duplication: [0.0, 0.3][self.rng.usize(0..2)],
            straggling: [0.0, 0.0, 0.05][self.rng.usize(0..3)],
            straggle_max: self.heartbeat * [20, 200, 2000][self.rng.usize(0..3)],
            is_late: delay_max > self.heartbeat / 10,
        }
    }

    /// Old datagrams come again; at times just when voters that have restarted hear nothing else of
    /// a leader that is cut off.
    pub fn replay(&mut self) -> Result<(), Violation> {
        let from = self.choose_host();
        if self.rng.bool() {
            self.cut_off(from);
            for host in 0..self.settings.hosts {
                if host != from && self.rng.u8(0..3) > 0 {
                    self.world.crash(host)?;
                    self.world.start(host)?;
                }
            }
        }
        if self.rng.bool() {
            self.replay_passages(from);
            return Ok(());
        }
        let latest = self.heartbeat * 5;
        for _ in 0..self.rng.usize(1..40) {
            self.world.replay(0, latest);
        }
        Ok(())
    }

    /// What one life has said comes again in its order: to everyone, or to each on its own.
    fn replay_passages(&mut self, from: usize) {
        let within = [0, self.heartbeat / 10, self.heartbeat * 2][self.rng.usize(0..3)];
        let together = self.rng.bool();
        for _ in 0..self.rng.usize(1..4) {
            if together {
                self.world.replay_passage(from, None, within);
            } else {
                let to = self.rng.usize(0..self.settings.hosts);
                self.world.replay_passage(from, Some(to), within);
            }
        }
    }

    /// An attacker without the key sends, and is believed where a host does not require one. It
    /// lies in nothing that concerns promises: without a key any host can, and no majority protocol
    /// bears that.
    pub fn attack(&mut self) -> Result<(), Violation> {
        if !self.world.mixes_modes() {
            return Ok(());
        }
        self.attacked |= !self.world.all_require_keys();
        self.end_record();
        self.world.attack(Repertoire::NoPromises, self.heartbeat * 5)
    }

    /// Where somebody was deceived, all hosts come to require keys; the attacker goes on. A voter
    /// that was made to believe in a duplicate first waits until that has long been silent.
    pub fn shut_out_attacker(&mut self) -> Result<(), Violation> {
        if self.attacked {
            self.world.require_keys(self.heartbeat / 10)?;
            let hosts = self.world.hosts.iter().map(|host| &host.params);
            let patience = |params: &Params| {
                let report = params.voter_report_interval(self.settings.hosts);
                // A member counts as silent after two and a half of the intervals it announces.
                params.member_patience().max(report * 5 / 2)
            };
            let patience = hosts.map(patience).max().unwrap_or_default();
            self.world.run_for(slow(nanos(patience)))?;
            self.attack()?;
        }
        Ok(())
    }

    /// A member's daemon breaks and tells wrong terms, or those that are broken are replaced. Of
    /// the voters a minority may break, as these do not count then; none of them outbids, because
    /// its terms are those that it votes in.
    pub fn break_member(&mut self) -> Result<(), Violation> {
        if !self.world.broken.is_empty() && self.rng.bool() {
            return self.replace_broken();
        }
        let host = self.rng.usize(0..self.settings.hosts);
        let is_voter = self.voters.contains(&host);
        let is_broken = |host: &usize| self.world.broken.iter().any(|it| it.host == *host);
        let broken_voters = self.voters.iter().filter(|voter| is_broken(voter)).count();
        let too_many = is_voter && broken_voters + 1 > (self.voters.len() - 1) / 2;
        if is_broken(&host) || too_many || !self.all_agree_on_voters() {
            return Ok(());
        }
        let how =
            if !is_voter && self.rng.bool() { Lie::Outbid } else { Lie::Term(self.choose_lie()) };
        self.world.log(host, || format!("breaks: {how:?}"));
        self.end_record();
        self.world.broken.push(Broken::new(host, how));
        Ok(())
    }

    /// A term that no group has come to; several tell the same one at times.
    fn choose_lie(&mut self) -> Term {
        let told = self.world.broken.iter().find_map(|broken| match broken.how {
            Lie::Term(term) => Some(term),
            _ => None,
        });
        let chosen = [1 << 20, 1 << 40, 1 << 62, u64::MAX][self.rng.usize(0..4)];
        told.filter(|_| self.rng.u8(0..4) > 0).unwrap_or(Term(chosen))
    }

    /// Every broken daemon is replaced by a whole one.
    pub fn replace_broken(&mut self) -> Result<(), Violation> {
        while let Some(Broken { host, .. }) = self.world.broken.last().copied() {
            self.world.resume(host)?;
            self.world.crash(host)?;
            // It is broken until its end.
            self.world.broken.pop();
            self.world.start(host)?;
        }
        Ok(())
    }

    /// A host gets other settings, or other intervals while every voter remembers its votes.
    pub fn reload(&mut self, host: usize) -> Result<(), Violation> {
        if !self.all_enrolled() || self.rng.bool() {
            let mut params = self.world.hosts[host].params.clone();
            choose_reload(&mut self.rng, &mut params, self.settings.gentle);
            self.world.hosts[host].params = params.clone();
            let reload = |election: &mut Election, now| election.reconfigure(now, params);
            self.world.command(host, "reloads", reload)?;
            return self.world.set_health(host, self.world.hosts[host].healthy);
        }
        let intervals = self.settings.intervals[self.rng.usize(0..self.settings.intervals.len())];
        let params = intervals.set(&self.world.hosts[host].params);
        self.changed_at = self.world.now;
        if intervals != self.settings.intervals[0] {
            self.end_record();
        }
        self.world.hosts[host].params = params.clone();
        self.world.command(host, "reloads", |election, now| election.reconfigure(now, params))
    }

    /// The hook's command changes, or the hook-runner's, so the two differ for a while.
    pub fn change_hook(&mut self, host: usize) -> Result<(), Violation> {
        let agrees = self.rng.bool();
        self.world.command(host, "has another hook", |election, now| {
            election.replace_hook(now);
            election.handle_hook_runner(now, agrees);
        })
    }

    /// A voter's disk is lost, or torn in a crash. No daemon starts on a torn one.
    pub fn lose_disk(&mut self, host: usize) -> Result<(), Violation> {
        // An attacker may announce the next life of a voter before it begins: then those that
        // testify count the time from there.
        if self.attacked || !self.may_lose_disk(host) {
            return Ok(());
        }
        self.world.crash(host)?;
        let torn = self.rng.bool();
        self.world.log(host, || format!("loses its disk, torn: {torn}"));
        self.world.watch.ledger.forget_ballots(host);
        let disk = &mut self.world.hosts[host].disk;
        if torn {
            disk.torn = true;
        } else {
            disk.replace();
            self.world.hosts[host].clock_is_back = self.rng.u8(..4) == 0;
        }
        self.world.start(host)
    }

    /// Whether the design bears with the loss of this host's disk now; see the module's header.
    fn may_lose_disk(&self, host: usize) -> bool {
        let majority_remembers = |voters: &[usize]| {
            let others = voters.iter().filter(|voter| **voter != host);
            others.filter(|voter| self.has_forgotten_nothing(**voter)).count() > voters.len() / 2
        };
        let calm_for = self.world.now - self.changed_at;
        majority_remembers(&self.voters)
            && (self.all_agree_on_voters() || majority_remembers(&self.former_voters))
            && self.misled.is_none()
            && calm_for > self.settings.longest_pledge()
            && self.all_have_intervals_of(&self.world.hosts[0].params)
    }

    /// Whether a host's disk holds all that it ever promised; one that founds the group has
    /// promised nothing.
    fn has_forgotten_nothing(&self, host: usize) -> bool {
        let disk = &self.world.hosts[host].disk;
        disk.kept.enrolment != Enrolment::None && !disk.torn
    }

    /// Whether pledges last as long on every host as they do with these settings.
    pub fn all_have_intervals_of(&self, params: &Params) -> bool {
        let intervals = |params: &Params| (params.leader_alive_threshold, params.demote_grace());
        let runs_otherwise = |host: &Host| {
            let election = host.election.as_ref();
            election.is_some_and(|election| intervals(election.params()) != intervals(params))
        };
        let hosts = &self.world.hosts[..self.settings.hosts];
        hosts
            .iter()
            .all(|host| intervals(&host.params) == intervals(params) && !runs_otherwise(host))
    }

    /// The operator removes what cannot be read.
    pub fn remove_torn_state(&mut self, host: usize) {
        let disk = &mut self.world.hosts[host].disk;
        if disk.torn {
            disk.replace();
        }
    }

    /// A second daemon is started under a voter's id, on a copy of its disk or on an empty one, in
    /// a network in which everybody hears everybody. The leader may fail meanwhile. The duplicate
    /// is gone in the end.
    pub fn let_clone_run(&mut self) -> Result<(), Violation> {
        let victim = self.voters[self.rng.usize(0..self.voters.len())];
        // A forged number hides a duplicate's.
        if self.attacked || !self.all_agree_on_voters() || !self.calm_down(victim)? {
            return Ok(());
        }
        // The only voter says nothing while its disk fails, so it does not object to a second one.
        let is_alone = self.voters.len() == 1;
        if is_alone && self.world.hosts[victim].disk.fault != DiskFault::None {
            return Ok(());
        }
        self.end_record();
        let duplicate = self.settings.hosts;
        let host = &self.world.hosts[victim];
        let (node_id_taken, params, kept) = (host.node_id, host.params.clone(), host.disk.kept);
        // A copy of the only voter's state is a majority of its own, and nobody is there to notice.
        let copied = self.rng.bool() && !is_alone;
        let host = &mut self.world.hosts[duplicate];
        (host.node_id, host.params) = (node_id_taken, params);
        host.disk.kept = if copied { kept } else { PersistentState::default() };
        host.hooks = HookHabit::of_length(0);
        self.world.network.copy_carriers(victim, duplicate);
        self.world.watch.ledger.forget_host(duplicate);
        self.world.watch.duplicates = Some(Duplicates::of(node_id_taken));
        self.world.start(duplicate)?;
        for _ in 0..self.rng.usize(1..4) {
            self.let_pass(0, 3)?;
            let other = self.choose_host();
            if other != victim && self.rng.bool() {
                self.world.crash(other)?;
            }
        }
        self.world.crash(duplicate)?;
        self.let_pass(1, 10)?;
        self.world.watch.duplicates = None;
        self.world.hosts[duplicate].node_id = node_id(duplicate);
        Ok(())
    }

    /// Mends the network and the weather, lets everybody go on, and waits until everybody has heard
    /// `host`; tells whether it runs.
    fn calm_down(&mut self, host: usize) -> Result<bool, Violation> {
        self.world.hiccups = Hiccups::default();
        self.world.network.heal();
        self.world.network.weather = Weather::CALM;
        self.world.lose_stragglers(0);
        for host in 0..self.settings.hosts {
            self.world.plug(host, true)?;
            self.world.resume(host)?;
        }
        self.let_pass(10, 10)?;
        Ok(self.world.hosts[host].is_up())
    }
}
