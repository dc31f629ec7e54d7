//! What people read in the sources and documents: its width, which `cargo fmt` does not look at.

#![expect(clippy::unwrap_used, reason = "a test may fail where its own footing gives way")]

use std::fs;
use std::path::{Path, PathBuf};

/// The columns of a line, as in rustfmt.toml.
const COLUMNS: usize = 100;

/// Where sources and documents are.
const PLACES: [&str; 7] = ["src", "tests", "benches", "fuzz", "examples", "docs", "."];

/// The files of a folder and those below; of the root the files alone.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            found.push(path);
        } else if folder != Path::new(".") && !path.ends_with("target") {
            files(&path, found);
        }
    }
}

/// The lines of prose, by number: comments in Rust; in Markdown what is no table, code or heading,
/// all of which cannot be broken.
fn prose<'a>(file: &Path, text: &'a str) -> Vec<(usize, &'a str)> {
    let is_markdown = file.extension().is_some_and(|extension| extension == "md");
    let mut is_code = false;
    let mut is_prose = |line: &str| {
        let words = line.trim_start_matches(['/', '!', ' ']);
        if words.starts_with("```") {
            is_code = !is_code;
        }
        let is_breakable = !is_code && !words.starts_with('|') && words.contains(' ');
        is_breakable && if is_markdown { !line.starts_with('#') } else { line.starts_with("//") }
    };
    (1..).zip(text.lines()).filter(|(_, line)| is_prose(line.trim_start())).collect()
}

#[test]
fn prose_fits_into_the_columns_of_the_code() {
    let mut found = Vec::new();
    PLACES.iter().for_each(|place| files(Path::new(place), &mut found));
    let mut too_long = Vec::new();
    let (mut sources, mut documents) = (0, 0);
    for file in found {
        let is_of_a_kind = |kind| file.extension().is_some_and(|extension| extension == kind);
        sources += usize::from(is_of_a_kind("rs"));
        documents += usize::from(is_of_a_kind("md"));
        if is_of_a_kind("rs") || is_of_a_kind("md") {
            let text = fs::read_to_string(&file).unwrap();
            let lines = prose(&file, &text).into_iter();
            let long = lines.filter(|(_, line)| line.chars().count() > COLUMNS);
            too_long.extend(long.map(|(number, _)| format!("{}:{number}", file.display())));
        }
    }
    assert!(sources > 100 && documents > 10, "{sources} sources, {documents} documents");
    assert!(too_long.is_empty(), "more than {COLUMNS} columns: {too_long:#?}");
}
