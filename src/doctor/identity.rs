//! Whether another daemon has this node's id.

use super::finding::{Finding, ago};
use crate::control_api::StatusReport;

const TOPIC: &str = "node-id";

pub(super) fn judge(report: &StatusReport) -> Finding {
    let node_id = report.node_id;
    match report.recent_duplicate() {
        Some(duplicate) => Finding::fail(
            TOPIC,
            format!(
                "another daemon with node_id {node_id} was started at {}, the last time {}; it was \
                 turned away and ended",
                duplicate.address,
                ago(duplicate.last_ms)
            ),
        )
        .remedy("give that host another node_id; the default is the hostname"),
        None => Finding::ok(TOPIC, format!("no other daemon has claimed to be {node_id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::control_api::DuplicateReport;

    #[test]
    fn second_daemon_with_this_id_is_a_fault_as_long_as_it_is_news() {
        let address = "10.0.0.99".parse().unwrap();
        let line = |last_ms| {
            let duplicate = Some(DuplicateReport { address, last_ms });
            judge(&StatusReport { duplicate, ..follower() }).line(0)
        };
        let told = line(3_000);
        let expected =
            "fail     node-id  another daemon with node_id web1 was started at 10.0.0.99";
        assert!(told.starts_with(expected), "{told}");
        assert!(line(600_001).starts_with("ok "));
        assert!(judge(&follower()).line(0).starts_with("ok "));
    }
}
