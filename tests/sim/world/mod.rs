//! A deterministic world: virtual time, hosts with drifting clocks and disks, and a network, all
//! driving the very core that the daemon drives, over the very bytes that it sends.
//!
//! `host` is what a machine is, `daemon` what its daemon does, `disk` how it saves, `hooks` how
//! its hooks run, `network` who hears whom, `keys` what is on the wire, `attacker` what somebody
//! without the key puts there. A world does not judge: its [`Watch`] does.

mod archive;
pub mod attacker;
pub mod broken;
mod daemon;
mod disk;
pub mod host;
pub mod keys;
pub mod network;
mod scripts;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fastrand::Rng;
use lanelect::core::params::Params;
use lanelect::types::{NodeId, Term};

use crate::watch::{Violation, Watch};
use archive::{Archive, Kept};
use broken::Broken;
pub use host::{Clock, DiskFault, FenceHabit, HookHabit, Host};
use keys::Wire;
use network::Network;

#[derive(Debug, Clone)]
enum Action {
    Deliver { to: usize, kept: Kept, came: Came },
    Wake { host: usize, life: u64 },
    HookEnds { host: usize, number: u64 },
    PostStopEnds { host: usize, number: u64 },
    FenceEnds { host: usize, life: u64 },
    Written { host: usize, life: u64 },
    TellKept { host: usize, life: u64 },
    WriteAgain { host: usize, life: u64 },
    DiskWorks { host: usize, fault: u64 },
    Start { host: usize, life: u64 },
    Resume { host: usize, life: u64 },
    Kill { host: usize, life: u64 },
}

/// How a datagram came to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// As the first copy of it.
    First,
    /// As a duplicate.
    Again,
    /// As somebody has kept it.
    Replayed,
    /// As somebody without the key has made it up.
    Forged,
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
    /// Disks forget terms.
    ForgetPersisted,
    /// The end of a hook is reported before its time, while it still runs.
    ReportHooksEarly,
    /// A stopped node goes on talking.
    SpeakAfterStop,
    /// A write is reported before it is done.
    ReportWritesEarly,
    /// A leader that was held sends what it was about to, without another look at the clock.
    SendDeadDeclarations,
}

impl Sabotage {
    /// What the checkers of available mode must notice.
    pub const OF_AVAILABLE_MODE: [Sabotage; 4] = [
        Sabotage::IgnoreBetterLeaders,
        Sabotage::ForgetPersisted,
        Sabotage::ReportHooksEarly,
        Sabotage::SpeakAfterStop,
    ];

    /// What those of quorum mode must notice.
    pub const OF_QUORUM_MODE: [Sabotage; 5] = [
        Sabotage::ForgetPersisted,
        Sabotage::ReportHooksEarly,
        Sabotage::SpeakAfterStop,
        Sabotage::ReportWritesEarly,
        Sabotage::SendDeadDeclarations,
    ];
}

/// Daemons that are held in the middle of what they do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hiccups {
    /// Probability that it happens before an output is carried out.
    pub chance: f64,
    /// For how long at the most, in true nanoseconds.
    pub longest: u64,
}

/// What sees to it that hooks let go where the daemon cannot. Times are by the host's own clock
/// where nothing else is said, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    /// A daemon that is held for so long is killed.
    pub watchdog: u64,
    /// Whatever happens, the hooks have let go so long after the lease.
    pub grace: Duration,
    /// The least true time between two holds of one daemon.
    pub between_holds: u64,
}

/// The whole simulation.
pub struct World<W> {
    /// True time, in nanoseconds.
    pub now: u64,
    pub hosts: Vec<Host>,
    pub network: Network,
    pub watch: W,
    pub rng: Rng,
    /// Prints everything that happens.
    pub trace: bool,
    pub sabotage: Option<Sabotage>,
    pub hiccups: Hiccups,
    /// None where nothing guards the hooks.
    pub guard: Option<Guard>,
    /// Members whose daemons are broken: what they tell of terms is not what they know.
    pub broken: Vec<Broken>,
    /// The highest term that any datagram has told.
    highest_told: Term,
    /// Probability that `post-stop` runs after a crash.
    pub post_stop: f64,
    /// Datagrams sent so far.
    pub sent: u64,
    /// Datagrams that were sent before, to come again.
    archive: Archive,
    /// Whether they are kept.
    pub keeps_datagrams: bool,
    /// For how long a host may believe a silent one to be there at most, in nanoseconds of its own
    /// time. After that, what is replayed must mean nothing to it.
    pub gone_after: u64,
    wire: Wire,
    /// How many of the hosts are the group's: the first ones.
    pub group: usize,
    queue: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
}

impl<W: Watch> World<W> {
    /// Hosts that are switched off, one for each of `settings`.
    pub fn new(seed: u64, settings: Vec<(Params, HookHabit)>, drift_ppb: i64, watch: W) -> Self {
        let mut rng = Rng::with_seed(seed);
        let have_peers: Vec<_> = settings.iter().map(|(params, _)| params.unicast).collect();
        let network = Network::new(&mut rng, &have_peers);
        let modes: Vec<_> = settings.iter().map(|(params, _)| params.key_mode).collect();
        let gone_after = settings.iter().map(|(params, _)| gone_after(params, settings.len()));
        let gone_after = gone_after.max().unwrap_or(0);
        let hosts: Vec<_> = settings
            .into_iter()
            .enumerate()
            .map(|(index, (params, hooks))| {
                let offset = rng.u64(1_000_000_000..1_000_000_000_000);
                let clock = Clock { offset, drift: rng.i64(-drift_ppb..=drift_ppb) };
                Host::new(node_id(index), params, hooks, clock)
            })
            .collect();
        World {
            now: 0,
            watch,
            hosts,
            network,
            rng,
            trace: false,
            sabotage: None,
            hiccups: Hiccups::default(),
            guard: None,
            broken: Vec::new(),
            highest_told: Term(0),
            post_stop: 0.0,
            sent: 0,
            archive: Archive::default(),
            keeps_datagrams: true,
            gone_after,
            wire: Wire::new(&modes),
            group: modes.len(),
            queue: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    /// Runs until `end`, checking at every step.
    pub fn run_until(&mut self, end: u64) -> Result<(), Violation> {
        while self.queue.peek().is_some_and(|Reverse(next)| next.at <= end) {
            let Some(Reverse(Scheduled { at, action, .. })) = self.queue.pop() else { break };
            self.now = at;
            self.perform(action)?;
            self.watch.check_step(self.now, &self.hosts, &self.network)?;
        }
        self.now = end;
        self.watch.check_step(self.now, &self.hosts, &self.network)
    }

    /// Runs for `duration` nanoseconds.
    pub fn run_for(&mut self, duration: u64) -> Result<(), Violation> {
        self.run_until(self.now + duration)
    }

    /// Takes a host's interface down or brings it up, and tells its daemon.
    pub fn plug(&mut self, index: usize, up: bool) -> Result<(), Violation> {
        self.network.set_unplugged(index, !up);
        self.watch.disturb(self.now);
        let what = if up { "is plugged in" } else { "is unplugged" };
        self.command(index, what, |election, now| {
            if !up {
                election.handle_address_lost(now);
            }
            election.handle_links(now, up);
        })
    }

    /// The host's checks fail, or pass, as often as it takes. While it is held nothing is
    /// checked.
    pub fn set_health(&mut self, index: usize, healthy: bool) -> Result<(), Violation> {
        if self.hosts[index].held.is_some() {
            return Ok(());
        }
        self.hosts[index].healthy = healthy;
        let what = if healthy { "is healthy" } else { "is sick" };
        self.command(index, what, |election, now| {
            let thresholds = election.params().check.unwrap_or_default();
            for _ in 0..thresholds.fall.max(thresholds.rise) {
                election.handle_check(now, healthy);
            }
            let thresholds = election.params().check_leader.unwrap_or_default();
            for _ in 0..thresholds.fall.max(thresholds.rise) {
                election.handle_leader_check(now, healthy);
            }
        })
    }

    /// How long it takes until nobody is held off any more, and nobody waits to claim the
    /// leadership again, if nothing fails from now on.
    pub fn longest_holdoff(&self) -> u64 {
        let holdoff = |host: &Host| {
            let status = host.election.as_ref()?.status(host.local(self.now));
            let holdoff = host.clock.span(nanos(status.holdoff.unwrap_or_default()));
            Some(holdoff.max(host.claims_again_at.saturating_sub(self.now)))
        };
        self.hosts.iter().filter_map(holdoff).max().unwrap_or_default()
    }

    /// A datagram that was sent at least `age` ago arrives at every host, each at its own time.
    pub fn replay(&mut self, age: u64, latest: u64) {
        let latest_sent = self.now.saturating_sub(age);
        let Some(kept) = self.archive.choose(&mut self.rng, latest_sent) else { return };
        for to in (0..self.hosts.len()).filter(|to| *to != kept.from) {
            let delay = self.rng.u64(0..=latest);
            let (kept, came) = (kept.clone(), Came::Replayed);
            self.schedule(delay, Action::Deliver { to, kept, came });
        }
    }

    /// A part of what one life of `from` has said comes again, in its order: to `to`, or to every
    /// host.
    pub fn replay_passage(&mut self, from: usize, to: Option<usize>, within: u64) {
        let passage = self.archive.passage(&mut self.rng, from);
        let begin = self.rng.u64(0..=within);
        let step = self.rng.u64(0..=within) / (passage.len() as u64 + 1);
        self.log(from, || format!("is heard again, by {to:?}: {} datagrams", passage.len()));
        for host in (0..self.hosts.len()).filter(|host| to.is_none_or(|to| to == *host)) {
            for (place, kept) in passage.iter().enumerate().filter(|_| host != from) {
                let (kept, came) = (kept.clone(), Came::Replayed);
                self.schedule(
                    begin + step * place as u64,
                    Action::Deliver { to: host, kept, came },
                );
            }
        }
    }

    /// Loses what has not arrived by so many nanoseconds from now.
    pub fn lose_stragglers(&mut self, after: u64) {
        let latest = self.now + after;
        self.queue.retain(|Reverse(scheduled)| {
            scheduled.at <= latest || !matches!(scheduled.action, Action::Deliver { .. })
        });
    }

    /// Loses what was forged or sent again, and has not been taken in.
    pub(super) fn lose_attacks(&mut self) {
        let is_attack = |came: Came| matches!(came, Came::Forged | Came::Replayed);
        self.queue.retain(|Reverse(scheduled)| match scheduled.action {
            Action::Deliver { came, .. } => !is_attack(came),
            _ => true,
        });
        for held in self.hosts.iter_mut().filter_map(|host| host.held.as_mut()) {
            held.inbox.retain(|(_, came)| !is_attack(*came));
        }
    }

    fn perform(&mut self, action: Action) -> Result<(), Violation> {
        let lives = |host: usize, life: u64| self.hosts[host].life == life;
        match action {
            Action::Deliver { to, kept, came } => self.deliver(to, kept, came),
            Action::Wake { host, life } => {
                let current = lives(host, life) && self.hosts[host].wake_at == self.now;
                if current { self.wake(host) } else { Ok(()) }
            }
            Action::HookEnds { host, number } => self.end_hook(host, number),
            Action::PostStopEnds { host, number } => self.end_post_stop(host, number),
            Action::FenceEnds { host, life } if lives(host, life) => self.end_fence(host),
            Action::Written { host, life } if lives(host, life) => self.finish_write(host),
            Action::TellKept { host, life } if lives(host, life) => self.tell_kept(host),
            Action::WriteAgain { host, life } if lives(host, life) => {
                self.write_next(host);
                Ok(())
            }
            Action::DiskWorks { host, fault } => {
                self.end_disk_fault(host, fault);
                Ok(())
            }
            Action::Start { host, life } if lives(host, life) => {
                if self.hosts[host].is_alive() {
                    Ok(())
                } else {
                    self.start(host)
                }
            }
            Action::Resume { host, life } if lives(host, life) && self.is_released(host) => {
                self.resume(host)
            }
            Action::Kill { host, life } if lives(host, life) && self.is_released(host) => {
                self.crash(host)
            }
            Action::FenceEnds { .. }
            | Action::Written { .. }
            | Action::TellKept { .. }
            | Action::WriteAgain { .. }
            | Action::Start { .. }
            | Action::Resume { .. }
            | Action::Kill { .. } => Ok(()),
        }
    }

    fn is_released(&self, index: usize) -> bool {
        !self.hosts[index].is_up() && self.hosts[index].released_at == self.now
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
            println!("{millis:>14.3} ms  {:<5} {}", self.label(index), what());
        }
    }

    /// What a host is called in messages: its id, with a mark where an earlier host has that too.
    pub fn label(&self, index: usize) -> String {
        label(&self.hosts, index)
    }
}

/// What a host is called in messages: its id, with a mark where an earlier host has that too.
pub fn label(hosts: &[Host], index: usize) -> String {
    let id = hosts[index].node_id;
    let is_clone = hosts[..index].iter().any(|other| other.node_id == id);
    format!("{id}{}", if is_clone { "'" } else { "" })
}

/// The hosts' ids: `n0`, `n1`, …, so that byte order is the order of their indices.
pub fn node_id(index: usize) -> NodeId {
    format!("n{index:05}").parse().expect("a valid name")
}

/// For how long others believe that a host is there after it has fallen silent, in nanoseconds:
/// twice its patience, which is two and a half of the intervals that it announces, and until their
/// next look at their members. The intervals are longer by unicast and in a large group.
fn gone_after(params: &Params, hosts: usize) -> u64 {
    let interval = params.report_interval(hosts).max(params.heartbeat_interval) * 11 / 10;
    let silence = (interval * 5).max(params.leader_alive_threshold * 2);
    nanos(silence + silence)
}

/// Durations of the core in the simulator's unit.
pub const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// A clock that runs 1 % slow makes everything take 1 % longer.
pub const fn slow(nanos: u64) -> u64 {
    nanos * 102 / 100
}

fn address(index: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + index as u32).into()
}
