//! Whatever comes over the hook-runner's socket, from either end and in whatever pieces: it is read
//! as the same messages, nothing that a shell or an environment would misunderstand gets in, and
//! what was read can be sent on.

use arbitrary::Arbitrary;
use lanelect::hooks::protocol::{
    self, Connection, INTERFACES_MAX, LINE_MAX, LineReader, Request, RunReply,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What comes over the socket.
#[derive(Debug, Arbitrary)]
pub struct Conversation<'a> {
    /// It comes in pieces of this size.
    piece: u8,
    bytes: &'a [u8],
}

/// What either end says.
trait Message: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug {}
impl Message for Request {}
impl Message for RunReply {}

/// Reads the bytes as the hook-runner does, and as the daemon does.
pub fn run(Conversation { piece, bytes }: Conversation) {
    let piece = usize::from(piece).max(1);
    let requests = check::<Request>(bytes, piece);
    requests.iter().for_each(check_request);
    check::<RunReply>(bytes, piece);
}

/// The messages up to the first line that is none, all of them.
fn check<T: Message>(bytes: &[u8], piece: usize) -> Vec<T> {
    let messages = read::<T>(bytes.chunks(piece));
    if bytes.len() <= LINE_MAX {
        let lines =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let expected: Vec<T> = lines.map_while(|line| serde_json::from_slice(line).ok()).collect();
        assert_eq!(messages, expected, "in pieces of {piece}");
    }
    for message in &messages {
        let mut line = Vec::new();
        protocol::send(&mut line, message).expect("what was read can be sent");
        assert_eq!(read::<T>([&line[..]].into_iter()).first(), Some(message));
    }
    messages
}

fn read<'a, T: Message>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<T> {
    let mut reader = LineReader::default();
    let mut messages = Vec::new();
    for piece in pieces {
        let Ok(connection) = reader.read(piece) else { return messages };
        assert_eq!(connection, Connection::Closed, "a slice ends");
        loop {
            match reader.poll_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(_) => return messages,
            }
        }
    }
    messages
}

/// What goes into a command's environment is one word each, and the interfaces are names of the
/// kernel's.
fn check_request(request: &Request) {
    let Request::Run(request) = request else { return };
    let node = &request.node;
    let words = node.interfaces.iter().map(String::as_str);
    for word in words.chain([node.node_id.as_str(), node.group.as_str()]) {
        let is_bad = |c: char| c.is_whitespace() || c.is_control();
        assert!(!word.is_empty() && !word.contains(is_bad), "{word:?}");
    }
    assert!(!request.task.to_string().contains(char::is_control));
    assert!(node.interfaces.len() <= INTERFACES_MAX);
}
