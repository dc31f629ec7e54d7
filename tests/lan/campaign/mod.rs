//! Five nodes under everything at once, for as long as one likes, and what their mode promises checked
//! all the while; beside them one that only follows, to which nothing is done, and which must not grow. All
//! have a key, so that whoever restarts or was away has to show first that it is there.
//!
//! ```text
//! LANELECT_CAMPAIGN=10m cargo test --test lan -- campaign --nocapture
//! LANELECT_CAMPAIGN=10m LANELECT_LAN_SEED=… cargo test --test lan -- campaign --nocapture
//! ```
//!
//! Without `LANELECT_CAMPAIGN` a campaign is short. The seed, printed first, gives the same plan
//! again.
//!
//! In the variant with frozen processes the leadership is promised as ever, but the hooks only where
//! a watchdog ends a frozen daemon's: there their overlaps are counted. In available mode one leader is
//! promised where all hear each other: every now and then everything is healed, and there has to be one.

mod plan;

use std::collections::BTreeMap;
use std::time::Duration;

use plan::{Deed, HOSTS, Plan, Target};

use crate::harness::claims::{Claim, How, Interrogation, contradictions};
use crate::harness::keys::{KEY, give_key};
use crate::harness::patience::{self, campaign_duration};
use crate::harness::switch::Rule;
use crate::harness::usage::Usage;
use crate::harness::{Host, Lan, group, quorum_scenario, scenario, wait_until};

/// The hooks of [`Deed::SlowHooks`], one after another, fit into the grace well, on a loaded machine
/// too.
const QUORUM: &str = "\
    mode = \"quorum\"\n\
    voters = [\"h1\", \"h2\", \"h3\", \"h4\", \"h5\"]\n\
    leader_alive_threshold = \"600ms\"\n\
    membership_sample_interval = \"100ms\"\n\
    demote_grace = \"1500ms\"\n\
    failure_holdoff = \"1s\"\n";

/// The same without a majority.
const AVAILABLE: &str = "\
    leader_alive_threshold = \"600ms\"\n\
    membership_sample_interval = \"100ms\"\n\
    failure_holdoff = \"1s\"\n";

/// The nodes to which things are done, and the one that follows.
const ALL: usize = HOSTS + 1;

/// Between two times at which everything is healed.
const STEPS_PER_REST: usize = 150;

/// Between two looks at everything that was said so far.
const STEPS_PER_CHECK: usize = 25;

#[test]
fn crashes_stops_and_cuts_break_no_promise() {
    quorum_scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::Quorum).run());
}

#[test]
fn frozen_processes_break_no_leadership() {
    scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::QuorumWithFreezes).run());
}

#[test]
fn whatever_happened_available_mode_has_one_leader_afterwards() {
    scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::Available).run());
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Variant {
    Quorum,
    QuorumWithFreezes,
    Available,
}

struct Campaign<'a> {
    lan: &'a Lan,
    hosts: [&'a Host; HOSTS],
    follower: &'a Host,
    frozen: [bool; HOSTS],
    variant: Variant,
    clients: Interrogation,
    done: BTreeMap<String, usize>,
}

impl<'a> Campaign<'a> {
    fn new(lan: &'a Lan, all: [&'a Host; ALL], variant: Variant) -> Self {
        let [hosts @ .., follower] = all;
        let (frozen, done) = ([false; HOSTS], BTreeMap::new());
        Campaign { lan, hosts, follower, frozen, variant, clients: lan.interrogate(), done }
    }

    fn run(mut self) {
        let mode = if self.variant == Variant::Available { AVAILABLE } else { QUORUM };
        let settings = &format!("{mode}{}\n", give_key(self.follower, KEY));
        self.hosts.iter().for_each(|host| host.start(settings));
        self.follower.start(&format!("{settings}candidate = false\n"));
        self.lan.sole_leader();
        let usage = Usage::of(self.follower);
        let (started, limit) = (patience::now(), campaign_duration());
        let freezes = self.variant == Variant::QuorumWithFreezes;
        for (number, step) in Plan::new(self.lan.seed, freezes).enumerate() {
            if started.elapsed() >= limit {
                break;
            }
            patience::pass(step.wait);
            if self.carry_out(step.deed) {
                println!("{:7.1?}  {:?}", started.elapsed(), step.deed);
                *self.done.entry(step.deed.kind()).or_default() += 1;
            }
            self.check_hooks();
            if number % STEPS_PER_CHECK == 0 {
                self.check_claims();
            }
            if number % STEPS_PER_REST == STEPS_PER_REST - 1 {
                self.recover();
            }
        }
        self.recover();
        self.check_claims();
        let usage = (usage, Usage::of(self.follower));
        usage.0.check_growth(usage.1);
        self.tell(started.elapsed(), usage);
    }

    /// Does it, where it makes sense now; returns whether it does.
    fn carry_out(&mut self, deed: Deed) -> bool {
        let lan = self.lan;
        let runs = |n: usize| self.hosts[n].is_running();
        let awake = |n: usize| runs(n) && !self.frozen[n];
        let leader = self.leader();
        let at = |target: Target| target.unwrap_or(leader);
        match deed {
            Deed::Kill(n) if runs(at(n)) => {
                let n = at(n);
                self.hosts[n].crash_under_service_manager();
                self.frozen[n] = false;
            }
            // A signal in the first instant would end it before it can end in order.
            Deed::Stop(n) if awake(at(n)) && !self.hosts[at(n)].status().is_null() => {
                assert_eq!(self.hosts[at(n)].stop(), Some(0));
            }
            Deed::Start(n) => {
                let down = (n..n + HOSTS).map(|n| n % HOSTS).find(|n| !runs(*n));
                down.inspect(|n| self.hosts[*n].restart());
                return down.is_some();
            }
            Deed::Yield(n) if awake(at(n)) => {
                return self.hosts[at(n)].command(&["yield"]) == Some(0);
            }
            Deed::SlowHooks(n, tenths) => self.hosts[at(n)].slow_hooks(&format!("0.{tenths}")),
            Deed::Partition(sides) => self.partition(sides),
            Deed::OneWay(n, m) => lan.link(self.hosts[n], self.hosts[m], &Rule::cut()),
            Deed::Mute(n) => lan.mute(self.hosts[at(n)]),
            Deed::Deafen(n) => lan.deafen(self.hosts[at(n)]),
            Deed::Lose(percent) => {
                lan.everywhere(&Rule { loss: f64::from(percent) / 100.0, ..Rule::default() });
            }
            Deed::Heal => lan.heal(),
            Deed::Freeze(n) if awake(at(n)) => {
                let n = at(n);
                self.hosts[n].pause();
                self.frozen[n] = true;
            }
            Deed::Thaw(n) if self.frozen[n] => {
                self.hosts[n].resume();
                self.frozen[n] = false;
            }
            _ => return false,
        }
        true
    }

    /// Whoever last said on the wire that it leads.
    fn leader(&self) -> usize {
        self.lan.claims().last().map_or(0, |claim| claim.host - 1)
    }

    fn partition(&self, sides: u32) {
        let side = |bit| {
            let here = |host: &&&Host| sides >> (host.number - 1) & 1 == bit;
            self.hosts.iter().filter(here).copied().collect::<Vec<&Host>>()
        };
        self.lan.partition(&[&side(0), &side(1)]);
    }

    /// Undoes everything; then there has to be a leader.
    fn recover(&mut self) {
        self.lan.heal();
        for (host, frozen) in self.hosts.iter().zip(std::mem::take(&mut self.frozen)) {
            host.slow_hooks("0");
            if frozen {
                host.resume();
            }
            if !host.is_running() {
                host.restart();
            }
        }
        let all_up = || self.hosts.iter().all(|host| !host.status().is_null());
        wait_until("all are up again", all_up);
        self.lan.sole_leader();
        self.check_hooks();
    }

    fn check_hooks(&self) {
        self.lan.check_violations();
        if self.variant == Variant::Available {
            return;
        }
        let group::Verdict { overlaps, terms } = group::judge(&self.lan.journal().entries());
        assert!(terms.is_empty(), "{terms:#?}");
        assert!(overlaps.is_empty() || self.variant != Variant::Quorum, "{overlaps:#?}");
    }

    fn check_claims(&self) {
        if self.variant == Variant::Available {
            return;
        }
        let wrong = contradictions(&self.claims());
        assert!(wrong.is_empty(), "{wrong}");
    }

    fn claims(&self) -> Vec<Claim> {
        [self.lan.claims(), self.clients.claims()].concat()
    }

    fn tell(&self, lasted: Duration, usage: (Usage, Usage)) {
        let overlaps = group::judge(&self.lan.journal().entries()).overlaps.len();
        let hooks = self.lan.journal().text();
        let started = |hook: &str| hooks.matches(&format!(" start {hook}")).count();
        let claims = self.claims();
        let said = |how: How| claims.iter().filter(|claim| claim.how == how).count();
        let last_term = claims.iter().filter_map(|claim| claim.term).max().unwrap_or_default();
        println!(
            "campaign of {:.0?}, {:?}: {:?}\n\
             hooks: {} elected, {} demoted ({} lease-lost, {} crashed), last term {last_term}\n\
             said to lead: {} datagrams, {} of {} answers; broken promises: none; \
             overlapping hooks: {overlaps}\n\
             the follower kept {} kB and {} descriptors at first, {} and {} in the end",
            lasted,
            self.variant,
            self.done,
            started("elected"),
            started("demoted"),
            started("demoted lease-lost"),
            started("demoted crashed"),
            said(How::Datagram),
            said(How::Status) + said(How::IsLeader),
            self.clients.answers(),
            usage.0.resident_kb,
            usage.0.descriptors,
            usage.1.resident_kb,
            usage.1.descriptors,
        );
    }
}
