//! Hosts cloned from one image: one node id, one state, one hostname.

use crate::harness::forge::codec;
use crate::harness::keys::KEY;
use crate::harness::{Host, Lan, scenario, wait_until};
use crate::quorum::LEASE;
use crate::trust::hostile::{Hostile, start_with_key};

/// Starts `duplicate` with all that `original` has, its name included.
fn start_duplicate(original: &Host, duplicate: &Host, lines: &str) {
    duplicate.copy_state_of(original);
    duplicate.start(&format!("node_id = {:?}\n{lines}", original.name));
}

fn expect_turned_away(lan: &Lan, original: &Host, duplicate: &Host) {
    assert_eq!(duplicate.exit_status(), Some(1));
    let log = duplicate.log();
    let last = log.lines().last().unwrap();
    let expected =
        [&original.address(0), "give this node another node_id", "cloned from one image"];
    assert!(expected.iter().all(|words| last.contains(*words)), "{last}");
    assert_eq!(duplicate.hooks().iter().filter(|hook| hook.starts_with("elected")).count(), 0);
    lan.assert_calm_for(10);
}

#[test]
fn a_clone_is_turned_away_however_often_it_is_started() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2], "");
        for original in [h2, h1] {
            start_duplicate(original, h3, "");
            for _ in 0..2 {
                expect_turned_away(lan, original, h3);
                h3.restart();
            }
            expect_turned_away(lan, original, h3);
            h3.remove_state();
        }
        assert!(h1.leads() && h2.follows(h1));
    });
}

#[test]
fn a_clone_adds_no_vote_and_takes_none_away_for_long() {
    scenario(|lan, [h1, h2, h3, h4]| {
        let voters = [h1, h2, h3];
        let names = voters.map(|host| host.name.as_str());
        let lines =
            format!("mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"200ms\"\n{LEASE}");
        voters.iter().for_each(|host| host.start(&lines));
        let leader = lan.sole_leader();
        lan.wait_until_all_vote(&voters);
        let follower = voters.into_iter().find(|host| host.number != leader.number).unwrap();
        for original in [follower, leader] {
            start_duplicate(original, h4, &lines);
            for _ in 0..2 {
                expect_turned_away(lan, original, h4);
                h4.restart();
            }
            expect_turned_away(lan, original, h4);
            lan.wait_until_all_vote(&voters);
            h4.remove_state();
        }
        lan.wait_for_leader(leader);
        lan.check_group();
    });
}

#[test]
fn of_duplicates_that_start_at_once_one_remains() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h2.stop(), Some(0));
        h3.copy_state_of(h2);
        h3.configure("node_id = \"h2\"");
        h2.restart();
        h3.restart();
        let duplicates = [h2, h3];
        wait_until("one of them has ended", || duplicates.iter().any(|host| host.has_ended()));
        let (gone, left) = if h2.has_ended() { (h2, h3) } else { (h3, h2) };
        assert_eq!(gone.exit_status(), Some(1));
        lan.assert_calm_for(20);
        assert!(h1.leads(), "{}", left.log());
        wait_until("the other one follows", || left.status()["leader"]["node_id"] == "h1");
    });
}

/// A virtual machine was copied with its memory, and the copy is the first to send.
#[test]
fn daemon_that_hears_its_copy_ends_and_says_where_it_runs() {
    scenario(|lan, [h1, h2, h3, h4]| {
        start_with_key(lan, &[h1, h2, h3]);
        let mut copy = Hostile::on(h4, codec("default", Some(KEY)));
        for (original, last_run) in [(h2, "started startup"), (h1, "demoted shutdown")] {
            copy.copy(original);
            assert_eq!(original.exit_status(), Some(1));
            let log = original.log();
            let expected = [&h4.address(0), "a copy of this daemon", "shut down one of the two"];
            let last = log.lines().last().unwrap();
            assert!(expected.iter().all(|words| last.contains(*words)), "{last}");
            assert_eq!(original.hooks().last().unwrap(), last_run);
        }
        lan.wait_for_leader(h3);
    });
}
