//! Datagrams that the network delivers to a voter that has restarted since.

use super::*;

impl Lan {
    /// `receiver` loses every datagram of `sender` from now on.
    fn cut_link(&mut self, sender: &str, receiver: &str) {
        self.deaf.insert((id(sender), id(receiver)));
    }

    /// The network delivers a delayed datagram to `receiver`.
    fn deliver_late(&mut self, receiver: &str, message: &Message) {
        let from = address(message.sender);
        self.on(receiver, |election, now| election.handle_datagram(now, from, message));
    }

    fn resignation_of(&mut self, name: &str) -> Message {
        self.take(name).last(|body| matches!(body, Body::Resignation { .. }))
    }
}

/// Three voters. `a` leads in term 3, after it has led in term 1 in the same life, and only `b`
/// hears it. Also returns its last declaration and its resignation of term 1.
fn leading_again() -> (Lan, Message, Message) {
    let mut lan = three();
    lan.pass(secs(1));
    let declaration = lan.take("a").last_declaration();
    lan.on("a", Election::yield_leadership).unwrap();
    let resignation = lan.resignation_of("a");
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["b"]);
    lan.cut_link("a", "c");
    lan.on("b", Election::yield_leadership).unwrap();
    lan.pass(secs(2));
    assert_eq!((lan.leaders(), lan.at("a").term()), (vec!["a".to_owned()], Term(3)));
    assert_eq!((declaration.term, resignation.term), (Term(1), Term(1)));
    (lan, declaration, resignation)
}

/// The voter that the lease depends on restarts. Then it hears the beginning and the end of an
/// earlier leadership of that life.
#[test]
fn restarted_voter_that_hears_its_leaders_earlier_leadership_keeps_its_promise() {
    let (mut lan, declaration, resignation) = leading_again();
    lan.cut_off("a");
    lan.crash("b");
    lan.start("b", quorum(&THREE));
    lan.deliver_late("b", &declaration);
    lan.deliver_late("b", &resignation);
    let kept = lan.host("b").disk.pledge.map(|pledge| pledge.term);
    for _ in 0..100 {
        lan.pass(ms(100));
        assert!(lan.leaders().len() <= 1, "{:?} lead at once", lan.leaders());
    }
    assert_eq!(kept, Some(Term(3)), "the persisted promise got weaker");
    assert_eq!(lan.at("b").term(), Term(4), "the others elect once the promise has expired");
}
