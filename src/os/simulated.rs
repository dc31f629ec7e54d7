//! What a simulation puts in the place of the clock, of chance, of threads and of signals, for the
//! code that runs on the present thread.

use std::cell::RefCell;
use std::rc::Rc;

use crate::time::Time;

/// What the code on a thread is given. Each of its calls may end the thread's code by unwinding.
pub trait Stage {
    /// The time. It may be much later than at the last call: the process was stopped.
    fn now(&self) -> Time;
    /// The code is at a place where it matters if it is stopped.
    fn may_stop(&self);
    /// The wall clock, in milliseconds since 1970.
    fn wall_ms(&self) -> u64;
    /// A random number.
    fn draw(&self) -> u64;
    /// Returns at `until`, and earlier when something may have happened.
    fn sleep(&self, until: Option<Time>);
    /// A signal that has arrived, once.
    fn poll_signal(&self) -> Option<i32>;
    /// Takes over the work of a thread.
    fn adopt(&self, name: &'static str, work: Work);
}

/// The work of a thread that carries out one order after the other. Returns false if there was
/// nothing to do.
pub type Work = Box<dyn FnMut(Step) -> bool + Send>;

/// What a thread does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It carries out the next order.
    CarryOut,
    /// It reports the result.
    Report,
}

thread_local! {
    static STAGE: RefCell<Option<Rc<dyn Stage>>> = const { RefCell::new(None) };
}

/// The code on this thread runs on `stage` from now on.
pub fn enter(stage: Rc<dyn Stage>) {
    STAGE.set(Some(stage));
}

/// The stage of this thread; none if it runs on the real host.
pub fn stage() -> Option<Rc<dyn Stage>> {
    STAGE.with_borrow(Clone::clone)
}
