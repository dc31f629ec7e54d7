//! The keys of quorum mode, and the keys that they exclude.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Checker, duration, secs, values};
use crate::core::params::{Mode, Params, QuorumParams};
use crate::core::quorum::lease::HOLD_MAX;

/// The other nodes wait for the hook no longer than this.
const DEMOTE_GRACE: RangeInclusive<Duration> = Duration::ZERO..=secs(600);

const DEFAULT_DEMOTE_GRACE: Duration = secs(5);

impl Checker<'_> {
    /// The settings of quorum mode; `None` in available mode. There its keys are rejected, not
    /// ignored: an operator who sets one relies on its guarantee.
    pub(super) fn quorum(&mut self) -> Option<QuorumParams> {
        let mode = self.text("mode", values::choice(values::MODES));
        let voters = self.names("voters", "[\"web1\", \"web2\", \"web3\"]", values::voters);
        let demote_grace = self.duration("demote_grace", DEMOTE_GRACE);
        if self.refused("mode") {
            return None;
        }
        if mode != Some(Mode::Quorum) {
            self.refuse_in_available_mode();
            return None;
        }
        if voters.is_none() && !self.refused("voters") {
            let message = "is required with mode = \"quorum\"; list the node_id of every voter, \
                           the same on every node";
            self.refuse("voters", message);
        }
        let demote_grace = demote_grace.unwrap_or(DEFAULT_DEMOTE_GRACE);
        voters.map(|voters| QuorumParams { voters, demote_grace })
    }

    fn refuse_in_available_mode(&mut self) {
        for (key, why) in [
            ("voters", "in available mode a leader needs no votes"),
            ("demote_grace", "in available mode no node waits for a leader that is silent"),
            ("fence", "in available mode two nodes may lead at once, and no node is cut off"),
        ] {
            if self.written.contains_key(key) && !self.refused(key) {
                let message = format!(
                    "has no effect without mode = \"quorum\": {why}; remove it, or set the mode"
                );
                self.refuse(key, &message);
            }
        }
    }

    /// Keys that only make sense without votes, and times that are too long to wait for.
    pub(super) fn quorum_conflicts(&mut self, params: &Params) {
        if params.quorum.is_none() {
            return;
        }
        if params.static_role.is_some() {
            let message = "contradicts mode = \"quorum\", in which a majority of the voters \
                           decides; give the preferred leader the highest priority, and set \
                           candidate = false on a node that must not lead";
            self.refuse("static_role", message);
        }
        if params.min_candidates > 1 {
            let message = "has no effect with mode = \"quorum\", in which a leader needs a \
                           majority of the voters; remove it";
            self.refuse("min_candidates", message);
        }
        if params.declaration_hold() > HOLD_MAX {
            let message = format!(
                "voters wait for a failed leader for leader_alive_threshold {} plus demote_grace \
                 {} plus 2 %, which must not be longer than {} together; shorten one of them",
                duration::format(params.lease_term()),
                duration::format(params.demote_grace()),
                duration::format(HOLD_MAX),
            );
            self.refuse("leader_alive_threshold", &message);
        }
    }

    /// The fence command runs only if the hook for `demoted` does not succeed, and so needs a hook.
    pub(super) fn fence(&mut self) -> Option<String> {
        let fence = self.text("fence", values::command);
        let has_hook = ["hook", "hook_socket"].iter().any(|key| self.written.contains_key(key));
        if fence.is_some() && !has_hook && !self.refused("fence") {
            let message = "has no effect without a hook: it runs if the hook for demoted does not \
                           succeed in time; set hook, or remove fence";
            self.refuse("fence", message);
        }
        fence
    }
}
