//! keepalived, whose leader is the VRRP master.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::unistd::Pid;

use super::{Group, Program, Seat, find, first_line, sole_speaker};
use crate::harness::Host;

/// The priority of the best host, and how far the next one is below; less in a large group. A
/// backup waits three intervals and the part of a fourth by which its priority is below 256: 0.26
/// for the second host. Equal priorities, its default, would have both backups take over at once.
const BEST: usize = 200;
const STEP: usize = 10;

pub(crate) struct Keepalived;

impl Program for Keepalived {
    fn name(&self) -> &'static str {
        "keepalived"
    }

    fn version(&self) -> Result<String, String> {
        let executable = find("keepalived")?;
        // Before it runs a script it sets groups, which most user namespaces deny even to their
        // root.
        let setgroups = fs::read_to_string("/proc/self/setgroups").unwrap_or_default();
        if setgroups.trim() == "deny" {
            return Err(
                "it runs no script in this user namespace; run the benchmark as root".into()
            );
        }
        Ok(first_line(&executable, "--version"))
    }

    fn supports(&self, interval: Duration) -> bool {
        interval >= Duration::from_millis(10)
    }

    /// Three intervals and the skew of the second host's priority (RFC 5798, section 6.1), less the
    /// time that has passed since the last advertisement.
    fn takeover(&self) -> f64 {
        3.0 + (256 - (BEST - STEP)) as f64 / 256.0 - 0.5
    }

    fn command(&self, seat: &Seat<'_>) -> Command {
        let host = seat.host;
        let step = STEP.min((BEST - 1) / (seat.peers.len() + 1));
        let peers = match &seat.peers[..] {
            [] => String::new(),
            peers => format!("unicast_peer {{\n{}\n}}", peers.join("\n")),
        };
        let config = seat.configure(&format!(
            r#"
            global_defs {{
                router_id {name}
                vrrp_version 3
                script_user root
            }}
            vrrp_instance bench {{
                state BACKUP
                interface eth0
                virtual_router_id 51
                priority {priority}
                advert_int {interval}
                virtual_ipaddress {{
                    10.77.0.200/24
                }}
                notify_master "{script}"
                {peers}
            }}
            "#,
            name = host.name,
            priority = BEST - step * seat.rank,
            interval = seat.interval.as_secs_f64(),
            script = seat.script(),
        ));
        let mut command = Command::new(find("keepalived").unwrap());
        command.args(["--dont-fork", "--log-console", "--vrrp"]);
        command.args(["--use-file", &config, "--pid", &host.path("keepalived.pid")]);
        command.args(["--vrrp_pid", &host.path("vrrp.pid")]);
        command
    }

    /// The child that speaks VRRP; the parent only watches it.
    fn speaker(&self, host: &Host) -> Option<Pid> {
        let text = fs::read_to_string(host.path("vrrp.pid")).unwrap();
        Some(Pid::from_raw(text.trim().parse().unwrap()))
    }

    /// The one of the highest priority: it takes over from any other.
    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize> {
        sole_speaker(group).filter(|&leader| leader == 0)
    }
}
