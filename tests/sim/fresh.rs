//! Seeds that nobody has run: a range that each commit begins somewhere else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fresh ranges begin at a multiple of this, so that the ranges of two commits hardly ever overlap.
const STRIDE: u64 = 1_000_000;

/// So many places there are for them, all of them above every seed that somebody types.
const PLACES: u64 = 1_000_000_000;

/// Where the fresh range begins, and from what that is derived.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// The first seed.
    pub from: u64,
    /// A commit, or what stands for one.
    pub origin: String,
}

/// The fresh range of the commit that `LANELECT_SIM_COMMIT` names, or that is checked out; where
/// nobody knows a commit, that of the core's sources.
pub fn of_this_commit() -> Fresh {
    let named = env::var("LANELECT_SIM_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(checked_out).map(|commit| format!("commit {commit}"));
    let origin = commit.unwrap_or_else(|| format!("sources {:016x}", hash_of_sources()));
    let place = hash(FNV_OFFSET, origin.as_bytes()) % PLACES;
    Fresh { from: (PLACES + place) * STRIDE, origin }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn checked_out() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

fn hash_of_sources() -> u64 {
    let mut files = files_below(&root().join("src/core"));
    files.sort();
    files.iter().fold(FNV_OFFSET, |so_far, file| {
        let text = fs::read(file).expect("a source file can be read");
        hash(so_far, &text)
    })
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the sources are where they were compiled");
    let paths = entries.map(|entry| entry.expect("a directory can be read").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a.
fn hash(so_far: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(so_far, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}
