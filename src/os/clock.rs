//! The only place that reads a clock, and the alarm that wakes the event loop.
//!
//! The daemon uses `CLOCK_BOOTTIME`: no one can set it, and it runs while the machine is suspended.
//! A lease therefore expires during a suspension.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::ClockId;

#[cfg(test)]
use crate::os::simulated;
use crate::time::Time;

/// The time since the machine booted, suspension included.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads clocks")]
pub fn now() -> Time {
    #[cfg(test)]
    if let Some(stage) = simulated::stage() {
        return stage.now();
    }
    // Fails only on a kernel without this clock, where `Alarm::new` has already failed. The latest
    // time is the safe answer: every lease has expired by then.
    ClockId::CLOCK_BOOTTIME
        .now()
        .map_or(Time::from_nanos(u64::MAX), |read| Time::ZERO + Duration::from(read))
}

/// The wall clock in milliseconds since 1970, for people and to distinguish a daemon's lives. It
/// may be set, and jump in either direction.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads clocks")]
pub fn wall_ms() -> u64 {
    #[cfg(test)]
    if let Some(stage) = simulated::stage() {
        return stage.wall_ms();
    }
    let since_1970 = ClockId::CLOCK_REALTIME.now().map_or(Duration::ZERO, Duration::from);
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// A process may be stopped anywhere, for any time. A simulation stops it where it reads the clock,
/// and more often here.
pub fn may_be_stopped_here() {
    #[cfg(test)]
    let _ = simulated::stage().map(|stage| stage.may_stop());
}

/// Wakes the event loop at a [`Time`], with the precision of the kernel's timers.
///
/// The time-out of a poll is rounded up to milliseconds and does not run during a suspension; a
/// timer descriptor has neither problem.
#[derive(Debug)]
pub struct Alarm {
    timer: TimerFd,
    /// The timer's deadline; `None` if the timer is off or has expired.
    deadline: Option<Time>,
}

impl Alarm {
    /// An alarm without a deadline, which reports under `token` when it expires.
    ///
    /// # Errors
    ///
    /// The kernel provides no timer: out of descriptors or memory.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(timerfd::ClockId::CLOCK_BOOTTIME, flags)?;
        let descriptor = timer.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
        Ok(Alarm { timer, deadline: None })
    }

    /// Expires at `deadline`, at once if that is past, or never. Replaces the earlier deadline; the
    /// same deadline costs no system call.
    ///
    /// # Errors
    ///
    /// None are known for a valid timer; the deadline counts as not set.
    pub fn set(&mut self, deadline: Option<Time>) -> io::Result<()> {
        if deadline == self.deadline {
            return Ok(());
        }
        self.deadline = None;
        match deadline {
            Some(time) => {
                // Zero would turn the timer off.
                let expiry = Duration::from_nanos(time.as_nanos().max(1));
                let expiry = Expiration::OneShot(TimeSpec::from_duration(expiry));
                self.timer.set(expiry, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => self.timer.unset()?,
        }
        self.deadline = deadline;
        Ok(())
    }

    /// Records that the alarm expired, and allows a new deadline. Nothing is read, because a new
    /// deadline also clears the timer. Harmless if the alarm did not expire.
    pub const fn acknowledge(&mut self) {
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll};

    use super::*;

    /// How long a test waits for something that must happen.
    const PATIENCE: Duration = Duration::from_secs(20);
    const ALARM: Token = Token(7);

    fn alarm() -> (Poll, Alarm) {
        let poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), ALARM).unwrap();
        (poll, alarm)
    }

    fn goes_off(poll: &mut Poll, within: Duration) -> bool {
        let mut events = Events::with_capacity(4);
        poll.poll(&mut events, Some(within)).unwrap();
        events.iter().any(|event| event.token() == ALARM)
    }

    #[test]
    fn goes_off_at_its_deadline_and_not_before() {
        let (mut poll, mut alarm) = alarm();
        let deadline = now() + Duration::from_micros(2_500);
        alarm.set(Some(deadline)).unwrap();
        assert!(goes_off(&mut poll, PATIENCE));
        assert!(now() >= deadline);
    }

    #[test]
    fn the_past_goes_off_at_once_even_the_origin_of_the_clock() {
        let (mut poll, mut alarm) = alarm();
        for past in [Time::ZERO, Time::from_nanos(1), now()] {
            alarm.set(Some(past)).unwrap();
            assert!(goes_off(&mut poll, PATIENCE), "{past:?}");
            alarm.acknowledge();
        }
    }

    #[test]
    fn the_same_deadline_can_be_set_again_after_it_went_off() {
        let (mut poll, mut alarm) = alarm();
        let past = now();
        for _ in 0..3 {
            alarm.set(Some(past)).unwrap();
            assert!(goes_off(&mut poll, PATIENCE));
            alarm.acknowledge();
        }
    }

    #[test]
    fn an_alarm_that_is_off_or_far_away_stays_silent() {
        let (mut poll, mut alarm) = alarm();
        alarm.set(Some(now() + Duration::from_millis(30))).unwrap();
        alarm.set(None).unwrap();
        assert!(!goes_off(&mut poll, Duration::from_millis(60)));
        alarm.set(Some(Time::from_nanos(u64::MAX))).unwrap();
        assert!(!goes_off(&mut poll, Duration::from_millis(10)));
    }

    #[test]
    fn acknowledging_an_alarm_that_has_not_gone_off_does_no_harm() {
        let (mut poll, mut alarm) = alarm();
        let deadline = now() + Duration::from_millis(20);
        alarm.set(Some(deadline)).unwrap();
        alarm.acknowledge();
        alarm.set(Some(deadline)).unwrap();
        assert!(goes_off(&mut poll, PATIENCE));
        assert!(now() >= deadline);
    }

    #[test]
    fn an_alarm_that_went_off_is_told_once() {
        let (mut poll, mut alarm) = alarm();
        alarm.set(Some(now())).unwrap();
        assert!(goes_off(&mut poll, PATIENCE));
        alarm.acknowledge();
        assert!(!goes_off(&mut poll, Duration::from_millis(10)), "it was told before");
        alarm.set(None).unwrap();
        assert!(!goes_off(&mut poll, Duration::from_millis(10)));
    }

    #[test]
    fn the_clock_goes_forward_and_the_wall_clock_is_in_this_century() {
        let first = now();
        assert!(first > Time::ZERO && now() >= first);
        assert!(wall_ms() > 1_600_000_000_000);
    }
}
