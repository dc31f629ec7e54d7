//! Pings: who hears this node.

use super::*;
use crate::types::DatagramId;

impl Lan {
    fn ping(&mut self, name: &str) -> Duration {
        self.on(name, |election, now| election.ping(now))
    }

    /// How long ago `other` last answered a ping of `name`.
    fn answered(&self, name: &str, other: &str) -> Option<Duration> {
        let members = self.at(name).status(self.now).members;
        members.iter().find(|member| member.node_id == id(other)).unwrap().answered
    }
}

fn count(outputs: &Outputs, fits: impl Fn(&Body) -> bool) -> usize {
    outputs.bodies().iter().filter(|body| fits(body)).count()
}

fn pings(outputs: &Outputs) -> usize {
    count(outputs, |body| *body == Body::Ping { node: None })
}

fn pongs(outputs: &Outputs) -> usize {
    count(outputs, |body| matches!(body, Body::Pong { .. }))
}

#[test]
fn members_of_every_role_answer_in_their_time() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    for asker in ["a", "b"] {
        let others = ["a", "b", "c"].into_iter().filter(|name| *name != asker);
        let within = lan.ping(asker);
        lan.pass(within / 2 - ms(1));
        for other in others.clone() {
            assert_eq!(lan.answered(asker, other), None, "they do not answer all at once");
        }
        lan.pass(within / 2 + ms(1));
        for other in others {
            let ago = lan.answered(asker, other);
            assert!(ago.is_some_and(|ago| ago <= within / 2), "{other} to {asker}: {ago:?}");
        }
        assert_eq!(lan.answered(asker, asker), None);
    }
    assert_eq!(lan.answered("c", "a"), None, "it did not ask");
    assert_eq!(lan.leaders(), ["a"]);
}

/// The others still hear it, and the status shows nothing else of it.
#[test]
fn member_that_does_not_hear_the_node_does_not_answer() {
    let mut lan = Lan::following("m", patient(), &mut Peer::leading("a", 1));
    let mut deaf = Peer::new("z");
    let mut hearing = Peer::new("y");
    lan.hear(deaf.sends(Body::Proposal));
    lan.hear(hearing.sends(Body::Proposal));
    lan.ping("m");
    let m = lan.at("m");
    let ping = DatagramId { incarnation: m.life.incarnation, sequence: m.sent.newest };
    lan.hear(hearing.sends(Body::Pong { asker: id("m"), ping }));
    lan.hear(deaf.sends(Body::Pong { asker: id("y"), ping }));
    let ping = DatagramId { incarnation: Incarnation(0), ..ping };
    lan.hear(deaf.sends(Body::Pong { asker: id("m"), ping }));
    assert_eq!(lan.answered("m", "y"), Some(Duration::ZERO));
    assert_eq!(lan.answered("m", "z"), None, "it answered another node, and another life");
}

#[test]
fn many_pings_are_few_datagrams() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.take("a");
    lan.take("b");
    let within = lan.ping("a");
    for _ in 0..1_000 {
        lan.ping("a");
        lan.pass(ms(10));
    }
    let (seconds, interval) = (10, patient().heartbeat_interval);
    assert_eq!(pings(&lan.take("a")), seconds / interval.as_secs() as usize);
    // One that answers takes half of the time at least.
    let most = 10_000 / (within / 2).as_millis() as usize;
    let answers = pongs(&lan.take("b"));
    assert!((1..=most).contains(&answers), "{answers} of {most}");
}

#[test]
fn large_group_answers_as_slowly_as_it_reports() {
    let mut lan = Lan::led_by("m");
    let few = lan.ping("m");
    for number in 0..320 {
        lan.hear(Peer::new(&format!("z{number}")).sends(Body::Proposal));
    }
    assert_eq!(few, patient().report_interval(0));
    assert_eq!(lan.ping("m"), patient().report_interval(320));
    assert!(lan.ping("m") > few * 4);
}
