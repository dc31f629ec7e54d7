//! How it starts and ends.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::harness::scenario;
use crate::server::{ADDRESS, EXECUTABLE, Server};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(EXECUTABLE).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn signals_end_it_in_order() {
    scenario(|_, [a]: [_; 1]| {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let server = Server::start(a);
            assert!(server.log().contains(&format!("listening on {ADDRESS}")), "{}", server.log());
            assert_eq!(server.end(signal), Some(0), "{signal}");
        }
    });
}

#[test]
fn bad_usage_is_refused() {
    for arguments in [
        &["--listen", "7680"][..],
        &["--listen", "localhost"],
        &["--group", "a b"],
        &["--group", "web", "--socket", "/run/x.sock"],
        &["--port", "80"],
    ] {
        let (status, said) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
    }
}

#[test]
fn address_that_is_taken_is_named() {
    scenario(|_, [a]: [_; 1]| {
        let _first = Server::start(a);
        let (status, said) = a.run(|| run(&["--listen", ADDRESS]));
        assert_eq!(status, Some(1));
        assert!(said.contains(&format!("cannot listen on {ADDRESS}")), "{said}");
    });
}
