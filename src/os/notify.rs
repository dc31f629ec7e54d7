//! Notifications to the service manager: readiness, reloads, the leader, the watchdog, and requests
//! for more time to stop.
//!
//! Without systemd all of this does nothing. The messages are sd-notify's. This module sends them
//! itself, because `notify` of sd-notify waits without a limit for a busy service manager.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io;
use std::mem;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use sd_notify::NotifyState;

use crate::core::status::{Headline, LeaderStatus};
use crate::time::Time;
use crate::types::Role;

/// Variables that a service manager sets for one process. A child that inherits them could notify,
/// feed the watchdog or take sockets in its parent's name. They are removed from the environment of
/// every child. `JOURNAL_STREAM` is not among them: it names the stderr that a child may share.
pub const NOT_INHERITED: [&str; 8] = [
    NOTIFY_SOCKET,
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "FDSTORE",
];

/// Longest wait for a service manager that does not read its messages. Shorter than any sensible
/// heartbeat interval. After a time-out the daemon does not wait again until a message was sent.
pub const SEND_PATIENCE: Duration = Duration::from_millis(10);

/// How often a process that stops requests more time. It requests little at a time, so that one
/// that hangs is ended soon.
const EXTEND_EVERY: Duration = Duration::from_secs(5);

/// Pause before a request is repeated that did not fit into the service manager's queue. Until one
/// arrives, the time limit of the unit holds.
const EXTEND_AGAIN: Duration = Duration::from_millis(100);

/// How much time each request is for: the service manager, or this process, may be slow.
const EXTENSION: Duration = Duration::from_secs(20);

const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// The daemon's connection to the service manager.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<OsString>,
    /// The unit's watchdog time-out; `None` without a watchdog.
    watchdog: Option<Duration>,
    /// The shorter time-out that the daemon wants instead.
    tightened: Option<Duration>,
    /// The time-out that the service manager applies: the unit's, or the last one that was sent.
    in_force: Option<Duration>,
    status: String,
    stop: Option<Stop>,
    failing: bool,
}

/// A stop that may take longer than the unit allows.
#[derive(Debug)]
struct Stop {
    extend_at: Time,
    /// No time is requested beyond this.
    end: Time,
}

impl Notifier {
    /// The notifier that the environment describes; without systemd it sends nothing.
    pub fn from_environment() -> Self {
        let socket = env::var_os(NOTIFY_SOCKET).filter(|socket| !socket.is_empty());
        let watchdog = socket.as_ref().and_then(|_| sd_notify::watchdog_enabled());
        Notifier::new(socket, watchdog)
    }

    fn new(socket: Option<OsString>, watchdog: Option<Duration>) -> Self {
        let status = String::new();
        let in_force = watchdog;
        Notifier { socket, watchdog, tightened: None, in_force, status, stop: None, failing: false }
    }

    /// How often to call [`watchdog`](Self::watchdog): three times per watchdog time-out. `None`
    /// without a watchdog. A longer time-out counts only when the service manager has received it.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        let limit = self.wanted_limit().min(self.in_force);
        limit.map(|limit| limit / 3).filter(|interval| !interval.is_zero())
    }

    /// Sets the watchdog time-out to `limit` if that is shorter than the unit's, else to the
    /// unit's. Returns whether that is a change. Without a watchdog in the unit this does nothing.
    pub fn tighten_watchdog(&mut self, limit: Option<Duration>) -> bool {
        let Some(usual) = self.watchdog else { return false };
        let tightened = limit.filter(|limit| *limit < usual);
        if tightened == self.tightened {
            return false;
        }
        self.tightened = tightened;
        self.watchdog();
        true
    }

    /// The daemon is ready, or has finished a reload.
    pub fn ready(&mut self) {
        self.send(&[NotifyState::Ready]);
    }

    /// A reload begins. [`ready`](Self::ready) ends it.
    pub fn reloading(&mut self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => {
                self.send(&[NotifyState::Reloading, now]);
            }
            // Newer service managers kill a service that reports a reload without the time.
            Err(error) => log::warn!("cannot report the reload to the service manager: {error}"),
        }
    }

    /// The daemon stops normally.
    pub fn stopping(&mut self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// Requests time for a stop that may take until `end`, whatever the unit's time limit is. The
    /// caller calls [`handle_timeout`](Self::handle_timeout) at
    /// [`poll_timeout`](Self::poll_timeout).
    pub fn extend_stop(&mut self, end: Time, now: Time) {
        self.stop = self.socket.as_ref().map(|_| Stop { extend_at: now, end });
        self.handle_timeout(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.stop.as_ref().map(|stop| stop.extend_at)
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come, or may have.
    pub fn handle_timeout(&mut self, now: Time) {
        let Some(stop) = self.stop.as_mut().filter(|stop| stop.extend_at <= now) else { return };
        let left = stop.end.since(now).min(EXTENSION);
        if left.is_zero() {
            self.stop = None;
            return;
        }
        let micros = u32::try_from(left.as_micros()).unwrap_or(u32::MAX);
        let is_sent = self.send(&[NotifyState::ExtendTimeoutUsec(micros)]);
        let pause = if is_sent { EXTEND_EVERY } else { EXTEND_AGAIN };
        self.stop.iter_mut().for_each(|stop| stop.extend_at = now + pause);
        // An extension also delays the watchdog.
        self.watchdog();
    }

    /// The event loop is alive. Also sends a new time-out, until a send succeeds: the queue of a
    /// busy service manager may be full.
    pub fn watchdog(&mut self) {
        let Some(limit) = self.wanted_limit() else { return };
        if self.in_force == Some(limit) {
            self.send(&[NotifyState::Watchdog]);
            return;
        }
        let micros = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
        if self.send(&[NotifyState::Watchdog, NotifyState::WatchdogUsec(micros)]) {
            self.in_force = Some(limit);
        }
    }

    /// Shows the leader in `systemctl status`. Sends only changes, so it may be called often.
    pub fn status(&mut self, headline: &Headline) {
        if self.socket.is_none() {
            return;
        }
        let text = describe(headline);
        if text != self.status {
            self.send(&[NotifyState::Status(&text)]);
            self.status = text;
        }
    }

    /// The watchdog time-out that the daemon wants.
    fn wanted_limit(&self) -> Option<Duration> {
        self.tightened.or(self.watchdog)
    }

    /// Returns whether the service manager has the message.
    fn send(&mut self, states: &[NotifyState<'_>]) -> bool {
        let Some(socket) = &self.socket else { return false };
        let patience = (!self.failing).then_some(SEND_PATIENCE);
        let sent = send_to(socket, states, patience);
        let was_failing = mem::replace(&mut self.failing, sent.is_err());
        if let Some(error) = sent.err().filter(|_| !was_failing) {
            log::warn!("cannot reach the service manager at {socket:?}: {error}");
        }
        !self.failing
    }
}

/// One line about the role and the leader.
fn describe(headline: &Headline) -> String {
    let term = headline.term;
    match (headline.role, &headline.leader) {
        (Role::Leader, _) => format!("leader, term {term}"),
        (role, Some(LeaderStatus { node_id, address: Some(address), .. })) => {
            format!("{role} of {node_id} ({address}), term {term}")
        }
        (role, Some(leader)) => format!("{role} of {}, term {term}", leader.node_id),
        (role, None) => format!("{role}, no leader known, term {term}"),
    }
}

/// Opens a socket for each message: the service manager may have been replaced since the last one.
fn send_to(
    socket: &OsStr,
    states: &[NotifyState<'_>],
    patience: Option<Duration>,
) -> io::Result<()> {
    let mut message = String::new();
    for state in states {
        writeln!(message, "{state}").map_err(io::Error::other)?;
    }
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let datagrams = UnixDatagram::unbound()?;
    match patience {
        Some(_) => datagrams.set_write_timeout(patience)?,
        None => datagrams.set_nonblocking(true)?,
    }
    datagrams.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{NodeId, Term};
    use std::process::Command;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    fn status(role: Role, leader: Option<LeaderStatus>) -> Headline {
        Headline { role, term: Term(7), leader }
    }

    fn web0(address: Option<&str>) -> Option<LeaderStatus> {
        let address = address.map(|text| text.parse().unwrap());
        Some(LeaderStatus { node_id: id("web0"), address, last_heard: Duration::ZERO })
    }

    /// The service manager's socket, and a notifier that sends to it.
    struct Manager {
        _home: tempfile::TempDir,
        socket: UnixDatagram,
        notifier: Notifier,
    }

    impl Manager {
        fn start() -> Self {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("notify");
            let socket = UnixDatagram::bind(&path).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let notifier = Notifier::new(Some(path.into()), Some(Duration::from_secs(10)));
            Manager { _home: home, socket, notifier }
        }

        fn heard(&self) -> String {
            let mut message = [0; 1024];
            let length = self.socket.recv(&mut message).unwrap();
            String::from_utf8(message[..length].to_vec()).unwrap()
        }

        /// Reads nothing until no message fits any more.
        fn fill_queue(&mut self) {
            while !self.notifier.failing {
                self.notifier.ready();
            }
        }

        fn drain_queue(&self) {
            self.socket.set_nonblocking(true).unwrap();
            while self.socket.recv(&mut [0; 1024]).is_ok() {}
            self.socket.set_nonblocking(false).unwrap();
        }
    }

    #[test]
    fn life_cycle_is_sent_as_sd_notify_messages() {
        let mut manager = Manager::start();
        manager.notifier.ready();
        assert_eq!(manager.heard(), "READY=1\n");
        manager.notifier.watchdog();
        assert_eq!(manager.heard(), "WATCHDOG=1\n");
        manager.notifier.stopping();
        assert_eq!(manager.heard(), "STOPPING=1\n");
    }

    #[test]
    fn stop_is_extended_bit_by_bit_and_not_beyond_its_end() {
        let mut manager = Manager::start();
        let start = Time::from_millis(1_000);
        let end = start + EXTEND_EVERY + EXTENSION;
        manager.notifier.extend_stop(end, start);
        let mut requests = Vec::new();
        while let Some(at) = manager.notifier.poll_timeout() {
            requests.push(manager.heard());
            assert_eq!(manager.heard(), "WATCHDOG=1\n", "it stays as strict as it was");
            manager.notifier.handle_timeout(Time::ZERO);
            manager.notifier.handle_timeout(at);
        }
        let seconds = [20, 20, 15, 10, 5];
        let expected = seconds.map(|seconds| format!("EXTEND_TIMEOUT_USEC={seconds}000000\n"));
        assert_eq!(requests, expected);
    }

    #[test]
    fn request_for_time_that_did_not_fit_the_queue_is_soon_repeated() {
        let mut manager = Manager::start();
        manager.fill_queue();
        let start = Time::from_millis(1_000);
        manager.notifier.extend_stop(start + EXTENSION, start);
        manager.drain_queue();
        let again = manager.notifier.poll_timeout().unwrap();
        assert_eq!(again, start + EXTEND_AGAIN);
        manager.notifier.handle_timeout(again);
        assert_eq!(manager.heard(), "EXTEND_TIMEOUT_USEC=19900000\n");
    }

    #[test]
    fn reload_is_sent_with_its_time() {
        let mut manager = Manager::start();
        manager.notifier.reloading();
        let told = manager.heard();
        let at = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim_end();
        assert!(at.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn the_status_is_sent_only_when_it_changes() {
        let mut manager = Manager::start();
        let following = status(Role::Follower, web0(Some("10.0.0.10")));
        manager.notifier.status(&following);
        manager.notifier.status(&following);
        manager.notifier.status(&status(Role::Leader, None));
        assert_eq!(manager.heard(), "STATUS=follower of web0 (10.0.0.10), term 7\n");
        assert_eq!(manager.heard(), "STATUS=leader, term 7\n");
    }

    #[test]
    fn status_names_the_leader() {
        assert_eq!(describe(&status(Role::Leader, web0(None))), "leader, term 7");
        let follower = status(Role::Follower, web0(None));
        assert_eq!(describe(&follower), "follower of web0, term 7");
        assert_eq!(describe(&status(Role::Starting, None)), "starting, no leader known, term 7");
    }

    #[test]
    fn service_manager_that_does_not_read_does_not_block() {
        let mut manager = Manager::start();
        for _ in 0..1000 {
            manager.notifier.watchdog();
            if manager.notifier.failing {
                break;
            }
        }
        assert!(manager.notifier.failing, "the queue got full, and sending gave up");
        manager.heard();
        manager.notifier.stopping();
        assert!(!manager.notifier.failing, "it is told again once it reads");
    }

    #[test]
    fn an_abstract_socket_is_reached_too() {
        let name = format!("lanelect-notify-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Notifier::new(Some(format!("@{name}").into()), None).ready();
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1\n");
    }

    #[test]
    fn missing_service_manager_is_not_a_failure() {
        let home = tempfile::tempdir().unwrap();
        let mut notifier = Notifier::new(Some(home.path().join("none").into()), None);
        notifier.ready();
        notifier.watchdog();
        assert!(notifier.failing);
        let mut silent = Notifier::new(None, None);
        silent.ready();
        silent.status(&status(Role::Leader, None));
        assert!(!silent.failing);
        assert_eq!(silent.watchdog_interval(), None);
    }

    #[test]
    fn the_watchdog_is_tightened_for_a_while_and_never_loosened() {
        let mut manager = Manager::start();
        let (lease, longer) = (Duration::from_secs(3), Duration::from_secs(60));
        assert!(manager.notifier.tighten_watchdog(Some(lease)));
        assert_eq!(manager.heard(), "WATCHDOG=1\nWATCHDOG_USEC=3000000\n");
        assert_eq!(manager.notifier.watchdog_interval(), Some(Duration::from_secs(1)));
        assert!(!manager.notifier.tighten_watchdog(Some(lease)), "it is already");
        assert!(manager.notifier.tighten_watchdog(None));
        assert_eq!(manager.heard(), "WATCHDOG=1\nWATCHDOG_USEC=10000000\n");
        assert!(!manager.notifier.tighten_watchdog(Some(longer)));
        let mut unwatched = Notifier::new(None, None);
        assert!(!unwatched.tighten_watchdog(Some(lease)));
        assert_eq!(unwatched.watchdog_interval(), None);
    }

    #[test]
    fn watchdog_limit_that_could_not_be_sent_is_sent_with_the_next_feed() {
        let mut manager = Manager::start();
        let (lease, third) = (Duration::from_secs(3), Some(Duration::from_secs(1)));
        for (limit, micros) in [(Some(lease), 3_000_000), (None, 10_000_000)] {
            manager.fill_queue();
            assert!(manager.notifier.tighten_watchdog(limit));
            assert_eq!(manager.notifier.watchdog_interval(), third, "the shorter limit counts");
            manager.drain_queue();
            manager.notifier.watchdog();
            assert_eq!(manager.heard(), format!("WATCHDOG=1\nWATCHDOG_USEC={micros}\n"));
            manager.notifier.watchdog();
            assert_eq!(manager.heard(), "WATCHDOG=1\n");
        }
        assert_eq!(manager.notifier.watchdog_interval(), Some(Duration::from_secs(10) / 3));
    }

    /// Set for the process that the last test starts.
    const CHILD: &str = "LANELECT_TEST_NOTIFY_CHILD";

    /// Not a test of its own: the last one runs it in a process with an environment for it.
    #[test]
    #[ignore = "a helper process of the_environment_is_where_systemd_is_found"]
    fn notify_from_environment() {
        if env::var_os(CHILD).is_none() {
            return;
        }
        let mut notifier = Notifier::from_environment();
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_secs(2)));
        notifier.ready();
    }

    #[test]
    fn the_environment_is_where_systemd_is_found() {
        let manager = Manager::start();
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--ignored", "os::notify::tests::notify_from_environment"])
            .env(CHILD, "1")
            .env(NOTIFY_SOCKET, manager.notifier.socket.as_ref().unwrap())
            .env("WATCHDOG_USEC", "6000000")
            .env_remove("WATCHDOG_PID")
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        assert_eq!(manager.heard(), "READY=1\n");
    }
}
