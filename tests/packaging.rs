//! What the packages say, held to what the sources say. That they install is tested on real hosts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const REMOVAL: &str = include_str!("../packaging/debian/postrm");
const MANIFEST: &str = include_str!("../Cargo.toml");
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
    // What zsh reads lies elsewhere on systems with RPM.
    let rpm: BTreeSet<_> =
        rpm.iter().map(|path| path.replace("zsh/vendor-completions/*", "zsh/**/*")).collect();
    assert_eq!(deb, rpm);
    for word in STAGE.split([' ', '"', '\n']) {
        let path = word.strip_prefix("$root/").unwrap_or(word);
        if path.starts_with("usr/") && !path.starts_with("usr/share/man/man?") {
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
    let purge = || Command::new("sh").args(["-c", &script, "postrm", "purge"]).status().unwrap();
    assert!(purge().success(), "there is nothing to remove");
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
    let script = include_str!("../packaging/rpm/preun").replace(" /", &format!(" {path}/"));
    let script = format!("systemctl() {{ command systemctl --root={path} \"$@\"; }}\n{script}");
    for (left, is_enabled) in [("1", true), ("0", false)] {
        let status = Command::new("sh").args(["-c", &script, "preun", left]).status().unwrap();
        assert!(status.success());
        for unit in enabled {
            assert_eq!(link(unit).is_symlink(), is_enabled, "{unit}, {left} versions are left");
        }
    }
}
