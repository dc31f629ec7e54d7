//! Answers to clients of the control socket.
//!
//! Each answer reads the clock right before it leaves, and reports leadership as of that time. An
//! answer that promises something about a restart waits until that is on disk; nothing else waits
//! for the disk.

use std::collections::VecDeque;
use std::time::Duration;

use mio::Events;

use super::Daemon;
use super::report::millis;
use crate::control_api::{Done, Refusal, RefusalKind, Request, Response};
use crate::core::election::{Election, YieldError, Yielding};
use crate::daemon::control::{CLIENT_TIMEOUT, ClientId, Incoming, MAX_CLIENTS};
use crate::daemon::store::Ticket;
use crate::os::clock;
use crate::time::Time;

/// How long a client waits for the disk before it gets an error. Short enough that the client has
/// not timed out by then.
const REPLY_PATIENCE: Duration = CLIENT_TIMEOUT.saturating_sub(Duration::from_secs(1));

/// The answers that wait for the disk, oldest first.
#[derive(Debug, Default)]
pub(super) struct Replies(VecDeque<Reply>);

/// An answer to give once `ticket` is on disk or has failed.
#[derive(Debug)]
struct Reply {
    client: ClientId,
    done: Done,
    ticket: Ticket,
    give_up_at: Time,
}

impl Replies {
    /// When the oldest one times out.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.0.front().map(|reply| reply.give_up_at)
    }

    /// At most one for each client: if there are more, the client of the oldest one has hung up.
    fn push(&mut self, reply: Reply) {
        if self.0.len() == MAX_CLIENTS {
            self.0.pop_front();
        }
        self.0.push_back(reply);
    }
}

impl Daemon {
    /// Processes the requests of clients, and answers them.
    pub(super) fn serve_clients(&mut self, events: &Events) {
        for event in events {
            if self.control.owns(event.token()) {
                self.control.handle_event(event.token(), clock::now());
            }
        }
        if self.control.is_idle() && self.replies.0.is_empty() {
            return;
        }
        while let Some(incoming) = self.control.poll_request() {
            if let Some(response) = self.answer(&incoming) {
                self.control.respond(incoming.client, &response);
            }
        }
        self.answer_settled();
        self.control.handle_timeout(clock::now());
    }

    /// Answers the clients that waited for the disk, if their save has succeeded or failed.
    pub(super) fn answer_settled(&mut self) {
        let now = clock::now();
        while self
            .replies
            .0
            .front()
            .is_some_and(|reply| self.writer.is_settled(reply.ticket) || reply.give_up_at <= now)
        {
            let Some(reply) = self.replies.0.pop_front() else { return };
            let response = self.confirm(&reply);
            self.control.respond(reply.client, &response);
        }
    }

    /// None if the answer has to wait.
    fn answer(&mut self, incoming: &Incoming) -> Option<Response> {
        if incoming.request.is_command() {
            log::info!("received `{}` from {}", incoming.request, incoming.peer);
        }
        Some(match incoming.request {
            Request::Status => Response::Status(Box::new(self.status())),
            Request::IsLeader => Response::Leadership(self.leadership()),
            Request::IsReady => Response::Readiness(self.readiness()),
            Request::Watch => Response::Ok(Done::Watching),
            Request::Hold => Response::Ok(Done::Holding),
            // It waits for its checks to end, and neither sends nor keeps anything any more.
            Request::Ping | Request::Maintenance { .. } if self.stopped.is_some() => {
                let message = "the daemon is stopping; ask again when it runs";
                Response::Refused(Refusal::new(RefusalKind::Failed, message))
            }
            Request::Ping => self.ping(),
            Request::Yield { to: None } => self.hand_over(Election::yield_leadership),
            Request::Yield { to: Some(successor) } => {
                self.hand_over(|election, now| election.yield_to(now, successor))
            }
            Request::YieldFailed => self.hand_over(Election::yield_after_failure),
            Request::Maintenance { on } => return self.set_maintenance(incoming.client, on),
        })
    }

    fn ping(&mut self) -> Response {
        let within = self.election.ping(clock::now());
        self.carry_out();
        Response::Pinged { answers_within_ms: millis(within) }
    }

    fn hand_over(
        &mut self,
        command: impl FnOnce(&mut Election, Time) -> Result<Yielding, YieldError>,
    ) -> Response {
        let outcome = command(&mut self.election, clock::now());
        self.carry_out();
        match outcome {
            Ok(Yielding::Began) => Response::Ok(Done::Yielding),
            Ok(Yielding::Already) => Response::Ok(Done::AlreadyYielding),
            Err(error) => {
                let kind = match error {
                    YieldError::NotLeader => RefusalKind::NotLeader,
                    YieldError::StaticRole => RefusalKind::StaticRole,
                    YieldError::Successor { .. } => RefusalKind::NotSuccessor,
                };
                Response::Refused(Refusal::new(kind, error.to_string()))
            }
        }
    }

    /// The operator expects maintenance to survive a restart, so the answer waits for the disk.
    fn set_maintenance(&mut self, client: ClientId, on: bool) -> Option<Response> {
        let now = clock::now();
        self.election.set_maintenance(now, on);
        self.carry_out();
        let done = if on { Done::MaintenanceOn } else { Done::MaintenanceOff };
        let Some(ticket) = self.writer.insist(now) else { return Some(Response::Ok(done)) };
        self.replies.push(Reply { client, done, ticket, give_up_at: now + REPLY_PATIENCE });
        None
    }

    fn confirm(&self, reply: &Reply) -> Response {
        let failure = match self.writer.failure() {
            Some(failure) => failure,
            None if self.writer.is_settled(reply.ticket) => return Response::Ok(reply.done),
            None => "the disk does not respond",
        };
        let message = format!("applied until the daemon restarts, but not saved: {failure}");
        Response::Refused(Refusal::new(RefusalKind::Failed, message))
    }
}
