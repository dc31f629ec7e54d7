//! Every time a host says that it leads, on the wire or to a client, and the check that no two of
//! these can both have been true.

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lanelect::client::Target;
use lanelect::commands::{self, Exit};
use serde_json::Value;

use super::patience;

/// Between two rounds of questions to every host.
const ROUND: Duration = Duration::from_millis(100);

/// A host said that it leads, at some moment from `after` to `by`.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The host's number.
    pub(crate) host: usize,
    /// Under which term; none where it did not say.
    pub(crate) term: Option<u64>,
    /// It had not said so yet.
    pub(crate) after: Instant,
    /// It had said so.
    pub(crate) by: Instant,
    /// How it said so.
    pub(crate) how: How,
}

/// How a host says that it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// A datagram of a leader.
    Datagram,
    /// `lanelect status`.
    Status,
    /// `lanelect is-leader`, which tells no term.
    IsLeader,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claim { host, term, how, .. } = self;
        write!(f, "h{host} ({how:?}, term {term:?})")
    }
}

/// The claims that come after another host has led under a higher term, or under the same, a line
/// each. A leader's first datagram leaves before it answers anybody, so the term behind an
/// `is-leader` is none above that of the host's datagrams sent by then.
pub(crate) fn contradictions(claims: &[Claim]) -> String {
    let mut wrong = String::new();
    let mut proofs: Vec<&Claim> = claims.iter().filter(|claim| claim.term.is_some()).collect();
    proofs.sort_by_key(|claim| claim.by);
    // The highest claim among the first so many proofs.
    let mut highest: Vec<&Claim> = Vec::new();
    for proof in &proofs {
        highest.push(highest.last().filter(|best| best.term >= proof.term).unwrap_or(proof));
    }
    for claim in claims {
        let term = claim.term.or_else(|| latest_term(claims, claim));
        let earlier = proofs.partition_point(|proof| proof.by < claim.after);
        let Some(best) = earlier.checked_sub(1).map(|last| highest[last]) else { continue };
        if best.term > term || (best.term == term && best.host != claim.host) {
            let late = claim.after - best.by;
            let _ = writeln!(wrong, "{claim} said so {late:?} after {best} did");
        }
    }
    wrong + &disorder(claims)
}

/// The datagrams are in the order in which they were sent, whenever they were seen.
fn disorder(claims: &[Claim]) -> String {
    let datagrams: Vec<_> = claims.iter().filter(|claim| claim.how == How::Datagram).collect();
    let mut wrong = String::new();
    let Some(mut best) = datagrams.first() else { return wrong };
    for claim in &datagrams {
        if claim.term < best.term || (claim.term == best.term && claim.host != best.host) {
            let _ = writeln!(wrong, "{claim} was sent after {best}");
        }
        if claim.term > best.term {
            best = claim;
        }
    }
    wrong
}

fn latest_term(claims: &[Claim], answer: &Claim) -> Option<u64> {
    let of_host = claims.iter().filter(|c| c.host == answer.host && c.after <= answer.by);
    of_host.filter_map(|claim| claim.term).max()
}

/// Clients that ask every host all the time whether it leads, also while one does not answer.
pub(crate) struct Interrogation {
    shared: Arc<Shared>,
    rounds: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    claims: Mutex<Vec<Claim>>,
    answers: Mutex<u64>,
    stop: AtomicBool,
}

impl Interrogation {
    /// Starts asking the daemons behind these control sockets, of the hosts 1, 2 and so on.
    pub(crate) fn start(sockets: Vec<PathBuf>) -> Interrogation {
        let shared = Arc::new(Shared::default());
        let rounds = thread::spawn({
            let shared = Arc::clone(&shared);
            move || ask_in_rounds(&sockets, &shared)
        });
        Interrogation { shared, rounds: Some(rounds) }
    }

    /// The answers that say "I lead" so far.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.shared.claims.lock().unwrap().clone()
    }

    /// How many questions were answered, whatever the answer.
    pub(crate) fn answers(&self) -> u64 {
        *self.shared.answers.lock().unwrap()
    }
}

impl Drop for Interrogation {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(rounds) = self.rounds.take() {
            let _ = rounds.join();
        }
    }
}

fn ask_in_rounds(sockets: &[PathBuf], shared: &Arc<Shared>) {
    let mut by_status = false;
    while !shared.stop.load(Ordering::Relaxed) {
        by_status = !by_status;
        for (number, socket) in (1..).zip(sockets) {
            let (shared, target) = (Arc::clone(shared), Target::at(socket));
            thread::spawn(move || ask(number, &target, by_status, &shared));
        }
        patience::pass(ROUND);
    }
}

fn ask(host: usize, target: &Target, by_status: bool, shared: &Shared) {
    let after = patience::now();
    let answer = if by_status { ask_status(target) } else { ask_is_leader(target) };
    let by = patience::now();
    let Some(answer) = answer else { return };
    *shared.answers.lock().unwrap() += 1;
    if let Some((term, how)) = answer {
        shared.claims.lock().unwrap().push(Claim { host, term, after, by, how });
    }
}

/// None without an answer; `Some(None)` where it says no.
type Answer = Option<Option<(Option<u64>, How)>>;

fn ask_status(target: &Target) -> Answer {
    let mut text = Vec::new();
    commands::status(target, true, &mut text).ok()?;
    let status: Value = serde_json::from_slice(&text).ok()?;
    let leads = status["role"] == "leader" || status["leader"]["node_id"] == status["node_id"];
    Some(leads.then(|| (status["term"].as_u64(), How::Status)))
}

fn ask_is_leader(target: &Target) -> Answer {
    let exit = commands::is_leader(target).ok()?;
    Some((exit == Exit::Success).then_some((None, How::IsLeader)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims by host, term (0 for none) and the milliseconds from which to which.
    fn judge(claims: &[(usize, u64, u64, u64)]) -> String {
        let origin = patience::now();
        let at = |ms| origin + Duration::from_millis(ms);
        let claim = |&(host, term, after, by): &(usize, u64, u64, u64)| {
            let (term, how) =
                if term == 0 { (None, How::IsLeader) } else { (Some(term), How::Status) };
            Claim { host, term, after: at(after), by: at(by), how }
        };
        contradictions(&claims.iter().map(claim).collect::<Vec<_>>())
    }

    #[test]
    fn one_after_the_other_is_right() {
        assert_eq!(judge(&[(1, 3, 0, 10), (2, 4, 11, 12), (2, 0, 13, 14), (2, 4, 13, 20)]), "");
    }

    #[test]
    fn what_may_have_been_said_before_is_right() {
        assert_eq!(judge(&[(1, 3, 0, 100), (2, 4, 10, 20)]), "");
    }

    #[test]
    fn an_old_leader_after_a_new_one_is_told() {
        assert!(judge(&[(1, 3, 0, 10), (2, 4, 11, 12), (1, 3, 13, 14)]).contains("h1"));
        assert!(judge(&[(1, 3, 0, 10), (2, 4, 11, 12), (1, 0, 13, 14)]).contains("h1"));
    }

    #[test]
    fn two_leaders_of_a_term_are_told() {
        assert!(judge(&[(1, 3, 0, 10), (2, 3, 11, 12)]).contains("h2"));
    }

    #[test]
    fn a_leader_that_never_declared_itself_is_told() {
        assert!(judge(&[(1, 3, 0, 10), (2, 0, 11, 12)]).contains("h2"));
    }

    #[test]
    fn datagrams_out_of_order_are_told_at_whatever_time_they_were_seen() {
        let now = patience::now();
        let datagram = |host, term| {
            let by = now + Duration::from_secs(1);
            Claim { host, term: Some(term), after: now, by, how: How::Datagram }
        };
        assert_eq!(contradictions(&[datagram(1, 3), datagram(2, 4), datagram(2, 4)]), "");
        assert!(contradictions(&[datagram(2, 4), datagram(1, 3)]).contains("h1"));
        assert!(contradictions(&[datagram(2, 4), datagram(1, 4)]).contains("h1"));
    }
}
