//! The log on stderr: `<priority>message` for the journal, `level message` for people, and on a
//! terminal `time level message`.
//!
//! Logging never blocks. A thread writes the lines from `queue`; a stderr that is not read cannot
//! stop an election.

mod queue;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use env_logger::{Builder, Target};
use log::Level;

use self::queue::Queue;
use crate::os::clock;
use crate::printable::{printable, time_of_day};

/// Variables with the log filter, such as `debug` or `info,lanelect::daemon=trace`. The first one
/// that is set is used.
const FILTER_VARIABLES: [&str; 2] = ["LANELECT_LOG", "RUST_LOG"];

/// How long a process that ends waits until its last lines are written.
pub const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// The log queue of this process.
static QUEUE: OnceLock<Queue> = OnceLock::new();

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With a priority; the journal adds the time.
    Journal,
    /// With the level. A supervisor that collects the lines adds the time.
    File,
    /// With the time and the level.
    Terminal,
}

impl Form {
    fn of_stderr() -> Self {
        if goes_to_journal() {
            Form::Journal
        } else if io::stderr().is_terminal() {
            Form::Terminal
        } else {
            Form::File
        }
    }
}

/// Starts logging to stderr. A second call changes nothing.
///
/// The lines of a process that ends are lost unless it calls [`flush`] first.
pub fn init() {
    let filters = FILTER_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let form = Form::of_stderr();
    let mut builder = Builder::new();
    builder.parse_filters(filters.as_deref().unwrap_or("info"));
    builder.format(move |out, record| {
        write_message(out, record.level(), &record.args().to_string(), form)
    });
    // If the system provides no thread, the logging thread writes the line itself.
    if let Ok(queue) = Queue::start(io::stderr(), move |count| lines_lost(count, form)) {
        let queue = QUEUE.get_or_init(|| queue);
        builder.target(Target::Pipe(Box::new(queue.clone())));
    }
    // Fails only if there is a logger already.
    if builder.try_init().is_ok() {
        flush_before_panics();
    }
}

/// Waits until all lines are written, at most for [`FLUSH_PATIENCE`]. Returns whether they are.
pub fn flush() -> bool {
    QUEUE.get().is_none_or(|queue| queue.flush(FLUSH_PATIENCE))
}

/// Prints a panic after the log. Prints nothing if stderr is not read, because the process must
/// end.
fn flush_before_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if flush() {
            print(panic);
        }
    }));
}

/// The line that reports how many lines were dropped.
fn lines_lost(count: u64, form: Form) -> Vec<u8> {
    let mut line = Vec::new();
    let text = format!("{count} log lines were dropped: stderr was not read in time");
    // Writing to a vector cannot fail.
    let _ = write_message(&mut line, Level::Warn, &text, form);
    line
}

/// Whether stderr is the journal's.
pub fn goes_to_journal() -> bool {
    std::env::var("JOURNAL_STREAM").is_ok_and(|stream| is_stderr(&stream))
}

/// Every line has the prefix: each is a message for the journal.
fn write_message(out: &mut impl Write, level: Level, message: &str, form: Form) -> io::Result<()> {
    let word = level.as_str().to_ascii_lowercase();
    let prefix = match form {
        Form::Journal => format!("<{}>", priority(level)),
        Form::File => format!("{word:<5} "),
        Form::Terminal => format!("{} {word:<5} ", time_of_day(clock::wall_ms())),
    };
    for line in message.lines().map(printable) {
        writeln!(out, "{prefix}{line}")?;
    }
    Ok(())
}

/// The level as syslog and sd-daemon(3) number it.
const fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Whether `stream`, the device and inode that systemd connected to the journal, is still our
/// stderr. A child inherits the variable, but its stderr may be redirected.
fn is_stderr(stream: &str) -> bool {
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    stderr
        .and_then(|file| file.metadata())
        .is_ok_and(|found| stream == format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(level: Level, message: &str, form: Form) -> String {
        let mut out = Vec::new();
        write_message(&mut out, level, message, form).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_journal_gets_a_priority_on_every_line_and_people_the_level() {
        assert_eq!(written(Level::Warn, "a\nb", Form::Journal), "<4>a\n<4>b\n");
        assert_eq!(written(Level::Info, "a", Form::File), "info  a\n");
    }

    #[test]
    fn lines_on_a_terminal_have_the_time() {
        let line = written(Level::Info, "a", Form::Terminal);
        assert_eq!(line.len(), "09:41:07.212Z info  a\n".len(), "{line}");
        assert!(line.ends_with("Z info  a\n"), "{line}");
    }

    #[test]
    fn control_characters_are_escaped() {
        for (message, line) in [("a\u{1b}[2Jb", r"a\u001b[2Jb"), ("a\rb", r"a\u000db")] {
            assert_eq!(written(Level::Warn, message, Form::File), format!("warn  {line}\n"));
            assert_eq!(written(Level::Warn, message, Form::Journal), format!("<4>{line}\n"));
        }
    }

    #[test]
    fn only_the_very_stream_that_stderr_is_counts_as_the_journal() {
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned().unwrap());
        let found = stderr.metadata().unwrap();
        assert!(is_stderr(&format!("{}:{}", found.dev(), found.ino())));
        assert!(!is_stderr(&format!("{}:{}", found.dev(), found.ino() + 1)));
        assert!(!is_stderr(""));
    }
}
