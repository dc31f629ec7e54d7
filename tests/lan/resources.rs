//! Daemons to which the kernel gives no more descriptors or memory, or whose log or directory
//! hangs.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::harness::{BEST_SUCCEEDS, Host, Lan, scenario, wait_until};

/// Processor time that a daemon which does not spin stays far below, in clock ticks, while its host
/// sends a few dozen datagrams.
const MANY_TICKS: u64 = 50;

/// Where groups are looked up.
const GROUPS: &str = "/etc/group";

/// Waits until the host has sent so many more datagrams.
fn sends(lan: &Lan, host: &Host, count: u64) {
    let before = lan.datagrams_from(host);
    wait_until("it sends on", || lan.datagrams_from(host) >= before + count);
}

#[test]
fn a_leader_without_descriptors_leads_on() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.exhaust_descriptors();
        let ticks = h1.processor_ticks();
        // A client waits in the listener's queue, and a look at the interfaces fails.
        let client = h1.connect();
        h1.stir_interfaces();
        wait_until("it says what is missing", || {
            let log = h1.log();
            log.contains("cannot accept connections") && log.contains("cannot read the network")
        });
        sends(lan, h1, 30);
        assert!(h2.follows(h1));
        assert!(h1.processor_ticks() - ticks < MANY_TICKS, "it spins");
        let log = h1.log();
        for what in ["cannot accept connections", "cannot read the network interfaces"] {
            assert_eq!(log.matches(what).count(), 1, "{log}");
        }

        h1.replenish_descriptors();
        drop(client);
        lan.wait_for_leader(h1);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
        wait_until("it sees its interfaces again", || {
            h1.log().contains("the network interfaces can be read again")
        });
    });
}

#[test]
fn a_host_without_descriptors_for_its_hook_leaves_leadership_to_another() {
    scenario(|lan, [h1, h2, h3]| {
        let lines = format!("failure_holdoff = \"1s\"\n{BEST_SUCCEEDS}");
        lan.start_led_by_first(&[h1, h2, h3], &lines);
        h2.exhaust_descriptors();
        h1.crash();
        wait_until("the third leads", || h3.leads() && h3.hooks_match_role());
        assert!(h2.log().contains("did not run: cannot reach the daemon's own"), "{}", h2.log());
        assert_eq!(h2.hooks(), ["started startup"], "hooks that did not begin need not let go");
        h2.replenish_descriptors();
        wait_until("it stands again", || h2.ineligible_reason().is_empty());
        lan.wait_for_leader(h3);
    });
}

#[test]
fn a_demote_hook_that_finds_no_descriptors_runs_as_soon_as_there_are_some() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.exhaust_descriptors();
        // One that stands above it in every way asks for the leadership.
        h2.start("priority = 200\npreempt = true");
        wait_until("its hook cannot start", || {
            h1.log().contains("hook for demoted (preempted, term 1) did not run")
        });
        sends(lan, h1, 20);
        assert!(h2.follows(h1), "it holds on until its hooks have let go");
        h1.replenish_descriptors();
        lan.wait_for_leader(h2);
        let journal = lan.journal();
        let demoted = journal.position("h1 end demoted preempted");
        assert!(demoted < journal.position("h2 start elected"), "h2 did not wait for h1");
    });
}

#[test]
fn a_leader_that_runs_out_of_memory_is_cleaned_up_after_and_may_come_back() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.exhaust_memory();
        // Short enough to be read, and more than it can take in.
        h1.configure(&format!("check = \"true {}\"", "x".repeat(50_000)));
        h1.reload();
        assert_eq!(h1.exit_status(), None, "a signal ends it: {}", h1.log());
        lan.journal().note("h1", "crash");
        assert_eq!(h1.post_stop().0, Some(0));
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
        wait_until("the other leads", || h2.leads() && h2.hooks_match_role());
        let journal = lan.journal();
        let demoted = journal.position("h1 end demoted crashed");
        assert!(demoted < journal.position("h2 start elected"), "h2 did not wait for h1");
        assert!(h1.log().contains("memory allocation"), "{}", h1.log());
        h1.restart();
        lan.wait_for_leader(h2);
    });
}

#[test]
fn leader_whose_log_nobody_reads_leads_on_and_stops_in_order() {
    scenario(|lan, [h1, h2]| {
        let log = h1.stop_reading_log();
        lan.start_led_by_first(&[h1, h2], "");
        sends(lan, h1, 30);
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        assert_eq!(h1.stop(), Some(0));
        assert!(!log.read().contains("leads"));
    });
}

#[test]
fn leader_reloads_beside_a_directory_that_hangs() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "socket_group = \"root\"");
        let directory = hang_directory(h1.path("groups").into());
        h1.configure("socket_group = \"root\"\npriority = 7");
        h1.reload();
        // Longer than its silence would be borne.
        sends(lan, h1, 60);
        let priority = || h2.member(h1)["priority"].as_u64();
        assert_eq!(priority(), Some(100), "it has looked nothing up yet");
        drop(directory);
        h1.reload();
        wait_until("it has reloaded", || priority() == Some(7));
        assert!(h2.follows(h1));
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

/// Until this is dropped, whoever looks up a group waits.
struct HungDirectory(PathBuf);

fn hang_directory(pipe: PathBuf) -> HungDirectory {
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let bind = Command::new("mount").arg("--bind").arg(&pipe).arg(GROUPS).status().unwrap();
    assert!(bind.success());
    HungDirectory(pipe)
}

impl Drop for HungDirectory {
    fn drop(&mut self) {
        // Those who wait keep it busy.
        let _ = Command::new("umount").args(["--lazy", GROUPS]).status();
        // They get to read nothing.
        let _ = OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&self.0);
    }
}
