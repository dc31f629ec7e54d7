//! How a promotion script is noticed: it writes a line into a pipe that a thread reads.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::harness::patience::{LIMIT, now};

/// What ends the reading thread.
const END: &str = "end";

/// One line that a script wrote.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    /// The name of the script's host.
    pub(crate) host: String,
    /// What it is told: `elected`, or `reaffirmed` from a leader that stayed one.
    pub(crate) event: String,
    /// When the line was read.
    pub(crate) at: Instant,
}

/// A named pipe that hooks write to.
pub(crate) struct Bell {
    path: PathBuf,
    rings: Receiver<Ring>,
    reader: Option<JoinHandle<()>>,
}

impl Bell {
    /// A pipe at this path, instead of what was there.
    pub(crate) fn new(path: PathBuf) -> Bell {
        let _ = std::fs::remove_file(&path);
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        // Open for writing too: it never ends, and no script waits for a reader.
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (sender, rings) = channel();
        let reader = thread::spawn(move || read(BufReader::new(pipe), &sender));
        Bell { path, rings, reader: Some(reader) }
    }

    /// What hooks write to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for a promotion on a host other than this one; panics where none comes.
    pub(crate) fn await_successor(&self, of: &str) -> Ring {
        self.await_ring(|ring| ring.host != of && ring.event == "elected")
    }

    /// Waits for a ring like this; panics where none comes.
    pub(crate) fn await_ring(&self, wanted: impl Fn(&Ring) -> bool) -> Ring {
        loop {
            let ring = self.rings.recv_timeout(LIMIT).expect("a ring");
            if wanted(&ring) {
                return ring;
            }
        }
    }

    /// What has rung since the last look.
    pub(crate) fn rings(&self) -> Vec<Ring> {
        self.rings.try_iter().collect()
    }

    /// Forgets what has rung.
    pub(crate) fn silence(&self) {
        drop(self.rings());
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut pipe = OpenOptions::new().write(true).open(&self.path).unwrap();
        writeln!(pipe, "{END}").unwrap();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn read(pipe: BufReader<std::fs::File>, rings: &Sender<Ring>) {
    for line in pipe.lines().map_while(Result::ok).take_while(|line| line != END) {
        let at = now();
        let (host, event) = line.split_once(' ').unwrap();
        let _ = rings.send(Ring { host: host.to_owned(), event: event.to_owned(), at });
    }
}
