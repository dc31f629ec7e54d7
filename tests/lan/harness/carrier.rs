//! What carries the datagrams of the hosts: the whole suite runs by each of the carriers.

use std::env;

/// `multicast`, which is the default, `peers` or `mixed`.
const CARRIER: &str = "LANELECT_LAN_CARRIER";

/// How the hosts of a scenario reach each other, unless its config lines say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// By multicast alone.
    Multicast,
    /// By unicast alone, to every other host of the scenario.
    Peers,
    /// By both. Hosts with even numbers hear no multicast: the switches do not deliver what goes to
    /// a group at the usual port.
    Mixed,
}

use Carrier::{Mixed, Peers};

/// The scenarios that are about a carrier itself, the carriers that they do not run by, and why.
/// A name that ends with `::` stands for all scenarios of that module.
pub(crate) const EXCLUDED: &[(&str, &[Carrier], &str)] = &[
    ("bridge::", &[Peers, Mixed], "it is about a bridge that snoops on memberships of the group"),
    ("doctor::host::daemon_that_does_not_run", &[Peers], SHOWS_INTERFACE),
    ("doctor::network::interface_that_cannot_be_used", &[Peers], SHOWS_INTERFACE),
    (
        "doctor::network::host_without_a_route_to_the_group",
        &[Peers, Mixed],
        "it is about the kernel's route to the group",
    ),
    ("doctor::network::port_that_another_program_has", &[Peers], SHOWS_INTERFACE),
    ("doctor::network::firewall_of_this_host", &[Peers, Mixed], SHOWS_INTERFACE),
    ("doctor::network::host_that_nothing_reaches", &[Peers], SHOWS_INTERFACE),
    (
        "doctor::network::hosts_of_different_groups_or_addresses",
        &[Peers, Mixed],
        "it is about hosts that hear other groups on the multicast address or its port",
    ),
    (
        "doctor::network::datagrams_from_beyond_the_lan_or_of_another_version",
        &[Peers, Mixed],
        "by unicast a router is allowed; unicast::routed is about the key that it needs",
    ),
    ("firewall::", &[Peers, Mixed], "the shipped rules are for multicast, and drop all unicast"),
    (
        "from_keepalived::",
        &[Mixed],
        "its daemons have the files of the examples, which use multicast alone",
    ),
    (
        "interfaces::a_change_of_address_is_followed",
        &[Peers, Mixed],
        "a list names the address; unicast::lists is about a name whose address changes",
    ),
    (
        "interfaces::an_interface_that_is_renamed_is_missed_until_it_has_its_name_again",
        &[Peers, Mixed],
        "only multicast is bound to the name of an interface",
    ),
    (
        "sending::a_leader_without_a_route_to_the_group_steps_down",
        &[Peers, Mixed],
        "it is about the kernel's route to the group",
    ),
    (
        "spread::groups_with_one_file_are_spread_over_the_hosts",
        &[Peers, Mixed],
        "with peers, each group of one host needs a port of its own",
    ),
    (
        "trust::a_leader_beyond_a_router_is_none",
        &[Peers, Mixed],
        "by unicast a router is allowed; unicast::routed is about the key that it needs",
    ),
    (
        "trust::flood::a_flood_moves_nothing_and_leaves_nothing",
        &[Peers],
        "the flood goes to the group; unicast::hostile floods peers",
    ),
    ("peer::", &[Peers, Mixed], "the second implementation sends by multicast alone"),
];

const SHOWS_INTERFACE: &str = "it is about what the doctor says of an interface of multicast";

impl Carrier {
    /// The one that the environment asks for.
    pub(crate) fn chosen() -> Carrier {
        let carrier = env::var(CARRIER).unwrap_or_default();
        match carrier.as_str() {
            "" | "multicast" => Carrier::Multicast,
            "peers" => Peers,
            "mixed" => Mixed,
            other => panic!("{CARRIER} is {other:?}: neither multicast nor peers nor mixed"),
        }
    }

    /// Why the scenario of this name does not run by it.
    pub(crate) fn exclusion(self, test: &str) -> Option<String> {
        let is_meant = |name: &str| match name.strip_suffix("::") {
            Some(module) => test.split("::").next() == Some(module),
            None => test == name,
        };
        let excluded = |entry: &&(&str, &[Carrier], &str)| {
            let (name, carriers, _) = entry;
            carriers.contains(&self) && is_meant(name)
        };
        let (_, _, why) = EXCLUDED.iter().find(excluded)?;
        Some(format!("not by {CARRIER}={}: {why}", format!("{self:?}").to_lowercase()))
    }

    /// Whether a host of this number hears multicast.
    pub(crate) fn delivers_multicast_to(self, host: usize) -> bool {
        self != Mixed || host % 2 == 1
    }
}
