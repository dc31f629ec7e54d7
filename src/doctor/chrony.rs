//! What chrony's settings say of the rate of the clock.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most files that are read.
const FILES_MAX: usize = 100;

/// As much of a file as is read.
const FILE_MAX: u64 = 64 * 1024;

/// Most names of a directory that are looked at.
const NAMES_MAX: usize = 1_000;

/// How deep files may include others, as in chrony.
const LEVELS_MAX: usize = 10;

/// The last `maxslewrate` in this file and those that it includes. None if there is no such file,
/// or if none of them sets it.
pub(super) fn slew_rate(file: &Path) -> Option<f64> {
    let mut settings = Settings { rate: None, files: 0 };
    settings.read(file, 0);
    settings.rate
}

struct Settings {
    rate: Option<f64>,
    /// How many files were read.
    files: usize,
}

impl Settings {
    fn read(&mut self, file: &Path, level: usize) {
        if level > LEVELS_MAX || self.files == FILES_MAX {
            return;
        }
        self.files += 1;
        text(file).lines().for_each(|line| self.take(line, level + 1));
    }

    /// chrony does not mind upper and lower case. The files of `sourcedir` can only name servers.
    fn take(&mut self, line: &str, level: usize) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let files = match (name.as_str(), words.next()) {
            ("maxslewrate", Some(rate)) => {
                self.rate = rate.parse().ok().or(self.rate);
                return;
            }
            ("include", Some(pattern)) => matching(Path::new(pattern)),
            ("confdir", Some(first)) => of_directories([first].into_iter().chain(words)),
            _ => return,
        };
        files.iter().for_each(|file| self.read(file, level));
    }
}

/// The files whose path matches, by name. Only the last part of the path can be a pattern.
fn matching(path: &Path) -> Vec<PathBuf> {
    let names = path.parent().zip(path.file_name().and_then(OsStr::to_str));
    let Some((directory, pattern)) = names.filter(|(_, name)| name.contains(['*', '?'])) else {
        return vec![path.to_owned()];
    };
    let mut files = names_in(directory);
    files.retain(|name| is_match(name.as_bytes(), pattern.as_bytes()));
    files.sort();
    files.iter().map(|name| directory.join(name)).collect()
}

/// The settings in the directories, by name. Of files with one name, chrony reads that of the
/// first directory.
fn of_directories<'a>(directories: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    let mut files = BTreeMap::new();
    for directory in directories.map(Path::new) {
        for name in names_in(directory).into_iter().filter(|name| name.ends_with(".conf")) {
            files.entry(name).or_insert_with_key(|name| directory.join(name));
        }
    }
    files.into_values().collect()
}

/// The names in a directory that do not begin with a dot.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().take(NAMES_MAX).flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// Whether the name matches a pattern of `*`, `?` and characters that stand for themselves.
fn is_match(name: &[u8], pattern: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', after)), rest) => {
            is_match(name, after) || rest.is_some_and(|(_, rest)| is_match(rest, pattern))
        }
        (Some((expected, after)), Some((found, rest))) => {
            [*found, b'?'].contains(expected) && is_match(rest, after)
        }
        (Some(_), None) => false,
    }
}

/// Empty if it cannot be read. To open a pipe would wait for its writer.
fn text(file: &Path) -> String {
    let mut text = Vec::new();
    if fs::metadata(file).is_ok_and(|metadata| metadata.is_file()) {
        // What was read before an error counts.
        let _ = File::open(file).and_then(|file| file.take(FILE_MAX).read_to_end(&mut text));
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate in `chrony.conf`, where `HOME` stands for the directory of these files.
    fn rate(files: &[(&str, &str)]) -> Option<f64> {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text.replace("HOME", home.path().to_str().unwrap())).unwrap();
        }
        slew_rate(&home.path().join("chrony.conf"))
    }

    #[test]
    fn last_rate_that_is_set_counts() {
        let main = |text| rate(&[("chrony.conf", text)]);
        assert_eq!(main("pool x\n# maxslewrate 1\nMaxSlewRate 500 # low\n"), Some(500.0));
        assert_eq!(main("maxslewrate 1\nmaxslewrate 2.5"), Some(2.5));
        assert_eq!(main("pool x\nmaxslewrate many\nmaxslewrate"), None);
        assert_eq!(rate(&[]), None);
    }

    #[test]
    fn files_of_a_directory_are_read_by_name_where_it_is_named() {
        let b = ("conf.d/b.conf", "maxslewrate 20");
        let files = [("conf.d/a.conf", "maxslewrate 10"), b, ("conf.d/c.txt", "maxslewrate 30")];
        let with = |main| rate(&[&[("chrony.conf", main)], &files[..]].concat());
        assert_eq!(with("maxslewrate 1\nConfDir HOME/conf.d\n"), Some(20.0));
        assert_eq!(with("confdir HOME/conf.d\nmaxslewrate 1\n"), Some(1.0));
        assert_eq!(with("sourcedir HOME/conf.d\nconfdir HOME/none\nconfdir"), None);
    }

    #[test]
    fn file_of_the_first_directory_hides_those_of_its_name() {
        let main = ("chrony.conf", "confdir HOME/etc HOME/run HOME/usr");
        let usr = [("usr/a.conf", "maxslewrate 1"), ("usr/b.conf", "maxslewrate 2")];
        assert_eq!(rate(&[&[main, ("run/b.conf", "")], &usr[..]].concat()), Some(1.0));
        assert_eq!(rate(&[&[main, ("run/c.conf", "maxslewrate 3")], &usr[..]].concat()), Some(3.0));
    }

    #[test]
    fn included_files_are_read_by_name_or_pattern() {
        let files = [("d/a.conf", "maxslewrate 10"), ("d/b.cnf", "maxslewrate 20")];
        let with = |main| rate(&[&[("chrony.conf", main)], &files[..]].concat());
        assert_eq!(with("include HOME/d/b.cnf"), Some(20.0));
        assert_eq!(with("include HOME/d/*.conf"), Some(10.0));
        assert_eq!(with("include HOME/d/?.c*nf"), Some(20.0));
        assert_eq!(with("include HOME/d/*.text\ninclude HOME/none/*"), None);
    }

    #[test]
    fn files_that_include_each_other_come_to_an_end() {
        let main = ("chrony.conf", "include HOME/a\nmaxslewrate 7");
        assert_eq!(rate(&[main, ("a", "include HOME/a\ninclude HOME/a\n")]), Some(7.0));
    }
}
