//! The units of the daemon and of its hooks, where systemd runs.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::Finding;
use super::process;
use crate::types::GroupName;

const TOPIC: &str = "unit";

/// Exists where systemd is the service manager.
const SYSTEMD: &str = "/run/systemd/system";

const PROPERTIES: &str = "--property=LoadState,ActiveState,Result,ExecMainStatus,NRestarts,\
                          UnitFileState,NeedDaemonReload,WatchdogUSec,MainPID,ExecStart";

/// What systemd says of a unit, by property.
pub(super) type Unit = BTreeMap<String, String>;

/// What systemd says of a group's units.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The instance's name.
    pub(super) instance: String,
    pub(super) daemon: Unit,
    pub(super) hook_runner: Unit,
    /// The last error in the daemon's journal; only if it does not run.
    pub(super) last_error: Option<String>,
}

impl Facts {
    /// The socket of the hook-runner that the daemon's unit sets.
    pub(super) fn hook_socket(&self) -> Option<String> {
        let mut words = self.daemon.get("ExecStart")?.split_whitespace();
        words.find(|word| *word == "--hook-socket")?;
        words.next().map(str::to_owned)
    }
}

/// Whether systemd is the service manager of this host.
pub(super) fn is_systemd_here() -> bool {
    Path::new(SYSTEMD).is_dir()
}

/// None without systemd, and for a daemon that has no unit by its socket.
pub(super) fn gather(group: Option<&GroupName>) -> Option<Facts> {
    let instance = group.filter(|_| is_systemd_here())?.to_string();
    let show = |name: &str| {
        let text = process::output("systemctl", &["show", PROPERTIES, name]);
        text.map(|text| properties(&text)).unwrap_or_default()
    };
    let name = format!("lanelect@{instance}.service");
    let daemon = show(&name);
    let hook_runner = show(&format!("lanelect-hook@{instance}.service"));
    let last_error = if has_process(&daemon) { None } else { last_error(&name) };
    Some(Facts { instance, daemon, hook_runner, last_error })
}

/// Of the unit's processes, and not of systemd about it.
fn last_error(unit: &str) -> Option<String> {
    let processes = format!("_SYSTEMD_UNIT={unit}");
    let arguments = ["--priority=err", "--lines=1", "--output=cat", "--quiet", &processes];
    let text = process::output("journalctl", &arguments)?;
    text.lines().next_back().map(str::to_owned)
}

fn properties(text: &str) -> Unit {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Whether the unit's own daemon runs.
fn has_process(unit: &Unit) -> bool {
    unit.get("MainPID").is_some_and(|pid| pid != "0")
}

pub(super) fn judge(facts: Option<&Facts>, answers: bool) -> Vec<Finding> {
    let Some(facts) = facts else { return Vec::new() };
    let get = |name: &str| facts.daemon.get(name).map_or("", String::as_str);
    let unit = format!("lanelect@{}", facts.instance);
    if get("LoadState") != "loaded" {
        let text = format!("systemd has no unit {unit}");
        return if answers { Vec::new() } else { vec![Finding::unknown(TOPIC, text)] };
    }
    let mut findings = vec![state(facts, &unit, answers)];
    if get("NeedDaemonReload") == "yes" {
        let text = format!("the files of {unit} have changed, and systemd has not read them");
        findings.push(Finding::warn(TOPIC, text).remedy("run: systemctl daemon-reload"));
    }
    if get("UnitFileState") == "disabled" {
        let text = format!("{unit} does not start when the host boots");
        findings.push(Finding::warn(TOPIC, text).remedy(format!("run: systemctl enable {unit}")));
    }
    if answers && ["0", "infinity"].contains(&get("WatchdogUSec")) {
        let text = format!("{unit} has no watchdog: nothing ends a daemon that hangs");
        findings.push(Finding::warn("watchdog", text).remedy("set WatchdogSec=30s in the unit"));
    } else if answers && !get("WatchdogUSec").is_empty() {
        let text = format!("systemd ends a daemon that hangs for {}", get("WatchdogUSec"));
        findings.push(Finding::ok("watchdog", text));
    }
    let failed = facts.hook_runner.get("ActiveState").is_some_and(|state| state == "failed");
    if failed {
        let hook = format!("lanelect-hook@{}", facts.instance);
        let text = format!("{hook} failed: no hook can run");
        findings.push(Finding::fail(TOPIC, text).remedy(format!("see journalctl -u {hook}")));
    }
    findings
}

fn state(facts: &Facts, unit: &str, answers: bool) -> Finding {
    let get = |name: &str| facts.daemon.get(name).map_or("", String::as_str);
    let restarts = get("NRestarts");
    let log = format!("see journalctl -u {unit}");
    let has_process = has_process(&facts.daemon);
    match get("ActiveState") {
        "active" if !["", "0"].contains(&restarts) => {
            Finding::warn(TOPIC, format!("systemd had to restart {unit} {restarts} times"))
                .remedy(log)
        }
        state @ ("active" | "reloading" | "refreshing") => {
            Finding::ok(TOPIC, format!("{unit} is {state}"))
        }
        "activating" if answers && has_process => Finding::ok(TOPIC, format!("{unit} is starting")),
        "deactivating" if answers && has_process => {
            Finding::warn(TOPIC, format!("{unit} is stopping"))
        }
        _ if answers => Finding::warn(TOPIC, format!("a daemon runs that is not {unit}"))
            .remedy("let systemd run it: it ends and restarts a daemon that hangs"),
        "inactive" => Finding::fail(TOPIC, format!("{unit} is not started"))
            .remedy(format!("run: systemctl start {unit}")),
        "activating" if has_process => {
            Finding::warn(TOPIC, format!("{unit} is starting, and does not answer yet")).remedy(log)
        }
        // Its hooks may still run, or the disk keeps its process from ending.
        "deactivating" => {
            Finding::warn(TOPIC, format!("{unit} is stopping, and answers no more")).remedy(log)
        }
        other => {
            let status = get("ExecMainStatus");
            let error = facts.last_error.as_ref().map_or(String::new(), |e| format!(": {e}"));
            let text =
                format!("{unit} is {other} ({}, exit status {status}){error}", get("Result"));
            Finding::fail(TOPIC, text).remedy(log)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: &str = "LoadState=loaded\nActiveState=active\nSubState=running\nNRestarts=0\n\
                          UnitFileState=enabled\nNeedDaemonReload=no\nWatchdogUSec=30s\n";

    fn lines(daemon: &str, answers: bool) -> Vec<String> {
        let daemon = properties(daemon);
        let facts = Facts { instance: "web".to_owned(), daemon, ..Facts::default() };
        judge(Some(&facts), answers).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn active_unit_with_a_watchdog_is_well() {
        assert_eq!(
            lines(ACTIVE, true),
            [
                "ok       unit  lanelect@web is active",
                "ok       watchdog  systemd ends a daemon that hangs for 30s",
            ]
        );
    }

    #[test]
    fn hook_socket_of_a_unit_is_in_its_command() {
        let socket = |command: &str| {
            let daemon = properties(&format!("{ACTIVE}ExecStart={command}\n"));
            Facts { daemon, ..Facts::default() }.hook_socket()
        };
        let run = "{ path=/usr/bin/lanelect ; argv[]=/usr/bin/lanelect run --config /etc/w.toml";
        let with = format!("{run} --hook-socket /run/w.sock ; ignore_errors=no ; pid=0 }}");
        assert_eq!(socket(&with).as_deref(), Some("/run/w.sock"));
        assert_eq!(socket(&format!("{run} ; ignore_errors=no ; pid=0 }}")), None);
    }

    #[test]
    fn unit_that_does_not_run_is_a_fault() {
        let failed = ACTIVE.replace("=active", "=failed") + "Result=exit-code\nExecMainStatus=2\n";
        let told = lines(&failed, false);
        assert!(
            told[0].starts_with("fail     unit  lanelect@web is failed (exit-code, exit status 2")
        );
        let stopped = ACTIVE.replace("=active", "=inactive");
        assert!(lines(&stopped, false)[0].ends_with("run: systemctl start lanelect@web"));
        assert!(lines(&stopped, true)[0].starts_with("warn     unit  a daemon runs that is not"));
    }

    #[test]
    fn daemon_of_a_unit_that_starts_stops_or_reloads_is_the_units() {
        let unit = |state: &str, pid: &str| {
            ACTIVE.replace("=active", &format!("={state}")) + &format!("MainPID={pid}\n")
        };
        let first = |state, pid, answers| lines(&unit(state, pid), answers).swap_remove(0);
        for state in ["reloading", "refreshing"] {
            let expected = format!("ok       unit  lanelect@web is {state}");
            assert_eq!(first(state, "7", true), expected);
        }
        assert_eq!(first("activating", "7", true), "ok       unit  lanelect@web is starting");
        assert_eq!(first("deactivating", "7", true), "warn     unit  lanelect@web is stopping");
        for state in ["activating", "deactivating"] {
            let other = first(state, "0", true);
            assert!(other.starts_with("warn     unit  a daemon runs that is not"), "{other}");
        }
        assert!(first("activating", "7", false).starts_with("warn     unit  lanelect@web is st"));
        assert!(first("deactivating", "0", false).starts_with("warn     unit  lanelect@web is st"));
        let failed = unit("activating", "0") + "Result=exit-code\nExecMainStatus=1\n";
        let failed = &lines(&failed, false)[0];
        assert!(failed.contains("lanelect@web is activating (exit-code, exit status 1"));
    }

    #[test]
    fn unit_that_is_restarted_not_enabled_or_not_watched_has_a_warning() {
        let odd = ACTIVE
            .replace("NRestarts=0", "NRestarts=3")
            .replace("=enabled", "=disabled")
            .replace("=no", "=yes")
            .replace("=30s", "=0");
        let told = lines(&odd, true);
        assert_eq!(told.len(), 4, "{told:#?}");
        assert!(told.iter().all(|line| line.starts_with("warn ")), "{told:#?}");
        assert!(lines("LoadState=not-found\n", true).is_empty());
        assert!(judge(None, true).is_empty());
    }
}
