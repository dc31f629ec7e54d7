//! Configurations that are valid but rarely intended.

use super::Config;
use crate::types::KeyMode;

impl Config {
    /// What an operator should know about this configuration. Each warning begins with the key.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = self.key_mode_warning().map(str::to_owned).into_iter().collect();
        let Some(quorum) = &self.election.quorum else { return warnings };
        match quorum.voters.ids() {
            [only] => warnings.push(format!(
                "voters: {only} is the only voter, and no other node can lead without it; three \
                 voters tolerate the failure of one"
            )),
            [_, _] => warnings.push(
                "voters: the majority of two voters is both, and no node leads if one of them \
                 fails; add a witness, a voter with candidate = false on a third host"
                    .to_owned(),
            ),
            _ => {}
        }
        if self.election.candidate && !quorum.voters.contains(&self.node_id) {
            warnings.push(format!(
                "voters: this node, {}, is not one of them; it follows and never leads",
                self.node_id
            ));
        }
        warnings
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
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    /// The warnings for node `a`.
    fn warnings(text: &str) -> Vec<String> {
        Config::from_toml(&format!("node_id = \"a\"\n{text}")).unwrap().warnings()
    }

    /// Whether there is exactly one warning, which contains these words.
    fn is_warned(text: &str, words: &str) -> bool {
        matches!(&warnings(text)[..], [warning] if warning.contains(words))
    }

    #[test]
    fn config_that_can_elect_and_fail_over_has_no_warning() {
        for text in [
            "",
            "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]",
            "mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]\ncandidate = false",
        ] {
            assert_eq!(warnings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn config_that_cannot_fail_over_or_lead_has_a_warning() {
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"a\", \"b\"]", "witness"));
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"a\"]", "only voter"));
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]", "never leads"));
    }

    #[test]
    fn keys_that_no_datagram_needs_have_a_warning() {
        for mode in ["accept", "prefer"] {
            let text = format!("key_file = \"/x\"\nkey_mode = {mode:?}");
            assert!(is_warned(&text, "protects nothing"), "{mode}");
        }
        assert_eq!(warnings("key_file = \"/x\""), [""; 0]);
    }
}
