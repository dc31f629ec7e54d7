//! Quorum mode. At one heartbeat a second a lease lasts 3 s, and the demote grace is 5 s here: a
//! voter that acknowledges holds still for 8.162 s, one that votes for 3.061 s.

use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;

fn quorum(voters: &[&str]) -> Params {
    let voters = Voters::new(voters.iter().map(|name| id(name))).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..Params::default() }
}

const THREE: [&str; 3] = ["a", "b", "c"];

/// Three voters that have founded their group and elected `a`.
fn three() -> Lan {
    let lan = Lan::settled(&THREE, &quorum(&THREE));
    assert_eq!(lan.leaders(), ["a"]);
    lan
}

#[test]
fn a_new_group_founds_itself_and_elects_the_best() {
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        lan.start(name, quorum(&THREE));
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "c may hold a memory");
    lan.start("c", quorum(&THREE));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    for name in THREE {
        assert_eq!(lan.host(name).disk.enrolment, Enrolment::Enrolled);
        assert_eq!(lan.at(name).leader(), Some(id("a")));
    }
}

#[test]
fn a_lone_voter_leads_at_once() {
    let mut lan = Lan::new();
    lan.start("a", quorum(&["a"]));
    lan.pass(secs(4));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_majority_elects_another_leader_once_the_old_one_must_have_let_go() {
    let mut lan = three();
    lan.cut_off("a");
    lan.pass(secs(4));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "the lease is over");
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "the demote grace is not");
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
}
