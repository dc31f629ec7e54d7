//! Asks the daemon, over its control socket.
//!
//! The conversation is the one of [`lanelect::client`], which blocks; here it can be given up at
//! any time. A daemon that hangs thus holds no thread, and costs each request one second.

use std::sync::Arc;
use std::time::Duration;

use lanelect::client::Target;
use lanelect::control_api::{
    Done, Leadership, RESPONSE_MAX, Readiness, Request, Response, StatusReport, group_of_socket,
};
use lanelect::os::clock;
use lanelect::types::GroupName;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// An answer that takes longer counts as none: what it says may no longer be true.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most questions at the same time. The daemon serves 64 clients, and others want to be among them.
const QUESTIONS_MAX: usize = 8;

/// Why the daemon gave no answer.
#[derive(Debug, Error)]
pub enum NoAnswer {
    /// It does not listen.
    #[error("no daemon at {socket}: {why}")]
    NotThere {
        /// Where it should.
        socket: String,
        /// The system's words.
        why: String,
    },
    /// It listens, but is too slow, or too many ask.
    #[error("the daemon did not answer within {PATIENCE:?}")]
    Late,
    /// It closed the connection.
    #[error("the daemon ended the connection")]
    HungUp,
    /// It refused.
    #[error("the daemon refused: {0}")]
    Refused(String),
    /// It answered something else, as another version might.
    #[error("the daemon's answer cannot be read: {0}")]
    Incomprehensible(String),
}

/// The daemon of this host's node.
#[derive(Debug, Clone)]
pub struct Daemon {
    target: Arc<Target>,
    questions: Arc<Semaphore>,
}

impl Daemon {
    /// Whether it is there shows with the first question.
    pub fn new(target: Target) -> Self {
        Daemon { target: Arc::new(target), questions: Arc::new(Semaphore::new(QUESTIONS_MAX)) }
    }

    /// Its group, if its socket is the default one of a group.
    pub fn group(&self) -> Option<GroupName> {
        group_of_socket(self.target.socket())
    }

    /// Whether its node leads, and who does, as of now.
    pub async fn leadership(&self) -> Result<Leadership, NoAnswer> {
        match self.ask(Request::IsLeader).await? {
            Response::Leadership(leadership) => Ok(leadership),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether its node leads and its hook has taken over.
    pub async fn readiness(&self) -> Result<Readiness, NoAnswer> {
        match self.ask(Request::IsReady).await? {
            Response::Readiness(readiness) => Ok(readiness),
            other => Err(unexpected(&other)),
        }
    }

    /// The whole status.
    pub async fn status(&self) -> Result<StatusReport, NoAnswer> {
        match self.ask(Request::Status).await? {
            Response::Status(report) => Ok(*report),
            other => Err(unexpected(&other)),
        }
    }

    /// Every transition from now on.
    pub async fn watch(&self) -> Result<Watch, NoAnswer> {
        let begin = async {
            let mut watch = Watch(self.open(Request::Watch).await?);
            match parse_response(&watch.next_line().await?)? {
                Response::Ok(Done::Watching) => Ok(watch),
                other => Err(unexpected(&other)),
            }
        };
        timeout(PATIENCE, begin).await.unwrap_or(Err(NoAnswer::Late))
    }

    /// One question and its answer.
    ///
    /// This process may be stopped while the answer waits to be read, and the host be suspended.
    /// So the clock since boot has the last word, and not the timer.
    async fn ask(&self, request: Request) -> Result<Response, NoAnswer> {
        let asked = clock::now();
        let exchange = async {
            let _place = self.questions.acquire().await.map_err(|_| NoAnswer::Late)?;
            let mut stream = self.open(request).await?;
            parse_response(&read_line(&mut stream).await?)
        };
        let answer = timeout(PATIENCE, exchange).await.unwrap_or(Err(NoAnswer::Late))?;
        if clock::now().since(asked) > PATIENCE { Err(NoAnswer::Late) } else { Ok(answer) }
    }

    /// A connection on which the question has been asked.
    async fn open(&self, request: Request) -> Result<BufReader<UnixStream>, NoAnswer> {
        let socket = self.target.socket();
        let not_there = |error: std::io::Error| NoAnswer::NotThere {
            socket: socket.display().to_string(),
            why: error.to_string(),
        };
        let mut stream = UnixStream::connect(socket).await.map_err(not_there)?;
        let mut line = serde_json::to_vec(&request)
            .map_err(|error| NoAnswer::Incomprehensible(error.to_string()))?;
        line.push(b'\n');
        // A daemon that closed the connection may have sent the reason.
        let _ = stream.write_all(&line).await;
        Ok(BufReader::new(stream))
    }
}

/// Transitions, as the daemon sends them.
#[derive(Debug)]
pub struct Watch(BufReader<UnixStream>);

impl Watch {
    /// The next line, however long that takes. A call that is given up may lose a part of a line.
    pub async fn next_line(&mut self) -> Result<String, NoAnswer> {
        read_line(&mut self.0).await
    }
}

/// A line without its line feed.
async fn read_line(stream: &mut BufReader<UnixStream>) -> Result<String, NoAnswer> {
    let mut line = String::new();
    let read = stream.take(RESPONSE_MAX as u64).read_line(&mut line).await;
    read.map_err(|error| NoAnswer::Incomprehensible(error.to_string()))?;
    match line.pop() {
        Some('\n') => Ok(line),
        Some(_) if line.len() + 1 >= RESPONSE_MAX => {
            Err(NoAnswer::Incomprehensible(format!("it is longer than {RESPONSE_MAX} bytes")))
        }
        _ => Err(NoAnswer::HungUp),
    }
}

fn parse_response(line: &str) -> Result<Response, NoAnswer> {
    match parse(line)? {
        Response::Refused(refusal) => Err(NoAnswer::Refused(refusal.message)),
        response => Ok(response),
    }
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, NoAnswer> {
    serde_json::from_str(line).map_err(|error| NoAnswer::Incomprehensible(error.to_string()))
}

fn unexpected(response: &Response) -> NoAnswer {
    NoAnswer::Incomprehensible(format!("it is of another request: {response:?}"))
}
