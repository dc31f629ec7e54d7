//! `lanelect post-stop`: what a daemon that was killed cannot do itself.
//!
//! systemd runs it after every end of the daemon (`ExecStopPost=`). One that ended in an orderly
//! way left no crash plan, and nothing is done. After a leader that was killed, ran out of memory
//! or hung, the demote hook runs, and then the resignation is sent in its name, so that its
//! successor takes over within milliseconds instead of after a time-out. It goes by the
//! configuration that the daemon ran by.
//!
//! The daemon's disk may hang, and a thread of the daemon that waits for it does not end on
//! SIGKILL. So nothing here waits for `state_dir`, and such a daemon counts as dead: none of its
//! threads ever runs again.

use std::env;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use signal_hook::consts::SIGCHLD;
use signal_hook_mio::v1_0::Signals;

use super::crash_plan::{CrashPlanFile, Left};
use super::event_loop::holds::longest_hold;
use super::store::{Store, StoreError};
use super::transport::{RescanError, Settings, Transport, TransportError};
use super::worker::{self, Results};
use crate::config::keys::KeyFileError;
use crate::config::{Config, ConfigError, ConfigSource};
use crate::core::fencing::pause_before_fencing_again;
use crate::core::hook::{HookOutcome, HookRun};
use crate::hooks::group::KILL_GRACE;
use crate::hooks::{HookNode, HookSettings, Hooks, Lane, Lanes, Task};
use crate::os::clock;
use crate::os::notify::Notifier;
use crate::os::polling;
use crate::os::process::is_headless;
use crate::os::socket_file::has_listener;
use crate::time::Time;
use crate::wire::frame::Codec;
use crate::wire::message::Message;

/// How long the lock may take. A disk that hangs must not keep the demote hook waiting.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);

/// Time between two looks whether commands have ended.
const HOLDERS_LOOK: Duration = Duration::from_millis(10);

/// Pause before the demote hook runs again.
const DEMOTE_RETRY: Duration = Duration::from_secs(1);

const SIGNALS: Token = Token(0);
const HOOKS: Lanes<Token> = Lanes([Token(1), Token(2), Token(3), Token(4)]);
const TRANSPORT: Token = Token(5);

/// Why a dead daemon was not, or not wholly, cleaned up after.
#[derive(Debug, thiserror::Error)]
pub enum PostStopError {
    /// The configuration does not hold.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The daemon lives.
    #[error(
        "cannot clean up, because the daemon still runs: {0}. A daemon that runs gives up its own \
         leadership (`lanelect yield`, or stop it); post-stop is only for one that died"
    )]
    Running(String),
    /// What the daemon left cannot be read.
    #[error(
        "cannot read the crash plan {path}: {source}; the demote hook was not run; post-stop has \
         to run as the daemon's user"
    )]
    CrashPlan {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The hook could not be waited for.
    #[error("cannot wait for the demote hook: {0}")]
    Wait(#[from] io::Error),
    /// No resignation was sent.
    #[error(
        "cannot resign for the daemon that ended: {0}; another node takes over after a time-out"
    )]
    Resignation(#[from] ResignationError),
    /// The hooks may still hold what the leader holds.
    #[error(
        "did not resign for the daemon that ended: neither the demote hook nor the fence command \
         succeeded; the voters wait until the lease and demote_grace are over"
    )]
    NotLetGo,
    /// In available mode, the hook may still hold what the leader holds.
    #[error(
        "resigned for the daemon that ended, although its demote hook did not succeed: this host \
         may still hold what the leader holds; see the hook's log, and release it by hand, or \
         start the daemon, whose hook for started should release it"
    )]
    NotDemoted,
    /// The crash plan was carried out, and is still there.
    #[error(
        "carried out the crash plan {path}, but cannot remove it: {source}; remove the file, or \
         the next post-stop carries it out again"
    )]
    PlanRemains {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why a resignation could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum ResignationError {
    /// The keys cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// The group cannot be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The interfaces cannot be read.
    #[error(transparent)]
    Rescan(#[from] RescanError),
    /// Nothing can be sent now.
    #[error("no interface can reach the group, and no peer can be sent to")]
    Unreachable,
}

impl PostStopError {
    /// Whether it is the configuration that has to change.
    pub fn is_config(&self) -> bool {
        matches!(self, PostStopError::Config(error) if !error.is_passing())
    }
}

/// Carries out the crash plan of a daemon that died, where it left one.
///
/// # Errors
///
/// If the daemon still runs, or a step failed.
pub fn run(source: &ConfigSource) -> Result<(), PostStopError> {
    let began = clock::now();
    let file = CrashPlanFile::find(source)?;
    let unreadable = |source| PostStopError::CrashPlan { path: file.path().to_owned(), source };
    let Some(left) = file.read().map_err(unreadable)? else {
        log::debug!("nothing to do: the daemon left no crash plan");
        return Ok(());
    };
    let plan = &left.plan;
    let mut notifier = take_time(&left, began);
    let opening = begin_to_lock(&left.config)?;
    let _held = keep_daemons_away(&opening, &left)?;
    await_holders(&left, &mut notifier)?;
    let is_released = match &plan.hook {
        Some(run) => release(&left, run, began, notifier)?,
        None => true,
    };
    // In quorum mode a resignation frees the voters from what keeps two nodes' hooks apart.
    if !is_released && plan.grace.is_some() {
        return Err(PostStopError::NotLetGo);
    }
    match &plan.resignation {
        Some(resignation) => resign(&left, resignation)?,
        None => log::info!("not resigning: a copy of the daemon that ended runs, and may lead"),
    }
    // A daemon that starts removes it too.
    let remains = |source| PostStopError::PlanRemains { path: file.path().to_owned(), source };
    file.remove().map_err(remains)?;
    if is_released { Ok(()) } else { Err(PostStopError::NotDemoted) }
}

/// Requests the time that all of it may take from the service manager, before anything is waited
/// for: in quorum mode the hook has the grace, and the fence command one run after that.
fn take_time(left: &Left, began: Time) -> Notifier {
    let Left { plan, config, .. } = left;
    let runs = HookSettings::from(config).longest_stop();
    let longest = LOCK_PATIENCE + longest_hold(&config.election) + plan.grace.unwrap_or_default();
    let mut notifier = Notifier::from_environment();
    notifier.extend_stop(began + longest + runs, began);
    notifier
}

/// Takes the daemon's own lock, so that none starts meanwhile, on a thread: the disk may hang.
fn begin_to_lock(config: &Config) -> io::Result<Results<Result<Store, StoreError>>> {
    let (dir, group) = (config.state_dir.clone(), config.group);
    let open = move |()| Store::open(&dir, group).map(|(store, _)| store);
    let (orders, results) = worker::start("store", open, || ())?;
    orders.send(()).map_err(io::Error::other)?;
    Ok(results)
}

/// Returns the lock; none where it cannot be had although the daemon is dead. A lock that comes
/// later is kept in `opening`. Where the state cannot be used for another reason than that a daemon
/// runs, no daemon can use it either.
fn keep_daemons_away(
    opening: &Results<Result<Store, StoreError>>,
    left: &Left,
) -> Result<Option<Store>, PostStopError> {
    let Config { state_dir, socket, .. } = &left.config;
    // The lock says nothing if the disk hangs, or the state directory was removed.
    if has_listener(socket).unwrap_or(false) && !cannot_end(left.process) {
        let why = format!("it listens on its control socket {}", socket.display());
        return Err(PostStopError::Running(why));
    }
    match opening.recv_timeout(LOCK_PATIENCE) {
        Ok(Ok(store)) => return Ok(Some(store)),
        Ok(Err(locked @ StoreError::Locked { holder, .. })) => {
            // A daemon that finds its disk full or read-only does not write its number there.
            let is_dead = holder.is_some_and(cannot_end) || cannot_end(left.process);
            if !is_dead {
                return Err(PostStopError::Running(locked.to_string()));
            }
            log::warn!("the daemon was killed, but cannot end, and keeps its lock: {locked}");
        }
        Ok(Err(error)) => log::warn!("{error}"),
        Err(_) => log::warn!(
            "the state directory {} does not respond: continuing without its lock",
            state_dir.display()
        ),
    }
    Ok(None)
}

/// Whether the daemon was killed, and only waits in the kernel. Then its first thread has ended. If
/// that one waits too, or is hidden from this process, systemd tells: it runs post-stop beside the
/// main process only after SIGKILL was in vain, unless the unit says that nothing is to be killed.
fn cannot_end(process: u32) -> bool {
    let given_up = env::var_os("SERVICE_RESULT").and_then(|_| env::var("MAINPID").ok());
    given_up == Some(process.to_string()) || is_headless(process)
}

/// The commands of `lanelect exec` end when their daemon has died. The hook releases nothing, and
/// no other node leads, before they have ended, or can be expected to.
fn await_holders(left: &Left, notifier: &mut Notifier) -> io::Result<()> {
    // The number is not used again within so short a time. Another user's process is there too.
    let lives = |pid: &&i32| kill(Pid::from_raw(**pid), None) != Err(Errno::ESRCH);
    let end = clock::now() + longest_hold(&left.config.election);
    let mut poll = Poll::new()?;
    while left.holders.iter().filter(|pid| **pid > 0).any(|pid| lives(&pid)) {
        if clock::now() >= end {
            log::error!("commands of `lanelect exec` have not ended: continuing without");
            break;
        }
        polling::wait(&mut poll, &mut Events::with_capacity(1), Some(HOLDERS_LOOK))?;
        notifier.handle_timeout(clock::now());
    }
    Ok(())
}

/// Runs the demote hook; returns whether this host has released what the leader holds. In quorum
/// mode the hook runs again until it succeeds. When the grace is over, the fence command runs too.
fn release(
    left: &Left,
    run: &HookRun,
    began: Time,
    notifier: Notifier,
) -> Result<bool, PostStopError> {
    let plan = &left.plan;
    log::warn!("the daemon's hook has not released term {}: running the demote hook", run.term);
    let mut cleaner = Cleaner::new(left, notifier)?;
    let Some(grace) = plan.grace else {
        return Ok(cleaner.run(run, None)? == Some(HookOutcome::Succeeded));
    };
    let anew = began + grace;
    let grace_end = plan.grace_end.unwrap_or(anew).min(anew);
    // What runs still, from before, leaves half of the grace to the demote hook. Later it is killed
    // at once, as by the daemon: another node may lead when the grace is over.
    cleaner.orphan_end = began + grace_end.since(began) / 2;
    // What the daemon's life has used of it is missing only where something follows at its end.
    let limit = if cleaner.has_fence { grace_end } else { anew };
    if cleaner.demote(run, limit)? {
        return Ok(true);
    }
    log::error!("the demote hook did not succeed within demote_grace");
    cleaner.fence(run)
}

/// Runs hooks as a daemon does, and waits for them.
struct Cleaner {
    poll: Poll,
    signals: Signals,
    hooks: Hooks,
    /// The demote hook was started, and its end was not reported.
    is_demoting: bool,
    /// When a hook that the daemon left running gets SIGKILL.
    orphan_end: Time,
    has_fence: bool,
    notifier: Notifier,
}

impl Cleaner {
    fn new(left: &Left, notifier: Notifier) -> io::Result<Self> {
        let Left { config, interfaces, .. } = left;
        let poll = Poll::new()?;
        let mut signals = Signals::new([SIGCHLD])?;
        poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        let node = HookNode {
            node_id: config.node_id,
            group: config.group,
            interfaces: interfaces.clone(),
        };
        let hooks = Hooks::configured(config, node, poll.registry(), HOOKS, None, clock::now())?;
        Ok(Cleaner {
            poll,
            signals,
            hooks,
            is_demoting: false,
            orphan_end: clock::now() + KILL_GRACE,
            has_fence: config.fence.is_some(),
            notifier,
        })
    }

    /// Runs the demote hook again and again until `limit`, and at least once: it may release at any
    /// time. Only a fence command does not wait for the end of a run. Returns whether it succeeded.
    fn demote(&mut self, run: &HookRun, limit: Time) -> io::Result<bool> {
        let run_limit = self.has_fence.then_some(limit);
        loop {
            if self.run(run, run_limit)? == Some(HookOutcome::Succeeded) {
                return Ok(true);
            }
            self.pass(limit.min(clock::now() + DEMOTE_RETRY))?;
            if clock::now() >= limit {
                return Ok(false);
            }
        }
    }

    /// Runs the hook, unless it still runs, and waits for its end, until `limit` at the longest.
    fn run(&mut self, run: &HookRun, limit: Option<Time>) -> io::Result<Option<HookOutcome>> {
        if !self.is_demoting {
            let now = clock::now();
            self.hooks.start(Task::Hook(*run), self.orphan_end.since(now), now);
        }
        self.is_demoting = true;
        loop {
            if let Some(finished) = self.hooks.poll_finished(Lane::Hook) {
                self.is_demoting = false;
                return Ok(Some(finished.outcome));
            }
            if limit.is_some_and(|limit| limit <= clock::now()) {
                return Ok(None);
            }
            self.turn(limit)?;
        }
    }

    /// Runs the fence command and, in the pauses, the demote hook, until one of them succeeds;
    /// systemd ends this process when that takes too long. Returns whether one did.
    fn fence(&mut self, run: &HookRun) -> Result<bool, PostStopError> {
        let mut failures = 0;
        loop {
            self.hooks.start(Task::Fence { term: run.term }, KILL_GRACE, clock::now());
            let finished = loop {
                match self.hooks.poll_finished(Lane::Fence) {
                    Some(finished) => break finished,
                    None => self.turn(None)?,
                }
            };
            let is_fenced = finished.outcome == HookOutcome::Succeeded;
            if is_fenced || !self.has_fence {
                return Ok(is_fenced);
            }
            let pause = pause_before_fencing_again(failures);
            if self.demote(run, clock::now() + pause)? {
                return Ok(true);
            }
            failures += 1;
        }
    }

    /// Lets time pass.
    fn pass(&mut self, until: Time) -> io::Result<()> {
        while clock::now() < until {
            self.turn(Some(until))?;
        }
        Ok(())
    }

    fn turn(&mut self, limit: Option<Time>) -> io::Result<()> {
        let mut events = Events::with_capacity(8);
        let deadlines = [self.hooks.poll_timeout(), self.notifier.poll_timeout(), limit];
        let deadline = deadlines.into_iter().flatten().min();
        let wait: Option<Duration> = deadline.map(|deadline| deadline.since(clock::now()));
        polling::wait(&mut self.poll, &mut events, wait)?;
        for event in &events {
            match event.token() {
                SIGNALS => {
                    self.signals.pending().for_each(drop);
                    self.hooks.handle_child_signal(clock::now());
                }
                token => {
                    if let Some(lane) = HOOKS.lane_of(&token) {
                        self.hooks.handle_socket(lane, clock::now());
                    }
                }
            }
        }
        self.hooks.handle_timeout(clock::now());
        self.notifier.handle_timeout(clock::now());
        Ok(())
    }
}

/// Sends the daemon's last datagram.
fn resign(left: &Left, resignation: &Message) -> Result<(), ResignationError> {
    let config = &left.config;
    let keyring = config.keyring()?;
    let codec = Codec::new(config.group, keyring);
    let poll = Poll::new().map_err(TransportError::Registry)?;
    let settings = Settings { sends_only: true, ..Settings::of(config, None) };
    let mut transport = Transport::new(poll.registry(), TRANSPORT, settings)?;
    for (peer, addresses) in left.peers.iter().enumerate() {
        transport.resolve(peer, Ok(addresses.clone()));
    }
    transport.rescan(clock::now(), false)?;
    let write = |source, datagram: &mut _| codec.encode(source, resignation, datagram).is_ok();
    transport.send(None, write, || true);
    if transport.sent() == 0 {
        return Err(ResignationError::Unreachable);
    }
    log::info!("resigned for the daemon that ended, in term {}", resignation.term);
    Ok(())
}
