//! A group that takes its turns, and what is measured of it.

use std::time::{Duration, Instant};

use crate::counter::Counter;
use crate::harness::Host;
use crate::harness::patience::{LIMIT, now, pass};
use crate::meter::Reading;
use crate::programs::{Carrier, Contender, Group};
use crate::sheet::{Calm, Sheet};

/// Between two looks at what a leader has sent.
const LOOK: Duration = Duration::from_millis(1);

/// Followers whose processor time is read: the more, the longer a reading takes.
const WATCHED_MAX: usize = 4;

/// A group and its figures.
pub(crate) struct Contest<'a> {
    pub(crate) sheet: Sheet,
    group: Group<'a>,
    counters: Vec<Counter>,
    /// Datagrams of one declaration.
    burst: u64,
    /// Datagrams of all hosts but the leader, in a second of calm operation.
    routine: f64,
}

/// What the leader and some followers had used at one time.
struct Look {
    /// The leader first.
    processors: Vec<(Instant, u64)>,
    at: Instant,
    sent: Vec<u64>,
}

impl<'a> Contest<'a> {
    /// Starts it, with the figures of an earlier time.
    pub(crate) fn start(
        sheet: Sheet,
        carrier: Carrier,
        contender: Contender,
        hosts: &[&'a Host],
    ) -> Contest<'a> {
        let group = Group::start_by(carrier, contender.program, hosts, contender.interval);
        let counters = hosts.iter().map(|host| Counter::of(host)).collect();
        let burst = match carrier {
            Carrier::Multicast => 1,
            Carrier::Peers => hosts.len() as u64 - 1,
        };
        Contest { sheet, group, counters, burst, routine: 0.0 }
    }

    /// Ends the group.
    pub(crate) fn finish(self) -> Sheet {
        self.sheet
    }

    pub(crate) fn settle(&self) -> usize {
        self.group.settled_leader()
    }

    /// Kills the leader so long after a declaration, in intervals.
    pub(crate) fn take_over(&mut self, phase: f64) {
        let group = &self.group;
        let leader = self.settle();
        let processes = group.hosts[leader].processes();
        self.await_declaration(leader);
        pass(group.interval.mul_f64(phase));
        let before = self.sent();
        let killed = group.kill(&processes);
        let successor = group.bell.await_successor(&group.hosts[leader].name);
        let sent: u64 = self.sent().iter().sum::<u64>() - before.iter().sum::<u64>();
        group.restart(leader);
        let took = successor.at - killed;
        self.sheet.takeovers.push(took.as_secs_f64() * 1000.0);
        self.sheet.sent.push(sent as f64);
        self.sheet.sent_beyond.push(sent as f64 - self.routine * took.as_secs_f64());
    }

    /// Ends the leader in order.
    pub(crate) fn hand_over(&mut self) {
        self.sheet.handovers.push(self.group.handover().as_secs_f64() * 1000.0);
    }

    fn sent(&self) -> Vec<u64> {
        self.counters.iter().map(Counter::sent).collect()
    }

    /// Returns when the leader has just declared itself.
    fn await_declaration(&self, leader: usize) {
        let counter = &self.counters[leader];
        let (started, mut before) = (now(), counter.sent());
        loop {
            pass(LOOK);
            let mut after = counter.sent();
            if after > before && after < before + self.burst {
                // Perhaps the first part of one.
                pass(LOOK);
                after = counter.sent();
            }
            if after >= before + self.burst {
                return;
            }
            assert!(started.elapsed() < LIMIT, "the leader declares nothing");
            before = after;
        }
    }
}

/// Watches calm groups for so long, all at once.
pub(crate) fn watch(contests: &mut [Contest<'_>], window: Duration) {
    let leaders: Vec<usize> = contests.iter().map(Contest::settle).collect();
    contests.iter().for_each(|contest| contest.group.bell.silence());
    let look = |contests: &[Contest<'_>]| -> Vec<Look> {
        contests.iter().zip(&leaders).map(|(contest, leader)| contest.look(*leader)).collect()
    };
    let before = look(contests);
    pass(window);
    let after = look(contests);
    for (((contest, leader), before), after) in
        contests.iter_mut().zip(&leaders).zip(&before).zip(&after)
    {
        assert!(contest.group.bell.rings().is_empty(), "the leader did not stay the leader");
        contest.note(*leader, before, after);
    }
}

impl Contest<'_> {
    fn look(&self, leader: usize) -> Look {
        let hosts = &self.group.hosts;
        let followers = (0..hosts.len()).filter(|host| *host != leader).take(WATCHED_MAX);
        let watched = [leader].into_iter().chain(followers);
        let processors = watched.map(|host| (now(), Reading::of(hosts[host]).cpu_ns)).collect();
        Look { processors, at: now(), sent: self.sent() }
    }

    fn note(&mut self, leader: usize, before: &Look, after: &Look) {
        let micros: Vec<f64> = before
            .processors
            .iter()
            .zip(&after.processors)
            .map(|((from, start), (to, end))| {
                (end - start) as f64 / 1000.0 / (*to - *from).as_secs_f64()
            })
            .collect();
        let seconds = (after.at - before.at).as_secs_f64();
        let sent = before.sent.iter().zip(&after.sent).map(|(before, after)| after - before);
        let sent: Vec<f64> = sent.map(|count| count as f64 / seconds).collect();
        self.routine = sent.iter().sum::<f64>() - sent[leader];
        let followers = micros.len() - 1;
        self.sheet.calm.push(Calm {
            cpu_micros: [micros[0], micros[1..].iter().sum::<f64>() / followers as f64],
            sent: [sent[leader], self.routine / (sent.len() - 1) as f64],
        });
    }
}
