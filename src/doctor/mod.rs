//! `lanelect doctor`: looks for what is wrong on this host and with its group, and says what mends
//! it.
//!
//! Each topic has a file, with a `gather` that looks and a `judge` that computes [`Finding`]s, from
//! what was gathered and from the daemon's status. What cannot be seen from here is unknown.

mod address;
mod chrony;
mod config;
mod daemon;
mod disk;
mod eligible;
mod finding;
mod hearers;
mod hook;
mod identity;
mod interface;
mod members;
mod membership;
mod peers;
mod port;
mod process;
mod quorum;
mod rate;
mod units;
mod wire;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

pub use self::disk::measure;
pub use self::finding::{Finding, Level};
use crate::client::{ClientError, Target};
use crate::config::{Config, ConfigSource, Overrides};
use crate::control_api::{StatusReport, group_of_socket};
use crate::core::params::Mode;
use crate::printable::printable;
use crate::types::GroupName;

/// Where the units' config files are.
const CONFIG_DIR: &str = "/etc/lanelect";

/// The result; each is its exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong, as far as can be seen.
    Ok = 0,
    /// There are warnings.
    Warnings = 1,
    /// There are faults.
    Faults = 2,
    /// There is no daemon.
    NoDaemon = 3,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warnings => "warnings",
            Verdict::Faults => "faults",
            Verdict::NoDaemon => "no-daemon",
        }
    }

    fn of(findings: &[Finding], answers: bool) -> Self {
        let worst = findings.iter().map(|finding| finding.level).max();
        match worst {
            _ if !answers => Verdict::NoDaemon,
            Some(Level::Fail) => Verdict::Faults,
            Some(Level::Warn) => Verdict::Warnings,
            _ => Verdict::Ok,
        }
    }
}

/// The daemon of the config file: at the socket that the file sets. If the file is not valid, the
/// one of the group that the file is named after.
pub fn target_of(file: &Path) -> Option<Target> {
    let source = ConfigSource { file: Some(file.to_owned()), overrides: Overrides::default() };
    let by_name = || Some(Target::of_group(&file.file_stem()?.to_str()?.parse().ok()?));
    source.load().ok().map(|config| Target::at(config.socket)).or_else(by_name)
}

/// Looks at the daemon at `target` and at this host, with the config file `file`, or else with the
/// daemon's own. Prints one line for each finding; with `json` one object.
///
/// The program of this process must print what [`measure`] returns when it is called with
/// `disk-sync` and a directory.
///
/// # Errors
///
/// If the result cannot be printed.
pub fn run(
    target: &Target,
    file: Option<PathBuf>,
    json: bool,
    out: &mut impl Write,
) -> io::Result<Verdict> {
    let answer = target.status();
    let findings = examine(target, file, answer.as_ref());
    let verdict = Verdict::of(&findings, answer.is_ok());
    let text = match json {
        true => json!({"verdict": verdict.word(), "findings": findings}).to_string() + "\n",
        false => lines(&findings),
    };
    out.write_all(printable(&text).as_bytes())?;
    out.flush()?;
    Ok(verdict)
}

fn lines(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.topic.len()).max().unwrap_or(0);
    findings.iter().map(|finding| finding.line(width) + "\n").collect()
}

fn examine(
    target: &Target,
    file: Option<PathBuf>,
    answer: Result<&StatusReport, &ClientError>,
) -> Vec<Finding> {
    let report = answer.ok();
    let group = group_of_socket(target.socket());
    let file = file.or_else(|| file_of(report, group.as_ref()));
    let origin = report.map(|report| &report.config);
    let units = units::gather(group.as_ref());
    // Under systemd a flag of the unit sets it.
    let hook_socket = match origin {
        Some(origin) => origin.hook_socket.clone(),
        None => units.as_ref().and_then(units::Facts::hook_socket),
    };
    let facts = config::gather(file, hook_socket);
    let [reload, restart] = commands(group.as_ref());
    let mut findings = daemon::judge(answer, env!("CARGO_PKG_VERSION"));
    findings.extend(units::judge(units.as_ref(), report.is_some()));
    findings.extend(config::judge(&facts, origin, [&reload, &restart]));
    match report {
        Some(report) => findings.extend(network(target, report)),
        None => findings.extend(facts.config.iter().flat_map(interface::look)),
    }
    findings.extend(report.iter().flat_map(|report| eligible::judge(report, &target.options())));
    findings.extend(hook::judge(report, &facts.programs));
    let in_force = facts.config.as_ref().filter(|_| facts.is_in_force(origin));
    if let Some(hook) = in_force.and_then(|config| config.hook.as_deref()) {
        findings.extend(address::judge(&address::gather(hook, || target.status().ok())));
    }
    findings.extend(disk(report, facts.config.as_ref()));
    let mode = report.map(|report| report.mode);
    if mode.or(facts.config.as_ref().map(|config| config.election.mode())) == Some(Mode::Quorum) {
        findings.extend(rate::judge(&rate::gather()));
    }
    findings
}

/// What lies between this node and the others.
fn network(target: &Target, report: &StatusReport) -> Vec<Finding> {
    let mut findings = interface::judge(report);
    findings.extend(peers::judge(report));
    findings.extend(membership::judge(&membership::gather(report)));
    let port = report.multicast.map(|address| address.port());
    findings.extend(port.map(|port| port::judge(&port::gather(port, target.socket()))));
    if let Some(multicast) = report.multicast {
        let facts = wire::gather(report, || target.status().ok());
        findings.extend(wire::judge(&facts, report, multicast));
    }
    findings.extend(hearers::judge(&hearers::gather(target)));
    findings.extend(members::judge(report));
    findings.push(identity::judge(report));
    findings.extend(quorum::judge(report));
    findings
}

fn disk(report: Option<&StatusReport>, config: Option<&Config>) -> Vec<Finding> {
    let named = report.map(|report| report.config.state_dir.as_str());
    let named = named.filter(|directory| !directory.is_empty()).map(PathBuf::from);
    let Some(directory) = named.or_else(|| Some(config?.state_dir.clone())) else {
        return Vec::new();
    };
    let mode = report.map(|report| report.mode);
    disk::judge(&disk::Facts {
        failure: report.and_then(|report| report.state_failure.clone()),
        look: disk::look(&directory),
        mode: mode.or(config.map(|config| config.election.mode())).unwrap_or(Mode::Available),
        threshold: config.map(|config| config.election.leader_alive_threshold),
        directory,
    })
}

/// The daemon's config file, or the one that its unit would have.
fn file_of(report: Option<&StatusReport>, group: Option<&GroupName>) -> Option<PathBuf> {
    match report {
        Some(report) => report.config.file.as_ref().map(PathBuf::from),
        None => {
            let file = Path::new(CONFIG_DIR).join(format!("{}.toml", group?));
            file.exists().then_some(file)
        }
    }
}

/// What reloads and restarts the daemon.
fn commands(group: Option<&GroupName>) -> [String; 2] {
    match group.filter(|_| units::is_systemd_here()) {
        Some(group) => {
            ["reload", "restart"].map(|verb| format!("run: systemctl {verb} lanelect@{group}"))
        }
        None => ["send SIGHUP to the daemon", "restart the daemon"].map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    pub(super) use crate::commands::tests::follower;

    #[test]
    fn verdict_is_that_of_the_worst_finding() {
        let [ok, unknown] = [Finding::ok("a", ""), Finding::unknown("a", "")];
        let [warn, fail] = [Finding::warn("a", ""), Finding::fail("a", "")];
        assert_eq!(Verdict::of(&[ok.clone(), unknown], true), Verdict::Ok);
        assert_eq!(Verdict::of(&[warn.clone(), ok], true), Verdict::Warnings);
        assert_eq!(Verdict::of(&[fail.clone(), warn], true), Verdict::Faults);
        assert_eq!(Verdict::of(&[fail], false), Verdict::NoDaemon);
    }

    #[test]
    fn lines_are_printed_and_json_has_the_same_also_without_a_daemon() {
        let home = tempfile::tempdir().unwrap();
        let target = Target::at(home.path().join("web.sock"));
        let file = home.path().join("web.toml");
        std::fs::write(&file, "node_id = \"a\"\nstate_dir = \"/no/such/dir\"\n").unwrap();
        let mut text = Vec::new();
        let verdict = run(&target, Some(file.clone()), false, &mut text).unwrap();
        assert_eq!(verdict, Verdict::NoDaemon);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("fail     daemon "), "{text}");
        assert!(text.contains("\nwarn     config     key_file is not set"), "{text}");
        // The process that measures is this one, which does not know how.
        assert!(text.contains("how long a sync in /no/such/dir takes is not known"), "{text}");
        let mut json = Vec::new();
        run(&target, Some(file), true, &mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["verdict"], "no-daemon");
        assert_eq!(json["findings"].as_array().unwrap().len(), text.lines().count());
        assert_eq!(json["findings"][0]["level"], "fail");
    }

    #[test]
    fn daemon_of_a_file_is_at_its_socket_or_has_its_name() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("web.toml");
        std::fs::write(&file, "node_id = \"a\"\nsocket = \"/x/y.sock\"\n").unwrap();
        assert_eq!(target_of(&file), Some(Target::at("/x/y.sock")));
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(target_of(&file), Some(Target::at("/run/lanelect/web.sock")));
    }
}
