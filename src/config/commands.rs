//! Looks for the programs that the commands of hook, fence and checks name.
//!
//! A command is a line for `/bin/sh -c`, and only the shell knows what it runs. But most begin with
//! the path of a script. What is wrong with that is a warning, and no error. The daemon starts and
//! follows without its hook, the script may be on a file system that is mounted later, and another
//! process may run the command and see other files.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{AccessFlags, eaccess, geteuid};

use super::Config;
use super::trust::{Writable, replaceable, user_name};

/// What ends a word in the shell, besides blanks.
const OPERATORS: &[char] = &[';', '&', '|', '<', '>', '(', ')'];

/// What gives a word another meaning in the shell. `=` makes it an assignment.
const SYNTAX: &[char] =
    &['$', '`', '\\', '"', '\'', '*', '?', '[', ']', '{', '}', '~', '#', '!', '='];

impl Config {
    /// What is wrong with the programs that hook, fence and checks begin with, if this process runs
    /// them. Each warning begins with the key.
    pub fn program_warnings(&self) -> Vec<String> {
        let commands = [
            ("hook", &self.hook),
            ("fence", &self.fence),
            ("check", &self.check),
            ("check_leader", &self.check_leader),
        ];
        let problems = commands.into_iter().filter_map(|(key, command)| {
            let problem = problem(program(command.as_ref()?)?)?;
            Some(format!("{key}: {problem}"))
        });
        problems.collect()
    }
}

/// The first word of a command line, if it is a path that the shell takes as it is.
fn program(command: &str) -> Option<&str> {
    let ends = |c: char| c.is_whitespace() || OPERATORS.contains(&c);
    let word = command.trim_start().split(ends).next()?;
    (word.contains('/') && !word.contains(SYNTAX)).then_some(word)
}

fn problem(program: &str) -> Option<String> {
    let path = Path::new(program);
    if path.is_relative() {
        return Some(format!(
            "{program} is relative to the directory in which the process was started, which is / \
             under systemd; give the absolute path"
        ));
    }
    match fs::metadata(path) {
        Ok(metadata) => not_executable(path, &metadata).or_else(|| exposed(path, &metadata)),
        Err(error) => Some(format!(
            "cannot find {program}, and every run fails: {error}; correct the path, or install \
             the program"
        )),
    }
}

fn not_executable(path: &Path, metadata: &Metadata) -> Option<String> {
    let program = path.display();
    if metadata.is_dir() {
        return Some(format!(
            "{program} is a directory, and every run fails; name the program in it"
        ));
    }
    let mode = metadata.mode() & 0o7777;
    let errno = eaccess(path, AccessFlags::X_OK).err()?;
    Some(format!(
        "cannot execute {program} (mode {mode:04o}), and every run fails: {}; run: chmod +x \
         {program}, or mount its file system without noexec",
        errno.desc()
    ))
}

fn exposed(path: &Path, metadata: &Metadata) -> Option<String> {
    let (program, user) = (path.display(), user_name(geteuid()));
    if let Some(by) = Writable::by_others(metadata) {
        return Some(format!(
            "other users can write {program} ({by}), which runs as {user}; run: {}",
            by.remedy(path)
        ));
    }
    let (directory, by) = replaceable(path)?;
    Some(format!(
        "other users can replace {program}, which runs as {user}, because they can write the \
         directory {} ({by}); move the program to a directory that only root can write, such as \
         /etc/lanelect",
        directory.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_of_a_command_is_its_first_word_if_that_is_a_path() {
        for (command, path) in [
            ("/etc/hook", Some("/etc/hook")),
            ("  /etc/hook eth0 'a b'\n", Some("/etc/hook")),
            ("/etc/hook;true", Some("/etc/hook")),
            ("/etc/hook>/dev/null 2>&1", Some("/etc/hook")),
            ("./hook", Some("./hook")),
            ("echo $LANELECT_EVENT", None),
            ("exec /etc/hook", None),
            ("\"/etc/my hook\"", None),
            ("$HOME/hook", None),
            ("~/hook", None),
            ("A=/etc/hook env", None),
            ("/etc/hook*", None),
            ("(/etc/hook)", None),
            ("! /etc/hook", None),
        ] {
            assert_eq!(program(command), path, "{command}");
        }
    }
}
