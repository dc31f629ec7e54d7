//! The metrics of one status.

use lanelect::control_api::{DuplicateReport, PeerReport};
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

#[test]
fn peer_with_a_problem_is_not_up() {
    let peer = PeerReport {
        peer: "web2:7669".to_owned(),
        addresses: Vec::new(),
        is_self: false,
        source: None,
        up: true,
        problem: None,
    };
    let up = |peer| {
        sample("lanelect_peer_up{group=\"web\",peer=\"web2:7669\"} ", |report| {
            report.peers = vec![peer];
        })
    };
    assert_eq!(up(peer.clone()).as_deref(), Some("1"));
    let problem = Some("its name cannot be resolved".to_owned());
    assert_eq!(up(PeerReport { problem, ..peer }).as_deref(), Some("0"));
    assert_eq!(sample("# TYPE lanelect_peer_up", |_| {}), None);
}

#[test]
fn duplicate_node_id_shows_when_it_was_turned_away() {
    let heard = |duplicate| {
        sample("lanelect_duplicate_heard_seconds{group=\"web\"} ", |report| {
            report.duplicate = duplicate;
        })
    };
    assert_eq!(heard(None), None);
    let duplicate = DuplicateReport { address: [10, 0, 0, 9].into(), last_ms: 1500 };
    assert_eq!(heard(Some(duplicate)).as_deref(), Some("1.5"));
}
