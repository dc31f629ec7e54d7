//! Two sites and a witness, as `docs/two-sites.md` has them: its settings over its round trip.

use std::time::Duration;

use crate::harness::switch::Rule;
use crate::harness::{Host, Lan, quorum_scenario, wait_until};

const PAGE: &str = include_str!("../../docs/two-sites.md");

/// Half of the page's round trip, in each direction.
const ONE_WAY: Duration = Duration::from_millis(40);

/// The lines of the page's first file that set these keys.
fn lines_of(keys: &[&str]) -> String {
    let (_, file) = PAGE.split_once("```toml paris1\n").unwrap();
    let (file, _) = file.split_once("```").unwrap();
    let is_wanted = |line: &&str| keys.iter().any(|key| line.split(" = ").next() == Some(key));
    file.lines().filter(is_wanted).map(|line| format!("{line}\n")).collect()
}

/// Starts the three voters with the page's times; a short grace keeps the test short. Returns the
/// leader and the other site.
fn start<'a>(lan: &'a Lan, sites: [&'a Host; 2], witness: &'a Host) -> (&'a Host, &'a Host) {
    far_apart(lan);
    let hosts = [sites[0], sites[1], witness];
    let names = hosts.map(|host| host.name.clone());
    let addresses = hosts.map(|host| host.address(0));
    let times = lines_of(&["heartbeat_interval", "leader_election_duration"]);
    assert_eq!(times.lines().count(), 2);
    let lines = format!(
        "mode = \"quorum\"\nvoters = {names:?}\npeers = {addresses:?}\nmulticast = \"none\"\n\
         demote_grace = \"500ms\"\nleader_alive_threshold = \"2500ms\"\n{times}"
    );
    sites.iter().for_each(|host| host.start(&lines));
    witness.start(&format!("{lines}candidate = false\n"));
    let leader = lan.sole_leader_of(&hosts);
    lan.wait_until_all_vote(&hosts);
    (leader, if leader.number == sites[0].number { sites[1] } else { sites[0] })
}

/// All links are up, and long.
fn far_apart(lan: &Lan) {
    lan.heal();
    lan.everywhere(&Rule { delay: ONE_WAY..=ONE_WAY, ..Rule::default() });
}

fn cut_link(lan: &Lan, one: &Host, other: &Host) {
    lan.link(one, other, &Rule::cut());
    lan.link(other, one, &Rule::cut());
}

/// The host that no longer hears the leader stands, and gets no vote: the witness follows.
#[test]
fn one_link_between_sites_that_fails_moves_no_leadership() {
    quorum_scenario(|lan, [h1, h2, witness]| {
        let (leader, other) = start(lan, [h1, h2], witness);
        let term = leader.status()["term"].take();
        for (one, another) in [(leader, other), (leader, witness), (other, witness)] {
            cut_link(lan, one, another);
            wait_until("each has missed the other for long", || {
                one.member(another)["state"] == "gone" && another.member(one)["state"] == "gone"
            });
            let third = [leader, other, witness]
                .into_iter()
                .find(|host| host.number != one.number && host.number != another.number)
                .unwrap();
            assert!(leader.leads(), "{} and {}", one.name, another.name);
            assert!(third.number == leader.number || third.follows(leader), "{}", third.name);
            far_apart(lan);
            lan.wait_for_leader(leader);
        }
        assert_eq!(leader.status()["term"], term);
        assert_eq!(lan.journal().text().matches(" start elected").count(), 1);
    });
}

#[test]
fn site_that_fails_is_replaced_by_the_other_site_and_the_witness() {
    quorum_scenario(|lan, [h1, h2, witness]| {
        let (leader, other) = start(lan, [h1, h2], witness);
        lan.cut(leader);
        lan.sole_leader_of(&[other, witness]);
        assert!(other.leads());
        wait_until("it has released", || leader.hooks().last().unwrap() == "demoted lease-lost");

        far_apart(lan);
        lan.wait_for_leader(other);
        let term = other.status()["term"].take();
        lan.cut(witness);
        wait_until("the witness has failed", || other.member(witness)["state"] == "gone");
        assert!(other.leads() && leader.follows(other));
        assert_eq!(other.status()["term"], term);
    });
}

#[test]
fn sites_that_are_all_cut_off_have_no_leader() {
    quorum_scenario(|lan, [h1, h2, witness]| {
        let (leader, other) = start(lan, [h1, h2], witness);
        lan.partition(&[&[leader], &[other], &[witness]]);
        wait_until("it has released", || leader.hooks().last().unwrap() == "demoted lease-lost");
        lan.assert_leaderless_for(&[leader, other, witness], 10);
        far_apart(lan);
        lan.sole_leader();
    });
}
