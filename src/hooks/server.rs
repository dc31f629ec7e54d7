//! The hook-runner's work: receives requests on connections, runs them in turn, and answers.
//!
//! It needs the same settings as the daemon. If the two differ, it reads its own file once more. If
//! they still differ, it refuses `elected`, `reaffirmed` and checks. It runs `started`, `demoted`
//! and the fence command all the same, because these release. So it never changes its commands by
//! itself, and the settings that took over also release.
//!
//! Every command runs this way. `lanelect hook-runner` serves the connections to its socket; a
//! daemon without `hook_socket`, and its `post-stop`, serve connections of their own.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use log::Level;
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::group::KILL_GRACE;
use super::protocol::{self, Connection, LineError, LineReader, Request, RunReply, RunRequest};
use super::{Digest, HookFinished, HookProcess, HookSettings, Lane, Lanes, Task, record};
use crate::config::{Config, ConfigSource, DEFAULT_HOOK_TIMEOUT};
use crate::core::hook::HookEvent;
use crate::time::Time;
use crate::types::{GroupName, Term};

/// Highest term that any run may have: half of the range of terms.
const TERM_MAX: Term = Term(1 << 63);

/// How far the term of a run may be above earlier ones. Elections never reach this number in a
/// lifetime.
const TERM_STEP_MAX: u64 = 1 << 32;

/// How long a client may take to send its request.
pub const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// Serves requests to run hook, fence and checks of its own settings. Never blocks for longer than
/// it takes to write a small file.
///
/// Call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout), and
/// [`handle_child_signal`](Self::handle_child_signal) at every SIGCHLD. Spurious calls are
/// harmless.
#[derive(Debug)]
pub struct HookServer {
    pub(super) process: HookProcess,
    /// None in the daemon, which has the settings itself.
    file: Option<SettingsFile>,
    /// The daemon's own connections; none in a hook-runner, which accepts connections itself.
    arrivals: Option<Receiver<UnixStream>>,
    queues: Lanes<Queue>,
    clients: BTreeMap<Token, Client>,
    next_token: usize,
    /// Why the last request was refused; none if it was not refused.
    last_refusal: Option<String>,
    is_stopping: bool,
}

/// Where a separate hook-runner process gets its settings from.
#[derive(Debug)]
struct SettingsFile {
    source: ConfigSource,
    /// The group that was read first, which stays, and the settings that were read last. None if
    /// no file could be trusted so far.
    known: Option<(GroupName, Digest)>,
    /// The highest term that a hook ran for.
    highest: Option<Term>,
}

/// Runs in one lane, one after the other.
#[derive(Debug, Default)]
struct Queue {
    /// The connection that gets the report when the current run ends.
    asker: Option<Token>,
    /// Requests whose turn has not come, oldest first.
    waiting: VecDeque<(Token, Box<RunRequest>)>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    line: LineReader,
    /// Time limit for its request; none once it has arrived.
    request_due: Option<Time>,
}

impl HookServer {
    /// Serves the connections that arrive from the same process. Begins to end a hook that an
    /// earlier life of this process left running and noted in the file `record`; the first run
    /// waits for that.
    pub fn new(
        settings: HookSettings,
        record: PathBuf,
        arrivals: Receiver<UnixStream>,
        now: Time,
    ) -> Self {
        let process = HookProcess::new(settings, record, now);
        HookServer { arrivals: Some(arrivals), ..HookServer::with(process) }
    }

    /// Serves connections to `socket` that it is given, by the settings in a file. If the file is
    /// invalid or cannot be trusted, every request is refused, but for `demoted` of the hook that
    /// took over before. The file is read again for each request. Clients get tokens from
    /// `first_token` on. Begins to end a hook that an earlier life on the same socket left running.
    pub fn by_file(source: ConfigSource, socket: &Path, first_token: Token, now: Time) -> Self {
        // Without a file that it can use, only what took over may run, to release.
        let no_file = HookSettings { timeout: DEFAULT_HOOK_TIMEOUT, ..HookSettings::default() };
        let process = HookProcess::new(no_file, record::beside(socket), now);
        let mut server = HookServer {
            file: Some(SettingsFile { source, known: None, highest: None }),
            next_token: first_token.0,
            ..HookServer::with(process)
        };
        if let Err(error) = server.read_file(None) {
            log::error!(
                "{error}\nuntil this is corrected, nothing runs but what releases for a hook that \
                 took over before"
            );
        }
        server
    }

    fn with(process: HookProcess) -> Self {
        HookServer {
            process,
            file: None,
            arrivals: None,
            queues: Lanes::default(),
            clients: BTreeMap::new(),
            next_token: 0,
            last_refusal: None,
            is_stopping: false,
        }
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Adds a new client. The caller hands its events to [`handle_client`](Self::handle_client).
    ///
    /// # Errors
    ///
    /// If its connection cannot be registered.
    pub fn accept(
        &mut self,
        mut stream: UnixStream,
        registry: &Registry,
        now: Time,
    ) -> io::Result<()> {
        registry.register(&mut stream, Token(self.next_token), Interest::READABLE)?;
        self.add_client(stream, now);
        Ok(())
    }

    /// Accepts the connections from the same process, and handles what any client has sent.
    pub fn serve(&mut self, now: Time) {
        let arrived: Vec<UnixStream> = self.arrivals.iter().flat_map(Receiver::try_iter).collect();
        arrived.into_iter().for_each(|stream| self.add_client(stream, now));
        let tokens: Vec<Token> = self.clients.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.handle_client(token, now));
    }

    /// A client sent something or hung up.
    pub fn handle_client(&mut self, token: Token, now: Time) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        match client.receive() {
            // Its last request no longer matters: there is no client left to answer.
            Ok((Connection::Closed, _)) => self.handle_hangup(token, now),
            Ok((Connection::Open, requests)) => {
                for request in requests {
                    self.handle_request(token, request, now);
                }
            }
            Err(error) => {
                log::warn!("disconnected a client: it {error}");
                self.answer(token, &RunReply::Refused(format!("the daemon {error}")));
                self.handle_hangup(token, now);
            }
        }
        self.drive(now);
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        self.process.handle_child_signal(now);
        self.drive(now);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        self.process.handle_timeout(now);
        self.clients.retain(|_, client| {
            let is_late = client.request_due.is_some_and(|due| now >= due);
            if is_late {
                log::warn!("disconnected a client: it sent no request within {REQUEST_WAIT:?}");
            }
            !is_late
        });
        self.drive(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub fn poll_timeout(&self) -> Option<Time> {
        let request_due = self.clients.values().filter_map(|client| client.request_due);
        request_due.chain(self.process.poll_timeout()).min()
    }

    /// How long the runs in progress take at the longest.
    pub fn longest_run(&self) -> Duration {
        self.process.longest_run()
    }

    /// Starts no more runs: queued runs are dropped. Checks are ended, because their results are
    /// not needed.
    pub fn stop(&mut self, now: Time) {
        self.is_stopping = true;
        for lane in Lane::CHECKS {
            self.process.cut_short(lane, now + KILL_GRACE, now);
        }
        self.drive(now);
    }

    fn add_client(&mut self, stream: UnixStream, now: Time) {
        let token = Token(self.next_token);
        self.next_token += 1;
        let (line, request_due) = (LineReader::default(), Some(now + REQUEST_WAIT));
        self.clients.insert(token, Client { stream, line, request_due });
    }

    fn handle_request(&mut self, token: Token, request: Request, now: Time) {
        if let Some(refusal) = self.objection_to(&request) {
            self.log_refusal(&refusal);
            return self.answer(token, &RunReply::Refused(refusal));
        }
        self.last_refusal = None;
        match request {
            Request::Run(request) => {
                let lane = request.task.lane();
                let level = if lane == Lane::Fence { Level::Warn } else { Level::Debug };
                log::log!(level, "{} is requested", request.task);
                if lane == Lane::Hook {
                    if request.task.speaks_for_dead_daemon() {
                        self.hang_up_on_others(token, now);
                    }
                    self.end_orphan(now + request.orphan_grace, now);
                }
                self.queues[lane].waiting.push_back((token, request));
            }
            Request::Agree { .. } => self.answer(token, &RunReply::Agreed),
            Request::CutShort(kill_after) => self.cut_short(token, now + kill_after, now),
        }
    }

    /// Logs why requests are refused, once: a daemon asks every second, and so does each check.
    fn log_refusal(&mut self, refusal: &str) {
        if self.last_refusal.as_deref() != Some(refusal) {
            log::warn!("rejected a request: {refusal}");
            self.last_refusal = Some(refusal.to_owned());
        }
    }

    /// Why this hook-runner refuses a request.
    fn objection_to(&mut self, request: &Request) -> Option<String> {
        let (group, settings, task) = match request {
            Request::Run(request) => {
                let RunRequest { task, node, settings, .. } = &**request;
                (node.group, *settings, Some(task))
            }
            Request::Agree { group, settings } => (*group, *settings, None),
            Request::CutShort(_) => return None,
        };
        let disagreement = self.read_file(Some(settings)).err();
        if let Some(file) = &self.file {
            match file.known {
                None if !self.can_release_without_file(task) => return disagreement,
                Some((own, _)) if own != group => {
                    return Some(format!(
                        "the daemon is in group {group}, and this hook-runner in group {own}; set \
                         another hook_socket for each group"
                    ));
                }
                _ => {}
            }
        }
        let Some(task) = task else { return disagreement };
        if let Some(disagreement) = disagreement {
            if !lets_go(task) {
                return Some(disagreement);
            }
            log::warn!(
                "{task}: {disagreement}; it runs nevertheless, because it releases the leadership"
            );
        }
        let lane = task.lane();
        if lane != Lane::Hook && !self.process.has_command(lane) {
            return Some(format!(
                "this hook-runner has no {lane} configured; set {lane} in its config file"
            ));
        }
        self.note_term(task)
    }

    /// Whether the task is the release by the hook that took over, which is known from an earlier
    /// life of this process.
    fn can_release_without_file(&self, task: Option<&Task>) -> bool {
        let is_demoted = matches!(task, Some(Task::Hook(run)) if run.event == HookEvent::Demoted);
        is_demoted && self.process.hook_that_took_over().is_some()
    }

    /// Reads the file if the daemon has other settings than this hook-runner, and applies the
    /// file's settings if they are the daemon's. An error says why the two do not agree.
    fn read_file(&mut self, asked: Option<Digest>) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let known = file.known.map(|(_, settings)| settings);
        if known.is_some() && known == asked {
            return Ok(());
        }
        let config = file.source.load_trusted().map_err(|error| error.to_string())?;
        let read = Digest::from(&config);
        if known.is_none() || asked == Some(read) {
            self.take(&config);
        }
        if asked.is_none_or(|asked| asked == read) {
            return Ok(());
        }
        Err("the daemon has another configuration than the config file of this hook-runner; reload \
             both with the daemon's unit; set hook, fence, the checks, their time limits, node_id \
             and group in that file, not as flags of the daemon"
            .to_owned())
    }

    fn take(&mut self, config: &Config) {
        let Some(file) = &mut self.file else { return };
        file.known = Some((config.group, Digest::from(config)));
        self.process.reconfigure(HookSettings::from(config));
        log::info!("the hook-runner has read its config file");
        if config.hook.is_none() {
            log::warn!("no hook is configured: every hook run succeeds without running a command");
        }
        for warning in config.program_warnings() {
            log::warn!("{warning}");
        }
    }

    /// Why a run must not have this term. An attacker in control of the daemon could otherwise make
    /// the hook write a term into a table of fencing tokens that no later leader ever reaches.
    fn note_term(&mut self, task: &Task) -> Option<String> {
        let file = self.file.as_mut()?;
        let term = task.term();
        let limit = file.highest.map_or(TERM_MAX, |highest| {
            Term(highest.0.saturating_add(TERM_STEP_MAX)).min(TERM_MAX)
        });
        if term > limit {
            return Some(format!(
                "term {term} is absurdly high: this hook-runner accepts terms up to {limit} now"
            ));
        }
        if matches!(task, Task::Hook(_)) {
            file.highest = file.highest.max(Some(term));
        }
        None
    }

    /// The daemon is dead. If one of its threads waits in the kernel, its connections are still
    /// open; they count as closed.
    fn hang_up_on_others(&mut self, post_stop: Token, now: Time) {
        let tokens: Vec<Token> = self.clients.keys().copied().collect();
        let others = tokens.into_iter().filter(|token| *token != post_stop);
        others.for_each(|token| self.handle_hangup(token, now));
    }

    /// Ends a hook that a dead daemon left running: the next run does not wait for it to end by
    /// itself.
    fn end_orphan(&mut self, kill_at: Time, now: Time) {
        if self.queues[Lane::Hook].asker.is_none() && self.process.is_running(Lane::Hook) {
            self.process.cut_short(Lane::Hook, kill_at, now);
        }
    }

    /// Ends this client's run, or withdraws its request if the run has not begun. The fence command
    /// is never cut short.
    fn cut_short(&mut self, token: Token, by: Time, now: Time) {
        for lane in [Lane::Hook, Lane::Check, Lane::CheckLeader] {
            if self.queues[lane].asker == Some(token) {
                self.process.cut_short(lane, by, now);
            } else if self.queues[lane].take_back(token) {
                self.answer(token, &RunReply::Finished(HookFinished::not_run(Duration::ZERO)));
            }
        }
    }

    /// Withdraws the client's request if its run has not begun. A run that has begun continues,
    /// except for a check.
    fn handle_hangup(&mut self, token: Token, now: Time) {
        self.clients.remove(&token);
        for lane in Lane::ALL {
            self.queues[lane].take_back(token);
            if self.queues[lane].asker.take_if(|asker| *asker == token).is_none() {
                continue;
            }
            if lane.is_check() {
                self.process.cut_short(lane, now + KILL_GRACE, now);
            } else {
                log::warn!(
                    "the daemon closed the connection during a run of its {lane}; the {lane} \
                     continues"
                );
            }
        }
    }

    /// Reports in each lane how the run ended, and starts the next one, until a run is in progress
    /// or the queue is empty.
    fn drive(&mut self, now: Time) {
        while Lane::ALL.into_iter().any(|lane| self.drive_lane(lane, now)) {}
    }

    /// Returns whether there may be more to do.
    fn drive_lane(&mut self, lane: Lane, now: Time) -> bool {
        if let Some(finished) = self.process.poll_finished(lane) {
            if let Some(asker) = self.queues[lane].asker.take() {
                self.answer(asker, &RunReply::Finished(finished));
            }
        }
        if self.process.is_stuck(lane) {
            self.turn_away(lane);
        }
        if self.process.is_running(lane) || self.is_stopping {
            return false;
        }
        let Some((token, request)) = self.queues[lane].waiting.pop_front() else { return false };
        let Some(client) = self.clients.get(&token) else { return true };
        match protocol::send(&client.stream, &RunReply::Started) {
            Ok(()) => {
                self.queues[lane].asker = Some(token);
                self.process.start(&request.task, &request.node, now);
            }
            // The client has withdrawn its request.
            Err(error) => {
                log::info!(
                    "a run is not started, because its daemon closed the connection: {error}"
                );
                self.handle_hangup(token, now);
            }
        }
        true
    }

    /// Ends the wait for a run that may never end: a daemon that waits for its own must know,
    /// because it may lead meanwhile.
    fn turn_away(&mut self, lane: Lane) {
        let waiting = std::mem::take(&mut self.queues[lane].waiting);
        waiting.iter().for_each(|(token, _)| self.answer(*token, &RunReply::Stuck));
    }

    /// Answers and hangs up.
    fn answer(&mut self, token: Token, reply: &RunReply) {
        let Some(client) = self.clients.remove(&token) else { return };
        if let Err(error) = protocol::send(&client.stream, reply) {
            log::warn!("cannot send the result of a request to the daemon: {error}");
        }
    }
}

/// Whether a run must take place even if the settings differ.
const fn lets_go(task: &Task) -> bool {
    match task {
        Task::Hook(run) => !run.event.takes_over(),
        Task::Fence { .. } => true,
        Task::Check { .. } | Task::CheckLeader { .. } => false,
    }
}

impl Queue {
    /// Removes the client's request from the queue; returns whether it was queued.
    fn take_back(&mut self, token: Token) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(asker, _)| *asker != token);
        self.waiting.len() < before
    }
}

impl Client {
    /// Reads more. The first request starts something; later ones may only cut it short.
    fn receive(&mut self) -> Result<(Connection, Vec<Request>), LineError> {
        let connection = self.line.read(&mut self.stream)?;
        let mut requests = Vec::new();
        while let Some(request) = self.line.poll_message()? {
            let asks_for_run = !matches!(request, Request::CutShort(_));
            if asks_for_run != self.request_due.take().is_some() {
                return Err(LineError::OutOfTurn);
            }
            requests.push(request);
        }
        Ok((connection, requests))
    }
}
