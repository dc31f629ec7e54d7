//! lanelect as it is built here, with its default settings.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lanelect::client::Target;
use lanelect::commands;
use lanelect::core::params::Params;
use serde_json::Value;

use super::{Group, Program, Seat, first_line};
use crate::harness::Host;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_lanelect");

pub(crate) struct Lanelect;

impl Program for Lanelect {
    fn name(&self) -> &'static str {
        "lanelect"
    }

    fn version(&self) -> Result<String, String> {
        Ok(first_line(Path::new(EXECUTABLE), "--version"))
    }

    fn supports(&self, _: Duration) -> bool {
        true
    }

    fn default_interval(&self) -> Duration {
        Params::default().heartbeat_interval
    }

    /// The alive threshold, less the time that has passed since the last declaration.
    fn takeover(&self) -> f64 {
        let Params { leader_alive_threshold, heartbeat_interval, .. } = Params::default();
        leader_alive_threshold.div_duration_f64(heartbeat_interval) - 0.5
    }

    fn command(&self, seat: &Seat<'_>) -> Command {
        let (host, bell) = (seat.host, seat.bell.display());
        let (name, state, socket) = (&host.name, host.path("bench.state"), socket(host));
        let carrier = match &seat.peers[..] {
            [] => "interface = \"eth0\"".to_owned(),
            // Itself among them: every host has the same list.
            peers => {
                format!("multicast = \"none\"\npeers = {:?}", [peers, &[host.address(0)]].concat())
            }
        };
        let interval = humantime::format_duration(seat.interval);
        // Of the same cost as the other programs' script: one shell, which writes one line.
        let config = seat.configure(&format!(
            r#"
            node_id = "{name}"
            {carrier}
            heartbeat_interval = "{interval}"
            state_dir = "{state}"
            socket = "{socket}"
            hook = "case $LANELECT_EVENT in elected|reaffirmed) echo {name} $LANELECT_EVENT > {bell};; esac"
            "#
        ));
        let mut command = Command::new(EXECUTABLE);
        command.args(["run", "--config", &config]);
        command
    }

    /// Everyone follows it, holds everyone alive, and has run its hooks.
    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize> {
        let views: Vec<_> = group.hosts.iter().map(|host| status(host)).collect();
        let leader = views.iter().position(|view| view["role"] == "leader")?;
        let name = group.hosts[leader].name.as_str();
        let agrees = |view: &Value| {
            let members = view["members"].as_array().map_or(&[][..], Vec::as_slice);
            let alive = members.iter().filter(|member| member["state"] == "alive").count();
            let leads = view["role"] == "leader" && view["node_id"] == name;
            let follows = view["role"] == "follower" && view["leader"]["node_id"] == name;
            (leads || follows) && alive == views.len() && view["hook"]["running"] == false
        };
        views.iter().all(agrees).then_some(leader)
    }

    fn can_yield(&self) -> bool {
        true
    }

    fn yield_leadership(&self, leader: &Host) {
        let mut command = Command::new(EXECUTABLE);
        command.args(["yield", "--socket", &socket(leader)]);
        command.stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{} does not yield", leader.name);
    }
}

/// What a host's status says; null while it does not answer.
pub(crate) fn status(host: &Host) -> Value {
    let mut text = Vec::new();
    match commands::status(&Target::at(socket(host)), true, &mut text) {
        Ok(_) => serde_json::from_slice(&text).unwrap(),
        Err(_) => Value::Null,
    }
}

fn socket(host: &Host) -> String {
    host.path("bench.sock")
}
