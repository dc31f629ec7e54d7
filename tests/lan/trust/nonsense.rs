//! A member with the key that says anything at all. What its holder may do by design stays out: to stop a
//! daemon by an objection to its life.

use std::time::Duration;

use fastrand::Rng;
use lanelect::types::{Incarnation, NodeId, Priority, Role, Sequence, Term};
use lanelect::wire::echo::Echoes;
use lanelect::wire::message::{Body, DatagramId, Flags, Message, Standing, VotersDigest};

use super::hostile::{BURST, Hostile, KEY, NAME, is_well, start_with_key};
use crate::harness::forge::codec;
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
        talk(lan.seed, broken, vec![NAME.to_owned()]);
        is_well(lan, &group);
    });
}

#[test]
fn a_member_that_talks_nonsense_in_others_names_wedges_nothing() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        let names = group.iter().map(|host| host.name.clone()).chain([NAME.to_owned()]);
        talk(lan.seed, broken, names.collect());
        is_well(lan, &group);
    });
}

fn talk(seed: u64, from: &Host, names: Vec<String>) {
    let mut hostile = Hostile::on(from, codec("default", Some(KEY)));
    let mut nonsense = Nonsense { random: Rng::with_seed(seed), names };
    for _ in 0..BURSTS {
        (0..BURST).for_each(|_| hostile.say(&nonsense.message()));
        pass(PAUSE);
    }
}

/// Messages of any content.
struct Nonsense {
    random: Rng,
    names: Vec<String>,
}

impl Nonsense {
    fn message(&mut self) -> Message {
        let role = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
        let bits =
            [Flags::CANDIDATE, Flags::ELIGIBLE, Flags::FIXED, Flags::ENROLLED, Flags::FOUNDING];
        let flags = bits
            .into_iter()
            .fold(Flags::default(), |flags, bit| flags.with(bit, self.random.bool()));
        let voters = self.random.bool().then(|| VotersDigest(self.random.u64(..).to_be_bytes()));
        Message {
            sender: self.name(),
            incarnation: Incarnation(self.number()),
            sequence: Sequence(self.number()),
            term: Term(self.number()),
            standing: Standing {
                role: *self.random.choice(&role).unwrap(),
                priority: Priority(self.random.u8(..)),
                flags,
                voters,
            },
            echoes: Echoes::NONE,
            body: self.body(),
        }
    }

    /// Any but an objection.
    fn body(&mut self) -> Body {
        let (interval_us, hold_us) = (self.random.u32(..), self.random.u32(..));
        match self.random.u8(..12) {
            0 => Body::Heartbeat {
                interval_us,
                leader: self.maybe_name(),
                conceded: self.random.bool().then(|| Term(self.number())),
                acknowledged: self.random.bool().then(|| self.datagram()),
            },
            1 => Body::Proposal,
            2 => Body::Declaration { interval_us, hold_us },
            3 => Body::Resignation { successor: self.maybe_name() },
            4 => Body::Farewell { id_taken: self.random.bool() },
            5 => Body::Claim,
            6 => Body::VoteRequest { hold_us },
            7 => Body::Vote {
                candidate: self.name(),
                request: self.datagram(),
                granted: self.random.bool(),
            },
            8 => Body::Inquiry,
            9 => Body::Probe { leader: self.name() },
            10 => Body::Challenge,
            _ => Body::Sighting { leader: self.name(), newest: self.datagram() },
        }
    }

    fn datagram(&mut self) -> DatagramId {
        let (incarnation, sequence) = (Incarnation(self.number()), Sequence(self.number()));
        DatagramId { incarnation, sequence }
    }

    fn maybe_name(&mut self) -> Option<NodeId> {
        self.random.bool().then(|| self.name())
    }

    fn name(&mut self) -> NodeId {
        self.random.choice(&self.names).unwrap().parse().unwrap()
    }

    /// Of any magnitude: nothing, a few, as many as a clock counts, or the most there are.
    fn number(&mut self) -> u64 {
        let bits = self.random.u32(..=64);
        self.random.u64(..).checked_shr(bits).unwrap_or_default()
    }
}
