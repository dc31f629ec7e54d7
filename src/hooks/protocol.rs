//! The messages between the daemon and the hook-runner, over a Unix socket.
//!
//! Each run has a connection of its own, and each message is a line of JSON:
//!
//! ```text
//! daemon           Request::Run ──▶                                         hook-runner
//!       ◀─────── RunReply::Started    its turn has come, and the command is started
//!             Request::CutShort ──▶   not always: what it is for is over
//!       ◀────── RunReply::Finished    the command has ended, and the hook-runner hangs up
//! ```
//!
//! On another connection the daemon sends `Request::Agree`, and receives `RunReply::Agreed` or
//! `RunReply::Refused`. A run with other settings is refused too, unless it releases.
//!
//! A run waits for the earlier runs in its lane, unless SIGKILL does not end one: then the answer
//! is `RunReply::Stuck`. The lanes run beside each other. If a daemon hung
//! up, its hook is ended when the next hook is requested. The hook-runner starts a command only if
//! it could send its `Started`. So a daemon that hangs up before then withdraws its run, and a
//! daemon whose connection ends before then knows that its hook did not run. A hook that has begun
//! runs to its end; a check is ended when no client waits for it.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use super::digest::Digest;
use super::{HookFinished, HookNode, Task};
use crate::types::GroupName;

/// Longest line either side accepts, in bytes with its line feed: enough for a request with
/// [`INTERFACES_MAX`] names of [`INTERFACE_NAME_MAX`] bytes, all of them escaped.
pub const LINE_MAX: usize = 16 * 1024;

/// Most interfaces that a request may name.
pub const INTERFACES_MAX: usize = 32;

/// Longest interface name, in bytes: the kernel's bound on alternative names.
pub const INTERFACE_NAME_MAX: usize = 127;

/// What the daemon requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// To run a command.
    Run(Box<RunRequest>),
    /// Whether the hook-runner has these settings, and would run anything.
    Agree {
        /// The daemon's group.
        group: GroupName,
        /// The daemon's settings.
        settings: Digest,
    },
    /// To end the run of this connection: TERM at once, KILL after this time.
    CutShort(Duration),
}

/// A run of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Which command, and its occasion.
    pub task: Task,
    /// The node it is for.
    pub node: HookNode,
    /// The daemon's settings.
    pub settings: Digest,
    /// If a dead daemon left a hook running, the time that hook has between TERM and KILL. Only the
    /// run of a hook waits for it.
    pub orphan_grace: Duration,
}

/// What the hook-runner answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunReply {
    /// The command is about to start.
    Started,
    /// The command ran, or could not be started.
    Finished(HookFinished),
    /// The command is not started: one before it in its lane does not end on SIGKILL.
    Stuck,
    /// The hook-runner has the same settings.
    Agreed,
    /// The command is not run, or would not be, for this reason.
    Refused(String),
}

/// Why a line from the other side cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// More than [`LINE_MAX`] bytes are waiting.
    #[error("sent a message longer than {LINE_MAX} bytes")]
    TooLong,
    /// The connection ended before the expected message.
    #[error("closed the connection")]
    HungUp,
    /// A message that is not allowed after the earlier ones.
    #[error("sent an unexpected message")]
    OutOfTurn,
    /// The line is not the JSON of the message. The error is a single line, whatever was sent.
    #[error("sent a line that is not a valid message: {}", .0.to_string().escape_debug())]
    Malformed(#[from] serde_json::Error),
    /// The connection failed.
    #[error("cannot be read from: {0}")]
    Io(#[from] io::Error),
}

/// Sends `message` as one line, all of it at once. A new connection has room for any message, so if
/// it does not fit, the other side is broken.
///
/// # Errors
///
/// If the connection failed or did not accept the whole line.
pub fn send(mut stream: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() > LINE_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long"));
    }
    match stream.write(&line) {
        Ok(written) if written == line.len() => Ok(()),
        Ok(_) => Err(ErrorKind::WriteZero.into()),
        Err(error) => Err(error),
    }
}

/// Whether the other side may still send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// It may.
    Open,
    /// It hung up.
    Closed,
}

/// Collects the lines that a side receives.
#[derive(Debug, Default)]
pub struct LineReader {
    /// Received bytes that are not part of a returned message yet.
    bytes: Vec<u8>,
}

impl LineReader {
    /// Reads all data, until the stream would block or ends.
    ///
    /// # Errors
    ///
    /// If the connection failed, or a message is too long. Both end the conversation.
    pub fn read(&mut self, stream: impl Read) -> Result<Connection, LineError> {
        let room = (LINE_MAX + 1).saturating_sub(self.bytes.len());
        let result = stream.take(room as u64).read_to_end(&mut self.bytes);
        if self.bytes.len() > LINE_MAX {
            return Err(LineError::TooLong);
        }
        match result {
            Ok(_) => Ok(Connection::Closed),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Connection::Open),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the next message, if its line is complete.
    ///
    /// # Errors
    ///
    /// If the line is no such message.
    pub fn poll_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LineError> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

/// Reads interface names with the kernel's own rules, so that no name can forge another variable's
/// value or a path.
pub(super) fn interface_names<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    if names.len() > INTERFACES_MAX {
        return Err(D::Error::custom(format!("more than {INTERFACES_MAX} interfaces")));
    }
    match names.iter().find(|name| !is_interface_name(name)) {
        Some(name) => Err(D::Error::custom(format!("{name:?} is no interface name"))),
        None => Ok(names),
    }
}

fn is_interface_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || c == '/';
    !name.is_empty()
        && name.len() <= INTERFACE_NAME_MAX
        && name != "."
        && name != ".."
        && !name.contains(is_bad)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::super::testing::{demoted, elected, node, request};
    use super::*;
    use crate::types::{Role, Term};

    /// Hands out its chunks one at a time, then would block.
    struct Chunks(VecDeque<Vec<u8>>);

    impl Chunks {
        fn of(bytes: &[u8], size: usize) -> Self {
            Chunks(bytes.chunks(size).map(<[u8]>::to_vec).collect())
        }
    }

    impl Read for Chunks {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let chunk = self.0.front_mut().ok_or(ErrorKind::WouldBlock)?;
            let count = (&chunk[..]).read(buffer)?;
            chunk.drain(..count);
            if chunk.is_empty() {
                self.0.pop_front();
            }
            Ok(count)
        }
    }

    fn line(message: &impl Serialize) -> Vec<u8> {
        let mut line = Vec::new();
        send(&mut line, message).unwrap();
        line
    }

    #[test]
    fn a_request_arrives_as_it_was_sent_however_it_is_cut() {
        for run in [elected(7), demoted(u64::MAX)] {
            let request = Request::Run(Box::new(request(run)));
            for size in [1, 7, 1024] {
                let mut reader = LineReader::default();
                let connection = reader.read(Chunks::of(&line(&request), size)).unwrap();
                assert_eq!(connection, Connection::Open);
                assert_eq!(reader.poll_message::<Request>().unwrap().as_ref(), Some(&request));
            }
        }
    }

    #[test]
    fn the_reply_is_read_although_the_other_side_has_hung_up() {
        let reply = RunReply::Finished(HookFinished::lost(std::time::Duration::from_millis(5)));
        let mut reader = LineReader::default();
        assert_eq!(reader.read(&line(&reply)[..]).unwrap(), Connection::Closed);
        assert_eq!(reader.poll_message().unwrap(), Some(reply));
    }

    #[test]
    fn half_a_line_is_no_message_yet() {
        let whole = line(&RunReply::Refused("no".to_owned()));
        let mut reader = LineReader::default();
        reader.read(&whole[..whole.len() - 1]).unwrap();
        assert_eq!(reader.poll_message::<RunReply>().unwrap(), None);
        reader.read(&whole[whole.len() - 1..]).unwrap();
        assert!(reader.poll_message::<RunReply>().unwrap().is_some());
    }

    #[test]
    fn messages_are_taken_one_after_the_other() {
        let finished = RunReply::Finished(HookFinished::lost(std::time::Duration::ZERO));
        let mut reader = LineReader::default();
        reader.read(&[line(&RunReply::Started), line(&finished)].concat()[..]).unwrap();
        assert_eq!(reader.poll_message().unwrap(), Some(RunReply::Started));
        assert_eq!(reader.poll_message().unwrap(), Some(finished));
        assert_eq!(reader.poll_message::<RunReply>().unwrap(), None);
    }

    #[test]
    fn what_is_told_of_a_bad_line_forges_no_line_of_the_log() {
        let mut reader = LineReader::default();
        reader.read(&br#"{"a\nerror b\u001b[2J":1}"#[..]).unwrap();
        reader.read(&b"\n"[..]).unwrap();
        let told = reader.poll_message::<Request>().unwrap_err().to_string();
        assert!(told.contains(r"a\nerror b") && !told.contains(char::is_control), "{told:?}");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let result = LineReader::default().read(&[b' '; LINE_MAX + 1][..]);
        assert!(matches!(result, Err(LineError::TooLong)), "{result:?}");
    }

    #[test]
    fn the_largest_request_fits() {
        let name = "\"".repeat(crate::types::NAME_MAX);
        let mut largest = elected(u64::MAX);
        let mut node = node();
        node.interfaces = vec!["\"".repeat(INTERFACE_NAME_MAX); INTERFACES_MAX];
        node.node_id = name.parse().unwrap();
        node.group = name.parse().unwrap();
        largest.leader = Some(node.node_id);
        largest.previous_leader = Some(node.node_id);
        let largest = Request::Run(Box::new(RunRequest {
            task: Task::Hook(largest),
            node,
            settings: request(elected(7)).settings,
            orphan_grace: Duration::MAX,
        }));
        let mut reader = LineReader::default();
        reader
            .read(&[line(&largest), line(&Request::CutShort(Duration::MAX))].concat()[..])
            .unwrap();
        assert_eq!(reader.poll_message().unwrap(), Some(largest));
    }

    #[test]
    fn a_request_cannot_carry_what_a_hook_must_not_be_told() {
        let good = Request::Run(Box::new(request(elected(7))));
        let good = serde_json::to_value(good).unwrap();
        assert!(serde_json::from_value::<Request>(good.clone()).is_ok());
        let bad = |pointer: &str, value: serde_json::Value| {
            let mut request = good.clone();
            *request["run"].pointer_mut(pointer).unwrap() = value;
            assert!(serde_json::from_value::<Request>(request).is_err(), "{pointer}");
        };
        bad("/task/hook/event", "fired".into());
        bad("/task/hook/reason", "$(reboot)".into());
        bad("/task/hook/leader", "a b".into());
        bad("/task/hook/leader_address", "10.0.0.1; reboot".into());
        bad("/task/hook/term", "7".into());
        bad("/node/node_id", "a\nPATH=/tmp".into());
        bad("/node/group", "".into());
        for name in ["", ".", "..", "a/b", "a b", "a\nb", "a\0b", &"x".repeat(128)] {
            bad("/node/interfaces/0", name.into());
        }
        bad("/node/interfaces", vec!["eth0"; INTERFACES_MAX + 1].into());

        let mut bad = good.clone();
        bad["run"]["command"] = "reboot".into();
        assert!(serde_json::from_value::<Request>(bad).is_err());
        let tasks =
            [Task::Fence { term: Term(7) }, Task::Check { role: Role::Leader, term: Term(7) }];
        for (task, lane) in tasks.into_iter().zip(["fence", "check"]) {
            let request = Request::Run(Box::new(RunRequest { task, ..request(elected(7)) }));
            let good = serde_json::to_value(request).unwrap();
            assert!(serde_json::from_value::<Request>(good.clone()).is_ok());
            for place in [&["run"][..], &["run", "task", lane]] {
                let mut request = good.clone();
                let part = place.iter().fold(&mut request, |part, key| &mut part[key]);
                part["command"] = "reboot".into();
                assert!(serde_json::from_value::<Request>(request).is_err(), "{place:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            size in 1_usize..50,
        ) {
            let mut reader = LineReader::default();
            prop_assert!(reader.read(Chunks::of(&bytes, size)).is_ok());
            let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            for _ in 0..lines {
                prop_assert!(reader.poll_message::<Request>().is_err());
            }
            prop_assert_eq!(reader.poll_message::<Request>().unwrap(), None);
        }
    }
}
