//! Five nodes under everything at once, for as long as one likes, and what their mode promises
//! checked all the while; beside them one that only follows, to which nothing is done, and which
//! must not grow. All have a key, so that whoever restarts or was away has to show first that it is
//! there.
//!
//! ```text
//! LANELECT_CAMPAIGN=10m cargo test --test lan -- campaign --nocapture
//! LANELECT_CAMPAIGN=10m LANELECT_LAN_SEED=… cargo test --test lan -- campaign --nocapture
//! ```
//!
//! Without `LANELECT_CAMPAIGN` a campaign is short. The seed, printed first, gives the same plan
//! again.
//!
//! Hooks fail, hang, ignore TERM and cannot be killed. In quorum mode nobody takes over before such
//! a hook has had its grace; afterwards anybody may, and the fence runs.
//!
//! In one variant the nodes are in two sites, two in each, with a witness and the follower in a
//! third one, and routers between them: not hosts are cut off from each other there but sites, both
//! ways or one way. They are listed as peers, and have no multicast. Processes are frozen too.
//!
//! In the variants with frozen processes the leadership is promised as ever, but the hooks only
//! where a watchdog ends a frozen daemon's: there their overlaps are counted. In available mode one
//! leader is promised where all hear each other: every now and then everything is healed, and there
//! has to be one.

mod plan;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use plan::{Deed, HOSTS, Plan, Target};

use crate::harness::claims::{Claim, How, Interrogation, contradictions};
use crate::harness::group::Overlap;
use crate::harness::journal::{Entry, Fault, What};
use crate::harness::keys::{KEY, give_key};
use crate::harness::patience::{self, campaign_duration};
use crate::harness::stuck::Stuck;
use crate::harness::switch::Rule;
use crate::harness::usage::Usage;
use crate::harness::{Host, Lan, group, scenario, wait_until};

/// The hooks of [`Deed::SlowHooks`], one after another, fit into the grace well, on a loaded
/// machine too.
const QUORUM: &str = "\
    mode = \"quorum\"\n\
    voters = [\"h1\", \"h2\", \"h3\", \"h4\", \"h5\"]\n\
    leader_alive_threshold = \"600ms\"\n\
    membership_sample_interval = \"100ms\"\n\
    demote_grace = \"1500ms\"\n\
    hook_timeout = \"2s\"\n\
    failure_holdoff = \"1s\"\n";

/// `demote_grace` in [`QUORUM`].
const GRACE: Duration = Duration::from_millis(1500);

/// The same without a majority.
const AVAILABLE: &str = "\
    leader_alive_threshold = \"600ms\"\n\
    membership_sample_interval = \"100ms\"\n\
    hook_timeout = \"2s\"\n\
    failure_holdoff = \"1s\"\n";

/// How long a service manager waits for a daemon whose hook cannot be killed. Then the kernel lets
/// go.
const STUCK_FOR: Duration = Duration::from_secs(5);

/// By so much a hook may have started later than its line says.
const HUNDREDTH: Duration = Duration::from_millis(10);

/// The nodes to which things are done, and the one that follows.
const ALL: usize = HOSTS + 1;

/// In which site each of the nodes is, the follower last, where there are sites.
const SITE_OF: [usize; ALL] = [0, 0, 1, 1, 2, 2];

/// The site of the last voter, which does not stand, and of the follower.
const WITNESS: usize = 2;

/// Between two times at which everything is healed.
const STEPS_PER_REST: usize = 150;

/// Between two looks at everything that was said so far.
const STEPS_PER_CHECK: usize = 25;

#[test]
fn crashes_stops_and_cuts_break_no_promise() {
    scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::Quorum).run());
}

#[test]
fn frozen_processes_break_no_leadership() {
    scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::QuorumWithFreezes).run());
}

#[test]
fn cuts_between_routed_sites_break_no_leadership() {
    scenario(|lan, [h1, h2, h3, h4, h5, h6, r1, r2, r3]| {
        let sites = lan.sites([r1, r2, r3]);
        let all = [h1, h2, h3, h4, h5, h6];
        all.iter().zip(SITE_OF).for_each(|(host, site)| sites[site].settle(host));
        let addresses = all.iter().zip(SITE_OF).map(|(host, site)| sites[site].address(host));
        let addresses: Vec<String> = addresses.collect();
        let mut campaign = Campaign::new(lan, all, Variant::QuorumOverSites);
        campaign.routers = vec![r1, r2, r3];
        campaign.peers = format!("multicast = \"none\"\npeers = {addresses:?}\n");
        campaign.run();
    });
}

#[test]
fn whatever_happened_available_mode_has_one_leader_afterwards() {
    scenario(|lan, hosts| Campaign::new(lan, hosts, Variant::Available).run());
}

/// When the hook of who took over started.
fn started_at(overlap: &Overlap) -> Instant {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let at = overlap.at.expect("a time with each start");
    patience::now() - Duration::from_secs_f64(uptime).saturating_sub(at)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Variant {
    Quorum,
    QuorumWithFreezes,
    QuorumOverSites,
    Available,
}

struct Campaign<'a> {
    lan: &'a Lan,
    hosts: [&'a Host; HOSTS],
    follower: &'a Host,
    /// On which hooks get stuck.
    stuck: [Option<Arc<Stuck>>; HOSTS],
    frozen: [bool; HOSTS],
    variant: Variant,
    /// One of each site; none where all are on one network.
    routers: Vec<&'a Host>,
    /// The config lines that list the hosts, where they are peers.
    peers: String,
    clients: Interrogation,
    done: BTreeMap<String, usize>,
}

impl<'a> Campaign<'a> {
    fn new(lan: &'a Lan, all: [&'a Host; ALL], variant: Variant) -> Self {
        let [hosts @ .., follower] = all;
        let stuck = hosts.map(|host| host.make_stuck_file().map(Arc::new));
        if stuck.iter().any(Option::is_none) {
            println!("no FUSE here: there are no hooks that cannot be killed");
        }
        Campaign {
            lan,
            hosts,
            follower,
            stuck,
            frozen: [false; HOSTS],
            variant,
            routers: Vec::new(),
            peers: String::new(),
            clients: lan.interrogate(),
            done: BTreeMap::new(),
        }
    }

    fn run(mut self) {
        let mode = if self.variant == Variant::Available { AVAILABLE } else { QUORUM };
        let settings = &format!("{mode}{}{}\n", self.peers, give_key(self.follower, KEY));
        for (host, site) in self.hosts.iter().zip(SITE_OF) {
            let is_witness = !self.routers.is_empty() && site == WITNESS;
            let witness = if is_witness { "candidate = false\n" } else { "" };
            host.start(&format!("{settings}{witness}{}", self.fence(host)));
        }
        self.follower.start(&format!("{settings}candidate = false\n"));
        self.lan.sole_leader();
        let usage = Usage::of(self.follower);
        let (started, limit) = (patience::now(), campaign_duration());
        let freezes =
            [Variant::QuorumWithFreezes, Variant::QuorumOverSites].contains(&self.variant);
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
        let usage = (usage, Usage::of(self.follower));
        usage.0.check_growth(usage.1);
        self.lan.stop_all();
        self.check_hooks();
        self.check_claims();
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
                let _until_done = self.keep_freeing(n);
                self.hosts[n].crash_under_service_manager();
                self.frozen[n] = false;
            }
            // A signal in the first instant would end it before it can end in order.
            Deed::Stop(n) if awake(at(n)) && !self.hosts[at(n)].status().is_null() => {
                let n = at(n);
                let _until_done = self.keep_freeing(n);
                assert_eq!(self.hosts[n].stop(), Some(0));
                self.hosts[n].clean_up();
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
            Deed::BreakHooks(n, Fault::CannotBeKilled) if self.stuck[at(n)].is_none() => {
                return false;
            }
            Deed::BreakHooks(n, fault) => self.hosts[at(n)].set_hook_fault(Some(fault)),
            Deed::MendHooks => self.mend_hooks(),
            Deed::Partition(_) | Deed::OneWay(..) | Deed::Mute(_) | Deed::Deafen(_)
                if !self.routers.is_empty() =>
            {
                return self.cut_sites(deed, leader);
            }
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
                lan.journal().note(&self.hosts[n].name, "thawed");
                self.hosts[n].resume();
                self.frozen[n] = false;
            }
            _ => return false,
        }
        true
    }

    /// A fence that says that it ran, as one that turns the host's power off would.
    fn fence(&self, host: &Host) -> String {
        match self.variant {
            Variant::Available => String::new(),
            _ => format!("fence = \"{}\"\n", self.lan.journal().hook(&host.name)),
        }
    }

    fn mend_hooks(&self) {
        for (host, stuck) in self.hosts.iter().zip(&self.stuck) {
            host.set_hook_fault(None);
            stuck.iter().for_each(|stuck| host.free_hooks(stuck));
        }
    }

    /// Lets go of what is stuck on a host, but not before the service manager has waited for it,
    /// until what this returns is dropped.
    fn keep_freeing(&self, n: usize) -> Option<Sender<()>> {
        let stuck = self.stuck[n].as_ref()?;
        Some(self.hosts[n].keep_freeing_hooks(stuck, STUCK_FOR))
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

    /// The same between sites. Returns whether it concerns more than one.
    fn cut_sites(&self, deed: Deed, leader: usize) -> bool {
        let is_cut = |from: usize, to: usize| match deed {
            Deed::Partition(sides) => sides >> from & 1 != sides >> to & 1,
            Deed::OneWay(n, m) => (from, to) == (SITE_OF[n], SITE_OF[m]),
            Deed::Mute(n) => from == SITE_OF[n.unwrap_or(leader)],
            Deed::Deafen(n) => to == SITE_OF[n.unwrap_or(leader)],
            _ => false,
        };
        let sites = 0..self.routers.len();
        let pairs = sites.clone().flat_map(|from| sites.clone().map(move |to| (from, to)));
        let cut = pairs.filter(|&(from, to)| from != to && is_cut(from, to));
        let cut = cut.map(|(from, to)| {
            self.lan.link(self.routers[from], self.routers[to], &Rule::cut());
        });
        cut.count() > 0
    }

    /// Undoes everything; then there has to be a leader.
    fn recover(&mut self) {
        self.lan.heal();
        for (host, frozen) in self.hosts.iter().zip(std::mem::take(&mut self.frozen)) {
            host.slow_hooks("0");
            host.set_hook_fault(None);
            if frozen {
                host.resume();
            }
            if !host.is_running() {
                host.restart();
            }
        }
        let all_up = || {
            // A hook may have begun just before.
            self.mend_hooks();
            self.hosts.iter().all(|host| !host.status().is_null())
        };
        wait_until("all are up again", all_up);
        self.lan.sole_leader();
        self.check_hooks();
        self.check_fences();
    }

    fn check_hooks(&self) {
        self.lan.check_violations();
        if self.variant == Variant::Available {
            return;
        }
        let group::Verdict { overlaps, terms } = group::judge(&self.lan.journal().entries());
        assert!(terms.is_empty(), "{terms:#?}");
        if self.variant == Variant::Quorum {
            let early: Vec<_> =
                overlaps.iter().filter(|overlap| !self.was_given_grace(overlap)).collect();
            assert!(early.is_empty(), "{early:#?}");
        }
    }

    /// Whether the holder's hooks had a fault, and nobody took over before their grace was over. It
    /// began no earlier than the holder last declared itself, because that takes a lease.
    fn was_given_grace(&self, overlap: &Overlap) -> bool {
        let taken = started_at(overlap) + HUNDREDTH;
        let declared = self.lan.claims().into_iter().filter(|claim| {
            self.hosts[claim.host - 1].name == overlap.holder.0 && claim.after <= taken
        });
        let silent = declared.map(|claim| taken - claim.after).min();
        overlap.was_faulty && silent.is_none_or(|silent| silent >= GRACE)
    }

    /// Panics where a host whose hooks had not let go when another took over was not fenced, unless
    /// its daemon was killed meanwhile.
    fn check_fences(&self) {
        if self.variant != Variant::Quorum {
            return;
        }
        let entries = self.lan.journal().entries();
        for Overlap { holder: (host, term), .. } in &group::judge(&entries).overlaps {
            let since = entries.iter().skip_while(|Entry { host: other, what }| {
                other != host || !matches!(what, What::Start(run) if run.term == *term)
            });
            let mut own = since.filter(|entry| entry.host == *host).map(|entry| &entry.what);
            let was_dealt_with = own.any(|what| match what {
                What::Start(run) => run.event == "fence" && run.term == *term,
                What::Crash => true,
                _ => false,
            });
            assert!(was_dealt_with, "{host} did not let go of term {term}, and no fence ran");
        }
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
        let is_faulty = |entry: &Entry| matches!(entry.what, What::Faulty(..));
        let faulty = self.lan.journal().entries().into_iter().filter(is_faulty).count();
        let claims = self.claims();
        let said = |how: How| claims.iter().filter(|claim| claim.how == how).count();
        let promise = match self.variant {
            Variant::Available => "one leader at each rest",
            _ => "never two leaders of a term, nor an earlier one after a later one",
        };
        let last_term = claims.iter().filter_map(|claim| claim.term).max().unwrap_or_default();
        println!(
            "campaign of {:.0?}, {:?}: {:?}\n\
             hooks: {} elected, {} demoted ({} lease-lost, {} crashed), {} fenced, {faulty} faulty; \
             last term {last_term}\n\
             said to lead: {} datagrams, {} of {} answers; {promise}; \
             overlapping hooks: {overlaps}\n\
             the follower kept {} kB and {} descriptors at first, {} and {} in the end",
            lasted,
            self.variant,
            self.done,
            started("elected"),
            started("demoted"),
            started("demoted lease-lost"),
            started("demoted crashed"),
            started("fence"),
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
