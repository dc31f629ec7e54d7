//! What the hooks of all hosts did, in the order in which it happened, and the check that it is
//! what a user was promised.
//!
//! All hosts append to one file, so the order of its lines is the order of events across hosts,
//! without any clock. A line is one write: `h1 start elected election 3 1234.56`. The machine's
//! uptime stands at its end for those who ask how long something lasted.

use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The hook of every host, `hook.sh HOST`, and its fence. Beside it lies the journal, and each
/// host's directory with what a test asks of the hook: `hook-seconds-EVENT` or else `hook-seconds`
/// to last, `fail-on-EVENT` to exit with 1, and `fault`, a [`Fault`] of every hook but the fence.
///
/// A hook holds a lock until its last process has ended, so the kernel tells whether another runs.
const HOOK: &str = r#"dir=${0%/*}
line="$LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM"
trap 'if [ $? = 0 ]; then how=end; else how=fail; fi; echo "$1 $how $line" >> "$dir/journal"' EXIT
trap 'exit 143' TERM
read -r uptime _ < /proc/uptime
echo "$1 start $line $uptime" >> "$dir/journal"
if [ "$LANELECT_EVENT" != fence ]; then
    exec 9> "$dir/$1.lock"
    flock --nonblock 9 || echo "$1 beside $line" >> "$dir/journal"
    if [ -e "$dir/$1/fault" ]; then
        read -r fault < "$dir/$1/fault"
        echo "$1 $fault $line" >> "$dir/journal"
        case $fault in
            fails) exit 1 ;;
            hangs) sleep 300 ;;
            ignores-term) trap - EXIT; trap '' TERM; sleep 300 ;;
            cannot-be-killed) : < "$dir/$1/stuck/file" ;;
        esac
    fi
fi
for seconds in "$dir/$1/hook-seconds-$LANELECT_EVENT" "$dir/$1/hook-seconds"; do
    if [ -e "$seconds" ]; then sleep "$(cat "$seconds")"; break; fi
done
[ ! -e "$dir/$1/fail-on-$LANELECT_EVENT" ]
"#;

/// The journal of a LAN.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    dir: PathBuf,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The host's name.
    pub(crate) host: String,
    /// What happened.
    pub(crate) what: What,
}

/// What happened on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// The test started a daemon.
    Boot,
    /// The test killed the daemon without warning.
    Crash,
    /// A hook started.
    Start(Run),
    /// It runs beside another one.
    Beside(Run),
    /// A hook does what the test asked for.
    Faulty(Fault, Run),
    /// A hook succeeded.
    End(Run),
    /// A hook failed.
    Fail(Run),
    /// The test let go of hooks that could not be killed.
    Freed,
    /// Its daemon goes on after it was frozen.
    Thawed,
}

/// What is wrong with a host's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They fail at once.
    Fails,
    /// They go on until they are ended.
    Hangs,
    /// They go on until they are killed, and end without a word.
    IgnoresTerm,
    /// They wait in the kernel, and cannot be killed either.
    CannotBeKilled,
}

impl Fault {
    /// Each of them, and what the journal calls it.
    pub(crate) const ALL: [(Fault, &str); 4] = [
        (Fault::Fails, "fails"),
        (Fault::Hangs, "hangs"),
        (Fault::IgnoresTerm, "ignores-term"),
        (Fault::CannotBeKilled, "cannot-be-killed"),
    ];
}

/// A hook's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// `LANELECT_EVENT`.
    pub(crate) event: String,
    /// `LANELECT_REASON`.
    pub(crate) reason: String,
    /// `LANELECT_TERM`.
    pub(crate) term: u64,
    /// For how long the machine had been up when it started, in hundredths of a second cut short;
    /// none where the line is not that of a start.
    pub(crate) at: Option<Duration>,
}

impl Run {
    fn is_same(&self, other: &Run) -> bool {
        (&self.event, &self.reason, self.term) == (&other.event, &other.reason, other.term)
    }
}

impl Journal {
    /// An empty journal, and its hook, in the directory `dir`.
    pub(crate) fn new(dir: &Path) -> Journal {
        fs::write(dir.join("hook.sh"), HOOK).unwrap();
        fs::write(dir.join("journal"), "").unwrap();
        Journal { dir: dir.to_owned() }
    }

    /// Makes a host's hook for `event` last so long from now on.
    pub(crate) fn slow_hook_on(&self, host: &str, event: &str, seconds: &str) {
        self.ask_of_hook(host, &format!("hook-seconds-{event}"), seconds);
    }

    /// Makes a host's hook fail for `event` from now on.
    pub(crate) fn fail_hook_on(&self, host: &str, event: &str) {
        self.ask_of_hook(host, &format!("fail-on-{event}"), "");
    }

    /// Gives a host's hooks a fault from now on, or none.
    pub(crate) fn set_fault(&self, host: &str, fault: Option<Fault>) {
        match Fault::ALL.into_iter().find(|(known, _)| Some(*known) == fault) {
            Some((_, word)) => self.ask_of_hook(host, "fault", &format!("{word}\n")),
            // It may have none.
            None => drop(fs::remove_file(self.dir.join(host).join("fault"))),
        }
    }

    /// The command line for a host's `hook` key.
    pub(crate) fn hook(&self, host: &str) -> String {
        format!("/bin/sh {}/hook.sh {host}", self.dir.display())
    }

    /// Notes `boot`, `crash`, `freed` or `thawed` of a host.
    pub(crate) fn note(&self, host: &str, what: &str) {
        let mut file = OpenOptions::new().append(true).open(self.dir.join("journal")).unwrap();
        file.write_all(format!("{host} {what}\n").as_bytes()).unwrap();
    }

    /// Everything so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        parse(&self.text())
    }

    /// The hook starts of one host so far, as `event reason`.
    pub(crate) fn starts(&self, host: &str) -> Vec<String> {
        runs(&self.entries(), host).map(|r| format!("{} {}", r.event, r.reason)).collect()
    }

    /// The term of the last hook start of one host; zero before the first.
    pub(crate) fn last_term(&self, host: &str) -> u64 {
        runs(&self.entries(), host).last().map_or(0, |r| r.term)
    }

    /// Where the first line stands that holds `text`, from 0.
    #[track_caller]
    pub(crate) fn position(&self, text: &str) -> usize {
        let all = self.text();
        let found = all.lines().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("no hook wrote {text:?}:\n{all}"))
    }

    /// As it stands in the file.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.dir.join("journal")).unwrap()
    }

    fn ask_of_hook(&self, host: &str, file: &str, text: &str) {
        let dir = self.dir.join(host);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
    }
}

/// Whether a host's last hook start says that it leads. After a fence it does not.
pub(crate) fn leads(entries: &[Entry], host: &str) -> bool {
    runs(entries, host).last().is_some_and(|r| r.event == "elected" || r.event == "reaffirmed")
}

/// What a host's hooks did against the rules, a line each; empty where nothing.
///
/// Each daemon's hooks are an optional `started`, then `elected`, any number of `reaffirmed`,
/// `demoted`, `elected` and so on, never two at a time. A daemon that ends in order ends demoted.
/// Terms never shrink, and each `elected` or `reaffirmed` has a higher one than the last, but for a
/// refresh. What was to let go and did not say that it has may run again. So may one run that ended
/// while the daemon was frozen, or is the first to end after that: the time limit by which the
/// daemon gives up the hook-runner may have expired.
pub(crate) fn violations(entries: &[Entry], host: &str) -> String {
    let mut story = Story::default();
    let mut wrong = String::new();
    for entry in entries.iter().filter(|e| e.host == host) {
        if let Err(problem) = story.follow(&entry.what) {
            let _ = writeln!(wrong, "{host}: {problem} at {:?}", entry.what);
        }
    }
    wrong
}

/// The hooks with those of a host that were ended before they wrote a word, of which only the
/// daemon tells: on a machine that stands still, a time limit expires before a shell has begun.
pub(crate) fn with_unheard(entries: &[Entry], host: &str, log: &str) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    let mut next = 0;
    for (run, was_ended) in log.lines().filter_map(parse_result) {
        let start_from = |at: usize, known: Option<&Run>| {
            let is_it = |r: &Run| known.is_none_or(|known| r.is_same(known));
            let start = |e: &Entry| e.host == host && started(e).is_some_and(is_it);
            entries[at..].iter().position(start).map(|found| at + found)
        };
        if let Some(heard) = start_from(next, Some(&run)) {
            next = heard + 1;
        } else if was_ended && start_from(0, Some(&run)).is_none() {
            let at = start_from(next, None).unwrap_or(entries.len());
            entries.insert(at, Entry { host: host.to_owned(), what: What::Start(run) });
            next = at + 1;
        }
    }
    entries
}

/// How far a host's hooks have got.
#[derive(Debug, Default)]
struct Story {
    fresh: bool,
    crashed: bool,
    leading: bool,
    /// The fence command has released what a leader held. The daemon may have asked for `demoted`
    /// before it learned that.
    fenced: bool,
    /// What runs cannot be killed.
    stuck: bool,
    /// The event whose hook was to let go, and has not said that it did.
    holding: Option<String>,
    /// The event of the last run, if that was to let go, and has said that it did.
    let_go: Option<String>,
    /// The daemon may not believe the next end of a run.
    doubts: bool,
    term: u64,
    leadership: Option<u64>,
}

impl Story {
    fn follow(&mut self, what: &What) -> Result<(), &'static str> {
        match what {
            What::Boot => return self.boot(),
            What::Beside(_) => return Err("two hooks at a time"),
            // It holds nothing any more, and `demoted` is not owed.
            What::End(run) if run.event == "fence" => {
                self.fenced |= std::mem::take(&mut self.leading);
            }
            What::Start(run) | What::Fail(run) if run.event == "fence" => {}
            What::Crash => self.crashed = true,
            // The hook of a crashed daemon may live on.
            What::Start(_) if self.crashed => {}
            What::Start(run) => return self.start(run),
            What::End(_) => {
                self.let_go = self.holding.take();
                if std::mem::take(&mut self.doubts) {
                    self.holding.clone_from(&self.let_go);
                }
            }
            What::Thawed => {
                let ended = self.let_go.take();
                self.doubts = ended.is_none();
                self.holding = self.holding.take().or(ended);
            }
            What::Faulty(Fault::CannotBeKilled, _) => self.stuck = true,
            What::Freed => self.stuck = false,
            What::Faulty(..) | What::Fail(_) => {}
        }
        Ok(())
    }

    fn boot(&mut self) -> Result<(), &'static str> {
        let unfinished = self.leading && !self.crashed && !self.stuck;
        *self =
            Story { fresh: true, term: self.term, leadership: self.leadership, ..Story::default() };
        if unfinished { Err("ended in order without a demotion") } else { Ok(()) }
    }

    fn start(&mut self, run: &Run) -> Result<(), &'static str> {
        let lets_go = ["started", "demoted"].contains(&run.event.as_str());
        let holding = lets_go.then(|| run.event.clone());
        let again = lets_go && self.holding == holding;
        let is_late = run.event == "demoted" && self.fenced;
        let before = (self.fresh, self.leading || is_late);
        let leaderships = run.event == "elected" || run.event == "reaffirmed";
        let refreshes = run.reason == "refresh";
        let same_leadership = leaderships
            && !refreshes
            && self.leadership.is_some_and(|leadership| run.term <= leadership);
        let shrunk = run.term < self.term;
        if leaderships {
            self.leadership = Some(run.term);
        }
        (self.fresh, self.fenced) = (false, false);
        self.leading = leaderships;
        (self.holding, self.let_go) = (holding, None);
        self.term = run.term;
        match (run.event.as_str(), before) {
            _ if again => terms(shrunk, same_leadership),
            ("started", (true, _)) | ("elected", (_, false)) => terms(shrunk, same_leadership),
            ("reaffirmed" | "demoted", (_, true)) => terms(shrunk, same_leadership),
            _ => Err("out of turn"),
        }
    }
}

fn terms(shrunk: bool, same_leadership: bool) -> Result<(), &'static str> {
    if shrunk {
        Err("a term that shrank")
    } else if same_leadership {
        Err("a leadership without a new term")
    } else {
        Ok(())
    }
}

fn runs<'a>(entries: &'a [Entry], host: &'a str) -> impl Iterator<Item = &'a Run> {
    entries.iter().filter(move |e| e.host == host).filter_map(started)
}

fn started(entry: &Entry) -> Option<&Run> {
    match &entry.what {
        What::Start(run) => Some(run),
        _ => None,
    }
}

pub(crate) fn parse(text: &str) -> Vec<Entry> {
    text.lines().map(|line| parse_line(line).unwrap_or_else(|| panic!("journal: {line}"))).collect()
}

fn parse_line(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split(' ').collect();
    let (host, what) = match words.as_slice() {
        [host, "boot"] => (host, What::Boot),
        [host, "crash"] => (host, What::Crash),
        [host, "start", run @ ..] => (host, What::Start(parse_run(run)?)),
        [host, "beside", run @ ..] => (host, What::Beside(parse_run(run)?)),
        [host, "end", run @ ..] => (host, What::End(parse_run(run)?)),
        [host, "fail", run @ ..] => (host, What::Fail(parse_run(run)?)),
        [host, "freed"] => (host, What::Freed),
        [host, "thawed"] => (host, What::Thawed),
        [host, word, run @ ..] => {
            let (fault, _) = Fault::ALL.into_iter().find(|(_, known)| known == word)?;
            (host, What::Faulty(fault, parse_run(run)?))
        }
        _ => return None,
    };
    Some(Entry { host: (*host).to_owned(), what })
}

fn parse_run(words: &[&str]) -> Option<Run> {
    let [event, reason, term, uptime @ ..] = words else { return None };
    let at = uptime.first().map(|seconds| seconds.parse().map(Duration::from_secs_f64));
    let (event, reason) = ((*event).into(), (*reason).into());
    Some(Run { event, reason, term: term.parse().ok()?, at: at.transpose().ok()? })
}

/// A run whose result a daemon logs, and whether the daemon ended it.
fn parse_result(line: &str) -> Option<(Run, bool)> {
    let (event, line) = line.split_once("hook for ")?.1.split_once(" (")?;
    let (reason, line) = line.split_once(", term ")?;
    let (term, result) = line.split_once(") ")?;
    let was_ended = result.starts_with("failed because it ");
    let is_result = was_ended || result.starts_with("succeeded") || result.starts_with("failed: ");
    let (event, reason) = (event.to_owned(), reason.to_owned());
    is_result.then_some((Run { event, reason, term: term.parse().ok()?, at: None }, was_ended))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    use super::super::patience::wait_until;
    use super::*;

    /// The violations of a host whose hooks each start and end: `boot`, `crash`, `elected 3` ….
    fn judge(story: &[&str]) -> String {
        let mut text = String::new();
        for step in story {
            match step.split_once(' ') {
                Some((event, term)) => {
                    for edge in ["start", "end"] {
                        let _ = writeln!(text, "h1 {edge} {event} why {term}");
                    }
                }
                None => drop(writeln!(text, "h1 {step}")),
            }
        }
        judge_text(&text)
    }

    fn judge_text(text: &str) -> String {
        violations(&parse(text), "h1")
    }

    #[test]
    fn an_alternating_story_is_right() {
        assert_eq!(judge(&["boot", "started 0", "elected 1", "reaffirmed 3", "demoted 4"]), "");
        assert_eq!(judge(&["boot", "elected 1", "demoted 1", "elected 2"]), "");
        assert_eq!(judge(&["boot", "started 0", "boot", "started 0"]), "");
        assert_eq!(judge(&["boot", "elected 1", "crash", "boot", "started 1", "elected 2"]), "");
    }

    #[test]
    fn every_kind_of_wrong_story_is_told() {
        for (story, problem) in [
            (&["boot", "demoted 1"][..], "out of turn"),
            (&["boot", "reaffirmed 1"], "out of turn"),
            (&["boot", "elected 1", "elected 2"], "out of turn"),
            (&["boot", "elected 1", "demoted 1", "demoted 1"], "out of turn"),
            (&["boot", "elected 1", "demoted 1", "started 1"], "out of turn"),
            (&["boot", "elected 1", "boot"], "without a demotion"),
            (&["boot", "elected 2", "demoted 1"], "shrank"),
            (&["boot", "elected 2", "reaffirmed 2"], "new term"),
            (&["boot", "elected 2", "crash", "boot", "elected 2"], "new term"),
        ] {
            assert!(judge(story).contains(problem), "{story:?}");
        }
    }

    #[test]
    fn what_did_not_let_go_may_run_again() {
        let led = "h1 boot\nh1 start elected why 1\nh1 end elected why 1\n";
        let again = "h1 start demoted why 1 12.34\n";
        let demoted = format!("{again}h1 end demoted why 1\n");
        for failure in ["h1 fail demoted why 1\n", "h1 ignores-term demoted why 1\n"] {
            let story = format!("{led}{again}{failure}{demoted}h1 start elected why 2\n");
            assert_eq!(judge_text(&story), "");
        }
        assert!(judge_text(&format!("{led}{demoted}{demoted}")).contains("turn"));
    }

    #[test]
    fn what_was_asked_for_before_the_fence_ended_may_run_once() {
        let fenced = "h1 boot\nh1 start elected why 1\nh1 hangs elected why 1\n\
            h1 start fence why 1 12.34\nh1 end fence why 1\n";
        let demoted = "h1 start demoted why 1 12.35\nh1 end demoted why 1\n";
        let elected = "h1 start elected why 2 12.36\nh1 end elected why 2\n";
        assert_eq!(judge_text(&format!("{fenced}{elected}")), "");
        let story = format!("{fenced}{demoted}");
        assert_eq!(judge_text(&format!("{story}{elected}")), "");
        assert!(judge_text(&format!("{story}{demoted}")).contains("turn"));
        let started = "h1 start started why 1 12.35\n";
        assert!(judge_text(&format!("{fenced}{started}")).contains("turn"));
        // What still runs is fenced again.
        let again = "h1 start fence why 1 12.34\nh1 end fence why 1\n";
        assert_eq!(judge_text(&format!("{fenced}{again}{demoted}{elected}")), "");
        assert!(judge_text(&format!("{story}{again}{demoted}")).contains("turn"));
    }

    #[test]
    fn what_a_frozen_daemon_may_have_given_up_may_run_once_more() {
        let boot = "h1 boot\n";
        let run = "h1 start started startup 1\nh1 end started startup 1\n";
        for story in [
            format!("{boot}{run}h1 thawed\n{run}"),
            format!("{boot}h1 thawed\n{run}{run}"),
            format!("{boot}h1 start started startup 1\nh1 thawed\nh1 end started startup 1\n{run}"),
        ] {
            assert_eq!(judge_text(&story), "", "{story}");
            assert!(judge_text(&format!("{story}{run}")).contains("turn"), "{story}");
        }
        let led = "h1 start elected why 2\nh1 end elected why 2\n";
        assert!(judge_text(&format!("{boot}{run}{led}h1 thawed\n{run}")).contains("turn"));
    }

    #[test]
    fn what_was_killed_before_it_could_say_so_may_run_again() {
        let led = "h1 boot\nh1 start elected why 1\nh1 hangs elected why 1\n";
        let demoted = "h1 start demoted why 1 12.34\n";
        let story = format!("{led}{demoted}{demoted}h1 end demoted why 1\nh1 boot\n");
        assert_eq!(judge_text(&story), "");
    }

    #[test]
    fn what_was_ended_before_it_began_is_in_the_log() {
        let story =
            "h1 boot\nh1 start demoted lease-lost 2\nh1 end demoted lease-lost 2\nh1 boot\n";
        let judged = |log: &str| violations(&with_unheard(&parse(story), "h1", log), "h1");
        let log = "info  hook for elected (election, term 2) succeeded in 4 ms\n";
        for silent in ["", log, "warn  hook for elected (election, term 2) failed: exit status 1\n"]
        {
            assert!(judged(silent).contains("out of turn"), "{silent}");
        }
        let cut = "warn  hook for elected (election, term 2) failed because it was cut short: exit \
            status 143 after 1646 ms\n";
        let demoted = "info  hook for demoted (lease-lost, term 2) succeeded in 270 ms\n";
        assert_eq!(judged(&format!("{cut}{demoted}")), "");

        let stopped = "h1 boot\nh1 start elected why 1\nh1 end elected why 1\n";
        let late = "info  hook for elected (why, term 1) succeeded in 313 ms\n\
            warn  hook for demoted (shutdown, term 1) failed because it exceeded its time \
            limit: exit status 143 after 2838 ms\n";
        let entries = parse(stopped);
        assert!(leads(&with_unheard(&entries, "h1", ""), "h1"));
        assert!(!leads(&with_unheard(&entries, "h1", late), "h1"));
    }

    #[test]
    fn what_was_fenced_owes_no_demotion() {
        let led = "h1 boot\nh1 start elected why 1\nh1 cannot-be-killed elected why 1\n";
        let fence = "h1 start fence why 1\nh1 end fence why 1\nh1 freed\n";
        assert_eq!(judge_text(&format!("{led}{fence}h1 boot\n")), "");
        let without = format!("{led}h1 freed\nh1 boot\n");
        assert!(judge_text(&without).contains("without a demotion"));
    }

    #[test]
    fn overlapping_hooks_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let run = |event: &str| {
            let mut hook = Command::new("/bin/sh");
            hook.arg("-c").arg(journal.hook("h1"));
            let of_a_leadership = [("EVENT", event), ("REASON", "why"), ("TERM", "1")];
            hook.envs(of_a_leadership.map(|(name, value)| (format!("LANELECT_{name}"), value)));
            hook
        };
        journal.note("h1", "boot");
        journal.slow_hook_on("h1", "elected", "100");
        let mut slow = run("elected").process_group(0).spawn().unwrap();
        wait_until("it runs", || journal.text().contains("start elected"));
        for beside in ["fence", "demoted"] {
            assert!(run(beside).status().unwrap().success());
            let told = violations(&journal.entries(), "h1");
            assert_eq!(told.contains("two hooks at a time"), beside == "demoted", "{told}");
        }
        let group = Pid::from_raw(slow.id().try_into().unwrap());
        killpg(group, Signal::SIGKILL).unwrap();
        slow.wait().unwrap();
        wait_until("its processes have ended", || {
            fs::write(dir.path().join("journal"), "").unwrap();
            assert!(run("demoted").status().unwrap().success());
            !journal.text().contains("beside")
        });
    }
}
