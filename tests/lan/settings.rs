//! Configuration files that change under a running daemon.

use crate::harness::{scenario, wait_until};

#[test]
fn a_reloaded_priority_keeps_the_leader() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.configure("priority = 50");
        h1.reload();
        wait_until("both see the new priority", || {
            [h1, h2].iter().all(|host| host.member(h1)["priority"] == 50)
        });
        lan.wait_for_leader(h1);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

#[test]
fn a_bad_file_changes_nothing_and_is_told_by_line() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "priority = 50");
        let bad = format!("priority = 60\nhartbeat_interval = \"1s\"\n{}", h1.config(""));
        h1.write_config(&bad);
        h1.reload();
        wait_until("the log names the unknown key and its line", || {
            let log = h1.log();
            log.contains("hartbeat_interval")
                && (log.contains("line 2") || log.contains("config.toml:2"))
        });
        assert_eq!(h1.member(h1)["priority"], 50);
        lan.assert_calm_for(20);
    });
}

#[test]
fn groups_on_the_same_address_do_not_meet() {
    scenario(|lan, [h1, h2, h3]| {
        h1.start("group = \"web\"");
        h2.start("group = \"web\"");
        h3.start("group = \"db\"");
        wait_until("each group has its leader", || {
            h3.leads() && ((h1.leads() && h2.follows(h1)) || (h2.leads() && h1.follows(h2)))
        });
        lan.assert_calm_for(20);
        assert_eq!(h3.status()["members"].as_array().map(Vec::len), Some(1));
        let foreign = h3.status()["counters"]["rejected"]["foreign_group"].as_u64();
        assert!(foreign > Some(0), "h3 heard nothing of the other group");
    });
}
