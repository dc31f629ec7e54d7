//! What the packages say, held to what the sources say. That they install is tested on real hosts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const REMOVAL: &str = include_str!("../packaging/debian/postrm");
const RPM_REMOVAL: &str = include_str!("../packaging/rpm/preun");
const MANIFEST: &str = include_str!("../Cargo.toml");
const CONTAINERFILE: &str = include_str!("../packaging/Containerfile");
const STAGE: &str = include_str!("../packaging/stage");

fn metadata(kind: &str) -> toml::Table {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    manifest["package"]["metadata"][kind].as_table().unwrap().clone()
}

/// Where below the staged directory the assets of a package come from.
fn staged(
    assets: &[toml::Value],
    source: impl Fn(&toml::Value) -> &toml::Value,
) -> BTreeSet<String> {
    let sources = assets.iter().map(|asset| source(asset).as_str().unwrap());
    sources
        .filter_map(|path| Some(path.strip_prefix("target/package/root/")?.to_string()))
        .collect()
}

/// The directory of an asset, up to where its pattern begins.
fn directory(pattern: &str) -> &str {
    pattern.split('*').next().unwrap()
}

#[test]
fn both_packages_hold_everything_that_is_staged() {
    let deb = staged(metadata("deb")["assets"].as_array().unwrap(), |asset| &asset[0]);
    let rpm = metadata("generate-rpm");
    let rpm = staged(rpm["assets"].as_array().unwrap(), |asset| &asset["source"]);
    // What zsh and ufw read lies elsewhere on systems with RPM.
    let elsewhere = |path: &String| {
        let path = path.replace("zsh/vendor-completions/*", "zsh/**/*");
        path.replace("etc/ufw/applications.d/lanelect", "etc/**/*")
    };
    let rpm: BTreeSet<_> = rpm.iter().map(elsewhere).collect();
    assert_eq!(deb, rpm);
    for word in STAGE.split([' ', '"', '\n']) {
        let path = word.strip_prefix("$root/").unwrap_or(word);
        let is_file = path.starts_with("usr/") || path.starts_with("etc/");
        if is_file && !path.starts_with("usr/share/man/man?") {
            let held = deb.iter().any(|asset| format!("{path}/").starts_with(directory(asset)));
            assert!(held, "{path} is staged, but in no package");
        }
    }
}

#[test]
fn the_changelog_of_the_package_begins_with_this_version() {
    let changelog = include_str!("../packaging/debian/changelog");
    let revision = metadata("deb")["revision"].as_str().unwrap().to_string();
    let version = format!("lanelect ({}-{revision}) ", env!("CARGO_PKG_VERSION"));
    assert!(changelog.starts_with(&version), "{changelog}");
}

#[test]
fn every_unit_is_staged() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    for entry in fs::read_dir(units).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_instance = name.starts_with("lanelect") && name.contains("@.");
        let named = STAGE.contains(&format!("systemd/{name}"));
        assert!(is_instance || named, "{name} is not staged");
    }
    assert!(STAGE.contains("systemd/lanelect*@.*"));
}

#[test]
fn purge_removes_the_links_of_instances_and_bears_a_host_without_systemd() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    // The same script, below a directory.
    let script = REMOVAL.replace(" /", &format!(" {path}/"));
    let run = |how| Command::new("sh").args(["-c", &script, "postrm", how]).status().unwrap();
    let purge = || run("purge");
    assert!(purge().success(), "there is nothing to remove");
    assert!(run("remove").success(), "there is nothing to remove");
    let settings = root.path().join("run/systemd/system/db.service.d");
    fs::create_dir_all(&settings).unwrap();
    let (ours, other) = (settings.join("lanelect-web.conf"), settings.join("lanelect-own.conf"));
    fs::write(&ours, "[Unit]\nOnFailure=lanelect-yield@web.service\n").unwrap();
    fs::write(&other, "[Unit]\nOnFailure=mail.service\n").unwrap();
    let owed = root.path().join("run/systemd/system/lanelect-web.reload-owed");
    fs::write(&owed, "").unwrap();
    // The last command of the script reloads the systemd of such a host.
    let script = format!("systemctl() {{ :; }}\n{script}");
    let remove = ["-c", &script, "postrm", "remove"];
    assert!(Command::new("sh").args(remove).status().unwrap().success());
    assert!(!ours.exists() && !owed.exists() && other.exists());
    fs::remove_dir_all(root.path().join("run/systemd")).unwrap();
    let wants = root.path().join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    fs::create_dir_all(root.path().join("etc/lanelect")).unwrap();
    for name in ["lanelect@web.service", "other.service"] {
        symlink("/nowhere", wants.join(name)).unwrap();
    }
    assert!(purge().success());
    let left: Vec<_> = fs::read_dir(&wants).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["other.service"]);
    assert!(!root.path().join("etc/lanelect").exists());
}

#[test]
fn the_last_rpm_takes_what_was_enabled_with_it_and_an_upgrade_leaves_it() {
    if Command::new("systemctl").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no systemctl");
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    let (units, wants) = ("usr/lib/systemd/system", "etc/systemd/system/multi-user.target.wants");
    let link = |unit: &str| root.path().join(wants).join(unit.replace('@', "@web"));
    for directory in [units, wants] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    let enabled = ["lanelect@.service", "lanelect-http@.service"];
    for unit in enabled {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(unit);
        fs::copy(source, root.path().join(units).join(unit)).unwrap();
        symlink(format!("/{units}/{unit}"), link(unit)).unwrap();
    }
    // The same script, below a directory.
    let script = RPM_REMOVAL.replace(" /", &format!(" {path}/"));
    let script = format!("systemctl() {{ command systemctl --root={path} \"$@\"; }}\n{script}");
    for (left, is_enabled) in [("1", true), ("0", false)] {
        let status = Command::new("sh").args(["-c", &script, "preun", left]).status().unwrap();
        assert!(status.success());
        for unit in enabled {
            assert_eq!(link(unit).is_symlink(), is_enabled, "{unit}, {left} versions are left");
        }
    }
}

#[test]
fn the_last_rpm_stops_daemons_before_their_hook_runners() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
    // The same script, below a directory, with a systemctl that only prints what it was told.
    let script = RPM_REMOVAL.replace(" /", &format!(" {}/", root.path().display()));
    let script = format!("systemctl() {{ echo \"$@\"; }}\n{script}");
    let output = Command::new("sh").args(["-c", &script, "preun", "0"]).output().unwrap();
    let calls = String::from_utf8(output.stdout).unwrap();
    let stops: Vec<_> = calls.lines().filter(|call| call.starts_with("stop ")).collect();
    // A call waits, and the units of one call stop in any order.
    assert_eq!(stops.len(), 2, "{calls}");
    assert!(stops[0].contains(" lanelect@*.service") && !stops[0].contains("hook"), "{calls}");
    assert!(stops[1].contains(" lanelect-hook@*.service"), "{calls}");
}

/// The elements of an XML file without what is between them, each with its attributes.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut elements) = (Vec::new(), Vec::new());
    let (_, body) = xml.split_once("?>\n").unwrap();
    for tag in body.split('<').skip(1) {
        let tag = tag.split_once('>').unwrap().0;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        elements.push(tag.trim_end_matches('/').to_string());
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?} is not closed");
    elements
}

/// The effective configuration of an empty file.
fn defaults() -> toml::Table {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_lanelect"));
    let output = check.args(["check-config", "--node-id=web0"]).arg(file.path()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().parse().unwrap()
}

/// Group and port that the daemon uses without a config file.
fn default_multicast() -> SocketAddr {
    defaults()["multicast"].as_str().unwrap().parse().unwrap()
}

/// The group that the documents propose for IPv6.
fn ipv6_multicast() -> SocketAddr {
    let example = include_str!("../systemd/example.toml");
    let proposed = example.split('"').find(|text| text.starts_with("[ff")).unwrap();
    proposed.parse().unwrap()
}

#[test]
fn the_firewall_files_open_the_default_port_and_groups() {
    let (v4, v6) = (default_multicast(), ipv6_multicast());
    let (port, v4, v6, v6_port) = (v4.port(), v4.ip(), v6.ip(), v6.port());
    assert_eq!(port, v6_port);
    let firewalld = elements(include_str!("../examples/firewall/lanelect.xml"));
    let ports: Vec<_> = firewalld.iter().filter(|e| e.starts_with("port ")).collect();
    assert_eq!(ports, [&format!("port protocol=\"udp\" port=\"{port}\"")]);
    let groups = format!("destination ipv4=\"{v4}\" ipv6=\"{v6}\"");
    assert!(firewalld.contains(&groups), "{firewalld:?}");
    let nft = include_str!("../examples/firewall/lanelect.nft");
    let to = |group: &str| format!("$lanelect_interfaces {group} udp dport {port} accept");
    let accepted: Vec<_> =
        nft.lines().filter(|l| l.contains("udp") && l.starts_with('i')).collect();
    let rules =
        [to(&format!("ip daddr {v4} ip ttl 255")), to(&format!("ip6 daddr {v6} ip6 hoplimit 255"))];
    assert_eq!(accepted, rules.map(|rule| format!("iifname {rule}")));
    // An application profile for ufw is a section of an INI file.
    let ufw = include_str!("../examples/firewall/lanelect.ufw");
    let mut lines = ufw.lines();
    assert_eq!(lines.next(), Some("[lanelect]"));
    let profile: Vec<_> = lines.map(|line| line.split_once('=').unwrap()).collect();
    assert_eq!(
        profile.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
        ["title", "description", "ports"]
    );
    assert_eq!(profile[2].1, format!("{port}/udp"));
}

#[test]
fn each_call_of_firewall_cmd_in_the_documents_adds_one_thing() {
    let documents = [include_str!("../docs/operations.md"), include_str!("../docs/peers.md")];
    let calls = documents.iter().flat_map(|text| text.split(['\n', '`']));
    let calls: Vec<_> = calls.filter(|call| call.starts_with("firewall-cmd --permanent")).collect();
    assert_eq!(calls.len(), 3);
    for call in calls {
        assert_eq!(call.matches(" --add-").count(), 1, "firewalld refuses more: {call}");
    }
}

/// What follows `word` on each line that begins with it, lines that go on joined.
fn instructions(word: &str) -> Vec<String> {
    let joined = CONTAINERFILE.replace("\\\n", " ");
    let found = joined.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    found.map(|rest| rest.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_image_is_built_as_the_package_by_the_oldest_rust() {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let rust = manifest["package"]["rust-version"].as_str().unwrap();
    // README.md says the same of Debian 13, which is trixie.
    assert!(CONTAINERFILE.contains(&format!("# Debian 13 has Rust {rust}, ")), "{CONTAINERFILE}");
    assert_eq!(instructions("FROM"), ["debian:trixie-slim AS build", "debian:trixie-slim"]);
    let builds: Vec<_> =
        instructions("RUN").into_iter().filter(|run| run.starts_with("cargo ")).collect();
    let script = include_str!("../packaging/build");
    assert_eq!(builds.len(), 1, "{builds:?}");
    let options = builds[0].trim_start_matches("cargo ");
    assert!(script.contains(options), "{options} is not in {script}");
    let copied = instructions("COPY").join(" ");
    // Cargo looks for the targets that the manifest names.
    let directories =
        [("bin", "src"), ("bench", "benches"), ("example", "examples"), ("test", "tests")];
    for (kind, directory) in directories {
        let is_copied = copied.contains(&format!("{directory} {directory}"));
        assert!(is_copied || !manifest.contains_key(kind), "{directory} is not copied");
    }
}

#[test]
fn the_image_has_user_and_paths_of_the_unit_and_the_defaults() {
    let unit = include_str!("../systemd/lanelect@.service");
    let user = instructions("USER").pop().unwrap();
    assert!(unit.contains(&format!("\nUser={user}\n")), "{user}");
    let program = instructions("ENTRYPOINT").pop().unwrap();
    let program = program.trim_start_matches("[\"").trim_end_matches("\"]").to_string();
    assert!(unit.contains(&format!("\nExecStart={program} run ")), "{program}");
    let copied = instructions("COPY");
    assert!(copied.contains(&format!("--from=build /src/target/release/lanelect {program}")));
    assert!(copied.contains(&"examples/hooks /usr/share/lanelect/hooks".to_string()));
    let defaults = defaults();
    let socket = Path::new(defaults["socket"].as_str().unwrap()).parent().unwrap();
    let state = defaults["state_dir"].as_str().unwrap();
    assert_eq!(instructions("VOLUME"), [format!("[\"{}\", \"{state}\"]", socket.display())]);
    let (_, number) = CONTAINERFILE.split_once("useradd --uid ").unwrap();
    let number = number.split(' ').next().unwrap();
    let documents = include_str!("../docs/operations.md");
    assert!(documents.contains(&format!("`{user}`, number {number}")), "{number}");
}
