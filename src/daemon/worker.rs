//! A thread that does slow work for the event loop, one order at a time.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Starts a thread that carries out each order with `work`, sends the result, and calls `wake`. It
/// ends when the sender of orders or the receiver of results is dropped.
///
/// # Errors
///
/// If the system gives no thread.
pub(super) fn start<Order: Send + 'static, Outcome: Send + 'static>(
    name: &str,
    mut work: impl FnMut(Order) -> Outcome + Send + 'static,
    wake: impl Fn() + Send + 'static,
) -> io::Result<(Sender<Order>, Receiver<Outcome>)> {
    let (orders, to_do) = mpsc::channel();
    let (done, results) = mpsc::channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        for order in to_do {
            if done.send(work(order)).is_err() {
                return;
            }
            wake();
        }
    })?;
    Ok((orders, results))
}
