//! Headless Chromium on a host: `browser.py` drives it.

use std::env;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::harness::{Host, wait_until};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/web/browser.py");

/// Where pictures of the page go, if they are wanted.
const SHOTS: &str = "LANELECT_SHOTS";

/// A browser with one page. Dropping it ends it.
pub(crate) struct Browser {
    child: Child,
    /// Its end ends the browser.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Browser {
    /// Starts it on this host. None where there is none; a run that `CI` asks for has to have one.
    pub(crate) fn start(host: &Host) -> Option<Browser> {
        let is_there = Command::new("chromedriver").arg("--version").stdout(Stdio::null()).status();
        if is_there.is_err() && env::var_os("CI").is_none() {
            println!("no chromedriver here: `apt-get install chromium chromium-driver`");
            return None;
        }
        let mut command = Command::new("python3");
        command.arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(host.path("browser.log")).unwrap());
        command.env("HOME", host.path("")).env("TMPDIR", host.path(""));
        let mut child = host.run(|| command.spawn().unwrap());
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Browser { child, commands, answers };
        browser.answer(host);
        Some(browser)
    }

    /// Carries out a command of `browser.py`.
    pub(crate) fn command(&mut self, line: &str) -> Value {
        writeln!(self.commands.as_ref().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["error"].is_null(), "{line}: {answer}");
        answer["ok"].take()
    }

    /// The text of the one element that matches.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let texts = self.command(&format!("texts {selector}"));
        texts[0].as_str().unwrap_or_else(|| panic!("no {selector}")).to_owned()
    }

    /// Waits until that text contains this one.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, selector: &str, wanted: &str) {
        wait_until(&format!("{selector} says {wanted}"), || self.text(selector).contains(wanted));
    }

    /// A picture, where they are wanted.
    pub(crate) fn shoot(&mut self, name: &str) {
        if let Ok(directory) = env::var(SHOTS) {
            self.command(&format!("shot {directory}/{name}.png"));
        }
    }

    fn answer(&mut self, host: &Host) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let log = std::fs::read_to_string(host.path("browser.log")).unwrap();
        assert!(line.contains("ok"), "the browser does not start: {log}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.child.wait();
    }
}
