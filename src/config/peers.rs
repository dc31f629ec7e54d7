//! The hosts that datagrams go to one by one: `peers`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Most peers. Each datagram is sent once for each, and a datagram from another address than theirs
/// is dropped.
pub const PEERS_MAX: usize = 64;

/// Longest name of a host, and longest part of it between dots, in bytes: the limits of DNS.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A host of the group. Every host may have the same list: a host that finds itself in it sends
/// from that address, and not to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Its address, or a name that is looked up.
    pub host: PeerHost,
    /// Its port; `None` if it is the one that this node uses.
    pub port: Option<u16>,
}

/// How a peer is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerHost {
    /// By its address, which one host can have, and which is valid beyond one link.
    Address(IpAddr),
    /// By its name.
    Name(String),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (PeerHost::Address(address), Some(port)) => SocketAddr::new(*address, port).fmt(f),
            (PeerHost::Address(address), None) => address.fmt(f),
            (PeerHost::Name(name), Some(port)) => write!(f, "{name}:{port}"),
            (PeerHost::Name(name), None) => f.write_str(name),
        }
    }
}

/// The peers in their order.
pub(super) fn parse(texts: Vec<String>) -> Result<Vec<Peer>, String> {
    if texts.is_empty() {
        return Err("is empty; list the hosts of the group, or remove the key".to_owned());
    }
    if texts.len() > PEERS_MAX {
        return Err(format!("lists {} peers; list at most {PEERS_MAX}", texts.len()));
    }
    let peers = texts.iter().map(|text| peer(text)).collect::<Result<Vec<_>, _>>()?;
    for (at, peer) in peers.iter().enumerate() {
        if peers.iter().take(at).any(|earlier| earlier.host == peer.host) {
            return Err(format!("lists {:?} twice; list it once", peer.to_string()));
        }
    }
    Ok(peers)
}

fn peer(text: &str) -> Result<Peer, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Peer { host: host_at(address, text)?, port: None });
    }
    let is_address = |text: &str| text.parse::<SocketAddr>().ok();
    if let Some(address) = is_address(text) {
        return Ok(Peer { host: host_at(address.ip(), text)?, port: Some(port(address.port())?) });
    }
    let (name, port_text) = text.rsplit_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let given = port_text.map(|digits| digits.parse().map_err(|_| unusable(text))).transpose()?;
    if !is_name(name) {
        return Err(unusable(text));
    }
    let port = given.map(port).transpose()?;
    Ok(Peer { host: PeerHost::Name(name.to_ascii_lowercase()), port })
}

fn unusable(text: &str) -> String {
    format!(
        "{text:?} is neither an address nor a name, with a port or without; give one such as \
         10.0.1.5, 10.0.1.5:7669, [2001:db8::7]:7669 or db3.example.net"
    )
}

fn port(port: u16) -> Result<u16, String> {
    if port == 0 { Err("port 0 is not valid; give the peer's port".to_owned()) } else { Ok(port) }
}

fn host_at(address: IpAddr, text: &str) -> Result<PeerHost, String> {
    let address = address.to_canonical();
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if is_link_local {
        return Err(format!(
            "{text:?} is valid on one link only; give an address that is unique in the network"
        ));
    }
    if address.is_unspecified() || address.is_multicast() || address == Ipv4Addr::BROADCAST {
        return Err(format!("{text:?} is not the address of one host; give that of each host"));
    }
    Ok(PeerHost::Address(address))
}

/// Whether DNS can have such a name. One without any letter is an address with a mistake.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
    };
    text.len() <= NAME_MAX
        && text.strip_suffix('.').unwrap_or(text).split('.').all(is_label)
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Result<Vec<Peer>, String> {
        parse(texts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn peers_are_addresses_or_names_with_or_without_a_port() {
        for (text, is_name, port) in [
            ("10.0.1.5", false, None),
            ("10.0.2.7:7000", false, Some(7000)),
            ("2001:db8::7", false, None),
            ("[2001:db8::7]:7669", false, Some(7669)),
            ("db3.example.net", true, None),
            ("db3:7000", true, Some(7000)),
            ("a_b-c.", true, None),
            ("127.0.0.2", false, None),
        ] {
            let [peer] = &list(&[text]).unwrap()[..] else { panic!("one") };
            assert_eq!(matches!(peer.host, PeerHost::Name(_)), is_name, "{text}");
            assert_eq!((peer.port, peer.to_string()), (port, text.to_owned()));
        }
        assert_eq!(list(&["DB3"]), list(&["db3"]));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for (text, why) in [
            ("", "neither an address nor a name"),
            ("10.0.0.256", "neither"),
            ("10.0.0", "neither"),
            ("a b", "neither"),
            ("a..b", "neither"),
            ("-a", "neither"),
            ("a:b", "neither"),
            ("a:70000", "neither"),
            ("[2001:db8::7", "neither"),
            ("fe80::1", "one link only"),
            ("fe80::1%eth0", "neither"),
            ("0.0.0.0", "not the address of one host"),
            ("255.255.255.255", "not the address of one host"),
            ("239.1.1.1", "not the address of one host"),
            ("ff02::1", "not the address of one host"),
            ("10.0.0.1:0", "port 0"),
            ("a:0", "port 0"),
        ] {
            let told = list(&[text]).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
        assert!(list(&[&"a".repeat(LABEL_MAX + 1)]).is_err());
        assert!(list(&[&"a.".repeat(NAME_MAX)]).is_err());
    }

    #[test]
    fn list_has_each_host_once_and_at_most_the_maximum() {
        assert!(list(&[]).unwrap_err().starts_with("is empty"));
        assert!(list(&["a:1", "a:2"]).unwrap_err().contains("twice"));
        assert!(list(&["::ffff:10.0.0.1", "10.0.0.1"]).unwrap_err().contains("twice"));
        let many: Vec<_> = (0..=PEERS_MAX).map(|number| format!("10.0.0.{number}")).collect();
        assert_eq!(parse(many.clone()).unwrap_err(), "lists 65 peers; list at most 64");
        assert_eq!(parse(many.into_iter().skip(1).collect()).unwrap().len(), PEERS_MAX);
    }
}
