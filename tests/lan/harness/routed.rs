//! Networks with routers between them, on the same switch: each host knows only its own network,
//! and sends everything else to its router.

use super::host::ip;
use super::{Host, Lan};

/// A network of its own: its hosts, and the router that joins it to the others.
pub(crate) struct Site<'a> {
    pub(crate) router: &'a Host,
    number: usize,
}

impl Site<'_> {
    /// The address of a host of this site.
    pub(crate) fn address(&self, host: &Host) -> String {
        format!("10.{}.0.{}", 100 + self.number, host.number)
    }

    /// The address of its router among the routers.
    fn transit(&self) -> String {
        format!("10.100.0.{}", self.number)
    }

    fn network(&self) -> String {
        format!("10.{}.0.0/24", 100 + self.number)
    }

    /// Gives a host an address of this site alone, and its router as the way to all others.
    pub(crate) fn settle(&self, host: &Host) {
        let (name, address) = (&host.name, self.address(host));
        ip(&format!("-n {name} -4 addr flush dev eth0"));
        ip(&format!("-n {name} addr add {address}/24 dev eth0"));
        ip(&format!("-n {name} route add default via 10.{}.0.254", 100 + self.number));
    }

    /// Has its router keep the hardware address of another: otherwise the way to it ends with the
    /// way back, because no answer tells the address.
    fn know(&self, other: &Site<'_>) {
        self.router.keep_neighbour(&other.transit(), other.router);
    }

    /// Has its router reach `other` by that site's router, or by `way` in its place.
    pub(crate) fn route_to(&self, other: &Site<'_>, way: Option<&Site<'_>>) {
        let (router, network) = (&self.router.name, other.network());
        let transit = way.unwrap_or(other).transit();
        ip(&format!("-n {router} route replace {network} via {transit}"));
    }
}

impl Lan {
    /// Makes each of `routers` the router of a site of its own, joined with all others.
    pub(crate) fn sites<'a, const N: usize>(&self, routers: [&'a Host; N]) -> [Site<'a>; N] {
        let mut number = 0;
        let sites = routers.map(|router| {
            number += 1;
            Site { router, number }
        });
        for site in &sites {
            self.forward_by(site.router);
            let (name, number) = (&site.router.name, site.number);
            ip(&format!("-n {name} -4 addr flush dev eth0"));
            ip(&format!("-n {name} addr add {}/24 dev eth0", site.transit()));
            ip(&format!("-n {name} addr add 10.{}.0.254/24 dev eth0", 100 + number));
        }
        for site in &sites {
            let others = sites.iter().filter(|other| other.number != site.number);
            others.for_each(|other| {
                site.route_to(other, None);
                site.know(other);
            });
        }
        sites
    }

    /// Makes a host forward what is not for it. What it forwards, it has not said itself.
    fn forward_by(&self, host: &Host) {
        host.run(|| {
            let set = |name: &str, value: &str| {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
            };
            set("ip_forward", "1");
            // All networks share a wire, and no host is to learn of it.
            set("conf/all/send_redirects", "0");
            set("conf/eth0/send_redirects", "0");
            set("conf/all/rp_filter", "0");
            set("conf/eth0/rp_filter", "0");
        });
        self.note_no_claims_of(host);
    }
}
