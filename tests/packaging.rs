//! What the packages say, held to what the sources say. That they install is tested on real hosts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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
