//! The thread that writes the state: nothing else waits for the disk.
//!
//! ```text
//!   event loop ── save ──▶ newest ──▶ ┌────────┐ ── write, sync ──▶ disk
//!              ◀─ poll_settled ─────  │ thread │
//!                    (waker)          └────────┘
//! ```
//!
//! The thread has one state at a time; during a write, a newer state replaces the waiting one.

use std::io;
use std::mem;
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use self::Progress::{Saved, Unsaved, Writing};
use super::StoreError;
use crate::core::persist::PersistentState;
use crate::daemon::worker::{self, Results};
use crate::time::Time;

/// Pause before a failed save is retried.
pub const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A save that takes longer is reported as a failure.
pub const SAVE_LIMIT: Duration = Duration::from_secs(5);

/// What happens to a state that could not be saved, and is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It counts as settled all the same, and the next one is written at once.
    GoOn,
    /// It is not settled before it is on disk, and the next one waits for the retry.
    Wait,
}

/// Numbers the states to save. A later number covers the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticket(u64);

/// Saves states on its own thread. Never blocks, except in [`finish`](Self::finish).
///
/// After the waker was called, call [`handle_wake`](Self::handle_wake). At
/// [`poll_timeout`](Self::poll_timeout) call [`handle_timeout`](Self::handle_timeout). After each
/// of these and after `save` drain [`poll_settled`](Self::poll_settled). Spurious calls are
/// harmless.
///
/// A write in progress when this is dropped continues, as long as the process lives.
#[derive(Debug)]
pub struct Writer {
    /// To the thread, which ends when this is dropped.
    orders: Sender<Order>,
    results: Results<(Order, Result<(), StoreError>)>,
    on_failure: OnFailure,
    progress: Progress,
    /// The newest state that was saved or abandoned.
    settled: Ticket,
    /// The same, until it is reported.
    to_tell: Option<PersistentState>,
    /// The number of the state in `progress`.
    newest: Ticket,
    /// Why the last save failed; none once one succeeded.
    failure: Option<String>,
    /// Whether a save took too long, and none has succeeded since.
    has_hung: bool,
    saves: u64,
}

/// The progress of the newest state.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// It is on disk, as far as known; none in a life that has saved nothing yet.
    Saved(Option<PersistentState>),
    /// The thread writes it, or first an earlier one and then this one. The write in progress began
    /// at this time.
    Writing(PersistentState, Time),
    /// It could not be saved. It is retried at this time, or, without one, never.
    Unsaved(PersistentState, Option<Time>),
}

#[derive(Debug, Clone, Copy)]
struct Order {
    ticket: Ticket,
    state: PersistentState,
}

impl Writer {
    /// A writer that saves with `save`, such as [`Store::save`](super::Store::save), and calls
    /// `wake` after each. `on_disk` is what this life has saved already.
    ///
    /// # Errors
    ///
    /// If the system provides no thread.
    pub fn start(
        mut save: impl FnMut(&PersistentState) -> Result<(), StoreError> + Send + 'static,
        wake: impl Fn() + Send + 'static,
        on_failure: OnFailure,
        on_disk: Option<PersistentState>,
    ) -> io::Result<Self> {
        let work = move |order: Order| (order, save(&order.state));
        let (orders, results) = worker::start("store", work, wake)?;
        Ok(Writer {
            orders,
            results,
            on_failure,
            progress: Saved(on_disk),
            settled: Ticket::default(),
            to_tell: None,
            newest: Ticket::default(),
            failure: None,
            has_hung: false,
            saves: u64::from(on_disk.is_some()),
        })
    }

    /// Saves `state`, in place of one that still waits. A state that is on disk already is settled
    /// at once.
    pub fn save(&mut self, state: PersistentState, now: Time) {
        self.newest.0 += 1;
        match self.progress {
            Saved(Some(there)) if there.says_the_same_as(&state) => {
                self.settle(Order { ticket: self.newest, state });
            }
            Writing(_, since) => self.progress = Writing(state, since),
            Unsaved(_, at) if self.waits_for_retry() => self.progress = Unsaved(state, at),
            Saved(_) | Unsaved(..) => self.write(state, now),
        }
    }

    fn waits_for_retry(&self) -> bool {
        self.on_failure == OnFailure::Wait && matches!(self.progress, Unsaved(_, Some(_)))
    }

    /// Retries a failed save, and returns the ticket for everything that is not on disk; none if
    /// everything is.
    pub fn insist(&mut self, now: Time) -> Option<Ticket> {
        match self.progress {
            Saved(_) => return None,
            Unsaved(state, _) if self.is_settled(self.newest) => self.save(state, now),
            Writing(..) | Unsaved(..) => {}
        }
        Some(self.newest)
    }

    /// Whether `ticket` is settled: its state is on disk, or [`failure`](Self::failure) says why
    /// not.
    pub fn is_settled(&self, ticket: Ticket) -> bool {
        ticket <= self.settled
    }

    /// Why the last save failed; none if it succeeded.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Why the state is not saved, for people: the last save failed, or one takes too long.
    pub fn trouble(&self, now: Time) -> Option<String> {
        match self.progress {
            Writing(_, since) if now.since(since) >= SAVE_LIMIT => Some(format!(
                "the disk hangs, or the server behind it: a save has not ended for {} s",
                now.since(since).as_secs()
            )),
            _ => self.failure.clone(),
        }
    }

    /// How many saves have succeeded.
    pub const fn saves(&self) -> u64 {
        self.saves
    }

    /// The thread has called the waker.
    pub fn handle_wake(&mut self, now: Time) {
        loop {
            match self.results.try_recv() {
                Ok((order, result)) => self.take_result(order, result, now),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.note_thread_lost(),
            }
        }
    }

    /// Without the thread no state is ever saved again.
    fn note_thread_lost(&mut self) {
        let failure = "the thread that saves it has ended; restart the daemon";
        if self.failure.as_deref() != Some(failure) {
            log::error!("cannot save the state: {failure}");
            self.failure = Some(failure.to_owned());
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.progress {
            Unsaved(state, Some(at)) if at <= now => self.write(state, now),
            Writing(_, since) if !self.has_hung && since + SAVE_LIMIT <= now => {
                self.has_hung = true;
                let why = self.trouble(now).unwrap_or_default();
                log::error!("{why}; until it ends, this node cannot vote or lead in a new term");
            }
            _ => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.progress {
            Unsaved(_, retry_at) => retry_at,
            Writing(_, since) if !self.has_hung => Some(since + SAVE_LIMIT),
            Writing(..) | Saved(_) => None,
        }
    }

    /// The newest state that is now on disk, or abandoned, once.
    pub fn poll_settled(&mut self) -> Option<PersistentState> {
        self.to_tell.take()
    }

    /// Waits until everything is on disk or was retried once, but no longer than `patience` for
    /// each of the two saves that this may take. Returns whether everything is on disk.
    pub fn finish(&mut self, patience: Duration, now: Time) -> bool {
        if let Unsaved(state, _) = self.progress {
            self.write(state, now);
        }
        while let Writing(..) = self.progress {
            match self.results.recv_timeout(patience) {
                Ok((order, result)) => self.take_result(order, result, now),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        matches!(self.progress, Saved(_))
    }

    fn take_result(&mut self, order: Order, result: Result<(), StoreError>, now: Time) {
        let Writing(newest, _) = self.progress else { return };
        self.progress = match result {
            Ok(()) => self.note_saved(order),
            Err(error) => {
                self.note_failed(order, &error);
                Unsaved(newest, Some(now + RETRY_PAUSE))
            }
        };
        if order.ticket < self.newest && !self.waits_for_retry() {
            self.write(newest, now);
        }
    }

    fn note_saved(&mut self, order: Order) -> Progress {
        self.saves += 1;
        self.settle(order);
        if self.failure.take().is_some() | mem::take(&mut self.has_hung) {
            log::info!("the state is saved again");
        }
        Saved(Some(order.state))
    }

    fn note_failed(&mut self, order: Order, error: &StoreError) {
        let is_first = self.failure.replace(error.to_string()).is_none();
        match self.on_failure {
            OnFailure::GoOn => {
                if is_first {
                    log::error!(
                        "{error}; continuing without saved state: a restart would lose the current \
                         term"
                    );
                }
                self.settle(order);
            }
            OnFailure::Wait => {
                if is_first {
                    log::error!(
                        "THIS NODE CANNOT SAVE ITS PROMISES: it gives no vote and cannot be \
                         elected until its state is saved; it retries every second. {error}"
                    );
                }
                self.settled = order.ticket;
            }
        }
    }

    fn settle(&mut self, order: Order) {
        self.settled = order.ticket;
        self.to_tell = Some(order.state);
    }

    /// Sends the thread a state under a new number, which covers the earlier ones.
    fn write(&mut self, state: PersistentState, now: Time) {
        self.newest.0 += 1;
        self.progress = match self.orders.send(Order { ticket: self.newest, state }) {
            Ok(()) => Writing(state, now),
            // The thread has ended, and nothing is ever settled again.
            Err(_) => Unsaved(state, None),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::PathBuf;
    use std::sync::mpsc::{self, Receiver, sync_channel};

    use super::*;
    use crate::types::Term;

    const NOW: Time = Time::from_millis(1_000);

    /// How long a test waits for something that must happen.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A writer to a disk whose writes end at the test's command.
    struct Bench {
        writer: Writer,
        /// The state of each save.
        begun: Receiver<PersistentState>,
        /// Whether the save in progress succeeds.
        answers: Sender<bool>,
        wakes: Receiver<()>,
    }

    impl Bench {
        fn new(on_failure: OnFailure) -> Self {
            Bench::with(on_failure, None)
        }

        fn with(on_failure: OnFailure, on_disk: Option<PersistentState>) -> Self {
            let ((begin, begun), (wake, wakes)) = (mpsc::channel(), mpsc::channel());
            let (answers, to_answer) = mpsc::channel();
            let save = move |state: &PersistentState| {
                begin.send(*state).unwrap();
                if to_answer.recv().unwrap() { Ok(()) } else { Err(full()) }
            };
            let wake = move || wake.send(()).unwrap();
            let writer = Writer::start(save, wake, on_failure, on_disk).unwrap();
            Bench { writer, begun, answers, wakes }
        }

        /// The state of the save in progress.
        fn begun(&self) -> PersistentState {
            self.begun.recv_timeout(PATIENCE).unwrap()
        }

        /// Ends the save in progress, and wakes the writer.
        fn answer(&mut self, success: bool, now: Time) {
            self.answers.send(success).unwrap();
            self.wakes.recv_timeout(PATIENCE).unwrap();
            self.writer.handle_wake(now);
        }

        fn is_idle(&self) -> bool {
            !matches!(self.writer.progress, Writing(..)) && self.begun.try_recv().is_err()
        }
    }

    fn full() -> StoreError {
        StoreError::Write { path: PathBuf::from("/x"), source: ErrorKind::StorageFull.into() }
    }

    fn term(number: u64) -> PersistentState {
        PersistentState { term: Term(number), ..PersistentState::default() }
    }

    #[test]
    fn a_state_is_settled_once_it_is_on_disk_and_not_before() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        assert_eq!(bench.begun(), term(1));
        bench.writer.handle_wake(NOW);
        assert_eq!(bench.writer.poll_settled(), None);
        assert!(bench.writer.insist(NOW).is_some());
        bench.answer(true, NOW);
        assert_eq!(bench.writer.poll_settled(), Some(term(1)));
        assert_eq!(bench.writer.poll_settled(), None);
        assert_eq!(bench.writer.insist(NOW), None);
        assert_eq!(bench.writer.saves(), 1);
    }

    #[test]
    fn of_the_states_that_wait_only_the_newest_is_written() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        assert_eq!(bench.begun(), term(1));
        for number in 2..=9 {
            bench.writer.save(term(number), NOW);
        }
        let waiting = bench.writer.insist(NOW).unwrap();
        bench.answer(true, NOW);
        assert!(!bench.writer.is_settled(waiting));
        assert_eq!(bench.begun(), term(9));
        bench.answer(true, NOW);
        assert_eq!(bench.writer.poll_settled(), Some(term(9)));
        assert!(bench.writer.is_settled(waiting) && bench.is_idle());
        assert_eq!(bench.writer.saves(), 2);
    }

    #[test]
    fn what_is_on_disk_is_not_written_again() {
        let mut bench = Bench::with(OnFailure::Wait, Some(term(1)));
        bench.writer.save(term(1), NOW);
        assert_eq!(bench.writer.poll_settled(), Some(term(1)));
        assert!(bench.is_idle());
        // Not on disk for long: another state is about to replace it.
        bench.writer.save(term(2), NOW);
        assert_eq!(bench.begun(), term(2));
        bench.writer.save(term(1), NOW);
        bench.answer(true, NOW);
        assert_eq!(bench.begun(), term(1));
    }

    #[test]
    fn where_it_goes_on_a_failure_settles_too_and_is_tried_again() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        bench.begun();
        bench.answer(false, NOW);
        assert_eq!(bench.writer.poll_settled(), Some(term(1)));
        assert!(bench.writer.failure().unwrap().contains("free some space"));
        let retry = NOW + RETRY_PAUSE;
        assert_eq!((bench.writer.poll_timeout(), bench.is_idle()), (Some(retry), true));
        bench.writer.handle_timeout(retry);
        assert_eq!(bench.begun(), term(1));
        bench.answer(false, retry);

        // The next state waits for no retry, so the election goes on.
        bench.writer.save(term(2), retry);
        assert_eq!(bench.begun(), term(2));
        bench.answer(false, retry);
        assert_eq!(bench.writer.poll_settled(), Some(term(2)));
        bench.writer.handle_timeout(retry + RETRY_PAUSE);
        assert_eq!(bench.begun(), term(2));
        bench.answer(true, retry + RETRY_PAUSE);
        assert_eq!((bench.writer.failure(), bench.writer.saves()), (None, 1));
        assert_eq!(bench.writer.poll_timeout(), None);
    }

    #[test]
    fn where_it_goes_on_a_state_that_came_meanwhile_is_written_at_once() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        bench.begun();
        bench.writer.save(term(2), NOW);
        bench.answer(false, NOW);
        assert_eq!(bench.begun(), term(2));
        bench.answer(true, NOW);
        assert_eq!(bench.writer.poll_settled(), Some(term(2)));
        assert!(bench.is_idle());
    }

    #[test]
    fn save_that_takes_too_long_is_trouble_until_it_ends() {
        for on_failure in [OnFailure::GoOn, OnFailure::Wait] {
            let mut bench = Bench::new(on_failure);
            let late = NOW + SAVE_LIMIT;
            bench.writer.save(term(1), NOW);
            bench.begun();
            assert_eq!(bench.writer.poll_timeout(), Some(late));
            assert_eq!(bench.writer.trouble(NOW + SAVE_LIMIT / 2), None);
            bench.writer.handle_timeout(late);
            assert_eq!(bench.writer.poll_timeout(), None, "it is logged once");
            let told = bench.writer.trouble(late + SAVE_LIMIT).unwrap();
            assert!(told.contains("the disk hangs") && told.ends_with("for 10 s"), "{told}");
            // It hangs as long as before the next one ends, whatever came meanwhile.
            bench.writer.save(term(2), late);
            assert!(bench.writer.trouble(late).is_some());
            assert_eq!(bench.writer.poll_settled(), None);
            bench.answer(true, late);
            assert_eq!(bench.begun(), term(2));
            assert_eq!(bench.writer.trouble(late), None);
            bench.answer(false, late);
            let told = bench.writer.trouble(late).unwrap();
            assert!(told.contains("free some space"), "{told}");
        }
    }

    #[test]
    fn who_insists_has_what_failed_tried_again() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        bench.begun();
        bench.answer(false, NOW);
        let ticket = bench.writer.insist(NOW).unwrap();
        assert!(!bench.writer.is_settled(ticket));
        assert_eq!(bench.begun(), term(1));
        bench.answer(true, NOW);
        assert!(bench.writer.is_settled(ticket));
        assert_eq!(bench.writer.insist(NOW), None);
    }

    #[test]
    fn where_it_insists_a_failure_settles_nothing_and_is_tried_again_after_a_pause() {
        let mut bench = Bench::new(OnFailure::Wait);
        bench.writer.save(term(1), NOW);
        let ticket = bench.writer.insist(NOW).unwrap();
        bench.begun();
        bench.answer(false, NOW);
        assert_eq!(bench.writer.poll_settled(), None);
        assert!(bench.writer.is_settled(ticket), "who waits for it learns that it failed");

        // However many saves are requested meanwhile.
        bench.writer.save(term(2), NOW);
        bench.writer.save(term(3), NOW);
        bench.writer.handle_timeout(NOW);
        assert!(bench.is_idle());
        let retry = NOW + RETRY_PAUSE;
        assert_eq!(bench.writer.poll_timeout(), Some(retry));
        bench.writer.handle_timeout(retry);
        assert_eq!(bench.begun(), term(3));
        bench.answer(false, retry);
        assert_eq!(bench.writer.poll_settled(), None);

        bench.writer.handle_timeout(retry + RETRY_PAUSE);
        assert_eq!(bench.begun(), term(3));
        bench.answer(true, retry + RETRY_PAUSE);
        assert_eq!(bench.writer.poll_settled(), Some(term(3)));
        assert_eq!((bench.writer.failure(), bench.writer.poll_timeout()), (None, None));
    }

    #[test]
    fn the_end_waits_for_what_is_being_written_and_for_what_waits() {
        let mut bench = Bench::new(OnFailure::GoOn);
        bench.writer.save(term(1), NOW);
        bench.begun();
        bench.writer.save(term(2), NOW);
        bench.answers.send(true).unwrap();
        bench.answers.send(true).unwrap();
        assert!(bench.writer.finish(PATIENCE, NOW));
        assert_eq!(bench.begun(), term(2));
        assert!(bench.writer.finish(PATIENCE, NOW), "nothing is left to do");
    }

    #[test]
    fn the_end_tries_what_failed_once_more_and_waits_for_no_pause() {
        let mut bench = Bench::new(OnFailure::Wait);
        bench.writer.save(term(1), NOW);
        bench.begun();
        bench.answer(false, NOW);
        bench.answers.send(false).unwrap();
        assert!(!bench.writer.finish(PATIENCE, NOW));
        assert_eq!(bench.begun(), term(1));
        bench.answers.send(true).unwrap();
        assert!(bench.writer.finish(PATIENCE, NOW));
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (hold, held) = sync_channel::<()>(0);
        let save = move |_: &PersistentState| {
            // Until the test is over.
            let _ = held.recv();
            Ok(())
        };
        let mut writer = Writer::start(save, || (), OnFailure::GoOn, None).unwrap();
        writer.save(term(1), NOW);
        assert!(!writer.finish(Duration::from_millis(50), NOW));
        drop(hold);
    }
}
