//! Daemons of which a thread waits in the kernel for their disk, and which SIGKILL does not end.

use std::fs;
use std::process::Child;

use nix::unistd::Pid;

use crate::harness::stuck::Stuck;
use crate::harness::{Host, Lan, scenario, wait_until};

/// Makes the first host a leader that hangs in a save, and whose hook holds what the leader holds;
/// returns the client that waits for the save.
fn start_leader_that_saves(lan: &Lan, hosts: [&Host; 2], stuck: &Stuck) -> Child {
    let [h1, _] = hosts;
    // So patient a follower does not take over by itself while the test looks.
    lan.start_led_by_first(&hosts, "leader_alive_threshold = \"50s\"");
    h1.slow_hook_on("demoted", "300");
    h1.hang_disk();
    let client = h1.client(&["maintenance", "on"]).spawn().unwrap();
    wait_until("it saves", || stuck.is_waited_for());
    wait_until("its hook sleeps", || h1.processes().into_iter().any(sleeps));
    assert_eq!(h1.hooks().last().unwrap(), "demoted maintenance");
    h1.slow_hook_on("demoted", "0");
    client
}

/// Whether it is what a slow hook waits for, and so has been told how long.
fn sleeps(process: Pid) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.starts_with(b"sleep\0")
}

/// Lets go of all that waits for the disk, until the daemon has ended and `is_over`.
fn let_end(h1: &Host, stuck: &Stuck, mut client: Child, mut is_over: impl FnMut() -> bool) {
    wait_until("all has ended", || {
        stuck.release();
        h1.has_ended() && is_over()
    });
    assert_eq!(h1.exit_status(), None);
    client.wait().unwrap();
}

#[test]
fn daemon_that_cannot_end_is_cleaned_up_after_though_the_disk_hangs() {
    scenario(|lan, [h1, h2]| {
        let Some(stuck) = h1.make_stuck_file() else { return };
        let client = start_leader_that_saves(lan, [h1, h2], &stuck);
        let mut refused = h1.begin_post_stop();
        wait_until("it refuses", || refused.log().contains("the daemon still runs"));
        assert_eq!(h1.hooks().last().unwrap(), "demoted maintenance");

        h1.crash_without_end();
        let mut post_stop = h1.begin_post_stop();
        wait_until("the other takes over", || h2.hooks().last().unwrap() == "elected handover");
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
        let_end(h1, &stuck, client, || {
            refused.has_ended().is_some() && post_stop.has_ended().is_some()
        });
        assert_eq!(refused.has_ended().unwrap().code(), Some(1));
        assert_eq!(post_stop.has_ended().unwrap().code(), Some(0), "{}", post_stop.log());
    });
}

/// Kills a daemon that cannot end, and cleans up after it when its lock file says `holder`; without
/// one, the daemon's number.
fn clean_up_beside_the_lock(lan: &Lan, [h1, h2]: [&Host; 2], holder: Option<&str>) {
    let Some(stuck) = h1.make_stuck_file() else { return };
    let client = start_leader_that_saves(lan, [h1, h2], &stuck);
    h1.crash_without_end();
    h1.revive_disk();
    if let Some(holder) = holder {
        fs::write(h1.path("state/default.lock"), holder).unwrap();
    }
    let (status, said) = h1.post_stop();
    assert_eq!(status, Some(0), "{said}");
    let tells_why = said.contains("it was killed, and ends when its disk responds");
    assert_eq!(tells_why, holder.is_none(), "{said}");
    assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
    wait_until("the other takes over", || h2.hooks().last().unwrap() == "elected handover");
    let_end(h1, &stuck, client, || true);
}

#[test]
fn daemon_that_cannot_end_keeps_its_lock_from_nobody_who_cleans_up() {
    scenario(|lan, hosts| clean_up_beside_the_lock(lan, hosts, None));
}

/// On a full disk the file has no number, and on a read-only one that of an earlier daemon.
#[test]
fn daemon_that_cannot_end_and_is_not_named_by_its_lock_is_cleaned_up_after() {
    scenario(|lan, hosts| clean_up_beside_the_lock(lan, hosts, Some("")));
}
