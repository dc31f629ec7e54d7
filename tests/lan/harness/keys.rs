//! Keys for hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::host::Host;

/// The key of tests that need one alone; each key is one digit, repeated.
pub(crate) const KEY: &str = "1";

/// Gives the host a key of this one digit; returns the config line that names its file.
pub(crate) fn give_key(host: &Host, digit: &str) -> String {
    give_keys(host, &[digit])
}

/// The same with several keys, the first of which signs.
pub(crate) fn give_keys(host: &Host, digits: &[&str]) -> String {
    let path = host.path("key");
    let keys: Vec<String> = digits.iter().map(|digit| digit.repeat(64)).collect();
    fs::write(&path, keys.join("\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    format!("key_file = {path:?}")
}
