//! Who leads when hosts start, in whatever order.

use crate::harness::patience::now;
use crate::harness::{BEST_SUCCEEDS, scenario, wait_until};

/// Samples so far apart that all are seen before anyone is sure of the membership.
fn all_seen() -> String {
    let samples = "membership_sample_interval = \"2s\"\nstartup_grace_period = \"10s\"\n";
    format!("{samples}{BEST_SUCCEEDS}")
}

#[test]
fn hosts_that_start_together_end_up_with_one_leader() {
    scenario(|lan, [h1, h2, h3]| {
        let started = now();
        for host in [h1, h2, h3] {
            // The defaults that follow from the heartbeat, threshold included.
            host.start("leader_alive_threshold = \"300ms\"");
        }
        wait_until("somebody leads", || [h1, h2, h3].iter().any(|host| host.leads()));
        println!("measured: {} ms from start to a leader", started.elapsed().as_millis());
        lan.sole_leader();
    });
}

#[test]
fn of_equal_hosts_the_lowest_id_leads() {
    scenario(|lan, [h1, h2, h3]| {
        for host in [h3, h2, h1] {
            host.start(&all_seen());
        }
        lan.wait_for_leader(h1);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
        assert_eq!(h2.hooks(), ["started startup"]);
    });
}

#[test]
fn the_highest_priority_leads() {
    scenario(|lan, [h1, h2]| {
        h1.start(&all_seen());
        h2.start(&format!("{}priority = 101", all_seen()));
        lan.wait_for_leader(h2);
    });
}

#[test]
fn a_better_candidate_that_comes_late_follows() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h2, h3], "");
        h1.start("priority = 200");
        lan.wait_for_leader(h2);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup"]);
    });
}

#[test]
fn with_preempt_a_better_candidate_takes_over_in_order() {
    scenario(|lan, [h1, h2, h3]| {
        h2.slow_hooks("0.3");
        lan.start_led_by_first(&[h2, h3], &format!("preempt = true\n{BEST_SUCCEEDS}"));
        h1.start("preempt = true");
        lan.wait_for_leader(h1);
        assert_eq!(h2.hooks().last().unwrap(), "demoted preempted");
        let journal = lan.journal();
        let demoted = journal.position("h2 end demoted");
        assert!(demoted < journal.position("h1 start elected"), "h1 did not wait for h2");
        lan.assert_calm_for(20);
    });
}

#[test]
fn an_observer_never_leads() {
    scenario(|lan, [h1, h2]| {
        h1.start("candidate = false\npriority = 255");
        h2.start("");
        lan.wait_for_leader(h2);
        assert_eq!(h1.ineligible_reason(), "observer");
        h2.crash();
        wait_until("h1 knows no leader", || h1.status()["leader"].is_null());
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup"]);
    });
}

#[test]
fn static_roles_know_no_election() {
    scenario(|lan, [h1, h2, h3]| {
        h1.start("static_role = \"follower\"\npriority = 255");
        h2.start("priority = 200");
        h3.start("static_role = \"leader\"");
        lan.wait_for_leader(h3);
        assert!(h3.hooks().contains(&"elected static".to_owned()), "{:?}", h3.hooks());
        assert_eq!(h1.ineligible_reason(), "static-follower");
        assert_eq!(h1.hooks(), ["started startup"]);
    });
}

#[test]
fn too_few_candidates_make_no_leader() {
    scenario(|lan, [h1, h2, h3]| {
        let lines = "min_candidates = 2";
        h1.start(lines);
        wait_until("h1 waits for others", || h1.ineligible_reason() == "too-few-candidates");
        h2.start(lines);
        h3.start(lines);
        let leader = lan.sole_leader();

        lan.partition(&[&[h1], &[h2], &[h3]]);
        for host in [h1, h2, h3] {
            let what = format!("{} is alone and does not lead", host.name);
            wait_until(&what, || !host.leads() && host.ineligible_reason() == "too-few-candidates");
        }
        wait_until("its hooks have been told", || {
            leader.hooks().last().unwrap() == "demoted too-few-candidates"
        });

        lan.heal();
        lan.sole_leader();
    });
}
