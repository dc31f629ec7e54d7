//! The hosts themselves.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{inside, wait_until};
use crate::hosts::cgroup::Cgroup;
use crate::hosts::trial::{CGROUPS, SITE};
use crate::hosts::{Host, scenario};

#[test]
fn hosts_have_a_system_manager_and_files_of_their_own() {
    scenario(|_, [h1, h2]| {
        for host in [h1, h2] {
            assert_eq!(host.run("hostname").trim(), host.name);
            assert_eq!(host.run("cat /proc/1/comm"), "systemd\n");
            assert_eq!(host.run("systemctl --failed --quiet --plain"), "");
            assert_eq!(host.run("findmnt -no OPTIONS /proc/sys | cut -d, -f1"), "ro\n");
        }
        h1.run("echo mine > /etc/mark");
        assert!(!h2.file("/etc/mark").exists());
    });
}

#[test]
fn files_survive_a_shutdown_and_a_loss_of_power() {
    scenario(|_, [h1]| {
        for end in [Host::shut_down, Host::cut_power] {
            h1.run("date >> /etc/mark; touch /run/mark");
            end(h1);
            h1.power_on();
            h1.wait_until_up();
            assert!(h1.file("/etc/mark").exists() && !h1.file("/run/mark").exists());
        }
        assert_eq!(h1.run("wc -l < /etc/mark"), "2\n");
    });
}

#[test]
fn control_groups_of_a_killed_test_are_removed() {
    scenario(|_, [h1]| {
        let root = Path::new(CGROUPS);
        let abandoned = root.join("lanelect-hosts-abandoned");
        fs::create_dir_all(abandoned.join("h1/system.slice")).unwrap();
        drop(Cgroup::new(root));
        assert!(!abandoned.exists());
        // Those of tests that go on are left alone.
        assert_eq!(h1.run("echo lives"), "lives\n");
    });
}

/// Names the file into which a test that is to be killed writes its control group's name.
const DOOMED: &str = "LANELECT_TEST_DOOMED";

#[test]
fn a_killed_test_leaves_no_process_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("cgroup");
    let mut doomed = Command::new(env::current_exe().unwrap())
        .args(["--exact", "selftest::doomed"])
        .env(DOOMED, &mark)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (mut cgroup, mut ended) = (String::new(), None);
    wait_until("its hosts are up", || {
        ended = doomed.try_wait().unwrap();
        cgroup = fs::read_to_string(&mark).unwrap_or_default();
        ended.is_some() || !cgroup.is_empty()
    });
    if let Some(status) = ended {
        assert!(status.success(), "it did not wait to be killed");
        let reason = "so was the test that was to be killed";
        return inside::skip(inside::test_name(&|| ()), reason);
    }
    assert_ne!(processes_in(&cgroup), 0);
    doomed.kill().unwrap();
    doomed.wait().unwrap();
    wait_until("nothing is left of its hosts", || processes_in(&cgroup) == 0);
}

/// Started, and killed, by the test above; by itself it does nothing.
#[test]
fn doomed() {
    let Some(mark) = env::var_os(DOOMED) else { return };
    scenario(|_, [_h1]| {
        let own = fs::canonicalize(Path::new(SITE).join("cgroup")).unwrap();
        fs::write(mark, own.file_name().unwrap().as_encoded_bytes()).unwrap();
        wait_until("it is killed", || false);
    });
}

/// How many processes of this machine are in a control group of that name, or below it.
fn processes_in(cgroup: &str) -> usize {
    let cgroups = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("cgroup"));
    cgroups.filter(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(cgroup))).count()
}
