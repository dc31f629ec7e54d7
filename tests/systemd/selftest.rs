//! The hosts themselves.

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
