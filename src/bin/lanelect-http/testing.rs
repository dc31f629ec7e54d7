//! A status for unit tests.

use lanelect::control_api::StatusReport;
use serde_json::json;

/// web1 leads a group of its own, and its hook has not run.
pub fn report() -> StatusReport {
    let counters = json!({
        "datagrams_sent": 0, "datagrams_received": 0, "send_errors": 0,
        "transitions": 0, "state_saves": 0, "fences": 0,
        "rejected": {
            "malformed": 0, "auth": 0, "replayed": 0, "foreign_group": 0, "version": 0,
            "table_full": 0,
        },
    });
    let status = json!({
        "version": "0.1.0", "group": "web", "node_id": "web1", "role": "leader", "term": 7,
        "eligible": true, "mode": "available", "since_ms": 1000, "uptime_ms": 2000,
        "members": [], "interfaces": [], "hook": { "running": false }, "counters": counters,
    });
    serde_json::from_value(status).unwrap()
}
