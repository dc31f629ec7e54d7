//! Each datagram goes to every member by itself, or to one alone.

use super::quorum::quorum;
use super::replay_protection::keyed;
use super::*;
use crate::core::params::REPORT_INTERVAL_MIN;
use crate::types::DatagramId;

const THREE: [&str; 3] = ["a", "b", "c"];

fn by_unicast(params: Params) -> Params {
    Params { unicast: true, ..params }
}

/// What `name` has measured of the way to `other`.
fn way(lan: &Lan, name: &str, other: &str) -> (Option<Duration>, Option<u8>) {
    let members = lan.at(name).status(lan.now).members;
    let member = members.iter().find(|member| member.node_id == id(other)).unwrap();
    (member.round_trip, member.loss_percent)
}

/// The pings of one node that were sent.
fn pings_of_one(outputs: &Outputs) -> Vec<Message> {
    let is_one = |body| matches!(body, Body::Ping { node: Some(_) });
    outputs.sent().map(|(_, message)| message).filter(|it| is_one(it.body)).collect()
}

/// Whether heartbeats to all, and those to the leader alone, are among these.
fn heartbeats(outputs: &Outputs) -> (Vec<Message>, Vec<Message>) {
    let is_heartbeat = |message: &Message| matches!(message.body, Body::Heartbeat { .. });
    let sent = outputs.sent().map(|(_, message)| message).filter(is_heartbeat);
    sent.partition(|message| message.body.addressee().is_none())
}

#[test]
fn voter_acknowledges_to_the_leader_alone_and_reports_to_all_besides() {
    let quick = Params { quorum: quorum(&THREE).quorum, ..Params::default() };
    let mut lan = Lan::stable(&THREE, &by_unicast(quick));
    assert_eq!(lan.leaders(), ["a"]);
    lan.take("a");
    lan.take("b");
    lan.pass(REPORT_INTERVAL_MIN * 10);
    assert_eq!(lan.leaders(), ["a"], "the acknowledgements reach it");
    let declared = lan.take("a").declarations().len();
    let sent = lan.take("b");
    let (to_all, to_leader) = heartbeats(&sent);
    assert_eq!(to_leader.len(), declared, "each declaration has its own acknowledgement");
    assert!((55..=60).contains(&declared), "one acknowledgement of each is enough: {declared}");
    assert!(to_leader.iter().all(|message| message.body.addressee() == Some(id("a"))));
    assert!((45..=60).contains(&to_all.len()), "about one an interval: {}", to_all.len());
    let intervals = |messages: Vec<Message>| {
        let interval = |message: &Message| match message.body {
            Body::Heartbeat { interval_us, .. } => interval_us,
            _ => 0,
        };
        messages.iter().map(interval).collect::<BTreeSet<_>>()
    };
    // The leader, too, has to know when the next one to all comes.
    assert_eq!(intervals(to_leader), intervals(to_all));
}

/// The second of them may arrive first, and then the first one no longer counts. Pings and pongs
/// are not among the numbered.
#[test]
fn settled_group_sends_no_two_datagrams_at_once() {
    let quick = Params { quorum: quorum(&THREE).quorum, ..Params::default() };
    let mut lan = Lan::stable(&THREE, &by_unicast(quick));
    lan.pass(secs(100));
    for name in THREE {
        let is_ping_or_pong = |body| matches!(body, Body::Ping { .. } | Body::Pong { .. });
        let sent = lan.take(name);
        let sent = sent.sent().filter(|(_, message)| !is_ping_or_pong(message.body));
        let times: Vec<_> = sent.map(|(at, _)| at).collect();
        assert!(times.len() > 100);
        assert!(times.windows(2).all(|two| two[0] < two[1]), "{name}");
    }
}

#[test]
fn datagram_to_one_node_echoes_only_that_one() {
    let params = by_unicast(Params { key_mode: keyed().key_mode, ..quorum(&THREE) });
    let mut lan = Lan::new();
    THREE.iter().for_each(|name| lan.start(name, params.clone()));
    lan.pass(secs(20));
    assert_eq!(lan.leaders().len(), 1);
    let mut to_one = 0;
    for name in THREE {
        for (_, message) in lan.take(name).sent() {
            if let Some(addressee) = message.body.addressee() {
                to_one += 1;
                assert!(message.echoes.iter().all(|echo| echo.node_id == addressee), "{message:?}");
            }
        }
    }
    assert!(to_one > 30, "{to_one}");
}

#[test]
fn election_and_handover_need_no_datagram_that_went_to_another_node() {
    let mut lan = Lan::stable(&THREE, &by_unicast(quorum(&THREE)));
    assert_eq!(lan.leaders(), ["a"]);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    lan.crash("b");
    lan.pass(secs(40));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn members_are_measured_in_turn() {
    let mut lan = Lan::stable(&THREE, &by_unicast(patient()));
    assert_eq!(lan.leaders(), ["a"]);
    lan.take("a");
    lan.pass(secs(10));
    let pinged: Vec<_> =
        pings_of_one(&lan.take("a")).iter().map(|it| it.body.addressee().unwrap()).collect();
    assert!((7..=20).contains(&pinged.len()), "about one an interval: {pinged:?}");
    assert!(pinged.windows(2).all(|two| two[0] != two[1]), "{pinged:?}");
    lan.pass(secs(20));
    for (name, other) in [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a")] {
        assert_eq!(way(&lan, name, other), (Some(Duration::ZERO), Some(0)));
    }
    lan.cut_off("c");
    lan.pass(secs(6));
    let loss = way(&lan, "a", "c").1.unwrap();
    assert!((1..50).contains(&loss), "{loss}");
    assert_eq!(way(&lan, "a", "b").1, Some(0));
}

/// They would all ask the same one at once otherwise, which answers a few only.
#[test]
fn nodes_that_start_together_measure_no_loss() {
    let names: Vec<_> = (0..24).map(|number| format!("n{number:02}")).collect();
    let mut lan = Lan::new();
    names.iter().for_each(|name| lan.start(name, by_unicast(patient())));
    lan.pass(secs(1300));
    for name in &names {
        for other in names.iter().filter(|other| *other != name) {
            assert_eq!(way(&lan, name, other).1, Some(0), "{name} to {other}");
        }
    }
}

#[test]
fn voter_of_a_large_group_refuses_until_its_duplicate_cannot_be_sending() {
    let names: Vec<_> = (0..12).map(|number| format!("n{number:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut lan = Lan::stable(&names, &by_unicast(quorum(&names)));
    let interval = lan.at("n00").params().voter_report_interval(names.len() - 1);
    assert!(interval * 11 / 10 > lan.at("n00").params().member_patience());
    let mut duplicate = Peer { incarnation: Incarnation(9), ..Peer::new("n05") };
    lan.hear(duplicate.sends(Body::Proposal));
    for _ in 0..5 {
        lan.pass(interval * 11 / 10);
        assert!(lan.at("n05").is_duplicated(lan.now));
        lan.hear(duplicate.sends(Body::Proposal));
    }
    lan.pass(interval * 3);
    assert!(!lan.at("n05").is_duplicated(lan.now));
}

#[test]
fn way_takes_as_long_as_the_pong_is_under_way() {
    let mut lan = Lan::new();
    lan.start("a", by_unicast(patient()));
    let mut far = Peer::new("z");
    lan.hear(far.sends(Body::Proposal));
    lan.pass(secs(4));
    assert_eq!(lan.leaders(), ["a"]);
    lan.take("a");
    let mut pings = Vec::new();
    while pings.is_empty() {
        lan.pass(ms(10));
        pings = pings_of_one(&lan.take("a"));
        assert!(lan.now < Time::from_millis(1_000_000) + secs(30));
    }
    lan.pass(ms(70));
    let pong = |ping: DatagramId| Body::Pong { asker: id("a"), ping };
    lan.hear(far.sends(pong(pings[0].id())));
    let (round_trip, loss) = way(&lan, "a", "z");
    let round_trip = round_trip.unwrap();
    assert!((ms(70)..=ms(80)).contains(&round_trip), "{round_trip:?}");
    assert_eq!(loss, None, "a single ping tells nothing");
}

#[test]
fn group_on_a_lan_measures_nothing() {
    let mut lan = Lan::stable(&THREE, &patient());
    lan.take("a");
    lan.pass(secs(10));
    assert_eq!(pings_of_one(&lan.take("a")).len(), 0);
    assert_eq!(way(&lan, "a", "b"), (None, None));
}

#[test]
fn flood_of_pings_is_answered_a_few_times_in_an_interval() {
    let mut lan = Lan::led_by("m");
    let mut peer = Peer::new("z");
    lan.hear(peer.sends(Body::Proposal));
    lan.take("m");
    for _ in 0..1000 {
        lan.hear(peer.sends(Body::Ping { node: Some(id("y")) }));
        lan.hear(peer.sends(Body::Ping { node: Some(id("m")) }));
        lan.pass(ms(2));
    }
    let pongs = lan.take("m").bodies();
    let pongs = pongs.iter().filter(|body| matches!(body, Body::Pong { .. })).count();
    assert!((32..=48).contains(&pongs), "16 in each of two seconds: {pongs}");
}

#[test]
fn reload_does_not_change_the_carrier() {
    let mut lan = Lan::led_by("m");
    lan.on("m", |election, now| election.reconfigure(now, by_unicast(patient())));
    assert!(!lan.at("m").params().unicast);
}

/// The leader that it acknowledged may be a follower by the time at which it expects the next one.
#[test]
fn voter_that_announces_a_short_interval_to_the_leader_alone_keeps_it() {
    let mut lan = Lan::stable(&THREE, &by_unicast(quorum(&THREE)));
    let voters = lan.at("a").params().quorum.as_ref().map(|quorum| quorum.voters.digest());
    for number in 0..100 {
        let mut other = Peer { voters, ..Peer::new(&format!("o{number:03}")) };
        lan.hear(other.sends(HEARTBEAT));
    }
    lan.pass(secs(12));
    lan.take("a");
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(12));
    let events: Vec<_> = lan.take("a").events().collect();
    let is_about_voter = |event: &Event| match event {
        Event::MemberSuspect { node_id, .. } => THREE.contains(&node_id.as_str()),
        _ => false,
    };
    assert!(!events.iter().any(is_about_voter), "{events:?}");
}
