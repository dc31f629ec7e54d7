//! Every target over every file that a fuzzer found worth keeping, and every datagram in
//! `tests/golden`.

use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use lanelect::config::Config;

use crate::{config, control, decode, election, hook_lines, seal};

/// Fewer inputs than this are no corpus: somebody is looking in the wrong place.
const CORPUS_MIN: usize = 5;

/// Runs a target over its corpus, and over what its fuzzer starts from.
fn replay(target: &str, run: fn(&[u8])) {
    let corpus = files(&format!("corpus/{target}"));
    assert!(corpus.len() >= CORPUS_MIN, "{} files for {target}", corpus.len());
    for file in corpus.into_iter().chain(files(&format!("seeds/{target}"))) {
        // Shown where the test fails.
        println!("{}", file.display());
        run(&fs::read(file).expect("a corpus can be read"));
    }
}

/// What the fuzzer made of these bytes.
fn made_of<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> T {
    T::arbitrary_take_rest(Unstructured::new(bytes)).expect("enough bytes")
}

#[test]
fn decode_finds_nothing_in_its_corpus() {
    replay("decode", decode::run);
}

#[test]
fn seal_finds_nothing_in_its_corpus() {
    replay("seal", |bytes| seal::run(made_of(bytes)));
}

#[test]
fn election_finds_nothing_in_its_corpus() {
    replay("election", |bytes| election::run(made_of(bytes)));
}

#[test]
fn config_finds_nothing_in_its_corpus() {
    replay("config", config::run);
}

#[test]
fn control_finds_nothing_in_its_corpus() {
    replay("control", |bytes| control::run(made_of(bytes)));
}

#[test]
fn hook_lines_finds_nothing_in_its_corpus() {
    replay("hook_lines", |bytes| hook_lines::run(made_of(bytes)));
}

#[test]
fn config_starts_from_valid_files() {
    for file in files("seeds/config") {
        let text = fs::read_to_string(&file).expect("a seed can be read");
        assert!(Config::from_toml(&text).is_ok(), "{}", file.display());
    }
}

#[test]
fn decode_takes_every_golden_datagram() {
    let files = files("../tests/golden");
    let datagrams = files.iter().filter(|file| file.extension().is_some_and(|e| e == "hex"));
    let count = datagrams.inspect(|file| decode::run(&golden(file))).count();
    assert!(count >= CORPUS_MIN, "{count} golden datagrams");
}

/// The bytes of a golden file, as `tests/golden.rs` reads them.
fn golden(file: &Path) -> Vec<u8> {
    let text = fs::read_to_string(file).expect("a golden file can be read");
    let digits = text.lines().filter_map(|line| line.split('#').next());
    let bytes = digits.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect()
}

/// The files in a directory of this package; none where it is not there.
fn files(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory));
    entries.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
}
