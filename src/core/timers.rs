//! All deadlines of an election in one table.

use crate::time::Time;

/// Makes an enum of plain names, and the list of them.
macro_rules! listed {
    ($(#[$of_all:meta])* pub enum $name:ident { $($(#[$of_one:meta])* $variant:ident,)* }) => {
        $(#[$of_all])*
        pub enum $name { $($(#[$of_one])* $variant,)* }

        impl $name {
            const ALL: &[$name] = &[$($name::$variant),*];

            /// How many variants there are.
            pub const COUNT: usize = $name::ALL.len();
        }
    };
}

listed! {
    /// The purpose of a deadline; an election has at most one deadline for each.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Timer {
        /// Start-up samples the membership.
        Sample,
        /// Start-up ends.
        Grace,
        /// The leader is given up.
        Silence,
        /// This node stands for leadership.
        Candidacy,
        /// A proposal is repeated, in case it was lost.
        Repropose,
        /// Every better node has had the time to answer a proposal.
        Certainty,
        /// The election ends.
        ElectionEnd,
        /// The leader declares.
        Declare,
        /// A follower sends its heartbeat.
        Heartbeat,
        /// A better candidate asks a worse leader to hand over.
        Claim,
        /// The yield time is over.
        YieldEnd,
        /// The holdoff after a failed hook is over.
        HoldoffEnd,
        /// Members are checked for silence.
        Sweep,
        /// A hook that could not be started is tried again.
        HookRetry,
        /// The leader's hook runs again.
        Refresh,
        /// The lease expires.
        Lease,
        /// The grace is over, in which the hooks should have released everything.
        GraceEnd,
        /// The pledge that keeps this voter from supporting a candidate expires.
        PledgeEnd,
        /// A voter without its state asks for the term.
        Inquiry,
        /// A leader whose declaration is overdue is probed.
        Probe,
        /// The leader has not answered a probe, and this follower replies for it.
        ProbeReply,
        /// Unproven nodes are challenged.
        Challenge,
        /// This node answers a challenge.
        Answer,
        /// A resignation is repeated, in case it was lost.
        Resignation,
        /// A leader takes a term above those it has heard of since it last took one.
        Reaffirm,
        /// A ping to all is answered.
        Pong,
    }
}

/// When to wake the election, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// The time.
    pub at: Time,
    /// The purpose.
    pub timer: Timer,
}

/// The deadlines of one election.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct Timers([Option<Time>; Timer::COUNT]);

impl Timers {
    /// Sets `timer` to `at`, whatever it was set to before.
    pub(crate) const fn set(&mut self, timer: Timer, at: Time) {
        self.0[timer as usize] = Some(at);
    }

    /// Sets `timer` to `at`, unless it is set to an earlier time.
    pub(crate) fn set_no_later(&mut self, timer: Timer, at: Time) {
        let slot = &mut self.0[timer as usize];
        *slot = Some(slot.map_or(at, |set| set.min(at)));
    }

    /// Sets `timer` to `at`, unless it is set to a later time.
    pub(crate) fn set_no_earlier(&mut self, timer: Timer, at: Time) {
        let slot = &mut self.0[timer as usize];
        *slot = (*slot).max(Some(at));
    }

    pub(crate) const fn clear(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    pub(crate) fn clear_all(&mut self) {
        *self = Timers::default();
    }

    /// When `timer` fires.
    pub(crate) const fn get(&self, timer: Timer) -> Option<Time> {
        self.0[timer as usize]
    }

    /// The earliest deadline; of equal ones, the first in the order of [`Timer`].
    pub(crate) fn next(&self) -> Option<Deadline> {
        // This runs with every datagram, so it searches the times before the names.
        let at = self.0.iter().flatten().min().copied()?;
        let timer = *Timer::ALL.iter().find(|timer| self.get(**timer) == Some(at))?;
        Some(Deadline { at, timer })
    }

    /// Clears and returns the earliest timer that is due at `now`.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Timer> {
        let Deadline { timer, .. } = self.next().filter(|deadline| deadline.at <= now)?;
        self.clear(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_timers_come_earliest_first_and_only_once() {
        let mut timers = Timers::default();
        timers.set(Timer::Declare, Time::from_millis(20));
        timers.set(Timer::Sweep, Time::from_millis(10));
        timers.set(Timer::Silence, Time::from_millis(30));
        let now = Time::from_millis(20);
        assert_eq!(timers.take_due(now), Some(Timer::Sweep));
        assert_eq!(timers.take_due(now), Some(Timer::Declare));
        assert_eq!(timers.take_due(now), None);
        assert_eq!(
            timers.next(),
            Some(Deadline { at: Time::from_millis(30), timer: Timer::Silence })
        );
    }

    #[test]
    fn set_no_earlier_only_moves_a_deadline_back() {
        let mut timers = Timers::default();
        timers.set_no_earlier(Timer::Silence, Time::from_millis(20));
        timers.set_no_earlier(Timer::Silence, Time::from_millis(10));
        assert_eq!(timers.get(Timer::Silence), Some(Time::from_millis(20)));
        timers.set_no_earlier(Timer::Silence, Time::from_millis(30));
        assert_eq!(timers.get(Timer::Silence), Some(Time::from_millis(30)));
    }

    #[test]
    fn set_no_later_only_moves_a_deadline_forward() {
        let mut timers = Timers::default();
        timers.set_no_later(Timer::Declare, Time::from_millis(20));
        timers.set_no_later(Timer::Declare, Time::from_millis(30));
        assert_eq!(timers.get(Timer::Declare), Some(Time::from_millis(20)));
        timers.set_no_later(Timer::Declare, Time::from_millis(10));
        assert_eq!(timers.get(Timer::Declare), Some(Time::from_millis(10)));
    }
}
