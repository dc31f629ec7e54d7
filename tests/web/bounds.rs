//! What clients can do to the web server, and what it can do to the daemon.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use lanelect::client::Target;
use lanelect::daemon::control::MAX_WATCHERS;

use crate::harness::{scenario, wait_until};
use crate::server::{Server, read_all};

/// More than it serves at the same time.
const CROWD: usize = 600;

#[test]
fn huge_headers_are_refused() {
    scenario(|_, [a]: [_; 1]| {
        let server = Server::start(a);
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000));
        for request in [long, many] {
            let answer = server.say(request.as_bytes());
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        }
        let answer = server.say(b"\x16\x03\x01\x02\x00 no HTTP at all\r\n\r\n");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert_eq!(server.get("/").status, 200);
    });
}

/// Idle connections take all places, and are given up one after the other.
#[test]
fn crowd_of_idle_clients_does_not_shut_others_out() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        let mut crowd: Vec<TcpStream> = (0..CROWD).map(|_| server.connect()).collect();
        for stream in &mut crowd {
            // Headers that never end. Those beyond the bound are closed already.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nX: ");
        }
        let answer = |server: &Server<'_>| {
            server.say(b"GET /leader HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        };
        wait_until("there is a place again", || answer(&server).starts_with("HTTP/1.1 200 "));
        for mut stream in crowd {
            read_all(&mut stream);
        }
        // The daemon has not noticed any of it.
        assert!(a.leads());
    });
}

/// Clients that listen take few places at the daemon: one for all.
#[test]
fn listeners_are_bounded_and_take_one_place_at_the_daemon() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        let listen = || {
            let mut stream = server.connect();
            stream.write_all(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            (stream, start)
        };
        let listeners: Vec<_> = (0..64).map(|_| listen()).collect();
        assert!(listeners.iter().all(|(_, start)| start == b"HTTP/1.1 200"));
        assert_eq!(&listen().1, b"HTTP/1.1 503");
        // As many as the daemon has places for: the server has taken one of them.
        let daemon = Target::at(a.path("control.sock"));
        let watchers: Vec<_> = (1..MAX_WATCHERS).map(|_| daemon.watch().unwrap()).collect();
        assert!(daemon.watch().is_err(), "the server takes no place");
        drop(watchers);
        drop(listeners);
        wait_until("there are places again", || &listen().1 == b"HTTP/1.1 200");
    });
}

/// A client that asks and does not read keeps nobody else waiting.
#[test]
fn client_that_reads_nothing_is_given_up() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        let mut deaf = server.connect();
        // Answers fill the buffers of both sides, until neither takes more.
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
        let error = (0..10_000).find_map(|_| deaf.write_all(request.as_bytes()).err());
        // The test would give up too, but later, and by a time-out.
        let kind = error.expect("the server reads without an end").kind();
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
        assert_eq!(server.get("/leader").status, 200);
        assert!(a.leads());
    });
}
