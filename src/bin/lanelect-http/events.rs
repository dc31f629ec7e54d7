//! Server-sent events: the status, then each transition.
//!
//! However many clients listen, the daemon has one watcher, and none if nobody listens: it has few
//! places for them.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Either;
use hyper::StatusCode;
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::sleep;

use crate::daemon::{Daemon, NoAnswer, Watch};
use crate::reply::{self, Reply, Stream};

/// Most clients that listen.
const LISTENERS_MAX: usize = 64;

/// Most events that wait for a slow client. After more it has to come again.
const WAITING_MAX: usize = 64;

/// How often a comment shows that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often the watcher looks whether anybody listens, and whether the daemon still answers.
const LOOK: Duration = Duration::from_secs(2);

/// Pause before the daemon is asked again: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// Passes on what a daemon tells.
#[derive(Debug, Clone)]
pub struct Events {
    daemon: Daemon,
    places: Arc<Semaphore>,
    /// To every client; none while there is no watcher.
    told: Arc<Mutex<Option<broadcast::Sender<Event>>>>,
}

/// What clients are told.
#[derive(Debug, Clone)]
struct Event {
    text: Bytes,
    /// Whether it says that nothing is known any more.
    is_lost: bool,
}

impl Events {
    /// Of this daemon.
    pub fn new(daemon: Daemon) -> Self {
        let places = Arc::new(Semaphore::new(LISTENERS_MAX));
        Events { daemon, places, told: Arc::default() }
    }

    /// The status, and everything from now on.
    pub async fn subscribe(&self) -> Reply {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let why = format!("{LISTENERS_MAX} clients listen already");
            return reply::failure(StatusCode::SERVICE_UNAVAILABLE, &why);
        };
        // What happens while the status is asked for comes after it.
        let news = self.listen();
        let (sender, pieces) = mpsc::channel(1);
        let first = self.status().await;
        tokio::spawn(pass_on(first, news, sender, place));
        reply::reply(StatusCode::OK, "text/event-stream", Either::Right(Stream(pieces)))
    }

    /// What the watcher tells from now on. Where there is none, one starts.
    fn listen(&self) -> broadcast::Receiver<Event> {
        let mut told = self.told();
        if let Some(sender) = &*told {
            return sender.subscribe();
        }
        let (sender, news) = broadcast::channel(WAITING_MAX);
        *told = Some(sender);
        drop(told);
        tokio::spawn(self.clone().follow());
        news
    }

    fn told(&self) -> MutexGuard<'_, Option<broadcast::Sender<Event>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the daemon, also through its restarts, as long as anybody listens.
    async fn follow(self) {
        let mut pause = PAUSE;
        while self.is_heard() {
            match self.daemon.watch().await {
                Ok(watch) => {
                    pause = PAUSE;
                    self.tell(self.status().await);
                    self.follow_watch(watch).await;
                }
                Err(why) => {
                    // It may answer otherwise, and have no place for another watcher.
                    self.tell(lost_event(&why));
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Until the watch ends, or nobody listens.
    async fn follow_watch(&self, mut watch: Watch) {
        while let Some(line) = self.next_line(&mut watch).await {
            match line {
                Ok(line) => self.tell(event("transition", &line)),
                Err(why) => return self.tell(lost_event(&why)),
            }
        }
    }

    /// None if nobody listens any more. A daemon that hangs says nothing, as one does to which
    /// nothing happens, so it is asked now and then.
    async fn next_line(&self, watch: &mut Watch) -> Option<Result<String, NoAnswer>> {
        let mut line = pin!(watch.next_line());
        loop {
            tokio::select! {
                line = &mut line => return Some(line),
                () = sleep(LOOK) => {}
            }
            if !self.has_listeners() {
                return None;
            }
            if let Err(why) = self.daemon.leadership().await {
                return Some(Err(why));
            }
        }
    }

    fn has_listeners(&self) -> bool {
        self.told().as_ref().is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// As [`Self::has_listeners`]. If nobody listens, the next client starts another watcher.
    fn is_heard(&self) -> bool {
        let mut told = self.told();
        let is_heard = told.as_ref().is_some_and(|sender| sender.receiver_count() > 0);
        if !is_heard {
            *told = None;
        }
        is_heard
    }

    fn tell(&self, event: Event) {
        if let Some(sender) = &*self.told() {
            // Nobody may listen any more.
            let _ = sender.send(event);
        }
    }

    async fn status(&self) -> Event {
        match self.daemon.status().await {
            Ok(report) => event("status", &serde_json::to_string(&report).unwrap_or_default()),
            Err(why) => lost_event(&why),
        }
    }
}

/// Passes events on to one client, until it is gone or too slow. Of failures that follow each other
/// it hears the first.
async fn pass_on(
    first: Event,
    mut news: broadcast::Receiver<Event>,
    client: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let mut next = Some(first);
    while let Some(Event { text, is_lost }) = next {
        if client.send(text).await.is_err() {
            return;
        }
        next = next_event(&mut news, &client, is_lost).await;
    }
}

/// The next event that the client does not know. None if it is gone, or too slow: then it can come
/// again.
async fn next_event(
    news: &mut broadcast::Receiver<Event>,
    client: &mpsc::Sender<Bytes>,
    was_lost: bool,
) -> Option<Event> {
    let mut silence = pin!(sleep(KEEP_ALIVE));
    loop {
        tokio::select! {
            event = news.recv() => {
                let event = event.ok()?;
                if !(event.is_lost && was_lost) {
                    return Some(event);
                }
            }
            () = &mut silence => {
                client.send(Bytes::from_static(b": still here\n\n")).await.ok()?;
                silence.set(sleep(KEEP_ALIVE));
            }
            () = client.closed() => return None,
        }
    }
}

/// One event, whose data is one line.
fn event(name: &str, data: &str) -> Event {
    Event { text: format!("event: {name}\ndata: {data}\n\n").into(), is_lost: false }
}

fn lost_event(why: &NoAnswer) -> Event {
    #[derive(Serialize)]
    struct Lost {
        error: String,
    }
    let lost = Lost { error: why.to_string() };
    let told = event("lost", &serde_json::to_string(&lost).unwrap_or_default());
    Event { is_lost: true, ..told }
}
