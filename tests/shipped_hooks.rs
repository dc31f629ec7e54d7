//! The hooks that the package installs, run as the daemon runs them, with the tools that they use.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use programs::is_missing;
use waiting::until;

mod common;

#[path = "shipped_hooks/clouds.rs"]
mod clouds;
#[path = "common/programs.rs"]
mod programs;
#[path = "common/waiting.rs"]
mod waiting;

/// Every event, and whether what runs on the leader alone may run after it.
const EVENTS: [(&str, bool); 4] =
    [("elected", true), ("reaffirmed", true), ("demoted", false), ("started", false)];

/// A run of one of the shipped hooks for `event`, with these directories first in its path.
fn hook(name: &str, event: &str, path: &[&Path]) -> Command {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks");
    let mut command = Command::new(directory.join(name));
    let inherited = env::var_os("PATH").unwrap();
    let path = path.iter().map(|path| path.to_path_buf()).chain(env::split_paths(&inherited));
    command.env("PATH", env::join_paths(path).unwrap());
    for (variable, value) in [
        ("EVENT", event),
        ("REASON", "election"),
        ("ROLE", if matches!(event, "elected" | "reaffirmed") { "leader" } else { "follower" }),
        ("TERM", "7"),
        ("LEADER", "web1"),
        ("LEADER_ADDRESS", "10.0.0.11"),
        ("PREVIOUS_LEADER", ""),
        ("NODE_ID", "web1"),
        ("GROUP", "web"),
        ("INTERFACE", "eth0 eth1"),
    ] {
        command.env(format!("LANELECT_{variable}"), value);
    }
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.status().unwrap().success()
}

/// Runs `ip` and returns the JSON that it prints.
fn ip(arguments: &str) -> Value {
    output(Command::new("ip").arg("-j"), arguments)
}

fn output(command: &mut Command, arguments: &str) -> Value {
    let output = command.args(arguments.split_whitespace()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {complaint}");
    // Where it has nothing to list, it may print nothing at all.
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// A host beside this one, on a wire between this one's `eth0` and its own `lan0`.
struct Neighbour(Child);

impl Neighbour {
    fn beside_eth0() -> Neighbour {
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        let child = Command::new("unshare").args(["-n", "sleep", "infinity"]).spawn().unwrap();
        let neighbour = Neighbour(child);
        let namespace = format!("/proc/{}/ns/net", neighbour.0.id());
        until("a namespace of its own", || fs::read_link(&namespace).unwrap() != own);
        ip(&format!("link add eth0 type veth peer name lan0 netns {}", neighbour.0.id()));
        ip("link set eth0 up");
        neighbour.ip("link set lan0 up");
        neighbour.ip("address add 10.0.0.2/24 dev lan0");
        neighbour.ip("address add 2001:db8::2/64 dev lan0 nodad");
        neighbour
    }

    fn ip(&self, arguments: &str) -> Value {
        let namespace = format!("--net=/proc/{}/ns/net", self.0.id());
        output(Command::new("nsenter").args([&namespace, "ip", "-j"]), arguments)
    }

    /// Has it believe that `address` is somewhere else.
    fn mislead(&self, address: &str) {
        self.ip(&format!(
            "neighbour replace {address} lladdr 02:00:00:00:00:99 nud reachable dev lan0"
        ));
    }

    fn believes(&self, address: &str) -> Value {
        self.ip(&format!("neighbour show {address} dev lan0"))[0]["lladdr"].clone()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `ip` tells of the addresses of `eth0`, without the one that IPv6 gives itself.
fn addresses() -> Vec<Value> {
    let mut all = ip("address show dev eth0")[0]["addr_info"].as_array().unwrap().clone();
    all.retain(|address| address["scope"] != "link");
    all
}

fn held() -> Vec<String> {
    let name = |a: &Value| format!("{}/{}", a["local"].as_str().unwrap(), a["prefixlen"]);
    addresses().iter().map(name).collect()
}

/// Runs `floating-address`; returns whether it succeeded.
fn floating_address(event: &str, arguments: &str) -> bool {
    let binary = Path::new(env!("CARGO_BIN_EXE_lanelect")).parent().unwrap();
    floating_address_with(binary, event, arguments)
}

/// Runs it with this directory first in its path.
fn floating_address_with(directory: &Path, event: &str, arguments: &str) -> bool {
    let mut command = hook("floating-address", event, &[directory]);
    succeeds(command.args(arguments.split_whitespace()))
}

/// The interfaces that have this address.
fn holders(address: &str) -> Vec<String> {
    let all = ip(&format!("address show to {address}"));
    let name = |a: &Value| a["ifname"].as_str().map(str::to_owned);
    all.as_array().map(|all| all.iter().filter_map(name).collect()).unwrap_or_default()
}

/// Writes a script by another process: one that this test forks meanwhile would hold the file open,
/// and a script that is open for writing cannot be run.
fn write_script(path: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf %s "$1" >"$2""#, "sh", text]);
    assert!(succeeds(shell.arg(path)));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const FLOATING: [&str; 2] = ["10.0.0.100", "2001:db8::100"];
const FLOATING_ADDRESS: &str = "eth0 10.0.0.100/24 2001:db8::100/64";

#[test]
fn a_floating_address_is_held_exactly_while_this_host_leads() {
    let test = "a_floating_address_is_held_exactly_while_this_host_leads";
    common::run_inside(test, &["-Urn"], || {
        let _neighbour = Neighbour::beside_eth0();
        ip("address add 10.0.0.1/24 dev eth0");
        let own = ["10.0.0.1/24"];
        let all = ["10.0.0.1/24", "10.0.0.100/24", "2001:db8::100/64"];
        for (event, leads) in [EVENTS, EVENTS].concat() {
            for _ in 0..2 {
                assert!(floating_address(event, FLOATING_ADDRESS), "{event}");
                assert_eq!(held(), if leads { &all[..] } else { &own[..] }, "{event}");
            }
            if leads {
                // At once of use to others, and never what this host connects from.
                let shown = addresses().pop().unwrap();
                assert_eq!(
                    (&shown["tentative"], &shown["deprecated"]),
                    (&Value::Null, &json!(true))
                );
            }
        }
    });
}

#[test]
fn a_floating_address_is_announced_to_neighbours_who_believe_otherwise() {
    let test = "a_floating_address_is_announced_to_neighbours_who_believe_otherwise";
    common::run_inside(test, &["-Urn"], || {
        let neighbour = Neighbour::beside_eth0();
        let own = ip("link show dev eth0")[0]["address"].clone();
        for event in ["elected", "reaffirmed"] {
            FLOATING.iter().for_each(|address| neighbour.mislead(address));
            assert!(floating_address(event, FLOATING_ADDRESS), "{event}");
            for address in FLOATING {
                until(event, || neighbour.believes(address) == own);
            }
        }
    });
}

#[test]
fn a_floating_address_is_let_go_of_whatever_stands_in_the_way() {
    let test = "a_floating_address_is_let_go_of_whatever_stands_in_the_way";
    common::run_inside(test, &["-Urn"], || {
        ip("link add eth0 type veth peer name unused");
        ip("link set eth0 up");
        // Left behind by earlier lives with other prefixes.
        ip("address add 10.0.0.100/32 dev eth0");
        ip("address add 10.0.0.100/16 dev eth0");
        assert!(floating_address("started", "eth0 10.0.0.100/24"));
        assert_eq!(held(), [""; 0]);

        assert!(!floating_address("elected", "eth0 10.0.0.100/24 no-address"));
        assert!(!floating_address("demoted", "eth0 no-address 10.0.0.100/24"));
        assert_eq!(held(), [""; 0]);

        ip("link delete eth0");
        assert!(!floating_address("elected", "eth0 10.0.0.100/24"));
        assert!(floating_address("demoted", "eth0 10.0.0.100/24"));
    });
}

#[test]
fn floating_address_on_a_renamed_interface_is_released() {
    let test = "floating_address_on_a_renamed_interface_is_released";
    common::run_inside(test, &["-Urn"], || {
        ip("link add lan0 type veth peer name unused");
        for event in ["started", "demoted"] {
            ip("address add 10.0.0.100/24 dev lan0");
            ip("address add 2001:db8::100/64 dev lan0");
            // As a real server of IPVS has it.
            ip("address add 10.0.0.100/32 dev lo");
            assert!(floating_address(event, FLOATING_ADDRESS), "{event}");
            assert_eq!(holders("10.0.0.100"), ["lo"], "{event}");
            assert_eq!(holders("2001:db8::100"), [""; 0], "{event}");
            ip("address delete 10.0.0.100/32 dev lo");
        }
    });
}

#[test]
fn floating_address_of_another_interface_stays() {
    let test = "floating_address_of_another_interface_stays";
    common::run_inside(test, &["-Urn"], || {
        ip("link add eth0 type veth peer name lan0");
        ip("address add 10.0.0.100/32 dev lan0");
        for event in ["started", "demoted"] {
            ip("address add 10.0.0.100/24 dev eth0");
            assert!(floating_address(event, FLOATING_ADDRESS), "{event}");
            assert_eq!(holders("10.0.0.100"), ["lan0"], "{event}");
        }
    });
}

/// Stands in for an `ip` that fails if its arguments contain WHAT.
const FAILING_IP: &str = r#"#!/bin/sh
case $* in *WHAT*) exit 1 ;; esac
PATH=${PATH#*:}
exec ip "$@"
"#;

#[test]
fn floating_address_fails_if_ip_does_not_work() {
    let test = "floating_address_fails_if_ip_does_not_work";
    common::run_inside(test, &["-Urn"], || {
        ip("link add eth0 type veth peer name unused");
        ip("address add 10.0.0.100/24 dev eth0");
        let directory = TempDir::new().unwrap();
        for event in ["started", "demoted"] {
            // It can do nothing, cannot look, or cannot delete.
            for what in ["", "show", "delete"] {
                let script = FAILING_IP.replace("WHAT", what);
                write_script(&directory.path().join("ip"), &script);
                let released = floating_address_with(directory.path(), event, "eth0 10.0.0.100/24");
                assert!(!released, "{event} {what}");
            }
            let mut without_ip = hook("floating-address", event, &[]);
            without_ip.env("PATH", "/nonexistent").args(["eth0", "10.0.0.100/24"]);
            assert!(!succeeds(&mut without_ip), "{event}");
            assert_eq!(holders("10.0.0.100"), ["eth0"]);
        }
    });
}

/// Stands in for `systemctl`: `show` prints, for each unit, the file named after the first of the
/// properties and the unit. With the file `no-answer` it fails at the unit that the file names.
/// Anything else is noted, and ends with the status in `exit`, a reload with that in `exit-reload`.
const SYSTEMCTL: &str = r#"#!/bin/sh
cd "${0%/*}"
if [ "$1" = show ]; then
    list=${3#--property=}
    shift 4
    for unit in "$@"; do
        [ "$unit" != "$(cat no-answer 2>/dev/null)" ] || exit 1
        cat "${list%%,*}-$unit" 2>/dev/null || echo
        echo
    done
    exit 0
fi
echo "$*" >>calls
[ "$1" != daemon-reload ] || exit "$(cat exit-reload)"
exit "$(cat exit)"
"#;

/// With the hook itself, which writes settings of units below `units` here.
struct Systemctl(TempDir);

impl Systemctl {
    fn new() -> Systemctl {
        let systemctl = Systemctl(TempDir::new().unwrap());
        let script = include_str!("../examples/hooks/leader-target");
        let units = systemctl.path("units");
        let hook = script.replace("/run/systemd/system", units.to_str().unwrap());
        write_script(&systemctl.path("systemctl"), SYSTEMCTL);
        write_script(&systemctl.path("leader-target"), &hook);
        systemctl.ends_with(0);
        systemctl.write("exit-reload", "0");
        systemctl
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn ends_with(&self, status: u8) {
        self.write("exit", &status.to_string());
    }

    fn run(&self, event: &str, arguments: &[&str]) -> bool {
        let mut hook = hook("leader-target", event, &[self.0.path()]);
        let mut here = Command::new(self.path("leader-target"));
        here.envs(hook.args(arguments).get_envs().filter_map(|(name, value)| Some((name, value?))));
        succeeds(here.args(arguments))
    }

    fn settings(&self, unit: &str) -> PathBuf {
        self.path(&format!("units/{unit}.d/lanelect-web.conf"))
    }

    /// Whether systemd is reloaded in a run for `event`, which succeeds.
    fn reloads(&self, event: &str) -> bool {
        assert!(self.run(event, &[]), "{event}");
        self.calls().contains(&"daemon-reload".to_owned())
    }

    /// What was called since it was last asked.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path("calls"));
        calls.lines().map(str::to_owned).collect()
    }
}

#[test]
fn the_leader_target_is_started_with_what_it_wants_and_stopped_with_all_that_it_reaches() {
    let systemctl = Systemctl::new();
    systemctl.write("Wants-lanelect-leader@web.target", "db.service tidy.timer\n\nmail.service\n");
    systemctl.write("ConsistsOf-lanelect-leader@web.target", "db.service tidy.timer\n");
    systemctl.write("ConsistsOf-db.service", "pool.service\n");
    // Two that reach each other.
    // As systemctl prints a name with a backslash.
    systemctl.write("ConsistsOf-pool.service", "db.service \"probe\\\\x2d1.service\"\n");
    let started = "start -- lanelect-leader@web.target db.service tidy.timer mail.service";
    let stopped = "stop -- lanelect-leader@web.target db.service tidy.timer pool.service \
                   probe\\x2d1.service";
    for (event, leads) in EVENTS {
        assert!(systemctl.run(event, &[]), "{event}");
        let mut expected = vec![if leads { started } else { stopped }];
        // The units that the target wants were new at first.
        expected.extend((event == "elected").then_some("daemon-reload"));
        assert_eq!(systemctl.calls(), expected, "{event}");
    }
}

#[test]
fn a_unit_that_the_target_wants_makes_the_host_hand_over_when_it_fails() {
    let systemctl = Systemctl::new();
    let target = "Wants-lanelect-leader@web.target";
    systemctl.write(target, "db.service\n");
    for (event, wanted, reloads) in [
        ("started", "db.service\n", true),
        ("elected", "db.service\n", false),
        ("demoted", "db.service tidy.timer\n", false),
        ("elected", "db.service tidy.timer\n", true),
        ("reaffirmed", "db.service tidy.timer\n", false),
    ] {
        systemctl.write(target, wanted);
        assert_eq!(systemctl.reloads(event), reloads, "{event}");
    }
    for unit in ["db.service", "tidy.timer"] {
        let settings = fs::read_to_string(systemctl.settings(unit)).unwrap();
        assert_eq!(settings, "[Unit]\nOnFailure=lanelect-yield@web.service\n");
    }
    systemctl.write(target, "db.service\nnew.service\n");
    fs::write(systemctl.path("units/new.service.d"), "no directory").unwrap();
    assert!(systemctl.reloads("elected"), "the unit runs all the same");
    assert!(systemctl.settings("db.service").exists());
    let tidy = systemctl.settings("tidy.timer");
    assert!(!tidy.exists(), "the target does not want it any more");
    assert!(!systemctl.reloads("elected"), "nothing has changed");
}

#[test]
fn reload_of_systemd_that_failed_is_made_up_for_at_the_next_event() {
    let systemctl = Systemctl::new();
    let target = "Wants-lanelect-leader@web.target";
    // For settings that are new, and for those that are removed.
    for wanted in ["db.service\n", "\n"] {
        systemctl.write(target, wanted);
        systemctl.write("exit-reload", "1");
        assert!(systemctl.reloads("elected"), "the units run all the same");
        assert!(systemctl.reloads("reaffirmed"), "it is still owed");
        systemctl.write("exit-reload", "0");
        assert!(systemctl.reloads("started"));
        assert!(!systemctl.reloads("elected"), "it has succeeded");
    }
}

/// As a full `/run` leaves them.
#[test]
fn empty_settings_of_a_unit_are_written_again() {
    let systemctl = Systemctl::new();
    systemctl.write("Wants-lanelect-leader@web.target", "db.service\n");
    let settings = systemctl.settings("db.service");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "").unwrap();
    assert!(systemctl.reloads("elected"));
    assert_ne!(fs::read_to_string(&settings).unwrap(), "");
}

/// systemd would read neither the settings nor the names of the units.
#[test]
fn leader_target_refuses_a_group_that_is_no_part_of_a_units_name() {
    let systemctl = Systemctl::new();
    for group in ["web/1", "a%b", "b\u{fc}ro"] {
        for (event, _) in EVENTS {
            assert!(!systemctl.run(event, &[group]), "{event}");
        }
    }
    assert_eq!(systemctl.calls(), [""; 0]);
    assert!(systemctl.run("elected", &["a:b-c_d.e@f\\x2f"]));
}

#[test]
fn the_leader_target_of_another_group_may_be_named() {
    let systemctl = Systemctl::new();
    assert!(systemctl.run("elected", &["mail"]));
    assert!(systemctl.run("demoted", &["mail"]));
    let target = "lanelect-leader@mail.target";
    assert_eq!(systemctl.calls(), [format!("start -- {target}"), format!("stop -- {target}")]);
}

#[test]
fn units_that_do_not_start_or_stop_fail_the_run() {
    let systemctl = Systemctl::new();
    systemctl.ends_with(1);
    for (event, _) in EVENTS {
        assert!(!systemctl.run(event, &[]), "{event}");
    }
}

#[test]
fn leader_target_without_an_answer_from_systemd_stops_what_it_knows_and_fails() {
    let systemctl = Systemctl::new();
    systemctl.write("ConsistsOf-lanelect-leader@web.target", "db.service tidy.timer\n");
    systemctl.write("ConsistsOf-tidy.timer", "tidy.service\n");
    for (unit, stopped) in [
        ("lanelect-leader@web.target", ""),
        ("db.service", " db.service tidy.timer"),
        ("tidy.service", " db.service tidy.timer tidy.service"),
        ("no unit of these", " db.service tidy.timer tidy.service"),
    ] {
        for event in ["started", "demoted"] {
            systemctl.write("no-answer", unit);
            assert_eq!(systemctl.run(event, &[]), unit == "no unit of these", "{event} {unit}");
            let expected = format!("stop -- lanelect-leader@web.target{stopped}");
            assert_eq!(systemctl.calls(), [expected], "{event} {unit}");
        }
    }
}

#[test]
fn leader_target_that_does_not_learn_what_to_start_fails() {
    let systemctl = Systemctl::new();
    systemctl.write("Wants-lanelect-leader@web.target", "db.service\n");
    systemctl.write("no-answer", "lanelect-leader@web.target");
    for event in ["elected", "reaffirmed"] {
        assert!(!systemctl.run(event, &[]), "{event}");
        assert_eq!(systemctl.calls(), [""; 0], "{event}");
    }
}

/// The body of the next request; its sender is answered with `status`.
fn answer(listener: &TcpListener, status: &str) -> (String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    let (headers, body) = request(&stream);
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    (headers, serde_json::from_slice(&body).unwrap())
}

fn request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut headers).unwrap(), 0, "{headers}");
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (headers, body)
}

fn webhook(event: &str, listener: &TcpListener) -> Command {
    let mut command = hook("webhook", event, &[]);
    command.arg(format!("http://{}/leadership", listener.local_addr().unwrap()));
    command.env("no_proxy", "*").stderr(Stdio::null());
    command
}

fn required_webhook(listener: &TcpListener) -> Command {
    let mut command = hook("webhook", "elected", &[]);
    command.args(["--required", &format!("http://{}/", listener.local_addr().unwrap())]);
    command.env("no_proxy", "*").stderr(Stdio::null());
    command
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn a_webhook_posts_each_event_as_json_whatever_the_names_hold() {
    if is_missing("curl") {
        return;
    }
    let listener = listener();
    for (event, leads) in EVENTS {
        let mut command = webhook(event, &listener);
        command.args(["--header", "X-Token: abc"]);
        command.env("LANELECT_LEADER", r#"o"ne\two$(id)`é%s"#);
        assert!(succeeds(&mut command), "{event}");
        let (headers, posted) = answer(&listener, "204 No Content");
        let expected = json!({
            "event": event,
            "reason": "election",
            "role": if leads { "leader" } else { "follower" },
            "term": 7,
            "leader": r#"o"ne\two$(id)`é%s"#,
            "leader_address": "10.0.0.11",
            "previous_leader": "",
            "node_id": "web1",
            "group": "web",
            "interface": "eth0 eth1",
        });
        assert_eq!(posted, expected);
        assert!(headers.starts_with("POST /leadership HTTP/1.1\r\n"), "{headers}");
        assert!(headers.contains("\r\nContent-Type: application/json\r\n"), "{headers}");
        assert!(headers.contains("\r\nX-Token: abc\r\n"), "{headers}");
    }
}

#[test]
fn a_webhook_holds_nothing_up_unless_it_is_required() {
    if is_missing("curl") {
        return;
    }
    let listener = listener();
    // It has ended before anybody answers.
    assert!(succeeds(&mut webhook("demoted", &listener)));
    assert_eq!(answer(&listener, "500 Internal Server Error").1["event"], "demoted");

    let moved = "308 Permanent Redirect";
    for (status, accepted) in [("200 OK", true), (moved, false), ("503 Service Unavailable", false)]
    {
        let mut child = required_webhook(&listener).spawn().unwrap();
        answer(&listener, status);
        assert_eq!(child.wait().unwrap().success(), accepted, "{status}");
    }
    // Nobody answers; the connection is made by the kernel.
    assert!(!succeeds(&mut required_webhook(&listener)));
}

/// Runs `all` with these commands in a directory of its own; returns what they wrote and whether it
/// succeeded.
fn all(event: &str, commands: &[&str]) -> (String, bool) {
    let directory = TempDir::new().unwrap();
    let mut command = hook("all", event, &[]);
    let succeeded = succeeds(command.args(commands).current_dir(directory.path()));
    (fs::read_to_string(directory.path().join("log")).unwrap_or_default(), succeeded)
}

#[test]
fn all_takes_in_order_and_lets_go_in_reverse() {
    let commands = ["printf 1 >>log", "printf '%s' \"$LANELECT_EVENT\" >>log", "printf 3 >>log"];
    for (event, leads) in EVENTS {
        let expected = if leads { format!("1{event}3") } else { format!("3{event}1") };
        assert_eq!(all(event, &commands), (expected, true));
    }
}

#[test]
fn all_stops_taking_at_a_failure_but_lets_go_of_everything() {
    let commands = ["printf 1 >>log", "printf 2 >>log; exit 4", "printf 3 >>log"];
    for (event, leads) in EVENTS {
        let expected = if leads { "12" } else { "321" };
        assert_eq!(all(event, &commands), (expected.to_string(), false));
    }
}

#[test]
fn all_finds_the_hooks_beside_it() {
    // Each says how it is used, and would do so only if it was found.
    for name in ["all", "floating-address", "webhook", "aws-address", "azure-route", "gcp-route"] {
        let (said, succeeded) = all("elected", &[&format!("{name} 2>log")]);
        assert_eq!((said.contains(&format!("usage: {name} ")), succeeded), (true, false), "{said}");
    }
}
