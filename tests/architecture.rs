//! Keeps the layout true: who may use whom, and where the outside world may be touched.
//!
//! Read from the sources as text, comments and test modules left out. A test that fails here names
//! the file and the line; where the line is right and the rule is not, change the table below, with
//! a reason.

#![expect(clippy::unwrap_used, reason = "a test may fail where its own footing gives way")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The web server beside the daemon: a program of its own, in `src/bin`.
const WEB_SERVER: &str = "lanelect-http";

/// Every module of the library and what it may use of the others:
/// `types, time ← wire ← core ← daemon ← main`, and `control_api ← client ← commands ← main`.
const MAY_USE: [(&str, &[&str]); 20] = [
    ("types", &[]),
    ("time", &[]),
    ("wire", &["types"]),
    ("core", &["types", "time", "wire"]),
    // Who votes, and who is better, are settings whose rules are the core's.
    (
        "config",
        &[
            "types",
            "core::params",
            "core::quorum",
            "core::rank",
            "wire::auth",
            "control_api::DEFAULT_GROUP",
            "control_api::default_socket",
        ],
    ),
    // A status tells the mode, and whether the settings suit the way to the members.
    ("control_api", &["types", "core::hook", "core::params", "core::status"]),
    ("client", &["types", "control_api"]),
    (
        "commands",
        &[
            "types",
            "core::hook",
            "core::params::Mode",
            "core::status",
            "control_api",
            "client",
            "printable",
            // A command that waits has a limit, and one that shows a status says how old it is.
            "os",
            "time",
        ],
    ),
    ("printable", &["types"]),
    // Lines on a terminal have the time.
    ("logging", &["printable", "os"]),
    // The service manager is told who leads.
    ("os", &["types", "time", "core::status"]),
    // What hooks print goes where the log goes. A report of theirs is a part of the status.
    ("hooks", &["types", "time", "config", "control_api", "core::hook", "logging", "os"]),
    (
        "daemon",
        &["types", "time", "wire", "core", "config", "control_api", "logging", "os", "hooks"],
    ),
    ("announce", &["os"]),
    // It looks at what a daemon does, with the daemon's own eyes.
    (
        "doctor",
        &[
            "types",
            "time",
            "wire",
            "core::hook",
            "core::params",
            "core::status",
            "config",
            "control_api",
            "client",
            "daemon",
            "os",
            "printable",
        ],
    ),
    // It runs as long as the daemon allows, by the daemon's clock.
    ("exec", &["time", "control_api", "client", "os", "printable"]),
    // The demonstration starts whole daemons, and commands them as a user does.
    ("demo", &["time", "client", "commands", "os"]),
    // The shapes of the command line end up as configuration; only `main` uses `cli`.
    ("cli", &["types", "config"]),
    // A binary of its own knows of a daemon what the control socket tells.
    (
        WEB_SERVER,
        &["types", "core::params", "core::status", "control_api", "client", "os", "printable"],
    ),
    // `main` dispatches.
    (
        "main",
        &[
            "announce",
            "cli",
            "client",
            "commands",
            "config",
            "daemon",
            "demo",
            "doctor",
            "exec",
            "hooks",
            "logging",
            "printable",
            "types",
        ],
    ),
];

/// Modules that compute and touch nothing outside: no socket, file, process, environment variable,
/// thread, clock or random source.
const PURE: [&str; 4] = ["types", "time", "wire", "core"];

/// What pure modules may use of the standard library. Of `std::net` they use addresses alone, of
/// `std::hash` what draws no chance, and of `Instant` the type, as `one_file_reads_clocks` checks.
const PURE_STD: [&str; 15] = [
    "cmp",
    "collections",
    "error::Error",
    "fmt",
    "hash::Hash",
    "hash::Hasher",
    "iter",
    "mem",
    "net::IpAddr",
    "net::Ipv4Addr",
    "net::Ipv6Addr",
    "ops",
    "str",
    "time::Duration",
    "time::Instant",
];

/// What pure modules may use of other crates: data structures, encoding, hashing, and a generator
/// that is seeded from outside. A program that embeds the core depends on these alone.
const PURE_CRATES: [&str; 8] =
    ["arrayvec", "fastrand", "hmac", "postcard", "serde", "sha2", "thiserror", "zeroize"];

/// Words by which a clock is read, and the only file that may.
const CLOCK_WORDS: [&str; 5] = ["SystemTime", "Instant", "ClockId", "clock_gettime", "CLOCK_"];
const CLOCK: &str = "src/os/clock.rs";

/// The only other file that may name the type of one, and what of that reads the clock.
const CONVERSION: &str = "src/time.rs";
const CLOCK_READS: [&str; 2] = ["Instant::now", ".elapsed("];

/// The columns of a line, as in rustfmt.toml.
const COLUMNS: usize = 100;

/// Those that may sleep, and have no event loop: the demonstration waits for what its daemons show,
/// announcements are repeated after a pause, a command looks again until a change is complete, and
/// the doctor waits for answers.
const SLEEPERS: [&str; 4] = ["announce", "commands", "demo", "doctor"];

/// One line of code, without comments.
struct Line {
    file: String,
    module: String,
    number: usize,
    code: String,
}

impl Line {
    fn place(&self) -> String {
        format!("{}:{}: {}", self.file, self.number, self.code.trim())
    }

    /// What follows `prefix` in each of its occurrences that does not end a longer word.
    fn after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.code.match_indices(prefix).filter_map(move |(at, _)| {
            let longer = self.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            (!longer).then(|| &self.code[at + prefix.len()..])
        })
    }

    fn has_word(&self, word: &str) -> bool {
        let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric) || word.ends_with('_');
        self.after(word).any(ends)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `directory`, without what is built.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let built = name == "target" || name == ".git" || name == "corpus" || name == "artifacts";
        if entry.file_type().unwrap().is_dir() && !built {
            found.extend(files(&entry.path()));
        } else if entry.file_type().unwrap().is_file() && name != ".git" {
            found.push(entry.path());
        }
    }
    found
}

fn name_of(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_string()
}

/// The code of the library and the binary, without comments and test modules.
fn code() -> Vec<Line> {
    let mut lines = Vec::new();
    for path in files(&root().join("src")) {
        let file = name_of(&path);
        let inside = file.strip_prefix("src/bin/").or(file.strip_prefix("src/")).unwrap();
        let module = inside.split('/').next().unwrap().trim_end_matches(".rs").to_string();
        if file.contains("/tests/") || file.ends_with("/tests.rs") || module == "lib" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in outside_tests(&text) {
            let code = line.split("//").next().unwrap_or_default().to_string();
            lines.push(Line { file: file.clone(), module: module.clone(), number, code });
        }
    }
    assert!(lines.len() > 1000, "the sources were not found");
    lines
}

/// The numbered lines of a file, without each module that is compiled for tests alone.
fn outside_tests(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().zip(1..).map(|(line, number)| (number, line)).peekable();
    while let Some((number, line)) = lines.next() {
        if line != "#[cfg(test)]" {
            kept.push((number, line));
        } else if lines.next().is_some_and(|(_, item)| item.ends_with('{')) {
            let _ = lines.by_ref().find(|(_, line)| *line == "}");
        }
    }
    kept
}

fn manifest() -> toml::Table {
    fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap()
}

fn complain(rule: &str, bad: &[String]) {
    assert!(bad.is_empty(), "{rule}:\n  {}", bad.join("\n  "));
}

fn may_use(module: &str) -> &'static [&'static str] {
    MAY_USE.iter().find(|(name, _)| *name == module).map_or(&[], |(_, others)| others)
}

/// Whether `path` is one of `allowed` or inside one.
fn is_within(path: &str, allowed: &[&str]) -> bool {
    allowed.iter().any(|prefix| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[test]
fn every_module_is_in_the_table() {
    let modules: BTreeSet<String> = code().into_iter().map(|line| line.module).collect();
    let bad: Vec<String> = modules
        .into_iter()
        .filter(|module| MAY_USE.iter().all(|(name, _)| name != module))
        .collect();
    complain("say in MAY_USE what these modules may use", &bad);
}

/// How modules name each other.
const PREFIXES: [&str; 2] = ["crate::", "lanelect::"];

#[test]
fn dependencies_point_one_way() {
    let mut bad = Vec::new();
    for line in code() {
        // Its own modules are the web server's own affair.
        let prefixes = if line.module == WEB_SERVER { &["lanelect::"][..] } else { &PREFIXES };
        for prefix in prefixes {
            for used in line.after(prefix) {
                let inside = line.module != "main" && is_within(used, &[&line.module]);
                // `use lanelect::{daemon, logging}`: each of them.
                let names: Vec<&str> = match used.strip_prefix('{') {
                    Some(list) => list.split(['}', ';']).next().unwrap().split(", ").collect(),
                    None => vec![used],
                };
                let allowed = names.iter().all(|name| is_within(name, may_use(&line.module)));
                if !inside && !allowed {
                    bad.push(line.place());
                }
            }
        }
    }
    complain("these use modules that theirs may not use", &bad);
}

#[test]
fn the_core_and_the_wire_touch_nothing_outside() {
    let foreign: Vec<String> = manifest()["dependencies"]
        .as_table()
        .unwrap()
        .keys()
        .map(|name| name.replace('-', "_"))
        .filter(|name| !PURE_CRATES.contains(&name.as_str()))
        .map(|name| format!("{name}::"))
        .collect();
    assert!(foreign.contains(&"mio::".to_string()));
    let mut bad = Vec::new();
    for line in code().into_iter().filter(|line| PURE.contains(&line.module.as_str())) {
        let std_is_pure = line.after("std::").all(|used| {
            // `use std::net::{IpAddr, Ipv4Addr}`: each of them.
            let several = used.split_once("::{").and_then(|(module, list)| {
                let (list, _) = list.split_once('}')?;
                Some((module, list))
            });
            match several {
                Some((module, list)) => {
                    list.split(", ").all(|name| is_within(&format!("{module}::{name}"), &PURE_STD))
                }
                None => is_within(used, &PURE_STD),
            }
        });
        if !std_is_pure || foreign.iter().any(|name| line.after(name).next().is_some()) {
            bad.push(line.place());
        }
    }
    complain("these reach outside from modules that only compute", &bad);
}

#[test]
fn core_alone_depends_on_its_own_crates_only() {
    let manifest = manifest();
    for kind in ["build-dependencies", "target"] {
        assert!(!manifest.contains_key(kind), "count the crates of `{kind}` here, too");
    }
    let is_optional = |how: &toml::Value| how.get("optional").is_some_and(|is| is == &true.into());
    let always = manifest["dependencies"].as_table().unwrap().iter();
    let always: Vec<&str> =
        always.filter(|(_, how)| !is_optional(how)).map(|(name, _)| name.as_str()).collect();
    let mut listed = PURE_CRATES;
    listed.sort_unstable();
    assert_eq!(always, listed);
}

/// Packages build the daemon with this feature alone: nothing of the web server comes with it.
#[test]
fn the_daemon_has_no_runtime_of_the_web_server() {
    let manifest = manifest();
    let features = manifest["features"].as_table().unwrap();
    let of = |feature: &str| features[feature].to_string();
    for needed in ["tokio", "hyper", "http-body-util"] {
        assert!(of("http").contains(needed));
        assert!(!of("daemon").contains(needed) && !of("client").contains(needed), "{needed}");
    }
    assert!(!of("daemon").contains("\"http\""));
}

/// Whether a line that names the type of a clock reads it.
fn reads_clock(line: &Line) -> bool {
    CLOCK_READS.iter().any(|read| line.code.contains(read))
        || CLOCK_WORDS.iter().any(|word| *word != "Instant" && line.has_word(word))
}

#[test]
fn one_file_reads_clocks() {
    let bad: Vec<String> = code()
        .iter()
        .filter(|line| line.file != CLOCK && CLOCK_WORDS.iter().any(|word| line.has_word(word)))
        .filter(|line| line.file != CONVERSION || reads_clock(line))
        .map(Line::place)
        .collect();
    complain("take a `now: Time` instead of reading a clock", &bad);
}

#[test]
fn nothing_sleeps() {
    let bad: Vec<String> = code()
        .iter()
        .filter(|line| !SLEEPERS.contains(&line.module.as_str()))
        .filter(|line| line.code.contains("thread::sleep") || line.code.contains("park_timeout"))
        .map(Line::place)
        .collect();
    complain("wait in the event loop instead of sleeping", &bad);
}

#[test]
fn only_main_reads_the_command_line() {
    let bad: Vec<String> = code()
        .iter()
        .filter(|line| !["cli", "main"].contains(&line.module.as_str()))
        .filter(|line| line.file != format!("src/bin/{WEB_SERVER}/main.rs"))
        .filter(|line| line.after("clap::").next().is_some() || line.code.contains("env::args"))
        .map(Line::place)
        .collect();
    complain("command-line types belong in cli", &bad);
}

/// A path below somebody's home directory works on one machine only.
#[test]
fn no_file_names_a_path_of_a_developers_machine() {
    let homes: Vec<String> =
        ["home", "root", "Users", "work"].iter().map(|name| format!("/{name}/")).collect();
    let mut bad = Vec::new();
    for path in files(root()) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (line, number) in text.lines().zip(1..) {
            let starts = |at: usize| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !(c.is_alphanumeric() || "._-~/$}".contains(c)))
            };
            let named = |home: &String| line.match_indices(home).any(|(at, _)| starts(at));
            if homes.iter().any(named) {
                bad.push(format!("{}:{number}: {}", name_of(&path), line.trim()));
            }
        }
    }
    complain("these name a path of one machine", &bad);
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

/// `cargo fmt` does not look at it.
#[test]
fn prose_fits_into_the_columns_of_the_code() {
    let mut bad = Vec::new();
    let (mut sources, mut documents) = (0, 0);
    for path in files(root()) {
        let is_of_a_kind = |kind| path.extension().is_some_and(|extension| extension == kind);
        sources += usize::from(is_of_a_kind("rs"));
        documents += usize::from(is_of_a_kind("md"));
        if is_of_a_kind("rs") || is_of_a_kind("md") {
            let text = fs::read_to_string(&path).unwrap();
            let lines = prose(&path, &text).into_iter();
            let long = lines.filter(|(_, line)| line.chars().count() > COLUMNS);
            bad.extend(long.map(|(number, _)| format!("{}:{number}", name_of(&path))));
        }
    }
    assert!(sources > 100 && documents > 10, "{sources} sources, {documents} documents");
    complain(&format!("these lines have more than {COLUMNS} columns"), &bad);
}

/// Whether an `if let` or `while let` is joined to another condition. The text is one line, without
/// what stands in quotes.
fn chains_a_let(text: &str) -> bool {
    let after = ["if let ", "while let "].iter().find_map(|words| text.split_once(words));
    let mut depth = 0;
    let is_joined = after.is_some_and(|(_, condition)| {
        condition.char_indices().any(|(at, character)| {
            depth += i32::from("([{".contains(character)) - i32::from(")]}".contains(character));
            depth == 0 && condition[at..].starts_with(" && ")
        })
    });
    is_joined || text.contains("&& let ")
}

/// The conditions in a source text, one line each, without what stands in quotes.
fn conditions(text: &str) -> Vec<String> {
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim())
        .map(|line| line.split('"').step_by(2).collect())
        .collect();
    let begins = |line: &String| line.contains(" let ") || line.starts_with("if ");
    let from = |at: usize| {
        let end = lines[at..].iter().position(|line| line.ends_with(['{', '}', ';']));
        lines[at..=at + end.unwrap_or(0)].join(" ")
    };
    (0..lines.len()).filter(|at| begins(&lines[*at])).map(from).collect()
}

/// The oldest Rust that is supported cannot compile that, and Clippy looks for newer functions of
/// the library only.
#[test]
fn no_let_is_chained() {
    let mut bad = Vec::new();
    for path in files(root()).iter().filter(|path| path.extension().is_some_and(|it| it == "rs")) {
        let found = conditions(&fs::read_to_string(path).unwrap());
        let chained = found.into_iter().filter(|condition| chains_a_let(condition));
        bad.extend(chained.map(|condition| format!("{}: {condition}", name_of(path))));
    }
    complain("use `match` with a guard", &bad);
    for text in [
        "if let Some(a) = b\n    && c\n{",
        "} else if a && let Some(b) = c {",
        "let x = if let Some(a) = b && c {",
        "if let Some(a) = self\n    .first()\n    && c\n{",
        "if let A { b, .. } = c\n    && b == \"&& {\"\n{",
        "while let Some(a) = b && c {",
    ] {
        assert!(conditions(text).iter().any(|condition| chains_a_let(condition)), "{text}");
    }
    for text in ["if let Some(a) = b.filter(|b| b.c && d) {\n    && e;", "let a = b\n    && d;"] {
        assert!(!conditions(text).iter().any(|condition| chains_a_let(condition)), "{text}");
    }
}

#[test]
fn test_modules_and_only_they_are_left_out() {
    let text =
        "use a;\n#[cfg(test)]\nmod tests;\nfn f() {\n}\n#[cfg(test)]\nmod tests {\n    x\n}\nlast";
    let kept: Vec<&str> = outside_tests(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(kept, ["use a;", "fn f() {", "}", "last"]);
    assert_eq!(outside_tests(text).last(), Some(&(10, "last")));
}

#[test]
fn words_are_matched_as_words() {
    let line = |code: &str| Line {
        file: String::new(),
        module: String::new(),
        number: 0,
        code: code.to_string(),
    };
    assert!(line("Instant::now()").has_word("Instant"));
    assert!(!line("Instantly").has_word("Instant"));
    assert!(!line("AnInstant").has_word("Instant"));
    assert!(line("CLOCK_BOOTTIME").has_word("CLOCK_"));
    assert_eq!(line("core::mem x").after("re::").count(), 0);
    assert!(is_within("core::params::Params", &["core::params"]));
    assert!(!is_within("core::paramsets", &["core::params"]));
}
