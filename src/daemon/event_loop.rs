//! The event loop: one thread, one poll, everything bounded.
//!
//! A turn takes the events, then the datagrams that wait, then whatever is due, and carries out
//! what the election asks for after each; then it sleeps until the earliest deadline. Datagrams
//! come before deadlines, so that a daemon that was stopped for a while hears what it missed before
//! it draws conclusions from the time. `requests` answers clients, `reload` reads the configuration
//! again.

mod reload;
mod requests;

use std::io;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use crate::config::{Config, ConfigSource};
use crate::core::Election;
use crate::core::election::Setup;
use crate::core::hook::HookRun;
use crate::core::output::{Event, Output, StopCause};
use crate::core::persist::PersistentState;
use crate::daemon::RunError;
use crate::daemon::clock::{self, Alarm};
use crate::daemon::control::{Access, ControlServer};
use crate::daemon::hooks::{HookClient, HookNode, HookProcess, HookSettings, Hooks};
use crate::daemon::narration::Narration;
use crate::daemon::notify::Notifier;
use crate::daemon::rejections::Rejections;
use crate::daemon::report;
use crate::daemon::store::{self, Store};
use crate::daemon::transport::{self, Settings, Transport};
use crate::time::Time;
use crate::types::Incarnation;
use crate::wire::auth::Keyring;
use crate::wire::frame::{Codec, DATAGRAM_MAX};
use crate::wire::message::Message;

/// Datagrams taken in one turn. More wait for the next, so that a flood delays no deadline by more
/// than a few milliseconds.
const DATAGRAMS_PER_TURN: usize = 1024;

/// Events taken in one turn; more are told in the next.
const EVENTS_PER_TURN: usize = 128;

const ALARM: Token = Token(0);
const SIGNALS: Token = Token(1);
const HOOKS: Token = Token(2);
const TRANSPORT: Token = Token(3);
const CONTROL: Token = Token(TRANSPORT.0 + transport::TOKENS);

/// A running daemon.
pub(super) struct Daemon {
    source: ConfigSource,
    config: Config,
    poll: Poll,
    alarm: Alarm,
    signals: Signals,
    election: Election,
    codec: Codec,
    store: Store,
    /// What the election asked to be kept, and is not on disk.
    unsaved: Option<PersistentState>,
    /// Why the state could not be saved, since it last could.
    store_failure: Option<String>,
    transport: Transport,
    control: ControlServer,
    hooks: Hooks,
    notifier: Notifier,
    watchdog_due: Option<Time>,
    narration: Narration,
    rejections: Rejections,
    received: u64,
    transitions: u64,
    started_at: Time,
    /// The datagram being sent; kept for its capacity.
    outgoing: Vec<u8>,
    stopped: Option<StopCause>,
}

impl Daemon {
    pub(super) fn new(
        source: ConfigSource,
        config: Config,
        keyring: Option<Keyring>,
    ) -> Result<Self, RunError> {
        let now = clock::now();
        let (store, persisted) = Store::open(&config.state_dir, config.group)?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD])?;
        registry.register(&mut signals, SIGNALS, Interest::READABLE)?;
        let access = Access::resolve(config.socket_group.as_deref())?;
        let control = ControlServer::bind(&config.socket, access, registry, CONTROL)?;
        let settings = Settings { group: config.multicast, interfaces: config.interfaces.clone() };
        let mut transport = Transport::new(registry, TRANSPORT, settings)?;
        rescan(&mut transport, now)?;
        let setup = setup(&config, persisted.unwrap_or_default(), transport.any_up())?;
        let notifier = Notifier::from_environment();
        Ok(Daemon {
            alarm: Alarm::new(registry, ALARM)?,
            hooks: hooks(&config, registry, now)?,
            election: Election::new(setup, now),
            codec: Codec::new(config.group, keyring),
            narration: Narration::new(config.node_id, now),
            rejections: Rejections::default(),
            watchdog_due: notifier.watchdog_interval().map(|interval| now + interval),
            notifier,
            store,
            unsaved: None,
            store_failure: None,
            transport,
            control,
            signals,
            poll,
            config,
            source,
            received: 0,
            transitions: 0,
            started_at: now,
            outgoing: Vec::with_capacity(DATAGRAM_MAX),
            stopped: None,
        })
    }

    /// Runs until the election is over.
    pub(super) fn run(mut self) -> Result<StopCause, RunError> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let now = clock::now();
        self.rescan(now);
        self.notifier.ready();
        self.notifier.status(&self.election.headline(now));
        loop {
            if let Some(cause) = self.stopped {
                return Ok(cause);
            }
            self.sleep(&mut events)?;
            let now = clock::now();
            self.receive(now);
            self.take_events(&events, now);
            self.answer_requests(now);
            self.do_what_is_due(now);
        }
    }

    /// Sleeps until something happens or is due.
    fn sleep(&mut self, events: &mut Events) -> Result<(), RunError> {
        self.alarm.set(self.next_deadline())?;
        let wait = self.transport.has_more().then_some(Duration::ZERO);
        let mut outcome = self.poll.poll(events, wait);
        // A daemon that was stopped and goes on is interrupted here. What became ready meanwhile has
        // to be looked at before any deadline is.
        while outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            outcome = self.poll.poll(events, Some(Duration::ZERO));
        }
        outcome?;
        for event in events.iter() {
            // Told before anything is read, so that nothing that waits is overlooked.
            self.transport.handle_event(event.token());
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Time> {
        [
            self.election.poll_timeout().map(|deadline| deadline.at),
            self.hooks.poll_timeout(),
            self.control.poll_timeout(),
            Some(self.transport.next_rescan()),
            self.watchdog_due,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Hands the datagrams that wait to the election.
    fn receive(&mut self, now: Time) {
        // One byte more than any datagram has, so that a longer one does not pass for one.
        let mut buffer = [0; DATAGRAM_MAX + 1];
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(received) = self.transport.receive(&mut buffer) else { return };
            match self.codec.decode(received.datagram) {
                Ok(message) => {
                    self.received += u64::from(message.sender != self.config.node_id);
                    self.election.handle_datagram(now, received.source, &message);
                    self.carry_out(now);
                }
                Err(reject) => {
                    self.received += 1;
                    self.rejections.note(now, reject, received.source);
                }
            }
        }
    }

    fn take_events(&mut self, events: &Events, now: Time) {
        for event in events.iter() {
            match event.token() {
                ALARM => self.alarm.acknowledge(),
                SIGNALS => self.take_signals(now),
                HOOKS => self.hooks.handle_socket(now),
                token if self.control.owns(token) => self.control.handle_event(token, now),
                _ => {}
            }
        }
    }

    fn take_signals(&mut self, now: Time) {
        let pending: Vec<_> = self.signals.pending().collect();
        for signal in pending {
            match signal {
                SIGCHLD => self.hooks.handle_child_signal(now),
                SIGHUP => self.reload(now),
                _ => self.stop(now),
            }
        }
    }

    fn do_what_is_due(&mut self, now: Time) {
        if self.transport.next_rescan() <= now {
            self.rescan(now);
        }
        self.hooks.handle_timeout(now);
        self.control.handle_timeout(now);
        self.answer_requests(now);
        self.report_finished_hooks(now);
        self.election.handle_timeout(now);
        self.carry_out(now);
        if self.store_failure.is_none() {
            self.save();
        }
        if self.watchdog_due.is_some_and(|due| due <= now) {
            self.notifier.watchdog();
            self.watchdog_due = self.notifier.watchdog_interval().map(|interval| now + interval);
        }
    }

    fn rescan(&mut self, now: Time) {
        if let Err(error) = rescan(&mut self.transport, now) {
            log::error!("{error}");
        }
        if self.config.interfaces.is_empty() && self.transport.any_up() {
            let routed = self.transport.reports().into_iter().map(|report| report.name);
            self.hooks.set_interfaces(routed.collect());
        }
        self.election.handle_links(now, self.transport.any_up());
        self.carry_out(now);
    }

    /// Carries out what the election asks for, in order.
    fn carry_out(&mut self, now: Time) {
        while let Some(output) = self.election.poll_output() {
            match output {
                Output::Persist(state) => {
                    self.unsaved = Some(state);
                    self.save();
                    self.election.handle_persisted(now, state);
                }
                Output::Transmit(message) => self.transmit(&message),
                Output::RunHook(run) => self.run_hook(run, now),
                Output::CutHookShort { .. } | Output::Fence { .. } => {}
                Output::Notify(event) => self.tell(&event, now),
                Output::Stopped(cause) => self.stopped = Some(cause),
            }
        }
    }

    /// Puts the newest state on disk, where it is not: once before anything that rests on it, and
    /// not for each of the changes that came before.
    ///
    /// In available mode a full disk does not cost the group its leader: it is said once, and the
    /// next change tries again.
    fn save(&mut self) {
        let Some(state) = self.unsaved.take() else { return };
        match self.store.save(&state) {
            Ok(()) => {
                if self.store_failure.take().is_some() {
                    log::info!("the state is saved again");
                }
            }
            Err(error) => {
                if self.store_failure.is_none() {
                    log::error!("{error}; going on without, so a restart would forget");
                }
                self.store_failure = Some(error.to_string());
                self.unsaved = Some(state);
            }
        }
    }

    fn transmit(&mut self, message: &Message) {
        match self.codec.encode(message, &mut self.outgoing) {
            Ok(()) => self.transport.send(&self.outgoing),
            Err(error) => log::error!("cannot encode {message:?}: {error}"),
        }
    }

    fn run_hook(&mut self, mut run: HookRun, now: Time) {
        if run.leader == Some(self.config.node_id) {
            run.leader_address = self.transport.source_address();
        }
        self.hooks.start(&run, now);
        self.report_finished_hooks(now);
    }

    /// The ends of hook runs go back to the election, and what that asks for is carried out by the
    /// caller, which is going through its outputs.
    fn report_finished_hooks(&mut self, now: Time) {
        while let Some(finished) = self.hooks.poll_finished() {
            self.election.handle_hook_finished(now, finished.outcome);
        }
    }

    fn tell(&mut self, event: &Event, now: Time) {
        self.narration.tell(now, event);
        if let Event::Transition(transition) = event {
            self.transitions += u64::from(transition.role != transition.previous_role);
            self.control.broadcast(&report::transition(transition));
            self.notifier.status(&self.election.headline(now));
        }
    }

    fn stop(&mut self, now: Time) {
        log::info!("asked to stop");
        self.notifier.stopping();
        self.election.stop(now);
        self.carry_out(now);
    }
}

/// Brings the sockets in line with the host's interfaces, and says what changed.
fn rescan(transport: &mut Transport, now: Time) -> Result<(), transport::RescanError> {
    for change in transport.rescan(now)? {
        if change.is_loss() {
            log::warn!("{change}");
        } else {
            log::info!("{change}");
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the seed that the election runs by is drawn here")]
fn setup(config: &Config, persisted: PersistentState, links_up: bool) -> Result<Setup, RunError> {
    let seed = getrandom::u64().map_err(io::Error::other)?;
    Ok(Setup {
        node_id: config.node_id,
        incarnation: next_incarnation(persisted.incarnation, seed),
        persisted,
        params: config.election.clone(),
        links_up,
        seed,
    })
}

/// Above every earlier life of this daemon, also where the state was lost, as long as the wall
/// clock did not jump back meanwhile. The seed tells hosts cloned from one image apart.
fn next_incarnation(last: Incarnation, seed: u64) -> Incarnation {
    let micros = clock::wall_ms().saturating_mul(1000) + seed % 1000;
    Incarnation(micros.max(last.0.saturating_add(1)))
}

fn hooks(config: &Config, registry: &mio::Registry, now: Time) -> Result<Hooks, RunError> {
    let node = HookNode {
        node_id: config.node_id,
        group: config.group,
        interfaces: config.interfaces.clone(),
    };
    let timeout = config.hook_timeout;
    Ok(match &config.hook_socket {
        Some(path) => {
            let client = HookClient::new(path.clone(), timeout, registry.try_clone()?, HOOKS);
            Hooks::remote(client, node)
        }
        None => {
            let settings = HookSettings { command: config.hook.clone(), timeout };
            let record = store::path_in(&config.state_dir, config.group, "hook");
            Hooks::local(HookProcess::new(settings, record, now), node)
        }
    })
}
