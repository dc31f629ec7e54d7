//! Parses the value of each key. An error follows the key's name: what is wrong; what to do.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::core::params::{Mode, OnElectedFailure, StaticRole};
use crate::core::quorum::Voters;
use crate::types::{GroupName, KeyMode, NodeId, TieBreakRule};

/// The port of a group that sets none.
pub(super) const DEFAULT_PORT: u16 = 7669;

/// Most interfaces that a group spans. Every datagram is sent once for each.
pub const INTERFACES_MAX: usize = 16;

/// Longest interface name that the kernel knows, in bytes.
const INTERFACE_NAME_MAX: usize = 15;

/// Longest path of a Unix socket, in bytes: what `sockaddr_un` holds, without the final zero.
const SOCKET_PATH_MAX: usize = 107;

/// The group's name in the configuration and on the command line. It must also be a valid file
/// name.
///
/// # Errors
///
/// A text that says what is wrong.
pub fn group(text: &str) -> Result<GroupName, String> {
    if text.contains(['/', '\0']) || text == "." || text == ".." {
        return Err(format!("{text:?} is not a valid file name; do not use '/', \".\" or \"..\""));
    }
    text.parse().map_err(|error| format!("{text:?} {error}"))
}

pub(super) fn hostname() -> Result<NodeId, String> {
    let unusable = |why: &str| format!("the hostname is not a valid node_id: {why}; set node_id");
    let name = nix::unistd::gethostname().map_err(|errno| unusable(errno.desc()))?;
    let name = name.into_string().map_err(|_| unusable("it is not UTF-8"))?;
    name.parse().map_err(|error| unusable(&format!("it {error}")))
}

pub(super) fn node_id(text: &str) -> Result<NodeId, String> {
    text.parse().map_err(|error| format!("{text:?} {error}"))
}

/// The multicast address, or none, and the port.
pub(super) fn multicast(text: &str) -> Result<(Option<IpAddr>, u16), String> {
    match text.strip_prefix("none") {
        Some("") => return Ok((None, DEFAULT_PORT)),
        Some(rest) => {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            return port.filter(|port| *port != 0).map(|port| (None, port)).ok_or_else(|| {
                format!("{text:?} is not valid; give \"none\", or with another port \"none:7670\"")
            });
        }
        None => {}
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        format!(
            "{text:?} is not an address with a port; give one such as 239.255.76.69:7669 or \
             [ff02::4c45]:7669, or \"none\" to use peers alone"
        )
    })?;
    if !address.ip().is_multicast() {
        return Err(format!(
            "{} is not a multicast address; give one in 224.0.0.0/4 or ff00::/8",
            address.ip()
        ));
    }
    if address.port() == 0 {
        return Err(
            "port 0 is not valid; give the port that every node of the group uses".to_owned()
        );
    }
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            Err(format!("{text:?} has a zone index; remove it, and set interface instead"))
        }
        _ => Ok((Some(address.ip()), address.port())),
    }
}

pub(super) fn interfaces(names: Vec<String>) -> Result<Vec<String>, String> {
    if names.is_empty() {
        return Err("is empty; name an interface, or remove the key".to_owned());
    }
    if names.len() > INTERFACES_MAX {
        return Err(format!("names {} interfaces; name at most {INTERFACES_MAX}", names.len()));
    }
    for (index, name) in names.iter().enumerate() {
        let alien = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        if !(1..=INTERFACE_NAME_MAX).contains(&name.len())
            || name.contains(alien)
            || name == "."
            || name == ".."
        {
            return Err(format!(
                "{name:?} is not an interface name; give 1 to {INTERFACE_NAME_MAX} bytes without \
                 blanks, '/' and ':'"
            ));
        }
        if names.iter().take(index).any(|earlier| earlier == name) {
            return Err(format!("names {name:?} twice; name it once"));
        }
    }
    Ok(names)
}

/// The words of a key that has a choice of values.
pub(super) type Choices<T> = &'static [(&'static str, T)];

pub(super) const MODES: Choices<Mode> = &[("available", Mode::Available), ("quorum", Mode::Quorum)];

pub(super) const STATIC_ROLES: Choices<StaticRole> =
    &[("leader", StaticRole::Leader), ("follower", StaticRole::Follower)];

pub(super) const ELECTED_FAILURES: Choices<OnElectedFailure> =
    &[("resign", OnElectedFailure::Resign), ("ignore", OnElectedFailure::Ignore)];

pub(super) const TIE_BREAKS: Choices<TieBreakRule> =
    &[("lowest-id", TieBreakRule::LowestId), ("spread", TieBreakRule::Spread)];

pub(super) const KEY_MODES: Choices<KeyMode> =
    &[("accept", KeyMode::Accept), ("prefer", KeyMode::Prefer), ("require", KeyMode::Require)];

/// Reads one of the words.
pub(super) fn choice<T: Copy>(choices: Choices<T>) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        let words: Vec<_> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
        let words = words.join(" or ");
        found.ok_or_else(|| format!("{text:?} is not a valid value; give {words}"))
    }
}

/// The word for a value.
pub(super) fn word<T: PartialEq>(choices: Choices<T>, value: T) -> Option<&'static str> {
    choices.iter().find(|(_, known)| *known == value).map(|(word, _)| *word)
}

pub(super) fn voters(names: Vec<String>) -> Result<Voters, String> {
    let ids = names.iter().map(|name| node_id(name)).collect::<Result<Vec<_>, _>>()?;
    Voters::new(ids).map_err(|error| error.to_string())
}

pub(super) fn preset(text: &str) -> Result<(), String> {
    match text {
        "fabric" => Ok(()),
        _ => Err(format!("{text:?} is unknown; give \"fabric\", or remove the key")),
    }
}

pub(super) fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("is empty; give a command line, or remove the key".to_owned());
    }
    without_nul(text).map(str::to_owned)
}

pub(super) fn unix_group(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c == ':' || c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "{text:?} is not the name of a Unix group; `getent group` lists the groups"
        ));
    }
    Ok(text.to_owned())
}

pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("is empty; give a path, or remove the key".to_owned());
    }
    without_nul(text).map(PathBuf::from)
}

pub(super) fn socket_path(text: &str) -> Result<PathBuf, String> {
    if text.len() > SOCKET_PATH_MAX {
        return Err(format!(
            "is {} bytes long; the path of a socket has at most {SOCKET_PATH_MAX}",
            text.len()
        ));
    }
    path(text)
}

fn without_nul(text: &str) -> Result<&str, String> {
    if text.contains('\0') {
        Err("contains a NUL character; remove it".to_owned())
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_must_be_a_valid_file_name() {
        assert!(group("web.1").is_ok());
        for bad in ["", ".", "..", "a/b", "/", "a b", "a\0", &"x".repeat(65)] {
            assert!(group(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_group_address_is_multicast_and_has_a_port() {
        for good in ["224.0.0.0:1", "239.255.255.255:65535", "[ff02::1]:7669", "none", "none:1"] {
            assert!(multicast(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "239.1.1.1",
            "239.1.1.1:0",
            "239.1.1.1:65536",
            "192.168.1.1:7669",
            "240.0.0.1:7669",
            "ff02::1:7669",
            "[fe80::1]:7669",
            "[ff02::1%2]:7669",
            "host:7669",
            "none:0",
            "none:",
            "nonesuch",
        ] {
            assert!(multicast(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn interfaces_are_valid_names_without_duplicates_and_at_most_the_maximum() {
        let list = |names: &[&str]| interfaces(names.iter().map(|&name| name.to_owned()).collect());
        assert!(list(&["eth0", "br-lan.7", "123456789012345"]).is_ok());
        for bad in [&[][..], &[""], &["1234567890123456"], &["a/b"], &["a b"], &[".."], &["a", "a"]]
        {
            assert!(list(bad).is_err(), "{bad:?}");
        }
        let many: Vec<_> = (0..=INTERFACES_MAX).map(|i| format!("eth{i}")).collect();
        assert!(interfaces(many.clone()).is_err());
        assert!(interfaces(many.into_iter().skip(1).collect()).is_ok());
    }

    #[test]
    fn path_or_command_that_is_empty_or_has_a_nul_is_rejected() {
        assert!(path("a").is_ok() && command("x").is_ok() && unix_group("adm").is_ok());
        assert!(path("").is_err() && path("a\0b").is_err());
        assert!(command(" \n").is_err() && command("a\0b").is_err());
        assert!(unix_group("").is_err() && unix_group("a:b").is_err());
        assert!(socket_path(&"s".repeat(SOCKET_PATH_MAX)).is_ok());
        assert!(socket_path(&"s".repeat(SOCKET_PATH_MAX + 1)).is_err());
    }
}
