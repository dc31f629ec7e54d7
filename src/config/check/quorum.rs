//! The keys of quorum mode, and what they rule out.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Checker, duration, secs, values};
use crate::core::params::{Mode, Params, QuorumParams};
use crate::core::quorum::lease::HOLD_MAX;

/// No hook may keep the others waiting for longer.
const DEMOTE_GRACE: RangeInclusive<Duration> = Duration::ZERO..=secs(600);

const DEFAULT_DEMOTE_GRACE: Duration = secs(5);

impl Checker<'_> {
    /// What quorum mode is set to; none in available mode, where its keys are refused rather than
    /// ignored: who gives one relies on what it promises.
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
            let message = "is required with mode = \"quorum\": name the node_id of every node that \
                           votes, the same on every node";
            self.refuse("voters", message);
        }
        let demote_grace = demote_grace.unwrap_or(DEFAULT_DEMOTE_GRACE);
        voters.map(|voters| QuorumParams { voters, demote_grace })
    }

    fn refuse_in_available_mode(&mut self) {
        for (key, why) in [
            ("voters", "a leader of available mode needs no votes"),
            ("demote_grace", "available mode waits for no leader that it does not hear"),
            ("fence", "in available mode two nodes may lead at once, and neither is to be cut off"),
        ] {
            if self.written.contains_key(key) && !self.refused(key) {
                let message = format!("has no meaning without mode = \"quorum\": {why}");
                self.refuse(key, &message);
            }
        }
    }

    /// What only makes sense where no votes are taken, and times that are too long to wait for.
    pub(super) fn quorum_conflicts(&mut self, params: &Params) {
        if params.quorum.is_none() {
            return;
        }
        if params.static_role.is_some() {
            let message = "contradicts mode = \"quorum\", where a majority of voters decides; give \
                           the node that should lead the highest priority, or candidate = false \
                           to one that should not";
            self.refuse("static_role", message);
        }
        if params.min_candidates > 1 {
            let message = "has no meaning with mode = \"quorum\", where nobody leads without a \
                           majority of the voters; remove it";
            self.refuse("min_candidates", message);
        }
        if params.declaration_hold() > HOLD_MAX {
            let message = format!(
                "voters wait for a leader that they have lost for a leader_alive_threshold of {}, a \
                 demote_grace of {} and 2 % more, which must not be longer than {} together; \
                 shorten one of them",
                duration::format(params.lease_term()),
                duration::format(params.demote_grace()),
                duration::format(HOLD_MAX),
            );
            self.refuse("leader_alive_threshold", &message);
        }
    }

    /// A command that only runs where the hook overran its grace needs one.
    pub(super) fn fence(&mut self) -> Option<String> {
        let fence = self.text("fence", values::command);
        let has_hook = ["hook", "hook_socket"].iter().any(|key| self.written.contains_key(key));
        if fence.is_some() && !has_hook && !self.refused("fence") {
            let message = "has no meaning without a hook: it runs where the hook has not let go in \
                           time; set hook, or remove it";
            self.refuse("fence", message);
        }
        fence
    }
}
