//! What happened when, a line each.

use std::fmt::Display;
use std::io::{self, Write};

use crate::time::Time;

/// Prints lines such as `  640 ms  alpha   leads, term 1 (election)`.
#[derive(Debug)]
pub(super) struct Timeline<W> {
    out: W,
    start: Time,
    /// The time of the last line.
    last: Time,
}

impl<W: Write> Timeline<W> {
    /// A timeline that counts from `start`.
    pub(super) fn new(out: W, start: Time) -> Self {
        Timeline { out, start, last: start }
    }

    /// Prints at once what `who` did at `at`. Times never go back: what is learnt late counts as
    /// having happened when it is told.
    ///
    /// # Errors
    ///
    /// Where nobody reads any more.
    pub(super) fn tell(&mut self, at: Time, who: &str, what: impl Display) -> io::Result<()> {
        self.last = self.last.max(at);
        let millis = self.last.since(self.start).as_millis();
        self.print(&format!("{millis:>6} ms  {who:<8} {what}\n"))
    }

    /// Prints text that has no time.
    ///
    /// # Errors
    ///
    /// Where nobody reads any more.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_start_and_never_go_back() {
        let mut out = Vec::new();
        let mut timeline = Timeline::new(&mut out, Time::from_millis(5_000));
        timeline.tell(Time::from_millis(5_000), "demo", "begins").unwrap();
        timeline.tell(Time::from_millis(17_345), "epsilon", "leads").unwrap();
        timeline.tell(Time::from_millis(17_000), "late", "news").unwrap();
        timeline.print("end\n").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "     0 ms  demo     begins\n \
             12345 ms  epsilon  leads\n \
             12345 ms  late     news\n\
             end\n"
        );
    }
}
