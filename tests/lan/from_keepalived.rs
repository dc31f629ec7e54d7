//! The way over from keepalived, as `docs/from-keepalived.md` tells it: its examples, before, while
//! and after the change, on two hosts, with a client that asks for the address all the time.
//!
//! keepalived runs its scripts as other users, so it needs the machine's root. Gaps are printed and
//! not asserted.

mod observers;
mod server;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use observers::{Client, Holders};
use server::{Server, Stage, provide_systemctl, start_proxy};

use crate::harness::inside::Needs;
use crate::harness::lan::scenario_with;
use crate::harness::{Host, Lan, wait_until};

/// The first address of every example, and what follows it.
const ADDRESS: &str = "10.0.0.100";
const ADDRESS_V6: &str = "2001:db8::100";
const SECOND_ADDRESS: &str = "10.0.0.101";

/// The programs of the examples.
const TOOLS: [&str; 4] = ["keepalived", "curl", "python3", "systemctl"];

fn needs() -> Needs {
    Needs { real_root: true, trial: can_run, ..Needs::default() }
}

fn can_run() -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("keepalived runs no script in a user namespace".into());
    }
    if !Path::new("/proc/net/if_inet6").exists() {
        return Err("there is no IPv6 here".into());
    }
    match TOOLS.into_iter().find(|tool| !is_installed(tool)) {
        Some(tool) => Err(format!("{tool} is not installed")),
        None => Ok(()),
    }
}

fn is_installed(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// The servers of an example, with keepalived on both, and its client.
fn servers<'a>(example: &'static str, hosts: [&'a Host; 3]) -> ([Server<'a>; 2], &'a Host) {
    let [h1, h2, client] = hosts;
    for (host, address) in [(h1, "10.0.0.10"), (h2, "10.0.0.11"), (client, "10.0.0.12")] {
        host.change_address(address);
    }
    let servers = [("web0", h1), ("web1", h2)].map(|(name, host)| Server::new(example, name, host));
    (servers, client)
}

/// Starts keepalived on both hosts, and waits until the first one alone has the address.
fn run_keepalived([first, second]: &mut [Server<'_>; 2]) {
    for server in [&mut *first, &mut *second] {
        server.validate_keepalived();
        server.start_keepalived();
    }
    wait_until("keepalived holds the address", || first.holds(ADDRESS) && !second.holds(ADDRESS));
}

/// Step 1 and 2: lanelect elects beside keepalived, and runs no hook.
fn run_beside(servers: &mut [Server<'_>; 2], groups: &[&str]) {
    for server in &mut *servers {
        groups.iter().for_each(|group| server.start_lanelect(group, Stage::Beside));
    }
    for group in groups {
        wait_until("one of them leads", || agreed_leader(servers, group).is_some());
    }
}

/// Step 3: nobody leads, and the hooks are there.
fn add_hooks(servers: &[Server<'_>; 2], groups: &[&str]) {
    for group in groups {
        servers.iter().for_each(|server| server.client(group, &["maintenance", "on", "--wait"]));
    }
    for group in groups {
        servers.iter().for_each(|server| server.reload_lanelect(group, Stage::Over));
    }
}

/// Steps 4 to 6: the address goes over on the host that has it.
fn swap([first, second]: &mut [Server<'_>; 2], groups: &[&str]) {
    second.stop_keepalived();
    first.stop_keepalived();
    for group in groups {
        first.client(group, &["maintenance", "off", "--wait"]);
    }
    for group in groups {
        wait_until("the hook has succeeded", || first.is_ready(group));
        second.client(group, &["maintenance", "off", "--wait"]);
    }
}

/// The position of the leader that both agree on.
fn agreed_leader(servers: &[Server<'_>; 2], group: &str) -> Option<usize> {
    let [a, b] = servers.each_ref().map(|server| server.status(group));
    let leads = |status: &serde_json::Value| status["role"] == "leader";
    let is_agreed = a["leader"]["node_id"] == b["leader"]["node_id"] && leads(&a) != leads(&b);
    is_agreed.then_some(usize::from(leads(&b)))
}

/// Cuts the first host off, and waits until the second one answers the client.
fn fail_over(lan: &Lan, [first, second]: &[Server<'_>; 2], client: &Client) -> Duration {
    client.longest_gap(|| {
        lan.cut(first.host);
        wait_until("the other has the address", || second.holds(ADDRESS));
    })
}

/// Has the failover take as long as by the example's own settings.
fn measure(servers: &[Server<'_>; 2], group: &str) {
    servers.iter().for_each(|server| server.reload_lanelect(group, Stage::Measured));
    wait_until("both have heard so", || agreed_leader(servers, group).is_some());
}

fn report(example: &str, what: &str, gap: Duration) {
    println!("{example}: {what}: {} ms without an answer", gap.as_millis());
}

#[test]
fn address_of_a_pair_goes_over_and_never_has_two_holders() {
    scenario_with(needs(), |lan, hosts| {
        let (mut servers, client) = servers("address-pair", hosts);
        run_keepalived(&mut servers);
        let client = Client::of(client, ADDRESS);
        report("address-pair", "keepalived's failover", fail_over(lan, &servers, &client));
        lan.heal();
        wait_until("keepalived has one master again", || !servers[1].holds(ADDRESS));

        let holders = Holders::watch(&hosts[..2], &[ADDRESS, ADDRESS_V6]);
        run_beside(&mut servers, &["web"]);
        assert!(servers[0].holds(ADDRESS) && servers[0].holds(ADDRESS_V6), "keepalived holds on");
        add_hooks(&servers, &["web"]);
        assert!(servers[0].holds(ADDRESS), "keepalived still holds on");
        report("address-pair", "the change", client.longest_gap(|| swap(&mut servers, &["web"])));
        wait_until("they agree", || agreed_leader(&servers, "web") == Some(0));
        assert!(servers[0].holds(ADDRESS) && servers[0].holds(ADDRESS_V6));
        holders.assert_one_at_a_time();

        measure(&servers, "web");
        servers[0].kill_lanelect("web");
        report("address-pair", "lanelect's failover", fail_over(lan, &servers, &client));
        assert!(servers[1].holds(ADDRESS_V6));
    });
}

#[test]
fn address_goes_back_to_keepalived_and_never_has_two_holders() {
    scenario_with(needs(), |_, hosts| {
        let (mut servers, client) = servers("address-pair", hosts);
        servers.iter_mut().for_each(|server| server.start_lanelect("web", Stage::Over));
        wait_until("one leads", || agreed_leader(&servers, "web").is_some());
        if agreed_leader(&servers, "web") == Some(1) {
            servers.reverse();
        }
        wait_until("its hook has succeeded", || servers[0].is_ready("web"));
        let client = Client::of(client, ADDRESS);
        let holders = Holders::watch(&hosts[..2], &[ADDRESS, ADDRESS_V6]);
        let gap = client.longest_gap(|| {
            servers[1].stop_lanelect("web");
            servers[0].stop_lanelect("web");
            servers[0].start_keepalived();
            wait_until("keepalived has the address", || servers[0].holds(ADDRESS));
        });
        servers[1].start_keepalived();
        report("address-pair", "the way back", gap);
        wait_until("the backup has started", || servers[1].keepalived_log().contains("BACKUP"));
        assert!(!servers[1].holds(ADDRESS) && servers[0].holds(ADDRESS_V6));
        holders.assert_one_at_a_time();
    });
}

#[test]
fn addresses_that_cross_over_end_where_they_belong() {
    scenario_with(needs(), |lan, hosts| {
        let (mut servers, client) = servers("crossing", hosts);
        let groups = ["blue", "green"];
        run_keepalived(&mut servers);
        wait_until("each has one", || servers[1].holds(SECOND_ADDRESS));
        wait_until("and only one", || !servers[0].holds(SECOND_ADDRESS));
        let [blue, green] = [ADDRESS, SECOND_ADDRESS].map(|address| Client::of(client, address));
        report("crossing", "keepalived's failover", fail_over(lan, &servers, &blue));
        lan.heal();
        wait_until("each has one again", || {
            let held =
                [ADDRESS, SECOND_ADDRESS].map(|address| [0, 1].map(|n| servers[n].holds(address)));
            held == [[true, false], [false, true]]
        });

        let holders = [ADDRESS, SECOND_ADDRESS].map(|a| Holders::watch(&hosts[..2], &[a]));
        run_beside(&mut servers, &groups);
        add_hooks(&servers, &groups);
        let mut of_green = Duration::ZERO;
        let of_blue = blue.longest_gap(|| {
            of_green = green.longest_gap(|| {
                swap(&mut servers, &groups);
                wait_until("green is on its host", || servers[1].is_ready("green"));
            });
        });
        report("crossing", "the change of blue", of_blue);
        report("crossing", "the change of green", of_green);
        wait_until("blue is on its host", || agreed_leader(&servers, "blue") == Some(0));
        assert!(servers[0].holds(ADDRESS) && servers[1].holds(SECOND_ADDRESS));
        holders.into_iter().for_each(Holders::assert_one_at_a_time);

        for group in groups {
            measure(&servers, group);
            servers[0].kill_lanelect(group);
        }
        report("crossing", "lanelect's failover", fail_over(lan, &servers, &blue));
        assert!(servers[1].holds(SECOND_ADDRESS), "it has both");
    });
}

#[test]
fn address_and_service_go_over_together() {
    scenario_with(needs(), |_, hosts| {
        let (mut servers, client) = servers("service", hosts);
        provide_systemctl();
        let [first_proxy, _second_proxy] = [0, 1].map(|n| start_proxy(hosts[n]));
        run_keepalived(&mut servers);
        wait_until("the service runs", || servers.each_ref().map(Server::serves) == [true, false]);
        let client = Client::of(client, ADDRESS);
        let gap = client.longest_gap(|| {
            drop(first_proxy);
            wait_until("the other has the address", || servers[1].holds(ADDRESS));
        });
        report("service", "a proxy dies under keepalived", gap);
        let _first_proxy = start_proxy(hosts[0]);
        servers.reverse();
        wait_until("the service moved", || servers.each_ref().map(Server::serves) == [true, false]);

        let holders = Holders::watch(&hosts[..2], &[ADDRESS]);
        run_beside(&mut servers, &["web"]);
        add_hooks(&servers, &["web"]);
        assert!(servers[0].serves(), "keepalived's service runs on");
        report("service", "the change", client.longest_gap(|| swap(&mut servers, &["web"])));
        assert!(servers[0].holds(ADDRESS));
        assert_eq!(servers.each_ref().map(Server::serves), [true, false]);
        wait_until("the service is healthy", || {
            servers[0].status("web")["check_leader"]["state"] == "healthy"
        });

        let gap = client.longest_gap(|| {
            servers[0].kill_service();
            wait_until("the other leads", || servers[1].is_ready("web"));
        });
        report("service", "the service dies under lanelect", gap);
        assert!(servers[1].holds(ADDRESS));
        assert_eq!(servers.each_ref().map(Server::serves), [false, true]);
        holders.assert_one_at_a_time();
    });
}
