//! Where hosts boot, and whether this machine can boot any.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::unistd::geteuid;

/// What PID 1 of a host is.
pub(crate) const SYSTEM_MANAGER: &str = "/lib/systemd/systemd";

/// What turns a network namespace into a host.
pub(crate) const BOOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/systemd/hosts/boot.sh");

/// Where everything of a site is: a file system of its own, below which nothing survives it.
pub(crate) const SITE: &str = "/run/site";

/// A directory that is the same on all hosts.
pub(crate) const SHARED: &str = "/run/site/shared";

/// All control groups, as the site sees them.
pub(crate) const CGROUPS: &str = "/run/cgroups";

/// Makes both, in fresh namespaces.
const PREPARE: &str = "set -eu
    mount -t proc proc /proc
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/netns /run/site/image /run/site/shared /run/cgroups
    mount -t cgroup2 cgroup2 /run/cgroups";

/// Boots a host whose PID 1 is `true`.
const TRIAL: &str = r#"
    cgroup=$(mktemp -d /run/cgroups/lanelect-trial-XXXXXXXX)
    mkdir -p "$cgroup/trial" /run/site/trial/upper /run/site/trial/work /run/site/trial/units /run/site/trial/root
    trap 'rmdir "$cgroup/trial" "$cgroup"' EXIT
    ln -s "$cgroup" /run/site/cgroup
    ip netns add trial
    sh "$0" trial /run/site true"#;

/// Makes [`SITE`] and [`CGROUPS`].
pub(crate) fn prepare() {
    let status = Command::new("sh").args(["-c", PREPARE]).status().unwrap();
    assert!(status.success(), "cannot prepare a site");
}

/// Whether hosts can boot here; the error says why not. Tried once.
pub(crate) fn trial() -> Result<(), String> {
    static RESULT: OnceLock<Result<(), String>> = OnceLock::new();
    RESULT.get_or_init(attempt).clone()
}

fn attempt() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("only root can boot hosts with a systemd".into());
    }
    if !Path::new(SYSTEM_MANAGER).exists() {
        return Err(format!("there is no {SYSTEM_MANAGER}; install systemd"));
    }
    let output = Command::new("unshare")
        .args([
            "--net",
            "--mount",
            "--propagation=private",
            "--pid",
            "--fork",
            "--kill-child",
            "--",
        ])
        .args(["sh", "-c", &format!("{PREPARE}{TRIAL}"), BOOT])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run unshare: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("a host cannot boot: {}", said.trim().replace('\n', "; ")))
}
