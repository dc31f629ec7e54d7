//! A leader's hook runs again from time to time, and when its host loses an address.

use super::*;
use crate::core::election::REFRESH_PAUSE;

const INTERVAL: Duration = Duration::from_secs(30);

const REFRESHED: (HookEvent, Reason) = (HookEvent::Reaffirmed, Reason::Refresh);

fn refreshing() -> Params {
    Params { refresh_interval: Some(INTERVAL), ..patient() }
}

/// A network on which `a` leads, whose `elected` has just ended.
fn led() -> Lan {
    let mut lan = Lan::new();
    lan.start("a", refreshing());
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks().last(), Some(&(HookEvent::Elected, Reason::Election)));
    lan
}

fn lose_address(lan: &mut Lan) {
    lan.on("a", |election, now| election.handle_address_lost(now));
}

#[test]
fn leader_runs_its_hook_again_at_each_interval() {
    let mut lan = led();
    let term = lan.at("a").term();
    lan.pass(INTERVAL * 3 + secs(1));
    let done = lan.take("a");
    assert_eq!(done.hooks(), [REFRESHED; 3]);
    let times: Vec<_> = done.runs().map(|(at, ..)| at).collect();
    assert_eq!(times[1].since(times[0]), INTERVAL);
    assert_eq!(lan.at("a").term(), term, "a refresh takes no new term");
    assert!(!done.events().any(|event| matches!(event, Event::Transition(_))));
}

#[test]
fn nobody_refreshes_without_an_interval_or_without_leading() {
    let mut lan = Lan::led_by("a");
    lan.start("b", refreshing());
    lan.pass(INTERVAL * 2);
    lose_address(&mut lan);
    lan.on("b", |election, now| election.handle_address_lost(now));
    lan.pass(secs(2));
    assert_eq!(lan.take("a").hooks(), []);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Started, Reason::Startup)]);
}

#[test]
fn interval_counts_from_the_end_of_a_run() {
    let mut lan = led();
    lan.set_hooks("a", None);
    lan.pass(INTERVAL * 3);
    assert_eq!(lan.take("a").hooks(), [REFRESHED], "one at a time");
    lan.end_hook("a", HookOutcome::Failed);
    lan.pass(INTERVAL - secs(1));
    assert_eq!(lan.take("a").hooks(), []);
    lan.pass(secs(2));
    assert_eq!(lan.take("a").hooks(), [REFRESHED], "also after a failed one");
    assert_eq!(lan.leaders(), ["a"], "which costs no leadership");
}

#[test]
fn reload_during_a_run_asks_for_no_second_one() {
    let mut lan = led();
    lan.set_hooks("a", None);
    lan.pass(INTERVAL + ms(1));
    lan.on("a", |election, now| election.reconfigure(now, refreshing()));
    lan.pass(INTERVAL * 2);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(INTERVAL - ms(1));
    assert_eq!(lan.take("a").hooks(), [REFRESHED]);
}

#[test]
fn lost_address_refreshes_soon_and_several_at_once() {
    let mut lan = led();
    for _ in 0..9 {
        lose_address(&mut lan);
    }
    lan.pass(REFRESH_PAUSE - ms(1));
    assert_eq!(lan.take("a").hooks(), []);
    lan.pass(ms(1));
    assert_eq!(lan.take("a").hooks(), [REFRESHED]);
    lan.pass(INTERVAL - ms(1));
    assert_eq!(lan.take("a").hooks(), []);
}

#[test]
fn address_that_is_lost_while_the_hook_runs_is_left_to_the_hook() {
    let mut lan = led();
    lan.set_hooks("a", None);
    lan.pass(INTERVAL + ms(1));
    lose_address(&mut lan);
    lan.pass(secs(1));
    lan.take("a");
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(5));
    assert_eq!(lan.take("a").hooks(), []);
}

#[test]
fn leader_that_hands_over_refreshes_no_more() {
    let mut lan = led();
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_leadership(now).unwrap());
    lose_address(&mut lan);
    lan.pass(INTERVAL * 2);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(5));
    assert!(!lan.take("a").hooks().contains(&REFRESHED));
}

#[test]
fn interval_that_is_set_by_a_reload_counts_at_once() {
    let mut lan = Lan::led_by("a");
    lan.on("a", |election, now| election.reconfigure(now, refreshing()));
    lan.pass(INTERVAL + ms(1));
    assert_eq!(lan.take("a").hooks(), [REFRESHED]);
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    lan.pass(INTERVAL * 2);
    assert_eq!(lan.take("a").hooks(), []);
}

/// Both happen together if networkd restarts and the configuration is applied.
#[test]
fn reload_does_not_put_off_the_refresh_after_a_lost_address() {
    let mut lan = led();
    lose_address(&mut lan);
    lan.pass(ms(100));
    lan.on("a", |election, now| election.reconfigure(now, refreshing()));
    lan.pass(REFRESH_PAUSE);
    assert_eq!(lan.take("a").hooks(), [REFRESHED]);
}
