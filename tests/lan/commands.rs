//! The commands that an operator gives to running daemons.

use std::process::Stdio;

use crate::harness::carrier::Carrier;
use crate::harness::{scenario, wait_until};

#[test]
fn yield_moves_leadership_to_the_other() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h2.command(&["yield"]), Some(1), "a follower has nothing to yield");
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted yield");
        lan.assert_calm_for(20);
    });
}

#[test]
fn yield_hands_over_to_the_named_node_or_says_why_not() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "");
        wait_until("h1 knows the others", || {
            [h2, h3].iter().all(|host| h1.member(host)["state"] == "alive")
        });
        assert_eq!(h2.command(&["maintenance", "on"]), Some(0));
        wait_until("h1 knows that", || h1.member(h2)["eligible"] == false);
        for (to, why) in [
            ("h1", "cannot yield to h1: it is this node"),
            ("h9", "cannot yield to h9: it is not a member of the group"),
            ("h2", "cannot yield to h2: it is not eligible to lead now"),
        ] {
            let refused = h1.ask(&["yield", "--to", to]);
            assert_eq!(refused.status.code(), Some(1));
            let said = String::from_utf8(refused.stderr).unwrap();
            assert!(said.starts_with(why), "{said}");
        }
        assert!(h1.leads());
        assert_eq!(h2.command(&["maintenance", "off"]), Some(0));
        assert_eq!(h1.command(&["yield", "--to", "h3"]), Some(0));
        lan.wait_for_leader(h3);
        assert_eq!(h3.hooks().last().unwrap(), "elected handover");
    });
}

#[test]
fn wait_returns_when_the_change_is_complete() {
    scenario(|lan, [h1, h2]| {
        h1.slow_hook_on("demoted", "1");
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h1.command(&["yield", "--wait"]), Some(0));
        assert!(h1.follows(h2));
        assert!(h1.hooks_match_role(), "its hook has ended");

        assert_eq!(h2.command(&["maintenance", "on", "--wait=50s"]), Some(0));
        assert!(!h2.leads() && h2.hooks_match_role());
        assert_eq!(h2.command(&["maintenance", "off", "--wait"]), Some(0));
        assert_eq!(h2.ineligible_reason(), "");
    });
}

#[test]
fn wait_fails_if_the_change_is_not_complete_in_time() {
    scenario(|lan, [h1]| {
        h1.start("check = \"false\"\non_elected_failure = \"ignore\"");
        wait_until("its check fails", || h1.ineligible_reason() == "check-failed");
        let asked = h1.ask(&["maintenance", "off", "--wait=200ms"]);
        assert_eq!(asked.status.code(), Some(4));
        let said = String::from_utf8(asked.stderr).unwrap();
        assert!(said.contains("not complete within 200ms: this node is not eligible"), "{said}");

        h1.start("leader_alive_threshold = \"600ms\"");
        lan.wait_for_leader(h1);
        let asked = h1.ask(&["yield", "--wait"]);
        assert_eq!(asked.status.code(), Some(4));
        let said = String::from_utf8(asked.stderr).unwrap();
        assert_eq!(said, "no other node took over, and this node leads again\n");
    });
}

#[test]
fn a_lone_node_that_yields_gets_leadership_back() {
    scenario(|lan, [h1]| {
        h1.start("leader_alive_threshold = \"600ms\"");
        lan.wait_for_leader(h1);
        assert_eq!(h1.command(&["yield"]), Some(0));
        wait_until("h1 has stepped down", || !h1.leads());
        assert_eq!(h1.ineligible_reason(), "yielding");
        assert_eq!(h1.command(&["yield"]), Some(0), "yielding twice changes nothing");
        lan.wait_for_leader(h1);
        let hooks = ["started startup", "elected election", "demoted yield", "elected election"];
        assert_eq!(h1.hooks(), hooks);
    });
}

#[test]
fn maintenance_survives_a_restart() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h1.command(&["maintenance", "on"]), Some(0));
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted maintenance");

        h1.restart();
        wait_until("h1 is back, in maintenance, and follows", || {
            h1.ineligible_reason() == "maintenance" && !h1.status()["leader"].is_null()
        });
        h2.crash();
        wait_until("h1 knows no leader", || h1.status()["leader"].is_null());
        lan.assert_calm_for(10);

        assert_eq!(h1.command(&["maintenance", "off"]), Some(0));
        lan.wait_for_leader(h1);
    });
}

#[test]
fn is_leader_answers_by_its_exit_status() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h1.command(&["is-leader"]), Some(0));
        assert_eq!(h2.command(&["is-leader"]), Some(1));
        for words in [&["is-leader"][..], &["status"], &["yield"], &["maintenance", "on"]] {
            assert_eq!(h3.command(words), Some(3), "{words:?} where no daemon runs");
        }
    });
}

#[test]
fn leader_is_ready_once_its_hook_has_succeeded() {
    scenario(|lan, [h1, h2]| {
        h1.fail_hook_on("elected");
        lan.start_led_by_first(&[h1, h2], "on_elected_failure = \"ignore\"");
        wait_until("h1's hook has failed", || h1.status()["hook"]["last_exit"] == 1);
        let asked = h1.ask(&["is-leader", "--ready"]);
        assert_eq!(asked.status.code(), Some(1));
        let said = String::from_utf8(asked.stderr).unwrap();
        assert!(said.contains("leads, but is not ready: its hook failed"), "{said}");
        let asked = h2.ask(&["is-leader", "--ready"]);
        assert_eq!((asked.status.code(), asked.stderr.as_slice()), (Some(1), &b""[..]));

        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        wait_until("h2 is ready", || h2.command(&["is-leader", "--ready"]) == Some(0));
        assert_eq!((&h1.status()["ready"], &h2.status()["ready"]), (&false.into(), &true.into()));
    });
}

#[test]
fn watch_tells_every_transition() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let watch = h2.watch();
        // Nothing tells that the watcher is connected but the first line it prints.
        wait_until("the watcher sees h2 become the leader", || {
            h1.command(&["yield"]);
            h2.command(&["yield"]);
            watch.transitions().iter().any(|t| t["role"] == "leader" && t["leader"] == "h2")
        });
        lan.sole_leader();
        let last = || watch.transitions().last().map(|t| t["role"].clone());
        wait_until("its last line is h2's role", || last() == Some(h2.role().into()));
    });
}

#[test]
fn watch_ends_with_its_reader_although_nothing_happens() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.sole_leader();
        for command in [&["watch"][..], &["status", "--watch", "--json"]] {
            let mut watch = h1.client(command).stdout(Stdio::piped()).spawn().unwrap();
            drop(watch.stdout.take());
            let mut end = None;
            wait_until("it has ended", || {
                end = watch.try_wait().unwrap();
                end.is_some()
            });
            assert_eq!(end.unwrap().code(), Some(0), "{command:?}");
        }
    });
}

#[test]
fn status_tells_what_hooks_rely_on() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let status = h2.status();
        assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(status["group"], "default");
        assert_eq!(status["node_id"], "h2");
        assert_eq!(status["role"], "follower");
        assert_eq!(status["eligible"], true);
        assert!(status["ineligible_reason"].is_null());
        assert_eq!(status["term"].as_u64(), Some(h1.hook_term()));
        assert_eq!(status["leader"]["node_id"], "h1");
        assert_eq!(status["leader"]["address"], "10.77.0.1");
        assert_eq!(status["mode"], "available");
        match Carrier::chosen() {
            Carrier::Peers => assert!(status["multicast"].is_null()),
            _ => assert_eq!(status["multicast"], "239.255.76.69:7669"),
        }
        assert_eq!(status["hook"]["output"], "the log of the daemon");
        assert!(status["key_fingerprint"].is_null() && status["fence"].is_null());
        assert!(status["quorum"].is_null());
        assert_eq!(status["hook"]["last_event"], "started");
        assert_eq!(status["hook"]["last_exit"], 0);
        assert_eq!(status["counters"]["rejected"]["malformed"], 0);
        let members: Vec<_> = status["members"].as_array().unwrap().iter().collect();
        assert_eq!(members.len(), 2);
        for (member, name, role) in [(members[0], "h1", "leader"), (members[1], "h2", "follower")] {
            assert_eq!((&member["node_id"], &member["role"]), (&name.into(), &role.into()));
            assert_eq!((&member["state"], &member["priority"]), (&"alive".into(), &100.into()));
        }
    });
}
