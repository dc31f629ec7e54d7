//! The hook-runner of a simulated host. It outlives the daemon, and its commands take as long as
//! the simulation says.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::core::hook::HookOutcome;
use crate::hooks::protocol::{self, Connection, LineReader, Request, RunReply, RunRequest};
use crate::hooks::{Forced, HookFinished, Lane, Task};
use crate::time::Time;

/// A connection of a daemon.
struct Client {
    number: u64,
    stream: UnixStream,
    reader: LineReader,
    run: Option<Run>,
}

/// A run that a daemon has requested.
struct Run {
    task: Task,
    /// When it began; none while it waits for its turn.
    began: Option<Time>,
    /// Whether the daemon wants it to end.
    is_cut_short: bool,
}

/// What has happened to a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Progress {
    /// The daemon has requested it.
    Requested(Task),
    /// It begins. It is to end by [`HookRunner::end`].
    Began(Ticket, Task),
    /// It has to end within that time.
    CutShort(Ticket, Duration),
}

/// Names a run.
pub(super) type Ticket = u64;

/// The hook-runner.
pub(super) struct HookRunner {
    path: PathBuf,
    listener: Option<UnixListener>,
    clients: Vec<Client>,
    connections: u64,
    /// Runs whose daemon has hung up.
    orphans: Vec<(Ticket, Task)>,
}

impl HookRunner {
    pub(super) fn new(path: PathBuf) -> Self {
        let (clients, orphans) = (Vec::new(), Vec::new());
        let mut runner = HookRunner { path, listener: None, clients, connections: 0, orphans };
        runner.start();
        runner
    }

    /// Listens.
    pub(super) fn start(&mut self) {
        if self.listener.is_none() {
            let listener = UnixListener::bind(&self.path).unwrap();
            listener.set_nonblocking(true).unwrap();
            self.listener = Some(listener);
        }
    }

    /// Ends, and with it whatever it runs.
    pub(super) fn stop(&mut self) {
        self.listener = None;
        self.clients.clear();
        self.orphans.clear();
        // There is none if it had stopped before.
        let _ = fs::remove_file(&self.path);
    }

    /// Reads what daemons have sent, and starts the runs whose turn has come.
    pub(super) fn serve(&mut self, now: Time) -> Vec<Progress> {
        let mut news = Vec::new();
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept) {
            stream.set_nonblocking(true).unwrap();
            self.connections += 1;
            let reader = LineReader::default();
            self.clients.push(Client { number: self.connections, stream, reader, run: None });
        }
        let clients = std::mem::take(&mut self.clients);
        for mut client in clients {
            if client.listen(&mut news) {
                self.clients.push(client);
            } else if let Some(Run { task, began: Some(_), .. }) = client.run {
                self.orphans.push((client.number, task));
            }
        }
        for lane in Lane::ALL {
            self.start_next(lane, now, &mut news);
        }
        news
    }

    /// Ends what dead daemons have left. Returns whether it can run anything.
    pub(super) fn end_orphans(&mut self) -> bool {
        self.orphans.clear();
        self.listener.is_some()
    }

    /// A run ends: it succeeds, or not. Returns what ran, unless it was over before.
    pub(super) fn end(&mut self, ticket: Ticket, succeeds: bool, now: Time) -> Option<Task> {
        let orphan = self.orphans.iter().position(|(number, _)| *number == ticket);
        if let Some(orphan) = orphan {
            return Some(self.orphans.remove(orphan).1);
        }
        let place = self.clients.iter().position(|client| client.number == ticket)?;
        let Client { stream, run: Some(run), .. } = self.clients.remove(place) else { return None };
        let finished = HookFinished {
            outcome: if succeeds { HookOutcome::Succeeded } else { HookOutcome::Failed },
            exit: Some(i32::from(!succeeds)),
            took: now.since(run.began?),
            forced: (run.is_cut_short && !succeeds).then_some(Forced::CutShort),
        };
        // The daemon may have died.
        let _ = protocol::send(&stream, &RunReply::Finished(finished));
        Some(run.task)
    }

    pub(super) fn is_busy(&self, lane: Lane) -> bool {
        let in_lane = |task: &Task| task.lane() == lane;
        let runs = self.clients.iter().filter_map(|client| client.run.as_ref());
        runs.filter(|run| run.began.is_some()).any(|run| in_lane(&run.task))
            || self.orphans.iter().any(|(_, task)| in_lane(task))
    }

    fn start_next(&mut self, lane: Lane, now: Time, news: &mut Vec<Progress>) {
        loop {
            let waits = |run: &Run| run.began.is_none() && run.task.lane() == lane;
            let next =
                self.clients.iter().position(|client| client.run.as_ref().is_some_and(waits));
            let Some(next) = next else { return };
            if self.is_busy(lane) {
                // A hook that a dead daemon left is ended first.
                let orphan = self.orphans.iter().find(|(_, task)| task.lane() == lane);
                news.extend(orphan.map(|(number, _)| Progress::CutShort(*number, Duration::ZERO)));
                return;
            }
            // A daemon that has hung up by now has withdrawn it.
            if protocol::send(&self.clients[next].stream, &RunReply::Started).is_err() {
                self.clients.remove(next);
                continue;
            }
            let Client { number, run: Some(run), .. } = &mut self.clients[next] else { return };
            run.began = Some(now);
            news.push(Progress::Began(*number, run.task));
        }
    }
}

impl Client {
    /// Reads its requests. Returns whether it is still there.
    fn listen(&mut self, news: &mut Vec<Progress>) -> bool {
        let connection = match self.reader.read(&self.stream) {
            Ok(connection) => connection,
            Err(protocol::LineError::Io(error)) if error.kind() == ErrorKind::ConnectionReset => {
                return false;
            }
            Err(error) => panic!("the daemon sends rubbish: {error}"),
        };
        while let Some(request) = self.reader.poll_message::<Request>().unwrap() {
            match request {
                Request::Agree { .. } => {
                    // The daemon may have died.
                    let _ = protocol::send(&self.stream, &RunReply::Agreed);
                    return false;
                }
                Request::Run(request) => {
                    let RunRequest { task, .. } = *request;
                    news.push(Progress::Requested(task));
                    self.run = Some(Run { task, began: None, is_cut_short: false });
                }
                Request::CutShort(within) => {
                    let Some(run) = &mut self.run else { panic!("nothing is to be cut short") };
                    run.is_cut_short = true;
                    if run.began.is_some() {
                        news.push(Progress::CutShort(self.number, within));
                    } else {
                        let withdrawn = RunReply::Finished(HookFinished::not_run(Duration::ZERO));
                        let _ = protocol::send(&self.stream, &withdrawn);
                        return false;
                    }
                }
            }
        }
        connection == Connection::Open
    }
}
