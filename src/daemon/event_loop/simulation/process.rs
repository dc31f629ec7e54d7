//! A daemon on a thread of its own that runs only while the simulation lets it.
//!
//! ```text
//!   simulation ── Resume ──▶ the daemon's thread: its event loop, until it sleeps, ends,
//!              ◀── Pause ──  or is stopped: where it reads the clock, or before an output
//! ```
//!
//! So one thread runs at a time, and what happens depends on the seed alone. A daemon is stopped
//! before it has the time that it reads, and never between that and its use. The documentation says
//! what remains then, and no check would hold.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use mio::Events;

use super::super::{Daemon, RunError};
use crate::config::ConfigSource;
use crate::core::output::StopCause;
use crate::os::simulated::{self, Stage, Work};
use crate::time::Time;

/// When the simulated host booted: long after the real one, whose timers then never expire.
pub(super) const BOOT: Time = Time::from_millis(500_000_000_000);

/// When that was, in milliseconds since 1970.
const BOOT_WALL_MS: u64 = 1_800_000_000_000;

/// From one reading of the clock to the next, at the most.
const LONGEST_STEP: Duration = Duration::from_micros(3);

/// How much likelier a daemon is stopped where that matters most.
const WHERE_IT_MATTERS: f64 = 100.0;

/// Readings of the clock before a daemon sleeps. More than that, and it never does.
const READINGS_MAX: u32 = 200_000;

/// How a daemon is stopped in the middle of what it does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holds {
    /// The chance at each reading of the clock.
    pub(super) chance: f64,
    /// For how long at the most.
    pub(super) longest: Duration,
}

/// What the daemon does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pause {
    /// It sleeps until then at the longest.
    Asleep(Option<Time>),
    /// It is stopped until then.
    Held(Time),
    /// It has ended.
    Ended(End),
}

/// How a daemon ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// It was asked to stop, and has.
    Stopped(StopCause),
    /// It did not start, or gave up.
    Failed(String),
    /// It panicked.
    Panicked(String),
}

enum Resume {
    Run(Time, Holds),
    Kill,
}

/// What a daemon shares with the simulation.
#[derive(Default)]
struct Shared {
    signals: Vec<i32>,
    /// The threads that it has started.
    threads: Vec<(&'static str, Work)>,
}

/// A daemon's process.
pub(super) struct Process {
    resume: Sender<Resume>,
    paused: Receiver<(Time, Pause)>,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

/// Unwinds the thread of a process that is killed.
struct Killed;

impl Process {
    /// A process that has not run yet.
    pub(super) fn new(source: ConfigSource, seed: u64) -> Self {
        let ((resume, resumed), (pause, paused)) = (mpsc::channel(), mpsc::channel());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let for_daemon = Arc::clone(&shared);
        let body = move || live(source, seed, pause, resumed, for_daemon);
        let thread = thread::Builder::new().name("daemon".to_owned()).spawn(body).unwrap();
        Process { resume, paused, shared, thread: Some(thread) }
    }

    /// Runs it from `now` on. Returns when it paused, and how.
    pub(super) fn run(&mut self, now: Time, holds: Holds) -> (Time, Pause) {
        self.resume.send(Resume::Run(now, holds)).unwrap();
        self.paused.recv().unwrap()
    }

    /// The daemon takes the signal when it wakes.
    pub(super) fn signal(&mut self, signal: i32) {
        lock(&self.shared).signals.push(signal);
    }

    /// The threads that it has started since the last call.
    pub(super) fn take_threads(&mut self) -> Vec<(&'static str, Work)> {
        std::mem::take(&mut lock(&self.shared).threads)
    }
}

impl Drop for Process {
    /// Kills the process where it is.
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.resume.send(Resume::Kill);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            ended.is_none_or(|ended| ended.is_ok()),
            "the thread of a process ended in disorder"
        );
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The life of a process.
fn live(
    source: ConfigSource,
    seed: u64,
    pause: Sender<(Time, Pause)>,
    resumed: Receiver<Resume>,
    shared: Arc<Mutex<Shared>>,
) {
    let stage = Rc::new(Puppet {
        pause,
        resumed,
        shared,
        rng: RefCell::new(Rng::with_seed(seed)),
        now: Cell::new(BOOT),
        holds: Cell::default(),
        readings: Cell::default(),
    });
    let run = || {
        stage.await_turn();
        simulated::enter(Rc::<Puppet>::clone(&stage));
        let config = source.load_for_daemon()?;
        Daemon::new(source, config, None)?.run()
    };
    let end = match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(cause)) => End::Stopped(cause),
        Ok(Err(error)) => End::Failed(RunError::to_string(&error)),
        Err(payload) if payload.is::<Killed>() => return,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let literal = || payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            End::Panicked(text.or_else(literal).unwrap_or_default())
        }
    };
    // Fails only if the simulation is over.
    let _ = stage.pause.send((stage.now.get(), Pause::Ended(end)));
}

/// What a daemon's code is given.
struct Puppet {
    pause: Sender<(Time, Pause)>,
    resumed: Receiver<Resume>,
    shared: Arc<Mutex<Shared>>,
    rng: RefCell<Rng>,
    now: Cell<Time>,
    holds: Cell<Holds>,
    /// Readings of the clock since it slept.
    readings: Cell<u32>,
}

impl Puppet {
    fn pause(&self, how: Pause) {
        // Fails only if the simulation is over, and then nothing resumes this either.
        let _ = self.pause.send((self.now.get(), how));
        self.await_turn();
    }

    fn await_turn(&self) {
        match self.resumed.recv() {
            Ok(Resume::Run(now, holds)) => {
                self.now.set(now.max(self.now.get()));
                self.holds.set(holds);
            }
            Ok(Resume::Kill) | Err(_) => panic::resume_unwind(Box::new(Killed)),
        }
    }

    fn hold(&self, chance: f64) {
        let is_held = chance > 0.0 && self.rng.borrow_mut().f64() < chance;
        if is_held {
            let share = self.rng.borrow_mut().f64();
            self.pause(Pause::Held(self.now.get() + self.holds.get().longest.mul_f64(share)));
        }
    }

    fn step(&self) -> Duration {
        let longest = u64::try_from(LONGEST_STEP.as_nanos()).unwrap();
        Duration::from_nanos(self.rng.borrow_mut().u64(1..=longest))
    }
}

impl Stage for Puppet {
    fn now(&self) -> Time {
        if thread::panicking() {
            return self.now.get();
        }
        self.readings.set(self.readings.get() + 1);
        assert!(self.readings.get() < READINGS_MAX, "the daemon never sleeps");
        self.now.set(self.now.get() + self.step());
        self.hold(self.holds.get().chance);
        self.now.get()
    }

    fn may_stop(&self) {
        self.hold(self.holds.get().chance * WHERE_IT_MATTERS);
    }

    fn wall_ms(&self) -> u64 {
        let since_boot = self.now.get().since(BOOT).as_millis();
        BOOT_WALL_MS + u64::try_from(since_boot).unwrap()
    }

    fn draw(&self) -> u64 {
        self.rng.borrow_mut().u64(..)
    }

    fn sleep(&self, until: Option<Time>) {
        self.readings.set(0);
        self.pause(Pause::Asleep(until));
    }

    fn poll_signal(&self) -> Option<i32> {
        let mut shared = lock(&self.shared);
        (!shared.signals.is_empty()).then(|| shared.signals.remove(0))
    }

    fn adopt(&self, name: &'static str, work: Work) {
        lock(&self.shared).threads.push((name, work));
    }
}

impl Daemon {
    /// Sleeps as long as the simulation says, unless something has happened or is due.
    pub(in crate::daemon::event_loop) fn await_simulated_events(
        &mut self,
        stage: &dyn Stage,
        events: &mut Events,
        wait: Option<Duration>,
    ) -> io::Result<()> {
        loop {
            self.poll.poll(events, Some(Duration::ZERO))?;
            let mut has_news = wait.is_some() || !events.is_empty();
            while let Some(signal) = stage.poll_signal() {
                self.take_signal(signal);
                has_news = true;
            }
            let deadline = self.next_deadline();
            if has_news || deadline.is_some_and(|deadline| deadline <= stage.now()) {
                return Ok(());
            }
            stage.sleep(deadline);
        }
    }
}
