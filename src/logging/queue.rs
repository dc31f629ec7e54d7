//! The log queue: bounded, and written by a thread.
//!
//! ```text
//!   whoever logs ── write ──▶ lines that wait ──▶ ┌────────┐ ── write ──▶ stderr
//!                  never waits                    │ thread │     may wait for ever
//!                                                 └────────┘
//! ```
//!
//! A write to stderr blocks if a pipe is not read or the journal hangs. Then only the thread waits.
//! Lines for which the queue has no room are dropped and counted, and the count is logged as soon
//! as writing works again.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of bytes in the queue. A line that would exceed it is dropped.
pub(super) const QUEUE_MAX: usize = 256 * 1024;

/// The input of the queue. Each write is one record, and is dropped as a whole.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Dropped lines, which are reported with the next line that is written.
    dropped: u64,
    is_writing: bool,
}

impl Queue {
    /// A queue whose lines a thread writes to `out`. `tell_dropped` makes the line that reports
    /// dropped lines.
    ///
    /// # Errors
    ///
    /// The system provides no thread.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        tell_dropped: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Queue(Arc::default());
        let shared = Arc::clone(&queue.0);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || shared.serve(out, tell_dropped))?;
        Ok(queue)
    }

    /// Waits until everything is written, at most for `patience`. Returns whether it is.
    pub(super) fn flush(&self, patience: Duration) -> bool {
        let has_work = |waiting: &mut Waiting| !waiting.lines.is_empty() || waiting.is_writing;
        let waiting = self.0.lock();
        let waited = self.0.changed.wait_timeout_while(waiting, patience, has_work);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Write for Queue {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let mut waiting = self.0.lock();
        if waiting.lines.len() + record.len() > QUEUE_MAX {
            waiting.dropped += count_lines(record);
        } else {
            waiting.lines.extend_from_slice(record);
        }
        drop(waiting);
        self.0.changed.notify_all();
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    /// Never returns: the thread ends with the process.
    fn serve(&self, mut out: impl Write, tell_dropped: impl Fn(u64) -> Vec<u8>) {
        loop {
            let (mut lines, dropped) = self.take();
            let lost = dropped + count_lines(&lines);
            if dropped > 0 {
                lines.extend(tell_dropped(dropped));
            }
            let is_written = out.write_all(&lines).and_then(|()| out.flush()).is_ok();
            self.note_written(if is_written { 0 } else { lost });
        }
    }

    /// Waits for lines and takes all of them, with the number of lines dropped after them.
    fn take(&self) -> (Vec<u8>, u64) {
        let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty();
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.is_writing = true;
        (mem::take(&mut waiting.lines), mem::take(&mut waiting.dropped))
    }

    fn note_written(&self, lost: u64) {
        let mut waiting = self.lock();
        waiting.is_writing = false;
        waiting.dropped += lost;
        drop(waiting);
        self.changed.notify_all();
    }

    /// No code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_lines(record: &[u8]) -> u64 {
    record.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A writer that blocks until the test lets it continue.
    struct Stuck {
        taken: Sender<Vec<u8>>,
        go_on: Receiver<io::Result<()>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.taken.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.go_on.recv().map_err(io::Error::other)??;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stuck() -> (Queue, Receiver<Vec<u8>>, Sender<io::Result<()>>) {
        let (taken, takes) = mpsc::channel();
        let (goes_on, go_on) = mpsc::channel();
        let tell = |count| format!("{count} lost\n").into_bytes();
        (Queue::start(Stuck { taken, go_on }, tell).unwrap(), takes, goes_on)
    }

    fn next(takes: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(takes.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    #[test]
    fn log_that_is_not_read_does_not_block_and_reports_dropped_lines() {
        let (mut queue, takes, goes_on) = stuck();
        queue.write_all(b"first\n").unwrap();
        assert_eq!(next(&takes), "first\n");
        let line = format!("{}\n", "x".repeat(1023));
        for _ in 0..2 * QUEUE_MAX / line.len() {
            queue.write_all(line.as_bytes()).unwrap();
        }
        queue.write_all(b"two lines\n of one record that is dropped\n").unwrap();
        assert!(!queue.flush(Duration::ZERO));

        goes_on.send(Ok(())).unwrap();
        let rest = next(&takes);
        let count = QUEUE_MAX / line.len();
        assert_eq!(rest, format!("{}{} lost\n", line.repeat(count), count + 2));
        goes_on.send(Ok(())).unwrap();
        assert!(queue.flush(PATIENCE));
        queue.write_all(b"last\n").unwrap();
        assert_eq!(next(&takes), "last\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_not_retried() {
        let (mut queue, takes, goes_on) = stuck();
        queue.write_all(b"first\nsecond\n").unwrap();
        assert_eq!(next(&takes), "first\nsecond\n");
        goes_on.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        assert!(queue.flush(PATIENCE));
        assert!(takes.try_recv().is_err());
        queue.write_all(b"third\n").unwrap();
        assert_eq!(next(&takes), "third\n2 lost\n");
    }
}
