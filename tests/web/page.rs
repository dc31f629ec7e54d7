//! The page, in a browser, through a failover.

use serde_json::Value;

use crate::browser::Browser;
use crate::harness::{Host, Lan, quorum_scenario, scenario, wait_until};
use crate::server::{ADDRESS, Server};

const QUORUM: &str =
    "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\ndemote_grace = \"500ms\"\n";

const WIDE: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (360, 740);

/// Pictures at desk and phone width, by day and by night.
fn shoot(browser: &mut Browser, moment: &str) {
    for ((width, height), device) in [(WIDE, "desk"), (PHONE, "phone")] {
        browser.command(&format!("size {width} {height}"));
        for scheme in ["light", "dark"] {
            browser.command(&format!("scheme {scheme}"));
            browser.shoot(&format!("{moment}-{device}-{scheme}"));
        }
    }
}

fn has(tree: &Value, role: &str, name: &str) -> bool {
    let is_it = |node: &Value| node[0] == role && node[1].as_str().unwrap().contains(name);
    tree.as_array().unwrap().iter().any(is_it)
}

#[test]
fn page_follows_a_failover() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        for host in hosts {
            host.start(QUORUM);
        }
        lan.wait_until_all_vote(&hosts);
        let old = lan.sole_leader();
        let onlooker = hosts.into_iter().find(|host| host.number != old.number).unwrap();
        let server = Server::start(onlooker);
        let Some(mut browser) = Browser::start(onlooker) else { return };
        browser.command(&format!("open http://{ADDRESS}/"));
        browser.wait_for("#headline", &format!("{} leads", old.name));
        browser.wait_for("#problems", "key");
        shoot(&mut browser, "before");
        let tree = browser.command("tree");
        assert!(has(&tree, "heading", &format!("{} leads default", old.name)), "{tree}");
        assert!(has(&tree, "image", &format!("{} is alive as leader", old.name)), "{tree}");
        for (role, name) in
            [("main", ""), ("table", ""), ("columnheader", "Priority"), ("cell", "follower")]
        {
            assert!(has(&tree, role, name), "no {role} {name} in {tree}");
        }

        lan.cut(old);
        wait_until("the page shows a successor", || {
            let headline = browser.text("#headline");
            headline.contains(" leads ") && !headline.contains(&old.name)
        });
        browser.wait_for("#announcement", "leads now");
        browser.wait_for("#problems", &format!("{} is gone", old.name));
        browser.wait_for("#history", "in term");
        shoot(&mut browser, "during");

        lan.heal();
        lan.wait_until_all_vote(&hosts);
        wait_until("nobody is missed", || !browser.text("#problems").contains("is gone"));
        shoot(&mut browser, "after");
        assert_fits(&mut browser);

        onlooker.crash();
        browser.wait_for("#connection", "No news since");
        onlooker.restart();
        wait_until("the daemon is back", || browser.text("#connection").is_empty());
        drop(server);
        browser.wait_for("#connection", "the web server does not answer");
        shoot(&mut browser, "lost");
        let server = Server::start(onlooker);
        wait_until("the server is back", || browser.text("#connection").is_empty());
        drop(server);
        assert_no_violation(&mut browser);
    });
}

/// Nothing is cut off, and nothing scrolls sideways, down to 320 pixels.
fn assert_fits(browser: &mut Browser) {
    for width in [320, 360, 768, 1920] {
        browser.command(&format!("size {width} 800"));
        let needed = browser.command("script return document.documentElement.scrollWidth");
        assert!(needed.as_u64().unwrap() <= width, "{width} px: {needed}");
    }
}

/// Requests fail while the daemon or the server is gone. Nothing else may be complained of.
fn assert_no_violation(browser: &mut Browser) {
    let log = browser.command("log");
    for line in log.as_array().unwrap() {
        let line = line.as_str().unwrap();
        let is_ours = line.contains(ADDRESS);
        assert!(!is_ours || line.contains("Failed to load resource"), "{line}");
    }
}

#[test]
fn page_names_peers_that_are_not_reached_and_a_daemon_with_the_same_id() {
    scenario(|lan, [a, b]: [_; 2]| {
        let peers = [a.address(0), b.address(0), "192.0.2.1".to_owned()];
        let lines = format!("multicast = \"none\"\npeers = {peers:?}\n");
        a.start(&lines);
        lan.sole_leader();
        let _server = Server::start(a);
        let Some(mut browser) = Browser::start(a) else { return };
        browser.command(&format!("open http://{ADDRESS}/"));
        browser.wait_for("#problems", "The peer 192.0.2.1: no route");
        let silent = format!("{} is sent to, and not heard", b.address(0));
        browser.wait_for("#problems", &silent);
        assert!(!browser.text("#problems").contains(&a.address(0)), "this host is a peer too");
        b.start(&lines);
        wait_until("the peer is heard", || !browser.text("#problems").contains(&silent));
        b.stop();
        b.start(&format!("node_id = {:?}\n{lines}", a.name));
        assert_eq!(b.exit_status(), Some(1));
        let duplicate = format!("Another daemon with node_id {} was started", a.name);
        browser.wait_for("#problems", &duplicate);
        assert_no_violation(&mut browser);
    });
}

/// What the page would say of a host's status after this change, which is JavaScript.
fn judged(browser: &mut Browser, change: &str) -> Vec<String> {
    let texts = browser.command(&format!(
        "script return (async () => {{ \
         const {{ problems }} = await import('/judge.js'); \
         const status = await (await fetch('/status')).json(); {change}; \
         return problems(status, status).map((it) => `${{it.text}} ${{it.command}}`); }})()"
    ));
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The page of a host that leads, in a browser; none without one.
fn open_page<'a>(lan: &Lan, host: &'a Host) -> Option<(Server<'a>, Browser)> {
    host.start("");
    lan.sole_leader();
    let server = Server::start(host);
    let mut browser = Browser::start(host)?;
    browser.command(&format!("open http://{ADDRESS}/"));
    Some((server, browser))
}

#[test]
fn page_names_a_member_that_is_too_far_away() {
    scenario(|lan, [a]: [_; 1]| {
        let Some((_server, mut browser)) = open_page(lan, a) else { return };
        let mut judged = |change: &str| judged(&mut browser, change);
        let far = "status.round_trip_max_us = 21875; status.members[0].round_trip_us = 80100";
        let told = format!("A datagram to {} and back takes 80.1 ms", a.name);
        assert!(judged(far).iter().any(|text| text.starts_with(&told)));
        let near = "status.round_trip_max_us = 21875; status.members[0].round_trip_us = 21875";
        assert!(!judged(near).iter().any(|text| text.contains("and back takes")));
    });
}

/// The shipped unit sets the socket of the hook-runner by a flag.
#[test]
fn page_checks_a_file_with_the_daemon_s_hook_runner() {
    scenario(|lan, [a]: [_; 1]| {
        let Some((_server, mut browser)) = open_page(lan, a) else { return };
        let mut judged = |change: &str| judged(&mut browser, change);
        let refused = "status.config.reload_failure = 'x'";
        let check = "lanelect check-config /etc/lanelect/default.toml";
        assert!(judged(refused).iter().any(|text| text.ends_with(check)));
        let with_runner = format!("{refused}; status.config.hook_socket = '/run/x.sock'");
        let check = format!("{check} --hook-socket /run/x.sock");
        assert!(judged(&with_runner).iter().any(|text| text.ends_with(&check)));
    });
}

/// Whatever a node calls itself is text.
#[test]
fn names_are_never_markup() {
    scenario(|lan, [a]: [&Host; 1]| {
        let name = "<img/src=x/onerror=alert(1)>&\"'";
        a.start(&format!("node_id = {name:?}\n"));
        lan.sole_leader();
        let _server = Server::start(a);
        let Some(mut browser) = Browser::start(a) else { return };
        browser.command(&format!("open http://{ADDRESS}/"));
        browser.wait_for("#headline", name);
        assert_eq!(browser.text("#members td"), name);
        assert_eq!(browser.command("texts img"), Value::Array(Vec::new()));
        assert_no_violation(&mut browser);
    });
}
