//! Creates the daemon. Settings that cannot work are rejected here, before the daemon sends or runs
//! anything.

use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;

use mio::{Interest, Poll, Waker};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use super::checks::Checks;
use super::holds::Holds;
use super::reload::{Order, Reloads};
use super::{
    AGREEMENT, ALARM, CONTROL, Daemon, HOOKS, KEY_MODE_REMINDER, SIGNALS, THREADS, TRANSPORT,
    rescan,
};
use crate::config::{Config, ConfigSource};
use crate::control_api::ConfigReport;
use crate::core::Election;
use crate::core::election::Setup;
use crate::core::persist::PersistentState;
use crate::daemon::RunError;
use crate::daemon::control::{Access, ControlServer};
use crate::daemon::crash_plan::CrashPlanFile;
use crate::daemon::names::Names;
use crate::daemon::narration::Narration;
use crate::daemon::rejections::Rejections;
use crate::daemon::store::{OnFailure, SAVE_LIMIT, Store, Writer};
use crate::daemon::transport::{Settings, Transport};
use crate::hooks::{HookNode, Hooks};
use crate::os::clock::{self, Alarm};
use crate::os::notify::Notifier;
use crate::types::{Incarnation, Life};
use crate::wire::auth::Keyring;
use crate::wire::frame::Codec;

impl Daemon {
    pub(in crate::daemon) fn new(
        source: ConfigSource,
        config: Config,
        keyring: Option<Keyring>,
    ) -> Result<Self, RunError> {
        let watched = report_silence(&config.state_dir);
        let (mut store, persisted) = Store::open(&config.state_dir, config.group)?;
        // Not before the lock: an earlier daemon may have acknowledged a leader until it released
        // the lock, and the promise that this node restores lasts from this time on.
        let now = clock::now();
        let (life, seed) = next_life(persisted.unwrap_or_default())?;
        let on_disk = save_first(&mut store, &config, life)?;
        drop(watched);
        let poll = Poll::new()?;
        let registry = poll.registry();
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD])?;
        registry.register(&mut signals, SIGNALS, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(registry, THREADS)?);
        // Nothing waits for a slow directory yet.
        let access = Access::resolve(config.socket_group.as_deref())?;
        let control = ControlServer::bind(&config.socket, access, registry, CONTROL)?;
        let codec = Codec::new(config.group, keyring);
        let this = Life { node_id: config.node_id, incarnation: life.incarnation };
        let settings = Settings::of(&config, codec.mark(this).ok());
        let mut transport = Transport::new(registry, TRANSPORT, settings)?;
        rescan(&mut transport, now, false)?;
        let setup = Setup {
            node_id: config.node_id,
            incarnation: life.incarnation,
            persisted: life,
            params: config.election.clone(),
            links_up: transport.any_up(),
            seed,
        };
        let node = HookNode {
            node_id: config.node_id,
            group: config.group,
            interfaces: config.interfaces.clone(),
        };
        let hooks = Hooks::configured(&config, node, registry, HOOKS, Some(AGREEMENT), now)?;
        let mut election = Election::new(setup, now);
        election.handle_hook_runner(now, !hooks.needs_agreement());
        let mut plan = CrashPlanFile::of(&source, &config);
        // A plan of an earlier life is void: the hook for `started` releases what its hooks hold.
        plan.keep(None, &config, &[], &[], &[]);
        let notifier = Notifier::from_environment();
        Ok(Daemon {
            alarm: Alarm::new(registry, ALARM)?,
            hooks,
            checks: Checks::new(&config, now),
            holds: Holds::default(),
            writer: writer(store, &config, &waker, on_disk)?,
            names: Names::start(&config.peers, now, waking(&waker))?,
            reloads: Reloads::start(Order::carry_out, waking(&waker))?,
            config_report: config_report(&source, &config),
            election,
            plan,
            codec,
            narration: Narration::new(config.node_id, now),
            rejections: Rejections::default(),
            duplicate: None,
            watchdog_due: notifier.watchdog_interval().map(|interval| now + interval),
            notifier,
            replies: Default::default(),
            transport,
            control,
            signals,
            poll,
            config,
            source,
            warn_of_key_mode_at: now + KEY_MODE_REMINDER,
            received: 0,
            extended: 0,
            transitions: 0,
            fences: 0,
            started_at: now,
            is_stopping: false,
            is_impatient: false,
            stopped: None,
        })
    }

    /// The state of the config file before it was read: [`ConfigSource::changed_ms`].
    pub(in crate::daemon) fn note_file(&mut self, changed_ms: Option<u64>) {
        self.config_report.changed_ms = changed_ms;
    }
}

fn config_report(source: &ConfigSource, config: &Config) -> ConfigReport {
    let text = |path: &PathBuf| {
        path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
    };
    ConfigReport {
        file: source.file.as_ref().map(text),
        read_ms: clock::wall_ms(),
        state_dir: text(&config.state_dir),
        hook_socket: config.hook_socket.as_ref().map(text),
        ..ConfigReport::default()
    }
}

/// The initial state of this life, with its own incarnation, and its random seed.
fn next_life(persisted: PersistentState) -> Result<(PersistentState, u64), RunError> {
    let seed = draw_seed()?;
    let incarnation = next_incarnation(persisted.incarnation, seed);
    Ok((PersistentState { incarnation, ..persisted }, seed))
}

#[expect(clippy::disallowed_methods, reason = "the seed that the election runs by is drawn here")]
fn draw_seed() -> io::Result<u64> {
    #[cfg(test)]
    if let Some(stage) = crate::os::simulated::stage() {
        return Ok(stage.draw());
    }
    getrandom::u64().map_err(io::Error::other)
}

/// Higher than in every earlier life of this daemon. This also holds if the state was lost, unless
/// the wall clock jumped back meanwhile. The seed distinguishes hosts that are clones of one image.
fn next_incarnation(last: Incarnation, seed: u64) -> Incarnation {
    let micros = clock::wall_ms().saturating_mul(1000) + seed % 1000;
    Incarnation(micros.max(last.0.saturating_add(1)))
}

/// Logs that the disk does not answer, unless the result is dropped in time. Nothing else would say
/// so before the service manager ends a daemon that does not start.
fn report_silence(state_dir: &Path) -> Sender<()> {
    let (watched, is_over) = mpsc::channel::<()>();
    let directory = state_dir.to_owned();
    let watch = move || {
        if is_over.recv_timeout(SAVE_LIMIT) == Err(RecvTimeoutError::Timeout) {
            let directory = directory.display();
            log::error!("waiting for the state directory {directory}: its disk does not answer");
        }
    };
    // Without a thread the daemon only waits in silence.
    let _ = thread::Builder::new().name("disk-watch".to_owned()).spawn(watch);
    watched
}

/// In quorum mode a node that cannot save its promises does not start. In available mode it starts,
/// and nothing waits for the disk here.
fn save_first(
    store: &mut Store,
    config: &Config,
    life: PersistentState,
) -> Result<Option<PersistentState>, RunError> {
    if config.election.quorum.is_none() {
        return Ok(None);
    }
    store.save(&life).map_err(RunError::NoMemory)?;
    Ok(Some(life))
}

fn writer(
    mut store: Store,
    config: &Config,
    waker: &Arc<Waker>,
    on_disk: Option<PersistentState>,
) -> io::Result<Writer> {
    let on_failure = match config.election.quorum {
        Some(_) => OnFailure::Wait,
        None => OnFailure::GoOn,
    };
    Writer::start(move |state| store.save(state), waking(waker), on_failure, on_disk)
}

/// Wakes the event loop when a thread has something to report. A poll can have only one waker.
fn waking(waker: &Arc<Waker>) -> impl Fn() + Clone + Send + 'static {
    let waker = Arc::clone(waker);
    move || {
        if let Err(error) = waker.wake() {
            log::error!("a thread cannot wake the event loop: {error}; its result is delayed");
        }
    }
}
