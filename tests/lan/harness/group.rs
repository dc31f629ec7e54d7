//! What the hooks of all hosts together were promised to do in quorum mode.
//!
//! The journal's order is the order of events across hosts, so no clock comes into it.

use std::fmt;
use std::time::Duration;

use super::journal::{Entry, What};

/// What went wrong.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Where a host's `elected` hook started before another had let go.
    pub(crate) overlaps: Vec<Overlap>,
    /// A leadership's term was not above every earlier one's, a line each.
    pub(crate) terms: Vec<String>,
}

/// A host's `elected` hook started before another's `demoted`, or its fence, had succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Which host took over, under which term.
    pub(crate) taker: (String, u64),
    /// When, by the machine's uptime.
    pub(crate) at: Option<Duration>,
    /// Which host held on, since which term.
    pub(crate) holder: (String, u64),
    /// Whether the test had asked a hook of the holder for a fault since then.
    pub(crate) was_faulty: bool,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlap { taker, holder, .. } = self;
        write!(f, "{} in term {} while {} holds on since {}", taker.0, taker.1, holder.0, holder.1)
    }
}

/// A host that may hold what only a leader may.
struct Holder<'a> {
    host: &'a str,
    term: u64,
    is_faulty: bool,
}

/// Judges the hooks of all hosts, each of which is demoted in the end, by itself or, after a crash,
/// by its service manager.
pub(crate) fn judge(entries: &[Entry]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut holders: Vec<Holder<'_>> = Vec::new();
    let mut highest: Option<(u64, &str)> = None;
    for Entry { host, what } in entries {
        match what {
            What::Start(run) if run.event == "elected" || run.event == "reaffirmed" => {
                if let Some(other) = holders.iter().find(|holder| holder.host != host) {
                    verdict.overlaps.push(Overlap {
                        taker: (host.clone(), run.term),
                        at: run.at,
                        holder: (other.host.to_owned(), other.term),
                        was_faulty: other.is_faulty,
                    });
                }
                if let Some((term, other)) = highest.filter(|(term, _)| run.term <= *term) {
                    let taken = run.term;
                    verdict.terms.push(format!("{host} took {taken} after {other} took {term}"));
                }
                highest = highest.max(Some((run.term, host)));
                if !holders.iter().any(|holder| holder.host == host) {
                    holders.push(Holder { host, term: run.term, is_faulty: false });
                }
            }
            What::Faulty(..) => {
                let holder = holders.iter_mut().find(|holder| holder.host == host);
                holder.into_iter().for_each(|holder| holder.is_faulty = true);
            }
            What::End(run) if ["started", "demoted", "fence"].contains(&&*run.event) => {
                holders.retain(|holder| holder.host != host);
            }
            _ => {}
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::super::journal::parse;
    use super::*;

    /// The number of overlaps, and of wrong terms, in hooks such as `h1 start elected 3`.
    fn count(story: &[&str]) -> (usize, usize) {
        let line = |step: &&str| match step.rsplit_once(' ') {
            Some((head, term)) if term.parse::<u64>().is_ok() => format!("{head} why {term}\n"),
            _ => format!("{step}\n"),
        };
        let verdict = judge(&parse(&story.iter().map(line).collect::<String>()));
        (verdict.overlaps.len(), verdict.terms.len())
    }

    #[test]
    fn one_after_the_other_is_right() {
        let story = [
            "h1 start elected 1",
            "h1 end elected 1",
            "h1 start demoted 1",
            "h2 start started 0",
            "h1 end demoted 1",
            "h2 start elected 2",
        ];
        assert_eq!(count(&story), (0, 0));
    }

    #[test]
    fn a_start_before_the_other_has_let_go_is_an_overlap() {
        let story = ["h1 start elected 1", "h1 start demoted 1", "h2 start elected 2"];
        assert_eq!(count(&story), (1, 0));
        assert_eq!(
            count(&["h1 start elected 1", "h1 end elected 1", "h2 start elected 2"]),
            (1, 0)
        );
    }

    #[test]
    fn only_what_succeeds_lets_go() {
        let led = ["h1 start elected 1", "h1 end elected 1", "h1 start demoted 1"];
        let taken = ["h2 start elected 2"];
        for (end, overlaps) in [
            ("h1 end demoted 1", 0),
            ("h1 end fence 1", 0),
            ("h1 fail demoted 1", 1),
            ("h1 fail fence 1", 1),
            ("h1 freed", 1),
        ] {
            assert_eq!(count(&[&led[..], &[end], &taken].concat()), (overlaps, 0), "{end}");
        }
    }

    #[test]
    fn a_term_that_was_taken_before_is_told() {
        let led = ["h1 start elected 2", "h1 start demoted 2", "h1 end demoted 2"];
        for term in ["1", "2"] {
            let again = format!("h2 start elected {term}");
            assert_eq!(count(&[&led[..], &[&again]].concat()), (0, 1));
        }
        assert_eq!(count(&[&led[..], &["h2 start elected 3"]].concat()), (0, 0));
    }
}
