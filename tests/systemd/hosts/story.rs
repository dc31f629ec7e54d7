//! What hooks did on hosts whose service manager starts daemons again, retold for the judges of
//! `tests/lan`, whose daemons are started and killed by the test.

use crate::harness::group;
use crate::harness::journal::{self, Entry, Run, What};

/// What the hooks of all these hosts did against the rules, a line each; empty where nothing.
pub(crate) fn violations(entries: &[Entry], hosts: &[&str]) -> String {
    let retold = retell(entries);
    hosts.iter().map(|host| journal::violations(&retold, host)).collect()
}

/// Where a host's `elected` hook started before another's `demoted` had ended, a line each.
pub(crate) fn overlaps(entries: &[Entry]) -> Vec<String> {
    group::judge(&retell(entries)).overlaps.iter().map(ToString::to_string).collect()
}

/// A daemon's first hook is `started`, so that is where one was started. A host without power runs
/// no hook any more: as good as demoted.
fn retell(entries: &[Entry]) -> Vec<Entry> {
    let mut retold = Vec::new();
    for entry in entries {
        let also = |what| Entry { host: entry.host.clone(), what };
        match &entry.what {
            What::Start(run) if run.event == "started" => retold.push(also(What::Boot)),
            What::Crash => retold.push(also(What::End(demotion()))),
            _ => {}
        }
        retold.push(entry.clone());
    }
    retold
}

fn demotion() -> Run {
    Run { event: "demoted".into(), reason: "power-loss".into(), term: 0, at: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hooks such as `h1 start elected 3`, or `h1 crash`.
    fn story(steps: &[&str]) -> Vec<Entry> {
        let line = |step: &&str| match step.rsplit_once(' ') {
            Some((head, term)) if term.parse::<u64>().is_ok() => format!("{head} why {term}\n"),
            _ => format!("{step}\n"),
        };
        journal::parse(&steps.iter().map(line).collect::<String>())
    }

    const LED: [&str; 4] =
        ["h1 start started 0", "h1 end started 0", "h1 start elected 1", "h1 end elected 1"];

    #[test]
    fn a_daemon_that_starts_again_must_have_been_demoted() {
        let again = ["h1 start started 1", "h1 end started 1"];
        let demoted = ["h1 start demoted 1", "h1 end demoted 1"];
        let right = story(&[&LED[..], &demoted, &again].concat());
        assert_eq!(violations(&right, &["h1"]), "");
        let wrong = story(&[&LED[..], &again].concat());
        assert!(violations(&wrong, &["h1"]).contains("without a demotion"));
    }

    #[test]
    fn a_host_without_power_has_let_go() {
        let taken = ["h2 start elected 2"];
        assert_eq!(overlaps(&story(&[&LED[..], &taken].concat())).len(), 1);
        let lost = story(&[&LED[..], &["h1 crash"], &taken, &["h1 start started 1"]].concat());
        assert_eq!(overlaps(&lost), [""; 0]);
        assert_eq!(violations(&lost, &["h1"]), "");
    }
}
