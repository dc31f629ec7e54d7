//! Clients that never pause.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Host;
use crate::harness::patience::now;

/// Where HAProxy waits for them.
const FRONTEND: &str = "127.0.0.1:8080";

/// How many ask at the same time.
const CLIENTS: usize = 4;

/// Between an answer and the next request: the load must leave the hosts some of two cores.
const PAUSE: Duration = Duration::from_millis(2);

/// After this time a request has failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came of one request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// When it was about to be sent.
    pub(crate) start: Instant,
    /// When its answer was read.
    pub(crate) end: Instant,
    /// The host that said that it leads; none if the request failed.
    pub(crate) leader: Option<String>,
}

/// Threads in the namespace of HAProxy's host.
pub(crate) struct Clients {
    answers: Arc<Mutex<Vec<Answer>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts them on this host.
    pub(crate) fn start(host: &Host) -> Clients {
        let answers = Arc::<Mutex<Vec<Answer>>>::default();
        let is_over = Arc::<AtomicBool>::default();
        // A thread begins in the namespace of the one that starts it.
        let threads = host.run(|| {
            let start = |_| {
                let (answers, is_over) = (Arc::clone(&answers), Arc::clone(&is_over));
                thread::spawn(move || ask_on(&answers, &is_over))
            };
            (0..CLIENTS).map(start).collect()
        });
        Clients { answers, is_over, threads }
    }

    /// What came of the requests that began after this moment, so far.
    pub(crate) fn since(&self, moment: Instant) -> Vec<Answer> {
        let answers = self.answers.lock().unwrap();
        // In the order of their ends. No request takes longer than this.
        let recent = answers.partition_point(|answer| answer.end < moment);
        answers[recent..].iter().filter(|answer| answer.start >= moment).cloned().collect()
    }

    /// Ends them; returns how many requests there were.
    pub(crate) fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        self.answers.lock().unwrap().len()
    }
}

fn ask_on(answers: &Mutex<Vec<Answer>>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let start = now();
        let leader = ask();
        let mut answers = answers.lock().unwrap();
        answers.push(Answer { start, end: now(), leader });
        drop(answers);
        thread::sleep(PAUSE);
    }
}

/// Who says that it leads; none where nobody does.
fn ask() -> Option<String> {
    let address = FRONTEND.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /leader HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return None;
    }
    let body: Value = serde_json::from_str(body).ok()?;
    Some(body["node_id"].as_str()?.to_owned())
}
