//! Events, through a failover.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use lanelect::client::Target;
use lanelect::daemon::control::MAX_WATCHERS;
use serde_json::Value;

use crate::harness::patience::LIMIT;
use crate::harness::scenario;
use crate::server::Server;

struct Listener(BufReader<TcpStream>);

impl Listener {
    fn new(server: &Server<'_>) -> Listener {
        let mut stream = server.connect();
        // HTTP/1.0: the events come without the lengths of pieces between them.
        stream.write_all(b"GET /events HTTP/1.0\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
            assert!(
                !line.to_lowercase().starts_with("content-type") || line.contains("event-stream")
            );
        }
        Listener(lines)
    }

    /// The next event of this name.
    fn next(&mut self, wanted: &str) -> Value {
        loop {
            let name = self.line("event: ");
            let data = self.line("data: ");
            if name == wanted {
                return serde_json::from_str(&data).unwrap();
            }
        }
    }

    /// The name of the next event.
    fn next_name(&mut self) -> String {
        self.line("event: ")
    }

    fn line(&mut self, field: &str) -> String {
        let begun = Instant::now();
        loop {
            // Comments come all the same.
            assert!(begun.elapsed() < LIMIT, "no {field} came");
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the events have ended");
            if let Some(value) = line.strip_prefix(field) {
                return value.trim_end().to_owned();
            }
        }
    }
}

#[test]
fn events_follow_a_failover_and_a_restart_of_the_daemon() {
    scenario(|lan, [a, b]: [_; 2]| {
        lan.start_led_by_first(&[a, b], "");
        let server = Server::start(b);
        let mut listeners = [Listener::new(&server), Listener::new(&server)];
        for listener in &mut listeners {
            let status = listener.next("status");
            assert_eq!(
                (&status["role"], &status["leader"]["node_id"]),
                (&"follower".into(), &a.name.clone().into())
            );
        }
        lan.cut(a);
        for listener in &mut listeners {
            let mut transition = listener.next("transition");
            while transition["role"] != "leader" {
                transition = listener.next("transition");
            }
            assert_eq!(transition["reason"], "election");
        }
        lan.heal();
        lan.sole_leader();
        b.crash();
        let [listener, _] = &mut listeners;
        assert!(listener.next("lost")["error"].is_string());
        b.restart();
        assert_eq!(listener.next("status")["node_id"], *b.name);
        b.pause();
        assert!(listener.next("lost")["error"].as_str().unwrap().contains("did not answer"));
        b.resume();
        assert_eq!(listener.next("status")["node_id"], *b.name);
    });
}

#[test]
fn client_of_a_daemon_that_is_not_there_hears_when_it_comes() {
    scenario(|_, [a]: [_; 1]| {
        let server = Server::start(a);
        let mut listener = Listener::new(&server);
        assert!(listener.next("lost")["error"].as_str().unwrap().contains("no daemon"));
        a.start("");
        assert_eq!(listener.next("status")["node_id"], *a.name);
    });
}

/// The daemon answers questions all the same: nothing else would say that events are missing.
#[test]
fn listener_is_told_once_that_the_daemon_has_no_place_for_a_watcher() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let daemon = Target::at(a.path("control.sock"));
        let watchers: Vec<_> = (0..MAX_WATCHERS).map(|_| daemon.watch().unwrap()).collect();
        let server = Server::start(a);
        let mut early = Listener::new(&server);
        let mut late = Listener::new(&server);
        for listener in [&mut early, &mut late] {
            assert_eq!(listener.next("status")["role"], "leader");
            let why = listener.next("lost")["error"].as_str().unwrap().to_owned();
            assert!(why.starts_with("the daemon refused: "), "{why}");
        }
        drop(watchers);
        for listener in [&mut early, &mut late] {
            assert_eq!(listener.next_name(), "status", "it is told once");
        }
        assert_eq!(a.command(&["maintenance", "on"]), Some(0));
        assert_eq!(early.next("transition")["previous_role"], "leader");
    });
}
