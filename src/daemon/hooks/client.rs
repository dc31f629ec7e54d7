//! The daemon's end of the hook-runner's socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::process::{self, KILL_GRACE, KILL_WAIT};
use super::protocol::{self, Connection, LineError, LineReader, RunReply, RunRequest};
use super::{HookFinished, HookNode};
use crate::core::hook::HookRun;
use crate::time::Time;

/// How long a run waits for a hook-runner that cannot be reached, where the hook's own time limit
/// is not shorter: long enough for one that is just being started.
pub const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Beyond what the hook-runner itself may take before it must answer, how long it has to do so.
pub const ANSWER_MARGIN: Duration = Duration::from_secs(3);

/// Before the first new attempt to connect; doubles with each.
const RETRY_FIRST: Duration = Duration::from_millis(50);

/// Longest pause between attempts to connect.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Has hooks run by the hook-runner, one at a time. Never blocks.
///
/// Its connection shows up under the token that it was given; each event there goes to
/// [`handle_socket`](Self::handle_socket). Otherwise it is used as a
/// [`HookProcess`](super::HookProcess) is.
#[derive(Debug)]
pub struct HookClient {
    path: PathBuf,
    registry: Registry,
    token: Token,
    timeout: Duration,
    exchange: Option<Exchange>,
    finished: Option<HookFinished>,
}

/// A run that the hook-runner is asked for.
#[derive(Debug)]
struct Exchange {
    name: String,
    request: RunRequest,
    started: Time,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Connecting { retry_at: Time, pause: Duration, give_up_at: Time },
    Waiting { stream: UnixStream, reply: LineReader, give_up_at: Time },
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
enum ClientError {
    #[error("the hook-runner cannot be reached at {path}: {source}; is its unit running?")]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("the hook-runner {0}")]
    Reply(#[from] LineError),
    #[error("the hook-runner hung up before it told how the hook ended; its log may say why")]
    HungUp,
    #[error("the hook-runner refused: {0}")]
    Refused(String),
    #[error("the hook-runner did not answer within {}", humantime::format_duration(*.0))]
    Silent(Duration),
}

impl HookClient {
    /// For the hook-runner that listens at `path`. Connections are registered with `registry` under
    /// `token`. `timeout` is the hook's time limit.
    pub fn new(path: PathBuf, timeout: Duration, registry: Registry, token: Token) -> Self {
        HookClient { path, registry, token, timeout, exchange: None, finished: None }
    }

    /// Takes another time limit, from the next run on.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Starts `run`. Only to be called when the run before is finished.
    pub fn start(&mut self, run: &HookRun, node: &HookNode, now: Time) {
        let name = process::name(run);
        if let Some(exchange) = &self.exchange {
            log::error!("{name} was asked for while {} still runs: dropped", exchange.name);
            return;
        }
        self.exchange = Some(Exchange {
            name,
            request: RunRequest { run: *run, node: node.clone() },
            started: now,
            step: Step::Connecting {
                retry_at: now,
                pause: RETRY_FIRST,
                give_up_at: now + self.timeout.min(CONNECT_WAIT),
            },
        });
        self.handle_timeout(now);
    }

    /// The connection is ready to be read.
    pub fn handle_socket(&mut self, now: Time) {
        let Some(Exchange { step: Step::Waiting { stream, reply, .. }, .. }) = &mut self.exchange
        else {
            return;
        };
        match receive(stream, reply) {
            Ok(None) => {}
            Ok(Some(finished)) => self.finish(finished),
            Err(error) => self.fail(&error, now),
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.exchange.as_ref().map(|exchange| &exchange.step) {
            Some(Step::Connecting { retry_at, .. }) if now >= *retry_at => self.connect(now),
            Some(Step::Waiting { give_up_at, .. }) if now >= *give_up_at => {
                self.fail(&ClientError::Silent(self.answer_wait()), now);
            }
            _ => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.exchange.as_ref().map(|exchange| match exchange.step {
            Step::Connecting { retry_at, .. } => retry_at,
            Step::Waiting { give_up_at, .. } => give_up_at,
        })
    }

    /// How the run ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        self.finished.take()
    }

    fn connect(&mut self, now: Time) {
        let answer_wait = self.answer_wait();
        let Some(exchange) = &mut self.exchange else { return };
        let Step::Connecting { retry_at, pause, give_up_at } = &mut exchange.step else { return };
        match hand_over(&self.path, &self.registry, self.token, &exchange.request) {
            Ok(stream) => {
                log::debug!("{} handed to the hook-runner", exchange.name);
                let (reply, give_up_at) = (LineReader::default(), now + answer_wait);
                exchange.step = Step::Waiting { stream, reply, give_up_at };
            }
            Err(source) if now < *give_up_at => {
                log::debug!("{} waits for the hook-runner: {source}", exchange.name);
                *retry_at = (now + *pause).min(*give_up_at);
                *pause = (*pause * 2).min(RETRY_MAX);
            }
            Err(source) => {
                let path = self.path.clone();
                self.fail(&ClientError::Unreachable { path, source }, now);
            }
        }
    }

    /// How long a hook-runner that goes by the same settings may take at the most.
    fn answer_wait(&self) -> Duration {
        self.timeout.saturating_add(KILL_GRACE + KILL_WAIT + ANSWER_MARGIN)
    }

    fn finish(&mut self, finished: HookFinished) {
        if let Some(exchange) = self.exchange.take() {
            process::log_end(&exchange.name, &finished);
            self.finished = Some(finished);
        }
    }

    fn fail(&mut self, error: &ClientError, now: Time) {
        if let Some(exchange) = self.exchange.take() {
            log::error!("{} failed: {error}", exchange.name);
            self.finished = Some(HookFinished::failed(now.since(exchange.started)));
        }
    }
}

/// Connects and sends the request. Where either fails, the hook-runner did not get it.
fn hand_over(
    path: &Path,
    registry: &Registry,
    token: Token,
    request: &RunRequest,
) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    registry.register(&mut stream, token, Interest::READABLE)?;
    protocol::send(&stream, request)?;
    Ok(stream)
}

/// Reads what the hook-runner sent; none where it still runs the hook.
fn receive(
    stream: &mut UnixStream,
    reply: &mut LineReader,
) -> Result<Option<HookFinished>, ClientError> {
    let connection = reply.read(stream)?;
    match (reply.message()?, connection) {
        (Some(RunReply::Finished(finished)), _) => Ok(Some(finished)),
        (Some(RunReply::Refused(reason)), _) => Err(ClientError::Refused(reason)),
        (None, Connection::Closed) => Err(ClientError::HungUp),
        (None, Connection::Open) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream as StdStream};

    use mio::{Events, Poll};
    use tempfile::TempDir;

    use super::super::testing::{demoted, elected, node};
    use super::*;
    use crate::core::hook::HookOutcome;

    const START: Time = Time::from_millis(1_000);
    const LIMIT: Duration = Duration::from_secs(30);

    /// A client and the place where a hook-runner would listen.
    struct Bench {
        poll: Poll,
        client: HookClient,
        dir: TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let (poll, dir) = (Poll::new().unwrap(), TempDir::new().unwrap());
            let registry = poll.registry().try_clone().unwrap();
            let path = dir.path().join("hook.sock");
            Bench { poll, client: HookClient::new(path, LIMIT, registry, Token(3)), dir }
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
        (stream, serde_json::from_str(&line).unwrap())
    }

    #[test]
    fn a_run_is_asked_for_and_its_end_is_told() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        for (run, exit) in [(elected(7), 0), (demoted(8), 3)] {
            bench.client.start(&run, &node(), START);
            let (stream, request) = accept(&listener);
            assert_eq!(request, RunRequest { run, node: node() });
            let told = HookFinished {
                outcome: HookOutcome::Succeeded,
                exit: Some(exit),
                took: Duration::from_millis(12),
                overran: false,
            };
            assert_eq!(bench.client.poll_finished(), None);
            protocol::send(&stream, &RunReply::Finished(told)).unwrap();
            drop(stream);
            assert_eq!(bench.finish(START), told);
            assert_eq!(bench.client.poll_timeout(), None);
        }
    }

    #[test]
    fn a_hook_runner_that_hangs_up_failed_the_run_and_the_next_one_has_a_new_chance() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(&elected(7), &node(), START);
        drop(accept(&listener));
        let now = START + Duration::from_millis(40);
        assert_eq!(bench.finish(now), HookFinished::failed(Duration::from_millis(40)));

        bench.client.start(&demoted(8), &node(), now);
        assert_eq!(accept(&listener).1.run, demoted(8));
    }

    #[test]
    fn refusals_and_rubbish_are_failures() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        for reply in ["{\"refused\":\"no\"}\n", "rubbish\n", "\n", "{}\n{}\n"] {
            bench.client.start(&elected(7), &node(), START);
            let (mut stream, _) = accept(&listener);
            stream.write_all(reply.as_bytes()).unwrap();
            assert_eq!(bench.finish(START).outcome, HookOutcome::Failed, "{reply:?}");
        }
    }

    #[test]
    fn an_endless_reply_is_cut_off() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(&elected(7), &node(), START);
        let (mut stream, _) = accept(&listener);
        stream.write_all(&[b' '; protocol::LINE_MAX + 1]).unwrap();
        assert_eq!(bench.finish(START).outcome, HookOutcome::Failed);
    }

    #[test]
    fn a_hook_runner_that_stays_away_is_given_up_within_the_bound() {
        let mut bench = Bench::new();
        bench.client.start(&elected(7), &node(), START);
        assert_eq!(bench.client.poll_finished(), None);
        let (finished, now) = bench.time_out();
        assert_eq!(finished, HookFinished::failed(CONNECT_WAIT));
        assert_eq!(now, START + CONNECT_WAIT);
    }

    #[test]
    fn a_short_time_limit_shortens_the_wait_for_a_connection() {
        let mut bench = Bench::new();
        let short = Duration::from_millis(70);
        bench.client.set_timeout(short);
        bench.client.start(&elected(7), &node(), START);
        assert_eq!(bench.time_out().1, START + short);
    }

    #[test]
    fn a_hook_runner_that_comes_up_late_is_found() {
        let mut bench = Bench::new();
        bench.client.start(&elected(7), &node(), START);
        let listener = bench.listen();
        // A wake before the time changes nothing.
        bench.client.handle_timeout(START);
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
        listener.set_nonblocking(false).unwrap();

        let retry = bench.client.poll_timeout().unwrap();
        bench.client.handle_timeout(retry);
        assert_eq!(accept(&listener).1.run, elected(7));
    }

    #[test]
    fn a_silent_hook_runner_is_given_up_when_every_limit_is_over() {
        let mut bench = Bench::new();
        let listener = bench.listen();
        bench.client.start(&elected(7), &node(), START);
        let _silent = accept(&listener);
        let bound = LIMIT + KILL_GRACE + KILL_WAIT + ANSWER_MARGIN;
        assert_eq!(bench.client.poll_timeout(), Some(START + bound));
        bench.client.handle_timeout(START + LIMIT);
        assert_eq!(bench.client.poll_finished(), None);
        assert_eq!(bench.time_out().0, HookFinished::failed(bound));
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
