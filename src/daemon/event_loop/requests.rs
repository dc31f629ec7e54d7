//! What clients of the control socket are answered.

use super::Daemon;
use crate::control_api::{Counters, Done, Refusal, RefusalKind, Request, Response, StatusReport};
use crate::core::election::{YieldError, Yielding};
use crate::daemon::control::Incoming;
use crate::daemon::report::{self, Surroundings};
use crate::time::Time;

impl Daemon {
    pub(super) fn answer_requests(&mut self, now: Time) {
        while let Some(incoming) = self.control.poll_request() {
            let response = self.answer(&incoming, now);
            self.carry_out(now);
            self.save();
            let response = self.with_store_failure(incoming.request, response);
            self.control.respond(incoming.client, &response);
        }
    }

    fn answer(&mut self, incoming: &Incoming, now: Time) -> Response {
        if incoming.request.is_command() {
            log::info!("{:?} asked for by {}", incoming.request, incoming.peer);
        }
        match incoming.request {
            Request::Status => Response::Status(Box::new(self.status(now))),
            Request::IsLeader => Response::Leader(self.election.is_leader()),
            Request::Watch => Response::Ok(Done::Watching),
            Request::Yield => self.yield_leadership(now),
            Request::Maintenance { on } => {
                self.election.set_maintenance(now, on);
                Response::Ok(if on { Done::MaintenanceOn } else { Done::MaintenanceOff })
            }
        }
    }

    fn yield_leadership(&mut self, now: Time) -> Response {
        match self.election.yield_leadership(now) {
            Ok(Yielding::Began) => Response::Ok(Done::Yielding),
            Ok(Yielding::Already) => Response::Ok(Done::AlreadyYielding),
            Err(error) => {
                let kind = match error {
                    YieldError::NotLeader => RefusalKind::NotLeader,
                    YieldError::StaticRole => RefusalKind::StaticRole,
                };
                Response::Refused(Refusal { kind, message: error.to_string() })
            }
        }
    }

    /// Maintenance that would not outlive a restart is not what was asked for.
    fn with_store_failure(&self, request: Request, response: Response) -> Response {
        match (request, &self.store_failure) {
            (Request::Maintenance { .. }, Some(failure)) => Response::Refused(Refusal {
                kind: RefusalKind::Failed,
                message: format!(
                    "it holds until the daemon restarts, but was not saved: {failure}"
                ),
            }),
            _ => response,
        }
    }

    fn status(&self, now: Time) -> StatusReport {
        let mut rejected = self.rejections.counts();
        rejected.replayed = self.election.ignored().stale;
        rejected.table_full = self.election.ignored().table_full;
        rejected.absurd_term = self.election.ignored().absurd_term;
        report::status(
            self.election.status(now),
            Surroundings {
                group: self.config.group,
                own_address: self.transport.source_address(),
                uptime: now.since(self.started_at),
                interfaces: self.transport.reports(),
                hook: self.hooks.report().clone(),
                counters: Counters {
                    datagrams_sent: self.transport.sent(),
                    datagrams_received: self.received,
                    send_errors: self.transport.send_errors(),
                    rejected,
                    transitions: self.transitions,
                    state_saves: 0,
                    fences: 0,
                },
            },
        )
    }
}
