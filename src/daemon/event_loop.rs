//! The event loop: one thread, one poll, everything bounded.
//!
//! A turn processes the waiting datagrams, then the events of this host (signals, ends of hooks,
//! saved state), then whatever is due, and then the clients. After each step it carries out what
//! the election requests. Then it sleeps until the earliest deadline. Datagrams come before
//! deadlines: a daemon that was stopped for a while first receives what it missed, before it draws
//! conclusions from the time. Clients come last, because the daemon then knows what the time has
//! changed.
//!
//! No code stores a time for later: each caller of the election reads the clock after the event
//! that it reports. So a process that is stopped in between never dates an event too early.
//!
//! `setup` creates the daemon, `outputs` carries out what the election requests, `checks` runs the
//! health checks, `holds` lets clients run commands on a leader, `requests` answers clients,
//! `report` makes the status and the transitions that they read, `reload` reads the configuration
//! again.

mod checks;
pub(in crate::daemon) mod holds;
mod outputs;
mod reload;
mod report;
mod requests;
mod setup;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use mio::{Events, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT};
use signal_hook_mio::v1_0::Signals;

use self::checks::Checks;
use self::holds::Holds;
use self::reload::Reloads;
use self::requests::Replies;
use crate::config::{Config, ConfigSource};
use crate::control_api::ConfigReport;
use crate::core::Election;
use crate::core::output::StopCause;
use crate::daemon::RunError;
use crate::daemon::control::ControlServer;
use crate::daemon::crash_plan::CrashPlanFile;
use crate::daemon::names::Names;
use crate::daemon::narration::Narration;
use crate::daemon::rejections::{Cause, Rejections};
use crate::daemon::store::Writer;
use crate::daemon::transport::{self, Received, Stray, Transport};
use crate::hooks::{Hooks, Lane, Lanes};
use crate::os::clock::{self, Alarm};
use crate::os::notify::Notifier;
use crate::time::Time;
use crate::types::NodeId;
use crate::wire::frame::{Codec, Decoded};
use crate::wire::message::Message;

/// Datagrams processed in one turn. More wait for the next turn: a flood delays no deadline by more
/// than a few milliseconds.
const DATAGRAMS_PER_TURN: usize = 1024;

/// Events processed in one turn; the next turn reports more.
pub const EVENTS_PER_TURN: usize = 128;

/// How long a stopping daemon waits for the disk.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How often the log repeats that the keys do not protect the group yet.
const KEY_MODE_REMINDER: Duration = Duration::from_secs(3600);

const ALARM: Token = Token(0);
const SIGNALS: Token = Token(1);
const HOOKS: Lanes<Token> = Lanes([Token(2), Token(3), Token(4), Token(5)]);
/// The threads that write the state and read the configuration have something to report.
const THREADS: Token = Token(6);
/// Whether the hook-runner has the same configuration.
const AGREEMENT: Token = Token(7);
const TRANSPORT: Token = Token(8);
const CONTROL: Token = Token(TRANSPORT.0 + transport::TOKENS);

/// A running daemon.
pub(super) struct Daemon {
    source: ConfigSource,
    config: Config,
    poll: Poll,
    alarm: Alarm,
    signals: Signals,
    election: Election,
    plan: CrashPlanFile,
    codec: Codec,
    writer: Writer,
    reloads: Reloads,
    /// Where the configuration comes from, and what the last reload did not apply.
    config_report: ConfigReport,
    /// Clients that get their answers once the state is on disk.
    replies: Replies,
    transport: Transport,
    names: Names,
    control: ControlServer,
    hooks: Hooks,
    checks: Checks,
    holds: Holds,
    notifier: Notifier,
    watchdog_due: Option<Time>,
    narration: Narration,
    rejections: Rejections,
    /// Where another daemon with this node's id was last heard, and when.
    duplicate: Option<(IpAddr, Time)>,
    /// When a key mode that protects nothing is reported again.
    warn_of_key_mode_at: Time,
    /// Datagrams of others.
    received: u64,
    /// Those of them that a later release has extended.
    extended: u64,
    transitions: u64,
    /// How often the hooks overran the demote grace.
    fences: u64,
    started_at: Time,
    is_stopping: bool,
    /// Whether the administrator does not want to wait for the end of the handover.
    is_impatient: bool,
    stopped: Option<StopCause>,
}

impl Daemon {
    /// Runs until the election is over.
    pub(super) fn run(mut self) -> Result<StopCause, RunError> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        self.rescan();
        self.notifier.ready();
        self.show_headline();
        loop {
            let is_checking = Lane::CHECKS.iter().any(|lane| self.hooks.is_running(*lane));
            if let Some(cause) = self.stopped.filter(|_| !is_checking) {
                self.finish_saving();
                return Ok(cause);
            }
            if self.is_impatient {
                return Err(RunError::Interrupted);
            }
            self.sleep(&mut events)?;
            self.turn(&events);
        }
    }

    /// Most turns process one datagram and nothing else. They use as little code and data as
    /// possible: after a sleep each access to new code or data waits for the memory.
    fn turn(&mut self, events: &Events) {
        self.receive();
        let has_news = self.take_events(events);
        if has_news || self.next_deadline().is_some_and(|deadline| deadline <= clock::now()) {
            self.do_what_is_due();
        }
        self.serve_clients(events);
        self.attend_to_holds();
    }

    /// Sleeps until something happens or is due.
    fn sleep(&mut self, events: &mut Events) -> Result<(), RunError> {
        self.alarm.set(self.next_deadline())?;
        let wait = self.transport.has_more().then_some(Duration::ZERO);
        self.await_events(events, wait)?;
        for event in events.iter() {
            // Notified before anything is read, so nothing that waits is missed.
            self.transport.handle_event(event.token());
        }
        Ok(())
    }

    fn await_events(&mut self, events: &mut Events, wait: Option<Duration>) -> io::Result<()> {
        #[cfg(test)]
        if let Some(stage) = crate::os::simulated::stage() {
            return self.await_simulated_events(&*stage, events, wait);
        }
        let mut outcome = self.poll.poll(events, wait);
        // If a daemon was stopped and continues, a signal interrupts it here. It must look at what
        // became ready meanwhile before any deadline.
        while outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            outcome = self.poll.poll(events, Some(Duration::ZERO));
        }
        outcome
    }

    fn next_deadline(&self) -> Option<Time> {
        [
            self.election.poll_timeout().map(|deadline| deadline.at),
            self.hooks.poll_timeout(),
            self.checks.poll_timeout(),
            self.writer.poll_timeout(),
            self.control.poll_timeout(),
            self.replies.poll_timeout(),
            self.holds.poll_timeout(),
            Some(self.transport.next_rescan()),
            self.names.poll_timeout(),
            self.notifier.poll_timeout(),
            self.watchdog_due,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Passes the waiting datagrams to the election.
    fn receive(&mut self) {
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some(received) = self.transport.receive() else { return };
            // The clock is read after the datagram has arrived: a voter's promise about it must not
            // begin before the datagram was sent.
            let now = clock::now();
            match read(&self.codec, &received) {
                Ok(Decoded { message, is_extended, is_sealed }) => {
                    let is_own = message.sender == self.config.node_id;
                    self.received += u64::from(!is_own);
                    self.extended += u64::from(!is_own && is_extended);
                    if received.is_unicast && is_for_another(&message, self.config.node_id) {
                        continue;
                    }
                    let refused = self.election.ignored().absurd_term;
                    if is_sealed {
                        self.election.handle_datagram(now, received.source, &message);
                    } else {
                        self.election.handle_open_datagram(now, received.source, &message);
                    }
                    if self.election.ignored().absurd_term > refused {
                        self.rejections.note(now, Cause::AbsurdTerm(&message), received.source);
                    }
                    self.carry_out();
                }
                Err(cause) => {
                    self.received += 1;
                    self.rejections.note(now, cause, received.source);
                }
            }
        }
    }

    /// Processes the events of this host, and returns whether there were any; requests of clients
    /// are left for later.
    fn take_events(&mut self, events: &Events) -> bool {
        let mut has_news = false;
        for event in events.iter() {
            match event.token() {
                ALARM => self.alarm.acknowledge(),
                SIGNALS => self.take_signals(),
                THREADS => {
                    self.writer.handle_wake(clock::now());
                    self.take_reloaded();
                    self.take_names();
                }
                AGREEMENT => self.hooks.handle_agreement(clock::now()),
                token => match HOOKS.lane_of(&token) {
                    Some(lane) => self.hooks.handle_socket(lane, clock::now()),
                    None => continue,
                },
            }
            has_news = true;
        }
        has_news
    }

    fn take_signals(&mut self) {
        let pending: Vec<_> = self.signals.pending().collect();
        pending.into_iter().for_each(|signal| self.take_signal(signal));
    }

    fn take_signal(&mut self, signal: i32) {
        match signal {
            SIGCHLD => self.hooks.handle_child_signal(clock::now()),
            SIGHUP => self.reload(),
            SIGINT if self.is_stopping => self.is_impatient = true,
            _ => self.stop(),
        }
    }

    fn do_what_is_due(&mut self) {
        // Before any hook begins: a lease may have expired. Hooks that have ended by now ended in
        // time.
        self.report_finished_hooks();
        self.let_time_pass();
        self.names.handle_timeout(clock::now());
        if self.transport.next_rescan() <= clock::now() {
            self.rescan();
        }
        self.try_hooks_again();
        self.report_finished_hooks();
        self.take_agreement();
        self.attend_to_checks();
        self.writer.handle_wake(clock::now());
        self.writer.handle_timeout(clock::now());
        self.note_settled();
        self.let_time_pass();
        let now = clock::now();
        self.notifier.handle_timeout(now);
        if self.watchdog_due.is_some_and(|due| due <= now) {
            self.notifier.watchdog();
            self.feed_watchdog_from(now);
        }
    }

    /// This daemon has just reported to the watchdog of the service manager.
    fn feed_watchdog_from(&mut self, now: Time) {
        self.watchdog_due = self.notifier.watchdog_interval().map(|interval| now + interval);
    }

    /// A node is eligible only if its hook-runner has the same configuration.
    fn take_agreement(&mut self) {
        if let Some(agrees) = self.hooks.poll_agreement() {
            self.election.handle_hook_runner(clock::now(), agrees);
            self.carry_out();
        }
    }

    /// Brings the election up to date.
    fn let_time_pass(&mut self) {
        self.election.handle_timeout(clock::now());
        self.carry_out();
    }

    /// Checks what others may change around a daemon: interfaces, and the files of its control
    /// socket.
    fn rescan(&mut self) {
        let was_blind = self.transport.is_blind();
        let holds = self.election.crash_plan().is_some();
        match rescan(&mut self.transport, clock::now(), holds) {
            Ok(()) if was_blind => log::info!("the network interfaces can be read again"),
            Err(error) if !was_blind => log::error!("{error}"),
            _ => {}
        }
        self.warn_of_key_mode();
        // If the socket was removed, the files beside it probably were, too.
        let was_removed = self.control.restore();
        if was_removed {
            self.hooks.restore_notes();
        }
        if was_removed || self.plan.has_failed() {
            self.keep_crash_plan();
        }
        if self.config.interfaces.is_empty() && self.transport.any_up() {
            let routed = self.transport.interface_names();
            if self.hooks.set_interfaces(routed) {
                self.keep_crash_plan();
            }
        }
        if self.transport.take_lost_address() {
            self.election.handle_address_lost(clock::now());
        }
        self.election.handle_links(clock::now(), self.transport.any_up());
        self.carry_out();
    }

    /// Tells the transport what names stand for. It acts on that at its next rescan.
    fn take_names(&mut self) {
        while let Some((peer, found)) = self.names.poll_found(clock::now()) {
            let before = self.transport.peer_addresses();
            self.transport.resolve(peer, found);
            if self.transport.peer_addresses() != before {
                self.keep_crash_plan();
            }
        }
    }

    /// A step between no keys and required ones is easily forgotten.
    fn warn_of_key_mode(&mut self) {
        let now = clock::now();
        if self.warn_of_key_mode_at <= now {
            self.warn_of_key_mode_at = now + KEY_MODE_REMINDER;
            if let Some(warning) = self.config.key_mode_warning() {
                log::warn!("{warning}");
            }
        }
    }

    fn stop(&mut self) {
        log::info!("stopping: received SIGTERM or SIGINT");
        self.is_stopping = true;
        self.notifier.stopping();
        let now = clock::now();
        let longest = self.hooks.longest_stop() + self.longest_hold() + STOP_PATIENCE;
        self.notifier.extend_stop(now + longest, now);
        self.election.stop(clock::now());
        self.carry_out();
    }

    /// The last step of a daemon: nothing else is in progress that would have to wait.
    fn finish_saving(&mut self) {
        if !self.writer.finish(STOP_PATIENCE, clock::now()) {
            let why = self.writer.failure().unwrap_or("the disk does not respond");
            log::error!("stopping without saved state: {why}; a restart may lose the current term");
        }
        self.answer_settled();
    }
}

/// The content of a datagram, or why it is rejected.
fn read<'a>(codec: &Codec, received: &Received<'a>) -> Result<Decoded, Cause<'a>> {
    let datagram = received.datagram.map_err(Cause::Stray)?;
    let decoded = codec.decode(received.source, datagram);
    let decoded = decoded.map_err(|reject| Cause::Reject(reject, datagram))?;
    if received.is_routed && !decoded.is_sealed {
        return Err(Cause::Stray(Stray::Unsigned));
    }
    Ok(decoded)
}

/// Whether a datagram by unicast concerns only another node than this one. It is from a member that
/// does not know which peer that is, or an attacker recorded it on its way there. As a proof that
/// its sender is alive, it would be as old as the attacker likes.
fn is_for_another(message: &Message, node_id: NodeId) -> bool {
    message.body.addressee().is_some_and(|addressee| addressee != node_id)
}

/// Brings the sockets in line with the host's interfaces, and logs what changed.
fn rescan(transport: &mut Transport, now: Time, holds: bool) -> Result<(), transport::RescanError> {
    for change in transport.rescan(now, holds)? {
        if change.is_loss() {
            log::warn!("{change}");
        } else {
            log::info!("{change}");
        }
    }
    Ok(())
}
