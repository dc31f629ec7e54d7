//! Claims that fail: the leader resigned, and the node that had claimed the leadership did not get
//! it. Here `m` claims, `a` is better, and `x` and `z` are worse.

use super::*;

fn preempting() -> Params {
    Params { preempt: true, ..patient() }
}

/// `m` has claimed the leadership of `z`.
fn claimed() -> (Lan, Peer) {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", preempting(), &mut leader);
    lan.pass(ms(10));
    assert_eq!(claims(&mut lan), 1);
    (lan, leader)
}

/// The claims of `m` since the last call.
fn claims(lan: &mut Lan) -> usize {
    lan.take("m").bodies().iter().filter(|body| **body == Body::Claim).count()
}

/// `leader` resigns, and another node leads at once; returns that one.
fn hand_to(lan: &mut Lan, leader: &mut Peer, name: &str) -> Peer {
    leader.role = Role::Follower;
    lan.hear(leader.sends(Body::Resignation { successor: Some(id(name)) }));
    let mut next = Peer::leading(name, leader.term.0 + 1);
    // A life that is later than that of its last leadership.
    next.incarnation.0 = next.term.0;
    lan.hear(next.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id(name)));
    next
}

/// `leader` resigns, and `m` takes over.
fn hand_to_m(lan: &mut Lan, leader: &mut Peer) {
    leader.role = Role::Follower;
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("m")) }));
    assert_eq!(lan.leaders(), ["m"]);
}

/// Lets the leader declare until `m` claims; returns how long that took.
fn time_to_claim(lan: &mut Lan, leader: &mut Peer) -> Duration {
    let begin = lan.now;
    claims(lan);
    loop {
        lan.pass_with(ms(500), &mut [(leader, EVERY_SECOND)]);
        if claims(lan) > 0 {
            return lan.now.since(begin);
        }
        assert!(lan.now.since(begin) < secs(10_000), "it never claims");
    }
}

#[test]
fn claim_that_failed_is_made_again_after_the_yield_time_which_doubles_up_to_an_hour() {
    let (mut lan, mut leader) = claimed();
    for pause in [18, 36, 72, 144, 288, 576, 1152, 2304, 3600, 3600] {
        let next = if leader.node_id == id("z") { "x" } else { "z" };
        leader = hand_to(&mut lan, &mut leader, next);
        let took = time_to_claim(&mut lan, &mut leader);
        assert!((secs(pause)..=secs(pause + 1)).contains(&took), "{took:?}, not {pause} s");
    }
}

#[test]
fn claim_fails_if_the_same_leader_leads_again() {
    let (mut lan, mut leader) = claimed();
    let mut leader = hand_to(&mut lan, &mut leader, "z");
    assert!(time_to_claim(&mut lan, &mut leader) >= secs(18));
}

/// Its `demoted` takes long, and a conflict meanwhile takes it into a higher term.
#[test]
fn claim_of_a_leader_that_does_not_resign_is_one_claim() {
    let (mut lan, mut leader) = claimed();
    for _ in 0..30 {
        leader.term.0 += 1;
        assert!(time_to_claim(&mut lan, &mut leader) <= secs(1));
    }
}

#[test]
fn claim_that_a_better_node_won_has_not_failed() {
    let (mut lan, mut leader) = claimed();
    let mut better = hand_to(&mut lan, &mut leader, "a");
    lan.pass_with(secs(5), &mut [(&mut better, EVERY_SECOND)]);
    let mut leader = hand_to(&mut lan, &mut better, "z");
    assert!(time_to_claim(&mut lan, &mut leader) <= secs(1));
}

#[test]
fn own_leadership_ends_the_doubling() {
    let (mut lan, mut leader) = claimed();
    for next in ["x", "z"] {
        leader = hand_to(&mut lan, &mut leader, next);
        time_to_claim(&mut lan, &mut leader);
    }
    leader = hand_to(&mut lan, &mut leader, "x");
    hand_to_m(&mut lan, &mut leader);
    let mut better = Peer::leading("a", 20);
    lan.hear(better.sends(EVERY_SECOND));
    better.term = Term(21);
    let mut leader = hand_to(&mut lan, &mut better, "z");
    assert!(time_to_claim(&mut lan, &mut leader) <= secs(1));
    let mut leader = hand_to(&mut lan, &mut leader, "x");
    let took = time_to_claim(&mut lan, &mut leader);
    assert!((secs(18)..=secs(19)).contains(&took), "{took:?}");
}

#[test]
fn reload_does_not_end_the_pause_after_a_claim_that_failed() {
    let (mut lan, mut leader) = claimed();
    let mut leader = hand_to(&mut lan, &mut leader, "x");
    lan.on("m", |election, now| election.reconfigure(now, preempting()));
    assert!(time_to_claim(&mut lan, &mut leader) >= secs(18));
}

/// Whenever `m` claims, its disk takes longer than the others wait for it.
#[test]
fn node_whose_disk_is_slow_takes_the_leadership_away_ever_more_rarely() {
    let mut lan = Lan::stable(&["x", "z"], &patient());
    lan.start("m", Params { preempt_delay: secs(1), ..preempting() });
    lan.set_slow_disk("m", true);
    for _ in 0..100 {
        lan.pass(secs(3));
        let both = lan.leaders();
        assert!(both.len() == 1, "{both:?} lead");
        if lan.at("m").leader() == Some(id("x")) && lan.host("m").unwritten.is_some() {
            lan.end_write("m");
        }
    }
    assert_eq!(lan.leaders(), ["x"]);
    let demoted = lan.take("x").hooks().iter().filter(|run| run.0 == HookEvent::Demoted).count();
    assert!((2..=5).contains(&demoted), "{demoted} in five minutes");
    assert_eq!(lan.take("m").hooks(), [(HookEvent::Started, Reason::Startup)]);
}

/// It has to hand over, and waits for its hook, when a worse leader declares. Its own term is not
/// on disk yet.
#[test]
fn node_that_has_not_declared_and_is_to_yield_makes_no_claim_within_the_yield_time() {
    let (mut lan, mut leader) = claimed();
    lan.set_hooks("m", None);
    hand_to_m(&mut lan, &mut leader);
    let mut better = Peer::leading("a", 20);
    lan.hear(better.sends(EVERY_SECOND));
    lan.set_slow_disk("m", true);
    hand_to_m(&mut lan, &mut better);
    lan.on("m", |election, now| election.yield_leadership(now)).unwrap();
    let mut worse = Peer::leading("x", 21);
    lan.hear(worse.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("x")));
    lan.mend_disk("m");
    lan.set_hooks("m", Some(HookOutcome::Succeeded));
    lan.end_hook("m", HookOutcome::Succeeded);
    let took = time_to_claim(&mut lan, &mut worse);
    assert!((secs(18)..=secs(19)).contains(&took), "{took:?}");
}

#[test]
fn reloads_do_not_begin_the_preempt_delay_anew() {
    let delayed = Params { preempt_delay: secs(10), ..preempting() };
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", delayed.clone(), &mut leader);
    lan.pass_with(secs(6), &mut [(&mut leader, EVERY_SECOND)]);
    lan.on("m", |election, now| election.reconfigure(now, delayed.clone()));
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert!(claims(&mut lan) > 0);
}
