//! Isolation: a test's scenario runs in a process of its own, inside fresh namespaces.
//!
//! Outside, [`isolated`] starts the test binary once more under `unshare`, for that one test.
//! Inside, it first proves where it is: an [`Inside`] exists only in a network namespace that is
//! not the one the test was started from, and whatever starts a daemon asks for it.
//!
//! The process namespace ends with the process, and takes daemons and hooks along, however they
//! were started. That process ends when its standard input does, so not even a killed test leaves
//! anything behind. Files live on a private file system that goes the same way.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use std::{any, env, process, thread};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::patience;

/// Names, inside, the network namespace that the test was started from.
const OUTSIDE: &str = "LANELECT_LAN_OUTSIDE";

/// Set: a machine that forbids namespaces fails the tests instead of skipping them.
const REQUIRED: &str = "LANELECT_LAN_REQUIRED";

/// What the inside prints last. Its absence shows that nothing ran, whatever the exit status.
const FINISHED: &str = "lan: the scenario ran to its end";

/// The longest a whole scenario may take, a campaign's own duration aside.
const SCENARIO_LIMIT: Duration = Duration::from_secs(300);

/// Most lines of a panic that are repeated.
const COMPLAINT_MAX: usize = 12;

/// What a scenario asks of the namespaces it runs in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// The longest it may take.
    pub(crate) limit: Duration,
    /// Where the machine's root runs it, it stays root, and is not one in a user namespace that may
    /// do less.
    pub(crate) real_root: bool,
    /// Tries what else it needs of the machine. The error says what is missing.
    pub(crate) trial: fn() -> Result<(), String>,
}

impl Default for Needs {
    /// What a test needs.
    fn default() -> Self {
        let limit = SCENARIO_LIMIT + patience::campaign_duration();
        Needs { limit, real_root: false, trial: || Ok(()) }
    }
}

/// What a scenario needs of the machine, tried once before the first test.
const TRIAL: &str =
    "mount -t tmpfs tmpfs /run && ip link add trial0 type veth peer name trial1 && ip netns list";

/// The first process of the namespace: it reaps orphans, as hooks of killed daemons become, and
/// ends when the scenario does. Without it they would stay around as zombies, which count as
/// running.
const INIT: &str = r#"exec 3<&0; "$@" <&3 3<&- & exec 3<&-; wait $!"#;

/// The proof that this process is in a network namespace of its own.
#[derive(Debug)]
pub(crate) struct Inside {
    outside: String,
}

impl Inside {
    /// Checks where this process is, from its environment and its interfaces. The error says what
    /// is wrong.
    pub(crate) fn verify() -> Result<Inside, String> {
        let inside = Self::judge(env::var(OUTSIDE).ok(), &network_namespace()?)?;
        let up = interfaces_up()?;
        match up.iter().find(|name| *name != "lo") {
            Some(name) => Err(format!("the interface {name} is up; a fresh namespace has none")),
            None => Ok(inside),
        }
    }

    /// Checks that the calling thread is still away from the namespace outside.
    pub(crate) fn verify_thread(&self) -> Result<(), String> {
        Self::judge(Some(self.outside.clone()), &network_namespace()?).map(drop)
    }

    fn judge(outside: Option<String>, here: &str) -> Result<Inside, String> {
        match outside {
            None => Err(format!("{OUTSIDE} is not set: not started by the harness")),
            Some(outside) if outside == here => {
                Err(format!("{here} is the network namespace that the test was started from"))
            }
            Some(outside) => Ok(Inside { outside }),
        }
    }
}

/// Runs `body` inside; called from a `#[test]`, whose own closure `body` is or is called by.
///
/// Panics where it fails, after printing its output. Where the machine forbids namespaces, says so
/// on stderr and returns.
pub(crate) fn isolated(test: &str, body: impl FnOnce(Inside)) {
    isolated_with(Needs::default(), test, body);
}

/// [`isolated`], in namespaces that serve these needs.
pub(crate) fn isolated_with(needs: Needs, test: &str, body: impl FnOnce(Inside)) {
    if env::var_os(OUTSIDE).is_some() {
        end_with_stdin();
        body(Inside::verify().expect("refusing to run outside"));
        println!("{FINISHED}");
        return;
    }
    match ways_in(needs).as_ref().map_err(Clone::clone).and_then(|_| (needs.trial)()) {
        Err(reason) if env::var_os(REQUIRED).is_some() => panic!("cannot run: {reason}"),
        Err(reason) => skip(test, &format!("{reason}; run as root")),
        Ok(()) => run_with(needs, test),
    }
}

/// Says why a test is skipped.
pub(crate) fn skip(test: &str, reason: &str) {
    // Not `eprintln`, which libtest swallows for a test that passes.
    let _ = writeln!(io::stderr(), "skipped: {test}: {reason}");
}

/// Runs the test named `test` in fresh namespaces below the current ones, and panics where it
/// fails or does not run.
pub(crate) fn run_isolated(test: &str) {
    run_with(Needs::default(), test);
}

fn run_with(needs: Needs, test: &str) {
    let mut output = tempfile::tempfile().unwrap();
    let status = spawn_inside(needs, test, &output);
    output.rewind().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    println!("{text}");
    assert!(status.success(), "{test} failed inside: {status}{}", complaint(&text));
    assert!(text.contains(FINISHED), "{test} did not run inside");
}

/// The first panic in the output of a test, which stands far above its end: so it is repeated
/// there.
fn complaint(output: &str) -> String {
    let Some((_, rest)) = output.split_once("panicked at ") else { return String::new() };
    let is_message =
        |line: &&str| !line.starts_with("stack backtrace:") && !line.starts_with("note:");
    let lines = rest.lines().take_while(is_message).take(COMPLAINT_MAX);
    lines.fold(String::from("\nit panicked at"), |text, line| format!("{text} {line}\n"))
}

/// The name libtest knows the test by that `closure` was written in.
pub(crate) fn test_name<F>(_closure: &F) -> &'static str {
    let path = any::type_name::<F>();
    let path = path.split_once("::").map_or(path, |(_crate, rest)| rest);
    path.strip_suffix("::{{closure}}").unwrap_or(path)
}

fn spawn_inside(needs: Needs, test: &str, output: &File) -> ExitStatus {
    let mut child = unshare(ways_in(needs).as_ref().unwrap())
        .args(["/bin/sh", "-c", INIT, "init"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(OUTSIDE, network_namespace().unwrap())
        .stdin(Stdio::piped())
        .stdout(output.try_clone().unwrap())
        .stderr(output.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut status = None;
    let limit = needs.limit;
    patience::holds_within(limit, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap_or_else(|| {
        println!("{test} took longer than {limit:?}; stopping it");
        // The end of its input is what it stops at.
        drop(child.stdin.take());
        child.wait().unwrap()
    })
}

/// The `unshare` options that work here, or why none does.
fn ways_in(needs: Needs) -> &'static Result<Vec<&'static str>, String> {
    static AS_ROOT: OnceLock<Result<Vec<&'static str>, String>> = OnceLock::new();
    static AS_ANYONE: OnceLock<Result<Vec<&'static str>, String>> = OnceLock::new();
    let common = ["--net", "--mount", "--propagation=private", "--pid", "--fork", "--mount-proc"];
    let is_root = nix::unistd::geteuid().is_root();
    if needs.real_root && is_root {
        return AS_ROOT.get_or_init(|| attempt(&common));
    }
    AS_ANYONE.get_or_init(|| {
        let unprivileged = [&["--user", "--map-root-user"], &common[..]].concat();
        attempt(&unprivileged)
            .or_else(|reason| if is_root { attempt(&common) } else { Err(reason) })
    })
}

fn attempt(options: &[&'static str]) -> Result<Vec<&'static str>, String> {
    let options = options.to_vec();
    let output = unshare(&options)
        .args(["sh", "-c", TRIAL])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run unshare: {e}"))?;
    if output.status.success() {
        return Ok(options);
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
}

fn unshare(options: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(options).args(["--kill-child", "--"]);
    command
}

/// Ends this process, and so everything in its process namespace, once stdin is closed.
fn end_with_stdin() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(1);
    });
}

/// The calling thread's network namespace.
fn network_namespace() -> Result<String, String> {
    let path = "/proc/thread-self/ns/net";
    let link = fs::read_link(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    Ok(link.to_string_lossy().into_owned())
}

fn interfaces_up() -> Result<Vec<String>, String> {
    let all = getifaddrs().map_err(|e| format!("cannot list the interfaces: {e}"))?;
    let up = all.filter(|a| a.flags.contains(InterfaceFlags::IFF_UP));
    Ok(up.map(|a| a.interface_name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_namespace_than_the_one_outside_counts_as_inside() {
        assert!(Inside::judge(None, "net:[2]").is_err());
        assert!(Inside::judge(Some("net:[2]".into()), "net:[2]").is_err());
        assert!(Inside::judge(Some("net:[1]".into()), "net:[2]").is_ok());
    }

    #[test]
    fn the_complaint_is_the_first_panic_without_its_backtrace() {
        let output = "seed\nthread 'a' panicked at a.rs:1:\nleft\nright\nstack backtrace:\n 1\n";
        assert_eq!(complaint(output), "\nit panicked at a.rs:1:\n left\n right\n");
        assert_eq!(complaint("took too long"), "");
    }

    #[test]
    fn nothing_starts_on_the_machine_itself() {
        assert_eq!(env::var_os(OUTSIDE), None, "this test belongs outside");
        assert!(Inside::verify().is_err());
        let pretending = Inside { outside: network_namespace().unwrap() };
        assert!(pretending.verify_thread().is_err());
    }

    #[test]
    fn a_closure_tells_the_test_it_was_written_in() {
        let closure = || ();
        let here = "harness::inside::tests::a_closure_tells_the_test_it_was_written_in";
        assert_eq!(test_name(&closure), here);
    }
}
