//! A kernel that takes no datagrams: a leader that knows that nobody hears it leaves the leadership
//! to one that is heard.

use crate::harness::carrier::Carrier;
use crate::harness::faults::can_forbid_sending;
use crate::harness::inside::Needs;
use crate::harness::{Host, Lan, scenario, scenario_with, wait_until};

/// How the kernel comes to refuse what a host sends, how that ends, and what the host says of it.
struct Refusal {
    begin: fn(&Host),
    end: fn(&Host),
    told: &'static str,
}

const FIREWALL: Refusal = Refusal {
    begin: Host::forbid_sending,
    end: Host::permit_sending,
    told: "the kernel forbids it (EPERM: Operation not permitted); allow UDP to its port",
};

const QUEUE: Refusal = Refusal {
    begin: Host::fill_queue,
    end: Host::free_queue,
    told: "the interface's queue is full (ENOBUFS: No buffer space available)",
};

fn problem(host: &Host) -> String {
    host.carrier_problem()
}

/// Has the kernel refuse what the leader sends; then what another one does, which follows.
fn check(lan: &Lan, [leader, other]: [&Host; 2], refusal: &Refusal) {
    (refusal.begin)(leader);
    wait_until("the other leads and the old leader knows it", || {
        other.leads()
            && leader.follows(other)
            && [leader, other].iter().all(|host| host.hooks_match_role())
    });
    assert_eq!(leader.hooks().last().unwrap(), "demoted interface-down");
    assert_eq!(leader.ineligible_reason(), "interface-down");
    assert!(problem(leader).contains(refusal.told), "{}", leader.status());
    lan.assert_calm_for(20);
    // Once of the interface, and once of the peer.
    let carriers = if Carrier::chosen() == Carrier::Mixed { 2 } else { 1 };
    assert_eq!(leader.log().matches(refusal.told).count(), carriers, "{}", leader.log());

    (refusal.end)(leader);
    wait_until("it may lead again", || leader.ineligible_reason().is_empty());
    wait_until("it says that all is well", || problem(leader).is_empty());
    lan.wait_for_leader(other);
    assert_eq!(other.command(&["yield"]), Some(0));
    lan.wait_for_leader(leader);
}

#[test]
fn a_leader_whose_firewall_forbids_it_to_send_steps_down() {
    let needs = Needs { trial: can_forbid_sending, ..Needs::default() };
    scenario_with(needs, |lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        check(lan, [h1, h2], &FIREWALL);
    });
}

#[test]
fn a_leader_whose_queue_takes_nothing_steps_down() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        check(lan, [h1, h2], &QUEUE);
    });
}

#[test]
fn a_leader_without_a_route_to_the_group_steps_down() {
    scenario(|lan, [h1, h2]| {
        if !h1.has_ipv6() {
            return println!("skipped: no IPv6 here");
        }
        lan.start_led_by_first(&[h1, h2], "multicast = \"[ff15::4c45]:7669\"");
        h1.remove_multicast_route();
        wait_until("h2 leads", || h2.leads());
        wait_until("h1 says what is missing", || problem(h1).contains("`ip -6 route add"));
        wait_until("h1 has let go", || {
            h1.ineligible_reason() == "interface-down" && h1.hooks_match_role()
        });
        assert_eq!(h1.hooks().last().unwrap(), "demoted interface-down");
        h1.restore_multicast_route();
        lan.wait_for_leader(h2);
        assert_eq!(problem(h1), "");
    });
}

#[test]
fn a_follower_that_cannot_send_follows_on_and_says_so() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h2.fill_queue();
        wait_until("it says so", || problem(h2).contains(QUEUE.told));
        assert!(h1.leads() && h2.follows(h1));
        let sent = lan.datagrams_from(h2);
        h2.free_queue();
        wait_until("it sends again", || lan.datagrams_from(h2) > sent);
        lan.wait_for_leader(h1);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}
