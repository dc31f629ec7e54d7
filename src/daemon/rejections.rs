//! Rejected datagrams: each one is counted, and each streak of them is logged once.
//!
//! A streak is a series of datagrams of one kind from one address, without a long silence in
//! between. It is logged when it begins, and the counters of the status show that it lasts. The
//! number of streaks in memory and in the log is limited: an attacker who forges addresses can fill
//! the memory for streaks, but not the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::control_api::{Rejected, RejectedKind, RejectedReport};
use crate::daemon::transport::Stray;
use crate::time::Time;
use crate::types::NodeId;
use crate::wire::frame::{Reject, alleged_sender};
use crate::wire::message::Message;

/// A silence of this length ends a streak. Longer than between two heartbeats in the largest group.
const STREAK_GAP: Duration = Duration::from_secs(600);

/// Most streaks of a kind at a time. Further ones are not logged.
const STREAKS_MAX: usize = 8;

/// Why a datagram is rejected.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cause<'a> {
    /// It does not come from this LAN.
    Stray(Stray),
    /// It is not for this node, or not trusted. With its bytes.
    Reject(Reject, &'a [u8]),
    /// Its term is one that no group ever reaches.
    AbsurdTerm(&'a Message),
}

/// Datagrams of one kind from one address.
#[derive(Debug, Clone)]
struct Streak {
    source: IpAddr,
    newest: Time,
    count: u64,
    /// What is wrong with the first one.
    fault: Fault,
}

/// Whose datagrams are dropped, as far as they say, and why.
#[derive(Debug, Clone, Default)]
struct Fault {
    sender: Option<NodeId>,
    why: String,
}

/// Counts the datagrams dropped on arrival, and logs them.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    counts: Rejected,
    /// Foreign groups are normal if groups share an address, and are only counted.
    streaks: BTreeMap<RejectedKind, ArrayVec<Streak, STREAKS_MAX>>,
}

impl Rejections {
    /// The counts so far, without the datagrams that the election found stale or had no room for.
    pub(super) const fn counts(&self) -> Rejected {
        self.counts
    }

    /// Where dropped datagrams come from.
    pub(super) fn reports(&self, now: Time) -> Vec<RejectedReport> {
        let report = |kind: RejectedKind, streak: &Streak| RejectedReport {
            kind,
            address: streak.source,
            node_id: streak.fault.sender,
            why: streak.fault.why.clone(),
            count: streak.count,
            last_ms: u64::try_from(now.since(streak.newest).as_millis()).unwrap_or(u64::MAX),
        };
        let of_kind = |(kind, streaks): (&RejectedKind, &ArrayVec<Streak, STREAKS_MAX>)| {
            streaks.iter().map(|streak| report(*kind, streak)).collect::<Vec<_>>()
        };
        self.streaks.iter().flat_map(of_kind).collect()
    }

    /// Counts a dropped datagram from `source`.
    pub(super) fn note(&mut self, now: Time, cause: Cause<'_>, source: IpAddr) {
        let counts = &mut self.counts;
        let (count, kind) = match cause {
            Cause::Stray(Stray::Hops(_)) => (&mut counts.hops, Some(RejectedKind::Hops)),
            Cause::Stray(Stray::Unsigned) => (&mut counts.auth, Some(RejectedKind::Unsealed)),
            Cause::Stray(Stray::Source | Stray::Unlisted) => {
                (&mut counts.source, Some(RejectedKind::Source))
            }
            Cause::Reject(Reject::Malformed, _) => {
                (&mut counts.malformed, Some(RejectedKind::Malformed))
            }
            Cause::Reject(Reject::Version | Reject::TooNew, _) => {
                (&mut counts.version, Some(RejectedKind::Version))
            }
            Cause::Reject(Reject::ForeignGroup, _) => (&mut counts.foreign_group, None),
            Cause::Reject(Reject::Unsealed, _) => (&mut counts.auth, Some(RejectedKind::Unsealed)),
            Cause::Reject(Reject::Sealed, _) => (&mut counts.auth, Some(RejectedKind::Sealed)),
            Cause::Reject(Reject::Forged, _) => (&mut counts.auth, Some(RejectedKind::Forged)),
            Cause::AbsurdTerm(_) => (&mut counts.absurd_term, Some(RejectedKind::AbsurdTerm)),
        };
        *count += 1;
        let Some(kind) = kind else { return };
        if let Some(fault) = self.begin_streak(now, kind, source, || fault(cause)) {
            log::warn!("{}", describe(fault, source));
        }
    }

    /// Forgets which streaks were logged: with new settings they are logged again.
    pub(super) fn tell_anew(&mut self) {
        self.streaks.clear();
    }

    /// What is wrong, if a datagram of this kind is the first of a streak that must be logged.
    fn begin_streak(
        &mut self,
        now: Time,
        kind: RejectedKind,
        source: IpAddr,
        fault: impl FnOnce() -> Fault,
    ) -> Option<&Fault> {
        let streaks = self.streaks.entry(kind).or_default();
        if let Some(at) = streaks.iter().position(|streak| streak.source == source) {
            let known = streaks.get_mut(at)?;
            let silence = now.since(known.newest);
            known.newest = now;
            known.count += 1;
            return (silence >= STREAK_GAP).then_some(&known.fault);
        }
        if streaks.is_full() {
            streaks.retain(|streak| now.since(streak.newest) < STREAK_GAP);
        }
        if streaks.is_full() {
            return None;
        }
        streaks.push(Streak { source, newest: now, count: 1, fault: fault() });
        streaks.last().map(|streak| &streak.fault)
    }
}

/// What is wrong with a datagram.
fn fault(cause: Cause<'_>) -> Fault {
    let (sender, why) = match cause {
        Cause::Stray(stray) => (None, stray.to_string()),
        // Its sender would be a guess.
        Cause::Reject(Reject::Malformed, _) => (None, explain(Reject::Malformed)),
        Cause::Reject(reject, datagram) => (alleged_sender(datagram), explain(reject)),
        Cause::AbsurdTerm(message) => {
            let term = message.highest_term();
            let why = format!(
                "their term {term} is absurdly high; that daemon or its state is broken, stop it \
                 and check its state_dir"
            );
            (Some(message.sender), why)
        }
    };
    Fault { sender, why }
}

/// The log line for a streak that begins with such a datagram.
fn describe(Fault { sender, why }: &Fault, source: IpAddr) -> String {
    match sender {
        Some(node_id) => format!("dropping datagrams from {node_id} at {source}: {why}"),
        None => format!("dropping datagrams from {source}: {why}"),
    }
}

/// Why a datagram is rejected, and what to do.
fn explain(reject: Reject) -> String {
    let advice = match reject {
        Reject::Unsealed => "set key_file on that node too",
        Reject::Sealed => "set key_file on this node too",
        Reject::Malformed => {
            "another program uses this address and port, or the network damages datagrams"
        }
        Reject::Version => "another version of lanelect runs there, upgrade one of the two",
        Reject::TooNew => "upgrade lanelect on this node",
        Reject::Forged => {
            return "they have a key that this node does not have, or an attacker forges or relays \
                    them; use the same key_file on both nodes"
                .to_owned();
        }
        Reject::ForeignGroup => return reject.to_string(),
    };
    format!("{reject}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Incarnation, Priority, Role, Sequence, Term, TieBreak};
    use crate::wire::echo::Echoes;
    use crate::wire::message::{Body, Flags, Standing};

    /// A datagram of version 1 in group `web` from `web2`, cut off after its sender.
    const FROM_WEB2: &[u8] = b"\x01\x00\x03web\x04web2";

    const UNSEALED: Cause<'_> = Cause::Reject(Reject::Unsealed, FROM_WEB2);
    const FORGED: Cause<'_> = Cause::Reject(Reject::Forged, FROM_WEB2);

    fn host(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn described(cause: Cause<'_>, source: IpAddr) -> String {
        describe(&fault(cause), source)
    }

    fn begins(rejections: &mut Rejections, now: Time, kind: RejectedKind, source: IpAddr) -> bool {
        rejections.begin_streak(now, kind, source, Fault::default).is_some()
    }

    #[test]
    fn origins_are_reported_with_the_number_of_their_datagrams() {
        let mut rejections = Rejections::default();
        for _ in 0..3 {
            rejections.note(Time::ZERO, UNSEALED, host(3));
        }
        let later = Time::ZERO + Duration::from_millis(1_500);
        rejections.note(later, FORGED, host(4));
        let [unsealed, forged] = &rejections.reports(later)[..] else { panic!("not two") };
        assert_eq!((unsealed.kind, unsealed.address), (RejectedKind::Unsealed, host(3)));
        assert_eq!((unsealed.count, unsealed.last_ms), (3, 1_500));
        assert_eq!(unsealed.node_id, "web2".parse().ok());
        assert!(unsealed.why.starts_with("they have no key"), "{}", unsealed.why);
        assert_eq!((forged.kind, forged.count, forged.last_ms), (RejectedKind::Forged, 1, 0));
    }

    fn under(term: Term) -> Message {
        let (role, flags, voters) = (Role::Follower, Flags::default(), None);
        Message {
            sender: "web2".parse().unwrap(),
            incarnation: Incarnation(1),
            sequence: Sequence(1),
            term,
            standing: Standing {
                role,
                priority: Priority(100),
                tie_break: TieBreak::default(),
                flags,
                voters,
            },
            echoes: Echoes::NONE,
            body: Body::Proposal,
        }
    }

    #[test]
    fn each_kind_is_counted_where_the_status_shows_it() {
        let mut rejections = Rejections::default();
        for reject in [
            Reject::Malformed,
            Reject::Version,
            Reject::ForeignGroup,
            Reject::Unsealed,
            Reject::Sealed,
            Reject::Forged,
        ] {
            rejections.note(Time::ZERO, Cause::Reject(reject, b""), host(1));
        }
        for stray in [Stray::Hops(254), Stray::Hops(1), Stray::Source] {
            rejections.note(Time::ZERO, Cause::Stray(stray), host(1));
        }
        rejections.note(Time::ZERO, Cause::AbsurdTerm(&under(Term(u64::MAX))), host(1));
        let expected = Rejected {
            absurd_term: 1,
            malformed: 1,
            auth: 3,
            foreign_group: 1,
            version: 1,
            hops: 2,
            source: 1,
            ..Rejected::default()
        };
        assert_eq!(rejections.counts(), expected);
    }

    #[test]
    fn a_mixed_group_is_told_apart_from_wrong_keys_and_by_name() {
        let text = described(UNSEALED, host(3));
        assert!(
            text.starts_with("dropping datagrams from web2 at 10.0.0.3: they have no key, "),
            "{text}"
        );
        let text = described(Cause::Reject(Reject::Sealed, FROM_WEB2), host(3));
        assert!(text.starts_with(
            "dropping datagrams from web2 at 10.0.0.3: they have a key, and this node has none"
        ));
        let text = described(FORGED, host(3));
        assert!(text.starts_with(
            "dropping datagrams from web2 at 10.0.0.3: they have a key that this node does not"
        ));
        let text = described(Cause::Reject(Reject::Unsealed, &FROM_WEB2[..4]), host(3));
        assert!(text.starts_with("dropping datagrams from 10.0.0.3: they have no key, "), "{text}");
    }

    #[test]
    fn an_absurd_term_is_told_with_who_sends_it() {
        let text = described(Cause::AbsurdTerm(&under(Term(1 << 40))), host(3));
        assert!(text.starts_with(
            "dropping datagrams from web2 at 10.0.0.3: their term 1099511627776 is absurdly"
        ));
    }

    #[test]
    fn a_streak_is_told_once_however_long_it_lasts() {
        let mut rejections = Rejections::default();
        let mut now = Time::ZERO;
        assert!(begins(&mut rejections, now, RejectedKind::Unsealed, host(1)));
        for _ in 0..100 {
            now += STREAK_GAP / 2;
            assert!(!begins(&mut rejections, now, RejectedKind::Unsealed, host(1)));
        }
        assert!(begins(&mut rejections, now, RejectedKind::Unsealed, host(2)), "another host");
        assert!(begins(&mut rejections, now, RejectedKind::Forged, host(1)), "another kind");
        assert!(
            begins(&mut rejections, now + STREAK_GAP, RejectedKind::Unsealed, host(1)),
            "another streak"
        );
    }

    #[test]
    fn forged_addresses_fill_no_log() {
        let mut rejections = Rejections::default();
        let mut count = |now| {
            let mut told =
                |number| begins(&mut rejections, now, RejectedKind::Malformed, host(number));
            (0..=u8::MAX).filter(|number| told(*number)).count()
        };
        assert_eq!(count(Time::ZERO), STREAKS_MAX);
        assert_eq!(count(Time::ZERO + STREAK_GAP / 2), 0);
        assert_eq!(count(Time::ZERO + STREAK_GAP * 2), STREAKS_MAX);
    }

    #[test]
    fn what_lasts_under_new_settings_is_told_again() {
        let mut rejections = Rejections::default();
        assert!(begins(&mut rejections, Time::ZERO, RejectedKind::Sealed, host(1)));
        rejections.tell_anew();
        assert!(begins(&mut rejections, Time::ZERO, RejectedKind::Sealed, host(1)));
    }
}
