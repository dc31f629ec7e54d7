//! What is allowed, and is rarely what was meant.

use super::Config;

impl Config {
    /// What people should know about this configuration before they rely on it, each in a sentence
    /// that begins with the key.
    pub fn warnings(&self) -> Vec<String> {
        let Some(quorum) = &self.election.quorum else { return Vec::new() };
        let mut warnings = Vec::new();
        match quorum.voters.ids() {
            [only] => warnings.push(format!(
                "voters: {only} votes alone, so that nobody else ever leads; three voters bear the \
                 loss of one"
            )),
            [_, _] => warnings.push(
                "voters: a majority of two is both, so that nobody leads while either is away. Add a \
                 witness: a voter with candidate = false, on any third machine"
                    .to_owned(),
            ),
            _ => {}
        }
        if self.election.candidate && !quorum.voters.contains(&self.node_id) {
            warnings.push(format!(
                "voters: this node, {}, is not among them, so that it follows and never leads",
                self.node_id
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    /// What a node `a` is warned of.
    fn warnings(text: &str) -> Vec<String> {
        Config::from_toml(&format!("node_id = \"a\"\n{text}")).unwrap().warnings()
    }

    /// Whether there is one warning, with these words.
    fn is_warned(text: &str, words: &str) -> bool {
        matches!(&warnings(text)[..], [warning] if warning.contains(words))
    }

    #[test]
    fn what_elects_and_fails_over_is_nothing_to_warn_of() {
        for text in [
            "",
            "mode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]",
            "mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]\ncandidate = false",
        ] {
            assert_eq!(warnings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn who_cannot_fail_over_or_lead_is_told_so() {
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"a\", \"b\"]", "witness"));
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"a\"]", "alone"));
        assert!(is_warned("mode = \"quorum\"\nvoters = [\"b\", \"c\", \"d\"]", "never leads"));
    }
}
