//! The hooks for clouds, with stand-ins for the vendors' commands. They were never run against a
//! real cloud, so these tests show what the hooks do and not what a cloud answers.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::programs::{has_ended, is_missing};
use super::waiting::{until, until_within};
use super::{EVENTS, hook, write_script};

/// A hook, and what the stand-in's state is where the hook matters.
struct Vendor {
    hook: &'static str,
    command: &'static str,
    arguments: &'static [&'static str],
    metadata: &'static str,
    /// The resource leads to this host, to another host, or nowhere.
    here: &'static str,
    there: &'static str,
    nowhere: &'static str,
    /// The operation that shows the state, the one that releases, and those that take over from
    /// another host.
    look: &'static str,
    release: &'static str,
    takeover: &'static [&'static str],
}

const AWS: Vendor = Vendor {
    hook: "aws-address",
    command: "aws",
    // Its hardware address is zero.
    arguments: &["lo", "10.0.1.100"],
    metadata: "latest/meta-data/network/interfaces/macs/00:00:00:00:00:00/interface-id eni-1\n\
               latest/meta-data/placement/region eu-north-1\n",
    here: "eni-1 10.0.1.11\neni-2 10.0.1.12\neni-1 10.0.1.100\n",
    there: "eni-1 10.0.1.11\neni-2 10.0.1.12\neni-2 10.0.1.100\n",
    nowhere: "eni-1 10.0.1.11\neni-2 10.0.1.12\n",
    look: "describe-network-interfaces",
    release: "unassign-private-ip-addresses",
    takeover: &["assign-private-ip-addresses"],
};

const AZURE: Vendor = Vendor {
    hook: "azure-route",
    command: "az",
    arguments: &["web-rg", "web-routes", "floating", "10.99.0.1/32"],
    metadata: "metadata/instance/compute/subscriptionId 0b1f1d88\n\
               metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress 10.0.1.11\n",
    here: "floating-2\t10.98.0.0/16\tNone\tNone\tSucceeded\n\
           floating\t10.99.0.1/32\tVirtualAppliance\t10.0.1.11\tSucceeded\n",
    there: "floating-2\t10.98.0.0/16\tNone\tNone\tSucceeded\n\
            floating\t10.99.0.1/32\tVirtualAppliance\t10.0.1.12\tSucceeded\n",
    nowhere: "floating-2\t10.98.0.0/16\tNone\tNone\tSucceeded\n",
    look: "list",
    release: "delete",
    takeover: &["update"],
};

const GOOGLE: Vendor = Vendor {
    hook: "gcp-route",
    command: "gcloud",
    arguments: &["default", "floating", "10.99.0.1/32"],
    metadata: "computeMetadata/v1/project/project-id shop-1\n\
               computeMetadata/v1/instance/zone projects/99/zones/europe-north1-a\n\
               computeMetadata/v1/instance/name web1\n\
               computeMetadata/v1/instance/id 11\n",
    here: "floating-net,10.98.0.0/16,https://compute.example/v1/projects/shop-1/zones/\
           europe-north1-a/instances/web1\n\
           floating-11,10.99.0.1/32,https://compute.example/v1/projects/shop-1/zones/\
           europe-north1-a/instances/web1\n",
    there: "floating-net,10.98.0.0/16,https://compute.example/v1/projects/shop-1/zones/\
            europe-north1-a/instances/web1\n\
            floating-12,10.99.0.1/32,https://compute.example/v1/projects/shop-1/zones/\
            europe-north1-b/instances/web2\n",
    nowhere: "floating-net,10.98.0.0/16,https://compute.example/v1/projects/shop-1/zones/\
              europe-north1-a/instances/web1\n",
    look: "list",
    release: "delete",
    takeover: &["delete", "create"],
};

const VENDORS: [Vendor; 3] = [AWS, AZURE, GOOGLE];

/// One hook's cloud: the state of the stand-ins.
struct Cloud<'a> {
    vendor: &'a Vendor,
    directory: TempDir,
}

impl<'a> Cloud<'a> {
    fn new(vendor: &'a Vendor, state: &str) -> Cloud<'a> {
        let cloud = Cloud { vendor, directory: TempDir::new().unwrap() };
        fs::create_dir(cloud.path().join("bin")).unwrap();
        for command in [vendor.command, "curl", "sleep"] {
            let script = fakes().join(format!("{command}.sh"));
            symlink(script, cloud.path().join("bin").join(command)).unwrap();
        }
        fs::create_dir(cloud.path().join("sign-in")).unwrap();
        cloud.write("sign-in/token", "");
        cloud.write("metadata", vendor.metadata);
        cloud.write("state", state);
        cloud
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path().join(name), content).unwrap();
    }

    fn command(&self, event: &str, arguments: &[&str]) -> Command {
        let mut command = hook(self.vendor.hook, event, &[&self.path().join("bin")]);
        command.args(arguments).stdin(Stdio::null());
        command.env("CLOUD", self.path()).env("FAKES", fakes()).env("TMPDIR", self.path());
        command.env("AZURE_CONFIG_DIR", self.path().join("sign-in"));
        command.env("CLOUDSDK_CONFIG", self.path().join("sign-in"));
        command.env_remove("AWS_REGION").env_remove("AWS_DEFAULT_REGION");
        command
    }

    /// Runs the hook; the limit leaves room for a busy machine.
    fn run(&self, event: &str) -> Output {
        let arguments = [&["--within", "60"], self.vendor.arguments].concat();
        self.command(event, &arguments).output().unwrap()
    }

    fn succeeds(&self, event: &str) {
        let output = self.run(event);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {event}: {said}", self.vendor.hook);
    }

    /// What a run that must fail says.
    fn fails(&self, event: &str) -> String {
        let output = self.run(event);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{} {event}: {said}", self.vendor.hook);
        let told = format!("{}: {event} failed: ", self.vendor.hook);
        assert!(said.contains(&told), "{said}");
        said
    }

    /// The state, in the order of its lines.
    fn leads(&self, expected: &str, when: &str) {
        let state = fs::read_to_string(self.path().join("state")).unwrap();
        assert_eq!(sorted(&state), sorted(expected), "{} {when}", self.vendor.hook);
    }

    /// The operations that were called since this was last asked.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path().join("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path().join("calls"));
        calls.lines().map(str::to_owned).collect()
    }

    /// Those that change something.
    fn changes(&self) -> Vec<String> {
        let mut calls = self.calls();
        assert!(calls.iter().any(|call| call == self.vendor.look), "it has not looked");
        calls.retain(|call| call != self.vendor.look && call != "metadata");
        calls
    }

    /// The process that a call which hangs has started.
    fn hanging(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.path().join("hanging")).ok()?;
        text.trim().parse().ok().map(Pid::from_raw)
    }
}

fn fakes() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shipped_hooks"))
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_cloud_leads_to_this_host_exactly_while_it_leads() {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.nowhere);
        for (event, leads) in [EVENTS, EVENTS].concat() {
            cloud.succeeds(event);
            cloud.leads(if leads { vendor.here } else { vendor.nowhere }, event);
            cloud.calls();
            // The state is right already.
            cloud.succeeds(event);
            assert_eq!(cloud.changes(), [""; 0], "{} {event}", vendor.hook);
        }
    }
}

#[test]
fn a_leader_takes_a_cloud_over_from_another_host() {
    for vendor in &VENDORS {
        for event in ["elected", "reaffirmed"] {
            let cloud = Cloud::new(vendor, vendor.there);
            cloud.succeeds(event);
            cloud.leads(vendor.here, event);
            assert_eq!(cloud.changes(), vendor.takeover, "{} {event}", vendor.hook);
        }
    }
}

#[test]
fn a_refresh_puts_back_what_a_cloud_lost() {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.here);
        for (lost, changes) in [(vendor.here, false), (vendor.there, true), (vendor.nowhere, true)]
        {
            cloud.write("state", lost);
            let mut command = cloud.command("reaffirmed", vendor.arguments);
            let output = command.env("LANELECT_REASON", "refresh").output().unwrap();
            assert!(output.status.success(), "{}: {output:?}", vendor.hook);
            cloud.leads(vendor.here, lost);
            assert_eq!(!cloud.changes().is_empty(), changes, "{} {lost}", vendor.hook);
        }
    }
}

#[test]
fn what_another_leader_has_taken_stays_there() {
    for vendor in &VENDORS {
        for event in ["demoted", "started"] {
            let cloud = Cloud::new(vendor, vendor.there);
            cloud.succeeds(event);
            cloud.leads(vendor.there, event);
            assert_eq!(cloud.changes(), [""; 0], "{} {event}", vendor.hook);
        }
    }
    // It is taken between the look and the release. Azure has no call that could notice it.
    for vendor in [AWS, GOOGLE] {
        let cloud = Cloud::new(&vendor, vendor.here);
        cloud.write(&format!("overtake-{}", vendor.release), vendor.there);
        cloud.succeeds("demoted");
        cloud.leads(vendor.there, "demoted");
        assert_eq!(cloud.changes(), [vendor.release], "{}", vendor.hook);
    }
}

#[test]
fn a_hook_fails_with_the_reason_if_a_cloud_refuses() {
    let message = "UnauthorizedOperation: not you";
    for vendor in &VENDORS {
        for (event, operation, state) in [
            ("elected", vendor.takeover[0], vendor.there),
            ("reaffirmed", vendor.look, vendor.there),
            ("demoted", vendor.release, vendor.here),
            ("started", vendor.look, vendor.here),
        ] {
            let cloud = Cloud::new(vendor, state);
            cloud.write(&format!("fail-{operation}"), message);
            let said = cloud.fails(event);
            let last = said.lines().last().unwrap();
            assert!(last.contains(operation) && last.contains(message), "{said}");
            cloud.leads(state, event);
            let tried = cloud.calls().iter().filter(|call| *call == operation).count();
            assert_eq!(tried, 4, "{} {event} gives up", vendor.hook);
        }
    }
}

#[test]
fn cloud_answer_that_cannot_be_read_fails_the_release() {
    let answer = r#"[ "${1##*/}" = answer ] && grep -q floating "$1""#;
    for (vendor, tool, when) in
        [(&AZURE, "cat", answer), (&GOOGLE, "cat", answer), (&AZURE, "awk", r#"[ "$1" = -F ]"#)]
    {
        let cloud = Cloud::new(vendor, vendor.here);
        let script = format!(
            "#!/bin/sh\nif {when}; then exit 1; fi\nPATH=${{PATH#*:}}\nexec {tool} \"$@\"\n"
        );
        write_script(&cloud.path().join("bin").join(tool), &script);
        cloud.fails("demoted");
        cloud.leads(vendor.here, tool);
    }
}

#[test]
fn a_call_that_fails_once_is_repeated() {
    for vendor in &VENDORS {
        for (event, operation, state, expected) in [
            ("elected", vendor.takeover[0], vendor.there, vendor.here),
            ("elected", vendor.look, vendor.there, vendor.here),
            ("demoted", vendor.release, vendor.here, vendor.nowhere),
        ] {
            let cloud = Cloud::new(vendor, state);
            cloud.write(&format!("fail-once-{operation}"), "RequestLimitExceeded");
            cloud.succeeds(event);
            cloud.leads(expected, event);
            assert!(!cloud.path().join(format!("fail-once-{operation}")).exists());
        }
    }
}

#[test]
fn a_change_that_shows_late_is_waited_for_and_not_repeated() {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.nowhere);
        cloud.write("lag", "2");
        cloud.succeeds("elected");
        cloud.leads(vendor.here, "elected");
        let calls = cloud.calls();
        let count = |operation: &str| calls.iter().filter(|call| *call == operation).count();
        // Before the change, twice too early, and when it shows.
        assert_eq!(count(vendor.look), 4, "{calls:?}");
        assert_eq!(calls.iter().filter(|call| is_change(vendor, call)).count(), 1, "{calls:?}");
    }
}

fn is_change(vendor: &Vendor, call: &str) -> bool {
    call != vendor.look && call != "metadata"
}

#[test]
fn a_hook_fails_with_the_reason_if_the_metadata_service_does_not_answer() {
    for vendor in &VENDORS {
        for (event, _) in EVENTS {
            let cloud = Cloud::new(vendor, vendor.here);
            cloud.write("fail-metadata", "Connection timed out");
            let said = cloud.fails(event);
            assert!(said.contains("metadata service") && said.contains("timed out"), "{said}");
            cloud.leads(vendor.here, event);
        }
        let cloud = Cloud::new(vendor, vendor.here);
        cloud.write("metadata", "");
        assert!(cloud.fails("elected").contains("404"), "{}", vendor.hook);
    }
}

#[test]
fn a_hook_ends_calls_that_hang_with_all_that_they_started() {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.there);
        cloud.write(&format!("hang-{}", vendor.look), "");
        let arguments = [&["--within", "2"], vendor.arguments].concat();
        let output = cloud.command("elected", &arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        // On a busy machine the metadata service may have used the time up.
        let Some(process) = cloud.hanging() else {
            assert!(said.contains("no answer within") || said.contains("no time"), "{said}");
            continue;
        };
        assert!(said.contains("no answer within"), "{said}");
        until("the call has ended", || has_ended(process));
    }
}

/// Holds each process that it traces after each fork, so that the child is well under way before
/// the parent knows of it. The traced process keeps the identifier.
const HOLD_AFTER_FORK: [&str; 7] = [
    "strace",
    "-D",
    "-qq",
    "--output=/dev/null",
    "--trace=clone,fork,vfork",
    "--inject=clone,fork,vfork:delay_exit=300000",
    "--",
];

/// Ends a hook whose change hangs: `run` starts it.
fn ends_its_call(run: impl Fn(&Cloud, Command) -> Child) {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.there);
        cloud.write(&format!("hang-{}", vendor.takeover[0]), "");
        let arguments = [&["--within", "600"], vendor.arguments].concat();
        let mut child = run(&cloud, cloud.command("elected", &arguments));
        until("the call hangs", || cloud.hanging().is_some());
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        assert!(!child.wait().unwrap().success());
        let process = cloud.hanging().unwrap();
        // Before the time limit of the call ends it.
        until_within(Duration::from_secs(15), "the call has ended", || has_ended(process));
        cloud.leads(vendor.there, "after SIGTERM");
        let left = fs::read_dir(cloud.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("tmp.")));
    }
}

#[test]
fn a_hook_that_is_ended_ends_its_call_first() {
    ends_its_call(|_, mut hook| hook.spawn().unwrap());
}

#[test]
fn a_hook_that_is_ended_before_it_knows_of_its_call_ends_that_call() {
    if is_missing("strace") {
        return;
    }
    ends_its_call(|_, hook| {
        let mut held = Command::new(HOLD_AFTER_FORK[0]);
        held.args(&HOLD_AFTER_FORK[1..]).arg(hook.get_program()).args(hook.get_args());
        for (name, value) in hook.get_envs() {
            match value {
                Some(value) => held.env(name, value),
                None => held.env_remove(name),
            };
        }
        held.stdin(Stdio::null()).spawn().unwrap()
    });
}

#[test]
fn a_hook_that_is_ended_before_its_time_limit_knows_of_the_call_ends_that_call() {
    if is_missing("strace") {
        return;
    }
    ends_its_call(|cloud, mut hook| {
        let path = cloud.path().join("bin/timeout");
        let held =
            format!("#!/bin/sh\nexec {} /usr/bin/timeout \"$@\"\n", HOLD_AFTER_FORK.join(" "));
        fs::write(&path, held).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        hook.spawn().unwrap()
    });
}

#[test]
fn a_token_is_never_on_a_command_line_or_in_the_log() {
    let cloud = Cloud::new(&AWS, AWS.nowhere);
    let output = cloud.run("elected");
    assert!(output.status.success());
    let lines = fs::read_to_string(cloud.path().join("command-lines")).unwrap();
    assert!(lines.contains("api/token") && !lines.contains("secret-token"), "{lines}");
    cloud.write("fail-unassign-private-ip-addresses", "UnauthorizedOperation");
    assert!(!cloud.fails("demoted").contains("secret-token"));
}

#[test]
fn an_ipv6_address_moves_with_the_others() {
    let vendor = Vendor {
        arguments: &["eni-1", "10.0.1.100", "2001:db8::100"],
        here: "eni-1 10.0.1.11\neni-1 10.0.1.100\neni-1 2001:db8::100\n",
        there: "eni-1 10.0.1.11\neni-2 10.0.1.100\neni-2 2001:db8::100\n",
        nowhere: "eni-1 10.0.1.11\n",
        ..AWS
    };
    let cloud = Cloud::new(&vendor, vendor.there);
    cloud.succeeds("demoted");
    cloud.leads(vendor.there, "demoted");
    cloud.succeeds("elected");
    cloud.leads(vendor.here, "elected");
    cloud.calls();
    cloud.succeeds("reaffirmed");
    assert_eq!(cloud.changes(), [""; 0]);
    cloud.succeeds("demoted");
    cloud.leads(vendor.nowhere, "demoted");
    cloud.succeeds("elected");
    cloud.leads(vendor.here, "elected");
}

#[test]
fn azure_is_signed_in_to_when_it_wants_that() {
    let cloud = Cloud::new(&AZURE, AZURE.there);
    fs::remove_file(cloud.path().join("sign-in/token")).unwrap();
    cloud.succeeds("elected");
    cloud.leads(AZURE.here, "elected");
    assert_eq!(cloud.changes(), ["login", "update"]);

    fs::remove_file(cloud.path().join("sign-in/token")).unwrap();
    cloud.write("fail-login", "no identity");
    assert!(cloud.fails("demoted").contains("az login"));
    cloud.leads(AZURE.here, "demoted");
}

/// The look after a change may come before it has ended.
#[test]
fn a_change_in_azure_counts_when_it_has_ended() {
    let cloud =
        Cloud::new(&AZURE, &AZURE.here.replace("10.0.1.11\tSucceeded", "10.0.1.11\tFailed"));
    cloud.succeeds("elected");
    cloud.leads(AZURE.here, "elected");
    assert_eq!(cloud.changes(), ["update"]);
}

#[test]
fn the_next_hop_in_azure_may_be_another_address_of_this_host() {
    let cloud = Cloud::new(&AZURE, AZURE.there);
    let arguments = [&["--next-hop", "10.0.2.11"], AZURE.arguments].concat();
    assert!(cloud.command("elected", &arguments).status().unwrap().success());
    cloud.leads(&AZURE.here.replace("10.0.1.11", "10.0.2.11"), "elected");
}

/// The new leader could not delete it before it created its own.
#[test]
fn a_route_of_another_leader_beside_the_own_is_deleted() {
    let other = GOOGLE.there.lines().last().unwrap();
    let cloud = Cloud::new(&GOOGLE, &format!("{}{other}\n", GOOGLE.here));
    cloud.succeeds("reaffirmed");
    cloud.leads(GOOGLE.here, "reaffirmed");
    assert_eq!(cloud.changes(), ["delete"]);
}

/// An instance that was created again has its old name and a new number.
#[test]
fn a_route_of_an_earlier_instance_of_this_host_is_released() {
    let earlier = GOOGLE.here.replace("floating-11", "floating-10");
    let cloud = Cloud::new(&GOOGLE, &earlier);
    cloud.succeeds("started");
    cloud.leads(GOOGLE.nowhere, "started");
    cloud.write("state", &earlier);
    cloud.succeeds("elected");
    cloud.leads(GOOGLE.here, "elected");
}

#[test]
fn a_wrong_usage_is_told() {
    for vendor in &VENDORS {
        let cloud = Cloud::new(vendor, vendor.here);
        let bad_time = [&["--within", "soon"], vendor.arguments].concat();
        for (arguments, told) in
            [(&[][..], "usage: "), (&vendor.arguments[1..], "usage: "), (&bad_time, "seconds")]
        {
            let output = cloud.command("elected", arguments).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{} {arguments:?}: {said}", vendor.hook);
            assert!(said.contains(told) && said.contains(vendor.hook), "{said}");
        }
        assert_eq!(cloud.calls(), [""; 0]);
    }
    let cloud = Cloud::new(&AWS, AWS.here);
    let prefix = cloud.command("elected", &["lo", "10.0.1.100/24"]).output().unwrap();
    assert_eq!(prefix.status.code(), Some(2));
    let missing = cloud.command("elected", &["no-such-one", "10.0.1.100"]).output().unwrap();
    assert!(String::from_utf8(missing.stderr).unwrap().contains("no interface no-such-one"));
}
