//! Server-sent events: the status, then each transition.
//!
//! However many clients listen, the daemon has one watcher, and none if nobody listens: it has few
//! places for them.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether a client got no status when it came, so that the watcher has to tell it.
    is_status_owed: Arc<AtomicBool>,
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
        Events { daemon, places, told: Arc::default(), is_status_owed: Arc::default() }
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
        let first = self.status().await.unwrap_or_else(|why| {
            self.is_status_owed.store(true, Ordering::Relaxed);
            lost_event(&why)
        });
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
            match self.begin().await {
                Ok(watch) => {
                    pause = PAUSE;
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

    /// What happens between the watch and the status comes after the status.
    async fn begin(&self) -> Result<Watch, NoAnswer> {
        let watch = self.daemon.watch().await?;
        self.tell_status().await?;
        Ok(watch)
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
            if let Err(why) = self.look().await {
                return Some(Err(why));
            }
        }
    }

    /// Whether the daemon still answers.
    async fn look(&self) -> Result<(), NoAnswer> {
        match self.is_status_owed.load(Ordering::Relaxed) {
            true => self.tell_status().await,
            false => self.daemon.leadership().await.map(drop),
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

    /// To every client. One that asks in vain meanwhile is owed it again.
    async fn tell_status(&self) -> Result<(), NoAnswer> {
        self.is_status_owed.store(false, Ordering::Relaxed);
        self.tell(self.status().await?);
        Ok(())
    }

    async fn status(&self) -> Result<Event, NoAnswer> {
        let report = self.daemon.status().await?;
        Ok(event("status", &serde_json::to_string(&report).unwrap_or_default()))
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use lanelect::client::Target;
    use lanelect::control_api::{Done, Leadership, Request, Response};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixListener;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;
    use crate::testing::report;

    /// Bounds a test that would wait without end.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A daemon to which nothing happens. It does not answer the questions for the status that have
    /// the numbers `late`, counted from one.
    async fn serve(listener: UnixListener, late: &[usize]) {
        let (mut streams, mut asked) = (Vec::new(), 0);
        loop {
            let mut stream = BufReader::new(listener.accept().await.unwrap().0);
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let request = serde_json::from_str(&line).unwrap();
            asked += usize::from(matches!(request, Request::Status));
            if !matches!(request, Request::Status) || !late.contains(&asked) {
                let answer = serde_json::to_string(&answer(request)).unwrap() + "\n";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            streams.push(stream);
        }
    }

    fn answer(request: Request) -> Response {
        let report = report();
        let (node_id, term) = (report.node_id, report.term);
        match request {
            Request::Watch => Response::Ok(Done::Watching),
            Request::Status => Response::Status(Box::new(report)),
            _ => Response::Leadership(Leadership { node_id, leads: true, term, leader: None }),
        }
    }

    /// Runs a test of the events of such a daemon.
    fn with_daemon(late: &[usize], test: impl AsyncFnOnce(Events)) {
        let home = tempfile::tempdir().unwrap();
        let socket = home.path().join("control.sock");
        let run = async {
            let listener = UnixListener::bind(&socket).unwrap();
            let events = Events::new(Daemon::new(Target::at(&socket)));
            tokio::select! {
                outcome = timeout(LIMIT, test(events)) => outcome.unwrap(),
                () = serve(listener, late) => {}
            }
        };
        Builder::new_current_thread().enable_all().build().unwrap().block_on(run);
    }

    /// The name of the next event.
    async fn next_name(client: &mut Reply) -> String {
        loop {
            let piece = client.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
            let text = String::from_utf8(piece.to_vec()).unwrap();
            if let Some(event) = text.strip_prefix("event: ") {
                return event.lines().next().unwrap().to_owned();
            }
        }
    }

    #[test]
    fn watcher_whose_status_is_late_asks_again() {
        // The client's question, and the watcher's.
        with_daemon(&[1, 2], async |events| {
            let mut client = events.subscribe().await;
            assert_eq!(next_name(&mut client).await, "lost");
            assert_eq!(next_name(&mut client).await, "status");
        });
    }

    #[test]
    fn client_whose_first_status_is_late_gets_it_from_the_watcher() {
        with_daemon(&[3], async |events| {
            let mut early = events.subscribe().await;
            for _ in 0..2 {
                assert_eq!(next_name(&mut early).await, "status");
            }
            let mut late = events.subscribe().await;
            assert_eq!(next_name(&mut late).await, "lost");
            assert_eq!(next_name(&mut late).await, "status");
        });
    }
}
