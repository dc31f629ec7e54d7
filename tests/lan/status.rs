//! What `lanelect status` shows of daemons that run, live and for a monitoring system.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::harness::carrier::Carrier;
use crate::harness::inside::Needs;
use crate::harness::{Host, scenario, scenario_with, wait_until};

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

/// A process that writes into a file, until it is dropped.
struct Shown {
    child: Child,
    path: String,
}

impl Shown {
    fn start(host: &Host, mut command: Command) -> Shown {
        let path = host.path("shown");
        command.stdin(Stdio::null()).stdout(File::create(&path).unwrap());
        Shown { child: command.spawn().unwrap(), path }
    }

    /// All that it has written.
    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    /// The whole lines, as JSON.
    fn objects(&self) -> Vec<Value> {
        let text = self.text();
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status_watch(host: &Host, options: &[&str]) -> Command {
    let mut command = Command::new(LANELECT);
    command.args(["status", "--watch"]).args(options);
    command.arg("--socket").arg(host.path("control.sock"));
    command
}

/// `lanelect status` with these options, about the daemons of this host.
fn status(options: &[&str]) -> Output {
    Command::new(LANELECT).arg("status").args(options).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn live_status_follows_transitions_and_survives_a_restart_of_the_daemon() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let shown = Shown::start(h2, status_watch(h2, &["--json"]));
        let newest = || shown.objects().pop().unwrap_or_default();
        wait_until("it shows the follower", || newest()["role"] == "follower");
        assert_eq!(h1.command(&["yield"]), Some(0));
        wait_until("it shows the leader", || newest()["role"] == "leader");
        assert_eq!(h2.stop(), Some(0));
        wait_until("it shows that the daemon is away", || newest()["error"].is_string());
        h2.restart();
        wait_until("it shows the follower again", || newest()["role"] == "follower");
        let absences = shown.objects().iter().filter(|line| line["error"].is_string()).count();
        assert_eq!(absences, 1, "an absence is shown once");
    });
}

#[test]
fn live_tables_in_a_pipe_are_separated_by_an_empty_line() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.sole_leader();
        let shown = Shown::start(h1, status_watch(h1, &[]));
        wait_until("it shows several", || shown.text().matches("h1: leader for").count() > 2);
        let text = shown.text();
        assert!(text.starts_with("h1: leader for ") && !text.contains('\x1b'), "{text}");
        assert!(text.contains("has a leader\n\nh1: leader for "), "{text}");
    });
}

fn needs_script() -> Result<(), String> {
    let found = Command::new("script").arg("--version").output().is_ok();
    found.then_some(()).ok_or_else(|| "there is no script; install bsdutils".to_owned())
}

#[test]
fn live_table_fits_its_terminal_and_ends_with_status_0_when_interrupted() {
    let needs = Needs { trial: needs_script, ..Needs::default() };
    scenario_with(needs, |lan, [h1]| {
        h1.start("");
        lan.sole_leader();
        let socket = h1.path("control.sock");
        let shell = format!(
            "stty rows 9 cols 30; {LANELECT} status --watch --socket {socket} & \
             pid=$!; sleep 2.5; kill -INT $pid; wait $pid; echo \"ended $?\""
        );
        let mut script = Command::new("script");
        script.args(["-qec", &format!("bash -mc '{shell}'"), "/dev/null"]);
        let shown = Shown::start(h1, script);
        wait_until("it has ended", || shown.text().contains("ended "));
        let text = shown.text();
        assert!(text.contains("ended 0"), "{text}");
        let frames: Vec<_> = text.split("\x1b[H").skip(1).collect();
        assert!(frames.len() > 1, "{text}");
        for frame in frames {
            let lines: Vec<_> = frame.split("\x1b[J").next().unwrap().lines().collect();
            assert!(lines.len() <= 8, "{frame}");
            assert!(lines[0].contains("h1: leader for"), "{frame}");
            let columns = |line: &str| line.replace("\x1b[?7l", "").replace("\x1b[K", "").len();
            assert!(lines.iter().all(|line| columns(line.trim_end()) <= 30), "{frame}");
        }
    });
}

/// Gives the host's daemon a socket by which commands without `--socket` find it.
fn publish(host: &Host, group: &str) {
    let directory = Path::new("/run/lanelect");
    fs::create_dir_all(directory).unwrap();
    let link = directory.join(format!("{group}.sock"));
    fs::hard_link(host.path("control.sock"), link).unwrap();
}

#[test]
fn status_without_a_group_shows_the_only_one_or_lists_several() {
    scenario(|lan, [h1, h2]| {
        let none = status(&[]);
        assert_eq!(none.status.code(), Some(3));
        lan.start_led_by_first(&[h1, h2], "");
        publish(h1, "web");
        let only = status(&[]);
        assert_eq!(only.status.code(), Some(0));
        assert!(text(&only).starts_with("h1: leader for "), "{}", text(&only));

        publish(h2, "db");
        drop(UnixListener::bind("/run/lanelect/old.sock").unwrap());
        let several = status(&[]);
        assert_eq!(several.status.code(), Some(0));
        let lines: Vec<_> = text(&several).lines().map(str::to_owned).collect();
        assert!(lines[1].starts_with("db     follower  h1  "), "{lines:#?}");
        assert!(lines[2].starts_with("old    no answer: cannot reach the daemon"), "{lines:#?}");
        assert!(lines[3].starts_with("web    leader    h1  "), "{lines:#?}");
        let json = text(&status(&["--json"]));
        let objects: Vec<Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects[0]["node_id"], "h2");
        assert_eq!(objects[1]["group"], "old");
        for group in ["db", "web"] {
            fs::remove_file(format!("/run/lanelect/{group}.sock")).unwrap();
        }
        drop(UnixListener::bind("/run/lanelect/older.sock").unwrap());
        assert_eq!(status(&[]).status.code(), Some(3), "none answers");
    });
}

/// A monitoring system does not read which group answers.
#[test]
fn check_without_a_group_is_of_the_default_one_and_of_no_other() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.wait_for_leader(h1);
        publish(h1, "web");
        let down = status(&["--check"]);
        assert_eq!(down.status.code(), Some(2), "{}", text(&down));
        let expected = "CRITICAL - cannot reach the daemon at /run/lanelect/default.sock: ";
        assert!(text(&down).contains(expected), "{}", text(&down));
        assert!(text(&down).contains("/run/lanelect/web.sock"), "{}", text(&down));
        assert_eq!(status(&["--check", "--group", "web"]).status.code(), Some(0));
        publish(h1, "default");
        assert_eq!(status(&["--check"]).status.code(), Some(0));
    });
}

#[test]
fn check_follows_the_group_through_its_states() {
    scenario(|lan, [h1, h2]| {
        let check = |host: &Host| host.ask(&["status", "--check"]);
        lan.start_led_by_first(&[h1, h2], "");
        wait_until("h1 knows h2", || h1.member(h2)["state"] == "alive");
        let ok = check(h1);
        assert_eq!(ok.status.code(), Some(0), "{}", text(&ok));
        let expected = "LANELECT OK - h1 is leader, term 1, 2 members alive|term=1 members=2;;;0;2";
        assert!(text(&ok).starts_with(expected), "{}", text(&ok));
        h2.write_config("nonsense");
        h2.reload();
        wait_until("a warning", || check(h2).status.code() == Some(1));
        assert!(text(&check(h2)).starts_with("LANELECT WARNING - config file refused: "));
        h2.start("");
        h1.unplug();
        let carrier = match Carrier::chosen() {
            Carrier::Peers => "peer 10.77.0.2",
            _ => "interface eth0",
        };
        // Before the carrier is gone for it, sending fails.
        wait_until("h1 has no carrier", || {
            text(&check(h1)).contains(&format!("; {carrier}: no carrier"))
        });
        let critical = check(h1);
        assert_eq!(critical.status.code(), Some(2), "{}", text(&critical));
        let expected = "LANELECT CRITICAL - no leader known for ";
        assert!(text(&critical).starts_with(expected), "{}", text(&critical));
        h1.replug();
        lan.sole_leader();
        let socket = h1.path("no.sock");
        assert_eq!(status(&["--check", "--socket", &socket]).status.code(), Some(2));
    });
}
