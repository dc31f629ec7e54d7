//! A member that is broken or means harm: with the key, or where there is none.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use fastrand::Rng;
use lanelect::types::{Priority, Role, Sequence, Term};
use lanelect::wire::auth::Keyring;
use lanelect::wire::echo::Echoes;
use lanelect::wire::frame::{Codec, DATAGRAM_MAX, TAG_LEN, VERSION};
use lanelect::wire::message::{Body, Message};
use socket2::{Domain, Socket, Type};

use super::{GROUP, rejected, times_told};
use crate::harness::forge::{codec, declaration, encoded};
use crate::harness::keys::{KEY, give_key};
use crate::harness::patience::{holds_within, pass};
use crate::harness::usage::Usage;
use crate::harness::{Host, Lan, PATIENT, scenario, wait_until};

/// The name that it has where it has one of its own.
pub(crate) const NAME: &str = "h9";

/// More names than a table has room for.
const INVENTED: u64 = 9000;

/// As many more as are refused one by one.
const MORE: u64 = 3000;

/// Datagrams that are sent at once, so that no socket overflows.
pub(crate) const BURST: u64 = 50;

/// The time that daemons have for so many newcomers, each of which they compare with all members.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a handover may take, before it is asked for again.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest that a leader is waited for: it has said that it declares more rarely than a minute.
const LONGEST_PATIENCE: Duration = Duration::from_secs(120);

/// A program that speaks the protocol and keeps none of its rules but one: it shows that it is
/// there, by an echo of what it heard last, or nobody who has a key would listen to it.
pub(crate) struct Hostile {
    socket: Socket,
    ear: UdpSocket,
    own: Ipv4Addr,
    to: Vec<SocketAddr>,
    codec: Codec,
    heard: Echoes,
}

impl Hostile {
    pub(crate) fn on(host: &Host, codec: Codec) -> Hostile {
        let own: Ipv4Addr = host.address(0).parse().unwrap();
        let (socket, ear) = host.run(|| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            socket.set_multicast_if_v4(&own).unwrap();
            socket.set_multicast_ttl_v4(255).unwrap();
            socket.set_ttl_v4(255).unwrap();
            (socket, listen(own))
        });
        Hostile { socket, ear, own, to: host.others_at(), codec, heard: Echoes::NONE }
    }

    pub(crate) fn say(&mut self, message: &Message) {
        wait_until("it hears the group", || {
            self.listen();
            !self.heard.is_empty()
        });
        self.send(&encoded(&self.codec, self.own, &Message { echoes: self.heard, ..*message }));
    }

    /// Takes in what the group has said meanwhile.
    fn listen(&mut self) {
        let mut buffer = [0; DATAGRAM_MAX];
        while let Ok((length, from)) = self.ear.recv_from(&mut buffer) {
            if from.ip() == self.own {
                continue;
            }
            if let Ok(decoded) = self.codec.decode(from.ip(), &buffer[..length]) {
                self.heard.put_first(decoded.message.echo());
            }
        }
    }

    /// Sends on, from its own address, what a member says next.
    fn relay(&mut self) {
        let mut buffer = [0; DATAGRAM_MAX];
        let mut length = 0;
        wait_until("it hears a member", || match self.ear.recv_from(&mut buffer) {
            Ok((heard, from)) if from.ip() != self.own => {
                length = heard;
                true
            }
            _ => false,
        });
        self.send(&buffer[..length]);
    }

    /// Sends what a copy of this member would: its next datagram, with a number that it has not
    /// used.
    pub(crate) fn copy(&mut self, member: &Host) {
        let mut buffer = [0; DATAGRAM_MAX];
        let mut next = None;
        wait_until("it hears the member", || {
            next = self.ear.recv_from(&mut buffer).ok().and_then(|(length, from)| {
                let decoded = self.codec.decode(from.ip(), &buffer[..length]).ok()?;
                (decoded.message.sender.as_str() == member.name).then_some(decoded.message)
            });
            next.is_some()
        });
        let mut next = next.unwrap();
        next.sequence.0 += 1000;
        self.send(&encoded(&self.codec, self.own, &next));
    }

    fn send(&self, datagram: &[u8]) {
        for to in &self.to {
            self.socket.send_to(datagram, &(*to).into()).unwrap();
        }
    }
}

/// Hears what is sent to the group, and to this host.
fn listen(own: Ipv4Addr) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, GROUP.1)).into()).unwrap();
    socket.join_multicast_v4(&GROUP.0, &own).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}

/// What a follower says that comes back within ten minutes, and has the lowest rank.
fn heartbeat(sender: &str) -> Message {
    let mut message = declaration(sender);
    message.standing.role = Role::Follower;
    let interval_us = 600_000_000;
    message.body =
        Body::Heartbeat { interval_us, leader: None, conceded: None, acknowledged: None };
    message
}

/// Starts the group with a key, led by the first.
pub(crate) fn start_with_key(lan: &Lan, group: &[&Host]) {
    let lines = give_key(group[0], KEY);
    lan.start_led_by_first(group, &lines);
    know_each_other(group);
}

fn know_each_other(group: &[&Host]) {
    for host in group {
        let members = || host.status()["members"].as_array().map(Vec::len);
        wait_until("they know each other", || members() == Some(group.len()));
    }
}

/// Panics unless the group has a leader, hands over when asked to, and replaces one that dies.
pub(crate) fn is_well(lan: &Lan, group: &[&Host]) {
    let hands_over = || {
        let Some(before) = sole_leader(group) else { return false };
        assert_eq!(before.command(&["yield"]), Some(0));
        wait_until("it has handed over", || before.status()["handing_over"].is_null());
        holds_within(PATIENCE, || sole_leader(group).is_some_and(|host| host.name != before.name))
    };
    assert!(holds_within(LONGEST_PATIENCE, hands_over), "leadership does not move");
    let leader = lan.sole_leader_of(group);
    leader.crash();
    let rest: Vec<&Host> = group.iter().copied().filter(|h| h.name != leader.name).collect();
    lan.sole_leader_of(&rest);
    leader.restart();
    lan.sole_leader_of(group);
}

/// Whom all follow.
fn sole_leader<'a>(group: &[&'a Host]) -> Option<&'a Host> {
    let leader = group.iter().find(|host| host.leads())?;
    let follows = |host: &&Host| host.name == leader.name || host.follows(leader);
    group.iter().all(follows).then_some(leader)
}

#[test]
fn a_term_beyond_reason_is_refused_and_told() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        let mut hostile = Hostile::on(broken, codec("default", Some(KEY)));
        let hooks = lan.journal().text();
        for (sequence, term) in [(1, u64::MAX), (2, u64::MAX - 1), (3, 1 << 33)] {
            let mut message = declaration(NAME);
            (message.sequence, message.term) = (Sequence(sequence), Term(term));
            message.standing.priority = Priority(u8::MAX);
            hostile.say(&message);
        }
        let told = format!(
            "dropping datagrams from {NAME} at {}: their term {}",
            broken.address(0),
            u64::MAX
        );
        for host in group {
            wait_until("each is counted", || rejected(host, "absurd_term") == 3);
            assert_eq!(times_told(host, &told), 1, "{}", host.log());
            assert_eq!(times_told(host, "absurdly high"), 1, "{}", host.log());
        }
        assert_eq!(lan.journal().text(), hooks, "a hook ran");
        is_well(lan, &group);
    });
}

#[test]
fn a_concession_of_a_term_beyond_reason_is_refused() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        let mut hostile = Hostile::on(broken, codec("default", Some(KEY)));
        let mut message = heartbeat(NAME);
        if let Body::Heartbeat { conceded, .. } = &mut message.body {
            *conceded = Some(Term(1 << 62));
        }
        let heard = || h1.status()["counters"]["datagrams_received"].as_u64();
        let before = heard();
        hostile.say(&message);
        wait_until("it has arrived, and more", || heard() > before.map(|count| count + 5));
        assert!(h1.status()["term"].as_u64() < Some(1 << 62), "{}", h1.log());
        is_well(lan, &group);
    });
}

/// It would give its own address out as the leader's, wherever it is heard before the leader.
#[test]
fn relayed_datagram_is_refused() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        Hostile::on(broken, codec("default", None)).relay();
        wait_until("it is counted", || rejected(h2, "auth") == 1);
        assert_eq!(h2.status()["leader"]["address"], h1.address(0));
        is_well(lan, &group);
    });
}

#[test]
fn a_version_that_nobody_speaks_is_refused_and_told() {
    scenario(|lan, [h1, h2, h3, broken]| {
        let group = [h1, h2, h3];
        start_with_key(lan, &group);
        let hostile = Hostile::on(broken, codec("default", Some(KEY)));
        let mut datagram = encoded(&hostile.codec, hostile.own, &declaration(NAME));
        datagram.truncate(datagram.len() - TAG_LEN);
        datagram[0] = VERSION + 1;
        let keyring = Keyring::parse(&KEY.repeat(64)).unwrap();
        datagram.extend(keyring.tag(hostile.own.into(), &datagram.clone()));
        hostile.send(&datagram);
        for host in group {
            wait_until("it is counted", || rejected(host, "version") == 1);
            assert_eq!(times_told(host, "another version of lanelect runs there"), 1);
            assert_eq!(host.status()["members"].as_array().map(Vec::len), Some(group.len()));
        }
    });
}

#[test]
fn invented_members_do_not_push_out_real_ones() {
    scenario(|lan, [h1, h2, h3, inventor]| {
        let group = [h1, h2, h3];
        lan.start_led_by_first(&group, PATIENT);
        know_each_other(&group);
        let mut hostile = Hostile::on(inventor, codec("default", None));
        let (hooks, watches) = (lan.journal().text(), group.map(Host::watch));
        let mut random = Rng::with_seed(lan.seed);
        fill_tables(&mut hostile, &group, &mut random);
        // A member that a daemon knows stays, and no other takes any memory.
        let before = group.map(Usage::of);
        invent_in_vain(&mut hostile, &group, &mut random);
        for (host, before) in group.iter().zip(before) {
            before.check_growth(Usage::of(host));
        }
        know_each_other_still(&group);
        assert_eq!(lan.journal().text(), hooks, "a hook ran");
        assert!(watches.iter().all(|watch| watch.transitions().is_empty()));
        is_well(lan, &group);
    });
}

/// Panics where one of the group does not count another.
fn know_each_other_still(group: &[&Host]) {
    for host in group {
        for other in group {
            assert_eq!(host.member(other)["state"], "alive", "{} to {}", other.name, host.name);
        }
    }
}

/// Invents members until every host drops new ones.
fn fill_tables(hostile: &mut Hostile, group: &[&Host], random: &mut Rng) {
    wait_until("every table is full", || {
        invent(hostile, random, INVENTED);
        group.iter().all(|host| rejected(host, "table_full") > 0)
    });
}

/// Invents members that every host drops.
fn invent_in_vain(hostile: &mut Hostile, group: &[&Host], random: &mut Rng) {
    let refused: Vec<_> = group.iter().map(|host| rejected(host, "table_full")).collect();
    invent(hostile, random, MORE);
    for (host, refused) in group.iter().zip(refused) {
        wait_until("they are refused", || rejected(host, "table_full") >= refused + MORE);
    }
}

fn invent(hostile: &mut Hostile, random: &mut Rng, count: u64) {
    for number in 0..count {
        hostile.say(&heartbeat(&format!("x{}", random.u64(..))));
        if number % BURST == 0 {
            pass(PAUSE);
        }
    }
}
