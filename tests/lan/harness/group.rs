//! What the hooks of all hosts together were promised to do in quorum mode.
//!
//! The journal's order is the order of events across hosts, so no clock comes into it.

use super::journal::{Entry, What};

/// What went wrong, a line each.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// A host's `elected` hook started before another's `demoted` had ended.
    pub(crate) overlaps: Vec<String>,
    /// A reign's term was not above every earlier one's.
    pub(crate) terms: Vec<String>,
}

/// Judges the hooks of all hosts, each of which is demoted in the end, by itself or, after a crash,
/// by its service manager.
pub(crate) fn judge(entries: &[Entry]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut holders: Vec<&str> = Vec::new();
    let mut highest: Option<(u64, &str)> = None;
    for Entry { host, what } in entries {
        match what {
            What::Start(run) if run.event == "elected" || run.event == "reaffirmed" => {
                if let Some(other) = holders.iter().find(|holder| *holder != host) {
                    let term = run.term;
                    verdict.overlaps.push(format!("{host} in term {term} while {other} holds on"));
                }
                if let Some((term, other)) = highest.filter(|(term, _)| run.term <= *term) {
                    let taken = run.term;
                    verdict.terms.push(format!("{host} took {taken} after {other} took {term}"));
                }
                highest = highest.max(Some((run.term, host)));
                if !holders.contains(&host.as_str()) {
                    holders.push(host);
                }
            }
            What::End(run) if run.event == "demoted" => holders.retain(|holder| holder != host),
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
        let line = |step: &&str| {
            let (head, term) = step.rsplit_once(' ').unwrap();
            format!("{head} why {term}\n")
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
    fn a_term_that_was_taken_before_is_told() {
        let led = ["h1 start elected 2", "h1 start demoted 2", "h1 end demoted 2"];
        for term in ["1", "2"] {
            let again = format!("h2 start elected {term}");
            assert_eq!(count(&[&led[..], &[&again]].concat()), (0, 1));
        }
        assert_eq!(count(&[&led[..], &["h2 start elected 3"]].concat()), (0, 0));
    }
}
