//! The metrics, read by what Prometheus reads them with.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::{scenario, wait_until};
use crate::server::Server;

const OPENMETRICS: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.3\r\n";

#[test]
fn promtool_is_content() {
    scenario(|lan, [a]: [_; 1]| {
        let server = Server::start(a);
        let text = server.get("/metrics").body;
        check(&text);
        assert!(text.ends_with("\nlanelect_up{} 0\n"), "{text}");
        a.start("check = \"true\"\ncheck_leader = \"true\"\n");
        lan.sole_leader();
        wait_until("it is ready", || server.get("/ready").status == 200);
        let text = server.get("/metrics").body;
        check(&text);
        for line in ["lanelect_up{group=\"default\"} 1", "lanelect_ready{group=\"default\"} 1"] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    });
}

/// `promtool check metrics` reads the older format. It is a part of Debian's `prometheus`.
fn check(text: &str) {
    let mut command = Command::new("promtool");
    command
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = match command.spawn() {
        Ok(promtool) => promtool,
        Err(_) if std::env::var_os("CI").is_none() => {
            return println!("no promtool here, so what it says of the metrics is not known");
        }
        Err(error) => panic!("promtool: {error}"),
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn every_counter_of_the_status_is_a_metric() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        wait_until("the hook has ended", || a.status()["hook"]["last_event"] == "elected");
        let text = server.get("/metrics").body;
        let status = a.status();
        let counters = status["counters"].as_object().unwrap();
        let plain = counters.keys().filter(|name| *name != "rejected");
        let plain = plain.map(|name| format!("\nlanelect_{name}_total{{group=\"default\"}} "));
        let rejected = counters["rejected"].as_object().unwrap().keys();
        let rejected =
            rejected.map(|why| format!("_rejected_total{{group=\"default\",reason=\"{why}\"}} "));
        for sample in plain.chain(rejected) {
            assert!(text.contains(&sample), "{sample} is not in\n{text}");
        }
        let runs = "lanelect_hook_duration_seconds_count{group=\"default\",event=\"elected\"} 1\n";
        assert!(text.contains(runs), "{text}");
    });
}

#[test]
fn way_to_each_peer_is_measured() {
    scenario(|lan, [a, b]: [_; 2]| {
        for host in [a, b] {
            let peers = [a, b].map(|host| host.address(0));
            host.start(&format!("multicast = \"none\"\npeers = {peers:?}\n"));
        }
        lan.sole_leader();
        let server = Server::start(a);
        let sample = |name: &str| {
            let text = server.get("/metrics").body;
            let labels =
                format!("lanelect_member_{name}{{group=\"default\",member=\"{}\"}} ", b.name);
            let value = text.lines().find_map(|line| line.strip_prefix(&labels).map(str::to_owned));
            value.map(|value| value.parse::<f64>().unwrap())
        };
        wait_until("the way is measured", || sample("loss_ratio").is_some());
        assert!(sample("loss_ratio").unwrap() < 1.0);
        assert!(sample("round_trip_seconds").unwrap() > 0.0);
        check(&server.get("/metrics").body);
    });
}

#[test]
fn prometheus_gets_openmetrics() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        let answer = server.ask("GET", "/metrics", OPENMETRICS);
        assert!(
            answer.headers.contains("content-type: application/openmetrics-text"),
            "{answer:?}"
        );
        assert!(answer.body.ends_with("# EOF\n"));
        assert!(answer.body.contains("# TYPE lanelect_transitions counter\n"));
        assert!(answer.body.contains("\nlanelect_transitions_total{"));
    });
}

/// The table in the documents has every metric that there can be, and no other.
#[test]
fn documents_have_every_metric() {
    let rows =
        include_str!("../../docs/http.md").lines().filter(|line| line.starts_with("| `lanelect_"));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let listed: BTreeSet<&str> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let sources = [
        include_str!("../../src/bin/lanelect-http/metrics.rs"),
        include_str!("../../src/bin/lanelect-http/metrics/hook.rs"),
    ];
    let words = sources.iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let known: BTreeSet<&str> = words.filter(|word| word.starts_with("lanelect_")).collect();
    assert_eq!(listed, known);
}
