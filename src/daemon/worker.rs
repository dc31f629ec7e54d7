//! A thread that does slow work for the event loop, one order at a time.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

#[cfg(test)]
use crate::os::clock;
#[cfg(test)]
use crate::os::simulated::{self, Step};

/// What the orders have come to, in their order.
#[derive(Debug)]
pub(super) struct Results<Outcome>(Receiver<Outcome>);

impl<Outcome> Results<Outcome> {
    /// The next one, if it has come.
    ///
    /// # Errors
    ///
    /// If none is there, or none will ever be.
    pub(super) fn try_recv(&self) -> Result<Outcome, TryRecvError> {
        self.0.try_recv()
    }

    /// Waits for the next one.
    ///
    /// # Errors
    ///
    /// If none came in time, or none will ever come.
    pub(super) fn recv_timeout(&self, patience: Duration) -> Result<Outcome, RecvTimeoutError> {
        #[cfg(test)]
        if let Some(stage) = simulated::stage() {
            let end = clock::now() + patience;
            loop {
                match self.0.try_recv() {
                    Err(TryRecvError::Empty) if clock::now() < end => stage.sleep(Some(end)),
                    result => return result.map_err(|_| RecvTimeoutError::Timeout),
                }
            }
        }
        self.0.recv_timeout(patience)
    }
}

/// Starts a thread that carries out each order with `work`, sends the result, and calls `wake`. It
/// ends when the sender of orders or the receiver of results is dropped.
///
/// # Errors
///
/// If the system gives no thread.
pub(super) fn start<Order: Send + 'static, Outcome: Send + 'static>(
    name: &'static str,
    mut work: impl FnMut(Order) -> Outcome + Send + 'static,
    wake: impl Fn() + Send + 'static,
) -> io::Result<(Sender<Order>, Results<Outcome>)> {
    let (orders, to_do) = mpsc::channel();
    let (done, results) = mpsc::channel();
    #[cfg(test)]
    if let Some(stage) = simulated::stage() {
        let mut outcome = None;
        let carry_out = move |step| {
            match step {
                Step::CarryOut => outcome = to_do.try_recv().ok().map(&mut work),
                Step::Report => {
                    // Fails only if the daemon has ended.
                    let _ = outcome.take().map(|outcome| done.send(outcome));
                    wake();
                    return true;
                }
            }
            outcome.is_some()
        };
        stage.adopt(name, Box::new(carry_out));
        return Ok((orders, Results(results)));
    }
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        for order in to_do {
            if done.send(work(order)).is_err() {
                return;
            }
            wake();
        }
    })?;
    Ok((orders, Results(results)))
}
