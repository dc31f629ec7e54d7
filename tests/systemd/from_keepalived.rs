//! The way over from keepalived and back, by the very commands of `docs/from-keepalived.md`, with
//! the units of both. `tests/lan` has the other examples, and looks who holds the address.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::host::status_at;
use crate::harness::{inside, wait_until};
use crate::hosts::{Host, scenario};

const PAGE: &str = include_str!("../../docs/from-keepalived.md");
const KEEPALIVED: &str = include_str!("../../examples/keepalived/service/keepalived.conf");
const LANELECT: &str = include_str!("../../examples/keepalived/service/web.toml");

/// What the hosts take from the machine.
const PROGRAMS: [&str; 3] = ["/usr/sbin/keepalived", "/usr/bin/curl", "/usr/bin/python3"];

/// Wider than the derived one, so that a loaded machine's stalls are no silence.
const PATIENCE: &str = "leader_alive_threshold = \"5s\"\n";

/// A web server: the proxy of each host, or the service of the leader.
fn unit(port: u16) -> String {
    format!("[Service]\nExecStart=/usr/bin/python3 -m http.server --bind 127.0.0.1 {port}\n")
}

/// The commands below a heading of the page, as root runs them.
fn commands(heading: &str) -> Vec<String> {
    let (_, text) = PAGE.split_once(&format!("\n{heading}\n")).unwrap();
    let section = text.split("\n##").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(|line| line.replace("sudo ", "")).collect()
}

/// The file with `#` before the keys that wait for the change.
fn without_hook() -> String {
    let mut is_later = false;
    let mut text = String::from(PATIENCE);
    for line in LANELECT.lines() {
        let begins = ["hook = ", "check_leader = "].iter().any(|key| line.starts_with(key));
        is_later = begins || is_later && line.starts_with(' ');
        text += &format!("{}{line}\n", if is_later { "#" } else { "" });
    }
    text
}

fn prepare(host: &Host, name: &str, address: &str) {
    host.run(&format!(
        "ip link set lan0 down && ip link set lan0 name eth0 && ip link set eth0 up &&
         ip address add {address}/24 dev eth0 && hostname {name} && systemd-sysusers &&
         mkdir -p /etc/keepalived /etc/lanelect &&
         echo 'DAEMON_ARGS=\"--vrrp --config-id {name}\"' > /etc/default/keepalived"
    ));
    let write = |file: &str, text: &str| fs::write(host.file(file), text).unwrap();
    write("/etc/keepalived/keepalived.conf", KEEPALIVED);
    write("/etc/lanelect/web.toml", &without_hook());
    write("/etc/lanelect/web.key", &"1".repeat(64));
    host.run("chmod 600 /etc/lanelect/web.key && chown lanelect: /etc/lanelect/web.key");
    write("/etc/systemd/system/proxy.service", &unit(8080));
    let service = format!("[Unit]\nPartOf=lanelect-leader@web.target\n{}", unit(9090));
    write("/etc/systemd/system/report.service", &service);
    host.run("systemctl daemon-reload && systemctl start proxy.service");
    host.run("systemctl add-wants lanelect-leader@web.target report.service");
    wait_until("the proxy answers", || {
        host.output(&["curl", "--silent", "http://127.0.0.1:8080/"]).status.success()
    });
}

fn status(host: &Host) -> Value {
    status_at(host.file("/run/lanelect/web.sock"))
}

/// Whether the host has the address, and runs the service.
fn holds(host: &Host) -> bool {
    let has_address = !host.run("ip address show to 10.0.0.100").is_empty();
    has_address && host.show("report.service", "ActiveState") == "active"
}

#[test]
fn commands_of_the_page_bring_a_service_over_and_back() {
    if let Some(missing) = PROGRAMS.iter().find(|program| !Path::new(program).exists()) {
        let reason = format!("there is no {missing}");
        return inside::skip(inside::test_name(&|| ()), &reason);
    }
    let change = commands("## The change");
    let [check, start, show, doctor, hand_over, pause, reload, stop, swap, ready, disable, resume] =
        &change[..]
    else {
        panic!("the steps have changed: {change:#?}")
    };
    scenario(|_, hosts: [_; 2]| {
        let [master, backup] = hosts;
        prepare(master, "web0", "10.0.0.10");
        prepare(backup, "web1", "10.0.0.11");
        hosts.iter().for_each(|host| host.systemctl("enable --quiet --now keepalived"));
        wait_until("keepalived's master holds", || holds(master) && !holds(backup));

        for host in hosts {
            host.run(check);
            host.run(start);
        }
        let leads = |host: &Host| status(host)["role"] == "leader";
        wait_until("one leads", || leads(master) != leads(backup));
        hosts.into_iter().find(|host| leads(host)).unwrap().run(hand_over);
        master.run(show);
        // It has something to say of a host without a hook.
        master.output(&["sh", "-c", doctor]);
        assert!(holds(master) && !holds(backup));
        hosts.iter().for_each(|host| drop(host.run(pause)));
        for host in hosts {
            let text = format!("{PATIENCE}{LANELECT}");
            fs::write(host.file("/etc/lanelect/web.toml"), text).unwrap();
            host.run(reload);
        }
        backup.run(stop);
        assert!(holds(master) && !holds(backup));
        master.run(swap);
        wait_until("lanelect is ready", || master.output(&["sh", "-c", ready]).status.success());
        assert!(holds(master) && !holds(backup));
        master.run(disable);
        backup.run(resume);
        for host in hosts {
            assert_eq!(host.show("keepalived.service", "ActiveState"), "inactive");
            assert_eq!(host.show("keepalived.service", "UnitFileState"), "disabled");
        }
        // Its unit fails, so that it moves at once.
        master.systemctl("kill --signal=KILL report.service");
        wait_until("the backup takes over", || holds(backup) && !holds(master));

        let back = commands("### The way back");
        let [stop_follower, swap_back, rest @ ..] = &back[..] else { panic!("{back:#?}") };
        master.run(stop_follower);
        backup.run(swap_back);
        wait_until("keepalived has it again", || holds(backup));
        master.systemctl("start keepalived");
        hosts.iter().for_each(|host| rest.iter().for_each(|line| drop(host.run(line))));
        assert!(holds(backup) && !holds(master));
    });
}
