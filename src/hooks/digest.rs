//! What daemon and hook-runner compare: whether they have the same configuration.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::HookSettings;
use crate::config::Config;
use crate::types::{GroupName, NodeId};

/// Stands for a node's commands, their time limits, its group and its id. It detects mistakes, not
/// forgeries: the hook-runner runs only the commands of its own file, whatever it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u64);

impl Digest {
    /// The digest of a node that runs these commands.
    pub fn new(settings: &HookSettings, group: GroupName, node_id: NodeId) -> Self {
        let HookSettings { command, fence, check, check_leader, timeout, check_timeout } = settings;
        let mut hash = Sha256::new();
        // Quoted, because different values could otherwise concatenate to the same text.
        let mut add = |part: &dyn Debug| hash.update(format!("{part:?};"));
        add(&group.to_string());
        add(&node_id.to_string());
        [command, fence, check, check_leader].into_iter().for_each(|command| add(command));
        [timeout, check_timeout].into_iter().for_each(|timeout| add(timeout));
        let hash: [u8; 32] = hash.finalize().into();
        Digest(hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl From<&Config> for Digest {
    fn from(config: &Config) -> Self {
        Digest::new(&HookSettings::from(config), config.group, config.node_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_of_the_commands_counts_and_no_other() {
        let of = |text: &str| Digest::from(&Config::from_toml(text).unwrap());
        let common = "node_id = \"web1\"\n";
        let base = of(common);
        for other in [
            "group = \"b\"",
            "hook = \"a\"",
            "check = \"a\"",
            "check_leader = \"a\"",
            "hook_timeout = \"7s\"",
            "check_timeout = \"7s\"",
            "hook = \"b\"\nmode = \"quorum\"\nvoters = [\"web1\"]\nfence = \"a\"",
        ] {
            assert_ne!(of(&format!("{common}{other}")), base, "{other}");
        }
        assert_ne!(of("node_id = \"web2\""), base);
        assert_eq!(of(&format!("{common}priority = 7\ncheck_interval = \"9s\"")), base);
    }
}
