//! `lanelect doctor` on hosts with a fault each: it names the cause, in the words of
//! `docs/operations.md`.

mod host;
mod network;
mod quorum;

use std::fs;
use std::process::{Command, Output, Stdio};

use nix::unistd::geteuid;

use crate::harness::inside::Needs;
use crate::harness::keys::give_key;
use crate::harness::{Host, scenario_with, wait_until};

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Runs the doctor on this host.
pub(crate) fn doctor(host: &Host, options: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(LANELECT);
    command.arg("doctor").args(options).arg("--socket").arg(host.path("control.sock"));
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    host.run(|| command.output().unwrap())
}

/// The lines, each with single blanks.
pub(crate) fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(squeezed).collect()
}

/// The faults of the table, and the line of each, in which `…` stands for anything.
fn documented() -> Vec<(&'static str, &'static str)> {
    let (_, section) = OPERATIONS.split_once("\n### What the doctor finds\n").unwrap();
    let section = section.split("\n**").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix("` |"));
    rows.filter_map(|row| row.split_once(" | `")).collect()
}

fn matches(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    pattern.split('…').enumerate().all(|(number, piece)| {
        let at = rest.find(piece).filter(|at| number > 0 || *at == 0);
        at.is_some_and(|at| {
            rest = &rest[at + piece.len()..];
            true
        })
    })
}

/// Waits until the doctor prints the line that is documented for this fault.
#[track_caller]
fn assert_found(host: &Host, fault: &str) {
    assert_found_with(host, fault, &[]);
}

#[track_caller]
fn assert_found_with(host: &Host, fault: &str, variables: &[(&str, &str)]) {
    let row = documented().into_iter().find(|(name, _)| *name == fault);
    let (_, pattern) = row.unwrap_or_else(|| panic!("{fault} is not in the table"));
    wait_until(&format!("the doctor finds: {fault}"), || {
        let output = doctor(host, &[], variables);
        let found = lines(&output).into_iter().find(|line| matches(line, pattern));
        let least = if pattern.starts_with("fail") { 2 } else { 1 };
        match &found {
            Some(line) => println!("{fault}: {line}"),
            None => println!("not yet: {:#?}", lines(&output)),
        }
        found.is_some() && output.status.code() >= Some(least)
    });
}

#[test]
fn each_documented_fault_is_made_by_a_test() {
    let tests =
        [include_str!("host.rs"), include_str!("network.rs"), include_str!("quorum.rs")].concat();
    let faults = documented();
    assert!(faults.len() >= 25, "{faults:?}");
    for (fault, _) in faults {
        assert_eq!(tests.matches(&format!("\"{fault}\"")).count(), 1, "{fault}");
    }
}

#[test]
fn patterns_match_lines_by_their_pieces_in_order() {
    assert!(matches("fail disk cannot write: full", "fail disk …: full"));
    assert!(!matches("a fail disk", "fail …"));
    assert!(!matches("fail disk full: no", "fail … no: full"));
}

/// In the user namespace of an unprivileged user, root's programs have no owner that it knows.
fn knows_who_owns_programs() -> Result<(), String> {
    let unknown = || "in a user namespace, root's programs have no known owner".to_owned();
    geteuid().is_root().then_some(()).ok_or_else(unknown)
}

#[test]
fn host_without_a_fault_has_no_warning() {
    let needs = Needs { trial: knows_who_owns_programs, ..Needs::default() };
    scenario_with(needs, |lan, [h1, h2]| {
        let lines_of_key = [h1, h2].map(|host| give_key(host, "1"));
        h1.start(&lines_of_key[0]);
        lan.sole_leader();
        h2.start(&lines_of_key[1]);
        lan.wait_for_leader(h1);
        for host in [h1, h2] {
            wait_until("the doctor finds nothing", || {
                let output = doctor(host, &[], &[]);
                println!("{:#?}", lines(&output));
                output.status.code() == Some(0)
            });
            let left: Vec<_> = fs::read_dir(host.path("state")).unwrap().flatten().collect();
            assert!(
                left.iter().all(|entry| !entry.file_name().to_string_lossy().contains("doctor"))
            );
            wait_until("nor does it in JSON", || {
                let json = doctor(host, &["--json"], &[]);
                let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
                println!("{json:#}");
                json["verdict"] == "ok"
            });
        }
        lan.wait_for_leader(h1);
    });
}
