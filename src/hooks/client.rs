//! The daemon's end of a connection to the hook-runner.

use std::io;
use std::net::Shutdown;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use log::Level;
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::group::KILL_WAIT;
use super::process::longest_run;
use super::protocol::{self, Connection, LineError, LineReader, Request, RunReply, RunRequest};
use super::{HookFinished, Task};
use crate::time::Time;

/// How long a run waits for a hook-runner that cannot be reached, where the hook's own time limit
/// is not shorter: long enough for one that is just being started.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Beyond what a hook may take at the most, how long the hook-runner has to tell of it.
pub const ANSWER_MARGIN: Duration = Duration::from_secs(3);

/// Before the first new attempt to connect; doubles with each.
const RETRY_FIRST: Duration = Duration::from_millis(50);

/// Longest pause between attempts to connect.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Where connections to a hook-runner come from.
#[derive(Debug)]
pub enum Door {
    /// The socket of a hook-runner that is a process of its own.
    Socket {
        /// Where it is.
        path: PathBuf,
        /// Connections are registered here.
        registry: Arc<Registry>,
        /// And show up under this token.
        token: Token,
    },
    /// A hook-runner in this process takes the other end of each connection from here.
    Own(Sender<UnixStream>),
}

/// Has the commands of one lane run by a hook-runner, one run at a time. Never blocks.
///
/// Call [`handle_socket`](Self::handle_socket) when its connection is ready, and
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout); after each of
/// its methods drain [`poll_finished`](Self::poll_finished). Spurious calls are harmless.
#[derive(Debug)]
pub struct HookClient {
    door: Door,
    timeout: Duration,
    exchange: Option<Exchange>,
    finished: Option<HookFinished>,
    /// Whether the last run came to nothing, and why was told.
    is_in_vain: bool,
    is_refused: bool,
}

/// A run that the hook-runner is asked for.
#[derive(Debug)]
struct Exchange {
    task: Task,
    request: Request,
    started: Time,
    /// The time limit of a run when it was asked for.
    timeout: Duration,
    /// When it is to be over at the latest, where it was cut short.
    cut_off: Option<Time>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Connecting {
        retry_at: Time,
        pause: Duration,
        give_up_at: Time,
    },
    /// `has_begun` once the hook-runner said so.
    Asked {
        stream: UnixStream,
        reader: LineReader,
        has_begun: bool,
        give_up_at: Time,
    },
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
enum ClientError {
    #[error("cannot reach the hook-runner at {path}: {source}; check that its unit runs")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("cannot reach the daemon's own hook-runner: {0}")]
    NoPair(#[source] io::Error),
    #[error("the hook-runner {0}")]
    Reply(#[from] LineError),
    #[error("the hook-runner closed the connection; see its log")]
    HungUp,
    #[error("the hook-runner rejected the request: {0}")]
    Refused(String),
    #[error(
        "the hook-runner did not start it within {0:.1?}; it hangs, or runs hooks of another \
         daemon (see its log)"
    )]
    NoTurn(Duration),
    #[error("a command before it does not end on SIGKILL; the hook-runner's log names it")]
    Stuck,
    #[error("the hook-runner did not answer in time")]
    Silent,
    #[error("it was cut short before the hook-runner had the request")]
    CutShort,
}

impl HookClient {
    /// For the hook-runner behind `door`. `timeout` is the time limit of a run.
    pub const fn new(door: Door, timeout: Duration) -> Self {
        HookClient {
            door,
            timeout,
            exchange: None,
            finished: None,
            is_in_vain: false,
            is_refused: false,
        }
    }

    /// Takes another time limit, from the next run on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Asks for the run. Only to be called when the run before is finished.
    pub fn start(&mut self, request: RunRequest, now: Time) {
        if let Some(exchange) = &self.exchange {
            let (task, earlier) = (request.task, exchange.task);
            return log::error!("{task} was requested while {earlier} is not finished: dropped");
        }
        self.exchange = Some(Exchange {
            task: request.task,
            request: Request::Run(Box::new(request)),
            started: now,
            timeout: self.timeout,
            cut_off: None,
            step: Step::Connecting {
                retry_at: now,
                pause: RETRY_FIRST,
                give_up_at: now + self.timeout.min(CONNECT_WAIT),
            },
        });
        self.connect(now);
    }

    /// Whether a run was asked for that is not finished.
    pub const fn is_running(&self) -> bool {
        self.exchange.is_some()
    }

    /// The time limit of the run that was asked for and is not finished. After a reload it may go
    /// by the old limit or by the new one: this is the longer of the two.
    pub fn time_limit(&self) -> Option<Duration> {
        self.exchange.as_ref().map(|exchange| exchange.timeout.max(self.timeout))
    }

    /// The task of a run that the hook-runner could not be asked for yet.
    pub fn waiting(&self) -> Option<&Task> {
        let exchange = self.exchange.as_ref()?;
        matches!(exchange.step, Step::Connecting { .. }).then_some(&exchange.task)
    }

    /// Ends the run: TERM now, KILL at `by`. One that was not handed over yet is not begun.
    pub fn cut_short(&mut self, by: Time, now: Time) {
        let Some(exchange) = &mut self.exchange else { return };
        let Step::Asked { stream, give_up_at, .. } = &mut exchange.step else {
            return self.give_up(&ClientError::CutShort, now);
        };
        let end = by.max(now) + KILL_WAIT + ANSWER_MARGIN;
        exchange.cut_off = Some(end);
        *give_up_at = (*give_up_at).min(end);
        if let Err(error) = protocol::send(stream, &Request::CutShort(by.since(now))) {
            exchange.task.log(Level::Error, format_args!("cannot be cut short: {error}"));
        }
    }

    /// The connection is ready to be read.
    pub fn handle_socket(&mut self, now: Time) {
        match self.receive(now) {
            Ok(None) => {}
            Ok(Some(finished)) => self.finish(finished),
            Err(error) => self.give_up(&error, now),
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.exchange.as_ref().map(|exchange| &exchange.step) {
            Some(Step::Connecting { retry_at, .. }) if now >= *retry_at => self.connect(now),
            Some(Step::Asked { has_begun, give_up_at, .. }) if now >= *give_up_at => {
                if *has_begun {
                    // The end may have been reported since the last look.
                    self.handle_socket(now);
                    self.give_up(&ClientError::Silent, now);
                } else {
                    self.take_back(now);
                }
            }
            _ => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.exchange.as_ref().map(|exchange| match exchange.step {
            Step::Connecting { retry_at, .. } => retry_at,
            Step::Asked { give_up_at, .. } => give_up_at,
        })
    }

    /// How the run ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        self.finished.take()
    }

    /// Whether the hook-runner refused a run, once.
    pub fn poll_refused(&mut self) -> bool {
        std::mem::take(&mut self.is_refused)
    }

    fn connect(&mut self, now: Time) {
        let longest_run = self.longest_run();
        let Some(exchange) = &mut self.exchange else { return };
        let Step::Connecting { retry_at, pause, give_up_at } = &mut exchange.step else { return };
        match self.door.hand_over(&exchange.request) {
            Ok(stream) => {
                exchange.step = Step::Asked {
                    stream,
                    reader: LineReader::default(),
                    has_begun: false,
                    give_up_at: now + longest_run,
                };
            }
            Err(source) if now < *give_up_at => {
                exchange
                    .task
                    .log(Level::Debug, format_args!("waits for the hook-runner: {source}"));
                *retry_at = (now + *pause).min(*give_up_at);
                *pause = (*pause * 2).min(RETRY_MAX);
            }
            Err(source) => {
                let error = self.door.unreachable(source);
                self.give_up(&error, now);
            }
        }
    }

    /// Takes back a run whose turn did not come. From the shutdown on, the hook-runner can no
    /// longer tell that the hook starts, and so does not start it; what it told before is still
    /// there.
    fn take_back(&mut self, now: Time) {
        let Some(Exchange { started, step: Step::Asked { stream, .. }, .. }) = &self.exchange
        else {
            return;
        };
        let waited = now.since(*started);
        // Fails only if the hook-runner has hung up, and that is as good.
        let _ = stream.shutdown(Shutdown::Read);
        match self.receive(now) {
            Ok(Some(finished)) => self.finish(finished),
            Ok(None) | Err(_) => self.give_up(&ClientError::NoTurn(waited), now),
        }
    }

    /// Reads what the hook-runner sent; none if the run has not ended. A run that begins gets its
    /// time limit from then on.
    fn receive(&mut self, now: Time) -> Result<Option<HookFinished>, ClientError> {
        let run_end = now + self.longest_run();
        let Some(Exchange { cut_off, step, .. }) = &mut self.exchange else { return Ok(None) };
        let run_end = cut_off.map_or(run_end, |end| end.min(run_end));
        let Step::Asked { stream, reader, has_begun, give_up_at } = step else { return Ok(None) };
        let connection = reader.read(stream);
        // What it said before the connection failed counts.
        while let Some(reply) = reader.poll_message()? {
            match reply {
                RunReply::Started => (*has_begun, *give_up_at) = (true, run_end),
                RunReply::Finished(finished) => return Ok(Some(finished)),
                RunReply::Stuck => return Err(ClientError::Stuck),
                RunReply::Refused(reason) => return Err(ClientError::Refused(reason)),
                RunReply::Agreed => return Err(LineError::OutOfTurn.into()),
            }
        }
        match connection? {
            Connection::Closed => Err(ClientError::HungUp),
            Connection::Open => Ok(None),
        }
    }

    /// How long a hook-runner that goes by the same settings may take at the most to end a hook:
    /// the one that was asked for, or the one before it, whose daemon may have died.
    fn longest_run(&self) -> Duration {
        let limit = self.time_limit().unwrap_or(self.timeout);
        longest_run(limit).saturating_add(ANSWER_MARGIN)
    }

    fn finish(&mut self, finished: HookFinished) {
        if let Some(exchange) = self.exchange.take() {
            // A hook-runner in this process has logged it.
            if matches!(self.door, Door::Socket { .. }) {
                finished.log(&exchange.task);
            }
            self.is_in_vain = false;
            self.finished = Some(finished);
        }
    }

    fn give_up(&mut self, error: &ClientError, now: Time) {
        let Some(exchange) = self.exchange.take() else { return };
        let took = now.since(exchange.started);
        let (finished, what) = match error {
            _ if exchange.may_have_begun(error) => (HookFinished::lost(took), "failed"),
            ClientError::NoTurn(_) | ClientError::Stuck => {
                (HookFinished::no_turn(took), "did not run")
            }
            _ => (HookFinished::not_run(took), "did not run"),
        };
        let predicate = format!("{what}: {error}");
        if self.is_in_vain {
            exchange.task.log(Level::Error, predicate);
        } else {
            log::error!("{} {predicate}", exchange.task);
        }
        self.is_in_vain = true;
        self.is_refused = matches!(error, ClientError::Refused(_));
        self.finished = Some(finished);
    }
}

impl Exchange {
    /// Whether the hook may have begun, where the exchange failed with `error`. What sends rubbish
    /// is no hook-runner that we know, and may do anything.
    const fn may_have_begun(&self, error: &ClientError) -> bool {
        let is_rubbish =
            matches!(error, ClientError::Reply(LineError::Malformed(_) | LineError::TooLong));
        matches!(self.step, Step::Asked { has_begun: true, .. }) || is_rubbish
    }
}

impl Door {
    /// Connects and sends the request. Where either fails, the hook-runner did not get it.
    pub(super) fn hand_over(&self, request: &Request) -> io::Result<UnixStream> {
        let stream = match self {
            Door::Socket { path, registry, token } => {
                let mut stream = UnixStream::connect(path)?;
                registry.register(&mut stream, *token, Interest::READABLE)?;
                stream
            }
            Door::Own(server) => {
                let (ours, theirs) = UnixStream::pair()?;
                server.send(theirs).map_err(io::Error::other)?;
                ours
            }
        };
        protocol::send(&stream, request)?;
        Ok(stream)
    }

    fn unreachable(&self, source: io::Error) -> ClientError {
        match self {
            Door::Socket { path, .. } => ClientError::Unreachable { path: path.clone(), source },
            Door::Own(_) => ClientError::NoPair(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream as StdStream};

    use mio::{Events, Poll};
    use tempfile::TempDir;

    use super::super::testing::{demoted, elected, request};
    use super::*;
    use crate::core::hook::HookOutcome;

    const START: Time = Time::from_millis(1_000);
    const LIMIT: Duration = Duration::from_secs(30);
    const LONGEST_RUN: Duration = Duration::from_secs(30 + 5 + 2 + 3);

    /// A client and the place where a hook-runner would listen.
    struct Bench {
        poll: Poll,
        client: HookClient,
        dir: TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let (poll, dir) = (Poll::new().unwrap(), TempDir::new().unwrap());
            let registry = Arc::new(poll.registry().try_clone().unwrap());
            let path = dir.path().join("hook.sock");
            let door = Door::Socket { path, registry, token: Token(3) };
            Bench { poll, client: HookClient::new(door, LIMIT), dir }
        }

        fn listen(&self) -> UnixListener {
            UnixListener::bind(self.dir.path().join("hook.sock")).unwrap()
        }

        /// Handles events of the client's connection until the run ends.
        fn finish(&mut self, now: Time) -> HookFinished {
            let mut events = Events::with_capacity(4);
            for _ in 0..100 {
                self.poll.poll(&mut events, Some(Duration::from_millis(300))).unwrap();
                if events.iter().any(|event| event.token() == Token(3)) {
                    self.client.handle_socket(now);
                }
                if let Some(finished) = self.client.poll_finished() {
                    return finished;
                }
            }
            panic!("the run did not end");
        }

        /// Calls the client whenever it wants to be called, until the run ends.
        fn time_out(&mut self) -> (HookFinished, Time) {
            for _ in 0..100 {
                let now = self.client.poll_timeout().unwrap();
                self.client.handle_timeout(now);
                if let Some(finished) = self.client.poll_finished() {
                    return (finished, now);
                }
            }
            panic!("the run did not end");
        }
    }

    /// Accepts a connection and reads its request.
    fn accept(listener: &UnixListener) -> (StdStream, RunRequest) {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        let Request::Run(request) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
        (stream, *request)
    }

    #[test]
    fn a_run_is_asked_for_and_its_end_is_told() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        for (run, exit) in [(elected(7), 0), (demoted(8), 3)] {
            bench.client.start(request(run), START);
            let (stream, asked) = accept(&listener);
            assert_eq!(asked, request(run));
            let told = HookFinished {
                outcome: HookOutcome::Succeeded,
                exit: Some(exit),
                took: Duration::from_millis(12),
                forced: None,
            };
            assert_eq!(bench.client.poll_finished(), None);
            protocol::send(&stream, &RunReply::Started).unwrap();
            protocol::send(&stream, &RunReply::Finished(told)).unwrap();
            drop(stream);
            assert_eq!(bench.finish(START), told);
            assert_eq!(bench.client.poll_timeout(), None);
        }
    }

    #[test]
    fn a_hook_runner_that_hangs_up_mid_run_failed_it_and_the_next_one_has_a_new_chance() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        protocol::send(&stream, &RunReply::Started).unwrap();
        drop(stream);
        let now = START + Duration::from_millis(40);
        assert_eq!(bench.finish(now), HookFinished::lost(Duration::from_millis(40)));

        bench.client.start(request(demoted(8)), now);
        assert_eq!(accept(&listener).1.task, Task::Hook(demoted(8)));
    }

    #[test]
    fn a_hook_runner_that_hangs_up_before_it_said_that_the_hook_starts_did_not_run_it() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        drop(accept(&listener));
        let now = START + Duration::from_millis(40);
        assert_eq!(bench.finish(now), HookFinished::not_run(Duration::from_millis(40)));
    }

    #[test]
    fn a_hook_runner_that_hangs_up_on_an_unread_request_did_not_run_it() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        drop(listener.accept().unwrap());
        assert_eq!(bench.finish(START), HookFinished::not_run(Duration::ZERO));
    }

    #[test]
    fn a_refused_run_did_not_run_and_after_rubbish_nothing_is_known() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        for (reply, outcome) in [
            ("{\"refused\":\"no\"}\n", HookOutcome::NotRun),
            ("rubbish\n", HookOutcome::Lost),
            ("\n", HookOutcome::Lost),
            ("{}\n{}\n", HookOutcome::Lost),
        ] {
            bench.client.start(request(elected(7)), START);
            let (mut stream, _) = accept(&listener);
            stream.write_all(reply.as_bytes()).unwrap();
            assert_eq!(bench.finish(START).outcome, outcome, "{reply:?}");
        }
    }

    #[test]
    fn an_endless_reply_is_cut_off() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (mut stream, _) = accept(&listener);
        stream.write_all(&[b' '; protocol::LINE_MAX + 1]).unwrap();
        assert_eq!(bench.finish(START).outcome, HookOutcome::Lost);
    }

    #[test]
    fn a_hook_runner_that_stays_away_is_given_up_within_the_bound() {
        let mut bench = Bench::new();
        bench.client.start(request(elected(7)), START);
        assert_eq!(bench.client.poll_finished(), None);
        let (finished, now) = bench.time_out();
        assert_eq!(finished, HookFinished::not_run(CONNECT_WAIT));
        assert_eq!(now, START + CONNECT_WAIT);
    }

    #[test]
    fn a_short_time_limit_shortens_the_wait_for_a_connection() {
        let mut bench = Bench::new();
        let short = Duration::from_millis(70);
        bench.client.set_timeout(short);
        bench.client.start(request(elected(7)), START);
        assert_eq!(bench.time_out().1, START + short);
    }

    #[test]
    fn a_hook_runner_that_comes_up_late_is_found() {
        let mut bench = Bench::new();
        bench.client.start(request(elected(7)), START);
        let listener = bench.listen();
        // A wake before the time changes nothing.
        bench.client.handle_timeout(START);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
        listener.set_nonblocking(false).unwrap();

        let retry = bench.client.poll_timeout().unwrap();
        bench.client.handle_timeout(retry);
        assert_eq!(accept(&listener).1.task, Task::Hook(elected(7)));
    }

    #[test]
    fn a_run_whose_turn_does_not_come_is_taken_back_and_did_not_run() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        assert_eq!(bench.client.poll_timeout(), Some(START + LONGEST_RUN));
        bench.client.handle_timeout(START + LIMIT);
        assert_eq!(bench.client.poll_finished(), None);
        assert_eq!(bench.time_out().0, HookFinished::no_turn(LONGEST_RUN));
        // What the hook-runner finds when its turn would have come.
        assert!(protocol::send(&stream, &RunReply::Started).is_err());
    }

    #[test]
    fn a_run_that_began_unnoticed_before_it_was_taken_back_is_not_said_not_to_have_run() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        protocol::send(&stream, &RunReply::Started).unwrap();
        assert_eq!(bench.time_out().0, HookFinished::lost(LONGEST_RUN));
    }

    #[test]
    fn end_that_was_reported_in_time_but_not_read_counts() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(demoted(7)), START);
        let (stream, _) = accept(&listener);
        protocol::send(&stream, &RunReply::Started).unwrap();
        bench.client.handle_socket(START);
        let told =
            HookFinished { outcome: HookOutcome::Succeeded, ..HookFinished::lost(Duration::ZERO) };
        protocol::send(&stream, &RunReply::Finished(told)).unwrap();
        assert_eq!(bench.time_out().0, told);
    }

    #[test]
    fn the_wait_for_ones_turn_does_not_count_against_the_run() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        let begin = START + LIMIT;
        protocol::send(&stream, &RunReply::Started).unwrap();
        let mut events = Events::with_capacity(4);
        for _ in 0..100 {
            bench.poll.poll(&mut events, Some(Duration::from_millis(300))).unwrap();
            bench.client.handle_socket(begin);
            if bench.client.poll_timeout() != Some(START + LONGEST_RUN) {
                break;
            }
        }
        assert_eq!(bench.client.poll_timeout(), Some(begin + LONGEST_RUN));
        // Silent from here on, it is given up when every limit is over.
        bench.client.handle_timeout(START + LONGEST_RUN);
        assert_eq!(bench.client.poll_finished(), None);
        assert_eq!(bench.time_out().0.outcome, HookOutcome::Lost);
    }

    /// The hook-runner may go by the old limit or by the new one.
    #[test]
    fn run_that_begins_after_a_reload_has_the_longer_limit() {
        for (new, give_up_after) in [(LIMIT / 10, LONGEST_RUN), (LIMIT * 2, LONGEST_RUN + LIMIT)] {
            let mut bench = Bench::new();
            let listener = bench.listen();
            bench.client.start(request(elected(7)), START);
            let (stream, _) = accept(&listener);
            bench.client.set_timeout(new);
            protocol::send(&stream, &RunReply::Started).unwrap();
            bench.client.handle_socket(START);
            assert_eq!(bench.client.poll_timeout(), Some(START + give_up_after));
            assert_eq!(bench.client.time_limit(), Some(LIMIT.max(new)));
        }
    }

    /// What the daemon says next on a connection.
    fn next_request(stream: &StdStream) -> Request {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_run_that_is_cut_short_is_told_so_and_its_end_is_waited_for() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        protocol::send(&stream, &RunReply::Started).unwrap();
        let by = START + Duration::from_secs(2);
        bench.client.cut_short(by, START);
        assert_eq!(next_request(&stream), Request::CutShort(Duration::from_secs(2)));
        // Its beginning, told before, gives it no more time.
        bench.client.handle_socket(START);
        assert_eq!(bench.client.poll_timeout(), Some(by + KILL_WAIT + ANSWER_MARGIN));
        assert_eq!(bench.client.poll_finished(), None);
        let told =
            HookFinished { outcome: HookOutcome::Failed, ..HookFinished::lost(Duration::ZERO) };
        protocol::send(&stream, &RunReply::Finished(told)).unwrap();
        assert_eq!(bench.finish(START), told);
    }

    #[test]
    fn a_hook_runner_that_does_not_cut_a_run_short_is_given_up() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(request(elected(7)), START);
        let (stream, _) = accept(&listener);
        protocol::send(&stream, &RunReply::Started).unwrap();
        bench.client.cut_short(START, START + LIMIT / 2);
        let (finished, now) = bench.time_out();
        assert_eq!(finished.outcome, HookOutcome::Lost);
        assert_eq!(now, START + LIMIT / 2 + KILL_WAIT + ANSWER_MARGIN);
    }

    #[test]
    fn a_run_that_is_cut_short_before_the_hook_runner_was_reached_did_not_run() {
        let mut bench = Bench::new();
        bench.client.start(request(elected(7)), START);
        bench.client.cut_short(START + LIMIT, START);
        assert_eq!(bench.client.poll_finished(), Some(HookFinished::not_run(Duration::ZERO)));
        assert_eq!(bench.client.poll_timeout(), None);
        bench.client.cut_short(START, START);
        assert_eq!(bench.client.poll_finished(), None);
    }

    #[test]
    fn calls_without_a_run_are_harmless() {
        let mut client = Bench::new().client;
        client.handle_socket(START);
        client.handle_timeout(START);
        assert_eq!(client.poll_finished(), None);
        assert_eq!(client.poll_timeout(), None);
    }
}
