//! What the hook sees, when it is slow and when it fails.

use crate::harness::{PATIENT, scenario, wait_until};

#[test]
fn twenty_flips_under_a_slow_hook_alternate() {
    scenario(|lan, [h1, h2]| {
        h1.slow_hooks("0.3");
        h2.slow_hooks("0.3");
        lan.start_led_by_first(&[h1, h2], PATIENT);
        for flip in 0..20 {
            let (from, to) = if flip % 2 == 0 { (h1, h2) } else { (h2, h1) };
            assert_eq!(from.command(&["yield"]), Some(0), "flip {flip}");
            // A hook that has not begun would be left out.
            wait_until(&format!("{}'s hooks know of flip {flip}", to.name), || {
                to.hooks().last().is_some_and(|hook| hook.starts_with("elected"))
            });
        }
        lan.wait_for_leader(h1);
        // That they alternate and never overlap is checked after every scenario.
        let count = |event: &str| h1.hooks().iter().filter(|hook| hook.starts_with(event)).count();
        assert_eq!((count("elected"), count("demoted")), (11, 10));
    });
}

#[test]
fn a_host_whose_hook_fails_for_elected_gives_up() {
    scenario(|lan, [h1, h2]| {
        h1.fail_hook_on("elected");
        h1.start("failure_holdoff = \"300s\"");
        wait_until("h1's hook has failed", || h1.ineligible_reason() == "hook-failed");
        h2.start("");
        lan.wait_for_leader(h2);
        assert!(h1.hooks().contains(&"demoted hook-failed".to_owned()), "{:?}", h1.hooks());
        let status = h1.status();
        assert_eq!(status["hook"]["last_event"], "demoted");
        assert_eq!(status["hook"]["elected_failures"], 1);
        assert_eq!(status["hook"]["last_elected_failure"]["exit"], 1);
        assert!(status["holdoff_ms"].as_u64().is_some_and(|left| left <= 300_000), "{status}");
    });
}

#[test]
fn a_hook_that_overruns_its_time_limit_counts_as_failed() {
    scenario(|_, [h1]| {
        h1.slow_hooks("300");
        h1.start("hook_timeout = \"200ms\"\nfailure_holdoff = \"300s\"");
        wait_until("h1's hook was stopped", || h1.ineligible_reason() == "hook-failed");
    });
}

#[test]
fn a_failed_hook_may_be_ignored() {
    scenario(|lan, [h1, h2]| {
        h1.fail_hook_on("elected");
        lan.start_led_by_first(&[h1, h2], "on_elected_failure = \"ignore\"");
        let hook = h1.status()["hook"].take();
        assert_eq!((&hook["last_event"], &hook["last_exit"]), (&"elected".into(), &1.into()));
        lan.assert_calm_for(20);
    });
}

#[test]
fn second_ctrl_c_does_not_wait_for_the_hook() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.slow_hook_on("demoted", "300");
        assert_eq!(h1.stop_impatiently(), Some(1));
        assert!(h1.log().contains("interrupted by a second SIGINT"), "{}", h1.log());
        lan.wait_for_leader(h2);
        h1.slow_hook_on("demoted", "0");
        // It does not know how the daemon ended.
        let (status, said) = h1.post_stop();
        assert!(status == Some(0) && said.contains("hook has not released"), "{said}");
        assert!(!said.contains("died"), "{said}");
        h1.start("");
        wait_until("h1 follows", || h1.follows(h2) && h1.hooks_match_role());
    });
}
