//! What each path says of a leader, of a follower, and of a daemon that is gone or hangs.

use crate::harness::{Host, Lan, quorum_scenario, scenario, wait_until};
use crate::server::Server;

/// The status of each path, in this order.
const STATES: [&str; 6] = ["/leader", "/primary", "/follower", "/replica", "/ready", "/health"];

fn states(server: &Server<'_>, method: &str) -> [u16; 6] {
    STATES.map(|path| {
        let answer = server.ask(method, path, "");
        assert_eq!(answer.body.is_empty(), method == "HEAD", "{method} {path}: {answer:?}");
        assert!(answer.headers.contains("cache-control: no-store"), "{answer:?}");
        answer.status
    })
}

#[test]
fn states_of_a_leader_and_of_a_follower() {
    scenario(|lan, [a, b]: [_; 2]| {
        lan.start_led_by_first(&[a, b], "");
        let servers = [a, b].map(Server::start);
        wait_until("the leader is ready", || servers[0].get("/ready").status == 200);
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert_eq!(states(&servers[0], method), [200, 200, 503, 503, 200, 200]);
            assert_eq!(states(&servers[1], method), [503, 503, 200, 200, 503, 200]);
        }
        let [leader, follower] = servers.each_ref().map(|server| server.get("/leader").json());
        assert_eq!((&leader["node_id"], &leader["leads"]), (&a.name.clone().into(), &true.into()));
        assert_eq!(follower["leader"], *a.name);
        assert_eq!(leader["term"], follower["term"]);
        let readiness = servers[1].get("/ready").json();
        assert_eq!(readiness["readiness"], "not-leader");
        assert_eq!(servers[1].get("/status").json()["node_id"], *b.name);
    });
}

#[test]
fn other_paths_and_other_methods_are_refused() {
    scenario(|_, [a]: [_; 1]| {
        a.start("");
        let server = Server::start(a);
        for path in ["/leaders", "/../etc/passwd", "/page", "/status/"] {
            let answer = server.get(path);
            assert_eq!(answer.status, 404, "{path}");
            assert!(answer.json()["error"].as_str().unwrap().contains(path), "{answer:?}");
        }
        for method in ["POST", "PUT", "DELETE", "TRACE"] {
            let answer = server.ask(method, "/leader", "Content-Length: 0\r\n");
            assert_eq!(answer.status, 405, "{method}");
            assert!(answer.headers.contains("allow: get, head, options"), "{answer:?}");
        }
        for path in ["/", "/status", "/metrics", "/events"] {
            let answer = server.ask("OPTIONS", path, "");
            assert_eq!(answer.status, 204, "{path}");
            assert!(answer.headers.contains("allow: get, head, options"), "{answer:?}");
        }
        assert_eq!(server.ask("OPTIONS", "/nothing", "").status, 404);
    });
}

#[test]
fn server_outlives_its_daemon() {
    scenario(|lan, [a]: [_; 1]| {
        let server = Server::start(a);
        assert_eq!(states(&server, "GET"), [503; 6]);
        assert!(server.get("/leader").json()["error"].as_str().unwrap().contains("no daemon"));
        a.start("");
        lan.sole_leader();
        wait_until("it leads", || server.get("/ready").status == 200);
        a.crash();
        assert_eq!(states(&server, "GET"), [503; 6]);
        assert_eq!(server.get("/status").status, 503);
        a.restart();
        wait_until("it leads again", || server.get("/leader").status == 200);
    });
}

/// A daemon that hangs answers late or not at all: that it led once is no answer.
#[test]
fn daemon_that_hangs_is_no_leader() {
    scenario(|lan, [a]: [_; 1]| {
        a.start("");
        lan.sole_leader();
        let server = Server::start(a);
        wait_until("it leads", || server.get("/leader").status == 200);
        a.pause();
        assert_eq!(states(&server, "GET"), [503; 6]);
        a.resume();
        wait_until("it leads again", || server.get("/leader").status == 200);
    });
}

#[test]
fn in_quorum_mode_a_leader_that_is_cut_off_is_none_when_another_one_leads() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        let voters =
            "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\ndemote_grace = \"500ms\"\n";
        for host in hosts {
            host.start(voters);
        }
        lan.wait_until_all_vote(&hosts);
        let servers = hosts.map(Server::start);
        let old = leader(lan, &hosts, &servers);
        lan.cut(hosts[old]);
        wait_until("another one leads", || {
            let statuses = servers.each_ref().map(|server| server.get("/leader").status);
            // In this order: what the last one says is newer than what the first one said.
            statuses[(old + 1) % 3] == 200 || statuses[(old + 2) % 3] == 200
        });
        assert_eq!(servers[old].get("/leader").status, 503);
        lan.heal();
        lan.sole_leader();
    });
}

/// The place of the leader among the hosts, once its web server says so.
fn leader(lan: &Lan, hosts: &[&Host], servers: &[Server<'_>]) -> usize {
    let leader = lan.sole_leader();
    let at = hosts.iter().position(|host| host.number == leader.number).unwrap();
    wait_until("its web server says so", || servers[at].get("/leader").status == 200);
    at
}
