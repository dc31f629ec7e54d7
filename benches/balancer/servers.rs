//! The group behind HAProxy, and HAProxy.

use std::cell::RefCell;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Ending;
use crate::clients::Clients;
use crate::harness::patience::{now, pass, wait_for};
use crate::harness::{Host, Lan};

const SERVER: &str = env!("CARGO_BIN_EXE_lanelect-http");
const CONFIG: &str = include_str!("../../examples/haproxy/haproxy.cfg");

/// How long the group must be left alone before a failover.
const CALM: Duration = Duration::from_millis(500);

/// Whether the programs are there that it needs.
pub(crate) fn trial() -> Result<(), String> {
    for (program, version) in [("haproxy", "-v"), ("ethtool", "--version")] {
        let tried = Command::new(program).arg(version).stdout(Stdio::null()).status();
        tried.map_err(|error| format!("{program}: {error}; `apt-get install {program}`"))?;
    }
    Ok(())
}

/// Everything that runs, but for the daemons. Dropping it ends them.
pub(crate) struct Servers<'a> {
    hosts: [&'a Host; 3],
    processes: RefCell<Vec<Child>>,
}

impl<'a> Servers<'a> {
    /// Starts a daemon with these settings and a web server on each of the hosts, and HAProxy.
    pub(crate) fn start(
        lan: &Lan,
        hosts: [&'a Host; 3],
        balancer: &Host,
        lines: &str,
    ) -> Servers<'a> {
        let servers = Servers { hosts, processes: RefCell::default() };
        hosts.into_iter().chain([balancer]).for_each(compute_checksums);
        for host in hosts {
            host.write_config(&by_default(&host.config(lines)));
            host.restart();
            let listen = format!("{}:7680", host.address(0));
            let socket = host.path("control.sock");
            servers.spawn(host, SERVER, &["--socket", &socket, "--listen", &listen]);
        }
        lan.sole_leader_of(&hosts);
        let path = balancer.path("haproxy.cfg");
        fs::write(&path, configuration(&hosts)).unwrap();
        servers.spawn(balancer, "haproxy", &["-db", "-f", &path]);
        servers
    }

    fn spawn(&self, host: &Host, program: &str, arguments: &[&str]) {
        let log = File::create(host.path("server.log")).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = host.run(|| command.spawn().unwrap());
        self.processes.borrow_mut().push(child);
    }

    /// The leader, once all follow it and clients reach it.
    pub(crate) fn settled_leader(&self, clients: &Clients) -> &'a Host {
        loop {
            let leader = wait_for("the group has one leader", || self.agreed_leader());
            let from = now();
            pass(CALM + Duration::from_millis(fastrand::u64(..350)));
            let answers = clients.since(from);
            let is_right =
                |leader: &str| answers.iter().all(|it| it.leader.as_deref() == Some(leader));
            if !answers.is_empty() && is_right(&leader.name) && self.agreed_leader().is_some() {
                return leader;
            }
        }
    }

    fn agreed_leader(&self) -> Option<&'a Host> {
        let leader = self.hosts.into_iter().find(|host| host.leads())?;
        let follow = |host: &&Host| host.number == leader.number || host.follows(leader);
        let votes = |host: &Host| {
            let quorum = &host.status()["quorum"];
            quorum.is_null() || quorum["reachable"] == self.hosts.len()
        };
        self.hosts.iter().all(|host| follow(host) && votes(host)).then_some(leader)
    }

    /// Brings the leadership of a host to its end.
    pub(crate) fn end(&self, lan: &Lan, leader: &Host, ending: Ending) {
        match ending {
            Ending::Killed => leader.crash(),
            Ending::CutOff => lan.cut(leader),
            Ending::Stopped => leader.terminate(),
            Ending::Yields => assert_eq!(leader.command(&["yield"]), Some(0)),
        }
    }

    /// Brings the host back.
    pub(crate) fn mend(&self, lan: &Lan, old: &Host, ending: Ending) {
        match ending {
            Ending::Killed => old.restart(),
            Ending::CutOff => lan.heal(),
            Ending::Stopped => {
                assert_eq!(old.exit_status(), Some(0));
                old.restart();
            }
            Ending::Yields => {}
        }
    }
}

impl Drop for Servers<'_> {
    fn drop(&mut self) {
        for child in self.processes.borrow_mut().iter_mut() {
            let _ = kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM);
            let _ = child.wait();
        }
    }
}

/// The kernel would leave those of TCP to hardware, which there is none of.
fn compute_checksums(host: &Host) {
    let mut command = Command::new("ethtool");
    command.args(["-K", "eth0", "tx", "off"]).stdout(Stdio::null());
    assert!(host.run(|| command.status().unwrap()).success());
}

/// Without what the tests set: a user's defaults count.
fn by_default(config: &str) -> String {
    let mut config: toml::Table = config.parse().unwrap();
    let settings = ["heartbeat_interval", "leader_alive_threshold", "membership_sample_interval"];
    for setting in settings {
        config.remove(setting).expect("the tests set it");
    }
    config.to_string()
}

/// The shipped configuration with these servers, which answer clients and checks on one port.
fn configuration(hosts: &[&Host]) -> String {
    let is_server = |line: &&str| line.trim_start().starts_with("server ");
    assert_eq!(CONFIG.lines().filter(is_server).count(), hosts.len());
    let mut text: String =
        CONFIG.lines().filter(|line| !is_server(line)).map(|line| format!("{line}\n")).collect();
    for host in hosts {
        text += &format!("    server {} {}:7680\n", host.name, host.address(0));
    }
    text
}
