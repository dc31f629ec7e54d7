//! A yield that names its successor, which must be a voter that counts.

use super::*;
use crate::core::election::{NoSuccessor, YieldError, Yielding};

fn yield_to(lan: &mut Lan, successor: &str) -> Result<Yielding, YieldError> {
    lan.on("a", |election, now| election.yield_to(now, id(successor)))
}

#[test]
fn leader_hands_over_to_the_named_voter() {
    let mut lan = three();
    assert_eq!(yield_to(&mut lan, "c"), Ok(Yielding::Began));
    lan.pass(ms(100));
    assert_eq!(lan.leaders(), ["c"]);
}

#[test]
fn member_that_is_no_voter_cannot_be_named() {
    let mut lan = three();
    lan.start("d", quorum(&THREE));
    lan.pass(secs(5));
    let refused =
        |successor: &str, why| Err(YieldError::Successor { successor: id(successor), why });
    assert_eq!(yield_to(&mut lan, "d"), refused("d", NoSuccessor::NotVoter));
    lan.crash("c");
    lan.start("c", quorum(&["c", "d", "e"]));
    lan.pass(secs(30));
    let outcome = yield_to(&mut lan, "c");
    assert!(
        [NoSuccessor::NotEligible, NoSuccessor::DoesNotCount]
            .map(|why| refused("c", why))
            .contains(&outcome),
        "{outcome:?}"
    );
    assert_eq!(lan.leaders(), ["a"]);
}
