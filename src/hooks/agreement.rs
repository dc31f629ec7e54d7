//! Whether the hook-runner has the daemon's configuration. The daemon asks until it has.

use std::time::Duration;

use mio::net::UnixStream;

use super::client::Door;
use super::digest::Digest;
use super::protocol::{Connection, LineError, LineReader, Request, RunReply};
use crate::time::Time;
use crate::types::GroupName;

/// Pause before the daemon asks the hook-runner again, if it did not agree.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Time limit for the hook-runner's answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Asks the hook-runner behind a door, one question at a time. Never blocks.
///
/// Call [`handle_socket`](Self::handle_socket) when the connection is ready, and
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout); after each of
/// its methods drain [`poll_verdict`](Self::poll_verdict). Spurious calls are harmless.
#[derive(Debug)]
pub(super) struct Agreement {
    door: Door,
    question: Request,
    step: Step,
    verdict: Option<bool>,
    /// Why the hook-runner did not agree, as logged.
    objection: Option<String>,
}

#[derive(Debug)]
enum Step {
    /// It agreed.
    Settled,
    Waiting {
        ask_at: Time,
    },
    Asked {
        stream: UnixStream,
        reader: LineReader,
        give_up_at: Time,
    },
}

impl Agreement {
    /// Not asked yet; the first question is due at once.
    pub(super) fn new(door: Door, group: GroupName, settings: Digest, now: Time) -> Self {
        Agreement {
            door,
            question: Request::Agree { group, settings },
            step: Step::Waiting { ask_at: now },
            verdict: None,
            objection: None,
        }
    }

    /// Asks whether the hook-runner has these settings. Its answer about others no longer counts.
    pub(super) fn ask(&mut self, group: GroupName, settings: Digest, now: Time) {
        self.question = Request::Agree { group, settings };
        self.step = Step::Waiting { ask_at: now };
    }

    /// Asks again, because the hook-runner refused a run.
    pub(super) fn ask_again(&mut self, now: Time) {
        if matches!(self.step, Step::Settled) {
            self.step = Step::Waiting { ask_at: now };
        }
    }

    /// The connection is ready to be read.
    pub(super) fn handle_socket(&mut self, now: Time) {
        let Step::Asked { stream, reader, .. } = &mut self.step else { return };
        match receive(stream, reader) {
            Ok(None) => {}
            Ok(Some(RunReply::Agreed)) => self.settle(),
            Ok(Some(RunReply::Refused(reason))) => {
                self.verdict = Some(false);
                self.object(format!("it rejects the request: {reason}"), now);
            }
            Ok(Some(_)) => self.object("it answered another request".to_owned(), now),
            Err(error) => self.object(format!("it {error}"), now),
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        match &self.step {
            Step::Waiting { ask_at } if now >= *ask_at => match self.door.hand_over(&self.question)
            {
                Ok(stream) => {
                    let (reader, give_up_at) = (LineReader::default(), now + ANSWER_WAIT);
                    self.step = Step::Asked { stream, reader, give_up_at };
                }
                Err(error) => self.object(format!("it cannot be reached: {error}"), now),
            },
            Step::Asked { give_up_at, .. } if now >= *give_up_at => {
                self.object("it does not answer".to_owned(), now);
            }
            Step::Settled | Step::Waiting { .. } | Step::Asked { .. } => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        match self.step {
            Step::Settled => None,
            Step::Waiting { ask_at } => Some(ask_at),
            Step::Asked { give_up_at, .. } => Some(give_up_at),
        }
    }

    /// Whether the hook-runner agrees, each time that it has answered.
    pub(super) const fn poll_verdict(&mut self) -> Option<bool> {
        self.verdict.take()
    }

    fn settle(&mut self) {
        self.step = Step::Settled;
        self.verdict = Some(true);
        if self.objection.take().is_some() {
            log::info!("the hook-runner confirms the configuration of this node");
        }
    }

    fn object(&mut self, objection: String, now: Time) {
        self.step = Step::Waiting { ask_at: now + RETRY_PAUSE };
        if self.objection.as_ref() != Some(&objection) {
            log::error!(
                "the hook-runner does not confirm the configuration of this node: {objection}. \
                 Without its confirmation this node is not eligible to lead; it retries every \
                 second"
            );
            self.objection = Some(objection);
        }
    }
}

/// The answer, once it has arrived.
fn receive(
    stream: &mut UnixStream,
    reader: &mut LineReader,
) -> Result<Option<RunReply>, LineError> {
    let connection = reader.read(stream);
    match reader.poll_message()? {
        Some(reply) => Ok(Some(reply)),
        None if connection? == Connection::Closed => Err(LineError::HungUp),
        None => Ok(None),
    }
}
