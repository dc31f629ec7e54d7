//! Everything is mended, and the group must recover within a bound and then stay as it is.
//!
//! `L` is the lease, `G` the demote grace, `P = (L + G) × 101 / 99` the longest pledge, `T` the
//! alive threshold, `E` the election's duration, `H` the heartbeat interval; of all settings that
//! were in force, the longest. Once a majority of voters that remember their votes runs and hears
//! each other, there is exactly one leader, known to all, within
//!
//! ```text
//! P + T + 6 E + 2 H
//! ```
//!
//! At the worst every voter holds still for a leader that is gone (`P`, also after a restart, from
//! its start), and follows it until its silence is noticed (`T`, within `P` where that is longer).
//! Nodes that start, clean up, wait for hooks, stay out, or wait after claims that failed add their
//! own times.

use std::time::Duration;

use lanelect::core::Election;
use lanelect::core::rank::Rank;
use lanelect::core::status::Ineligible;
use lanelect::types::Term;

use super::broken;
use super::guarantees::Settled;
use super::leaderships::may_act;
use super::scenario::Scenario;
use crate::available::checkers::rank;
use crate::watch::{Violation, Watch};
use crate::world::broken::{Broken, Lie};
use crate::world::network::Weather;
use crate::world::{Hiccups, Host, nanos, slow};

/// How many heartbeats a settled group is watched for without saving anything.
const QUIET_HEARTBEATS: u64 = 1000;

impl Scenario {
    /// Mends every fault.
    pub fn mend(&mut self) -> Result<(), Violation> {
        self.world.hiccups = Hiccups::default();
        self.world.network.heal();
        self.world.network.weather = Weather::CALM;
        self.world.lose_stragglers(self.heartbeat / 100);
        self.misled = None;
        self.mend_disks();
        self.replace_broken()?;
        self.let_forgotten_pledges_end()?;
        self.let_scripts_end()?;
        let voters = super::settings::voters_of(&self.voters);
        for host in 0..self.settings.hosts {
            self.remove_torn_state(host);
            let mut params = self.settings.params[host].clone();
            params.key_mode = self.world.hosts[host].params.key_mode;
            params.quorum.as_mut().expect("quorum mode").voters = voters.clone();
            let host = &mut self.world.hosts[host];
            host.params = params;
            host.hooks.mend();
            host.block_hooks(false);
            host.disk.slowest = host.disk.slowest.min(self.heartbeat / 20);
        }
        for host in 0..self.settings.hosts {
            self.world.plug(host, true)?;
            self.world.resume(host)?;
            if self.is_outdated(host) {
                self.world.crash(host)?;
            }
            let params = self.world.hosts[host].params.clone();
            self.world.command(host, "reloads", |election, now| {
                election.reconfigure(now, params);
            })?;
            self.take_back_into_service(host)?;
        }
        self.start_all()?;
        self.let_vain_runs_end()?;
        self.shut_out_attacker()
    }

    /// A daemon that starts when its host has cleaned up may come back in maintenance, too.
    fn let_scripts_end(&mut self) -> Result<(), Violation> {
        let ends = self.world.hosts.iter().map(|host| host.busy_until).max().unwrap_or_default();
        self.world.run_until(ends.max(self.world.now))
    }

    /// Each host gets its first intervals back. But those that testify to a voter that has lost its
    /// state must have the intervals of the leaders that it has forgotten.
    fn let_forgotten_pledges_end(&mut self) -> Result<(), Violation> {
        if self.all_enrolled() || self.all_have_intervals_of(&self.settings.params[0]) {
            return Ok(());
        }
        self.world.run_for(self.settings.longest_pledge())
    }

    /// A run that could not begin before, or hangs, is a failure when it ends, and may cost a
    /// holdoff.
    fn let_vain_runs_end(&mut self) -> Result<(), Violation> {
        let ends = self.world.hosts.iter().filter_map(Host::failing_run_ends_at).max();
        self.world.run_until(ends.unwrap_or_default().max(self.world.now))
    }

    /// Starts every daemon that is down, and may start.
    fn start_all(&mut self) -> Result<(), Violation> {
        for host in 0..self.settings.hosts {
            let Host { busy_until, .. } = self.world.hosts[host];
            if !self.world.hosts[host].is_alive() && busy_until <= self.world.now {
                self.world.start(host)?;
                self.take_back_into_service(host)?;
            }
        }
        Ok(())
    }

    fn take_back_into_service(&mut self, host: usize) -> Result<(), Violation> {
        self.world.command(host, "is back in service", |election, now| {
            election.handle_hook_runner(now, true);
            election.set_maintenance(now, false);
        })?;
        self.world.set_health(host, true)
    }

    /// The group gets its leader in time, and keeps it.
    pub fn recover(&mut self) -> Result<(), Violation> {
        let bound = self.startup_bound() + self.recovery_bound() + self.handover_bound();
        // A leader that was deceived before may still have a lease, and lose it.
        let lease = nanos(self.settings.longest_hold());
        self.world.run_for(lease)?;
        self.expect_leader_within(bound - lease)?;
        self.world.run_for(self.recovery_bound() + self.retry_bound())?;
        self.check_recovered()?;
        broken("enrolment", !self.all_enrolled(), || "a voter was never enrolled".into())
    }

    /// A group of running nodes.
    pub fn recovery_bound(&self) -> u64 {
        let hold = self.settings.longest_hold();
        let longest = |part: fn(&super::settings::Intervals) -> Duration| {
            self.settings.intervals.iter().map(part).max().unwrap_or_default()
        };
        let (threshold, election, heartbeat) =
            (longest(|i| i.threshold), longest(|i| i.election), longest(|i| i.heartbeat));
        slow(nanos(hold + threshold + election * 6 + heartbeat * 2))
    }

    /// What nodes may take besides that start, clean up, or stay out.
    pub fn startup_bound(&self) -> u64 {
        let params = &self.settings.params[0];
        let hooks = &self.settings.hooks;
        let own = nanos(params.startup_grace_period + params.preempt_delay + params.demote_grace())
            + hooks.longest_run() * 2
            + hooks.demoted_longest;
        let out = if self.settings.gentle { 0 } else { nanos(params.yield_time()) };
        slow(own + out) + self.world.longest_holdoff() + self.retry_bound()
    }

    /// What a hook takes that could not be started the first time.
    fn retry_bound(&self) -> u64 {
        let hooks = &self.settings.hooks;
        match hooks.longest_retry() {
            0 => 0,
            pause => slow(pause + hooks.longest_run() * 2),
        }
    }

    /// Waits for the leader, and takes down how much of the bound that took. A claim from before
    /// may fail just after all is mended, and the best node's may fail again because another one
    /// claims at the same time. Each time the pause comes on top, and the bound begins anew at its
    /// end; but from the second time on only if the leader is better than the time before.
    fn expect_leader_within(&mut self, bound: u64) -> Result<(), Violation> {
        let begin = self.world.now;
        let (mut since, mut last_leader) = (begin, None);
        self.await_leader_until(begin + bound)?;
        while self.check_recovered().is_err() {
            let again = self.world.hosts.iter().map(|host| host.claims_again_at).max();
            let (again, leader) = (again.unwrap_or_default(), self.leader());
            if again <= since || last_leader.is_some_and(|last| leader <= last) {
                return self.check_recovered();
            }
            (since, last_leader) = (again, Some(leader));
            self.await_leader_until(again + bound)?;
        }
        if last_leader.is_none() {
            let took = (self.world.now - begin) * 1000 / bound;
            self.tally.slowest = self.tally.slowest.max(took);
        }
        Ok(())
    }

    /// The best node of the group that leads.
    fn leader(&self) -> Option<Rank> {
        let hosts = &self.world.hosts[..self.settings.hosts];
        let elections = hosts.iter().filter_map(|host| host.election.as_ref());
        elections.filter(|election| election.is_leader()).map(rank).max()
    }

    fn await_leader_until(&mut self, end: u64) -> Result<(), Violation> {
        let step = (self.heartbeat / 4).max(1);
        while self.world.now < end && self.check_recovered().is_err() {
            // One that was just stopping is started again, too.
            self.start_all()?;
            self.world.run_for(step)?;
        }
        Ok(())
    }

    /// Exactly one leader, whom everybody follows.
    fn check_recovered(&self) -> Result<(), Violation> {
        let hosts = &self.world.hosts[..self.settings.hosts];
        let elections: Vec<&Election> =
            hosts.iter().filter_map(|host| host.election.as_ref()).collect();
        let leaders: Vec<_> =
            elections.iter().filter(|e| e.is_leader()).map(|e| e.node_id()).collect();
        let follows = |e: &&Election| (e.node_id(), e.role(), e.leader());
        let agree = elections.iter().all(|election| election.leader() == leaders.first().copied());
        let stay = |(host, election): (&Host, &&Election)| {
            match election.ineligible(host.local(self.world.now)) {
                Some(Ineligible::Stopping) => false,
                // By its settings.
                None
                | Some(
                    Ineligible::Observer
                    | Ineligible::NotVoter
                    | Ineligible::StaticFollower
                    | Ineligible::TooFewCandidates,
                ) => true,
                // It takes the leadership when that is over, as all is mended.
                Some(_) => !election.params().preempt,
            }
        };
        let all_stay = elections.len() == hosts.len() && hosts.iter().zip(&elections).all(stay);
        broken("liveness", leaders.len() != 1 || !agree || !all_stay, || {
            format!("{leaders:?} lead: {:?}", elections.iter().map(follows).collect::<Vec<_>>())
        })?;
        let eligible = elections.iter().filter(|election| election.is_eligible());
        let best = eligible.filter(|e| e.params().preempt).map(|election| rank(election)).max();
        broken("liveness", best.is_some() && best > self.leader(), || {
            format!("{leaders:?} lead though {best:?} preempts")
        })
    }

    /// What else is asked of a group that has recovered.
    pub fn end(&mut self) -> Result<(), Violation> {
        match self.rng.u8(0..11) {
            0 => self.stay_quiet(),
            1..=2 => self.split_without_majority(),
            3..=4 => self.send_minority_away(),
            5 => self.lose_the_leader(),
            6 => self.lose_the_leader_beside_a_broken_member(),
            7 => self.endure_lasting_faults(),
            8 => self.lose_the_leader_beside_hung_disks(),
            _ => self.stay_as_it_is(),
        }
    }

    pub fn settle(&mut self, hosts: Vec<usize>, why: &'static str) {
        self.world.watch.settled = Some(Settled { hosts, why });
    }

    fn all(&self) -> Vec<usize> {
        (0..self.settings.hosts).collect()
    }

    fn stay_as_it_is(&mut self) -> Result<(), Violation> {
        self.settle(self.all(), "in a settled group");
        self.world.run_for(self.recovery_bound())?;
        self.check_recovered()
    }

    /// A settled group saves nothing.
    fn stay_quiet(&mut self) -> Result<(), Violation> {
        self.settle(self.all(), "in a settled group");
        let before = self.world.watch.counts.asked_to_keep;
        self.world.run_for(self.heartbeat * QUIET_HEARTBEATS)?;
        let saves = self.world.watch.counts.asked_to_keep - before;
        broken("disk", saves > 0, || format!("{saves} saves in {QUIET_HEARTBEATS} heartbeats"))
    }

    /// Where no side has a majority nobody leads; healed, the group gets its leader back.
    fn split_without_majority(&mut self) -> Result<(), Violation> {
        let most = self.voters.len() / 2;
        if most == 0 {
            return Ok(());
        }
        let mut colours = vec![0; self.world.hosts.len()];
        for (index, host) in self.voters.iter().enumerate() {
            colours[*host] = index / most;
        }
        self.world.log(0, || format!("the network falls apart: {colours:?}"));
        self.world.network.partition(&colours);
        let lease = slow(nanos(self.settings.params[0].lease_term()));
        self.world.run_for(lease)?;
        // Whom a leader names that was just handing over takes a term, unlike all others.
        self.world.run_for(lease + self.handover_bound())?;
        let term = self.highest_term();
        for _ in 0..self.rng.u64(1..40) {
            self.world.run_for(self.heartbeat)?;
            let leader = self.world.hosts.iter().find(|host| may_act(host, self.world.now));
            broken("leadership", leader.is_some(), || "somebody leads a minority".into())?;
        }
        self.check_that_no_term_was_taken(term)?;
        self.world.network.heal();
        self.expect_leader_within(self.recovery_bound() + self.handover_bound())?;
        self.stay_as_it_is()
    }

    /// What it takes until the best candidate leads, where it preempts, by way of another.
    pub fn handover_bound(&self) -> u64 {
        let hooks = self.settings.hooks.longest + self.settings.hooks.demoted_longest;
        slow(nanos(self.settings.params[0].preempt_delay) + hooks * 2)
    }

    /// A minority that goes and comes back disturbs neither a healthy leader nor who stayed with
    /// it.
    fn send_minority_away(&mut self) -> Result<(), Violation> {
        let Some(leader) = (0..self.settings.hosts).find(|host| self.leads(*host)) else {
            return Ok(());
        };
        let mut voters: Vec<_> = self.voters.iter().copied().filter(|v| *v != leader).collect();
        self.rng.shuffle(&mut voters);
        let away = (self.voters.len() - 1) / 2;
        let mut leave = voters[..away].to_vec();
        let others = (0..self.settings.hosts).filter(|host| !self.voters.contains(host));
        leave.extend(others.filter(|_| self.rng.bool()));
        let stay: Vec<_> = self.all().into_iter().filter(|host| !leave.contains(host)).collect();
        if self.settings.any_preempts() {
            return Ok(());
        }
        self.world.log(leader, || format!("leads, and {leave:?} go away"));
        self.settle(stay.clone(), "though only a minority was away");
        let term = self.highest_term();
        let (deaf, mute) =
            [(true, true), (true, true), (true, false), (false, true)][self.rng.usize(0..4)];
        for (gone, here) in
            leave.iter().flat_map(|gone| stay.iter().map(move |here| (*gone, *here)))
        {
            if mute {
                self.world.network.cut_one_way(gone, here);
            }
            if deaf {
                self.world.network.cut_one_way(here, gone);
            }
        }
        let longest = self.recovery_bound() * 3;
        self.world.run_for(self.rng.u64(0..=longest))?;
        self.world.network.heal();
        self.world.run_for(self.recovery_bound())?;
        self.check_recovered()?;
        self.check_that_no_term_was_taken(term)?;
        broken("liveness", !self.leads(leader), || "a returning minority deposed a leader".into())
    }

    /// Links that fail in one direction, and disks that hang again and again, all for long. A host
    /// that was away meanwhile would like to lead. All of it may cost the group its leader, but not
    /// again and again. Mended, the group gets the right one.
    fn endure_lasting_faults(&mut self) -> Result<(), Violation> {
        self.world.log(0, || "links and disks fail for long".into());
        let away = self.choose_host();
        self.world.crash(away)?;
        self.cut_some_links();
        let longest = self.recovery_bound();
        self.world.run_for(self.rng.u64(0..=longest))?;
        let usual: Vec<_> = self.world.hosts.iter().map(|host| host.disk.slowest).collect();
        for host in &mut self.world.hosts {
            if self.rng.u8(0..3) == 0 {
                host.disk.slowest = self.heartbeat * [1, 10, 100][self.rng.usize(0..3)];
            }
        }
        self.start_all()?;
        self.world.watch.disturb(self.world.now);
        self.world.run_for(self.rng.u64(longest..=longest * 8))?;
        self.world.network.heal();
        for (host, slowest) in self.world.hosts.iter_mut().zip(usual) {
            // A write that is not over keeps the next one waiting.
            host.disk.slowest = slowest.max(1);
        }
        while self.world.hosts.iter().any(|host| host.disk.is_busy()) {
            self.world.run_for(self.heartbeat)?;
        }
        self.world.watch.disturb(self.world.now);
        self.start_all()?;
        self.expect_leader_within(
            self.startup_bound() + self.recovery_bound() + self.handover_bound(),
        )?;
        self.stay_as_it_is()
    }

    fn cut_some_links(&mut self) {
        let (share, hosts) = ([0.0, 0.1, 0.4][self.rng.usize(0..3)], self.settings.hosts);
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
            if self.rng.f64() < share {
                self.world.network.cut_one_way(from, to);
            }
        }
    }

    /// Who cannot win asks for support first, and takes no term.
    fn check_that_no_term_was_taken(&self, before: Term) -> Result<(), Violation> {
        let now = self.highest_term();
        broken("terms", now > before, || format!("a minority took term {now} after {before}"))
    }

    fn highest_term(&self) -> Term {
        let elections = self.world.hosts.iter().filter_map(|host| host.election.as_ref());
        elections.map(Election::term).max().unwrap_or_default()
    }

    pub fn leads(&self, host: usize) -> bool {
        self.world.hosts[host].election.as_ref().is_some_and(Election::is_leader)
    }

    /// A member that has no vote, and tells whatever terms it likes, neither keeps the voters from
    /// a leader nor moves one that is there.
    fn lose_the_leader_beside_a_broken_member(&mut self) -> Result<(), Violation> {
        let others: Vec<_> =
            (0..self.settings.hosts).filter(|host| !self.voters.contains(host)).collect();
        if others.is_empty() {
            return Ok(());
        }
        let broken = others[self.rng.usize(0..others.len())];
        let how = [Lie::Outbid, Lie::Term(Term(1 << 40))][self.rng.usize(0..2)];
        self.world.log(broken, || format!("breaks: {how:?}"));
        self.world.broken.push(Broken::new(broken, how));
        self.stay_as_it_is()?;
        self.world.watch.settled = None;
        self.lose_the_leader()
    }

    /// A leader that is cut off for good is replaced, where voters and a candidate are left.
    fn lose_the_leader(&mut self) -> Result<(), Violation> {
        let leader = (0..self.settings.hosts).find(|host| self.leads(*host));
        let enough = self.voters.len() > self.voters.len() / 2 + 1;
        let Some(leader) = leader.filter(|_| enough) else { return Ok(()) };
        let candidates = self.voters.iter().filter(|voter| self.settings.params[**voter].candidate);
        if candidates.count() < 2 {
            return Ok(());
        }
        self.cut_off(leader);
        // The one that is left may have been held off lately, as its hook had failed again and
        // again.
        let bound = self.recovery_bound() + self.handover_bound() + self.startup_bound();
        let begin = self.world.now;
        let mut elected = false;
        while !elected && self.world.now < begin + bound {
            self.world.run_for(self.heartbeat)?;
            elected = (0..self.settings.hosts).any(|host| host != leader && self.leads(host));
        }
        broken("liveness", !elected, || "nobody succeeds a leader that is cut off".into())
    }
}
