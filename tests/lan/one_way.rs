//! One-way links of every shape among three hosts: 64 of them, walked through one after the other.
//!
//! Several trios walk at a time, each on its own part of the network, because most of the time is
//! spent waiting.

use std::array;

use crate::harness::claims::contradictions;
use crate::harness::switch::Rule;
use crate::harness::{Host, Lan, scenario, wait_until};

/// Hosts that hear only each other, from the best-ranked on.
type Trio<'a> = [&'a Host; 3];

const TRIOS: usize = 4;

/// Every pair of a trio's hosts, who sends and who hears.
const LINKS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];

/// Which of [`LINKS`] work, a bit each.
type Shape = u32;

const SHAPES: Shape = 1 << LINKS.len();

const ALL_LINKS: Shape = SHAPES - 1;

/// What the hosts of a trio say of themselves: whether each leads, whom it follows, and its term.
type View = [(bool, String, u64); 3];

fn trios<'a>(lan: &Lan, hosts: [&'a Host; 3 * TRIOS]) -> [Trio<'a>; TRIOS] {
    let trios = array::from_fn(|n| array::from_fn(|m| hosts[3 * n + m]));
    lan.keep_neighbours();
    lan.partition(&trios.each_ref().map(|trio: &Trio<'_>| trio.as_slice()));
    trios
}

fn put_into(lan: &Lan, trio: Trio<'_>, shape: Shape) {
    for (bit, (from, to)) in LINKS.into_iter().enumerate() {
        let pass = shape >> bit & 1 == 1;
        lan.link(trio[from], trio[to], &Rule { pass, ..Rule::default() });
    }
}

fn view(trio: Trio<'_>) -> View {
    trio.map(|host| {
        let status = host.status();
        let leader = status["leader"]["node_id"].as_str().unwrap_or_default().to_owned();
        (status["role"] == "leader", leader, status["term"].as_u64().unwrap_or_default())
    })
}

/// What a trio has said since some time, and how much it has sent since.
struct Rest {
    view: View,
    sent: [u64; 3],
}

impl Rest {
    fn begin(lan: &Lan, trio: Trio<'_>) -> Rest {
        Rest { view: view(trio), sent: trio.map(|host| lan.datagrams_from(host)) }
    }

    /// Whether nothing has changed, no term either, while each leader declared itself several times
    /// and each follower said that it is there. Begins anew where something did, or is not right.
    fn lasts(&mut self, lan: &Lan, trio: Trio<'_>, is_right: impl Fn(&View) -> bool) -> bool {
        let now = Rest::begin(lan, trio);
        if now.view != self.view || !is_right(&now.view) {
            *self = now;
            return false;
        }
        let needed = |leads: bool| if leads { 8 } else { 1 };
        let counts = now.sent.into_iter().zip(self.sent).zip(&now.view);
        counts.into_iter().all(|((now, then), (leads, ..))| now >= then + needed(*leads))
    }
}

/// Whether each of two hosts hears the other.
fn are_joined(shape: Shape, a: usize, b: usize) -> bool {
    let works = |link| LINKS.iter().position(|l| *l == link).is_some_and(|n| shape >> n & 1 == 1);
    works((a, b)) && works((b, a))
}

/// What of available mode's promise does not hold: of two hosts that hear each other at most one
/// leads, and whoever does not lead follows one who does.
fn broken(trio: Trio<'_>, shape: Shape, view: &View) -> Option<String> {
    let joined = [(0, 1), (0, 2), (1, 2)].into_iter().filter(|&(a, b)| are_joined(shape, a, b));
    for (a, b) in joined {
        if view[a].0 && view[b].0 {
            return Some(format!("{} and {} both lead", trio[a].name, trio[b].name));
        }
    }
    for (host, (leads, leader, _)) in trio.iter().zip(view) {
        let leader_leads = trio.iter().zip(view).any(|(other, is)| is.0 && other.name == *leader);
        if !leads && !leader_leads {
            return Some(format!("{} follows {leader:?}, which does not lead", host.name));
        }
    }
    None
}

/// Puts each trio into a shape of its own, and waits until all have come to rest, until every shape
/// has been had.
fn walk(lan: &Lan, trios: [Trio<'_>; TRIOS], is_right: impl Fn(Trio<'_>, Shape, &View) -> bool) {
    for first in (0..SHAPES).step_by(TRIOS) {
        let shapes: [Shape; TRIOS] = array::from_fn(|n| first + n as Shape);
        trios.into_iter().zip(shapes).for_each(|(trio, shape)| put_into(lan, trio, shape));
        let begin = |(trio, shape)| (trio, shape, Rest::begin(lan, trio));
        let mut restless: Vec<_> = trios.into_iter().zip(shapes).map(begin).collect();
        wait_until(&format!("the shapes from {first} on come to rest"), || {
            restless.retain_mut(|(trio, shape, rest)| {
                !rest.lasts(lan, *trio, |view| is_right(*trio, *shape, view))
            });
            restless.is_empty()
        });
    }
    trios.into_iter().for_each(|trio| put_into(lan, trio, ALL_LINKS));
    for trio in trios {
        lan.sole_leader_of(&trio);
    }
}

#[test]
fn of_hosts_that_hear_each_other_one_leads_whatever_the_others_hear() {
    scenario(|lan, hosts| {
        let trios = trios(lan, hosts);
        trios
            .as_flattened()
            .iter()
            .for_each(|host| host.start("leader_alive_threshold = \"400ms\""));
        walk(lan, trios, |trio, shape, view| {
            broken(trio, shape, view).is_none_or(|why| {
                println!("{shape:06b}: {why}");
                false
            })
        });
    });
}

#[test]
fn no_shape_of_one_way_links_makes_two_leaders_of_a_quorum() {
    scenario(|lan, hosts| {
        let trios = trios(lan, hosts);
        for trio in trios {
            let names = trio.map(|host| host.name.as_str());
            let lines = format!(
                "mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"100ms\"\n\
                 leader_alive_threshold = \"400ms\""
            );
            trio.iter().for_each(|host| host.start(&lines));
        }
        for trio in trios {
            lan.sole_leader_of(&trio);
        }
        walk(lan, trios, |_, _, view| view.iter().filter(|(leads, ..)| *leads).count() <= 1);
        for trio in trios {
            let of_trio = |number| trio.iter().any(|host| host.number == number);
            let claims = lan.claims().into_iter().filter(|claim| of_trio(claim.host));
            assert_eq!(contradictions(&claims.collect::<Vec<_>>()), "");
        }
    });
}
