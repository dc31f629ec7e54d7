//! How often the leadership moves at the default settings, by the length of the pause.

use std::time::Duration;

use crate::harness::lan::scenario_with;
use crate::harness::patience::pass;
use crate::options;
use crate::programs::{self, Contender, Group, HOSTS, Held, Pace};
use crate::report::Table;

/// How long the leader is held.
const HOLDS: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(500),
    Duration::from_millis(600),
    Duration::from_millis(800),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
    Duration::from_millis(3000),
];

/// What is held of the leader's host.
const HELD: [(Held, &str); 2] =
    [(Held::Process, "its process held"), (Held::Host, "its whole host held")];

/// A group for each of the three programs.
const ALL_HOSTS: usize = 3 * HOSTS;

/// After a hold, the time for a successor to show itself, and for the group to settle. A leader
/// that was held for long has hooks to run.
const SETTLING: Duration = Duration::from_secs(1);

/// Every program has its turn at the same time: they share the machine, not the wire.
pub(crate) fn by_default() {
    scenario_with(programs::needs(), |lan, hosts: [_; ALL_HOSTS]| {
        let contenders = programs::available(Pace::Default);
        let groups = programs::start_apart(lan, &hosts, &contenders);
        let mut leaders: Vec<_> = groups.iter().map(Group::settled_leader).collect();
        let counts =
            HELD.map(|(held, _)| HOLDS.map(|hold| count(&groups, &mut leaders, held, hold)));
        report(&contenders, &counts);
    });
}

/// In how many trials each group's leadership moved.
fn count(groups: &[Group<'_>], leaders: &mut [usize], held: Held, hold: Duration) -> Vec<usize> {
    let mut moves = vec![0; groups.len()];
    for _ in 0..options::samples() {
        pass(SETTLING.mul_f64(1.0 + fastrand::f64()));
        let pairs = || groups.iter().zip(&*leaders);
        pairs().for_each(|(group, leader)| group.hold(*leader, held));
        pass(hold);
        pairs().for_each(|(group, leader)| group.release(*leader, held));
        pass(SETTLING);
        for ((group, leader), moves) in groups.iter().zip(&mut *leaders).zip(&mut moves) {
            if group.has_moved_from(*leader) {
                *moves += 1;
                *leader = group.settled_leader();
            }
        }
    }
    moves
}

fn report(contenders: &[Contender], counts: &[[Vec<usize>; HOLDS.len()]; HELD.len()]) {
    let trials = options::samples();
    println!("Leadership moved while the leader was held, of {trials} trials each, by default");
    for (counts, (_, held)) in counts.iter().zip(HELD) {
        let names = contenders.iter().map(|contender| contender.program.name());
        let mut table = Table::new(1, [held].into_iter().chain(names));
        for (hold, moves) in HOLDS.iter().zip(counts) {
            let moves = moves.iter().map(ToString::to_string);
            table.row([format!("{hold:?}")].into_iter().chain(moves));
        }
        println!("{table}");
    }
}
