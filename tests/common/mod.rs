//! What several integration tests share.

use std::env;
use std::process::Command;

/// Set for the process in which a test runs inside its namespace.
const INSIDE: &str = "LANELECT_TEST_NETNS";

/// Runs `body` inside what `unshare` with these arguments makes: the current test once more, by its
/// name. Skips it with a reason where the machine forbids network namespaces.
pub fn run_inside(test: &str, unshare: &[&str], body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let probe = Command::new("unshare").args(["-Urn", "ip", "link", "set", "lo", "up"]).output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            return eprintln!("skipped: no network namespaces here: {reason}");
        }
        Err(error) => return eprintln!("skipped: cannot run unshare: {error}"),
    }
    let output = Command::new("unshare")
        .args(unshare)
        .arg(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "{test} is not this test's name: {said}");
    print!("{said}");
}
