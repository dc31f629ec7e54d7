//! The notes about runs of the hook and the fence command.

use super::{ending, short};
use crate::commands::transition::date_and_time;
use crate::control_api::{HookReport, RunReport, StatusReport};

/// The last run, and whether another one waits; while it runs, or if it failed, also where its
/// output goes.
pub(super) fn hook(hook: &HookReport) -> Option<String> {
    let waits = hook.pending && !hook.running;
    let Some(event) = hook.last_event else { return waits.then(|| "a run waits".to_owned()) };
    let since = hook.last_start_ms.map(|at| format!(" since {}", date_and_time(at)));
    let ending = match hook.running {
        true => format!("running{}", since.unwrap_or_default()),
        false => ending(hook.last_exit, hook.last_ms),
    };
    let needs_a_look = hook.running || hook.last_exit != Some(0);
    let output = hook.output.as_ref().filter(|_| needs_a_look);
    let output = output.map_or(String::new(), |output| format!("; output: {output}"));
    let overdue = hook.overdue_term.map(|term| format!(", HAS NOT RELEASED term {term}"));
    let next = if waits { "; another run waits" } else { "" };
    Some(format!("{event}, {ending}{}{next}{output}", overdue.unwrap_or_default()))
}

/// The failed runs for `elected`, which a later run hides.
pub(super) fn elected_failures(hook: &HookReport) -> Option<String> {
    let last = hook.last_elected_failure?;
    let times = times(hook.elected_failures);
    Some(format!("{times} for elected; the last time {}", outcome(&last)))
}

/// How often the hook was overdue, and how the fence command ended.
pub(super) fn fence(report: &StatusReport) -> Option<String> {
    let fences = report.counters.fences;
    let last = report.fence.as_ref();
    if fences == 0 && last.is_none() {
        return None;
    }
    let ended = match last {
        Some(run) if run.succeeded => format!("the fence command succeeded {}", outcome(run)),
        Some(run) => format!("THE FENCE COMMAND DID NOT SUCCEED {}", outcome(run)),
        None => "the fence command has not ended".to_owned(),
    };
    Some(format!("the hook exceeded demote_grace {}; {ended}", times(fences)))
}

fn outcome(run: &RunReport) -> String {
    let exit = run.exit.map_or("did not run".to_owned(), |exit| format!("exit {exit}"));
    format!("at {}: {exit}, {}", date_and_time(run.time_ms), short(run.took_ms))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{follower, render};
    use super::*;

    /// At 2026-03-14T09:41:07.212Z.
    const FAILED: RunReport =
        RunReport { time_ms: 1_773_481_267_212, succeeded: false, exit: Some(1), took_ms: 1_250 };

    #[test]
    fn run_in_progress_shows_where_its_output_goes() {
        let mut report = follower();
        report.hook.last_start_ms = Some(FAILED.time_ms);
        report.hook.output = Some("journalctl -t lanelect-started".to_owned());
        assert!(render(&report).contains("hook  started, exit 0, 3 ms\n"));
        report.hook.running = true;
        let text = render(&report);
        let line = "hook  started, running since 2026-03-14 09:41:07Z; \
                    output: journalctl -t lanelect-started\n";
        assert!(text.contains(line), "{text}");
        report.hook.running = false;
        report.hook.last_exit = Some(2);
        let text = render(&report);
        assert!(text.contains("exit 2, 3 ms; output: journalctl -t"), "{text}");
    }

    #[test]
    fn run_that_waits_is_shown_until_it_runs() {
        let mut report = follower();
        report.hook.pending = true;
        let text = render(&report);
        assert!(text.contains("hook  started, exit 0, 3 ms; another run waits\n"), "{text}");
        report.hook.running = true;
        assert!(!render(&report).contains("waits"));
        report.hook = HookReport { pending: true, ..HookReport::default() };
        assert!(render(&report).contains("hook  a run waits\n"));
    }

    #[test]
    fn failed_run_for_elected_has_a_line_until_the_daemon_restarts() {
        let mut report = follower();
        report.hook.elected_failures = 3;
        report.hook.last_elected_failure = Some(FAILED);
        let text = render(&report);
        let line =
            "failed  3 times for elected; the last time at 2026-03-14 09:41:07Z: exit 1, 1.2 s\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn fence_has_a_line_once_the_hook_was_overdue() {
        let mut report = follower();
        assert!(!render(&report).contains("fence"));
        report.counters.fences = 1;
        let begins = "fence  the hook exceeded demote_grace once; ";
        let text = render(&report);
        assert!(text.contains(&format!("{begins}the fence command has not ended\n")), "{text}");
        report.fence = Some(FAILED);
        let text = render(&report);
        assert!(text.contains(&format!("{begins}THE FENCE COMMAND DID NOT SUCCEED at ")), "{text}");
        report.fence = Some(RunReport { succeeded: true, exit: Some(0), ..FAILED });
        let text = render(&report);
        assert!(text.contains(&format!("{begins}the fence command succeeded at ")), "{text}");
    }
}
