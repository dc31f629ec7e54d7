//! How far away a member is: the time to it and back, and how many datagrams are lost.

use std::time::Duration;

use crate::time::Time;
use crate::types::Sequence;

/// A new measurement changes the mean by one part of this many (RFC 6298, section 2).
const SMOOTHING: u32 = 8;

/// The loss is counted over so many pings.
const PINGS_COUNTED: u32 = 32;

/// Of fewer pings the loss is not told: one that is lost would count for too much.
const PINGS_COUNTED_MIN: u32 = 8;

/// Measurements of the way to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RoundTrip {
    /// The last ping, and when it was sent, until it is answered.
    waits: Option<(Sequence, Time)>,
    /// The mean; none before the first answer.
    mean: Option<Duration>,
    /// One bit for each of the last pings, the newest lowest: whether it was lost.
    lost: u32,
    /// How many of these bits count.
    counted: u32,
}

impl RoundTrip {
    /// A ping was sent. The one before it is lost unless it was answered.
    pub(crate) fn ask(&mut self, now: Time, ping: Sequence) {
        if self.waits.replace((ping, now)).is_some() {
            self.count(true);
        }
    }

    /// The member answered a ping. A later answer than `within` does not count: it may be replayed,
    /// and a member that far away takes no part in an election.
    pub(crate) fn answer(&mut self, now: Time, ping: Sequence, within: Duration) {
        let is_answer = |(waits, at): &mut (_, Time)| *waits == ping && now.since(*at) <= within;
        let Some((_, asked)) = self.waits.take_if(is_answer) else { return };
        let took = now.since(asked);
        self.count(false);
        self.mean = Some(match self.mean {
            Some(mean) => (mean * (SMOOTHING - 1) + took) / SMOOTHING,
            None => took,
        });
    }

    fn count(&mut self, is_lost: bool) {
        self.lost = (self.lost << 1) | u32::from(is_lost);
        self.counted = (self.counted + 1).min(PINGS_COUNTED);
    }

    /// The mean time; none before the first answer.
    pub(crate) const fn mean(&self) -> Option<Duration> {
        self.mean
    }

    /// How many of the last pings in a hundred were lost, they or their answers; none before eight
    /// count.
    pub(crate) fn loss_percent(&self) -> Option<u8> {
        let is_told = self.counted >= PINGS_COUNTED_MIN;
        is_told.then(|| u8::try_from(self.lost.count_ones() * 100 / self.counted).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_millis(1_000_000);
    const WITHIN: Duration = Duration::from_secs(1);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn mean_follows_the_answers_and_starts_at_the_first() {
        let mut way = RoundTrip::default();
        assert_eq!((way.mean(), way.loss_percent()), (None, None));
        way.ask(START, Sequence(1));
        assert_eq!(way.loss_percent(), None);
        way.answer(START + ms(80), Sequence(1), WITHIN);
        assert_eq!(way.mean(), Some(ms(80)));
        way.ask(START, Sequence(2));
        way.answer(START + ms(160), Sequence(2), WITHIN);
        assert_eq!(way.mean(), Some(ms(90)));
    }

    #[test]
    fn answer_to_an_earlier_ping_or_a_second_one_does_not_count() {
        let mut way = RoundTrip::default();
        way.ask(START, Sequence(1));
        way.ask(START + ms(500), Sequence(2));
        way.answer(START + ms(501), Sequence(1), WITHIN);
        assert_eq!(way.mean(), None);
        way.answer(START + ms(580), Sequence(2), WITHIN);
        way.answer(START + ms(900), Sequence(2), WITHIN);
        assert_eq!((way.mean(), way.counted, way.lost), (Some(ms(80)), 2, 0b10));
    }

    #[test]
    fn answer_that_comes_too_late_is_lost() {
        let mut way = RoundTrip::default();
        way.ask(START, Sequence(1));
        way.answer(START + WITHIN + ms(1), Sequence(1), WITHIN);
        assert_eq!((way.mean(), way.counted), (None, 0), "it may be replayed");
        way.ask(START + WITHIN + ms(2), Sequence(2));
        assert_eq!((way.mean(), way.counted, way.lost), (None, 1, 1));
    }

    #[test]
    fn loss_is_that_of_the_last_pings() {
        let mut way = RoundTrip::default();
        for number in 0..200 {
            way.ask(START, Sequence(number));
            if number >= 100 && number % 4 != 0 {
                way.answer(START, Sequence(number), WITHIN);
            }
        }
        assert_eq!(way.loss_percent(), Some(25));
    }

    #[test]
    fn loss_is_not_told_before_eight_pings_count() {
        let mut way = RoundTrip::default();
        for number in 0..8 {
            way.ask(START, Sequence(number));
            assert_eq!(way.loss_percent(), None);
        }
        way.ask(START, Sequence(8));
        assert_eq!(way.loss_percent(), Some(100));
    }
}
