//! The hook's and the fence's runs.

use lanelect::control_api::{RUN_TIME_BOUNDS_MS, StatusReport};

use crate::text_format::{Kind, Page};

pub(super) fn render(page: &mut Page, report: &StatusReport) {
    let hook = &report.hook;
    page.metric("lanelect_hook_running", Kind::Gauge, "Whether the hook runs now.")
        .truth(&[], hook.running);
    page.metric(
        "lanelect_hook_pending",
        Kind::Gauge,
        "Whether a hook run is in progress or waits.",
    )
    .truth(&[], hook.pending);
    let help = "Whether the hook has not released what it holds within demote_grace.";
    page.metric("lanelect_hook_overdue", Kind::Gauge, help).truth(&[], hook.overdue_term.is_some());
    if let Some(event) = hook.last_exit_event {
        last_run(page, &event.to_string(), hook.last_exit);
    }
    let help = "Runs for elected that failed.";
    page.metric("lanelect_hook_elected_failures", Kind::Counter, help)
        .value(&[], hook.elected_failures);
    let help = "How long the hook ran.";
    let mut times = page.metric("lanelect_hook_duration_seconds", Kind::Histogram, help);
    for run in &hook.run_times {
        let labels = [("event", &*run.event.to_string())];
        times.histogram(&labels, &RUN_TIME_BOUNDS_MS, &run.counts, run.sum_ms);
    }
    if let Some(fence) = &report.fence {
        page.metric("lanelect_fence_succeeded", Kind::Gauge, "Whether its last run succeeded.")
            .truth(&[], fence.succeeded);
        page.metric("lanelect_fence_timestamp_seconds", Kind::Gauge, "When its last run ended.")
            .seconds(&[], fence.time_ms);
    }
}

/// A run that did not begin, or is lost, has no exit status, and has failed.
fn last_run(page: &mut Page, event: &str, exit: Option<i32>) {
    let labels = [("event", event)];
    page.metric("lanelect_hook_failed", Kind::Gauge, "Whether its last finished run failed.")
        .truth(&labels, exit != Some(0));
    if let Some(exit) = exit {
        let help =
            "How its last finished run ended: its status, or 128 and the signal that ended it.";
        page.metric("lanelect_hook_exit_status", Kind::Gauge, help)
            .value(&labels, u64::try_from(exit).unwrap_or(u64::MAX));
    }
}
