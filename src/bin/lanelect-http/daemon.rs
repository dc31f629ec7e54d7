//! Asks the daemon, over its control socket.
//!
//! The conversation is the one of [`lanelect::client`], which blocks; here it can be given up at
//! any time. A daemon that hangs thus holds no thread, and costs each request one second.

use std::io::{self, ErrorKind};
use std::path::Path;
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
use tokio::time::{sleep, timeout};

/// An answer that takes longer counts as none: what it says may no longer be true.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most questions at the same time. The daemon serves 64 clients, and others want to be among them.
const QUESTIONS_MAX: usize = 8;

/// Pause before a daemon with too many clients is tried again.
const PAUSE: Duration = Duration::from_millis(10);

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
        let not_there = |error: io::Error| NoAnswer::NotThere {
            socket: socket.display().to_string(),
            why: error.to_string(),
        };
        let mut stream = connect(socket).await.map_err(not_there)?;
        let mut line = serde_json::to_vec(&request)
            .map_err(|error| NoAnswer::Incomprehensible(error.to_string()))?;
        line.push(b'\n');
        // A daemon that closed the connection may have sent the reason.
        let _ = stream.write_all(&line).await;
        Ok(BufReader::new(stream))
    }
}

/// Connects, however long that takes. While other clients wait to be accepted, there may be no room
/// for one more; a connection that does not block is refused then at once.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(PAUSE).await,
            connected => return connected,
        }
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

#[cfg(test)]
mod tests {
    use lanelect::types::Term;
    use socket2::{Domain, SockAddr, Socket, Type};
    use tokio::net::UnixListener;
    use tokio::runtime::Builder;

    use super::*;

    /// A connection that waits to be accepted, if there is room for it.
    fn connect_at_once(address: &SockAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        Ok(socket)
    }

    #[test]
    fn daemon_with_no_room_for_another_client_is_tried_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("control.sock");
        let address = SockAddr::unix(&path).unwrap();
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&address).unwrap();
        listener.listen(1).unwrap();
        listener.set_nonblocking(true).unwrap();
        let crowd: Vec<_> = (0..16).map_while(|_| connect_at_once(&address).ok()).collect();
        assert!((1..16).contains(&crowd.len()));
        drop(crowd);
        let leadership = Leadership {
            node_id: "web1".parse().unwrap(),
            leads: true,
            term: Term(7),
            leader: "web1".parse().ok(),
        };
        let answer = serde_json::to_string(&Response::Leadership(leadership)).unwrap() + "\n";
        let serve = async {
            let listener = UnixListener::from_std(listener.into()).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                if stream.read_line(&mut String::new()).await.unwrap() > 0 {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        };
        let daemon = Daemon::new(Target::at(path));
        let asked = async {
            tokio::select! {
                biased;
                answer = daemon.leadership() => answer,
                () = serve => Err(NoAnswer::HungUp),
            }
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(asked).unwrap(), leadership);
    }
}
