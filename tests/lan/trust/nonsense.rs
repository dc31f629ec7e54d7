//! A member with the key that says anything at all, in its own name. What whoever has the key may
//! do by design stays out: to speak in others' names, and to stop a daemon by an objection to its
//! life.

use std::time::Duration;

use fastrand::Rng;
use lanelect::types::{DatagramId, Incarnation, NodeId, Priority, Role, Sequence, Term, TieBreak};
use lanelect::wire::echo::Echoes;
use lanelect::wire::message::{Body, Flags, Message, Standing, VotersDigest};

use super::hostile::{BURST, Hostile, NAME, is_well, start_with_key};
use crate::harness::forge::codec;
use crate::harness::keys::KEY;
use crate::harness::patience::pass;
use crate::harness::{Host, scenario};

/// How often it sends [`BURST`] datagrams.
const BURSTS: u64 = 40;

/// The time that daemons have for each.
const PAUSE: Duration = Duration::from_millis(5);

#[test]
fn a_member_that_talks_nonsense_wedges_nothing() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        talk(lan.seed, broken);
        is_well(lan, &group);
    });
}

fn talk(seed: u64, from: &Host) {
    let mut hostile = Hostile::on(from, codec("default", Some(KEY)));
    let mut nonsense = Nonsense(Rng::with_seed(seed));
    for _ in 0..BURSTS {
        (0..BURST).for_each(|_| hostile.say(&nonsense.message()));
        pass(PAUSE);
    }
}

/// Messages of any content.
struct Nonsense(Rng);

impl Nonsense {
    fn message(&mut self) -> Message {
        let role = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
        let bits =
            [Flags::CANDIDATE, Flags::ELIGIBLE, Flags::FIXED, Flags::ENROLLED, Flags::FOUNDING];
        let flags =
            bits.into_iter().fold(Flags::default(), |flags, bit| flags.with(bit, self.0.bool()));
        let voters = self.0.bool().then(|| VotersDigest(self.0.u64(..).to_be_bytes()));
        Message {
            sender: NAME.parse().unwrap(),
            incarnation: Incarnation(self.number()),
            sequence: Sequence(self.number()),
            term: Term(self.number()),
            standing: Standing {
                role: *self.0.choice(&role).unwrap(),
                priority: Priority(self.0.u8(..)),
                tie_break: TieBreak(self.0.u32(..)),
                flags,
                voters,
            },
            echoes: Echoes::NONE,
            body: self.body(),
        }
    }

    /// Any but an objection.
    fn body(&mut self) -> Body {
        let (interval_us, hold_us) = (self.0.u32(..), self.0.u32(..));
        match self.0.u8(..12) {
            0 => Body::Heartbeat {
                interval_us,
                leader: self.maybe_name(),
                conceded: self.0.bool().then(|| Term(self.number())),
                acknowledged: self.0.bool().then(|| self.datagram()),
            },
            1 => Body::Proposal,
            2 => Body::Declaration { interval_us, hold_us },
            3 => Body::Resignation { successor: self.maybe_name() },
            4 => Body::Farewell,
            5 => Body::Claim,
            6 => Body::VoteRequest { hold_us },
            7 => Body::Vote {
                candidate: self.name(),
                request: self.datagram(),
                granted: self.0.bool(),
            },
            8 => Body::Inquiry,
            9 => Body::Probe { leader: self.name() },
            10 => Body::Challenge,
            _ => Body::ProbeReply { leader: self.name(), newest: self.datagram() },
        }
    }

    fn datagram(&mut self) -> DatagramId {
        let (incarnation, sequence) = (Incarnation(self.number()), Sequence(self.number()));
        DatagramId { incarnation, sequence }
    }

    fn maybe_name(&mut self) -> Option<NodeId> {
        self.0.bool().then(|| self.name())
    }

    fn name(&mut self) -> NodeId {
        self.0.choice(["h1", "h2", "h3", NAME]).unwrap().parse().unwrap()
    }

    /// Of any magnitude: nothing, a few, as many as a clock counts, or the most there are.
    fn number(&mut self) -> u64 {
        let bits = self.0.u32(..=64);
        self.0.u64(..).checked_shr(bits).unwrap_or_default()
    }
}
