//! Peers in networks of their own, with routers between them.

use std::time::Duration;

use crate::harness::faults::can_forbid_sending;
use crate::harness::inside::Needs;
use crate::harness::keys::{KEY, give_key};
use crate::harness::routed::Site;
use crate::harness::switch::Rule;
use crate::harness::{
    BEST_SUCCEEDS, Host, Lan, PATIENT, quorum_scenario, scenario, scenario_with, wait_until,
};
use crate::quorum::voters;

use super::{peers_at, problem, rejected};

/// Puts each host into the site of the same place, and returns its address there.
fn settle<const N: usize>(sites: [&Site<'_>; N], hosts: [&Host; N]) -> [String; N] {
    let mut sites = sites.into_iter();
    hosts.map(|host| {
        let site = sites.next().unwrap();
        site.settle(host);
        site.address(host)
    })
}

/// Starts the hosts, each in a site of its own, with a key; returns their addresses.
fn start_apart<const N: usize>(
    sites: [&Site<'_>; N],
    hosts: [&Host; N],
    lines: &str,
) -> [String; N] {
    let addresses = settle(sites, hosts);
    for host in hosts {
        host.start(&format!("{}{lines}{}\n", peers_at(&addresses), give_key(host, KEY)));
    }
    addresses
}

/// Has all datagrams from one site's router to another's meet this rule.
fn link(lan: &Lan, from: &Site<'_>, to: &Site<'_>, rule: &Rule) {
    lan.link(from.router, to.router, rule);
}

#[test]
fn hosts_behind_routers_elect_fail_over_and_hand_over() {
    scenario(|lan, [h1, h2, h3, r1, r2, r3]| {
        let sites = lan.sites([r1, r2, r3]);
        let settings = format!("leader_alive_threshold = \"50s\"\n{BEST_SUCCEEDS}");
        start_apart(sites.each_ref(), [h1, h2, h3], &settings);
        let leader = lan.sole_leader();
        wait_until("all know all", || {
            [h1, h2, h3].iter().all(|host| host.status()["members"].as_array().unwrap().len() == 3)
        });
        lan.assert_calm_for(40);
        // Over routers the resignation of a dead leader arrives too: nothing else ends this wait.
        leader.crash();
        let (status, log) = leader.post_stop();
        assert_eq!(status, Some(0), "{log}");
        let second = lan.sole_leader();
        assert_eq!(second.command(&["yield"]), Some(0));
        wait_until("the third leads", || {
            [h1, h2, h3].iter().any(|host| {
                host.is_running()
                    && host.name != second.name
                    && host.leads()
                    && second.follows(host)
            })
        });
    });
}

#[test]
fn peer_beyond_a_router_is_named_until_there_is_a_key() {
    scenario(|lan, [h1, h2, r1, r2]| {
        let sites = lan.sites([r1, r2]);
        let addresses = settle(sites.each_ref(), [h1, h2]);
        // h2 has a key, and so sends: h1, which has none, drops what it sends.
        h1.start(&peers_at(&addresses));
        h2.start(&format!("{}{}\n", peers_at(&addresses), give_key(h2, KEY)));
        wait_until("h1 says why it does not send", || {
            problem(h1, 1)
                == "not in a network of this host: a peer beyond a router needs key_file, with \
                    key_mode \"require\" on every node; create a key with `lanelect keygen`"
        });
        let told = format!(
            "dropping datagrams from h2 at {}: they have a key, and this node has none; set \
             key_file on this node too\n",
            addresses[1]
        );
        wait_until("h1 says what it drops", || h1.log().contains(&told));
        assert!(h1.member(h2).is_null() && h2.member(h1).is_null());
        h1.start(&format!("{}{}\n", peers_at(&addresses), give_key(h1, KEY)));
        lan.sole_leader();
        assert_eq!(problem(h1, 1), "");
    });
}

#[test]
fn datagrams_that_go_and_come_by_different_routers_count() {
    scenario(|lan, [h1, h2, r1, r2, r3]| {
        let sites = lan.sites([r1, r2, r3]);
        let [first, second, third] = &sites;
        first.route_to(second, Some(third));
        start_apart([first, second], [h1, h2], PATIENT);
        lan.sole_leader();
        lan.assert_calm_for(40);
        // The way there is by the detour alone.
        lan.link(r1, r3, &Rule::cut());
        wait_until("h2 hears h1 no more", || h2.member(h1)["state"] == "gone");
        assert_eq!(h1.member(h2)["state"], "alive");
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn lossy_and_slow_ways_between_sites_cost_no_leader_its_leadership() {
    scenario(|lan, [h1, h2, h3, r1, r2, r3]| {
        let sites = lan.sites([r1, r2, r3]);
        start_apart(sites.each_ref(), [h1, h2, h3], PATIENT);
        lan.sole_leader();
        let delay = Duration::from_millis(5)..=Duration::from_millis(80);
        let rule = Rule { loss: 0.1, duplicate: 0.1, delay, ..Rule::default() };
        for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            link(lan, &sites[from], &sites[to], &rule);
        }
        lan.assert_calm_for(100);
        let leader = lan.sole_leader();
        leader.crash();
        lan.sole_leader();
    });
}

#[test]
fn way_that_leads_only_there_makes_no_second_leader_of_a_quorum() {
    quorum_scenario(|lan, [h1, h2, h3, r1, r2, r3]| {
        let sites = lan.sites([r1, r2, r3]);
        let hosts = [h1, h2, h3];
        start_apart(sites.each_ref(), hosts, &voters(&hosts));
        let leader = lan.sole_leader();
        lan.wait_until_all_vote(&hosts);
        let at = hosts.iter().position(|host| host.name == leader.name).unwrap();
        let others: Vec<_> = (0..3).filter(|other| *other != at).collect();
        // The leader hears the others, and they do not hear it.
        others.iter().for_each(|other| link(lan, &sites[at], &sites[*other], &Rule::cut()));
        let rest: Vec<&Host> = others.iter().map(|other| hosts[*other]).collect();
        wait_until("one of the others leads", || rest.iter().any(|host| host.leads()));
        wait_until("the leader of before does not", || !leader.leads());
        lan.heal();
        lan.sole_leader();
    });
}

fn with_nft() -> Needs {
    Needs { trial: can_forbid_sending, ..Needs::default() }
}

/// A router that translates makes one host look like another. Both the list and the authenticator
/// reject that.
#[test]
fn translated_addresses_are_refused() {
    scenario_with(with_nft(), |lan, [h1, h2, r1, r2]| {
        let sites = lan.sites([r1, r2]);
        let addresses = settle(sites.each_ref(), [h1, h2]);
        r1.translate_sources();
        let key = |host| format!("{}\n", give_key(host, KEY));
        h1.start(&format!("{}{}", peers_at(&addresses), key(h1)));
        h2.start(&format!("{}{}", peers_at(&addresses), key(h2)));
        wait_until("h2 counts what it drops", || rejected(h2, "source") > 0);
        let from = h2.status()["rejected_from"][0].clone();
        assert_eq!(from["address"], "10.100.0.1");
        assert_eq!(from["why"], "this address is not in peers; add the host there, or stop it");
        // Nor does it help to list what the router makes of it.
        let mut translated = addresses.to_vec();
        translated.push("10.100.0.1".into());
        h2.start(&format!("{}{}", peers_at(&translated), key(h2)));
        wait_until("h2 counts what it drops", || rejected(h2, "auth") > 0);
        assert!(h2.member(h1).is_null());
        r1.permit_sending();
        lan.sole_leader();
    });
}
