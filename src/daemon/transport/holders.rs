//! Which users of this host have a socket on a port.

use std::fs;

/// The kernel's tables of UDP sockets. A socket for both families is in the second one.
const TABLES: [&str; 2] = ["/proc/self/net/udp", "/proc/self/net/udp6"];

/// Most users that are named.
const USERS_MAX: usize = 5;

/// The users with a UDP socket on `port`, each once, at most `USERS_MAX`; none if the kernel does
/// not show them.
pub fn of_port(port: u16) -> Vec<u32> {
    let tables = TABLES.map(|path| fs::read_to_string(path).unwrap_or_default());
    users(&tables.concat(), port)
}

/// The users as text.
pub(super) fn describe(users: &[u32]) -> String {
    if users.is_empty() {
        return "of an unknown user".to_owned();
    }
    let users: Vec<String> = users.iter().map(u32::to_string).collect();
    format!("of uid {}", users.join(", "))
}

/// Each line has the local address and port in hexadecimal digits as its second field, and the user
/// as its eighth.
fn users(table: &str, port: u16) -> Vec<u32> {
    let suffix = format!(":{port:04X}");
    let mut users: Vec<u32> = table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_bound = fields.get(1)?.ends_with(&suffix);
            fields.get(7)?.parse().ok().filter(|_| is_bound)
        })
        .collect();
    users.sort_unstable();
    users.dedup();
    users.truncate(USERS_MAX);
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  118: 454CFFEF:1DF5 00000000:0000 07 00000000:00000000 00:00000000 00000000   998        0 15 2 0 0
  118: 00000000:1DF5 00000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 16 2 0 0
  119: 00000000:1DF6 00000000:0000 07 00000000:00000000 00:00000000 00000000  1002        0 17 2 0 0
11603: 00000000000000000000000000000000:1DF5 00000000000000000000000000000000:0000 07 \
00000000:00000000 00:00000000 00000000  1001        0 18 2 0 0
";

    #[test]
    fn users_of_a_port_are_found_in_the_kernels_table() {
        assert_eq!(users(TABLE, 7669), [998, 1001]);
        assert_eq!(users(TABLE, 7670), [1002]);
        assert_eq!(users(TABLE, 9), [0; 0]);
        assert_eq!(describe(&users(TABLE, 7669)), "of uid 998, 1001");
        assert_eq!(describe(&[]), "of an unknown user");
    }
}
