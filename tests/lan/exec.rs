//! `lanelect exec`: one command of the whole group at a time, whatever is killed, stopped or cut
//! off.
//!
//! Every command holds a lock on one file, and so do all processes that it starts. A command that
//! does not get the lock notes that it began beside another one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::host::full_pipe;
use crate::harness::inside::Needs;
use crate::harness::patience::now;
use crate::harness::{
    Host, Lan, quorum_scenario, scenario, scenario_with, stuck, wait_for, wait_until,
};
use crate::quorum::elect_with;

/// How long a grant lasts in available mode: `leader_alive_threshold` of the tests.
const GRANT: Duration = Duration::from_secs(2);

/// A command has half of it to end.
const GRACE: &str = "4s";

/// A command with a child, neither of which ends on SIGTERM.
const STUBBORN: &str = r#"exec 9> "$DIR/../alive"
flock --nonblock 9 || echo "$LANELECT_NODE_ID $LANELECT_TERM" >> "$DIR/../overlaps"
trap '' TERM
echo "$LANELECT_NODE_ID $LANELECT_TERM" >> "$DIR/../begun"
sh -c 'while :; do sleep 0.1; done'
"#;

/// `lanelect exec` for a host's daemon.
struct Exec(Child);

impl Exec {
    fn start(host: &Host, options: &[&str], script: &str) -> Exec {
        Exec(Exec::command(host, options, script).spawn().unwrap())
    }

    /// What it says is in the file `said` of that host.
    fn start_noted(host: &Host, script: &str) -> Exec {
        let mut command = Exec::command(host, &["--restart"], script);
        command.stderr(fs::File::create(host.path("said")).unwrap());
        Exec(command.spawn().unwrap())
    }

    /// Its guards start only when the file `guard-may-start` exists on that host.
    fn start_with_slow_guards(host: &Host, script: &str) -> Exec {
        let library = host.build_library("slow_guard");
        let mut command = Exec::command(host, &["--restart"], script);
        command.env("LD_PRELOAD", &library).env("SLOW_GUARD", host.path("guard-may-start"));
        command.stderr(fs::File::create(host.path("said")).unwrap());
        Exec(command.spawn().unwrap())
    }

    fn command(host: &Host, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
        command.args(["exec", "--socket", &host.path("control.sock")]).args(options);
        command.args(["--", "sh", "-c", script]).env("DIR", host.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    fn status(mut self) -> Option<i32> {
        let status = self.0.wait().unwrap();
        status.code().or(status.signal().map(|signal| -signal))
    }
}

/// The hosts whose commands have begun, oldest first.
fn begun(host: &Host) -> Vec<String> {
    let text = fs::read_to_string(host.path("../begun")).unwrap_or_default();
    text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

fn assert_no_overlap(host: &Host) {
    let overlaps = fs::read_to_string(host.path("../overlaps"));
    assert!(overlaps.is_err(), "commands began beside another one: {overlaps:?}");
}

/// Waits until the command of another host than `old` has begun, after `count` had, and returns
/// that host.
fn successor<'a>(hosts: &[&'a Host], old: &Host, count: usize) -> &'a Host {
    let name = wait_for("another host runs the command", || {
        begun(old).into_iter().skip(count).find(|name| *name != old.name)
    });
    hosts.iter().copied().find(|host| host.name == name).unwrap()
}

/// Runs a command on each of three voters, and what `fault` does to the leader and its command;
/// the command of another host must follow, and never run beside another one.
fn one_at_a_time(
    lan: &Lan,
    hosts: [&Host; 3],
    fault: impl Fn(&Host, &Exec),
    repair: impl Fn(&Host, &Exec),
) {
    let voters: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    let lines = format!("mode = \"quorum\"\nvoters = {voters:?}\ndemote_grace = \"{GRACE}\"\n");
    let (leader, _) = elect_with(lan, &hosts, &lines);
    let execs = hosts.map(|host| Exec::start(host, &["--restart"], STUBBORN));
    let exec = &execs[leader.number - 1];
    wait_until("the leader's command runs", || begun(leader) == [leader.name.clone()]);
    fault(leader, exec);
    let next = successor(&hosts, leader, 1);
    assert_no_overlap(leader);
    repair(leader, exec);
    lan.wait_for_leader(next);
    assert_no_overlap(leader);
    for exec in execs {
        exec.signal(Signal::SIGKILL);
        assert_eq!(exec.status(), Some(-9));
    }
    wait_until("the last command is killed with its supervisor", || {
        is_free(&leader.path("../alive"))
    });
}

fn nothing(_: &Host, _: &Exec) {}

#[test]
fn command_ends_before_the_successors_begins() {
    quorum_scenario(|lan, hosts| {
        let hand_over = |leader: &Host, _: &Exec| assert_eq!(leader.command(&["yield"]), Some(0));
        one_at_a_time(lan, hosts, hand_over, nothing);
    });
}

#[test]
fn command_of_a_leader_that_is_cut_off_ends_with_its_lease() {
    quorum_scenario(|lan, hosts| {
        one_at_a_time(lan, hosts, |leader, _| lan.cut(leader), |_, _| lan.heal());
    });
}

#[test]
fn post_stop_waits_for_the_command_of_a_daemon_that_was_killed() {
    quorum_scenario(|lan, hosts| {
        let kill = |leader: &Host, _: &Exec| leader.crash_under_service_manager();
        one_at_a_time(lan, hosts, kill, |leader, _| leader.restart());
    });
}

/// The hook has no service manager that cleans up, and so it is late.
#[test]
fn command_of_a_daemon_that_was_killed_without_post_stop_ends_in_time() {
    scenario(|lan, hosts| {
        let repair = |leader: &Host, _: &Exec| {
            leader.clean_up();
            leader.restart();
        };
        one_at_a_time(lan, hosts, |leader, _| leader.crash(), repair);
    });
}

/// The hook has no service manager that cleans up, and so it is late.
#[test]
fn command_of_a_daemon_that_is_stopped_ends_with_its_lease() {
    scenario(|lan, hosts| {
        one_at_a_time(lan, hosts, |leader, _| leader.pause(), |leader, _| leader.resume());
    });
}

#[test]
fn guard_kills_the_command_of_a_supervisor_that_is_stopped() {
    quorum_scenario(|lan, hosts| {
        let stop = |leader: &Host, exec: &Exec| {
            exec.signal(Signal::SIGSTOP);
            assert_eq!(leader.command(&["yield"]), Some(0));
        };
        one_at_a_time(lan, hosts, stop, |_, exec| exec.signal(Signal::SIGCONT));
    });
}

/// The hook has no service manager that cleans up, and so it is late.
#[test]
fn daemon_and_supervisor_that_are_stopped_leave_no_command_behind() {
    scenario(|lan, hosts| {
        let stop = |leader: &Host, exec: &Exec| {
            exec.signal(Signal::SIGSTOP);
            leader.pause();
        };
        let resume = |leader: &Host, exec: &Exec| {
            leader.resume();
            exec.signal(Signal::SIGCONT);
        };
        one_at_a_time(lan, hosts, stop, resume);
    });
}

#[test]
fn unit_that_starts_before_the_daemon_waits_for_it() {
    scenario(|lan, [h1]| {
        let begins = r#"echo begun > "$DIR/begun""#;
        let (waits, fails) =
            (Exec::start(h1, &["--restart"], begins), Exec::start(h1, &[], begins));
        assert_eq!(fails.status(), Some(3), "nothing to wait for");
        h1.start("");
        lan.wait_for_leader(h1);
        assert_eq!(waits.status(), Some(0));
        assert!(fs::exists(h1.path("begun")).unwrap());
    });
}

#[test]
fn exit_status_is_that_of_the_command() {
    scenario(|lan, [leader, other]| {
        lan.start_led_by_first(&[leader, other], "");
        let run = |options: &[&str], script| Exec::start(leader, options, script).status();
        assert_eq!(run(&[], "exit 7"), Some(7));
        assert_eq!(run(&["--restart"], "exit 0"), Some(0), "it ended by itself");
        assert_eq!(run(&[], "kill -KILL $$"), Some(128 + 9));
        assert_eq!(
            run(&[], "[ \"$LANELECT_NODE_ID\" = h1 ] && [ \"$LANELECT_TERM\" -ge 1 ]"),
            Some(0)
        );
        let plain = |program: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
            command.args(["exec", "--socket", &leader.path("control.sock"), "--", program]);
            command.stderr(Stdio::null()).status().unwrap().code()
        };
        assert_eq!(plain("no-such-program"), Some(127));
        let file = leader.path("not-executable");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(plain(&file), Some(126));
        // What it leaves behind is killed.
        let left = "sh -c 'exec 9> $DIR/left; flock 9; echo begun > $DIR/left-begun; sleep 300' &
            while ! [ -e $DIR/left-begun ]; do sleep 0.01; done";
        assert_eq!(run(&[], left), Some(0));
        assert!(is_free(&leader.path("left")), "a process that the command started is left");

        // SIGTERM goes to the command, whose status counts.
        let polite = "trap 'exit 5' TERM; echo > $DIR/polite; while :; do sleep 0.05; done";
        let exec = Exec::start(leader, &["--restart"], polite);
        wait_until("the command runs", || fs::exists(leader.path("polite")).unwrap());
        exec.signal(Signal::SIGTERM);
        assert_eq!(exec.status(), Some(5));
        // And ends one that waits.
        let waits = Exec::start(other, &[], "true");
        wait_until("it waits", || other.log().contains("received `exec`"));
        waits.signal(Signal::SIGTERM);
        assert_eq!(waits.status(), Some(128 + 15));

        // Without --restart a lost leadership is the end, and the command's status counts.
        let once = Exec::start(leader, &[], polite);
        let begins = Exec::start(other, &[], "echo > $DIR/begins; exit 3");
        fs::remove_file(leader.path("polite")).unwrap();
        wait_until("the command runs", || fs::exists(leader.path("polite")).unwrap());
        assert!(!fs::exists(other.path("begins")).unwrap(), "a follower runs nothing");
        assert_eq!(leader.command(&["yield"]), Some(0));
        assert_eq!(once.status(), Some(5));
        assert_eq!(begins.status(), Some(3));
        other.stop();
        assert_eq!(Exec::start(other, &[], "true").status(), Some(3), "no daemon");
    });
}

#[test]
fn command_waits_for_the_hook_and_the_hook_for_the_command() {
    scenario(|lan, [h1, h2]| {
        let note = |host: &Host| {
            let hook = format!(
                "say() {{ echo $LANELECT_EVENT $1 $LANELECT_REASON >> {}; }}; say begins; \
                 [ $LANELECT_EVENT != elected ] || sleep 1; {} && say ends",
                host.path("story"),
                host.journal_hook()
            );
            format!("hook = {}\nrefresh_interval = \"1s\"\n", serde_json::Value::from(hook))
        };
        let script = "trap 'sleep 0.3; echo command ends >> $DIR/story; exit 0' TERM
            echo command begins >> $DIR/story; while :; do sleep 0.05; done";
        let story = |host: &Host| fs::read_to_string(host.path("story")).unwrap_or_default();
        let lines = format!("priority = 2\n{}", note(h1));
        h1.start(&lines);
        wait_until("its hook runs", || story(h1).contains("elected begins"));
        let exec = Exec::start(h1, &[], script);
        h2.start(&note(h2));
        lan.wait_for_leader(h1);
        wait_until("the hook is refreshed beside it", || {
            let story = story(h1);
            story.split_once("command begins").is_some_and(|(_, after)| after.contains("refresh"))
        });
        assert_eq!(h1.command(&["yield"]), Some(0));
        assert_eq!(exec.status(), Some(0));
        wait_until("it has demoted", || story(h1).contains("demoted begins"));
        let all = story(h1);
        let lines: Vec<_> = all.lines().collect();
        let at = |text: &str| lines.iter().position(|line| line.starts_with(text)).expect(text);
        assert!(at("elected ends") < at("command begins"), "{all}");
        assert!(at("command ends") < at("demoted begins"), "{all}");
    });
}

#[test]
fn command_outlives_its_terminal_under_nohup() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.wait_for_leader(h1);
        let mut command = Command::new("nohup");
        command.arg(env!("CARGO_BIN_EXE_lanelect"));
        command.args(["exec", "--socket", &h1.path("control.sock"), "--", "sh", "-c"]);
        command.arg("echo > $DIR/runs; while ! [ -e $DIR/may-end ]; do sleep 0.05; done; exit 7");
        command.env("DIR", h1.path("")).stdin(Stdio::null()).stdout(Stdio::null());
        let exec = Exec(command.spawn().unwrap());
        wait_until("the command runs", || fs::exists(h1.path("runs")).unwrap());
        exec.signal(Signal::SIGHUP);
        fs::write(h1.path("may-end"), "").unwrap();
        assert_eq!(exec.status(), Some(7));
    });
}

fn needs_setpriv() -> Result<(), String> {
    let found = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_ok();
    found.then_some(()).ok_or_else(|| "there is no setpriv; install util-linux".to_owned())
}

#[test]
fn command_of_another_user_that_cannot_be_ended_is_named() {
    let needs = Needs { real_root: true, trial: needs_setpriv, ..Needs::default() };
    scenario_with(needs, |lan, [h1]| {
        h1.start("");
        lan.wait_for_leader(h1);
        let pid_file = h1.path("pid");
        fs::write(&pid_file, "").unwrap();
        fs::set_permissions(&pid_file, fs::Permissions::from_mode(0o666)).unwrap();
        // Without the capability to end the processes of others, as every user but root.
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-kill", "--inh-caps=-kill"]);
        command.arg(env!("CARGO_BIN_EXE_lanelect"));
        command.args(["exec", "--socket", &h1.path("control.sock"), "--"]);
        command.args(["setpriv", "--reuid=12345", "--clear-groups"]);
        command.args(["sh", "-c", &format!("echo $$ > {pid_file}; exec sleep 300")]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(h1.path("said")).unwrap());
        let exec = Exec(command.spawn().unwrap());
        let pid = wait_for("the command runs", || {
            fs::read_to_string(&pid_file).unwrap().trim().parse::<i32>().ok()
        });
        let said = |text: &str| fs::read_to_string(h1.path("said")).unwrap().contains(text);
        exec.signal(Signal::SIGTERM);
        wait_until("it says why it cannot", || {
            said(&format!("cannot end process {pid} of the command, which runs as another user"))
        });
        exec.signal(Signal::SIGTERM);
        wait_until("it says so again", || {
            said(&format!("process {pid} of the command runs as another user: end it as root"))
        });
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        assert_eq!(exec.status(), Some(128 + 9));
    });
}

/// The grant is over when the guard has started at last.
#[test]
fn command_whose_guard_starts_late_does_not_begin() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let exec = Exec::start_with_slow_guards(h1, "sleep 300");
        wait_until("the guard is about to start", || {
            fs::exists(h1.path("guard-may-start.waits")).unwrap()
        });
        let granted = now();
        assert_eq!(h1.command(&["yield"]), Some(0));
        wait_until("the grant is over", || granted.elapsed() > GRANT * 3 / 2);
        fs::write(h1.path("guard-may-start"), "").unwrap();
        lan.wait_for_leader(h2);
        let said = fs::read_to_string(h1.path("said")).unwrap();
        assert!(!said.contains("stopping"), "the command began without a grant: {said}");
        assert!(!h1.log().contains("have not ended"), "the daemon waited for nothing");
        exec.signal(Signal::SIGKILL);
    });
}

/// The terminal stops a group so, if a command reads from it in the background.
#[test]
fn guard_kills_a_command_that_stops_its_own_group() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let script = r#"exec 9> "$DIR/alive"; flock 9; echo > "$DIR/begun"
            kill -s TSTP 0; kill -s TTIN 0; kill -s TTOU 0; sleep 300"#;
        let exec = Exec::start(h1, &["--restart"], script);
        wait_until("the command runs", || fs::exists(h1.path("begun")).unwrap());
        exec.signal(Signal::SIGSTOP);
        wait_until("the guard has killed it", || is_free(&h1.path("alive")));
        exec.signal(Signal::SIGKILL);
    });
}

/// Has `exec` and the guard see the processes of this test.
fn mount_proc() {
    let mount = Command::new("mount").args(["-t", "proc", "proc", "/proc"]).status().unwrap();
    assert!(mount.success());
}

/// Leaves a command that waits in the kernel without its supervisor, after `fault`; the hook must
/// wait until the command has ended.
fn hook_waits_for_a_stuck_command(lan: &Lan, [h1, h2]: [&Host; 2], fault: impl Fn(&Exec)) {
    let Some(stuck) = h1.make_stuck_file() else { return };
    lan.start_led_by_first(&[h1, h2], "");
    mount_proc();
    let file = h1.path(stuck::FILE);
    // Its group is that of its guard.
    let script = format!(
        "exec 9> $DIR/alive; flock 9; cut -d ' ' -f 5 /proc/$$/stat > $DIR/guard; exec < {file}"
    );
    let exec = Exec::start_noted(h1, &script);
    wait_until("it is stuck", || stuck.is_waited_for());
    fault(&exec);
    exec.signal(Signal::SIGKILL);
    assert_eq!(exec.status(), Some(-9));
    let guard = fs::read_to_string(h1.path("guard")).unwrap().trim().parse().unwrap();
    let mut signals = 0;
    wait_until("its guard got signals, as when systemd stops the unit", || {
        signals += 1;
        // If that ends it, the hook does not wait.
        let _ = kill(Pid::from_raw(guard), Signal::SIGTERM);
        signals > 20
    });
    assert_eq!(h1.command(&["yield"]), Some(0));
    wait_until("the hook waits, or has run", || {
        h1.log().contains("waits for the commands") || h1.hooks().len() > 2
    });
    assert_eq!(h1.hooks().last().unwrap(), "elected election", "beside the command");
    stuck.release();
    lan.wait_for_leader(h2);
    assert!(is_free(&h1.path("alive")));
    assert!(!h1.log().contains("have not ended"), "it has ended in time");
}

/// The command gets SIGKILL with its supervisor, but waits in the kernel.
#[test]
fn hook_waits_for_a_command_whose_supervisor_was_killed() {
    scenario(|lan, hosts| hook_waits_for_a_stuck_command(lan, hosts, |_| ()));
}

/// The supervisor sends SIGKILL first, and the guard outlives that.
#[test]
fn hook_waits_for_a_command_whose_supervisor_was_killed_after_it_had_sent_sigkill() {
    scenario(|lan, hosts| {
        hook_waits_for_a_stuck_command(lan, hosts, |exec| {
            exec.signal(Signal::SIGTERM);
            exec.signal(Signal::SIGINT);
            wait_until("the command does not end", || {
                let said = fs::read_to_string(hosts[0].path("said")).unwrap();
                said.contains("does not end on SIGKILL")
            });
        });
    });
}

/// Most of its processes have ended before they can be killed one by one.
#[test]
fn command_that_creates_processes_without_end_is_killed() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.wait_for_leader(h1);
        mount_proc();
        let script = r#"exec 9> "$DIR/alive"; flock 9; trap '' TERM; echo > "$DIR/begun"
            again() { again & exit; }
            for i in 1 2 3 4 5 6 7 8; do again & done; sleep 300"#;
        let exec = Exec::start(h1, &[], script);
        wait_until("the command runs", || fs::exists(h1.path("begun")).unwrap());
        exec.signal(Signal::SIGTERM);
        exec.signal(Signal::SIGINT);
        assert_eq!(exec.status(), Some(128 + 9));
        assert!(is_free(&h1.path("alive")), "a process is left");
    });
}

#[test]
fn supervisor_whose_stderr_nobody_reads_hangs_up_in_time() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        let pipe = h1.path("stderr");
        let unread = full_pipe(Path::new(&pipe));
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
        let script = format!("echo > {}; exec sleep 300", h1.path("begun"));
        command.args(["exec", "--socket", &h1.path("control.sock"), "--", "sh", "-c", &script]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut exec = command.stderr(fs::File::create(pipe).unwrap()).spawn().unwrap();
        wait_until("the command runs", || fs::exists(h1.path("begun")).unwrap());
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        assert!(!h1.log().contains("have not ended"), "the supervisor hung");
        assert_eq!(exec.wait().unwrap().code(), Some(128 + 15));
        drop(unread);
    });
}

/// A terminal stops what reads from it in the background, and a command runs in a group of its own.
#[test]
fn command_does_not_read_from_the_terminal() {
    scenario(|lan, [h1]| {
        h1.start("");
        lan.wait_for_leader(h1);
        let exec = format!(
            "{} exec --socket {} -- sh -c 'read line; echo $? > {}'",
            env!("CARGO_BIN_EXE_lanelect"),
            h1.path("control.sock"),
            h1.path("read"),
        );
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &exec, "/dev/null"]);
        let mut terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let typed = terminal.stdin.take();
        wait_until("it has read to the end", || {
            fs::read_to_string(h1.path("read")).unwrap_or_default() == "1\n"
        });
        drop(typed);
        assert_eq!(terminal.wait().unwrap().code(), Some(0));
    });
}

/// The hook for `demoted` still waits for the first command when the node leads again.
#[test]
fn no_command_begins_while_demoted_waits() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        lan.partition(&[&[h1], &[h2]]);
        wait_until("both lead", || h1.leads() && h2.leads());
        let first = Exec::start(h2, &[], STUBBORN);
        wait_until("the command runs", || begun(h2) == ["h2"]);
        lan.heal();
        wait_until("the hook waits", || h2.log().contains("waits for the commands"));
        h1.crash();
        wait_until("h2 leads again", || h2.leads());
        let is_ready = h2.status()["ready"] == true;
        let has_released = h2.hooks().iter().any(|run| run.starts_with("demoted"));
        assert!(has_released || !is_ready, "its hook has not run for this leadership");
        let note = "echo $LANELECT_TERM > $DIR/second; sleep 300";
        let second = Exec::start(h2, &["--restart"], note);
        wait_until("the second command runs", || fs::exists(h2.path("second")).unwrap());
        assert_no_overlap(h2);
        assert!(is_free(&h2.path("../alive")), "the first command has not ended");
        assert_eq!(h2.hooks().last().unwrap(), "elected election", "{:?}", h2.hooks());
        assert_eq!(first.status(), Some(128 + 9));
        second.signal(Signal::SIGKILL);
    });
}

fn is_free(lock: &str) -> bool {
    Command::new("flock").args(["--nonblock", lock, "true"]).status().unwrap().success()
}
