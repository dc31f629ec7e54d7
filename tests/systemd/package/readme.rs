//! The README's lines, typed on hosts as they stand there.

use super::deb::{DEB, PACKAGE};
use super::missing;
use crate::harness::{inside, wait_until};
use crate::hosts::{Host, SHARED, bare_scenario};
use crate::pages;

const README: &str = include_str!("../../../README.md");

/// Root types this, for whom `sudo` does nothing.
const ROOT: &str = "set -e; sudo() { \"$@\"; }";

/// The hosts of the README have another name for their interface, which keeps its address.
const RENAME: &str = "ip link set lan0 down && ip link set lan0 name eth0 && ip link set eth0 up";

/// The blocks of one language below a heading.
fn blocks(heading: &str, language: &str) -> Vec<&'static str> {
    let blocks = pages::blocks(pages::section(README, heading), language);
    blocks.into_iter().map(|(_, content)| content).collect()
}

/// The host that says of itself that it leads.
fn leader_of<'a>(hosts: &[&'a Host]) -> Option<&'a Host> {
    let ask = "lanelect is-leader --group web && echo yes || true";
    hosts.iter().copied().find(|host| host.run(ask) == "yes\n")
}

#[test]
fn the_readme_leads_to_a_group_whose_leader_holds_the_address() {
    if let Some(reason) = missing(&[PACKAGE]) {
        return inside::skip(inside::test_name(&|| ()), &reason);
    }
    bare_scenario(|_, hosts: [&Host; 3]| {
        let apt = blocks("Install", "sh")[0].lines().next().unwrap();
        let file = apt.split('/').next_back().unwrap();
        let [first, ..] = hosts;
        DEB.share(PACKAGE, "first");
        first.run(&format!("mv {SHARED}/first.deb {SHARED}/{file}"));
        let practice = "Three hosts in practice";
        let config = blocks(practice, "toml")[0];
        let [configure, start] = blocks(practice, "sh")[..] else { panic!("two blocks of lines") };
        for host in hosts {
            host.run(RENAME);
            host.run(&format!("cd {SHARED}; {ROOT}\n{apt}"));
            host.run(&format!("cat >/etc/lanelect/web.toml <<'END'\n{config}END"));
            // The key is made on one host and copied to the others.
            let get = format!("install -m 600 -o lanelect {SHARED}/web.key /etc/lanelect");
            let key = configure.lines().find(|line| line.contains("keygen")).unwrap();
            let copied = configure.replace(key, &get);
            host.run(&format!("{ROOT}\n{}", if host.number == 1 { configure } else { &copied }));
            host.run(&format!("cp /etc/lanelect/web.key {SHARED}"));
        }
        for host in hosts {
            host.run(&format!("{ROOT}\n{start}"));
        }
        // A loaded machine may stall a leader for longer than the README's group waits for it.
        wait_until("a leader holds the address and lists the other hosts", || {
            leader_of(&hosts).is_some_and(|leader| {
                let told = leader.run("lanelect status --group web");
                let addresses = leader.run("ip -4 addr show dev eth0");
                addresses.contains("10.0.0.100/24")
                    && hosts.iter().all(|host| told.contains(&host.name))
            })
        });
    });
}
