//! Config files, as the real binary sees them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use lanelect::config::{ConfigSource, Overrides, SETTINGS};
use nix::unistd::{User, geteuid};

/// Exit status, stdout and stderr of `lanelect check-config FILE`.
fn check_config(file: &Path) -> (Option<i32>, String, String) {
    check_config_with(file, &[])
}

/// The same with flags.
fn check_config_with(file: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("lanelect").unwrap();
    let output = command.arg("check-config").arg(file).args(flags).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A valid key file in `dir`.
fn key_in(dir: &Path) -> String {
    let path = dir.join("key");
    fs::write(&path, "ab".repeat(32)).unwrap();
    set_mode(&path, 0o600);
    path.to_str().unwrap().to_owned()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("test.toml");
    fs::write(&file, text).unwrap();
    (dir, file)
}

/// A file must be refused with this line and key in front of a message that holds the words.
fn assert_refused(text: &str, line: usize, key: &str, words: &str) {
    let (_dir, file) = written(text);
    let (status, stdout, stderr) = check_config(&file);
    assert_eq!((status, stdout.as_str()), (Some(2), ""), "{text}: {stderr}");
    let place = format!("{}:{line}: {key}: ", file.display());
    let told = stderr.lines().find_map(|told| told.strip_prefix(&place));
    assert!(told.is_some_and(|told| told.contains(words)), "{text}: want {place}{words}: {stderr}");
}

#[test]
fn every_shipped_config_is_valid() {
    let shipped: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(!shipped.is_empty());
    for file in shipped {
        let (status, stdout, stderr) = check_config(&file);
        assert_eq!(status, Some(0), "{}: {stderr}", file.display());
        assert!(stdout.contains("leader_alive_threshold = \""), "defaults are filled in: {stdout}");
    }
}

/// A commented key shows its default, as far as it has one that is the same on every host.
#[test]
fn the_example_shows_the_defaults() {
    let effective = |text: &str| -> toml::Table {
        let (_dir, file) = written(text);
        check_config(&file).1.parse().unwrap()
    };
    let defaults = effective("");
    let example = include_str!("../systemd/example.toml").lines();
    let shown = example.filter_map(|line| {
        let line = line.strip_prefix('#')?;
        let (key, _) = line.split_once(" = ")?;
        // The hostname, and what follows from the group's name.
        (!matches!(key, "node_id" | "socket") && defaults.contains_key(key)).then_some((key, line))
    });
    let compared =
        shown.map(|(key, line)| assert_eq!(effective(line)[key], defaults[key], "{key}"));
    assert!(compared.count() >= 15);
}

/// The commented keys of the example are those that exist, with values that are valid.
#[test]
fn the_example_shows_every_key() {
    let example = include_str!("../systemd/example.toml");
    for setting in SETTINGS.iter().filter(|setting| setting.name != "mode") {
        let shown = example.lines().find_map(|line| {
            let line = line.strip_prefix('#').unwrap_or(line);
            line.starts_with(&format!("{} = ", setting.name)).then_some(line)
        });
        let line = shown.unwrap_or_else(|| panic!("{} is not in the example", setting.name));
        let needed = match setting.name {
            "voters" => "mode = \"quorum\"\n",
            "demote_grace" => "mode = \"quorum\"\nvoters = \"a\"\n",
            "fence" => "mode = \"quorum\"\nvoters = \"a\"\nhook = \"/bin/true\"\n",
            "refresh_interval" => "hook = \"/bin/true\"\n",
            _ => "",
        };
        let (dir, file) = written(&format!("{needed}{line}"));
        // Those of the example are not on this host.
        let key = key_in(dir.path());
        let on_this_host = match setting.name {
            "key_file" | "key_mode" => &["--key-file", &key][..],
            "socket_group" => &["--socket-group", "root"],
            _ => &[],
        };
        let (status, _, stderr) = check_config_with(&file, on_this_host);
        assert_eq!(status, Some(0), "{line}: {stderr}");
    }
}

#[test]
fn the_effective_config_is_a_config_with_the_same_effect() {
    let (_dir, first) = written(include_str!("../systemd/example.toml"));
    let (_, printed, _) = check_config(&first);
    let (_dir, second) = written(&printed);
    let (status, again, stderr) = check_config(&second);
    assert_eq!((status, again), (Some(0), printed), "{stderr}");
    let load = |file| ConfigSource { file: Some(file), overrides: Overrides::default() }.load();
    assert_eq!(load(first).unwrap(), load(second).unwrap());
}

#[test]
fn a_bad_value_is_refused_with_its_line_and_key() {
    for (key, value, words) in [
        ("group", "\"a/b\"", "file name"),
        ("group", "\"\"", "empty"),
        ("group", "7", "string"),
        ("node_id", "\"a b\"", "blank"),
        ("priority", "256", "0 to 255"),
        ("priority", "-1", "0 to 255"),
        ("priority", "\"high\"", "0 to 255"),
        ("candidate", "\"yes\"", "true or false"),
        ("interface", "[]", "name an interface"),
        ("interface", "[\"a\", \"a\"]", "twice"),
        ("interface", "[1]", "array of names"),
        ("interface", "\"waytoolonginterface\"", "interface name"),
        ("multicast", "\"10.0.0.1:7669\"", "not a multicast address"),
        ("multicast", "\"239.255.76.69\"", "port"),
        ("multicast", "\"239.255.76.69:0\"", "port 0"),
        ("heartbeat_interval", "\"9ms\"", "10ms to 1m"),
        ("heartbeat_interval", "\"61s\"", "10ms to 1m"),
        ("heartbeat_interval", "1", "string"),
        ("heartbeat_interval", "\"soon\"", "not a duration"),
        ("leader_alive_threshold", "\"384ms\"", "to 385ms or more"),
        ("leader_election_duration", "\"0s\"", "out of range"),
        ("startup_grace_period", "\"0s\"", "out of range"),
        ("membership_sample_interval", "\"2h\"", "out of range"),
        ("preset", "\"raft\"", "fabric"),
        ("static_role", "\"king\"", "follower"),
        ("mode", "\"best\"", "\"available\" or \"quorum\""),
        ("voters", "[\"a\", \"b\", \"c\"]", "without mode"),
        ("voters", "[\"a\", 1]", "array of names"),
        ("demote_grace", "\"5s\"", "without mode"),
        ("fence", "\"poweroff -ff\"", "without mode"),
        ("min_candidates", "0", "1 to 1000"),
        ("min_candidates", "1001", "1 to 1000"),
        ("preempt", "1", "true or false"),
        ("preempt_delay", "\"-1s\"", "not a duration"),
        ("hook", "\"\"", "empty"),
        ("hook", "\"a\\u0000b\"", "NUL"),
        ("hook_timeout", "\"0s\"", "out of range"),
        ("hook_socket", "\"/run/lanelect/default.sock\"", "same path as socket"),
        ("on_elected_failure", "\"panic\"", "resign"),
        ("failure_holdoff", "\"0s\"", "out of range"),
        ("check", "\" \"", "empty"),
        ("check_leader", "\" \"", "empty"),
        ("check_interval", "\"99ms\"", "100ms to 1h"),
        ("check_timeout", "\"0s\"", "100ms to 1h"),
        ("check_fall", "0", "1 to 1000"),
        ("check_rise", "1001", "1 to 1000"),
        ("key_file", "\"\"", "empty"),
        ("state_dir", "false", "string"),
        ("socket_group", "\"a b\"", "Unix group"),
        ("colour", "\"red\"", "unknown key; remove it"),
        ("hartbeat_interval", "\"1s\"", "unknown key; did you mean heartbeat_interval?"),
        ("heartbeat-interval", "\"1s\"", "did you mean heartbeat_interval"),
    ] {
        assert_refused(&format!("# a comment\n\n{key} = {value}\n"), 3, key, words);
    }
    let long = format!("socket = \"/{}\"", "x".repeat(107));
    assert_refused(&long, 1, "socket", "107");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    for (text, key) in [
        ("static_role = \"leader\"\npreempt = true", "preempt"),
        ("static_role = \"follower\"\npreempt = true", "preempt"),
        ("candidate = false\npreempt = true", "preempt"),
        ("candidate = false\nstatic_role = \"leader\"", "static_role"),
        ("static_role = \"leader\"\nmin_candidates = 2", "min_candidates"),
        ("heartbeat_interval = \"2s\"\nleader_alive_threshold = \"2s\"", "leader_alive_threshold"),
        ("preset = \"fabric\"\nheartbeat_interval = \"9500ms\"", "heartbeat_interval"),
        ("socket = \"/run/x\"\nhook_socket = \"/run/x\"", "hook_socket"),
    ] {
        assert_refused(text, 2, key, "");
    }
}

/// Files of quorum mode, wrong in their third line.
#[test]
fn quorum_mode_refuses_what_would_not_keep_its_promise() {
    let too_many: Vec<_> = (0..32).map(|n| format!("\"n{n}\"")).collect();
    for (key, value, words) in [
        ("voters", "[]", "names no node"),
        ("voters", "[\"a\", \"b\", \"a\"]", "names a twice"),
        ("voters", "[\"a b\"]", "blank"),
        ("voters", &format!("[{}]", too_many.join(", ")), "more than 31"),
        ("voters", "3", "array of names"),
    ] {
        assert_refused(&format!("mode = \"quorum\"\n\n{key} = {value}"), 3, key, words);
    }
    for (key, value, words) in [
        ("static_role", "\"leader\"", "priority"),
        ("static_role", "\"follower\"", "candidate = false"),
        ("min_candidates", "2", "majority"),
        ("demote_grace", "\"601s\"", "0s to 10m"),
        ("demote_grace", "5", "string"),
        ("leader_alive_threshold", "\"1h\"", "not be longer than 1h"),
        ("fence", "\"\"", "empty"),
        ("fence", "\"poweroff -ff\"", "without a hook"),
    ] {
        let text = format!("mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n{key} = {value}");
        assert_refused(&text, 3, key, words);
    }
}

#[test]
fn quorum_mode_without_voters_is_refused() {
    let (_dir, file) = written("mode = \"quorum\"");
    let (status, _, stderr) = check_config(&file);
    assert_eq!(status, Some(2));
    let told = format!("{}: voters (not set): is required", file.display());
    assert!(stderr.starts_with(&told), "{stderr}");
}

#[test]
fn valid_but_unusual_config_prints_a_warning_beside_the_effective_config() {
    let (_dir, file) = written("node_id = \"a\"\nmode = \"quorum\"\nvoters = [\"b\", \"a\"]");
    let (status, stdout, stderr) = check_config(&file);
    assert_eq!(status, Some(0));
    assert!(stdout.contains("voters = [\"a\", \"b\"]\n"), "{stdout}");
    let told = stderr.lines().any(|line| line.starts_with("warning: voters: the majority"));
    assert!(told && stderr.contains("witness"), "{stderr}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let (_dir, file) = written("priority = 300\ncolour = 1\npreempt = 7\n");
    let (status, _, stderr) = check_config(&file);
    assert_eq!((status, stderr.lines().count()), (Some(2), 3), "{stderr}");
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let (_dir, file) = written("group = \"a\"\npriority 7\n");
    let (status, _, stderr) = check_config(&file);
    assert_eq!(status, Some(2));
    assert!(stderr.starts_with(&format!("{}:2: ", file.display())), "{stderr}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let (dir, file) = written(&"#".repeat(lanelect::config::CONFIG_MAX + 1));
    let missing = dir.path().join("missing.toml");
    for file in [&file, &missing, &dir.path().to_owned()] {
        let (status, _, stderr) = check_config(file);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(&file.display().to_string()), "{stderr}");
    }
    fs::write(&file, b"group = \"\xff\"").unwrap();
    assert!(check_config(&file).2.contains("UTF-8"));
}

/// Exit status, and the lines on stderr, for a config of node `a` with a valid key. `{dir}` in the
/// text stands for the directory of the file, which is returned.
fn findings(text: &str, flags: &[&str]) -> (Option<i32>, Vec<String>, tempfile::TempDir) {
    let (dir, file) = written("");
    let text = text.replace("{dir}", dir.path().to_str().unwrap());
    let node = ["--node-id", "a"];
    fs::write(&file, text).unwrap();
    set_mode(&file, 0o644);
    let key = key_in(dir.path());
    let with_key = [&["--key-file", &key][..], &node].concat();
    let (status, stdout, stderr) = check_config_with(&file, &[&with_key, flags].concat());
    assert_eq!(stdout.is_empty(), status != Some(0), "{stdout}");
    // Where the package is installed, its user.
    let known = |line: &&str| !line.contains("does not belong to lanelect");
    (status, stderr.lines().filter(known).map(str::to_owned).collect(), dir)
}

#[track_caller]
fn assert_warned(text: &str, warnings: &[&str]) {
    let (status, lines, dir) = findings(text, &[]);
    let dir = dir.path().to_str().unwrap();
    let expected: Vec<_> =
        warnings.iter().map(|text| format!("warning: {}", text.replace("{dir}", dir))).collect();
    assert_eq!((status, lines), (Some(0), expected), "{text}");
}

const QUORUM: &str = "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n";

#[test]
fn config_without_a_mistake_has_no_warning() {
    let (hook, fence) = ("hook = \"/bin/true x\"\n", "fence = \"/bin/true\"\n");
    for text in ["", hook, &format!("{QUORUM}{hook}{fence}hook_timeout = \"5s\"")] {
        assert_warned(text, &[]);
    }
}

#[test]
fn key_file_that_the_daemon_would_refuse_is_an_error() {
    let (_home, file) = written("");
    let dir = file.parent().unwrap();
    let key = key_in(dir);
    let missing = dir.join("missing").to_str().unwrap().to_owned();
    let errors = |path: &str| {
        let (status, stdout, stderr) = check_config_with(&file, &["--key-file", path]);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
        let error = |line: &&str| !line.starts_with("warning: ");
        stderr.lines().filter(error).map(str::to_owned).collect::<Vec<_>>()
    };
    let absent = format!(
        "cannot read key_file {missing}: No such file or directory (os error 2); copy it from \
         another node, or create it with `lanelect keygen` if the group has no key yet"
    );
    assert_eq!(errors(&missing), [absent]);
    set_mode(Path::new(&key), 0o640);
    let exposed = format!(
        "cannot use key_file {key}: users other than its owner have access (mode 0640); run: \
         chmod go= {key}"
    );
    assert_eq!(errors(&key), [exposed]);
    set_mode(Path::new(&key), 0o600);
    fs::write(&key, "xyz").unwrap();
    let malformed = format!(
        "cannot use key_file {key}: line 1 is not a key of 64 hexadecimal digits; create one with \
         `lanelect keygen`"
    );
    assert_eq!(errors(&key), [malformed]);
}

#[test]
fn unknown_socket_group_is_an_error_beside_the_others() {
    let expected = "socket_group = \"no-such\": this host has no such group; create it (`groupadd \
                    no-such`), or remove the key: then only root and the daemon's user may command";
    let (status, lines, _dir) = findings("socket_group = \"no-such\"", &[]);
    assert_eq!((status, lines), (Some(2), vec![expected.to_owned()]));
    let both = ["--key-file", "/no/such/key"];
    let (_dir, file) = written("node_id = \"a\"\nsocket_group = \"no-such\"");
    let (status, _, stderr) = check_config_with(&file, &both);
    assert_eq!((status, stderr.lines().count()), (Some(2), 2), "{stderr}");
}

#[test]
fn interface_that_does_not_exist_is_a_warning() {
    let (status, lines, _dir) = findings("interface = [\"lo\", \"no-such0\"]", &[]);
    let expected = "warning: interface: this host has no interface no-such0 now, and the daemon \
                    waits for it; if the name is wrong, set interface";
    assert!(matches!(&lines[..], [line] if line.starts_with(expected)), "{lines:?}");
    assert_eq!(status, Some(0));
}

#[test]
fn program_that_cannot_run_is_a_warning() {
    assert_warned(
        "hook = \"/no/such/hook x\"",
        &["hook: cannot find /no/such/hook, and every run fails: No such file or directory (os \
           error 2); correct the path, or install the program"],
    );
    assert_warned(
        "check = \"{dir}; true\"",
        &["check: {dir} is a directory, and every run fails; name the program in it"],
    );
    assert_warned(
        "check = \"{dir}/test.toml\"",
        &["check: cannot execute {dir}/test.toml (mode 0644), and every run fails: Permission \
           denied; run: chmod +x {dir}/test.toml, or mount its file system without noexec"],
    );
    assert_warned(
        "hook = \"bin/hook\"",
        &[
            "hook: bin/hook is relative to the directory in which the process was started, which is \
           / under systemd; give the absolute path",
        ],
    );
    let fence = format!("{QUORUM}hook = \"true\"\nhook_timeout = \"1s\"\nfence = \"/no/fence\"");
    assert_warned(
        &fence,
        &[
            "fence: cannot find /no/fence, and every run fails: No such file or directory (os error \
           2); correct the path, or install the program",
        ],
    );
    for shell in ["no-such-command", "exec /no/such", "X=/no/such true", "$HOME/no", "'/no/such'"] {
        assert_warned(&format!("hook = \"{shell}\""), &[]);
    }
}

#[test]
fn program_that_others_can_write_or_replace_is_a_warning() {
    let (_home, file) = written("");
    let home = file.parent().unwrap();
    let (bin, program) = (home.join("bin"), home.join("bin/hook"));
    fs::create_dir(&bin).unwrap();
    fs::write(&program, "#!/bin/sh\n").unwrap();
    set_mode(&bin, 0o755);
    let uid = geteuid();
    let user = User::from_uid(uid).unwrap().map_or(uid.to_string(), |user| user.name);
    let (path, bin_path) = (program.to_str().unwrap(), bin.to_str().unwrap());
    let text = format!("hook = \"{path}\"");
    set_mode(&program, 0o755);
    assert_warned(&text, &[]);
    set_mode(&program, 0o775);
    let written = format!(
        "hook: other users can write {path} (owner {uid}, mode 0775), which runs as {user}; run: \
         chmod go-w {path}"
    );
    assert_warned(&text, &[&written]);
    set_mode(&program, 0o755);
    set_mode(&bin, 0o777);
    let replaced = |owner: u32, mode: &str| {
        format!(
            "hook: other users can replace {path}, which runs as {user}, because they can write \
             the directory {bin_path} (owner {owner}, mode {mode}); move the program to a \
             directory that only root can write, such as /etc/lanelect"
        )
    };
    assert_warned(&text, &[&replaced(uid.as_raw(), "0777")]);
    set_mode(&bin, 0o755);
    if uid.is_root() {
        chown(&bin, Some(4_000_000), None).unwrap();
        assert_warned(&text, &[&replaced(4_000_000, "0755")]);
    }
}

#[test]
fn config_file_that_others_can_write_is_a_warning_and_with_a_hook_runner_an_error() {
    let (dir, file) = written("node_id = \"a\"\n");
    let key = key_in(dir.path());
    let uid = geteuid();
    let user = User::from_uid(uid).unwrap().map_or(uid.to_string(), |user| user.name);
    let path = file.to_str().unwrap();
    set_mode(&file, 0o646);
    let (status, _, stderr) = check_config_with(&file, &["--key-file", &key]);
    let remedy = format!("run: chmod go-w {path}\n");
    let warning = format!(
        "warning: config file {path}: other users can write it (owner {uid}, mode 0646) and run \
         any command as {user} through it, and a hook-runner rejects it; {remedy}"
    );
    assert!(stderr.starts_with(&warning), "{stderr}");
    assert_eq!(status, Some(0));
    let (status, _, stderr) = check_config_with(&file, &["--hook-socket", "/run/x"]);
    let error = format!(
        "cannot use the config file {path}: other users may write it (owner {uid}, mode 0646) and \
         could run any command through it; {remedy}"
    );
    assert_eq!((status, stderr), (Some(2), error));
}

#[test]
fn config_file_of_the_daemons_own_user_is_a_warning_if_there_is_a_hook_runner() {
    let (dir, file) = written("node_id = \"a\"\n");
    set_mode(&file, 0o644);
    let (path, key) = (file.to_str().unwrap(), key_in(dir.path()));
    // Whoever runs the test is a user without a name there, to whom the file belongs.
    let check = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-user=1000000", env!("CARGO_BIN_EXE_lanelect")]);
        command.args(["check-config", "--quiet", path, "--key-file", &key]).args(flags);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let without = check(&[]);
    if without.starts_with("unshare:") {
        eprintln!("skipped, this host has no user namespaces: {without}");
        return;
    }
    assert_eq!(without, "");
    let warning = format!(
        "warning: config file {path}: it belongs to 1000000, and a hook-runner that is root, as \
         that of lanelect-hook@.service, rejects it; run: chown root {path}; 1000000 must still \
         be able to read it\n"
    );
    assert_eq!(check(&["--hook-socket", "/run/x"]), warning);
}

#[test]
fn quorum_mode_warns_of_what_its_promise_then_depends_on() {
    let (_dir, file) = written(&format!("node_id = \"a\"\n{QUORUM}"));
    let (status, _, stderr) = check_config(&file);
    let no_key = "warning: key_file is not set: datagrams are not authenticated, and every host on \
                  the LAN can vote; there are never two leaders only if no host on the LAN sends \
                  false datagrams; create a key with `lanelect keygen`\n";
    assert_eq!((status, stderr.as_str()), (Some(0), no_key));
    let slow = "hook_timeout: 30s is longer than demote_grace 5s: if the hook for demoted hangs, it \
                still runs when another node leads; set hook_timeout below 5s, if the hook for \
                elected never takes longer, or demote_grace above 30s, which delays each failover \
                by as much";
    let no_fence = "fence is not set: nothing cuts this host off if the hook for demoted does not \
                    succeed within demote_grace 5s; hooks of two nodes never overlap only if it \
                    always does; set fence, or let what the hook protects compare LANELECT_TERM";
    assert_warned(&format!("{QUORUM}hook = \"true\""), &[slow, no_fence]);
    let no_voter = "voters: this node, a, is not one of them; it follows, and neither votes nor \
                    leads; add it to voters on every node, or set candidate = false if it is only \
                    to follow";
    assert_warned("mode = \"quorum\"\nvoters = [\"x\", \"y\", \"z\"]", &[no_voter]);
}

#[test]
fn available_mode_without_a_key_and_a_shared_node_id_are_warnings() {
    let (_dir, file) = written("node_id = \"localhost\"");
    let (status, _, stderr) = check_config(&file);
    let expected = "warning: node_id: localhost is the name of every host without a name of its \
                    own, and the second daemon of a group with this id ends; set node_id, or run: \
                    hostnamectl set-hostname NAME\n\
                    warning: key_file is not set: datagrams are not authenticated, and every host \
                    on the LAN can claim to be the leader; create a key with `lanelect keygen`\n";
    assert_eq!((status, stderr.as_str()), (Some(0), expected));
}

#[test]
fn quiet_check_prints_errors_and_warnings_only() {
    let (dir, file) = written("node_id = \"a\"\nhook = \"/no/such\"");
    let key = key_in(dir.path());
    let (status, stdout, stderr) = check_config_with(&file, &["--quiet", "--key-file", &key]);
    assert_eq!((status, stdout.as_str()), (Some(0), ""));
    assert!(stderr.contains("warning: hook: cannot find /no/such"), "{stderr}");
}
