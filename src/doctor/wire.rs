//! What arrives on the wire, before any firewall of this host: only root sees it.
//!
//! A daemon that receives nothing may be deaf for three reasons: nothing arrives, something on this
//! host drops it, or it is sent elsewhere. The daemon cannot tell them apart; a packet socket can.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket,
};
use socket2::{SockFilter, Socket};

use super::finding::Finding;
use crate::control_api::StatusReport;
use crate::core::status::MemberState;
use crate::daemon::interfaces::Interfaces;
use crate::os::clock;
use crate::types::{GroupName, NodeId};
use crate::wire::frame::{VERSION, alleged_origin};

const TOPIC: &str = "wire";

/// How long to listen: longer than between two heartbeats of a follower at the defaults.
const LISTEN: Duration = Duration::from_secs(3);

/// Most datagrams that are looked at: a flood is no reason to look longer.
const DATAGRAMS_MAX: usize = 10_000;

/// Most flows that are remembered.
const FLOWS_MAX: usize = 256;

/// As much of a packet as is read: its headers, and the names that a datagram begins with.
const PACKET_MAX: usize = 512;

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;

/// Datagrams of lanelect from one node to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) source: IpAddr,
    pub(super) destination: SocketAddr,
    pub(super) group: GroupName,
    pub(super) sender: NodeId,
    pub(super) count: u64,
}

/// What was heard while the daemon received `received` datagrams.
#[derive(Debug)]
pub(super) struct Facts {
    /// Or why this user may not listen.
    pub(super) flows: io::Result<Vec<Flow>>,
    pub(super) received: u64,
    /// This host's addresses.
    pub(super) own: Vec<IpAddr>,
}

/// Listens, between two statuses, at the interfaces that the daemon has its multicast on. Another
/// network of this host may carry the same group.
pub(super) fn gather(
    before: &StatusReport,
    status: impl FnOnce() -> Option<StatusReport>,
) -> Facts {
    let interfaces = Interfaces::scan().unwrap_or_default();
    let own = interfaces.addresses().collect();
    let named = before.interfaces.iter().filter_map(|used| interfaces.get(&used.name));
    let indexes: Vec<_> = named.map(|interface| interface.index.get()).collect();
    let flows = listen(&indexes);
    let received = |report: &StatusReport| report.counters.datagrams_received;
    // A daemon that has restarted meanwhile has received something.
    let received = status().map_or(0, |after| received(&after).abs_diff(received(before)));
    Facts { flows, received, own }
}

fn listen(indexes: &[u32]) -> io::Result<Vec<Flow>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let protocol = Some(SockProtocol::EthAll);
    let descriptor = socket(AddressFamily::Packet, SockType::Datagram, flags, protocol)?;
    let socket = Socket::from(descriptor);
    socket.attach_filter(&multicast_udp())?;
    let deadline = clock::now() + LISTEN;
    let mut flows = Vec::new();
    let mut packet = [0; PACKET_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let left = deadline.since(clock::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut packet) {
            Ok((length, Some(from))) if indexes.iter().any(|at| from.ifindex() == *at as usize) => {
                note(&mut flows, packet.get(..length).unwrap_or_default());
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(flows)
}

/// Passes UDP over IPv4 and IPv6 to multicast addresses. Without it, a busy host would fill the
/// socket with other packets.
fn multicast_udp() -> [SockFilter; 14] {
    const PASS: u32 = u32::MAX;
    let load = |at| SockFilter::new((libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16, 0, 0, at);
    let jump = |comparison: u32, yes, no, value| {
        SockFilter::new((libc::BPF_JMP | libc::BPF_K | comparison) as u16, yes, no, value)
    };
    let shift = SockFilter::new((libc::BPF_ALU | libc::BPF_K | libc::BPF_RSH) as u16, 0, 0, 4);
    let verdict = |bytes| SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, bytes);
    let udp = u32::from(UDP);
    [
        load(0),
        shift,
        jump(libc::BPF_JEQ, 0, 4, 4),
        load(9),
        jump(libc::BPF_JEQ, 0, 8, udp),
        load(16),
        jump(libc::BPF_JGE, 5, 6, 224),
        jump(libc::BPF_JEQ, 0, 5, 6),
        load(6),
        jump(libc::BPF_JEQ, 0, 3, udp),
        load(24),
        jump(libc::BPF_JEQ, 0, 1, 255),
        verdict(PASS),
        verdict(0),
    ]
}

fn note(flows: &mut Vec<Flow>, packet: &[u8]) {
    let Some(flow) = flow(packet) else { return };
    let is_same = |known: &Flow| Flow { count: flow.count, ..*known } == flow;
    if let Some(at) = flows.iter().position(is_same) {
        flows[at].count += 1;
    } else if flows.len() < FLOWS_MAX {
        flows.push(flow);
    }
}

/// The flow of an IP packet that carries a datagram of lanelect.
fn flow(packet: &[u8]) -> Option<Flow> {
    let (source, destination, udp) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet.first()? & 15) * 4;
            let address = |at: usize| -> Option<IpAddr> {
                let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(octets).into())
            };
            (address(12)?, address(16)?, (*packet.get(9)? == UDP).then(|| packet.get(header..))??)
        }
        6 => {
            let address = |at: usize| -> Option<IpAddr> {
                let octets: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(octets).into())
            };
            let udp = (*packet.get(6)? == UDP).then(|| packet.get(IPV6_HEADER..))??;
            (address(8)?, address(24)?, udp)
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(udp.get(2..4)?.try_into().ok()?);
    let (group, sender) = alleged_origin(udp.get(UDP_HEADER..)?)?;
    let destination = SocketAddr::new(destination, port);
    Some(Flow { source, destination, group, sender, count: 1 })
}

pub(super) fn judge(facts: &Facts, report: &StatusReport, multicast: SocketAddr) -> Vec<Finding> {
    let Ok(flows) = &facts.flows else {
        let text = "this user may not see what arrives on the wire, and what a firewall drops";
        return vec![Finding::unknown(TOPIC, text).remedy("run the doctor as root")];
    };
    let foreign = |flow: &&Flow| !facts.own.contains(&flow.source) && flow.group == report.group;
    let others: Vec<_> = flows.iter().filter(foreign).collect();
    let (here, elsewhere): (Vec<&Flow>, Vec<&Flow>) =
        others.into_iter().partition(|flow| flow.destination == multicast);
    // The daemon ignores what has its own id, and does not count it as received.
    let (duplicates, members): (Vec<&Flow>, Vec<&Flow>) =
        here.into_iter().partition(|flow| flow.sender == report.node_id);
    let mut findings = vec![arrivals(&members, facts.received, report, multicast)];
    findings.extend(elsewhere.into_iter().map(|flow| astray(flow, multicast)));
    findings.extend(duplicates.first().map(|flow| duplicate(flow)));
    findings
}

/// Whether the daemon receives what arrives from the other members.
fn arrivals(
    here: &[&Flow],
    received: u64,
    report: &StatusReport,
    multicast: SocketAddr,
) -> Finding {
    let count: u64 = here.iter().map(|flow| flow.count).sum();
    let mut senders: Vec<_> = here.iter().map(|flow| flow.sender.as_str()).collect();
    senders.sort_unstable();
    senders.dedup();
    let seconds = LISTEN.as_secs();
    if count > 0 && received == 0 {
        let text = format!(
            "{count} datagrams from {} arrived within {seconds} s, and the daemon received none: a \
             firewall of this host, or its reverse path filter (rp_filter), drops them",
            senders.join(", ")
        );
        let allow = format!("allow UDP to {}, port {}", multicast.ip(), multicast.port());
        return Finding::fail("firewall", text).remedy(allow);
    }
    let is_heard = |state| state == MemberState::Alive;
    let alive = report.members.iter().filter(|member| is_heard(member.state)).count();
    match count {
        0 if alive <= 1 => {
            let text = format!(
                "no datagram of another member arrived within {seconds} s: they do not send, send \
                 to another address, or a firewall or switch in between drops them"
            );
            Finding::warn(TOPIC, text).remedy("run `lanelect doctor` on the other hosts")
        }
        0 => Finding::ok(TOPIC, format!("no member had to send within {seconds} s")),
        _ => Finding::ok(
            TOPIC,
            format!(
                "{count} datagrams of {} members arrived within {seconds} s, and the daemon \
                 received {received}",
                senders.len()
            ),
        ),
    }
}

fn astray(flow: &Flow, multicast: SocketAddr) -> Finding {
    let Flow { source, destination, group, sender, .. } = flow;
    let text = format!(
        "{sender} at {source} sends to the group {group} at {destination}, and this node is at \
         {multicast}"
    );
    Finding::fail("group-address", text).remedy("set the same multicast on every node")
}

/// Another host that uses this node's id.
fn duplicate(flow: &Flow) -> Finding {
    let text = format!("{} sends as {}, which is this node's id", flow.source, flow.sender);
    Finding::fail("node-id", text).remedy("give one of the two hosts another node_id")
}

/// The version byte is a part of what [`alleged_origin`] reads.
const _: () = assert!(VERSION == 1);

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::super::tests::follower;
    use super::*;

    const MULTICAST: &str = "239.255.76.69:7669";

    fn flow_to(destination: &str, sender: &str, source: &str) -> Flow {
        Flow {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            group: "default".parse().unwrap(),
            sender: sender.parse().unwrap(),
            count: 4,
        }
    }

    fn lines(flows: Vec<Flow>, received: u64, report: &StatusReport) -> Vec<String> {
        let own = vec!["10.0.0.11".parse().unwrap()];
        let facts = Facts { flows: Ok(flows), received, own };
        let multicast = MULTICAST.parse().unwrap();
        judge(&facts, report, multicast).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn datagrams_that_arrive_and_are_not_received_name_the_firewall() {
        let flows = vec![flow_to(MULTICAST, "web0", "10.0.0.10")];
        let told = lines(flows.clone(), 0, &follower());
        assert!(
            told[0].starts_with("fail     firewall  4 datagrams from web0 arrived"),
            "{told:?}"
        );
        assert!(told[0].ends_with("allow UDP to 239.255.76.69, port 7669"), "{told:?}");
        let told = lines(flows, 4, &follower());
        assert!(told[0].starts_with("ok       wire  4 datagrams of 1 members"), "{told:?}");
    }

    #[test]
    fn datagrams_of_another_host_with_this_id_are_not_missed() {
        let duplicate = flow_to(MULTICAST, "web1", "10.0.0.99");
        let told = lines(vec![duplicate], 0, &follower());
        assert!(told[0].starts_with("ok       wire  no member had to send"), "{told:?}");
        assert!(told[1].starts_with("fail     node-id  10.0.0.99 sends as web1"), "{told:?}");
        let told = lines(vec![duplicate, flow_to(MULTICAST, "web0", "10.0.0.10")], 4, &follower());
        assert!(told[0].starts_with("ok       wire  4 datagrams of 1 members"), "{told:?}");
    }

    #[test]
    fn silence_is_told_to_a_node_that_hears_no_other() {
        assert!(lines(Vec::new(), 0, &follower())[0].starts_with("ok       wire  no member had"));
        let mut alone = follower();
        alone.members.retain(|member| member.node_id == alone.node_id);
        assert!(lines(Vec::new(), 0, &alone)[0].starts_with("warn     wire  no datagram of"));
        let own = vec![flow_to(MULTICAST, "web1", "10.0.0.11")];
        assert!(lines(own, 0, &alone)[0].starts_with("warn     wire  no datagram of"));
    }

    #[test]
    fn node_at_another_address_and_one_with_this_id_are_named() {
        let flows = vec![
            flow_to("239.255.76.69:7670", "web3", "10.0.0.13"),
            flow_to(MULTICAST, "web1", "10.0.0.99"),
        ];
        let told = lines(flows, 4, &follower());
        assert!(
            told[1].contains("web3 at 10.0.0.13 sends to the group default at 239.255.76.69:7670")
        );
        assert!(told[2].starts_with("fail     node-id  10.0.0.99 sends as web1"), "{told:?}");
        let facts =
            Facts { flows: Err(ErrorKind::PermissionDenied.into()), received: 0, own: vec![] };
        let told = judge(&facts, &follower(), MULTICAST.parse().unwrap());
        assert!(told[0].line(0).starts_with("unknown  wire  this user may not"), "{told:?}");
    }

    #[test]
    fn flow_is_read_from_a_packet_of_either_family() {
        let datagram = b"\x01\x00\x03web\x04web2";
        let udp = [&[0, 1, 0x1d, 0xf5, 0, 18, 0, 0][..], datagram].concat();
        let mut v4 =
            vec![0x45, 0, 0, 0, 0, 0, 0, 0, 255, UDP, 0, 0, 10, 0, 0, 12, 239, 255, 76, 69];
        v4.extend(&udp);
        let read = flow(&v4).unwrap();
        assert_eq!((read.group.as_str(), read.sender.as_str()), ("web", "web2"));
        assert_eq!(read.source, Ipv4Addr::new(10, 0, 0, 12));
        assert_eq!(read.destination, MULTICAST.parse().unwrap());
        let mut v6 = vec![0x60, 0, 0, 0, 0, 18, UDP, 255];
        v6.extend("fe80::12".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend("ff02::4c45".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend(&udp);
        assert_eq!(flow(&v6).unwrap().destination, "[ff02::4c45]:7669".parse().unwrap());
        for length in 0..v4.len() {
            assert_eq!(flow(&v4[..length]), None);
        }
        let mut flows = Vec::new();
        (0..3).for_each(|_| note(&mut flows, &v4));
        note(&mut flows, &v6);
        assert_eq!(flows.iter().map(|flow| flow.count).collect::<Vec<_>>(), [3, 1]);
    }
}
