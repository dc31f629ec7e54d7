//! Hosts, the network between them, and what happens when.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;

use super::guarantees::Guarantees;
use super::hook_runner::{Progress, Ticket};
use super::host::{GROUP, Host, Thread, port};
use super::process::{BOOT, End, Holds, Pause, Process};
use crate::config::ConfigSource;
use crate::hooks::Task;
use crate::os::simulated::Step;
use crate::time::Time;
use crate::types::Role;
use crate::wire::frame::Codec;
use crate::wire::message::Message;

/// Times that a daemon may wake within a second. There are not so many datagrams.
const WAKES_MAX: u32 = 5_000;

/// Something that happens later.
type Act = Box<dyn FnOnce(&mut World)>;

/// How the world treats its hosts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) loss: f64,
    pub(super) duplication: f64,
    pub(super) delay: Duration,
    pub(super) disk: Duration,
    pub(super) hook: Duration,
    pub(super) hook_fails: f64,
    pub(super) holds: Holds,
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) rng: Rng,
    pub(super) hosts: Vec<Host>,
    pub(super) weather: Weather,
    /// Links that lose everything, from and to.
    pub(super) cuts: Vec<(usize, usize)>,
    pub(super) seen: Guarantees,
    pub(super) trace: bool,
    /// What happens later: when, and its number among all that was planned.
    acts: BTreeMap<(Time, u64), Act>,
    planned: u64,
    mouth: UdpSocket,
    mouth_address: SocketAddr,
    codec: Codec,
    pub(super) datagrams: u64,
}

impl World {
    /// Hosts with these configurations, each with a directory below `dir`. No daemon runs yet.
    pub(super) fn new(seed: u64, dir: &Path, configs: &[String], weather: Weather) -> Self {
        let mouth = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        mouth.set_multicast_ttl_v4(255).unwrap();
        mouth.set_multicast_loop_v4(true).unwrap();
        let hosts = configs.iter().enumerate().map(|(index, config)| Host::new(index, dir, config));
        World {
            now: BOOT,
            rng: Rng::with_seed(seed),
            hosts: hosts.collect(),
            weather,
            cuts: Vec::new(),
            seen: Guarantees::default(),
            trace: false,
            acts: BTreeMap::new(),
            planned: 0,
            mouth_address: mouth.local_addr().unwrap(),
            mouth,
            codec: Codec::new("default".parse().unwrap(), None),
            datagrams: 0,
        }
    }

    /// Does `act` after `delay`.
    pub(super) fn after(&mut self, delay: Duration, act: impl FnOnce(&mut World) + 'static) {
        self.planned += 1;
        self.acts.insert((self.now + delay, self.planned), Box::new(act));
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let wakes = self.hosts.iter().enumerate().filter(|(_, host)| host.process.is_some());
            let wakes = wakes.filter_map(|(index, host)| Some((host.wakes_at?, index)));
            let host = wakes.min().filter(|(at, _)| *at <= end);
            let act = self.acts.keys().next().map(|(at, _)| *at).filter(|at| *at <= end);
            match (host, act) {
                (Some((at, index)), act) if act.is_none_or(|act| at < act) => {
                    self.now = self.now.max(at);
                    self.run(index);
                }
                (_, Some(at)) => {
                    self.now = self.now.max(at);
                    if let Some((_, act)) = self.acts.pop_first() {
                        act(self);
                    }
                }
                _ => break,
            }
        }
        self.now = self.now.max(end);
    }

    pub(super) fn log(&self, index: usize, what: impl FnOnce() -> String) {
        if self.trace {
            let seconds = self.now.since(BOOT).as_secs_f64();
            println!("{seconds:>12.6} {} {}", self.hosts[index].node_id, what());
        }
    }

    /// A share of this at random.
    pub(super) fn some_of(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.rng.f64())
    }

    /// Starts the daemon of a host.
    pub(super) fn start(&mut self, index: usize) {
        let seed = self.rng.u64(..);
        let host = &mut self.hosts[index];
        if host.process.is_some() || host.is_cleaned {
            return;
        }
        let source =
            ConfigSource { file: Some(host.dir.join("config.toml")), ..Default::default() };
        host.make_runtime_dir();
        host.process = Some(Process::new(source, seed));
        host.life += 1;
        host.is_new = true;
        host.hooks.is_new_life = true;
        host.is_stopping = false;
        host.is_held = false;
        host.wakes_at = Some(self.now);
        self.log(index, || "starts".to_owned());
    }

    /// Kills the daemon of a host wherever it is.
    pub(super) fn kill(&mut self, index: usize) {
        if self.hosts[index].process.is_none() {
            return;
        }
        self.log(index, || "is killed".to_owned());
        self.end_process(index);
        self.clean_up_after(index);
    }

    /// The daemon's threads end with it, and its connections.
    fn end_process(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.process = None;
        host.wakes_at = None;
        host.threads.clear();
        host.clients.clear();
        self.serve_runner(index);
    }

    /// A signal arrives.
    pub(super) fn signal(&mut self, index: usize, signal: i32) {
        self.log(index, || format!("receives signal {signal}"));
        let host = &mut self.hosts[index];
        if let Some(process) = &mut host.process {
            host.is_stopping |= signal != signal_hook::consts::SIGHUP;
            process.signal(signal);
            self.rouse(index);
        }
    }

    /// Replaces a line of the configuration.
    pub(super) fn configure(&mut self, index: usize, key: &str, value: &str) {
        let path = self.hosts[index].dir.join("config.toml");
        let text = fs::read_to_string(&path).unwrap();
        let others = text.lines().filter(|line| !line.starts_with(&format!("{key} =")));
        let mut lines: Vec<_> = others.map(str::to_owned).collect();
        lines.push(format!("{key} = {value}\n"));
        fs::write(path, lines.join("\n")).unwrap();
    }

    /// Holds a daemon, as SIGSTOP would.
    pub(super) fn hold(&mut self, index: usize, duration: Duration) {
        self.log(index, || format!("is held for {duration:?}"));
        let host = &mut self.hosts[index];
        host.is_held = true;
        host.wakes_at = Some(self.now + duration);
    }

    /// Something happens that the daemon can see.
    pub(super) fn rouse(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if !host.is_held {
            host.wakes_at = Some(self.now);
        }
    }

    /// Runs a daemon until it pauses.
    fn run(&mut self, index: usize) {
        let holds = self.weather.holds;
        let host = &mut self.hosts[index];
        let Some(process) = &mut host.process else { return };
        let second = self.now.since(BOOT).as_secs();
        if std::mem::replace(&mut host.second, second) != second {
            host.wakes = 0;
        }
        host.wakes += 1;
        let is_new = std::mem::take(&mut host.is_new);
        assert!(host.wakes < WAKES_MAX, "{} wakes again and again", host.node_id);
        let (now, pause) = process.run(self.now, holds);
        let threads = process.take_threads();
        let idle = threads.into_iter().map(|(name, work)| Thread { name, work, is_busy: false });
        host.threads.extend(idle);
        let was_held = std::mem::take(&mut host.is_held);
        self.now = self.now.max(now);
        let is_held = matches!(pause, Pause::Held(_));
        if was_held || is_held {
            let now = self.now;
            self.hosts[index].clients.iter_mut().for_each(|client| client.note_held(now));
        }
        let mut end = None;
        match pause {
            // What happened while it was held, it sees now.
            Pause::Asleep(_) if was_held => self.hosts[index].wakes_at = Some(self.now),
            Pause::Asleep(until) => self.hosts[index].wakes_at = until,
            Pause::Held(until) => {
                self.log(index, || format!("is held until {:?}", until.since(BOOT)));
                let host = &mut self.hosts[index];
                host.wakes_at = Some(until);
                host.is_held = true;
            }
            Pause::Ended(how) => end = Some(how),
        }
        if is_new {
            // It may have saved before it had a thread for that.
            self.hosts[index].read_disk();
        }
        self.collect(index);
        if let Some(end) = end {
            self.log(index, || format!("ends: {end:?}"));
            let host = &self.hosts[index];
            let fits = matches!(end, End::Stopped(_)) && host.is_stopping;
            assert!(fits, "{} ends: {end:?}", host.node_id);
            self.end_process(index);
        }
    }

    /// What a daemon has done: datagrams, orders for its threads, requests for runs, answers.
    fn collect(&mut self, index: usize) {
        self.take_datagrams(index);
        self.serve_runner(index);
        self.read_clients(index);
        for thread in 0..self.hosts[index].threads.len() {
            if !self.hosts[index].threads[thread].is_busy {
                self.let_work(index, thread);
            }
        }
    }

    /// A thread looks for an order after a while.
    fn let_work(&mut self, index: usize, thread: usize) {
        let host = &mut self.hosts[index];
        host.threads[thread].is_busy = true;
        let life = host.life;
        let delay = self.some_of(self.weather.disk);
        self.after(delay, move |world| world.carry_out(index, life, thread));
    }

    fn carry_out(&mut self, index: usize, life: u64, thread: usize) {
        let host = &mut self.hosts[index];
        if !host.is_in_life(life) {
            return;
        }
        let worker = &mut host.threads[thread];
        let (name, is_store) = (worker.name, worker.name == "store");
        // What is in the way of the new file keeps it from being written.
        let obstacle = host.dir.join("state/default.state.tmp");
        let refuses = host.disk_is_full && is_store && fs::create_dir(&obstacle).is_ok();
        worker.is_busy = (worker.work)(Step::CarryOut);
        let has_worked = worker.is_busy;
        if has_worked && is_store {
            host.is_unsaved = refuses;
            // What a new life saves are the terms that the last one has kept.
            host.hooks.has_lost_terms &= refuses || host.hooks.is_new_life;
            host.hooks.has_lost_terms |= refuses && !self.seen.quorum;
        }
        if refuses {
            fs::remove_dir(&obstacle).unwrap();
        }
        host.read_disk();
        if has_worked {
            self.log(index, || format!("{name}: done"));
            let delay = self.some_of(self.weather.disk / 4);
            self.after(delay, move |world| world.report(index, life, thread));
        }
    }

    fn report(&mut self, index: usize, life: u64, thread: usize) {
        let host = &mut self.hosts[index];
        if host.is_in_life(life) {
            (host.threads[thread].work)(Step::Report);
            self.rouse(index);
            // It may have another order by now.
            self.let_work(index, thread);
        }
    }

    fn take_datagrams(&mut self, index: usize) {
        for datagram in self.hosts[index].drain_ear(self.mouth_address) {
            self.datagrams += 1;
            let source = Ipv4Addr::LOCALHOST.into();
            let message = self.codec.decode(source, &datagram).unwrap().message;
            self.log(index, || format!("sends {:?} term {}", message.body, message.term));
            let host = &self.hosts[index];
            let kept = Some(&host.disk).filter(|_| self.seen.quorum || !host.is_unsaved);
            self.seen.note_sent(self.now, &message, kept);
            let datagram: Rc<[u8]> = datagram.into();
            for to in (0..self.hosts.len()).filter(|to| *to != index) {
                self.pass_on(index, to, &datagram);
            }
        }
    }

    pub(super) fn encode(&self, message: &Message) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.codec.encode(Ipv4Addr::LOCALHOST.into(), message, &mut datagram).unwrap();
        datagram
    }

    pub(super) fn pass_on(&mut self, from: usize, to: usize, datagram: &Rc<[u8]>) {
        if self.cuts.contains(&(from, to)) || self.rng.f64() < self.weather.loss {
            return;
        }
        let copies = if self.rng.f64() < self.weather.duplication { 2 } else { 1 };
        for _ in 0..copies {
            let delay = Duration::from_micros(50) + self.some_of(self.weather.delay);
            let datagram = Rc::clone(datagram);
            self.after(delay, move |world| world.deliver(to, &datagram));
        }
    }

    fn deliver(&mut self, to: usize, datagram: &[u8]) {
        if self.hosts[to].process.is_some() {
            self.mouth.send_to(datagram, (GROUP, port(to))).unwrap();
            self.hosts[to].drain_ear(self.mouth_address);
            self.rouse(to);
        }
    }

    /// Starts the runs that the daemon has requested, and ends those that it wants to end.
    fn serve_runner(&mut self, index: usize) {
        for progress in self.hosts[index].runner.serve(self.now) {
            self.log(index, || format!("{progress:?}"));
            match progress {
                Progress::Requested(task) => self.note_leadership(index, &task, "takes over"),
                Progress::Began(ticket, task) => self.begin_run(index, ticket, &task),
                Progress::CutShort(ticket, within) => {
                    let takes = self.some_of(within.min(Duration::from_millis(100)));
                    self.after(takes, move |world| world.end_run(index, ticket, false));
                }
            }
        }
    }

    /// A hook that has the role of a leader shows a leadership.
    fn note_leadership(&mut self, index: usize, task: &Task, how: &str) {
        match task {
            Task::Hook(run) if run.role == Role::Leader => {
                self.seen.note_leader(self.now, self.hosts[index].node_id, run.term, how);
            }
            _ => {}
        }
    }

    fn begin_run(&mut self, index: usize, ticket: Ticket, task: &Task) {
        self.note_leadership(index, task, "begins to lead");
        let host = &mut self.hosts[index];
        if let Task::Hook(run) = task {
            Guarantees::note_hook(host.node_id, run, &mut host.hooks);
        }
        let is_check = task.lane().is_check();
        let succeeds = match is_check {
            true => host.is_healthy,
            false => self.rng.f64() >= self.weather.hook_fails,
        };
        let longest = if is_check { self.weather.hook / 8 } else { self.weather.hook };
        let takes = self.some_of(longest);
        self.after(takes, move |world| world.end_run(index, ticket, succeeds));
        self.rouse(index);
    }

    fn end_run(&mut self, index: usize, ticket: Ticket, succeeds: bool) {
        let now = self.now;
        if let Some(task) = self.hosts[index].runner.end(ticket, succeeds, now) {
            self.log(index, || format!("{task} ends: {succeeds}"));
            if matches!(task, Task::Hook(_)) {
                self.hosts[index].hooks.succeeded = succeeds;
            }
            self.serve_runner(index);
            self.rouse(index);
        }
    }
}
