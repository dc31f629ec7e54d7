//! How long it takes until there is a leader again when the leader's daemon is killed, on hosts
//! with a real systemd each and the units as they are shipped.
//!
//! ```text
//! cargo bench --bench systemd
//! LANELECT_BENCH_SAMPLES=5 cargo bench --bench systemd
//! ```
//!
//! Three hosts, all settings their defaults. The time begins before `systemctl kill` is called on
//! the leader, and ends where its hook starts for `demoted`, and where its successor's starts for
//! `elected`; the hooks are two shells that write a line each. What tells the successor so early is
//! `lanelect post-stop`, which systemd runs when the daemon is gone.
//!
//! And how long it takes until another host runs a unit of the leader when it is killed, with the
//! hook `leader-target`. The time begins where systemd notes that the unit has failed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real hosts, in real time")]

#[path = "../programs/bell.rs"]
mod bell;
#[path = "../../tests/lan/harness/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests need more of it")]
mod harness;
#[path = "../../tests/systemd/hosts/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests need more of it")]
mod hosts;
#[path = "../options/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod options;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

use std::fs;
use std::path::Path;
use std::time::Duration;

use bell::Bell;
use harness::patience::now;
use harness::wait_until;
use hosts::{DAEMON, Host, SHARED, Site, scenario};
use nix::time::{ClockId, clock_gettime};
use report::{Samples, Table};

const MEASUREMENTS: [(&str, fn()); 2] =
    [("killed_leader", killed_leader), ("killed_unit", killed_unit)];

/// Runs on the leader, and rings when it has started. It may be killed as often as one likes.
const UNIT: &str = "[Unit]
PartOf=lanelect-leader@lan0.target
StartLimitIntervalSec=0
[Service]
Type=exec
ExecStart=/bin/sleep infinity
ExecStartPost=/bin/sh -c 'echo %H unit 1<> /run/site/shared/bell'
[Install]
WantedBy=lanelect-leader@lan0.target
";

/// The unit's name.
const UNIT_NAME: &str = "service-under-test.service";

fn main() {
    options::run(&MEASUREMENTS);
}

fn killed_leader() {
    scenario(|site, hosts: [_; 3]| {
        let bell = Bell::new(Path::new(SHARED).join("bell"));
        for host in hosts {
            host.install("");
            // Opened for reading too, so that no hook waits for a reader in the end.
            let ring = format!("echo {} $LANELECT_EVENT 1<> {}", host.name, bell.path().display());
            // As it is derived: the tests' is wider.
            let threshold = "leader_alive_threshold = \"875ms\"";
            let hook = format!("{ring}; {}", host.hook());
            host.configure(&format!("{threshold}\nhook = {hook:?}"));
            host.enable();
        }
        let (demoted, elected): (Vec<_>, Vec<_>) =
            (0..options::samples()).map(|_| kill_leader(site, hosts, &bell)).unzip();
        site.check_overlaps();
        print_table(
            "Leader killed, to the start of hooks",
            [("its demoted starts", demoted), ("the next elected", elected)],
        );
    });
}

/// Prints how long it took until each of these.
fn print_table(title: &str, rows: [(&str, Vec<Duration>); 2]) {
    let mut table = Table::new(1, ["ms", "median", "min", "max", "n"]);
    for (name, times) in rows {
        let times = Samples::new(name, times.iter().map(|t| t.as_secs_f64() * 1e3).collect());
        let figures = [times.median(), times.min(), times.max()].map(|ms| format!("{ms:.1}"));
        let count = times.values().len().to_string();
        table.row([name.to_owned()].into_iter().chain(figures).chain([count]));
    }
    println!("{title}\n{table}");
}

/// Kills the leader once: until its own hook starts for `demoted`, and the next one's for
/// `elected`.
fn kill_leader(site: &Site, hosts: [&Host; 3], bell: &Bell) -> (Duration, Duration) {
    wait_until("every daemon is up", || hosts.iter().all(|host| !host.status().is_null()));
    let leader = site.sole_leader();
    bell.silence();
    let killed = now();
    leader.systemctl(&format!("kill --signal=SIGKILL {DAEMON}"));
    let demoted = bell.await_ring(|ring| ring.host == leader.name && ring.event == "demoted");
    let elected = bell.await_successor(&leader.name);
    (demoted.at - killed, elected.at - killed)
}

fn killed_unit() {
    scenario(|site, hosts: [_; 3]| {
        let bell = Bell::new(Path::new(SHARED).join("bell"));
        for host in hosts {
            fs::write(host.file(&format!("/etc/systemd/system/{UNIT_NAME}")), UNIT).unwrap();
            host.systemctl(&format!("enable --quiet {UNIT_NAME}"));
            host.install("");
            let ring = format!("echo {} $LANELECT_EVENT 1<> {}", host.name, bell.path().display());
            let hook = "/usr/share/lanelect/hooks/leader-target";
            let hook = format!("{ring}; {hook} && {}", host.hook());
            // The units are killed in turn, faster than a holdoff ends.
            host.configure(&format!("hook = {hook:?}\nfailure_holdoff = \"1ms\""));
            host.enable();
        }
        let (demoted, started): (Vec<_>, Vec<_>) =
            (0..options::samples()).map(|_| kill_unit(site, &bell)).unzip();
        site.check_overlaps();
        print_table(
            "Unit of the leader killed, from systemd's notice",
            [("its host's demoted starts", demoted), ("the next host's unit runs", started)],
        );
    });
}

/// Kills the leader's unit once: from systemd's notice until the hook starts for `demoted`, and
/// until another host's unit runs.
fn kill_unit(site: &Site, bell: &Bell) -> (Duration, Duration) {
    let leader = site.sole_leader();
    bell.silence();
    let (begun, clock) = (now(), monotonic());
    leader.systemctl(&format!("kill --signal=SIGKILL {UNIT_NAME}"));
    let demoted = bell.await_ring(|ring| ring.host == leader.name && ring.event == "demoted");
    let started = bell.await_ring(|ring| ring.host != leader.name && ring.event == "unit");
    let noticed: u64 =
        leader.show(UNIT_NAME, "ExecMainExitTimestampMonotonic").parse().expect("a time");
    let noticed = begun + (Duration::from_micros(noticed) - clock);
    (demoted.at - noticed, started.at - noticed)
}

/// The clock of systemd's timestamps.
fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().into()
}
