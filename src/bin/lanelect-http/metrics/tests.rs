//! The metrics of one status.

use lanelect::core::hook::HookEvent;

use super::*;
use crate::testing::report;

/// The sample that begins with `start`, of the status after this change.
fn sample(start: &str, change: impl FnOnce(&mut StatusReport)) -> Option<String> {
    let mut report = report();
    change(&mut report);
    let text = render(None, Some(&report), Format::Text);
    text.lines().find_map(|line| line.strip_prefix(start)).map(str::to_owned)
}

#[test]
fn hook_run_without_an_exit_status_has_failed() {
    let failed = |exit| {
        sample("lanelect_hook_failed{group=\"web\",event=\"demoted\"} ", |report| {
            report.hook.last_exit_event = Some(HookEvent::Demoted);
            report.hook.last_exit = exit;
        })
    };
    assert_eq!(failed(None).as_deref(), Some("1"));
    assert_eq!(failed(Some(143)).as_deref(), Some("1"));
    assert_eq!(failed(Some(0)).as_deref(), Some("0"));
    assert_eq!(sample("lanelect_hook_failed", |_| {}), None);
}
