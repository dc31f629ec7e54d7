//! `lanelect doctor` on hosts whose daemon is a unit.

use crate::harness::wait_until;
use crate::hosts::{DAEMON, Host, scenario};

/// The doctor's lines, each with single blanks, and its exit status.
fn doctor(host: &Host) -> (Vec<String>, Option<i32>) {
    let output = host.output(&["lanelect", "doctor", "--group", "lan0"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    (text.lines().map(squeezed).collect(), output.status.code())
}

#[track_caller]
fn expect(host: &Host, line: &str) -> Option<i32> {
    let mut status = None;
    wait_until(&format!("the doctor says: {line}"), || {
        let (lines, code) = doctor(host);
        status = code;
        println!("{lines:#?}");
        lines.iter().any(|said| said.starts_with(line))
    });
    status
}

#[test]
fn units_are_looked_at_also_when_the_daemon_does_not_run() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.enable();
        site.wait_for_leader(h1);
        expect(h1, "ok unit lanelect@lan0 is active");
        expect(h1, "ok watchdog systemd ends a daemon that hangs for 30s");
        expect(h1, "ok disk a sync in /var/lib/lanelect took");
        h1.configure("");
        let reload = "run: systemctl reload lanelect@lan0";
        let line = "warn config the file was changed after the daemon had read it";
        expect(h1, &format!("{line}; {reload}"));

        h1.slow_hook_on("demoted", "8");
        h1.systemctl(&format!("stop --no-block {DAEMON}"));
        expect(h1, "warn unit lanelect@lan0 is stopping");
        h1.systemctl(&format!("stop {DAEMON}"));
        let stopped = "fail unit lanelect@lan0 is not started; run: systemctl start lanelect@lan0";
        assert_eq!(expect(h1, stopped), Some(3));
        // The unit alone sets a hook_socket.
        h1.output(&["chmod", "o+w", "/etc/lanelect/lan0.toml"]);
        let exposed = "fail config the daemon would refuse to start: cannot use the config file";
        assert_eq!(expect(h1, exposed), Some(3));
        h1.output(&["chmod", "o-w", "/etc/lanelect/lan0.toml"]);
        h1.configure("colour = 1");
        let _ = h1.output(&["systemctl", "start", "lanelect@lan0"]);
        let failed = "fail unit lanelect@lan0 is failed (exit-code, exit status 2): ";
        let error = "/etc/lanelect/lan0.toml:1: colour: unknown key";
        assert_eq!(expect(h1, &format!("{failed}{error}")), Some(3));
        expect(h1, "fail config the daemon would refuse to start: /etc/lanelect/lan0.toml:");
        h1.configure("");
        h1.systemctl(&format!("start {DAEMON}"));
        site.wait_for_leader(h1);
    });
}
