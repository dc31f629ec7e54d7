//! What a member announces of itself, and how far the others rely on it.
//!
//! The tests begin in the order of their names. This one waits for longer than any other, so it is
//! among the first.

use lanelect::types::Priority;
use lanelect::wire::message::Body;

use crate::harness::forge::{codec, declaration};
use crate::harness::keys::KEY;
use crate::harness::{scenario, wait_until};
use crate::trust::hostile::{Hostile, NAME, is_well, start_with_key};

/// Leads with the highest priority, says that it declares next after more than an hour, and is
/// gone.
#[test]
fn a_leader_that_makes_everyone_wait_is_not_waited_for_for_ever() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        let mut hostile = Hostile::on(broken, codec("default", Some(KEY)));
        let mut message = declaration(NAME);
        message.standing.priority = Priority(u8::MAX);
        message.body = Body::Declaration { interval_us: u32::MAX, hold_us: u32::MAX };
        hostile.say(&message);
        wait_until("it is taken for the leader", || {
            group.iter().all(|host| host.status()["leader"]["node_id"] == NAME)
        });
        is_well(lan, &group);
    });
}
