//! Counts the datagrams that leave a host, as its kernel does.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::harness::Host;

/// More than the file has.
const LENGTH_MAX: usize = 8192;

/// The counters of one host.
pub(crate) struct Counter(File);

impl Counter {
    pub(crate) fn of(host: &Host) -> Counter {
        // It stays that of the namespace it was opened in.
        Counter(host.run(|| File::open("/proc/thread-self/net/snmp").unwrap()))
    }

    /// The IP datagrams that the host's programs have sent. What its kernel reports by ICMP of
    /// datagrams to a daemon that was killed is not theirs.
    pub(crate) fn sent(&self) -> u64 {
        let mut buffer = [0; LENGTH_MAX];
        let length = self.0.read_at(&mut buffer, 0).unwrap();
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        // Kernels before 6.7 count with the first name what later ones count with the second.
        let datagrams = value(text, "Ip:", "OutTransmits").or(value(text, "Ip:", "OutRequests"));
        datagrams.unwrap() - value(text, "Icmp:", "OutMsgs").unwrap()
    }
}

/// The value of this name: a line has the names, and the next one the values.
fn value(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value.parse().unwrap())
}
