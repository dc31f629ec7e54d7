//! Which elections will do the same.

use std::hash::Hash;
use std::hash::Hasher;

use super::Election;

/// Elections that will do the same hash alike, as long as chance is the same for them; so whoever
/// explores what may happen can tell by the hash where two ways have met. Left out is the state of
/// the generator, what is only ever reported, the will, and the outputs, which are to be taken before.
impl Hash for Election {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Election {
            node_id,
            incarnation,
            params,
            rng: _,
            state,
            exclusions,
            term,
            reign,
            heard_term,
            durable,
            asked_to_keep,
            leader,
            previous_leader: _,
            untold,
            voter,
            quorum,
            conceded,
            last_reaffirmed,
            cause: _,
            since: _,
            members,
            freshness,
            timers,
            hooks,
            failures_in_a_row,
            hook_failures,
            heir: _,
            bequeathed: _,
            no_claim_before,
            resigned_at,
            reported_short: _,
            reported_rival: _,
            probing,
            telling,
            answers_owed,
            sequence,
            last_declared,
            last_proposed,
            last_objected,
            stop_cause,
            ignored: _,
            outputs: _,
        } = self;
        (node_id, incarnation, params, state, exclusions).hash(hasher);
        (term, reign, heard_term, durable, asked_to_keep, leader, untold).hash(hasher);
        self.all_is_kept().hash(hasher);
        (voter, quorum, conceded, last_reaffirmed, members, freshness, timers, hooks).hash(hasher);
        (failures_in_a_row, hook_failures, no_claim_before, resigned_at).hash(hasher);
        (probing, telling, sequence).hash(hasher);
        (answers_owed, last_declared, last_proposed, last_objected, stop_cause).hash(hasher);
    }
}
