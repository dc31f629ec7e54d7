//! A deterministic world: virtual time, hosts with drifting clocks and disks, and a network, all
//! driving the very core that the daemon drives, over the very bytes that it sends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use fastrand::Rng;
use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::{HookOutcome, HookRun};
use lanelect::core::output::{Event, Output};
use lanelect::core::params::Params;
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId};
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Message};

use crate::checkers::{Checkers, Violation};
use crate::network::Network;

/// Datagrams that wait in a stopped host's socket; more are dropped, the newest first.
const SOCKET_BUFFER: usize = 256;

/// How a host's hooks behave.
#[derive(Debug, Clone, Copy)]
pub struct HookHabit {
    /// Longest run, in nanoseconds.
    pub longest: u64,
    /// Probability that a run fails.
    pub failure: f64,
    /// Probability that a run never starts.
    pub absence: f64,
}

/// One simulated machine.
pub struct Host {
    pub node_id: NodeId,
    pub params: Params,
    pub hooks: HookHabit,
    pub election: Option<Election>,
    disk: PersistentState,
    /// Its clock: how far off it started, and how much too fast it runs, in parts per billion.
    clock_offset: u64,
    clock_drift: i64,
    /// Counts its lives, so that events of an earlier one are recognised.
    life: u64,
    /// The wake that is scheduled; a later one makes it moot.
    wake_at: u64,
    /// True time since when it has taken in every datagram that arrived.
    listens_since: u64,
    /// What arrived while it was stopped; none where it runs.
    stopped: Option<Stopped>,
}

#[derive(Default)]
struct Stopped {
    inbox: Vec<(IpAddr, Rc<[u8]>)>,
    /// Whether the hook that ended meanwhile had started at all.
    hook_ended: Option<bool>,
}

impl Host {
    /// Whether its daemon runs and is not held.
    pub fn is_up(&self) -> bool {
        self.election.is_some() && self.stopped.is_none()
    }

    /// Whether its daemon runs, held or not.
    pub fn is_alive(&self) -> bool {
        self.election.is_some()
    }

    fn local(&self, now: u64) -> Time {
        local(now, self.clock_offset, self.clock_drift)
    }

    /// The first true time at which the host's clock shows at least `local`.
    fn true_time(&self, local: Time) -> u64 {
        let ahead = i128::from(local.as_nanos()) - i128::from(self.clock_offset);
        let rate = 1_000_000_000 + i128::from(self.clock_drift);
        let scaled = ahead.max(0) * 1_000_000_000;
        ((scaled + rate - 1) / rate + 1) as u64
    }
}

#[derive(Debug, Clone)]
enum Action {
    Deliver { to: usize, from: usize, datagram: Rc<[u8]>, duplicate_of: Option<u64> },
    Wake { host: usize, life: u64 },
    HookEnds { host: usize, life: u64, ran: bool },
}

struct Scheduled {
    at: u64,
    number: u64,
    action: Action,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What the world does wrong on purpose, to show that the checkers notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Leaders do not get better leaders' declarations.
    IgnoreBetterLeaders,
    /// Disks forget.
    ForgetPersisted,
    /// The end of a hook is reported before its time, while it still runs.
    ReportHooksEarly,
    /// A stopped node goes on talking.
    SpeakAfterStop,
}

/// The whole simulation.
pub struct World {
    /// True time, in nanoseconds.
    pub now: u64,
    pub hosts: Vec<Host>,
    pub network: Network,
    pub checkers: Checkers,
    pub rng: Rng,
    /// Prints everything that happens.
    pub trace: bool,
    pub sabotage: Option<Sabotage>,
    /// Datagrams sent so far.
    pub sent: u64,
    codec: Codec,
    queue: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    buffer: Vec<u8>,
}

impl World {
    /// Hosts that are switched off, one for each of `settings`.
    pub fn new(seed: u64, settings: Vec<(Params, HookHabit)>, drift_ppb: i64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let network = Network::new(settings.len());
        let hosts: Vec<_> = settings
            .into_iter()
            .enumerate()
            .map(|(index, (params, hooks))| Host {
                node_id: node_id(index),
                params,
                hooks,
                election: None,
                disk: PersistentState::default(),
                clock_offset: rng.u64(1_000_000_000..1_000_000_000_000),
                clock_drift: rng.i64(-drift_ppb..=drift_ppb),
                life: 0,
                wake_at: u64::MAX,
                listens_since: 0,
                stopped: None,
            })
            .collect();
        World {
            now: 0,
            checkers: Checkers::new(hosts.len()),
            hosts,
            network,
            rng,
            trace: false,
            sabotage: None,
            sent: 0,
            codec: Codec::new("sim".parse().expect("a valid name"), None),
            queue: BinaryHeap::new(),
            scheduled: 0,
            buffer: Vec::new(),
        }
    }

    /// Runs until `end`, checking at every step.
    pub fn run_until(&mut self, end: u64) -> Result<(), Violation> {
        while self.queue.peek().is_some_and(|Reverse(next)| next.at <= end) {
            let Some(Reverse(Scheduled { at, action, .. })) = self.queue.pop() else { break };
            self.now = at;
            self.perform(action)?;
            self.checkers.check_step(self.now, &self.hosts, &self.network)?;
        }
        self.now = end;
        self.checkers.check_step(self.now, &self.hosts, &self.network)
    }

    /// Runs for `duration` nanoseconds.
    pub fn run_for(&mut self, duration: u64) -> Result<(), Violation> {
        self.run_until(self.now + duration)
    }

    /// Starts a host's daemon, with what its disk kept.
    pub fn start(&mut self, index: usize) -> Result<(), Violation> {
        self.log(index, || "starts".into());
        let links_up = self.network.is_plugged(index);
        self.checkers.disturb(self.now);
        let seed = self.rng.u64(..);
        let host = &mut self.hosts[index];
        host.life += 1;
        host.wake_at = u64::MAX;
        host.listens_since = self.now;
        host.stopped = None;
        let incarnation = Incarnation(host.disk.incarnation.0 + 1);
        let setup = Setup {
            node_id: host.node_id,
            incarnation,
            persisted: host.disk,
            params: host.params.clone(),
            links_up,
            seed,
        };
        let now = host.local(self.now);
        host.election = Some(Election::new(setup, now));
        self.checkers.note_start(index);
        self.drain(index)
    }

    /// Ends a host's daemon without any warning. What its hook had begun goes on unheard.
    pub fn crash(&mut self, index: usize) {
        self.log(index, || "crashes".into());
        self.checkers.disturb(self.now);
        let host = &mut self.hosts[index];
        host.election = None;
        host.stopped = None;
        host.life += 1;
    }

    /// Holds a host's daemon, as SIGSTOP does.
    pub fn pause(&mut self, index: usize) {
        if self.hosts[index].is_up() {
            self.log(index, || "is held".into());
            self.checkers.disturb(self.now);
            self.checkers.note_held(index);
            self.hosts[index].stopped = Some(Stopped::default());
        }
    }

    /// Lets a held daemon go on: first it reads what has arrived, as the event loop does.
    pub fn resume(&mut self, index: usize) -> Result<(), Violation> {
        let Some(stopped) = self.hosts[index].stopped.take() else { return Ok(()) };
        self.log(index, || "goes on".into());
        self.checkers.disturb(self.now);
        self.hosts[index].listens_since = self.now;
        for (from, datagram) in stopped.inbox {
            self.hand_in(index, from, &datagram)?;
        }
        if let Some(ran) = stopped.hook_ended {
            self.finish_hook(index, ran)?;
        }
        self.wake(index)
    }

    /// Does something to a running election, as the control socket or a signal would.
    pub fn command(
        &mut self,
        index: usize,
        what: &str,
        act: impl FnOnce(&mut Election, Time),
    ) -> Result<(), Violation> {
        if !self.hosts[index].is_up() {
            return Ok(());
        }
        self.log(index, || what.to_string());
        self.checkers.disturb(self.now);
        let now = self.hosts[index].local(self.now);
        if let Some(election) = &mut self.hosts[index].election {
            act(election, now);
        }
        self.drain(index)
    }

    /// Takes a host's interface down or brings it up, and tells its daemon.
    pub fn plug(&mut self, index: usize, up: bool) -> Result<(), Violation> {
        self.network.set_unplugged(index, !up);
        self.checkers.disturb(self.now);
        let what = if up { "is plugged in" } else { "is unplugged" };
        self.command(index, what, |election, now| election.handle_links(now, up))
    }

    fn perform(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Deliver { to, from, datagram, duplicate_of } => {
                self.deliver(to, from, datagram, duplicate_of)
            }
            Action::Wake { host, life } => {
                let current = self.hosts[host].life == life && self.hosts[host].wake_at == self.now;
                if current && self.hosts[host].is_up() { self.wake(host) } else { Ok(()) }
            }
            Action::HookEnds { host, life, ran } if self.hosts[host].life == life => {
                match &mut self.hosts[host].stopped {
                    Some(stopped) => stopped.hook_ended = Some(ran),
                    None => self.finish_hook(host, ran)?,
                }
                Ok(())
            }
            Action::HookEnds { .. } => Ok(()),
        }
    }

    fn wake(&mut self, index: usize) -> Result<(), Violation> {
        let host = &mut self.hosts[index];
        host.wake_at = u64::MAX;
        let now = host.local(self.now);
        if let Some(election) = &mut host.election {
            election.handle_timeout(now);
        }
        self.drain(index)
    }

    fn deliver(
        &mut self,
        to: usize,
        from: usize,
        datagram: Rc<[u8]>,
        duplicate_of: Option<u64>,
    ) -> Result<(), Violation> {
        let address = address(from);
        if let Some(stopped) = &mut self.hosts[to].stopped {
            if stopped.inbox.len() < SOCKET_BUFFER {
                stopped.inbox.push((address, datagram));
            }
            return Ok(());
        }
        let heard_before = duplicate_of.is_some_and(|sent| self.hosts[to].listens_since <= sent);
        if !heard_before {
            return self.hand_in(to, address, &datagram);
        }
        let before = self.summary(to);
        self.hand_in(to, address, &datagram)?;
        if before == self.summary(to) {
            Ok(())
        } else {
            Err(Violation::new(format!(
                "a duplicate from {} changed {}",
                node_id(from),
                node_id(to)
            )))
        }
    }

    /// What a duplicate must not change.
    fn summary(&self, index: usize) -> impl PartialEq + use<> {
        let election = self.hosts[index].election.as_ref();
        (election.map(|e| (e.role(), e.leader(), e.term())), self.sent)
    }

    fn hand_in(&mut self, to: usize, from: IpAddr, datagram: &[u8]) -> Result<(), Violation> {
        let host = &mut self.hosts[to];
        let Some(election) = &mut host.election else { return Ok(()) };
        let message = self
            .codec
            .decode(datagram)
            .map_err(|error| Violation::new(format!("an own datagram does not decode: {error}")))?;
        if self.sabotage == Some(Sabotage::IgnoreBetterLeaders)
            && matches!(message.body, Body::Declaration { .. })
            && election.is_leader()
            && message.sender < election.node_id()
        {
            return Ok(());
        }
        let now = local(self.now, host.clock_offset, host.clock_drift);
        let is_news = self.checkers.note_delivery(to, now, &message, election);
        election.handle_datagram(now, from, &message);
        if is_news {
            Checkers::check_reaction(&message, election)?;
        }
        self.drain(to)
    }

    fn finish_hook(&mut self, index: usize, ran: bool) -> Result<(), Violation> {
        let failed = self.rng.f64() < self.hosts[index].hooks.failure;
        let outcome = match (ran, failed) {
            (false, _) => HookOutcome::NotRun,
            (true, true) => HookOutcome::Failed,
            (true, false) => HookOutcome::Succeeded,
        };
        self.log(index, || format!("hook {outcome:?}"));
        self.checkers.note_hook_end(index);
        if outcome != HookOutcome::Succeeded {
            self.checkers.disturb(self.now);
        }
        let host = &mut self.hosts[index];
        let now = host.local(self.now);
        if let Some(election) = &mut host.election {
            election.handle_hook_finished(now, outcome);
        }
        self.drain(index)
    }

    /// Carries out what the election asks for, in order, and schedules its next wake.
    fn drain(&mut self, index: usize) -> Result<(), Violation> {
        while let Some(output) = self.hosts[index].election.as_mut().and_then(Election::poll_output)
        {
            match output {
                Output::Persist(state) => self.save(index, state)?,
                Output::Transmit(message) => self.transmit(index, message)?,
                Output::RunHook(run) => self.run_hook(index, run)?,
                Output::CutHookShort { .. } | Output::Fence { .. } => {}
                Output::Notify(event) => self.note_event(index, event)?,
                Output::Stopped(cause) => {
                    self.log(index, || format!("stopped: {cause:?}"));
                    self.checkers.note_stopped(index);
                    self.check_that_it_is_over(index)?;
                    self.hosts[index].election = None;
                    self.hosts[index].life += 1;
                    return self.speak_after_stop(index);
                }
            }
        }
        self.schedule_wake(index);
        Ok(())
    }

    /// Whatever is done to an election that has stopped, nothing comes of it.
    fn check_that_it_is_over(&mut self, index: usize) -> Result<(), Violation> {
        let now = self.hosts[index].local(self.now);
        let Some(election) = &mut self.hosts[index].election else { return Ok(()) };
        let maintenance = election.in_maintenance();
        election.set_maintenance(now, !maintenance);
        election.handle_links(now, false);
        election.handle_links(now, true);
        election.handle_timeout(now);
        if election.poll_output().is_none() && election.poll_timeout().is_none() {
            return Ok(());
        }
        Err(Violation::new(format!("{} goes on after it stopped", node_id(index))))
    }

    fn speak_after_stop(&mut self, index: usize) -> Result<(), Violation> {
        match self.checkers.last_sent(index) {
            Some(mut last) if self.sabotage == Some(Sabotage::SpeakAfterStop) => {
                last.sequence.0 += 1;
                self.transmit(index, last)
            }
            _ => Ok(()),
        }
    }

    fn save(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        self.checkers.note_persist(index, &self.hosts[index].disk, &state)?;
        self.hosts[index].disk = state;
        if self.sabotage == Some(Sabotage::ForgetPersisted) {
            self.hosts[index].disk.term = lanelect::types::Term(0);
        }
        let now = self.hosts[index].local(self.now);
        if let Some(election) = &mut self.hosts[index].election {
            election.handle_persisted(now, state);
        }
        Ok(())
    }

    fn transmit(&mut self, index: usize, message: Message) -> Result<(), Violation> {
        self.log(index, || format!("sends {:?} term {}", message.body, message.term));
        self.sent += 1;
        let host = &self.hosts[index];
        self.checkers.note_sent(index, host.local(self.now), &message, &host.disk)?;
        let encoded = self.codec.encode(&message, &mut self.buffer);
        encoded.map_err(|error| Violation::new(format!("a message does not encode: {error}")))?;
        let datagram: Rc<[u8]> = Rc::from(self.buffer.as_slice());
        for to in 0..self.hosts.len() {
            let delays = self.network.deliveries(&mut self.rng, index, to);
            for (copy, delay) in delays.into_iter().flatten().enumerate() {
                let duplicate_of = (copy > 0).then_some(self.now);
                let datagram = datagram.clone();
                self.schedule(delay, Action::Deliver { to, from: index, datagram, duplicate_of });
            }
        }
        Ok(())
    }

    fn run_hook(&mut self, index: usize, run: HookRun) -> Result<(), Violation> {
        self.log(index, || format!("hook {} {} term {}", run.event, run.reason, run.term));
        let ran = self.rng.f64() >= self.hosts[index].hooks.absence;
        if ran {
            self.checkers.note_hook_start(index, &run)?;
        }
        let longest = self.hosts[index].hooks.longest;
        let takes = self.rng.u64(0..=longest);
        let life = self.hosts[index].life;
        if self.sabotage == Some(Sabotage::ReportHooksEarly) {
            let now = self.hosts[index].local(self.now);
            if let Some(election) = &mut self.hosts[index].election {
                election.handle_hook_finished(now, HookOutcome::Succeeded);
            }
        }
        self.schedule(takes, Action::HookEnds { host: index, life, ran });
        Ok(())
    }

    fn note_event(&mut self, index: usize, event: Event) -> Result<(), Violation> {
        self.log(index, || format!("{event:?}"));
        let host = &self.hosts[index];
        let now = host.local(self.now);
        self.checkers.note_event(index, now, self.now, &event, host)
    }

    fn schedule_wake(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let deadline = host.election.as_ref().and_then(Election::poll_timeout);
        let Some(deadline) = deadline else { return };
        let at = host.true_time(deadline.at).max(self.now);
        if at != host.wake_at {
            host.wake_at = at;
            let action = Action::Wake { host: index, life: host.life };
            self.schedule(at - self.now, action);
        }
    }

    fn schedule(&mut self, delay: u64, action: Action) {
        self.scheduled += 1;
        let at = self.now + delay;
        self.queue.push(Reverse(Scheduled { at, number: self.scheduled, action }));
    }

    /// Prints what a host does, where a trace is wanted.
    pub fn log(&self, index: usize, what: impl FnOnce() -> String) {
        if self.trace {
            let millis = self.now as f64 / 1e6;
            println!("{millis:>14.3} ms  {:<4} {}", node_id(index).as_str(), what());
        }
    }
}

/// The hosts' ids: `n0`, `n1`, …, so that byte order is the order of their indices.
pub fn node_id(index: usize) -> NodeId {
    format!("n{index:05}").parse().expect("a valid name")
}

/// What a clock that was `offset` at time zero and runs `drift` parts per billion fast shows.
fn local(now: u64, offset: u64, drift: i64) -> Time {
    let gained = i128::from(now) * i128::from(drift) / 1_000_000_000;
    Time::from_nanos((i128::from(offset) + i128::from(now) + gained) as u64)
}

fn address(index: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + index as u32).into()
}
