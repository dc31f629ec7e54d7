//! The documentation, held to what the program really does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/pages.rs"]
#[expect(dead_code, reason = "the tests of other documents need more of it")]
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::CommandFactory;
use lanelect::cli::Cli;
use lanelect::config::{Config, INTERFACES_MAX, SETTINGS};
use lanelect::core::membership::{FORGET_AFTER, MEMBERS_MAX};
use lanelect::core::params::Params;
use lanelect::core::quorum::Voters;
use lanelect::core::quorum::lease::HOLD_MAX;
use lanelect::core::quorum::voters::VOTERS_MAX;
use lanelect::daemon::transport::RESCAN_INTERVAL;
use lanelect::hooks::client::CONNECT_WAIT;
use lanelect::hooks::group::KILL_GRACE;
use lanelect::hooks::protocol::LINE_MAX;
use lanelect::types::{DatagramId, Incarnation, Priority, Role, Sequence, Term, TieBreak};
use lanelect::wire::auth::{Key, Keyring};
use lanelect::wire::echo::{Echo, Echoes};
use lanelect::wire::frame::{Codec, DATAGRAM_MAX, EXTENDED_MAX};
use lanelect::wire::message::{Body, Flags, Message, Standing};

use pages::{blocks, on_one_line, section};

const README: &str = include_str!("../README.md");
const PROTOCOL: &str = include_str!("../docs/protocol.md");
const PEERS: &str = include_str!("../docs/peers.md");
const CORRECTNESS: &str = include_str!("../docs/correctness.md");
const ELECTION: &str = include_str!("../docs/election.md");
const HOOKS: &str = include_str!("../docs/hooks.md");
const SECURITY: &str = include_str!("../docs/security.md");
const OPERATIONS: &str = include_str!("../docs/operations.md");
const TESTING: &str = include_str!("../docs/testing.md");
const SPECIFICATION: &str = include_str!("../docs/spec/README.md");
const SPEC_RUN: &str = include_str!("spec/run");
const MUTATIONS: &str = include_str!("mutations/run");

#[test]
fn help_of_check_config_checks_a_file_as_the_shipped_unit_does() {
    let unit = include_str!("../systemd/lanelect@.service").replace("%i", "web");
    let check = unit.lines().find(|line| line.contains("check-config")).unwrap();
    let (_, arguments) = check.split_once("lanelect ").unwrap();
    let command = Cli::command();
    let help = command.find_subcommand("check-config").unwrap().get_after_help().unwrap();
    assert!(help.to_string().contains(&format!("lanelect {arguments} &&")), "{help}");
}

/// The first cells of the table rows of `text`.
fn first_cells(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect()
}

fn message(role: Role, body: Body) -> Message {
    let flags = Flags::default().with(Flags::CANDIDATE, true).with(Flags::ELIGIBLE, true);
    Message {
        sender: "web1".parse().unwrap(),
        incarnation: Incarnation(300),
        sequence: Sequence(2),
        term: Term(7),
        standing: Standing {
            role,
            priority: Priority(100),
            tie_break: TieBreak::default(),
            flags,
            voters: None,
        },
        echoes: Echoes::NONE,
        body,
    }
}

/// The same of one of three voters, in quorum mode.
fn quorum_message(role: Role, flags: Flags, body: Body) -> Message {
    let mut message = message(role, body);
    let voters = ["web0", "web1", "web2"].map(|id| id.parse().unwrap());
    message.standing.flags = flags;
    message.standing.voters = Some(Voters::new(voters).unwrap().digest());
    message
}

/// A datagram of `web0`.
const ANSWERED: DatagramId = DatagramId { incarnation: Incarnation(200), sequence: Sequence(90) };

fn quorum_messages() -> [(&'static str, Message); 5] {
    let standing = Flags::CANDIDATE.with(Flags::ELIGIBLE, true).with(Flags::ENROLLED, true);
    let declaration = Body::Declaration { interval_us: 1_000_000, hold_us: 8_161_617 };
    let answered = ANSWERED;
    let leader = "web0".parse().unwrap();
    let acknowledgement = Body::Heartbeat {
        interval_us: 1_100_000,
        leader: Some(leader),
        conceded: None,
        acknowledged: Some(answered),
    };
    let request = Body::VoteRequest { hold_us: 3_060_607 };
    let vote = Body::Vote { candidate: leader, request: answered, granted: true };
    [
        ("quorum-declaration", quorum_message(Role::Leader, standing, declaration)),
        ("acknowledgement", quorum_message(Role::Follower, standing, acknowledgement)),
        ("vote-request", quorum_message(Role::Candidate, standing, request)),
        ("vote", quorum_message(Role::Follower, standing, vote)),
        ("inquiry", quorum_message(Role::Follower, Flags::CANDIDATE, Body::Inquiry)),
    ]
}

/// Where the sealed datagrams of the description come from.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10));

fn codec(sealed: bool) -> Codec {
    let key = Key::new(std::array::from_fn(|index| u8::try_from(index).unwrap()));
    let keyring = sealed.then(|| Keyring::new(&key, &[]).unwrap());
    Codec::new("default".parse().unwrap(), keyring)
}

#[test]
fn documents_name_the_oldest_rust_that_the_manifest_does() {
    let manifest: toml::Table = include_str!("../Cargo.toml").parse().unwrap();
    let oldest = format!("Rust {}", manifest["package"]["rust-version"].as_str().unwrap());
    let contributing = include_str!("../CONTRIBUTING.md");
    let changes = include_str!("../CHANGELOG.md");
    for (name, text) in [("README", README), ("CONTRIBUTING", contributing), ("CHANGELOG", changes)]
    {
        assert!(text.contains(&oldest), "{name} does not name {oldest}");
    }
}

#[test]
fn the_bytes_in_the_protocol_s_description_are_those_on_the_wire() {
    let declaration =
        message(Role::Leader, Body::Declaration { interval_us: 1_000_000, hold_us: 0 });
    let follower = |body| message(Role::Follower, body);
    let mut expected = BTreeMap::from([
        (
            "heartbeat",
            follower(Body::Heartbeat {
                interval_us: 2_200_000,
                leader: "web0".parse().ok(),
                conceded: None,
                acknowledged: None,
            }),
        ),
        ("proposal", message(Role::Candidate, Body::Proposal)),
        ("declaration", declaration),
        ("sealed-declaration", declaration),
        ("resignation", follower(Body::Resignation { successor: None })),
        ("handover", follower(Body::Resignation { successor: "web0".parse().ok() })),
        ("farewell", follower(Body::Farewell)),
        ("claim", follower(Body::Claim)),
        ("probe", follower(Body::Probe { leader: "web0".parse().unwrap() })),
        (
            "probe-reply",
            follower(Body::ProbeReply { leader: "web0".parse().unwrap(), newest: ANSWERED }),
        ),
        ("ping", follower(Body::Ping { node: None })),
        ("ping-of-one", follower(Body::Ping { node: "web0".parse().ok() })),
        ("pong", follower(Body::Pong { asker: "web0".parse().unwrap(), ping: ANSWERED })),
        ("objection", follower(Body::Objection { newcomer: Incarnation(301) })),
    ]);
    let heard = Echo { node_id: "web0".parse().unwrap(), datagram: ANSWERED };
    let echoes = [heard].into_iter().collect();
    let challenge = Message { echoes, ..message(Role::Leader, Body::Challenge) };
    expected.insert("sealed-challenge", challenge);
    expected.extend(quorum_messages());
    let described = blocks(PROTOCOL, "hex");
    assert_eq!(described.len(), expected.len());
    for (name, hex) in described {
        let bytes: Vec<u8> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let codec = codec(name.starts_with("sealed-"));
        let mut encoded = Vec::new();
        codec.encode(SOURCE, &expected[name], &mut encoded).unwrap();
        assert_eq!(encoded, bytes, "{name}");
        let decoded = codec.decode(SOURCE, &bytes).map(|decoded| decoded.message);
        assert_eq!(decoded, Ok(expected[name]), "{name}");
    }
}

#[test]
fn the_readme_explains_every_key_and_no_other() {
    let explained: Vec<_> = first_cells(section(README, "Configuration"))
        .into_iter()
        .filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`'))
        .collect();
    let keys: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    let sorted = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(explained), sorted(keys));
}

#[test]
fn the_readme_explains_every_command() {
    let help = assert_cmd::Command::cargo_bin("lanelect").unwrap().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<_> =
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(names.contains(&"run"), "{help}");
    for name in names.into_iter().filter(|name| !["", "help"].contains(name)) {
        let explained = first_cells(README).iter().any(|cell| {
            let cell = cell.strip_prefix("`lanelect ").unwrap_or_default();
            cell.split([' ', '`']).next() == Some(name)
        });
        assert!(explained, "{name} is not in the README");
    }
}

#[test]
fn the_readme_s_config_is_valid() {
    let home = tempfile::tempdir().unwrap();
    for (_, config) in blocks(README, "toml") {
        let file = home.path().join("config.toml");
        fs::write(&file, config).unwrap();
        let mut check = assert_cmd::Command::cargo_bin("lanelect").unwrap();
        check.arg("check-config").arg(&file);
        if config.contains("key_file") {
            // It is not on this host.
            let key = home.path().join("key");
            fs::write(&key, "ab".repeat(32)).unwrap();
            fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
            check.arg("--key-file").arg(&key);
        }
        check.assert().success();
    }
}

#[test]
fn the_scripts_in_the_documentation_are_valid() {
    let scripts: Vec<_> = [README, HOOKS]
        .into_iter()
        .flat_map(|text| blocks(text, "sh"))
        .filter(|(_, script)| script.starts_with("#!/bin/sh\n"))
        .collect();
    assert!(scripts.len() >= 2);
    for (_, script) in scripts {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-n", "-c", script]).stdin(Stdio::null());
        assert!(shell.status().unwrap().success(), "{script}");
    }
}

/// The faults of the script: mode, name, file, what is replaced, and by what. A bar in a text has a
/// backslash before it.
fn deliberate_faults() -> Vec<Vec<String>> {
    let (_, table) = MUTATIONS.split_once("<<'TABLE'\n").unwrap();
    let (table, _) = table.split_once("\nTABLE\n").unwrap();
    let cells = |row: &str| {
        let row = row.replace("\\|", "\u{1f}");
        row.split('|').map(|cell| cell.replace('\u{1f}', "|")).collect()
    };
    table.lines().map(cells).collect()
}

#[test]
fn each_deliberate_fault_replaces_a_text_that_is_there_once() {
    for fault in deliberate_faults() {
        let [_, name, file, text, _] = &fault[..] else { panic!("{fault:?} has five cells") };
        let source = fs::read_to_string(file).unwrap();
        assert_eq!(source.matches(&text.replace('~', "\n")).count(), 1, "{name}: {text}");
    }
}

/// Those of available mode that the simulator notices are not told one by one.
#[test]
fn the_deliberate_faults_are_those_of_the_script() {
    let faults = deliberate_faults();
    let told = faults.iter().filter(|fault| fault[0] != "available").map(|fault| &*fault[1]);
    let told: BTreeSet<_> = told.collect();
    let cells = first_cells(section(TESTING, "Deliberate faults"));
    let names = cells.into_iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
    assert_eq!(names.collect::<BTreeSet<_>>(), told);
}

/// The keys of a table of `tests/spec/run`.
fn keys_of(table: &str) -> BTreeSet<&'static str> {
    let (_, rows) = SPEC_RUN.split_once(&format!("\n{table} = {{\n")).unwrap();
    let (rows, _) = rows.split_once("\n}\n").unwrap();
    let key =
        |row: &'static str| row.strip_prefix("    \"")?.split_once("\": ").map(|(key, _)| key);
    rows.lines().filter_map(key).collect()
}

/// What `.ci/run` says of it.
#[test]
fn ci_leaves_two_configurations_of_the_specification_to_the_campaign() {
    let (_, names) = include_str!("../.ci/run").split_once("\ntests/spec/run ").unwrap();
    let (names, _) = names.split_once("\n\n").unwrap();
    let run: BTreeSet<_> = names.split_whitespace().filter(|name| *name != "\\").collect();
    let left = BTreeSet::from(["hooks", "lost-disk"]);
    assert_eq!(&run | &left, keys_of("SMALL"));
    assert!(run.is_disjoint(&left));
}

#[test]
fn the_rules_of_the_argument_are_those_that_the_specification_takes_away() {
    let text = on_one_line(CORRECTNESS).to_lowercase();
    let of_quorum_mode = keys_of("QUORUM_RULES");
    for rule in &of_quorum_mode {
        assert!(text.contains(&format!("*{rule}*")), "{rule} is not in the argument");
    }
    // The script takes a rule away by its name. One that the specification does not have stays.
    let modules = ["Voter", "Lease", "Quorum", "Available"]
        .map(|module| fs::read_to_string(format!("docs/spec/{module}.tla")).unwrap())
        .concat();
    for rule in &(&of_quorum_mode | &keys_of("AVAILABLE_RULES")) {
        assert!(modules.contains(&format!("\"{rule}\"")), "no module has {rule}");
    }
    let told: BTreeSet<_> =
        first_cells(section(SPECIFICATION, "Each rule is needed")).into_iter().collect();
    let heads = BTreeSet::from(["without this rule"]);
    assert_eq!(told, &(&of_quorum_mode | &keys_of("AVAILABLE_RULES")) | &heads);
}

#[test]
fn the_specification_s_configurations_are_those_of_the_script() {
    let told: BTreeSet<_> = first_cells(SPECIFICATION)
        .into_iter()
        .filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`'))
        .collect();
    let small = keys_of("SMALL");
    assert!(told.is_superset(&small), "{:?}", small.difference(&told));
}

/// All source text, with strings that go on in the next line on one line.
fn source(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &source(&path);
        } else {
            let content = fs::read_to_string(&path).unwrap();
            let mut parts = content.split("\\\n");
            text += parts.next().unwrap();
            parts.for_each(|part| text += part.trim_start());
        }
    }
    text
}

/// The parts of a log line that are the same whatever it is about: runs of four words or more
/// without a number, a path, a quotation or a punctuation mark that joins two texts.
fn fixed_parts(line: &str) -> Vec<String> {
    let varies = |word: &&str| {
        word.contains(|c: char| c.is_ascii_digit() || "/`\"…'()".contains(c)) || word.ends_with('@')
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let runs = words.split(|word| varies(word)).flat_map(|run| {
        // After it comes what another message says.
        run.split_inclusive(|word| word.ends_with([':', ';']))
    });
    runs.filter(|run| run.len() > 3)
        .map(|run| run.join(" ").trim_end_matches([',', ':', ';']).to_owned())
        .collect()
}

#[test]
fn log_lines_in_the_documents_are_lines_of_the_log() {
    let source = source(Path::new("src"));
    let mut missing = Vec::new();
    let mut found = 0;
    for (_, block) in [OPERATIONS, HOOKS].iter().flat_map(|text| blocks(text, "text")) {
        for line in block.lines() {
            let Some((level, text)) = line.split_once(' ') else { continue };
            if !["error", "warn", "info"].contains(&level) {
                continue;
            }
            for part in fixed_parts(text) {
                found += 1;
                if !source.contains(&part) {
                    missing.push(part);
                }
            }
        }
    }
    assert!(found > 20, "{found}");
    assert!(missing.is_empty(), "no line of the log has these:\n{}", missing.join("\n"));
}

/// The settings of a config file.
fn params(text: &str) -> Params {
    Config::from_toml(text).unwrap().election
}

#[test]
fn the_times_of_failovers_are_those_of_the_defaults() {
    let available = params("");
    let quorum = "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n";
    let with_grace = params(quorum);
    let without_grace = params(&format!("{quorum}demote_grace = \"0s\"\n"));
    // A leader that vanishes has declared up to an interval before.
    let range = |last: Duration, params: &Params, digits: usize| {
        let first = last.saturating_sub(params.heartbeat_interval);
        format!("{:.digits$} to {:.digits$}", first.as_secs_f64(), last.as_secs_f64())
    };
    let silence = range(available.leader_alive_threshold, &available, 2);
    let pledge = range(with_grace.declaration_hold(), &with_grace, 1);
    for (document, text) in [("README", README), ("operations", OPERATIONS), ("election", ELECTION)]
    {
        let text = on_one_line(text);
        assert!(text.contains(&silence), "{document} does not say {silence}");
        assert!(text.contains(&pledge), "{document} does not say {pledge}");
    }
    let short = range(without_grace.declaration_hold(), &without_grace, 1);
    for text in [OPERATIONS, ELECTION].map(on_one_line) {
        assert!(text.contains(&short), "{short}");
    }
}

/// The Markdown files of the repository, as paths from its root.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories = ["", "docs", "docs/spec"].map(|directory| root.join(directory));
    let files = directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The text outside of fences and of code in a line.
fn without_code(text: &str) -> String {
    let outside = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    outside.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

/// As GitHub derives it from a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_links_between_documents_lead_somewhere() {
    let mut bad = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in without_code(&text).split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.clone(),
                file => document.with_file_name(file),
            };
            let has_part = || {
                let text = fs::read_to_string(&path).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                headings.map(anchor).any(|heading| heading == part)
            };
            if !path.exists() || !part.is_empty() && !has_part() {
                bad.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(bad.is_empty(), "these links lead nowhere: {bad:#?}");
}

/// The cells of the table rows of `text`.
fn rows<'a>(text: &'a str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| line.trim_matches(['|', ' ']).split(" | ").map(str::trim).collect();
    text.lines().filter(|line| line.starts_with("| ")).map(cells).collect()
}

/// What a config file that says nothing comes to.
fn effective(text: &str) -> toml::Table {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.toml");
    fs::write(&file, text).unwrap();
    let mut check = assert_cmd::Command::cargo_bin("lanelect").unwrap();
    let output = check.arg("check-config").arg(&file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

/// A default in the README as a value, if it is one: `"1s"`, 100, `true`.
fn literal(default: &str) -> Option<toml::Value> {
    let value = default.trim_matches('`');
    format!("value = {value}").parse::<toml::Table>().ok()?.remove("value")
}

#[test]
fn the_defaults_in_the_readme_are_those_of_the_program() {
    let in_either_mode = [effective(""), effective(QUORUM)];
    let mut compared = 0;
    for row in rows(section(README, "Configuration")) {
        let [key, .., default] = &row[..] else { continue };
        let key = key.trim_matches('`');
        let Some(told) = literal(&default.replace("GROUP", "default")) else { continue };
        for effective in &in_either_mode {
            let Some(value) = effective.get(key).filter(|_| key != "mode") else { continue };
            let duration = |value: &toml::Value| humantime::parse_duration(value.as_str()?).ok();
            let is_same =
                value == &told || duration(value).is_some() && duration(value) == duration(&told);
            assert!(is_same, "{key} is {told} in the README and {value} in the program");
            compared += 1;
        }
    }
    assert!(compared > 25, "{compared}");
}

const QUORUM: &str = "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n";

#[test]
fn the_derived_defaults_in_the_readme_are_those_of_the_program() {
    let (available, quorum) = (params(""), params(QUORUM));
    let told = |key: &str| {
        let rows = rows(section(README, "Configuration"));
        let row = rows.iter().find(|row| row[0] == format!("`{key}`")).unwrap();
        (*row.last().unwrap()).to_owned()
    };
    let heartbeats = |duration: Duration| duration.div_duration_f64(available.heartbeat_interval);
    let threshold = heartbeats(available.leader_alive_threshold);
    assert_eq!(told("leader_alive_threshold"), format!("{threshold} heartbeats"));
    assert_eq!(heartbeats(quorum.leader_alive_threshold), threshold, "in either mode");
    assert_eq!(heartbeats(available.leader_election_duration), 0.25);
    assert_eq!(told("leader_election_duration"), "a quarter of a heartbeat");
    let grace = heartbeats(available.startup_grace_period);
    assert_eq!(told("startup_grace_period"), format!("{grace} heartbeats"));
    assert_eq!(told("membership_sample_interval"), "1 heartbeat");
    assert_eq!(heartbeats(available.membership_sample_interval), 1.0);

    let fabric = params("preset = \"fabric\"");
    let secs = |duration: Duration| duration.as_secs_f64();
    let preset = format!(
        "{} s heartbeats, {} s alive threshold, {} s election, {} s grace, {} s sample",
        secs(fabric.heartbeat_interval),
        secs(fabric.leader_alive_threshold),
        secs(fabric.leader_election_duration),
        secs(fabric.startup_grace_period),
        secs(fabric.membership_sample_interval)
    );
    assert!(README.contains(&preset), "the README does not say {preset}");
}

/// The rows of a table of times, by their first cell: what they take at the defaults.
fn at_the_defaults<'a>(text: &'a str, first: &str) -> &'a str {
    rows(text).into_iter().find(|row| row[0] == first).unwrap()[2]
}

/// What docs/peers.md says of the way to a member and of the datagrams of followers.
#[test]
fn the_figures_of_peers_are_those_of_the_program() {
    let mut params = params("multicast = \"none\"\npeers = [\"a\", \"b\"]\n");
    let peers = on_one_line(PEERS);
    let most = format!("{:.1} ms by default", params.round_trip_max().as_secs_f64() * 1000.0);
    assert!(peers.contains(&most), "{most}");
    params.leader_election_duration = Duration::from_secs(4);
    params.leader_alive_threshold = Duration::from_secs(3600);
    assert!(peers.contains("`leader_election_duration / 4`"));
    assert_eq!(params.round_trip_max(), Duration::from_secs(1));
    params.leader_election_duration = Duration::from_secs(3600);
    params.leader_alive_threshold = params.heartbeat_interval + Duration::from_secs(3);
    assert!(peers.contains("`(leader_alive_threshold - heartbeat_interval) / 3`"));
    assert_eq!(params.round_trip_max(), Duration::from_secs(1));
    let least = params.report_interval(2).as_secs();
    assert!(least == 2 && peers.contains("every two seconds"), "{least}");
    for hosts in 2..=64_u32 {
        let interval = params.report_interval(hosts as usize - 1);
        let datagrams = f64::from((hosts - 1) * (hosts - 1));
        let intervals = interval.as_secs_f64() / params.heartbeat_interval.as_secs_f64();
        assert!(datagrams / intervals <= f64::from(4 * hosts), "{hosts}");
    }
    assert!(peers.contains("at most 4 × N datagrams"));
}

#[test]
fn the_times_of_the_election_are_those_of_the_defaults() {
    let (available, quorum) = (params(""), params(QUORUM));
    let millis = |duration: Duration| format!("{} ms", duration.as_millis());
    let secs = |duration: Duration| format!("{} s", duration.as_secs_f64());
    let hundredths = |duration: Duration| format!("{:.2} s", duration.as_secs_f64());
    let window = available.leader_alive_threshold - available.heartbeat_interval;
    let vote_patience = quorum.leader_election_duration.max(quorum.lease_term() / 2);
    let told = [
        ("`T`", secs(available.leader_alive_threshold)),
        ("probe gap", millis(Params::probe_spacing(window))),
        ("`E`", millis(available.leader_election_duration)),
        ("start-up grace", secs(available.startup_grace_period)),
        ("sample", secs(available.membership_sample_interval)),
        ("answer time", millis(available.answer_time())),
        ("slot", millis(available.candidacy_slot())),
        ("deference", millis(available.deference())),
        ("yield time", secs(available.yield_time())),
        ("declaration gap", millis(available.declaration_gap())),
        ("report interval", secs(available.report_interval(2))),
        ("`L`", secs(quorum.lease_term())),
        ("`G`", secs(quorum.demote_grace())),
        ("vote's hold", hundredths(quorum.vote_hold())),
        ("declaration's hold", hundredths(quorum.declaration_hold())),
        ("patience for votes", millis(vote_patience)),
        ("before a testimony", hundredths(quorum.declaration_hold())),
    ];
    for (name, time) in told {
        assert_eq!(at_the_defaults(ELECTION, name), time, "{name}");
    }
    let settling = available.settling_time().as_secs_f64();
    assert!(on_one_line(README).contains(&format!("within {settling} seconds by default")));
    assert!(ELECTION.contains(&format!("({settling} s at the defaults)")));
    // A heartbeat announces its interval with the jitter, a tenth.
    let gone = available.report_interval(2).mul_f64(1.1 * 2.5 * 2.0).as_secs_f64();
    let gone = format!("after {gone:.0} ");
    assert!(on_one_line(README).contains(&gone) && OPERATIONS.contains(&gone), "{gone}");
}

/// A range of times such as `0.25 to 1.25 s`, or one time.
fn range_of(text: &str) -> (Duration, Duration) {
    let (numbers, unit) = text.rsplit_once(' ').unwrap();
    let (first, last) = numbers.split_once(" to ").unwrap_or((numbers, numbers));
    let unit = if unit == "ms" { 0.001 } else { 1.0 };
    let time = |number: &str| Duration::from_secs_f64(number.parse::<f64>().unwrap() * unit);
    (time(first), time(last))
}

#[test]
fn how_long_a_leader_may_stall_follows_from_the_settings() {
    let mut checked = 0;
    for row in rows(section(OPERATIONS, "Stalls and loss")) {
        let [_, settings, stall, failover, rate] = &row[..] else { continue };
        if *settings != "the defaults" && !settings.starts_with('`') {
            continue;
        }
        let text = settings.split('`').skip(1).step_by(2).collect::<Vec<_>>().join("\n");
        let params = params(&text);
        let (interval, threshold) = (params.heartbeat_interval, params.leader_alive_threshold);
        let spare = threshold - interval;
        assert_eq!(range_of(stall), (spare, spare), "{settings}");
        assert_eq!(range_of(failover), (spare, threshold), "{settings}");
        let exact = interval.as_secs_f64().recip();
        assert!((rate.parse::<f64>().unwrap() - exact).abs() < 0.05, "{settings}: {exact}");
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_times_of_quorum_mode_are_those_of_the_settings() {
    let defaults = params(QUORUM);
    let quick = params(&format!("{QUORUM}heartbeat_interval = \"100ms\"\ndemote_grace = \"0s\"\n"));
    let secs = |duration: Duration| format!("{:.2} s", duration.as_secs_f64());
    let millis = |duration: Duration| format!("{} ms", duration.as_millis());
    let table = rows(section(OPERATIONS, "Quorum mode"));
    let told = |name: &str| table.iter().find(|row| row[0] == name).unwrap()[2..].to_vec();
    assert_eq!(told("lease"), [defaults.lease_term(), quick.lease_term()].map(millis));
    let (long, short) = (defaults.declaration_hold(), quick.declaration_hold());
    assert_eq!(told("pledge with an acknowledgement"), [secs(long), millis(short)]);
    let (long, short) = (defaults.vote_hold(), quick.vote_hold());
    assert_eq!(told("pledge with a vote"), [secs(long), millis(short)]);
    // The simulator's bound for a group in disorder.
    let bound = defaults.declaration_hold()
        + defaults.leader_alive_threshold
        + defaults.leader_election_duration * 6
        + defaults.heartbeat_interval * 2;
    let bound = format!("({:.1} s at the defaults", bound.as_secs_f64());
    assert!(ELECTION.contains(&bound), "{bound}");
}

#[test]
fn the_sizes_in_the_protocol_are_those_on_the_wire() {
    let size = |codec: &Codec, message: &Message| {
        let mut encoded = Vec::new();
        codec.encode(SOURCE, message, &mut encoded).unwrap();
        encoded.len()
    };
    let body = Body::Declaration { interval_us: 1_000_000, hold_us: 0 };
    let declaration = Message {
        sender: "twelve-bytes".parse().unwrap(),
        // Today, in microseconds.
        incarnation: Incarnation(1_795_000_000_000_000),
        sequence: Sequence(1234),
        ..message(Role::Leader, body)
    };
    let (open, sealed) = (size(&codec(false), &declaration), size(&codec(true), &declaration));
    let text = on_one_line(PROTOCOL);
    assert!(
        text.contains(&format!("is {open} bytes long, or {sealed} sealed")),
        "{open}, {sealed}"
    );
    let datagram = DatagramId { incarnation: declaration.incarnation, ..ANSWERED };
    let echoes = [Echo { node_id: declaration.sender, datagram }].into_iter().collect();
    // The number of an echoed datagram takes two bytes in use, as that of the declaration does.
    let echo = size(&codec(true), &Message { echoes, ..declaration }) - sealed + 1;
    assert!(text.contains(&format!("an id of 12 bytes takes {echo}")), "{echo}");
    for length in [DATAGRAM_MAX, EXTENDED_MAX] {
        assert!(text.contains(&format!("more than {length} bytes")), "{length}");
    }
    let heartbeat = blocks(PROTOCOL, "hex").into_iter().find(|(name, _)| *name == "heartbeat");
    let bytes = heartbeat.unwrap().1.split_whitespace().count();
    assert!(text.contains(&format!("A follower's heartbeat, {bytes} bytes")), "{bytes}");
}

/// Bounds that users run into, and where they are told.
#[test]
fn the_bounds_in_the_documents_are_those_of_the_program() {
    let secs = |duration: Duration| duration.as_secs();
    let told = [
        (README, format!("or a list of up to {INTERFACES_MAX}.")),
        (README, format!("every voter, up to {VOTERS_MAX},")),
        (README, format!("SIGKILL {} s later", secs(KILL_GRACE))),
        (HOOKS, format!("SIGKILL {} seconds later", secs(KILL_GRACE))),
        (HOOKS, format!("cannot be reached for {} seconds", secs(CONNECT_WAIT))),
        (SECURITY, format!("a request has at most {} KiB", LINE_MAX / 1024)),
        (PROTOCOL, format!("table of {},{} members", MEMBERS_MAX / 1000, MEMBERS_MAX % 1000)),
        (SECURITY, format!("holds {},{} members", MEMBERS_MAX / 1000, MEMBERS_MAX % 1000)),
        (OPERATIONS, format!("created again within {} s", secs(RESCAN_INTERVAL))),
    ];
    for (document, words) in told {
        assert!(on_one_line(document).contains(&words), "no document says: {words}");
    }
    assert_eq!(FORGET_AFTER, Duration::from_secs(600));
    assert!(on_one_line(PROTOCOL).contains("forgets a sender ten minutes after"));
    assert_eq!(HOLD_MAX, Duration::from_secs(3600));
    assert!(on_one_line(ELECTION).contains("A voter promises at most an hour"));
}
