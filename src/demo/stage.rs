//! Where the demo happens: the daemons, the one place that waits, and what is told meanwhile.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};
use std::mem;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::node::{Node, Reign, Sighting};
use super::scratch::ScratchDirectory;
use super::story::{Chapter, HookLine};
use super::timeline::Timeline;
use super::{DemoError, HEARTBEAT_INTERVAL, TIME_LIMIT};
use crate::control_api::StatusReport;
use crate::core::hook::{HookEvent, Reason};
use crate::os::clock;
use crate::time::Time;
use crate::types::{NodeId, Role, Term};

const NAMES: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];

/// Between looks at what cannot be waited for: statuses, hook logs, signals, ended processes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Signals that end the demo in an orderly way.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The daemons and what is known of them. Dropping it ends them and removes their files.
#[derive(Debug)]
pub(super) struct Stage<W> {
    // Before the directory: daemons end first, then their files go.
    nodes: Vec<Node>,
    _directory: ScratchDirectory,
    timeline: Timeline<W>,
    reigns: Vec<Reign>,
    sightings: Receiver<Sighting>,
    /// Received but not yet told.
    heard: Vec<Sighting>,
    sightings_to: Sender<Sighting>,
    /// The signal that arrived, or 0.
    signal: Arc<AtomicUsize>,
    deadline: Time,
}

impl<W: Write> Stage<W> {
    /// Prepares the daemons and tells so, but starts none.
    ///
    /// # Errors
    ///
    /// Where the system refuses files, signals or a port.
    pub(super) fn set_up(out: W) -> Result<Self, DemoError> {
        let signal = catch_signals().map_err(DemoError::system("handle signals"))?;
        let group = format!("demo-{}", process::id());
        let multicast = unused_multicast().map_err(DemoError::system("find a free UDP port"))?;
        let parent = env::temp_dir();
        let doing = format!("make a temporary directory in {}", parent.display());
        let directory = ScratchDirectory::create(&parent, &format!("lanelect-{group}"))
            .map_err(DemoError::system(doing))?;
        let nodes = NAMES
            .into_iter()
            .map(|name| Node::prepare(name, directory.path(), &group, multicast))
            .collect::<Result<_, _>>()?;
        let start = clock::now();
        let mut timeline = Timeline::new(out, start);
        let heartbeat = HEARTBEAT_INTERVAL.as_millis();
        let title =
            format!("Group {group} at {multicast} on lo, a heartbeat every {heartbeat} ms\n\n");
        timeline.print(&title)?;
        let (sightings_to, sightings) = mpsc::channel();
        Ok(Stage {
            nodes,
            _directory: directory,
            timeline,
            reigns: Vec::new(),
            sightings,
            heard: Vec::new(),
            sightings_to,
            signal,
            deadline: start + TIME_LIMIT,
        })
    }

    /// A node's name.
    pub(super) fn name(&self, node: usize) -> &'static str {
        self.nodes[node].name
    }

    /// Tells what happens now, and returns when that is.
    pub(super) fn tell(&mut self, who: &str, what: impl Display) -> io::Result<Time> {
        let now = clock::now();
        self.timeline.tell(now, who, what)?;
        Ok(now)
    }

    /// Prints text that has no time.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.timeline.print(text)
    }

    /// Starts every daemon.
    pub(super) fn start_all(&mut self) -> Result<(), DemoError> {
        (0..self.nodes.len()).try_for_each(|node| self.start(node))
    }

    /// Starts one daemon.
    pub(super) fn start(&mut self, node: usize) -> Result<(), DemoError> {
        let doing = format!("start {}", self.name(node));
        self.nodes[node].start().map_err(DemoError::system(doing))
    }

    /// Kills one daemon.
    pub(super) fn kill(&mut self, node: usize) -> Result<(), DemoError> {
        let doing = format!("kill {}", self.name(node));
        self.nodes[node].kill().map_err(DemoError::system(doing))?;
        // What its hooks wrote before belongs to the life that ended.
        self.tell_news()?;
        self.nodes[node].story.push(Chapter::Killed);
        Ok(())
    }

    /// Asks a leader to yield.
    pub(super) fn ask_to_yield(&mut self, node: usize) -> Result<(), DemoError> {
        let name = self.name(node);
        let asked = self.nodes[node].yield_leadership();
        asked.map_err(|source| DemoError::Yield { node: name, source })
    }

    /// Asks one daemon to end.
    pub(super) fn terminate(&mut self, node: usize) -> Result<(), DemoError> {
        let doing = format!("stop {}", self.name(node));
        self.nodes[node].terminate().map_err(DemoError::system(doing))
    }

    /// Asks all the others to end.
    pub(super) fn terminate_all_but(&mut self, node: usize) -> Result<(), DemoError> {
        (0..self.nodes.len()).filter(|&other| other != node).try_for_each(|n| self.terminate(n))
    }

    /// Waits until all running daemons agree on a leader who is not `former`, and every hook has
    /// caught up with that.
    ///
    /// # Errors
    ///
    /// Where `what` does not come in time, or anything ends the demo before.
    pub(super) fn await_leader(
        &mut self,
        what: &'static str,
        former: Option<usize>,
    ) -> Result<Reign, DemoError> {
        self.until(what, |stage| {
            Ok(stage.settled_reign()?.filter(|reign| Some(reign.node) != former))
        })
    }

    /// Waits until `node` follows, while `leader` leads on: nobody else has led since its reign
    /// began.
    ///
    /// # Errors
    ///
    /// As in [`await_leader`](Self::await_leader).
    pub(super) fn await_follower(
        &mut self,
        what: &'static str,
        node: usize,
        leader: &Reign,
    ) -> Result<(), DemoError> {
        self.until(what, |stage| {
            let settled = stage.settled_reign()?;
            let unmoved = settled.is_some() && leads_on(&stage.reigns, leader);
            Ok((unmoved && node != leader.node).then_some(()))
        })
    }

    /// Waits until those daemons that `which` selects have ended well and left their hosts as
    /// followers.
    ///
    /// # Errors
    ///
    /// As in [`await_leader`](Self::await_leader), and where one did not end well.
    pub(super) fn await_end(
        &mut self,
        what: &'static str,
        which: impl Fn(usize) -> bool,
    ) -> Result<(), DemoError> {
        self.until(what, |stage| {
            let mut awaited = stage.nodes.iter().enumerate().filter(|&(node, _)| which(node));
            let ended = |node: &Node| !node.is_running() && node.story.leads() == Some(false);
            Ok(awaited.all(|(_, node)| ended(node)).then_some(()))
        })
    }

    /// What each node's hooks saw, by name.
    ///
    /// # Errors
    ///
    /// Where that is not what hooks are promised.
    pub(super) fn stories(&self) -> Result<Vec<(&'static str, String)>, DemoError> {
        let tell = |node: &Node| match node.story.check() {
            Ok(()) => Ok((node.name, node.story.to_string())),
            Err(source) => Err(DemoError::Hooks { node: node.name, source }),
        };
        self.nodes.iter().map(tell).collect()
    }

    /// Writes the last lines of every daemon's log.
    ///
    /// # Errors
    ///
    /// Where they cannot be written.
    pub(super) fn write_logs(&self, out: &mut impl Write) -> io::Result<()> {
        for node in &self.nodes {
            let tail = node.log_tail().unwrap_or_else(|error| format!("  no log: {error}\n"));
            write!(out, "The last lines of {}'s log:\n{tail}", node.name)?;
        }
        writeln!(out)
    }

    /// Tells what happens until `found` finds what is waited for.
    fn until<T>(
        &mut self,
        what: &'static str,
        mut found: impl FnMut(&mut Self) -> Result<Option<T>, DemoError>,
    ) -> Result<T, DemoError> {
        loop {
            self.check_signal()?;
            self.nodes.iter_mut().try_for_each(Node::poll_end)?;
            // After the ends: what a hook wrote before its daemon's is not missed.
            self.tell_news()?;
            if let Some(found) = found(self)? {
                return Ok(found);
            }
            if clock::now() > self.deadline {
                return Err(DemoError::Missing { what, seen: self.picture() });
            }
            self.heard.extend(self.sightings.recv_timeout(POLL_INTERVAL));
        }
    }

    fn check_signal(&self) -> Result<(), DemoError> {
        let arrived = self.signal.load(Ordering::Relaxed);
        let caught = SIGNALS.into_iter().find(|&signal| signal as usize == arrived);
        caught.map_or(Ok(()), |signal| Err(DemoError::Interrupted(signal.as_str())))
    }

    /// Tells what has happened since the last time.
    ///
    /// Hooks leave no times. But a leader's `demoted` has ended before its successor leads, and
    /// `elected` begins only then: so they are told before and after the sightings.
    fn tell_news(&mut self) -> Result<(), DemoError> {
        self.heard.extend(self.sightings.try_iter());
        let sightings = mem::take(&mut self.heard);
        let (up, down): (Vec<_>, Vec<_>) =
            self.hook_runs()?.into_iter().partition(|(_, HookLine { event, .. })| {
                matches!(event, HookEvent::Elected | HookEvent::Reaffirmed)
            });
        let now = clock::now();
        let before = sightings.first().map_or(now, |(reign, _)| reign.at);
        down.iter().try_for_each(|(node, run)| self.tell_hook(before, *node, run))?;
        for (reign, reason) in sightings {
            self.reign(reign, reason.map(Reason::as_str))?;
        }
        up.iter().try_for_each(|(node, run)| self.tell_hook(now, *node, run))
    }

    /// The runs of all nodes' hooks since the last time.
    fn hook_runs(&mut self) -> Result<Vec<(usize, HookLine)>, DemoError> {
        let mut found = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let doing = format!("read what {}'s hooks wrote", node.name);
            let runs = node.poll_hooks().map_err(DemoError::system(doing))?;
            found.extend(runs.into_iter().map(|run| (index, run)));
        }
        Ok(found)
    }

    fn tell_hook(&mut self, at: Time, node: usize, run: &HookLine) -> Result<(), DemoError> {
        let HookLine { event, reason, term } = run;
        if *event == HookEvent::Elected {
            // Usually the watcher has told already.
            self.reign(Reign { node, term: *term, at }, Some(reason))?;
        }
        // Every daemon's first life begins with it.
        if *event != HookEvent::Started || self.nodes[node].story.was_killed() {
            let what = format!("hook: {event} ({reason}), term {term}");
            self.timeline.tell(at, self.name(node), what)?;
        }
        Ok(())
    }

    /// Tells of a reign, and remembers it, where it is new.
    fn reign(&mut self, reign: Reign, reason: Option<&str>) -> Result<Reign, DemoError> {
        let same = |known: &&Reign| (known.node, known.term) == (reign.node, reign.term);
        if let Some(known) = self.reigns.iter().find(same) {
            return Ok(*known);
        }
        let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let what = format!("leads, term {}{why}", reign.term);
        self.timeline.tell(reign.at, self.nodes[reign.node].name, what)?;
        self.reigns.push(reign);
        Ok(reign)
    }

    /// The reign of the leader on whom all running daemons agree, once every hook has caught up.
    fn settled_reign(&mut self) -> Result<Option<Reign>, DemoError> {
        let Some(reports) = self.reports() else { return Ok(None) };
        let Some(settled) = agreed_leader(&reports) else { return Ok(None) };
        let hooks_agree = reports.iter().all(|(node, report)| {
            self.nodes[*node].story.leads() == Some(report.role == Role::Leader)
        });
        if !hooks_agree {
            return Ok(None);
        }
        let (node, term) = settled;
        // Usually a watcher has told already.
        self.reign(Reign { node, term, at: clock::now() }, None).map(Some)
    }

    /// What all running daemons say; none before each of them answers.
    fn reports(&mut self) -> Option<Vec<(usize, StatusReport)>> {
        let running = self.nodes.iter_mut().enumerate().filter(|(_, node)| node.is_running());
        let ask = |(index, node): (usize, &mut Node)| {
            let report = node.status()?.clone();
            // The socket is there now. What changes before the watch is, the next status tells.
            node.watch(index, &self.sightings_to);
            Some((index, report))
        };
        // Each is asked, so that each is watched as early as can be.
        running.map(ask).collect::<Vec<_>>().into_iter().collect()
    }

    /// What every daemon last said, each on a line of its own.
    fn picture(&self) -> String {
        self.nodes.iter().map(|node| format!("\n  {}", node.last_words())).collect()
    }
}

/// The leader and its term, where one report is the leader's own and all others follow it.
fn agreed_leader(reports: &[(usize, StatusReport)]) -> Option<(usize, Term)> {
    let (node, own) = reports.iter().find(|(_, report)| report.role == Role::Leader)?;
    let follows = |report: &StatusReport| {
        report.role == Role::Follower && leader_id(report) == Some(own.node_id)
    };
    let settled = reports.iter().all(|(other, report)| other == node || follows(report));
    (settled && leader_id(own) == Some(own.node_id)).then_some((*node, own.term))
}

/// Whether only the node of this reign has led since it began, perhaps reaffirmed under a later
/// term.
fn leads_on(reigns: &[Reign], since: &Reign) -> bool {
    let earlier = |reign: &&Reign| (reign.node, reign.term) != (since.node, since.term);
    reigns.iter().skip_while(earlier).all(|reign| reign.node == since.node)
}

fn leader_id(report: &StatusReport) -> Option<NodeId> {
    report.leader.as_ref().map(|leader| leader.node_id)
}

/// From now on signals only leave a note.
fn catch_signals() -> io::Result<Arc<AtomicUsize>> {
    let arrived = Arc::new(AtomicUsize::new(0));
    for signal in SIGNALS {
        signal_hook::flag::register_usize(signal as i32, Arc::clone(&arrived), signal as usize)?;
    }
    Ok(arrived)
}

/// A group's address that no other demo uses, and a port that nobody uses.
///
/// The group's name tells demos apart even where two get the same; this spares them each other's
/// datagrams.
fn unused_multicast() -> io::Result<SocketAddr> {
    let [_, _, high, low] = process::id().to_be_bytes();
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    Ok(SocketAddr::from((Ipv4Addr::new(239, 255, high, low), port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_leads_on_until_another_node_does_whatever_its_term() {
        let reign = |(node, term)| Reign { node, term: Term(term), at: Time::ZERO };
        let leads_on = |reigns: &[(usize, u64)]| {
            let reigns: Vec<_> = reigns.iter().copied().map(reign).collect();
            super::leads_on(&reigns, &reign((1, 3)))
        };
        assert!(leads_on(&[(0, 1), (2, 2), (1, 3)]));
        assert!(leads_on(&[(0, 1), (1, 3), (1, 4)]));
        assert!(!leads_on(&[(1, 3), (2, 4)]));
        assert!(!leads_on(&[(1, 3), (2, 4), (1, 5)]));
    }
}
