//! Configurations that are valid but rarely intended.

use super::{Config, duration};
use crate::core::params::QuorumParams;
use crate::types::{KeyMode, NodeId};

impl Config {
    /// What an operator should know about this configuration, wherever it is used. Each warning
    /// begins with the key.
    pub fn warnings(&self) -> Vec<String> {
        let shared_id = shared_id(self.node_id);
        let key_mode = self.key_mode_warning().map(str::to_owned);
        let no_key = self.key_file.is_none().then(|| self.unauthenticated().to_owned());
        let quorum = self.election.quorum.iter().flat_map(|quorum| self.quorum_warnings(quorum));
        shared_id.into_iter().chain(no_key).chain(key_mode).chain(quorum).collect()
    }

    /// What is still to be done until the keys protect the group; none if they do, or if there are
    /// none.
    pub fn key_mode_warning(&self) -> Option<&'static str> {
        match self.election.key_mode? {
            KeyMode::Accept => Some(
                "key_mode: \"accept\" protects nothing, because no datagram needs a key; once \
                 every node has it, set \"prefer\" on each, and then \"require\"",
            ),
            KeyMode::Prefer => Some(
                "key_mode: \"prefer\" protects nothing, because no datagram needs a key; once \
                 every node has it, set \"require\" on each",
            ),
            KeyMode::Require => None,
        }
    }

    fn unauthenticated(&self) -> &'static str {
        match self.election.quorum {
            None => {
                "key_file is not set: datagrams are not authenticated, and every host on the LAN \
                 can claim to be the leader; create a key with `lanelect keygen`"
            }
            Some(_) => {
                "key_file is not set: datagrams are not authenticated, and every host on the LAN \
                 can vote; there are never two leaders only if no host on the LAN sends false \
                 datagrams; create a key with `lanelect keygen`"
            }
        }
    }

    fn quorum_warnings(&self, quorum: &QuorumParams) -> Vec<String> {
        let warnings = [too_few_voters(quorum), self.no_voter(quorum), self.slow_hook(quorum)];
        warnings.into_iter().flatten().chain(self.no_fence(quorum)).collect()
    }

    fn no_voter(&self, quorum: &QuorumParams) -> Option<String> {
        let is_meant = !self.election.candidate || quorum.voters.contains(&self.node_id);
        (!is_meant).then(|| {
            format!(
                "voters: this node, {}, is not one of them; it follows, and neither votes nor \
                 leads; add it to voters on every node, or set candidate = false if it is only to \
                 follow",
                self.node_id
            )
        })
    }

    /// The default of `hook_timeout` does not follow `demote_grace`: it also limits `elected`,
    /// which may mount a disk or start a database, and needs more time than `demoted`.
    fn slow_hook(&self, quorum: &QuorumParams) -> Option<String> {
        let (timeout, grace) = (self.hook_timeout, quorum.demote_grace);
        // A grace of zero says that the hook needs no time, because it holds nothing.
        let is_late = self.may_hold(quorum) && !grace.is_zero() && timeout > grace;
        is_late.then(|| {
            let [timeout, grace] = [timeout, grace].map(duration::format);
            format!(
                "hook_timeout: {timeout} is longer than demote_grace {grace}: if the hook for \
                 demoted hangs, it still runs when another node leads; set hook_timeout below \
                 {grace}, if the hook for elected never takes longer, or demote_grace above \
                 {timeout}, which delays each failover by as much"
            )
        })
    }

    fn no_fence(&self, quorum: &QuorumParams) -> Option<String> {
        (self.may_hold(quorum) && self.fence.is_none()).then(|| {
            format!(
                "fence is not set: nothing cuts this host off if the hook for demoted does not \
                 succeed within demote_grace {}; hooks of two nodes never overlap only if it \
                 always does; set fence, or let what the hook protects compare LANELECT_TERM",
                duration::format(quorum.demote_grace)
            )
        })
    }

    /// Whether this node may lead and has a hook that takes something over.
    fn may_hold(&self, quorum: &QuorumParams) -> bool {
        self.hook.is_some() && self.election.candidate && quorum.voters.contains(&self.node_id)
    }
}

fn too_few_voters(quorum: &QuorumParams) -> Option<String> {
    match quorum.voters.ids() {
        [only] => Some(format!(
            "voters: {only} is the only voter, and no other node can lead without it; three \
             voters tolerate the failure of one"
        )),
        [_, _] => Some(
            "voters: the majority of two voters is both, and no node leads if one of them \
             fails; add a witness, a voter with candidate = false on a third host"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The warning for an id that every host has until it gets a name. One such host in a group works,
/// and so this is no error.
fn shared_id(id: NodeId) -> Option<String> {
    let name = id.as_str().to_ascii_lowercase();
    let is_shared = name == "localhost" || name.starts_with("localhost.") || name == "(none)";
    is_shared.then(|| {
        format!(
            "node_id: {id} is the name of every host without a name of its own, and the second \
             daemon of a group with this id ends; set node_id, or run: hostnamectl set-hostname \
             NAME"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    const QUORUM: &str = "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\n";

    /// The warnings for node `a`, which has a key.
    fn warnings(text: &str) -> Vec<String> {
        let text = format!("node_id = \"a\"\nkey_file = \"/k\"\n{text}");
        Config::from_toml(&text).unwrap().warnings()
    }

    /// Whether there is exactly one warning, which contains these words.
    #[track_caller]
    fn assert_warned(text: &str, words: &str) {
        let warnings = warnings(text);
        let one = matches!(&warnings[..], [warning] if warning.contains(words));
        assert!(one, "{text}: {warnings:#?}");
    }

    #[test]
    fn config_that_can_elect_and_fail_over_has_no_warning() {
        let hooked = "hook = \"x\"\nfence = \"x\"\nhook_timeout = \"4s\"";
        for text in [
            "",
            "hook = \"x\"",
            QUORUM,
            &format!("{QUORUM}{hooked}"),
            &format!("{QUORUM}hook = \"x\"\ncandidate = false"),
            "mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]\ncandidate = false",
        ] {
            assert_eq!(warnings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn config_that_cannot_fail_over_or_lead_has_a_warning() {
        assert_warned("mode = \"quorum\"\nvoters = [\"a\", \"b\"]", "witness");
        assert_warned("mode = \"quorum\"\nvoters = [\"a\"]", "only voter");
        let others = "mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]";
        assert_warned(others, "neither votes nor leads");
    }

    #[test]
    fn hook_in_quorum_mode_needs_a_fence_and_a_limit_within_the_grace() {
        let hooked = |rest: &str| format!("{QUORUM}hook = \"x\"\n{rest}");
        assert_warned(&hooked("fence = \"x\""), "30s is longer than demote_grace 5s");
        assert_warned(&hooked("hook_timeout = \"5s\""), "fence is not set");
        assert_warned(&hooked("demote_grace = \"0s\""), "fence is not set");
        assert_eq!(warnings(&hooked("")).len(), 2);
    }

    #[test]
    fn config_without_a_key_has_a_warning_for_its_mode() {
        for (text, words) in [("", "claim to be the leader"), (QUORUM, "can vote")] {
            let config = Config::from_toml(&format!("node_id = \"a\"\n{text}")).unwrap();
            let warnings = config.warnings();
            let one = matches!(&warnings[..], [warning] if warning.contains(words));
            assert!(one, "{text}: {warnings:?}");
        }
    }

    #[test]
    fn name_that_hosts_share_is_no_node_id() {
        for (id, is_shared) in [
            ("localhost", true),
            ("LocalHost", true),
            ("localhost.localdomain", true),
            ("localhost1", false),
            ("web1", false),
        ] {
            let text = format!("node_id = {id:?}\nkey_file = \"/k\"");
            let warnings = Config::from_toml(&text).unwrap().warnings();
            assert_eq!(warnings.len(), usize::from(is_shared), "{id}: {warnings:?}");
        }
    }

    #[test]
    fn keys_that_no_datagram_needs_have_a_warning() {
        for mode in ["accept", "prefer"] {
            assert_warned(&format!("key_mode = {mode:?}"), "protects nothing");
        }
    }
}
