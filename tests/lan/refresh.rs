//! A leader puts back the address that somebody removed. How long it was gone is printed and not
//! asserted.

use std::time::Duration;

use crate::harness::host::ip;
use crate::harness::patience::now;
use crate::harness::program::search_path;
use crate::harness::{Host, scenario, wait_until};

const ADDRESS: &str = "10.0.0.100";

/// Runs `floating-address` before the usual hook.
fn settings(host: &Host, refresh_interval: &str) -> String {
    let hook = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hooks/floating-address");
    let hook = format!(
        "export PATH='{}'; {hook} eth0 {ADDRESS}/24 && {}",
        search_path().to_str().unwrap(),
        host.journal_hook()
    );
    format!("refresh_interval = \"{refresh_interval}\"\nhook = {hook:?}")
}

fn holds(host: &Host) -> bool {
    !ip(&format!("-n {} address show to {ADDRESS}", host.name)).is_empty()
}

/// Removes the address, and returns after which time it is there again.
fn remove(host: &Host) -> Duration {
    ip(&format!("-n {} address delete {ADDRESS}/24 dev eth0", host.name));
    let removed = now();
    wait_until("the address is there again", || holds(host));
    removed.elapsed()
}

fn refreshes(host: &Host) -> usize {
    host.hooks().iter().filter(|run| *run == "reaffirmed refresh").count()
}

fn report(what: &str, mut gaps: Vec<Duration>) {
    gaps.sort_unstable();
    let ms = |gap: Duration| gap.as_millis();
    let (median, longest) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    println!("{what}: back after {} ms, at most {} ms", ms(median), ms(longest));
}

/// The interval is too long to be what helps.
#[test]
fn removed_address_is_back_at_once() {
    scenario(|lan, [h1, h2]| {
        for host in [h1, h2] {
            host.start(&settings(host, "1h"));
        }
        let leader = lan.sole_leader();
        wait_until("it holds the address", || holds(leader));
        let gaps = (1..=5).map(|count| {
            let gap = remove(leader);
            wait_until("the hook has ended", || refreshes(leader) == count && is_ready(leader));
            gap
        });
        report("noticed by the watcher", gaps.collect());
        assert_eq!(leader.hooks().len(), 7, "{:?}", leader.hooks());
        lan.wait_for_leader(leader);
    });
}

/// What is removed while a hook runs is not noticed, because the hook itself may remove addresses.
#[test]
fn address_that_nobody_saw_disappear_is_back_with_the_next_refresh() {
    scenario(|lan, [h1]| {
        h1.start(&settings(h1, "2s"));
        lan.wait_for_leader(h1);
        h1.slow_hook_on("reaffirmed", "0.5");
        let mut gaps = Vec::new();
        for _ in 0..5 {
            let before = refreshes(h1);
            wait_until("a refresh is under way", || refreshes(h1) > before);
            // The usual hook runs, and `floating-address` has ended.
            gaps.push(remove(h1));
        }
        report("by a refresh every 2 s", gaps);
        lan.wait_for_leader(h1);
    });
}

/// The leader is not ready meanwhile, and hands over when the run's time limit is over.
#[test]
fn refresh_that_hangs_ends_at_its_limit_and_delays_a_handover_no_longer() {
    scenario(|lan, [h1, h2]| {
        let settings = "refresh_interval = \"1s\"\nhook_timeout = \"2s\"";
        lan.start_led_by_first(&[h1, h2], settings);
        wait_until("it is ready", || is_ready(h1));
        h1.slow_hook_on("reaffirmed", "600");
        wait_until("a refresh was ended", || {
            let hook = &h1.status()["hook"];
            hook["last_event"] == "reaffirmed" && hook["last_exit"] != 0
        });
        wait_until("the next one hangs", || h1.status()["hook"]["running"] == true);
        assert_eq!(h1.status()["role"], "leader");
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted yield");
        let before = refreshes(h1);
        h2.slow_hook_on("reaffirmed", "0");
        wait_until("the new leader refreshes", || refreshes(h2) > 1);
        assert_eq!(refreshes(h1), before, "no refresh on a follower");
    });
}

fn is_ready(host: &Host) -> bool {
    host.status()["ready"] == true && host.status()["hook"]["running"] == false
}
