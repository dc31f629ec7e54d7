//! The rules of available mode once more, as plainly as they can be put, beside the real thing.
//!
//! The model knows nothing of datagrams, timers and terms: only who runs, who reaches whom, and who
//! leads once everything has come to rest. Real elections are put through the same events on a
//! perfect network, and after each settling period the same hosts must lead. The next event comes
//! once everybody has heard everybody: before that a host that resigns names the best that it knows
//! of.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::params::Params;
use lanelect::types::NodeId;

use crate::available::checkers::Checkers;
use crate::available::swarm::{
    LARGE, Tally, choose_peers, choose_priority, choose_size, choose_tie_break, settling_time,
};
use crate::watch::{Violation, Watch};
use crate::world::{HookHabit, World, nanos, node_id};

/// Events in one run.
const STEPS: Range<usize> = 5..30;

/// What came of many comparisons, in words.
pub fn summary(total: &Tally) -> String {
    format!("{} events, the same leaders after each", total.disturbances)
}

/// Compares the two on the events of one seed.
pub fn run(seed: u64, trace: bool) -> Result<Tally, Violation> {
    let mut rng = Rng::with_seed(seed);
    let heartbeat = Duration::from_millis([20, 1000][rng.usize(0..2)]);
    let hooks = HookHabit::of_length(0);
    let hosts = choose_size(&mut rng, seed, 1..=6);
    let settings: Vec<_> = choose_peers(&mut rng, hosts)
        .into_iter()
        .map(|unicast| {
            let priority = choose_priority(&mut rng);
            let candidate = rng.u8(0..5) > 0;
            let tie_break = choose_tie_break(&mut rng);
            let failure_holdoff = Duration::ZERO;
            let params = Params::new(heartbeat);
            let params = Params { priority, tie_break, candidate, failure_holdoff, ..params };
            (Params { unicast, ..params }, hooks)
        })
        .collect();
    let mut model = Model::new(settings.iter().map(|(params, _)| params));
    let checkers = Checkers::new(settings.len());
    let mut world = World::new(rng.u64(..), settings, 0, checkers);
    world.trace = trace;
    world.watch.settling_time = settling_time(&world.hosts[0].params, &hooks);
    let steps = rng.usize(STEPS);
    for step in 1..=steps {
        let event = Event::choose(&mut rng, &model);
        let at_step = |violation| Violation::new(format!("step {step}, {event}: {violation}"));
        model.take_in(&event);
        play(&mut world, &event).and_then(|()| agree(&mut world, &mut model)).map_err(at_step)?;
        if let Event::Pause(host) = event {
            model.resume(host);
            world.resume(host).and_then(|()| agree(&mut world, &mut model)).map_err(at_step)?;
        }
    }
    Ok(Tally { simulated: world.now, sent: world.sent, disturbances: steps as u64 })
}

/// What can happen to a group.
enum Event {
    Start(usize),
    /// Everyone that is down, at the same time.
    StartAll,
    Crash(usize),
    /// The leaders and the best of the others, at the same time.
    CrashBest(Vec<usize>),
    Stop(usize),
    Yield(usize),
    /// The daemon is held for a settling period, and goes on.
    Pause(usize),
    /// Hosts of the same colour reach each other.
    Partition(Vec<usize>),
    Heal,
}

impl Event {
    fn choose(rng: &mut Rng, model: &Model) -> Self {
        let hosts = model.hosts.len();
        if LARGE.contains(&hosts) && rng.bool() {
            return match rng.bool() {
                true => Event::StartAll,
                false => Event::CrashBest(model.leaders_and_best(rng.usize(1..hosts))),
            };
        }
        let host = rng.usize(0..hosts);
        match rng.u8(0..14) {
            0..=3 => Event::Start(host),
            4 => Event::StartAll,
            5 => Event::Crash(host),
            6 => Event::Stop(host),
            7..=8 => Event::Yield(host),
            9 => Event::Pause(host),
            10..=11 => Event::Partition((0..hosts).map(|_| rng.usize(0..3)).collect()),
            _ => Event::Heal,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Start(host) => write!(f, "{} starts", node_id(*host)),
            Event::StartAll => write!(f, "everyone starts"),
            Event::Crash(host) => write!(f, "{} crashes", node_id(*host)),
            Event::CrashBest(hosts) => write!(f, "{:?} crash", names(hosts)),
            Event::Stop(host) => write!(f, "{} stops", node_id(*host)),
            Event::Yield(host) => write!(f, "{} yields", node_id(*host)),
            Event::Pause(host) => write!(f, "{} is held for long and goes on", node_id(*host)),
            Event::Partition(colours) => write!(f, "partition {colours:?}"),
            Event::Heal => write!(f, "heal"),
        }
    }
}

/// The model.
struct Model {
    hosts: Vec<ModelHost>,
    /// Components in which the rules leave open who leads.
    open: Vec<Vec<usize>>,
}

struct ModelHost {
    candidate: bool,
    /// Higher is better; the index breaks ties, as ids do.
    priority: u8,
    tie_break: u32,
    runs: bool,
    held: bool,
    leads: bool,
    /// Whom it followed when the group last came to rest.
    follows: Option<usize>,
    colour: usize,
}

impl Model {
    fn new<'a>(settings: impl Iterator<Item = &'a Params>) -> Self {
        let host = |params: &Params| ModelHost {
            candidate: params.candidate,
            priority: params.priority.0,
            tie_break: params.tie_break.0,
            runs: false,
            held: false,
            leads: false,
            follows: None,
            colour: 0,
        };
        Model { hosts: settings.map(host).collect(), open: Vec::new() }
    }

    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Start(host) => self.hosts[*host].runs = true,
            Event::StartAll => self.hosts.iter_mut().for_each(|host| host.runs = true),
            Event::Crash(host) | Event::Stop(host) => self.end(*host),
            Event::CrashBest(hosts) => hosts.iter().for_each(|host| self.end(*host)),
            Event::Yield(host) if self.hosts[*host].leads => {
                self.hosts[*host].leads = false;
                let others = self.component(*host).into_iter().filter(|other| other != host);
                // Alone, it gets its leadership back.
                let successor = self.best(others).unwrap_or(*host);
                self.hosts[successor].leads = true;
            }
            Event::Yield(_) => {}
            Event::Pause(host) => self.hosts[*host].held = self.hosts[*host].runs,
            Event::Partition(colours) => {
                for (host, colour) in self.hosts.iter_mut().zip(colours) {
                    host.colour = *colour;
                }
            }
            Event::Heal => self.hosts.iter_mut().for_each(|host| host.colour = 0),
        }
        self.open = self.split_minded();
        self.come_to_rest();
    }

    fn end(&mut self, host: usize) {
        self.hosts[host].runs = false;
        self.hosts[host].leads = false;
        self.hosts[host].follows = None;
    }

    fn resume(&mut self, host: usize) {
        self.hosts[host].held = false;
        self.open = self.split_minded();
        self.come_to_rest();
    }

    /// In every component, the leader that is there stays; of several the best; where there is
    /// none, the best candidate leads.
    fn come_to_rest(&mut self) {
        for host in 0..self.hosts.len() {
            let component = self.component(host);
            let leading = component.iter().copied().filter(|member| self.hosts[*member].leads);
            let leader = self.best(leading).or_else(|| self.best(component.iter().copied()));
            self.lead(&component, leader);
        }
    }

    fn lead(&mut self, component: &[usize], leader: Option<usize>) {
        for member in component {
            self.hosts[*member].leads = Some(*member) == leader;
            self.hosts[*member].follows = leader;
        }
    }

    /// The components whose members had different leaders, none of which is among them: each gives
    /// its own up in its own time, and of those that stand the first is followed by the others.
    fn split_minded(&self) -> Vec<Vec<usize>> {
        let mut found: Vec<Vec<usize>> = Vec::new();
        for host in 0..self.hosts.len() {
            let component = self.component(host);
            let leads = component.iter().any(|member| self.hosts[*member].leads);
            let follows: BTreeSet<_> =
                component.iter().filter_map(|it| self.hosts[*it].follows).collect();
            if !leads && follows.len() > 1 && !found.contains(&component) {
                found.push(component);
            }
        }
        found
    }

    /// Where the rules leave it open, whichever candidate leads is the one that does.
    fn adopt(&mut self, leaders: &[usize]) {
        for component in std::mem::take(&mut self.open) {
            let here = leaders.iter().copied().filter(|it| component.contains(it));
            match here.collect::<Vec<_>>()[..] {
                [leader] if self.hosts[leader].candidate => self.lead(&component, Some(leader)),
                _ => {}
            }
        }
    }

    /// Those that reach `host` and each other, itself included; nobody where it does not run.
    fn component(&self, host: usize) -> Vec<usize> {
        let here = |other: &usize| {
            let other = &self.hosts[*other];
            other.runs && !other.held && other.colour == self.hosts[host].colour
        };
        if here(&host) { (0..self.hosts.len()).filter(here).collect() } else { Vec::new() }
    }

    fn best(&self, hosts: impl Iterator<Item = usize>) -> Option<usize> {
        hosts.filter(|host| self.hosts[*host].candidate).min_by_key(|host| {
            let ModelHost { priority, tie_break, .. } = self.hosts[*host];
            (u8::MAX - priority, tie_break, *host)
        })
    }

    /// The leaders, and the best candidates besides that run, `count` of them.
    fn leaders_and_best(&self, count: usize) -> Vec<usize> {
        let mut hosts = self.leaders();
        while hosts.len() < count {
            let others = (0..self.hosts.len()).filter(|host| !hosts.contains(host));
            let Some(next) = self.best(others.filter(|host| self.hosts[*host].runs)) else { break };
            hosts.push(next);
        }
        hosts
    }

    fn leaders(&self) -> Vec<usize> {
        let leads = |host: &usize| self.hosts[*host].leads && !self.hosts[*host].held;
        (0..self.hosts.len()).filter(leads).collect()
    }
}

/// Does to the real elections what happened in the model.
fn play(world: &mut World<Checkers>, event: &Event) -> Result<(), Violation> {
    world.watch.disturb(world.now);
    match event {
        Event::Start(host) if !world.hosts[*host].is_alive() => world.start(*host)?,
        Event::Start(_) => {}
        Event::StartAll => {
            for host in 0..world.hosts.len() {
                if !world.hosts[host].is_alive() {
                    world.start(host)?;
                }
            }
        }
        Event::Crash(host) => world.crash(*host)?,
        Event::CrashBest(hosts) => hosts.iter().try_for_each(|host| world.crash(*host))?,
        Event::Stop(host) => world.command(*host, "is stopped", Election::stop)?,
        Event::Yield(host) => world.command(*host, "yields", |election, now| {
            let _ = election.yield_leadership(now);
        })?,
        Event::Pause(host) => world.pause(*host),
        Event::Partition(colours) => world.network.partition(colours),
        Event::Heal => world.network.heal(),
    }
    Ok(())
}

/// After so long each host has heard every other one that it reaches, and knows which is the best.
fn time_to_report(world: &World<Checkers>) -> u64 {
    let interval = world.hosts[0].params.report_interval(world.hosts.len());
    // It is up to a tenth longer, so that followers do not fall into step. Of two heartbeats of a
    // later release only one announces when the next comes.
    nanos(interval * 9 / 4)
}

/// Lets the elections settle; then those lead that lead in the model. Then lets everybody hear
/// everybody.
fn agree(world: &mut World<Checkers>, model: &mut Model) -> Result<(), Violation> {
    world.run_for(world.watch.settling_time)?;
    let leads = |host: &usize| {
        let host = &world.hosts[*host];
        host.is_up() && host.election.as_ref().is_some_and(Election::is_leader)
    };
    let leaders: Vec<usize> = (0..world.hosts.len()).filter(leads).collect();
    model.adopt(&leaders);
    let expected = model.leaders();
    if leaders == expected {
        return world.run_for(time_to_report(world));
    }
    Err(Violation::new(format!("{:?} lead, not {:?}", names(&leaders), names(&expected))))
}

fn names(hosts: &[usize]) -> Vec<NodeId> {
    hosts.iter().map(|host| node_id(*host)).collect()
}
