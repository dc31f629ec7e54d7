//! Interfaces that go, come back and change, under a daemon that goes on.

use std::net::UdpSocket;

use crate::harness::{Host, scenario, wait_until};

#[test]
fn a_leader_whose_interface_goes_down_steps_down_and_comes_back() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.link_down();
        wait_until("h2 leads", || h2.leads());
        assert_cut_off(h1);
        assert_eq!(h1.hooks().last().unwrap(), "demoted interface-down");
        h1.link_up();
        lan.wait_for_leader(h2);
        assert_eq!(h1.ineligible_reason(), "");
        assert_eq!(h1.carrier_problem(), "");
    });
}

#[test]
fn a_leader_whose_cable_is_pulled_steps_down_and_comes_back() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.unplug();
        wait_until("h2 leads", || h2.leads());
        assert_cut_off(h1);
        h1.replug();
        lan.wait_for_leader(h2);
    });
}

#[test]
fn daemon_whose_port_another_program_has_taken_reports_it_and_waits() {
    scenario(|lan, [h1, h2]| {
        let taken = h1.run(|| UdpSocket::bind("0.0.0.0:7669").unwrap());
        h1.start("");
        h2.start("");
        lan.sole_leader_of(&[h2]);
        wait_until("h1 reports it", || h1.carrier_problem().starts_with("port 7669 is taken"));
        assert_eq!(h1.ineligible_reason(), "interface-down");
        assert!(h1.log().contains("of uid "), "{}", h1.log());
        drop(taken);
        lan.wait_for_leader(h2);
        assert_eq!(h1.ineligible_reason(), "");
    });
}

#[test]
fn an_interface_that_is_deleted_and_made_again_is_used_again() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.delete_interface(0);
        wait_until("h2 leads", || h2.leads());
        assert_cut_off(h1);
        h1.recreate_interface(0);
        lan.wait_for_leader(h2);

        // Both directions work: h1 takes over, and h2 follows it.
        assert_eq!(h2.command(&["yield"]), Some(0));
        lan.wait_for_leader(h1);
    });
}

#[test]
fn an_interface_that_is_renamed_is_missed_until_it_has_its_name_again() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.rename_interface("eth0", "wan");
        wait_until("h2 leads", || h2.leads());
        assert_cut_off(h1);
        wait_until("it misses the interface", || {
            let problem = h1.status()["interfaces"][0]["problem"].take();
            problem.as_str().is_some_and(|why| why.starts_with("missing"))
        });
        h1.rename_interface("wan", "eth0");
        lan.wait_for_leader(h2);
        assert_eq!(h1.ineligible_reason(), "");
    });
}

#[test]
fn a_daemon_may_start_before_its_interface_is_there() {
    scenario(|lan, [h1, h2]| {
        h1.delete_interface(0);
        // It listens for long before it stands, as it is the better one.
        h1.start("membership_sample_interval = \"2s\"\nstartup_grace_period = \"10s\"");
        h2.start("");
        wait_until("h2 leads", || h2.leads());
        assert_cut_off(h1);
        h1.recreate_interface(0);
        lan.wait_for_leader(h2);
    });
}

#[test]
fn a_change_of_address_is_followed() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h2.member(h1)["address"], "10.77.0.1");
        h1.change_address("10.77.0.101");
        wait_until("h2 sees the new address", || h2.member(h1)["address"] == "10.77.0.101");
        lan.wait_for_leader(h1);
    });
}

/// Waits until the host says that it cannot reach the group, and why, and its hooks have let go.
fn assert_cut_off(host: &Host) {
    wait_until(&format!("{} names its interface as the problem", host.name), || {
        let status = host.status();
        status["ineligible_reason"] == "interface-down"
            && status["role"] != "leader"
            && host.has_no_carrier()
            && host.hooks_match_role()
    });
}
