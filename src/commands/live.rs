//! `lanelect status --watch`: the status again and again.
//!
//! On a terminal each status replaces the one before it, and the last transitions are below it.
//! Elsewhere one follows the other. A second thread waits for transitions, and for a daemon that
//! is away.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::reader::Reader;
use super::{CommandError, Exit, print, render, render_transition};
use crate::client::{ClientError, Target};
use crate::control_api::{StatusReport, Transition};
use crate::os::clock;
use crate::printable::printable;
use crate::time::Time;

/// Between two statuses, if nothing happens.
const INTERVAL: Duration = Duration::from_secs(1);

/// Transitions below the status.
const TRANSITIONS_MAX: usize = 5;

/// Fewest lines of the status that a low terminal shows above the transitions.
const STATUS_MIN: usize = 4;

/// Transitions that wait for a slow terminal. If there are more, the daemon waits, and ends the
/// watch.
const QUEUE: usize = 64;

/// How the statuses are shown.
#[derive(Debug, Clone, Copy)]
pub enum Show {
    /// Each in place of the one before, on a terminal that now has so many columns and rows.
    InPlace(fn() -> (usize, usize)),
    /// One text after the other, with an empty line between them.
    InTurn,
    /// One JSON object a line.
    Json,
}

/// Shows the status every second and at every transition until the process is interrupted or the
/// reader of `out` hangs up. A daemon that stops answering later is waited for. `output` is what
/// `out` writes to: while the daemon is away there may be nothing to write.
///
/// # Errors
///
/// [`CommandError`] where there is no answer at first, or a status cannot be printed.
pub fn live(
    target: &Target,
    show: Show,
    out: &mut impl Write,
    output: &impl AsFd,
) -> Result<Exit, CommandError> {
    let reader = Reader::of(output)?;
    let mut view = View::new(target, show, target.status()?);
    let news = follow(target)?;
    loop {
        if reader.has_gone()? || view.draw(out)?.is_break() {
            return Ok(Exit::Success);
        }
        view.wait(&news);
        view.update(target.status());
    }
}

/// The transitions, from a thread that ends when the receiver is dropped. `None` if there is no
/// daemon now.
fn follow(target: &Target) -> io::Result<Receiver<Option<Transition>>> {
    let (news, receiver) = mpsc::sync_channel(QUEUE);
    let target = target.clone();
    thread::Builder::new().name("watch".to_owned()).spawn(move || pass_on(&target, &news))?;
    Ok(receiver)
}

#[expect(clippy::disallowed_methods, reason = "a thread that waits for a daemon and nothing else")]
fn pass_on(target: &Target, news: &SyncSender<Option<Transition>>) {
    loop {
        if let Ok(watch) = target.watch() {
            for transition in watch.map_while(Result::ok) {
                if news.send(Some(transition)).is_err() {
                    return;
                }
            }
        }
        if news.send(None).is_err() {
            return;
        }
        thread::sleep(INTERVAL);
    }
}

/// What is shown.
struct View<'a> {
    target: &'a Target,
    show: Show,
    /// The last status.
    report: StatusReport,
    /// Why there is none now, and since when.
    away: Option<(ClientError, Time)>,
    /// Whether that was shown where it is shown once.
    is_told: bool,
    is_first: bool,
    transitions: VecDeque<Transition>,
}

impl<'a> View<'a> {
    fn new(target: &'a Target, show: Show, report: StatusReport) -> Self {
        let transitions = VecDeque::with_capacity(TRANSITIONS_MAX + 1);
        View { target, show, report, away: None, is_told: false, is_first: true, transitions }
    }

    /// Waits for the next transition, and takes those that follow at once.
    fn wait(&mut self, news: &Receiver<Option<Transition>>) {
        let first = news.recv_timeout(INTERVAL).ok();
        let waiting = first.into_iter().chain(news.try_iter().take(QUEUE));
        for transition in waiting.flatten() {
            self.transitions.push_back(transition);
            if self.transitions.len() > TRANSITIONS_MAX {
                self.transitions.pop_front();
            }
        }
    }

    fn update(&mut self, answer: Result<StatusReport, ClientError>) {
        match answer {
            Ok(report) => {
                self.report = report;
                (self.away, self.is_told) = (None, false);
            }
            Err(error) => {
                let since = self.away.as_ref().map_or_else(clock::now, |(_, since)| *since);
                self.away = Some((error, since));
            }
        }
    }

    /// Shows what is new. Breaks where the reader has hung up.
    fn draw(&mut self, out: &mut impl Write) -> Result<ControlFlow<()>, CommandError> {
        if let Show::InPlace(size) = self.show {
            let (columns, rows) = size();
            let text = self.page(rows);
            let frame = frame(&printable(&text), columns, self.is_first);
            self.is_first = false;
            return super::print_raw(out, &frame);
        }
        if std::mem::replace(&mut self.is_told, self.away.is_some()) {
            return Ok(ControlFlow::Continue(()));
        }
        let text = self.next_text()?;
        self.is_first = false;
        print(out, &text)
    }

    /// The text that follows those before.
    fn next_text(&self) -> Result<String, CommandError> {
        let error = self.away.as_ref().map(|(error, _)| error.to_string());
        if matches!(self.show, Show::Json) {
            let line = match error {
                Some(error) => serde_json::to_string(&json!({"error": error})),
                None => serde_json::to_string(&self.report),
            };
            return Ok(line.map_err(io::Error::from)? + "\n");
        }
        let text = error.map_or_else(|| render(&self.report, self.target), |error| error + "\n");
        let separator = if self.is_first { "" } else { "\n" };
        Ok(format!("{separator}{text}"))
    }

    /// All lines for a terminal with so many rows.
    fn page(&self, rows: usize) -> String {
        let mut status = String::new();
        if let Some((error, since)) = &self.away {
            let seconds = clock::now().since(*since).as_secs();
            status = format!("NO ANSWER for {seconds} s: {error}\nThe last status:\n\n");
        }
        status += &render(&self.report, self.target);
        let transitions: Vec<_> = self.transitions.iter().map(render_transition).collect();
        fitting(&status, &transitions, rows)
    }
}

/// As many lines of the status, and of the last transitions below it, as `rows` can show. The
/// terminal's last row stays free for the cursor.
fn fitting(status: &str, transitions: &[String], rows: usize) -> String {
    let rows = rows.saturating_sub(1).max(1);
    let wanted = if transitions.is_empty() { 0 } else { 1 + transitions.len() };
    let below = wanted.min(rows.saturating_sub(STATUS_MIN));
    let above = rows - below;
    let lines: Vec<_> = status.lines().collect();
    let mut page = String::new();
    let shown = if lines.len() > above { above.saturating_sub(1) } else { lines.len() };
    for line in &lines[..shown] {
        page += &format!("{line}\n");
    }
    if shown < lines.len() {
        page += &format!("… {} more lines\n", lines.len() - shown);
    }
    if below > 1 {
        page += "\n";
        let newest = transitions.len() - (below - 1).min(transitions.len());
        page.extend(transitions[newest..].iter().map(String::as_str));
    }
    page
}

/// The text in place of what the terminal shows. Longer lines are cut, also those whose characters
/// are wider than one column.
fn frame(text: &str, columns: usize, is_first: bool) -> String {
    const CLEAR: &str = "\x1b[2J";
    const HOME: &str = "\x1b[H";
    const CUT_LONG_LINES: &str = "\x1b[?7l";
    const WRAP_LONG_LINES: &str = "\x1b[?7h";
    const CLEAR_LINE_END: &str = "\x1b[K";
    const CLEAR_BELOW: &str = "\x1b[J";
    let mut frame = format!("{}{HOME}{CUT_LONG_LINES}", if is_first { CLEAR } else { "" });
    for line in text.lines() {
        frame.extend(line.chars().take(columns.max(1)));
        frame += &format!("{CLEAR_LINE_END}\n");
    }
    frame + CLEAR_BELOW + WRAP_LONG_LINES
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::follower;
    use super::*;
    use crate::types::{Role, Term};

    fn transition(time_ms: u64) -> Transition {
        Transition {
            time_ms,
            role: Role::Follower,
            previous_role: Role::Starting,
            term: Term(7),
            leader: None,
            previous_leader: None,
            reason: None,
        }
    }

    fn drawn(view: &mut View<'_>) -> String {
        let mut out = Vec::new();
        assert!(view.draw(&mut out).unwrap().is_continue());
        String::from_utf8(out).unwrap()
    }

    fn gone() -> Result<StatusReport, ClientError> {
        Err(ClientError::HungUp("/x".into()))
    }

    #[test]
    fn texts_are_separated_by_an_empty_line_and_an_absence_is_shown_once() {
        let target = Target::at("/run/lanelect/default.sock");
        let mut view = View::new(&target, Show::InTurn, follower());
        let text = render(&follower(), &target);
        assert_eq!(drawn(&mut view), text);
        view.update(Ok(follower()));
        assert_eq!(drawn(&mut view), format!("\n{text}"));
        view.update(gone());
        assert!(drawn(&mut view).starts_with("\nthe daemon at /x closed"));
        view.update(gone());
        assert_eq!(drawn(&mut view), "");
        view.update(Ok(follower()));
        assert_eq!(drawn(&mut view), format!("\n{text}"));
    }

    #[test]
    fn each_line_of_json_is_an_object() {
        let target = Target::at("/x");
        let mut view = View::new(&target, Show::Json, follower());
        let line = drawn(&mut view);
        assert_eq!(serde_json::from_str::<StatusReport>(&line).unwrap(), follower());
        view.update(gone());
        assert!(drawn(&mut view).starts_with("{\"error\":\"the daemon"));
    }

    #[test]
    fn page_of_an_absent_daemon_has_its_last_status() {
        let target = Target::at("/x");
        let mut view = View::new(&target, Show::InPlace(|| (80, 24)), follower());
        view.update(gone());
        let page = drawn(&mut view);
        assert!(page.starts_with("\x1b[2J\x1b[H\x1b[?7lNO ANSWER for 0 s: the daemon"), "{page:?}");
        assert!(page.contains("\nThe last status:") && page.contains("web1: follower of web0"));
        view.update(Ok(follower()));
        let page = drawn(&mut view);
        assert!(page.starts_with("\x1b[H\x1b[?7lweb1: follower"), "{page:?}");
    }

    #[test]
    fn last_transitions_are_kept() {
        let target = Target::at("/x");
        let mut view = View::new(&target, Show::InTurn, follower());
        let (sender, news) = mpsc::sync_channel(QUEUE);
        (0..9).for_each(|n| sender.send(Some(transition(n))).unwrap());
        sender.send(None).unwrap();
        view.wait(&news);
        let kept: Vec<_> = view.transitions.iter().map(|transition| transition.time_ms).collect();
        assert_eq!(kept, [4, 5, 6, 7, 8]);
    }

    #[test]
    fn page_fits_a_terminal_of_any_height() {
        let status: String = (0..10).map(|n| format!("line {n}\n")).collect();
        let transitions: Vec<_> = (0..3).map(|n| format!("change {n}\n")).collect();
        let whole = fitting(&status, &transitions, 15);
        assert!(whole.ends_with("line 9\n\nchange 0\nchange 1\nchange 2\n"), "{whole}");
        let low = fitting(&status, &transitions, 10);
        assert!(low.ends_with("line 3\n… 6 more lines\n\nchange 0\nchange 1\nchange 2\n"), "{low}");
        for rows in 0..30 {
            let page = fitting(&status, &transitions, rows);
            assert!(page.lines().count() <= rows.saturating_sub(1).max(1), "{rows}: {page}");
            assert!(fitting(&status, &[], rows).lines().count() <= rows.saturating_sub(1).max(1));
        }
    }

    #[test]
    fn lines_are_cut_at_the_last_column() {
        let text = frame("abcdef\ngh\n", 4, false);
        assert_eq!(text, "\x1b[H\x1b[?7labcd\x1b[K\ngh\x1b[K\n\x1b[J\x1b[?7h");
        assert!(frame("é漢", 0, true).contains("é\x1b[K"));
    }
}
