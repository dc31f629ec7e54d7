//! The LAN: hosts, the networks between them, and what is expected of all of them together.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::thread;

use super::carrier::Carrier;
use super::claims::{Claim, Interrogation, contradictions};
use super::group;
use super::host::{Host, ip};
use super::inside::{self, Inside, Needs, isolated_with};
use super::journal::{self, Entry, Journal};
use super::patience::{wait_for, wait_until};
use super::switch::{Rule, Switch};

/// Config lines of a group in which the best candidate succeeds the leader, though the machine may
/// hold it up for a while: by default the next one waits for it no longer than a quarter of an
/// interval.
pub(crate) const BEST_SUCCEEDS: &str = "leader_election_duration = \"1s\"\n";

/// Config lines of a group in which no stall of a loaded machine is taken for silence, of a leader
/// that does much besides either.
pub(crate) const PATIENT: &str = "leader_alive_threshold = \"3s\"\n";

/// Sets the switches' dice; printed by every run.
const SEED: &str = "LANELECT_LAN_SEED";

/// Hosts on one network, or on two.
pub(crate) struct Lan {
    /// What everything random is drawn from.
    pub(crate) seed: u64,
    hosts: Vec<Host>,
    networks: Rc<[Switch]>,
    journal: Journal,
}

/// Runs a test on as many hosts as `body` takes, in isolation; afterwards checks every host's
/// hooks, and that every daemon stops in order.
pub(crate) fn scenario<const N: usize>(body: impl FnOnce(&Lan, [&Host; N])) {
    scenario_with(Needs::default(), body);
}

/// A [`scenario`] in namespaces that serve these needs.
pub(crate) fn scenario_with<const N: usize>(needs: Needs, body: impl FnOnce(&Lan, [&Host; N])) {
    named_scenario(needs, inside::test_name(&body), body);
}

/// A [`scenario_with`] for the test of this name, whose closure `body` need not be.
pub(crate) fn named_scenario<const N: usize>(
    needs: Needs,
    test: &str,
    body: impl FnOnce(&Lan, [&Host; N]),
) {
    run(1, needs, test, body);
}

/// A [`scenario`] whose hosts have a second interface on a second network.
pub(crate) fn dual_homed_scenario<const N: usize>(body: impl FnOnce(&Lan, [&Host; N])) {
    run(2, Needs::default(), inside::test_name(&body), body);
}

/// A [`scenario`] in quorum mode: afterwards also checks what the group as a whole was promised.
pub(crate) fn quorum_scenario<const N: usize>(body: impl FnOnce(&Lan, [&Host; N])) {
    run(1, Needs::default(), inside::test_name(&body), |lan, hosts| {
        body(lan, hosts);
        lan.check_hooks();
        lan.stop_all();
        lan.check_group();
    });
}

fn run<const N: usize>(
    networks: usize,
    needs: Needs,
    test: &str,
    body: impl FnOnce(&Lan, [&Host; N]),
) {
    if let Some(why) = Carrier::chosen().exclusion(test) {
        return inside::skip(test, &why);
    }
    isolated_with(needs, test, |inside| {
        let lan = Lan::new(inside, N, networks);
        body(&lan, std::array::from_fn(|i| &lan.hosts[i]));
        lan.check_hooks();
        lan.stop_all();
    });
}

impl Lan {
    /// Hosts `h1` to `hN`, without daemons.
    fn new(inside: Inside, hosts: usize, networks: usize) -> Lan {
        let dir = private_directory();
        let seed = env::var(SEED).ok().map(|text| text.parse().expect("a decimal seed"));
        let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap());
        println!("{SEED}={seed}");
        let networks: Rc<[Switch]> = (0..networks).map(|_| Switch::new(seed, "default")).collect();
        let (journal, inside) = (Journal::new(dir), Rc::new(inside));
        let host = |n| {
            Host::new((n, hosts), dir, Rc::clone(&networks), journal.clone(), Rc::clone(&inside))
        };
        Lan { seed, hosts: (1..=hosts).map(host).collect(), networks, journal }
    }

    // Daemons.

    /// Starts the daemons so that the first host leads: the others join when it does.
    pub(crate) fn start_led_by_first(&self, hosts: &[&Host], lines: &str) {
        let (first, rest) = hosts.split_first().unwrap();
        first.start(lines);
        self.wait_for_leader(first);
        rest.iter().for_each(|host| host.start(lines));
        self.wait_for_leader(first);
    }

    /// Waits until exactly one running host leads, all the others follow it and no hook runs;
    /// returns it.
    #[track_caller]
    pub(crate) fn sole_leader(&self) -> &Host {
        wait_for("one host leads and the others follow it", || self.agreed_leader())
    }

    /// [`Lan::sole_leader`] among these hosts only.
    #[track_caller]
    pub(crate) fn sole_leader_of<'a>(&self, hosts: &[&'a Host]) -> &'a Host {
        wait_for("one of them leads and the others follow it", || agreed_leader(hosts))
    }

    /// Waits until each of these hosts, the voters of a group, counts the votes of all of them. Two
    /// of three that remember their votes elect a leader while the third still finds out that it
    /// may vote: without that leader it has nobody to find it out from.
    #[track_caller]
    pub(crate) fn wait_until_all_vote(&self, hosts: &[&Host]) {
        wait_until("every voter counts every voter", || {
            hosts.iter().all(|host| host.counted_votes() == hosts.len())
        });
    }

    /// Waits until `host` is the sole leader.
    #[track_caller]
    pub(crate) fn wait_for_leader(&self, host: &Host) {
        wait_until(&format!("{} leads and the others follow it", host.name), || {
            self.agreed_leader().is_some_and(|leader| leader.name == host.name)
        });
    }

    /// Waits until all know one term. A leader that steps down before a better one concedes a term
    /// above both, and the better one still has to get above that.
    #[track_caller]
    pub(crate) fn wait_for_one_term(&self) {
        wait_until("all know one term", || {
            let mut terms = self.running().map(|host| host.status()["term"].as_u64());
            let first = terms.next().flatten();
            first.is_some() && terms.all(|term| term == first)
        });
    }

    /// Waits until the hooks of all running hosts are through. Then panics where any host's role,
    /// leader, term or hooks change while each of them sends and receives `count` more datagrams,
    /// together.
    #[track_caller]
    pub(crate) fn assert_calm_for(&self, count: u64) {
        self.wait_for_hooks();
        let (view, hooks) = (self.view(), self.journal.entries());
        let start = self.traffic();
        wait_until(&format!("{count} more datagrams passed"), || {
            self.traffic().iter().zip(&start).all(|(now, start)| now - start >= count)
        });
        assert_eq!(self.view(), view, "something changed while nothing happened");
        assert_eq!(self.journal.entries(), hooks, "a hook ran while nothing happened");
    }

    /// Waits until none of these hosts leads or follows, and panics where one does again while each
    /// of them sends and receives `count` more datagrams, together.
    #[track_caller]
    pub(crate) fn assert_leaderless_for(&self, hosts: &[&Host], count: u64) {
        let leaderless = || {
            hosts.iter().all(|host| {
                let status = host.status();
                status["role"] != "leader" && status["leader"].is_null() && !status.is_null()
            })
        };
        wait_until("nobody leads", leaderless);
        let start: Vec<u64> = hosts.iter().map(|host| traffic_of(host)).collect();
        wait_until(&format!("{count} more datagrams passed"), || {
            assert!(leaderless(), "somebody leads");
            hosts.iter().zip(&start).all(|(host, start)| traffic_of(host) >= start + count)
        });
    }

    // What the hosts say of themselves.

    /// The datagrams that said "I lead", in the order in which they were sent.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.networks.iter().flat_map(Switch::claims).collect()
    }

    /// Starts asking every host all the time whether it leads.
    pub(crate) fn interrogate(&self) -> Interrogation {
        Interrogation::start(self.hosts.iter().map(|h| h.path("control.sock").into()).collect())
    }

    // The networks. Without a number, all of them.

    /// Has each host know where each other one is on `eth0`. Unicast needs that, and a host that
    /// may not answer would not be found: a one-way link would carry nothing either way.
    pub(crate) fn keep_neighbours(&self) {
        for host in &self.hosts {
            for other in self.others(host) {
                host.keep_neighbour(&other.address(0), other);
            }
        }
    }

    /// Lets nothing through from or to `host`.
    pub(crate) fn cut(&self, host: &Host) {
        (0..self.networks.len()).for_each(|network| self.cut_on(network, host));
    }

    /// Lets nothing through from or to `host` on one network.
    pub(crate) fn cut_on(&self, network: usize, host: &Host) {
        for other in self.others(host) {
            self.networks[network].link(host.number, other.number, Rule::cut());
            self.networks[network].link(other.number, host.number, Rule::cut());
        }
    }

    /// Lets nothing through to `host`; the others hear it.
    pub(crate) fn deafen(&self, host: &Host) {
        self.others(host).for_each(|other| self.link(other, host, &Rule::cut()));
    }

    /// Lets nothing through from `host`; it hears the others.
    pub(crate) fn mute(&self, host: &Host) {
        self.others(host).for_each(|other| self.link(host, other, &Rule::cut()));
    }

    /// Lets nothing through between hosts of different groups.
    pub(crate) fn partition(&self, groups: &[&[&Host]]) {
        for (i, from) in groups.iter().enumerate() {
            for (_, to) in groups.iter().enumerate().filter(|(j, _)| *j != i) {
                from.iter().for_each(|a| to.iter().for_each(|b| self.link(a, b, &Rule::cut())));
            }
        }
    }

    /// The same rule for frames between any two hosts.
    pub(crate) fn everywhere(&self, rule: &Rule) {
        for from in &self.hosts {
            self.others(from).for_each(|to| self.link(from, to, rule));
        }
    }

    /// Sets the rule for frames from one host to another.
    pub(crate) fn link(&self, from: &Host, to: &Host, rule: &Rule) {
        for network in self.networks.iter() {
            network.link(from.number, to.number, rule.clone());
        }
    }

    /// Has a bridge of the kernel join the hosts instead of the switches, which could not keep up
    /// with a flood. From now on nothing is cut, and nothing that is said on the wire is noted.
    pub(crate) fn use_bridges(&self) {
        for (number, network) in self.networks.iter().enumerate() {
            network.retire();
            ip(&format!("link add br{number} type bridge mcast_snooping 0"));
            ip(&format!("link set br{number} addrgenmode none up"));
            for host in &self.hosts {
                ip(&format!("link set {} master br{number}", host.port(number)));
            }
        }
    }

    /// What `host` sends is from now on that of a later release, or of this one again.
    pub(crate) fn upgrade(&self, host: &Host, is_later: bool) {
        self.networks.iter().for_each(|network| network.upgrade(host.number, is_later));
    }

    /// From now on `host` forwards what others have said, and says nothing itself.
    pub(super) fn note_no_claims_of(&self, host: &Host) {
        self.networks.iter().for_each(|network| network.note_no_claims_of(host.number));
    }

    /// Lets everything through again.
    pub(crate) fn heal(&self) {
        self.networks.iter().for_each(Switch::heal);
    }

    /// UDP datagrams of `host` that the switches have taken in.
    pub(crate) fn datagrams_from(&self, host: &Host) -> u64 {
        self.networks.iter().map(|network| network.datagrams_from(host.number)).sum()
    }

    /// UDP datagrams that have left `host` by now, those included that wait for a switch.
    pub(crate) fn all_datagrams_from(&self, host: &Host) -> u64 {
        self.networks.iter().for_each(Switch::catch_up);
        self.datagrams_from(host)
    }

    /// The hooks of all hosts.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    // Helpers.

    fn others(&self, host: &Host) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(move |other| other.number != host.number)
    }

    fn running(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.is_running())
    }

    fn agreed_leader(&self) -> Option<&Host> {
        agreed_leader(&self.running().collect::<Vec<_>>())
    }

    /// What each running host sees: its role, its leader, the term.
    fn view(&self) -> Vec<String> {
        let line = |host: &Host| {
            let status = host.status();
            let (role, leader) = (&status["role"], &status["leader"]["node_id"]);
            format!("{}: {role} under {leader} in term {}", host.name, status["term"])
        };
        self.running().map(line).collect()
    }

    /// Datagrams that each running host has sent and received.
    fn traffic(&self) -> Vec<u64> {
        self.running().map(traffic_of).collect()
    }

    /// Panics where any host's hooks broke the rules, or do not come to match its role.
    fn check_hooks(&self) {
        self.wait_for_hooks();
        self.check_violations();
    }

    /// Waits until no hook of a running host runs, and the last one fits its role.
    #[track_caller]
    fn wait_for_hooks(&self) {
        for host in self.running() {
            let what = format!("{}'s hooks are through and match its role", host.name);
            wait_until(&what, || host.hooks_match_role());
        }
    }

    /// Stops every daemon at once; panics where one does not end in order.
    pub(crate) fn stop_all(&self) {
        let running: Vec<&Host> = self.running().collect();
        running.iter().for_each(|host| host.terminate());
        for host in running {
            assert_eq!(host.exit_status(), Some(0), "{} did not stop in order", host.name);
            assert!(!host.holds_after(""), "{} stopped without a demotion", host.name);
        }
        self.check_violations();
    }

    /// Panics where the hosts together broke a promise of quorum mode.
    pub(crate) fn check_group(&self) {
        let group::Verdict { overlaps, terms } = group::judge(&self.journal.entries());
        assert!(overlaps.is_empty() && terms.is_empty(), "{overlaps:#?}\n{terms:#?}");
        let wrong = contradictions(&self.claims());
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// Panics where a host's hooks broke the rules.
    pub(crate) fn check_violations(&self) {
        let entries = self.journal.entries();
        let wrong: String = self.hosts.iter().map(|host| violations(&entries, host)).collect();
        assert!(wrong.is_empty(), "{wrong}");
    }
}

impl Drop for Lan {
    /// Prints what there is to know, where the test fails.
    fn drop(&mut self) {
        if thread::panicking() {
            println!("--- all hooks\n{}", self.journal.text());
            for host in &self.hosts {
                println!("{}", host.report());
            }
        }
    }
}

/// What a host's hooks did against the rules, also if the log is asked for what they did not say.
fn violations(entries: &[Entry], host: &Host) -> String {
    let wrong = journal::violations(entries, &host.name);
    if wrong.is_empty() {
        return wrong;
    }
    journal::violations(&journal::with_unheard(entries, &host.name, &host.log()), &host.name)
}

/// The one of these hosts that leads, where all the others follow it and no hook runs.
fn agreed_leader<'a>(hosts: &[&'a Host]) -> Option<&'a Host> {
    let leaders: Vec<&&Host> = hosts.iter().filter(|host| host.leads()).collect();
    let [leader] = leaders.as_slice() else { return None };
    let agreed = |host: &&Host| host.name == leader.name || host.follows(leader);
    let settled = hosts.iter().all(agreed) && hosts.iter().all(|host| host.hooks_match_role());
    settled.then_some(**leader)
}

/// Datagrams that a running host has sent and received.
fn traffic_of(host: &Host) -> u64 {
    let counters = host.status()["counters"].take();
    let count = |name: &str| counters[name].as_u64().unwrap();
    count("datagrams_sent") + count("datagrams_received")
}

/// A directory that no other process sees and that ends with this one. Below `/run`, where `ip`
/// keeps the names of network namespaces.
fn private_directory() -> &'static Path {
    let mount = Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/run"]).status().unwrap();
    assert!(mount.success(), "cannot mount a private /run");
    let dir = Path::new("/run/lan");
    fs::create_dir(dir).unwrap();
    dir
}
