//! The other lives under a member's id: one that starts, one that the member has refused, and the
//! one that was heard last.
//!
//! After a restart there are two lives: the earlier one ends, and the later one starts. If two
//! daemons use one id, both go on.

use std::time::Duration;

use crate::time::Time;
use crate::types::{DatagramId, Incarnation, Role, Sequence};
use crate::wire::message::{Body, Message};

/// What is known of the other lives under a member's id.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct OtherLives {
    /// The newest datagram of a life that still starts.
    newcomer: Option<DatagramId>,
    /// A later life to which the present one has objected. As long as the present one is heard,
    /// nothing counts that the other still sends.
    refused: Option<Incarnation>,
    /// The one that was heard last.
    last: Option<HeardLife>,
}

/// A life under the id of a member, as it was heard.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct HeardLife {
    /// Its newest datagram.
    pub(crate) newest: DatagramId,
    /// When that datagram was received.
    pub(crate) at: Time,
    /// The announced interval of the life that was the member then.
    pub(crate) speaks_every: Duration,
    /// Whether the earlier of the two lives was heard after the later one.
    pub(crate) overlaps: bool,
}

impl OtherLives {
    /// Those of a life of which `first` is the first datagram.
    pub(crate) fn known_from(first: &Message) -> Self {
        OtherLives { refused: refused_by(first), ..OtherLives::default() }
    }

    /// The present life takes the place of `displaced`.
    pub(crate) const fn note_displaced(&mut self, displaced: HeardLife) {
        self.last = Some(displaced);
    }

    /// A life with the id of the present one starts: `hello` is its newest datagram.
    pub(crate) const fn note_newcomer(&mut self, hello: DatagramId) {
        self.newcomer = Some(hello);
    }

    /// Whether `life` was heard while it started.
    pub(crate) fn has_started(&self, life: Incarnation) -> bool {
        self.newcomer.is_some_and(|newcomer| newcomer.incarnation == life)
    }

    /// Whether a life later than `life` was heard while it started.
    pub(crate) fn has_started_after(&self, life: Incarnation) -> bool {
        self.newcomer.is_some_and(|newcomer| newcomer.incarnation > life)
    }

    /// Whether the starting life has sent this datagram, or a newer one. With `is_hello`, whether
    /// it is the hello of an earlier starting life, of which a copy may come late.
    pub(crate) fn newcomer_has_sent(&self, datagram: DatagramId, is_hello: bool) -> bool {
        (is_hello || self.has_started(datagram.incarnation))
            && self.newcomer.is_some_and(|newcomer| datagram <= newcomer)
    }

    /// Whether this datagram is of a later life to which the present one has objected.
    pub(crate) fn is_refused(&self, message: &Message) -> bool {
        self.refused == Some(message.incarnation)
    }

    /// Whether this datagram, or a newer one of the same life, was heard of the last other life. If
    /// it was in flight when that life ended, it does not prove it alive.
    pub(crate) fn have_sent(&self, datagram: DatagramId) -> bool {
        self.last.is_some_and(|other| {
            other.newest.incarnation == datagram.incarnation && datagram <= other.newest
        })
    }

    /// Whether two daemons may use the id, while the present life has this patience. After a
    /// restart the earlier life is silent; a live one would send again within its announced
    /// interval.
    pub(crate) fn may_be_alive(&self, now: Time, patience: Duration) -> bool {
        self.last.is_some_and(|other| {
            let restarted_after = match other.speaks_every {
                Duration::ZERO => patience,
                every => (every * 5 / 4).min(patience),
            };
            let limit = if other.overlaps { patience } else { restarted_after };
            now.since(other.at) <= limit
        })
    }

    /// Compares a datagram with the `present` life: notes which lives send, and in which order. The
    /// datagram is no copy of what the last other life has sent.
    pub(crate) fn compare(&mut self, now: Time, present: HeardLife, message: &Message) {
        let (known, heard) = (present.newest, message.id());
        if heard.incarnation == known.incarnation {
            let later = self.last.as_mut().filter(|other| other.newest > known);
            if let Some(later) = later.filter(|_| heard > known) {
                later.overlaps = true;
            }
            return;
        }
        let before = self.last.filter(|other| other.newest.incarnation == heard.incarnation);
        let overlaps = heard < known || before.is_some_and(|before| before.overlaps);
        let stays_out = message.standing.role == Role::Starting || self.is_refused(message);
        let takes_over = heard > known && !stays_out;
        let (newest, at) = if takes_over { (known, present.at) } else { (heard, now) };
        self.last = Some(HeardLife { newest, at, overlaps, speaks_every: present.speaks_every });
    }

    /// The same after a newer datagram of the member, whose life may be another one now.
    pub(crate) fn after(self, message: &Message) -> Self {
        let refused = self.refused.filter(|refused| *refused > message.incarnation);
        let refused = refused_by(message).or(refused);
        let newcomer = self.newcomer.filter(|newcomer| refused != Some(newcomer.incarnation));
        OtherLives { newcomer, refused, last: self.last }
    }

    /// Nothing was refused, and any number of another life is newer than the known ones.
    pub(crate) const fn forget_forgeable(&mut self) {
        self.newcomer = None;
        self.refused = None;
        if let Some(other) = &mut self.last {
            other.newest.sequence = Sequence(0);
        }
    }
}

/// The later life to which the sender objects, if it does.
fn refused_by(message: &Message) -> Option<Incarnation> {
    match message.body {
        Body::Objection { newcomer } if newcomer > message.incarnation => Some(newcomer),
        _ => None,
    }
}
