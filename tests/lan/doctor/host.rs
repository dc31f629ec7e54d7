//! Faults of the config file, the hook and the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use super::{assert_found, assert_found_with, doctor, lines};
use crate::harness::patience::LIMIT;
use crate::harness::{Host, Lan, scenario, wait_until};

/// The hook that moves addresses, as it is shipped.
const FLOATING_ADDRESS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hooks/floating-address");

/// In seconds.
const DAY: i64 = 24 * 3600;

/// Starts both hosts; the second one with these lines.
fn start(lan: &Lan, [h1, h2]: [&Host; 2], lines: &str) {
    h1.start("");
    lan.sole_leader();
    h2.start(lines);
    lan.wait_for_leader(h1);
}

#[test]
fn daemon_that_does_not_run() {
    scenario(|_, [h1]| {
        h1.configure("");
        let config = h1.path("config.toml");
        let output = doctor(h1, &["--config", &config], &[]);
        assert_eq!(output.status.code(), Some(3));
        assert_found(h1, "The daemon does not run");
        assert!(lines(&output).contains(&"ok interface eth0 is up".to_owned()));
    });
}

#[test]
fn config_that_is_broken_or_not_in_force() {
    scenario(|lan, [h1, h2]| {
        start(lan, [h1, h2], "");
        h2.configure("");
        assert_found(h2, "The config file was changed and not reloaded");
        h2.write_config("colour = 1");
        assert_found(h2, "The config file is broken");
        h2.reload();
        assert_found(h2, "A reload was refused");
        h2.configure("multicast = \"239.255.76.69:7670\"");
        h2.reload();
        assert_found(h2, "A change needs a restart");
        h2.configure("hook_socket = \"/no/such.sock\"");
        fs::set_permissions(h2.path("config.toml"), fs::Permissions::from_mode(0o666)).unwrap();
        assert_found(h2, "Others can write the config file, and there is a hook-runner");
        fs::set_permissions(h2.path("config.toml"), fs::Permissions::from_mode(0o644)).unwrap();
        h2.start("");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn config_of_a_daemon_whose_wall_clock_is_set_after_its_start() {
    scenario(|lan, [h1]| {
        h1.fake_wall_clock();
        let is_changed = || {
            let found = lines(&doctor(h1, &[], &[]));
            found.iter().any(|line| line.contains("the file was changed after the daemon"))
        };
        for offset in [DAY, -DAY] {
            h1.set_wall_clock(offset);
            h1.start("");
            lan.sole_leader();
            h1.set_wall_clock(0);
            assert!(!is_changed(), "it was {offset} s off");
            h1.configure("priority = 7");
            assert!(is_changed(), "it was {offset} s off");
            h1.reload();
            wait_until("it is in force", || !is_changed());
        }
    });
}

#[test]
fn hook_that_cannot_run_or_fails() {
    scenario(|lan, [h1, h2]| {
        let hook = h2.path("hook");
        fs::write(&hook, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
        start(lan, [h1, h2], &format!("hook = {hook:?}"));
        assert_found(h2, "The hook cannot be executed");
        h2.fail_hook_on("started");
        h2.start("");
        assert_found(h2, "The hook fails");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn hook_runner_that_does_not_run() {
    scenario(|lan, [h1, h2]| {
        let socket = h2.path("hook.sock");
        start(lan, [h1, h2], &format!("hook_socket = {socket:?}"));
        assert_eq!(h2.command(&["maintenance", "on"]), Some(0), "it hides nothing");
        assert_found(h2, "The hook-runner does not run");
        assert_found(h2, "The hook could not run for `started`");
        assert_eq!(h2.command(&["maintenance", "off"]), Some(0));
        h2.start("");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn check_that_fails() {
    scenario(|lan, [h1, h2]| {
        start(lan, [h1, h2], "check = \"exit 7\"");
        assert_found(h2, "The health check fails");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn address_on_a_host_that_does_not_lead() {
    scenario(|lan, [h1, h2]| {
        let hook = format!("{FLOATING_ADDRESS} eth0 10.77.0.100/24");
        start(lan, [h1, h2], &format!("hook = {hook:?}"));
        wait_until("the hook has run", || h2.status()["hook"]["last_exit"] == 0);
        h2.add_address("10.77.0.100/24");
        assert_found(h2, "A host that does not lead has the address");
        h2.start("");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn disk_that_cannot_be_written() {
    scenario(|lan, [h1, h2]| {
        h2.use_tiny_disk();
        start(lan, [h1, h2], "");
        h2.fill_disk();
        assert_found(h2, "The disk is full");
        h2.free_disk();
        h1.make_disk_read_only();
        assert_found(h1, "The disk is read-only");
        h1.make_disk_writable();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn disk_that_syncs_slowly() {
    scenario(|lan, [h1, h2]| {
        start(lan, [h1, h2], "");
        let library = h2.build_library("slow_sync");
        let slow = [("LD_PRELOAD", library.as_str()), ("SLOW_SYNC_MS", "700")];
        assert_found_with(h2, "The disk is slow", &slow);
    });
}

/// Where nothing answers: a process that looks there waits in the kernel, and no signal ends it.
#[test]
fn disk_that_hangs() {
    scenario(|lan, [h1, h2]| {
        let Some(stuck) = h2.make_stuck_file() else { return };
        start(lan, [h1, h2], "");
        h2.hang_disk();
        let (found, is_found) = mpsc::channel::<()>();
        let stuck = &stuck;
        thread::scope(|scope| {
            // A doctor that hangs too can be ended by nothing else.
            scope.spawn(move || {
                while is_found.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                    stuck.release();
                }
            });
            assert_found(h2, "The disk hangs");
            assert!(stuck.is_waited_for());
            drop(found);
        });
        stuck.release();
        h2.revive_disk();
        lan.wait_for_leader(h1);
    });
}
