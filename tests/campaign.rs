//! `tests/campaign/run`, on a project of its own whose steps are quick.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/programs.rs"]
mod programs;
#[path = "common/waiting.rs"]
mod waiting;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use programs::{has_ended, is_missing};
use waiting::until;

const TEMPLATE: &str =
    "# Evidence\n\n{{MACHINES}}\n\n{{TABLE}}\n\n{{COMMANDS}}\n\n{{ATTACHMENTS}}\n";

/// A project with a plan.
struct Project(TempDir);

impl Project {
    /// One whose `plan` is committed; none without git or Python.
    fn new(plan: &str) -> Option<Self> {
        if ["git", "python3"].iter().any(|program| is_missing(program)) {
            return None;
        }
        let project = Project(TempDir::new().unwrap());
        let scripts = project.path("tests/campaign");
        fs::create_dir_all(&scripts).unwrap();
        fs::create_dir(project.path("docs")).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/campaign/run");
        fs::copy(script, scripts.join("run")).unwrap();
        fs::write(scripts.join("plan.toml"), plan).unwrap();
        fs::write(scripts.join("template.md"), TEMPLATE).unwrap();
        fs::write(project.path(".gitignore"), "/target\n/ran\n").unwrap();
        project.git(&["init", "-q"]);
        project.commit();
        Some(project)
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.net"]);
        assert!(git.args(arguments).current_dir(self.0.path()).status().unwrap().success());
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "All"]);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("tests/campaign/run"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What the steps have noted, one word for each batch that began.
    fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("ran")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn report(&self) -> String {
        fs::read_to_string(self.path("docs/evidence.md")).unwrap()
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap())
}

#[test]
fn failure_stops_nothing_and_the_report_has_all_results() {
    let plan = r#"
        [[step]]
        name = "fails"
        shows = "nothing"
        command = "echo fails >> ran; echo 'test result: FAILED. 1 failed'; exit 7"
        [[step]]
        name = "adds"
        shows = "sums"
        command = "echo adds >> ran; echo \"swarm: ok, $((BATCH + 2)) seeds, 1.5 simulated hours, overlaps in 7 seeds\""
        batches = 3
        result = '^swarm: .*$'
        sum = ["seeds", "simulated hours", "reigns"]
        [[step]]
        name = "hangs"
        shows = "its limit"
        command = "echo hangs >> ran; sleep 600"
        hours_max = 0.0002
        [[step]]
        name = "says nothing"
        shows = "nothing either"
        command = "echo silent >> ran"
        [[step]]
        name = "shows"
        shows = "its table"
        command = "echo shows >> ran; printf 'noise\n| a | b |\n'"
        result = '^\|.*\|$'
        attach = true
    "#;
    let Some(project) = Project::new(plan) else { return };
    let output = project.run(&[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let once = ["fails", "adds", "adds", "adds", "hangs", "silent", "shows"];
    assert_eq!(project.ran(), once);
    let report = project.report();
    for text in [
        "| `fails` | nothing | failed | test result: FAILED. 1 failed |",
        "| `adds` | sums | passed | 9 seeds, 4.5 simulated hours, 0 reigns |",
        "| `hangs` | its limit | failed | – |",
        "| `says nothing` | nothing either | failed | – |",
        "| `shows` | its table | passed | [below](#shows) |",
        "## shows\n\n```text\n| a | b |\n```",
        "# hangs\necho hangs >> ran; sleep 600",
    ] {
        assert!(report.contains(text), "no {text} in\n{report}");
    }
    assert!(!report.contains("{{") && !report.contains("local changes"), "{report}");

    // What has ended is not run again, unless that is asked for.
    assert_eq!(project.run(&[]).status.code(), Some(1));
    assert_eq!(project.ran(), once);
    assert_eq!(project.run(&["--again", "shows"]).status.code(), Some(0));
    assert_eq!(project.ran(), [&once[..], &["shows"]].concat());
    assert_eq!(project.run(&["unknown"]).status.code(), Some(1));

    // Documents are no code, and other code has no results yet.
    project.commit();
    assert_eq!(project.run(&["shows"]).status.code(), Some(0));
    assert_eq!(project.ran(), [&once[..], &["shows"]].concat());
    fs::write(project.path("code"), "").unwrap();
    assert_eq!(project.run(&["shows"]).status.code(), Some(0));
    let report = project.report();
    assert!(report.contains("with local changes"), "{report}");
    assert!(report.contains("| `adds` | sums | not run | – | – |"), "{report}");
}

#[test]
fn results_hold_until_what_the_step_depends_on_changes() {
    let plan = r#"
        [[step]]
        name = "one"
        shows = "that its file matters"
        of = ["one"]
        command = "echo $SEED >> ran; echo 'test result: ok'"
        [[step]]
        name = "other"
        shows = "that others do not"
        of = ["other"]
        command = "echo other >> ran; echo 'test result: ok'"
    "#;
    let Some(project) = Project::new(plan) else { return };
    for text in ["first", "second"] {
        fs::write(project.path("one"), text).unwrap();
        project.commit();
        assert_eq!(project.run(&[]).status.code(), Some(0));
        assert!(!project.report().contains("not run"));
    }
    let ran = project.ran();
    assert_eq!(ran.len(), 3, "{ran:?}");
    assert_eq!(ran[1], "other");
    assert_ne!(ran[0], ran[2], "other files have other seeds");
    // The first commit is named as well as the second.
    let named = |name: &str| {
        let report = project.report();
        let row = report.lines().find(|line| line.starts_with(&format!("| `{name}`"))).unwrap();
        row.rsplit(", ").next().unwrap().to_owned()
    };
    assert_ne!(named("one"), named("other"));
}

#[test]
fn stopped_campaign_ends_its_command_and_goes_on_where_it_was() {
    let plan = r#"
        [[step]]
        name = "waits"
        shows = "that it can be stopped"
        command = '''
        echo $BATCH >> ran
        [[ $BATCH != 1 || -e target/go ]] || { sleep 600 & echo $! > target/child; wait; }
        echo 'test result: ok'
        '''
        batches = 3
    "#;
    let Some(project) = Project::new(plan) else { return };
    let mut child = project.command(&[]).spawn().unwrap();
    let hanging = || {
        let text = fs::read_to_string(project.path("target/child")).ok()?;
        text.trim().parse::<i32>().ok()
    };
    until("the second batch waits", || hanging().is_some());
    kill(pid(&child), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let sleep = Pid::from_raw(hanging().unwrap());
    until("what the batch started has ended", || has_ended(sleep));
    assert!(project.run(&["--list"]).stdout.starts_with(b"waits                1 of 3 done"));
    // Who has only what is committed knows as much.
    project.commit();
    fs::remove_dir_all(project.path("target")).unwrap();
    fs::create_dir(project.path("target")).unwrap();
    fs::write(project.path("target/go"), "").unwrap();
    assert_eq!(project.run(&[]).status.code(), Some(0));
    assert_eq!(project.ran(), ["0", "1", "1", "2"]);
    let report = project.report();
    assert!(report.contains("| passed |") && !report.contains("local changes"), "{report}");
    assert!(report.contains("\n1. "), "the machine is named in\n{report}");
}

#[test]
fn code_that_changes_under_a_step_has_no_result() {
    let plan = r#"
        [[step]]
        name = "edits"
        shows = "that it notices"
        command = "echo edits >> ran; echo more >> code; echo 'test result: ok'"
        [[step]]
        name = "reads"
        shows = "a document"
        also = ["docs/page.md"]
        command = "echo reads >> ran; echo 'test result: ok'"
    "#;
    let Some(project) = Project::new(plan) else { return };
    let output = project.run(&["edits"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("edits 1: its files have changed meanwhile"), "{error}");
    for text in ["first", "second", "second"] {
        fs::write(project.path("docs/page.md"), text).unwrap();
        assert_eq!(project.run(&["reads"]).status.code(), Some(0));
    }
    assert_eq!(project.ran(), ["edits", "reads", "reads"]);
    let results = fs::read_to_string(project.path("tests/campaign/results/reads.jsonl")).unwrap();
    assert_eq!(results.lines().count(), 1, "what holds for other files has gone:\n{results}");
}

/// What is in the project.
fn shipped(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The steps of the plan that is in the project.
fn steps() -> Vec<toml::Value> {
    let plan: toml::Table = shipped("tests/campaign/plan.toml").parse().unwrap();
    plan["step"].as_array().unwrap().clone()
}

/// Those whose command has a bash array run one of its words in each batch.
#[test]
fn steps_that_take_one_of_a_list_in_each_batch_take_all() {
    let words_of = |name: &str| {
        let steps = steps();
        let step = steps.iter().find(|step| step["name"].as_str() == Some(name)).unwrap();
        let (_, list) = step["command"].as_str().unwrap().split_once("=(").unwrap();
        let (list, _) = list.split_once(')').unwrap();
        let words: BTreeSet<String> = list.split_whitespace().map(str::to_owned).collect();
        let batches = usize::try_from(step["batches"].as_integer().unwrap()).unwrap();
        assert_eq!(words.len(), batches, "{name}");
        words
    };
    let checks = shipped("tests/spec/run");
    let (_, wide) = checks.split_once("WIDE = {\n").unwrap();
    let (wide, _) = wide.split_once("\n}").unwrap();
    let keys = wide.lines().filter_map(|line| line.strip_prefix("    \"")?.split_once("\": "));
    let configurations = keys.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(words_of("specification-wide"), configurations);

    let targets = |manifest: &str, kind: &str| -> BTreeSet<String> {
        let manifest: toml::Table = shipped(manifest).parse().unwrap();
        let targets = manifest[kind].as_array().unwrap().iter();
        targets.map(|target| target["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(words_of("fuzz"), targets("fuzz/Cargo.toml", "bin"));
    assert_eq!(words_of("benches"), targets("Cargo.toml", "bench"));
}

#[test]
fn every_file_that_the_plan_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let steps = steps();
    assert!(steps.len() > 10);
    for step in &steps {
        let command = step["command"].as_str().unwrap();
        let words = command.split(|at: char| at.is_whitespace() || "$();\"".contains(at));
        for script in words.filter(|word| {
            ["tests/", "fuzz/", "packaging/"].iter().any(|dir| word.starts_with(dir))
        }) {
            assert!(root.join(script).is_file(), "{script}");
        }
        // A step that depends on nothing would never run again.
        let lists = ["of", "also"].map(|key| step.get(key).and_then(toml::Value::as_array));
        for path in lists.into_iter().flatten().flatten() {
            let path = path.as_str().unwrap();
            let path = path.strip_prefix(":!").unwrap_or(path);
            // The first result makes this directory.
            let is_made_later = path == "tests/campaign/results";
            assert!(is_made_later || root.join(path).exists(), "{path}");
        }
    }
}
