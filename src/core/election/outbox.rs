//! The outputs of an election, and what was reported. Neither changes what it does next.

use std::collections::VecDeque;
use std::hash::Hash;
use std::hash::Hasher;
use std::time::Duration;

use super::Ignored;
use super::crash_plan::Basis;
use crate::core::hook::Reason;
use crate::core::output::{Event, Output, StopCause};
use crate::time::Time;
use crate::types::NodeId;

/// Outputs that wait, and what was reported.
///
/// Elections that differ only in this act alike, except for their reports and the crash plan. So it
/// is not part of their hash, by which the model checker finds equal states. Take the outputs
/// before hashing.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    pub(super) outputs: VecDeque<Output>,
    pub(super) ignored: Ignored,
    pub(super) previous_leader: Option<NodeId>,
    /// Why leadership last changed hands here; goes into the next
    /// [`Transition`](crate::core::output::Transition).
    pub(super) cause: Option<Reason>,
    /// Since when the role and the leader have not changed.
    pub(super) since: Time,
    /// Whether it was reported that too few candidates are visible.
    pub(super) reported_short: bool,
    /// The rival leader that was reported last.
    pub(super) reported_rival: Option<NodeId>,
    /// Whether the end was reported.
    reported_end: bool,
    /// The successor that the crash plan names.
    pub(super) planned_successor: Option<NodeId>,
    /// The inputs of the crash plan that was last requested.
    pub(super) crash_plan_basis: Option<Basis>,
}

impl Outbox {
    pub(super) fn new(now: Time) -> Self {
        Outbox {
            outputs: VecDeque::new(),
            ignored: Ignored::default(),
            previous_leader: None,
            cause: None,
            since: now,
            reported_short: false,
            reported_rival: None,
            reported_end: false,
            planned_successor: None,
            crash_plan_basis: None,
        }
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn notify(&mut self, event: Event) {
        self.push(Output::Notify(event));
    }

    /// Reports the end, once.
    pub(super) fn report_end(&mut self, cause: StopCause) {
        if !std::mem::replace(&mut self.reported_end, true) {
            self.push(Output::Stopped(cause));
        }
    }
}

impl Hash for Outbox {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The only source of randomness. It is not part of the hash, because it is no state of the
/// protocol.
#[derive(Debug, Clone)]
pub(super) struct Chance(fastrand::Rng);

impl Chance {
    pub(super) fn seeded(seed: u64) -> Self {
        Chance(fastrand::Rng::with_seed(seed))
    }

    /// A random time up to `most`.
    pub(super) fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.0.u64(0..=nanos))
    }
}

impl Hash for Chance {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
