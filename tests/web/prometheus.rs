//! Debian's Prometheus scrapes three hosts through a failover, and an alert fires.

use std::env;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{Host, scenario, wait_until};
use crate::server::{Answer, Server, exchange};

const CONFIG: &str = include_str!("../../examples/prometheus/prometheus.yml");
const DASHBOARD: &str = include_str!("../../examples/grafana/lanelect.json");
const RULES: &str = include_str!("../../examples/prometheus/rules.yml");
const ADDRESS: &str = "127.0.0.1:9090";

/// Prometheus, on a host of its own. Dropping it kills it.
struct Prometheus<'a> {
    host: &'a Host,
    child: Child,
}

impl<'a> Prometheus<'a> {
    /// With the shipped configuration, of these hosts. None where there is none; a run that `CI`
    /// asks for has to have it.
    fn start(host: &'a Host, scraped: [&Host; 3]) -> Option<Prometheus<'a>> {
        for (program, version) in [("prometheus", "--version"), ("ethtool", "--version")] {
            let tried = Command::new(program).arg(version).stderr(Stdio::null()).output();
            if tried.is_err() && env::var_os("CI").is_none() {
                println!("no {program} here: `apt-get install {program}`");
                return None;
            }
        }
        scraped.into_iter().chain([host]).for_each(compute_checksums);
        let mut config = CONFIG.to_owned();
        for (shipped, host) in ["10.0.0.1", "10.0.0.2", "10.0.0.3"].into_iter().zip(scraped) {
            assert!(config.contains(shipped));
            config = config.replace(&format!("{shipped}:7680"), &Server::address(host));
        }
        let path = host.path("prometheus.yml");
        fs::write(&path, config).unwrap();
        fs::write(host.path("rules.yml"), RULES).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={path}"));
        command.arg(format!("--storage.tsdb.path={}", host.path("tsdb")));
        command.arg(format!("--web.listen-address={ADDRESS}"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(host.path("prometheus.log")).unwrap());
        let child = host.run(|| command.spawn().unwrap());
        Some(Prometheus { host, child })
    }

    /// The results of a query: the labels of each, and its value.
    fn query(&self, query: &str) -> Vec<(Value, String)> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let request = format!("GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n");
        let answer = self.host.run(|| exchange(ADDRESS, request.as_bytes()));
        let answer = answer.as_deref().and_then(Answer::read);
        // It answers otherwise while it starts.
        let Some(answer) = answer.filter(|it| it.status == 200) else { return Vec::new() };
        let results = answer.json()["data"]["result"].take();
        let results = results.as_array().cloned().unwrap_or_default();
        let value = |result: &Value| result["value"][1].as_str().unwrap().to_owned();
        results.iter().map(|result| (result["metric"].clone(), value(result))).collect()
    }

    /// The addresses of the hosts that lead.
    fn leaders(&self) -> Vec<String> {
        let leading = self.query("lanelect_leader==1").into_iter();
        leading.map(|(labels, _)| labels["instance"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Prometheus<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel would leave those of TCP to hardware, which there is none of.
fn compute_checksums(host: &Host) {
    let mut command = Command::new("ethtool");
    command.args(["-K", "eth0", "tx", "off"]).stdout(Stdio::null());
    assert!(host.run(|| command.status().unwrap()).success());
}

/// The dashboard of Grafana shows this leader by its name, which the legend has from a label.
fn assert_dashboard_names(prometheus: &Prometheus<'_>, leader: &Host) {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let panel = panels.iter().find(|panel| panel["title"] == "Leader").unwrap();
    assert_eq!(panel["options"]["textMode"], "name");
    let target = &panel["targets"][0];
    assert_eq!(target["legendFormat"], "{{leader_id}}");
    let query = target["expr"].as_str().unwrap().replace("$group", "default");
    let shown = prometheus.query(&query);
    let names: Vec<_> = shown.iter().map(|(labels, _)| &labels["leader_id"]).collect();
    assert_eq!(names, [leader.name.as_str()]);
}

#[test]
fn prometheus_follows_a_failover_and_an_alert_fires() {
    scenario(|lan, [a, b, c, watcher]: [_; 4]| {
        let hosts = [a, b, c];
        lan.start_led_by_first(&hosts, "");
        let _servers = hosts.map(Server::start);
        let Some(prometheus) = Prometheus::start(watcher, hosts) else { return };
        wait_until("three daemons are scraped", || prometheus.query("lanelect_up==1").len() == 3);
        wait_until("one of them leads", || prometheus.leaders() == [Server::address(a)]);
        assert!(prometheus.query("ALERTS").is_empty());
        assert_dashboard_names(&prometheus, a);

        for host in [b, c] {
            host.fail_hook_on("elected");
        }
        a.crash();
        wait_until("the hook of a successor fails, which is an alert", || {
            let alerts = prometheus.query("ALERTS{alertstate=\"firing\"}");
            alerts.iter().any(|(labels, _)| labels["alertname"] == "LanelectHookFails")
        });
        let down = prometheus.query("lanelect_up==0");
        assert_eq!(down.len(), 1, "{down:?}");
        assert_eq!(down[0].0["instance"], Server::address(a));
        a.restart();
        wait_until("it leads again", || prometheus.leaders() == [Server::address(a)]);
    });
}
