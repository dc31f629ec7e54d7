//! The pages on clouds and on two sites, held to what the program really does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/pages.rs"]
#[expect(dead_code, reason = "the tests of other documents need more of it")]
mod pages;

use std::fs;
use std::process::Output;
use std::time::Duration;

use lanelect::config::Config;
use lanelect::core::params::Params;

use pages::{blocks, check_config, on_one_line};

const CLOUDS: &str = include_str!("../docs/clouds.md");
const SITES: &str = include_str!("../docs/two-sites.md");
const LIB: &str = include_str!("../examples/hooks/cloud-lib");

/// The round trip between the sites of the page.
const ROUND_TRIP: Duration = Duration::from_millis(80);

/// The warnings, without those for hooks that are installed nowhere here.
fn warnings(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_meant = |line: &&str| !line.contains("cannot find /usr/share/lanelect/hooks/");
    said.lines().filter(is_meant).map(str::to_owned).collect()
}

/// The files of the page on clouds: the first one, and what its other blocks make of it.
fn cloud_files() -> Vec<toml::Table> {
    let mut file = toml::Table::new();
    let blocks = blocks(CLOUDS, "toml").into_iter();
    blocks
        .map(|(_, lines)| {
            file.extend(lines.parse::<toml::Table>().unwrap());
            file.clone()
        })
        .collect()
}

#[test]
fn the_configurations_of_the_pages_are_valid_and_cause_no_warning() {
    let of_clouds = cloud_files().into_iter().map(|file| ("web1", file.to_string()));
    let of_sites = blocks(SITES, "toml").into_iter().map(|(name, file)| (name, file.to_owned()));
    let files: Vec<_> = of_clouds.chain(of_sites).collect();
    assert_eq!(files.len(), 6);
    for (node_id, config) in files {
        let output = check_config(&config, &["--node-id", node_id]);
        assert!(output.status.success(), "{config}\n{output:?}");
        assert_eq!(warnings(&output), [""; 0], "{config}");
    }
}

#[test]
fn the_three_files_differ_only_in_what_is_each_host_s() {
    let files = blocks(SITES, "toml");
    assert_eq!(files.iter().map(|file| file.0).collect::<Vec<_>>(), ["paris1", "lyon1", "geneva1"]);
    let of_a_host = ["node_id", "priority", "candidate"];
    let of_a_hook = ["hook", "hook_timeout", "fence"];
    let common = |config: &str, without: &[&str]| {
        let mut table: toml::Table = config.parse().unwrap();
        table.retain(|key, _| !without.contains(&key));
        table
    };
    let [paris, lyon, geneva] = [files[0].1, files[1].1, files[2].1];
    assert_eq!(common(paris, &of_a_host), common(lyon, &of_a_host));
    let both = [&of_a_host[..], &of_a_hook].concat();
    assert_eq!(common(paris, &both), common(geneva, &of_a_host));
    for (name, config) in files {
        let table: toml::Table = config.parse().unwrap();
        assert_eq!(table["node_id"].as_str(), Some(name));
        let voters = table["voters"].as_array().unwrap();
        assert!(voters.iter().any(|voter| voter.as_str() == Some(name)));
        assert_eq!(table["peers"].as_array().unwrap().len(), voters.len());
    }
}

fn params(text: &str) -> Params {
    Config::from_toml(text).unwrap().election
}

/// The election of the page's files.
fn of_the_files() -> Params {
    let (_, config) = blocks(SITES, "toml")[0];
    params(&config.lines().filter(|line| !line.contains("key_file")).collect::<Vec<_>>().join("\n"))
}

/// After how long a leader that vanishes is replaced, without the round trips of the election.
fn replaced_after(params: &Params) -> String {
    let last = params.declaration_hold();
    let first = last - params.heartbeat_interval;
    format!("{:.1} to {:.1} s", first.as_secs_f64(), last.as_secs_f64())
}

#[test]
fn the_round_trips_of_the_page_follow_from_the_settings() {
    let quorum = "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\ndemote_grace = \"10s\"\n";
    let mut rows = 0;
    let mut has_the_files = false;
    for line in SITES.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches(['|', ' ']).split(" | ").collect();
        let [settings, round_trip, lease, replaced] = &cells[..] else { continue };
        if *settings != "the defaults" && !settings.starts_with('`') {
            continue;
        }
        let keys = settings.split('`').skip(1).step_by(2).collect::<Vec<_>>().join("\n");
        let params = params(&format!("{quorum}{keys}\n"));
        let largest = params.round_trip_max();
        assert_eq!(*round_trip, format!("{} ms", largest.as_millis()), "{settings}");
        assert_eq!(*lease, format!("{} ms", params.lease_term().as_millis()), "{settings}");
        assert_eq!(*replaced, replaced_after(&params), "{settings}");
        has_the_files |= largest == of_the_files().round_trip_max();
        rows += 1;
    }
    assert_eq!(rows, 6);
    assert!(has_the_files, "the settings of the files are in the table");
    assert!(of_the_files().round_trip_max() > ROUND_TRIP);
    assert!(params("").round_trip_max() < ROUND_TRIP, "the defaults would do");
}

#[test]
fn the_times_of_the_page_follow_from_its_files() {
    let (files, defaults) = (of_the_files(), params(""));
    let page = on_one_line(SITES);
    let secs = |duration: Duration| duration.as_secs_f64();
    let spare = |params: &Params| {
        secs(params.leader_alive_threshold - params.heartbeat_interval - ROUND_TRIP)
    };
    for told in [
        format!("takes {} ms.", ROUND_TRIP.as_millis()),
        format!(
            "{:.2} s with the files above, and {} s with the defaults",
            spare(&files),
            spare(&defaults)
        ),
        format!("{:.2} s here. The distance", secs(files.declaration_hold())),
        format!("up to {} ms longer", (ROUND_TRIP / 2).as_millis()),
        format!("promises end {}", replaced_after(&files)),
        format!("three round trips, {} s here", secs(ROUND_TRIP * 3)),
        format!("{} s here, beside the hooks", secs(ROUND_TRIP * 5 / 2)),
        format!(
            "{} `H` by default",
            defaults.leader_alive_threshold.div_duration_f64(defaults.heartbeat_interval)
        ),
        format!(
            "`H` / {} by default",
            defaults.heartbeat_interval.div_duration_f64(defaults.leader_election_duration)
        ),
    ] {
        assert!(page.contains(&told), "the page does not say: {told}");
    }
    let window = Duration::from_millis(800);
    assert_eq!(Params::probe_spacing(window), window / 8, "again every (T − H) / 8");
}

/// What `cloud-lib` has of a constant.
fn constant(name: &str) -> u64 {
    let line = LIB.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    line.unwrap().parse().unwrap()
}

#[test]
fn the_times_of_the_page_on_clouds_follow_from_its_file_and_the_hooks() {
    let files = cloud_files();
    let times = files.iter().map(|file| {
        let time = |key: &str| humantime::parse_duration(file[key].as_str().unwrap()).unwrap();
        let hook = file["hook"].as_str().unwrap();
        let within = hook.split("--within ").nth(1).unwrap().split(' ').next().unwrap();
        let within = Duration::from_secs(within.parse().unwrap());
        // The last call ends a second after its limit at the latest.
        let longest = within + Duration::from_secs(1);
        let (timeout, grace) = (time("hook_timeout"), time("demote_grace"));
        assert!(longest < timeout && timeout * 2 <= grace, "{hook}");
        (within, longest, timeout, grace)
    });
    let (within, longest, timeout, grace) = times.collect::<Vec<_>>()[0];
    let mut first = files[0].clone();
    first.retain(|key, _| !key.starts_with("key_"));
    let params = params(&first.to_string());
    let page = on_one_line(CLOUDS);
    for told in [
        format!(
            "`--within {}` a run of `demoted` takes at most about {} s",
            within.as_secs(),
            longest.as_secs()
        ),
        format!("has {} s and {} s", timeout.as_secs(), grace.as_secs()),
        format!("replaced after {} with that file", replaced_after(&params)),
        format!("`demote_grace` is {}.", grace.as_secs()),
        format!("A call may take {} s", constant("CALL_SECONDS")),
        "25 by default".to_owned(),
        "repeated after 1, 2 and 4 s, and after the fourth failure".to_owned(),
    ] {
        assert!(page.contains(&told), "the page does not say: {told}");
    }
    assert_eq!(constant("FAILURES_MAX"), 4);
    for hook in ["aws-address", "azure-route", "gcp-route"] {
        let script = fs::read_to_string(format!("examples/hooks/{hook}")).unwrap();
        assert!(script.contains("\nwithin=25\n"), "{hook}");
        let usage = script.lines().find_map(|line| line.strip_prefix("# Usage: ")).unwrap();
        assert!(CLOUDS.contains(&format!("```text\n{usage}\n```")), "{usage}");
    }
}

/// The page has each operation of the hook for AWS as a permission, and no other.
#[test]
fn the_permissions_for_aws_are_the_operations_of_the_hook() {
    let (_, policy) = blocks(CLOUDS, "json")[0];
    let policy: serde_json::Value = serde_json::from_str(policy).unwrap();
    let mut allowed = Vec::new();
    for statement in policy["Statement"].as_array().unwrap() {
        let actions = match &statement["Action"] {
            serde_json::Value::Array(actions) => actions.clone(),
            one => vec![one.clone()],
        };
        allowed.extend(actions.iter().map(|action| action.as_str().unwrap().to_owned()));
    }
    let script = include_str!("../examples/hooks/aws-address");
    let mut called: Vec<_> = script
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ec2 "))
        .map(|call| {
            let operation = call.split(' ').next().unwrap();
            let part = |word: &str| word[..1].to_uppercase() + &word[1..];
            format!("ec2:{}", operation.split('-').map(part).collect::<String>())
        })
        .collect();
    for list in [&mut allowed, &mut called] {
        list.sort_unstable();
        list.dedup();
    }
    assert_eq!(allowed, called);
}

#[test]
fn the_hook_unit_restricts_no_network() {
    let unit = include_str!("../systemd/lanelect-hook@.service");
    for directive in ["PrivateNetwork", "RestrictAddressFamilies", "IPAddressDeny", "ProtectSystem"]
    {
        assert!(!unit.contains(directive), "the page says otherwise: {directive}");
    }
}
