//! Whether the hook-runner has the daemon's configuration. The daemon asks until it has.

use std::time::Duration;

use mio::net::UnixStream;

use super::client::Door;
use super::protocol::{Connection, LineError, LineReader, Request, RunReply};
use crate::time::Time;

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
    /// The connection of a question that is not answered.
    asked: Option<(UnixStream, LineReader)>,
    /// When to ask, or to give up waiting for the answer; none once the hook-runner has agreed.
    due: Option<Time>,
    verdict: Option<bool>,
    /// Why the hook-runner did not agree, as logged.
    objection: Option<String>,
}

impl Agreement {
    /// Not asked yet; the first question is due at once.
    pub(super) const fn new(door: Door, question: Request, now: Time) -> Self {
        let due = Some(now);
        Agreement { door, question, asked: None, due, verdict: None, objection: None }
    }

    /// Asks another question. The answer to the previous one no longer counts.
    pub(super) fn ask(&mut self, question: Request, now: Time) {
        self.question = question;
        self.asked = None;
        self.due = Some(now);
    }

    /// Asks again, because the hook-runner refused a run.
    pub(super) fn ask_again(&mut self, now: Time) {
        self.due.get_or_insert(now);
    }

    /// The connection is ready to be read.
    pub(super) fn handle_socket(&mut self, now: Time) {
        let Some((stream, reader)) = &mut self.asked else { return };
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
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        if self.asked.is_some() {
            // The answer may have arrived since the last look.
            self.handle_socket(now);
            if self.asked.is_some() {
                self.object("it does not answer".to_owned(), now);
            }
            return;
        }
        match self.door.hand_over(&self.question) {
            Ok(stream) => {
                self.asked = Some((stream, LineReader::default()));
                self.due = Some(now + ANSWER_WAIT);
            }
            Err(error) => self.object(format!("it cannot be reached: {error}"), now),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub(super) const fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Whether the hook-runner agrees, each time that it has answered.
    pub(super) const fn poll_verdict(&mut self) -> Option<bool> {
        self.verdict.take()
    }

    fn settle(&mut self) {
        self.asked = None;
        self.due = None;
        self.verdict = Some(true);
        if self.objection.take().is_some() {
            log::info!("the hook-runner confirms the configuration of this node");
        }
    }

    fn object(&mut self, objection: String, now: Time) {
        self.asked = None;
        self.due = Some(now + RETRY_PAUSE);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::testing::{node, settings};
    use super::super::{Digest, protocol};
    use super::*;

    #[test]
    fn answer_that_arrived_in_time_but_was_not_read_counts() {
        let start = Time::from_millis(1_000);
        let settings = Digest::new(&settings(None), node().group, node().node_id);
        let question = Request::Agree { group: node().group, settings };
        let (connections, arrivals) = mpsc::channel();
        let mut agreement = Agreement::new(Door::Own(connections), question, start);
        agreement.handle_timeout(start);
        protocol::send(&arrivals.recv().unwrap(), &RunReply::Agreed).unwrap();
        agreement.handle_timeout(start + ANSWER_WAIT);
        assert_eq!(agreement.poll_verdict(), Some(true));
    }
}
