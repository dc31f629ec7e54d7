//! Real daemons: whatever a voter has sent, a power loss at any time after it leaves a state that
//! keeps the promise.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lanelect::core::persist::{Enrolment, PersistentState};
use lanelect::daemon::store::{Store, StoreError};
use lanelect::types::{DatagramId, Life, NodeId, Term};
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Message};
use serde_json::Value;
use tempfile::TempDir;

use super::disk::{Disk, Image};
use super::programs::is_missing;
use super::trace::Call;
use super::waiting::until;
use super::{directory, make};

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

const NODES: [&str; 3] = ["a", "b", "c"];

/// What a daemon would go by, of what surrounds this process.
const FOREIGN_VARIABLES: [&str; 5] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM", "RUNTIME_DIRECTORY", "RUST_LOG"];

/// What changes a disk, and what sends.
const TRACE: &str = "--trace=openat,write,fsync,fdatasync,ftruncate,lseek,close,?mkdir,?mkdirat,\
                     ?rename,?renameat,?unlink,?unlinkat,?rmdir,sendto,sendmsg,sendmmsg";

/// Starts the daemons, each under `strace` and with a slow disk, and kills those that it is told.
/// All processes end with this one, which is the first of their namespace.
const SCRIPT: &str = r#"
ip link set lo up && strace -o /dev/null true || exit
for node in a b c; do
    strace -f -qq --signal=none -xx -s 100000 -o "$node/trace" "$1" \
        --inject=fsync:delay_enter=20000 -- "$0" run --config "$node/config" 2>"$node/log" &
done
while read -r node; do
    read -r process <"$node/disk/var/lanelect/blue.lock" && kill -KILL "$process"
done
"#;

/// Three voters on the loopback of a network of their own.
struct Group {
    root: TempDir,
    script: Child,
}

impl Group {
    fn start() -> Self {
        let root = directory();
        for node in NODES {
            let dir = root.path().join(node);
            fs::create_dir_all(dir.join("disk")).unwrap();
            let path = dir.to_str().unwrap();
            let config = format!(
                "group = \"blue\"\nnode_id = \"{node}\"\ninterface = [\"lo\"]\nmode = \"quorum\"\n\
                 voters = [\"a\", \"b\", \"c\"]\nheartbeat_interval = \"200ms\"\n\
                 leader_alive_threshold = \"1s\"\nleader_election_duration = \"300ms\"\n\
                 demote_grace = \"0s\"\nstate_dir = \"{path}/disk/var/lanelect\"\n\
                 socket = \"{path}/control.sock\"\n"
            );
            fs::write(dir.join("config"), config).unwrap();
        }
        let mut command = Command::new("unshare");
        command.args(["-Urnpf", "--kill-child", "sh", "-c", SCRIPT, LANELECT, TRACE]);
        command.current_dir(root.path()).stdin(Stdio::piped());
        for variable in FOREIGN_VARIABLES {
            command.env_remove(variable);
        }
        command.stderr(File::create(root.path().join("complaint")).unwrap());
        let script = command.spawn().unwrap();
        Group { root, script }
    }

    /// Why the daemons cannot be started here, if they cannot.
    fn complaint(&mut self) -> Option<String> {
        self.script.try_wait().unwrap()?;
        Some(fs::read_to_string(self.root.path().join("complaint")).unwrap())
    }

    fn kill(&mut self, node: &str) {
        writeln!(self.script.stdin.as_mut().unwrap(), "{node}").unwrap();
    }

    /// The leader that all of `nodes` follow.
    fn leader_of(&self, nodes: &[&str]) -> Option<String> {
        let leaders: Vec<_> = nodes.iter().map(|node| self.leader_by(node)).collect();
        let leader = leaders.first()?.clone()?;
        (nodes.contains(&&*leader) && leaders.iter().all(|other| other.as_ref() == Some(&leader)))
            .then_some(leader)
    }

    fn leader_by(&self, node: &str) -> Option<String> {
        let mut command = Command::new(LANELECT);
        command.args(["status", "--json", "--socket"]);
        command.arg(self.root.path().join(node).join("control.sock"));
        let status: Value = serde_json::from_slice(&command.output().unwrap().stdout).ok()?;
        status["leader"]["node_id"].as_str().map(str::to_owned)
    }

    fn end(&mut self) {
        drop(self.script.stdin.take());
        self.script.wait().unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a voter has promised by what it has sent.
#[derive(Debug, Default)]
struct Promises {
    life: Option<Life>,
    term: Term,
    enrolment: u8,
    /// The last vote.
    vote: Option<(Term, Life)>,
    /// The last acknowledgement: to whom, in which term, for how long.
    pledge: Option<(Life, Term, Duration)>,
}

impl Promises {
    /// Adds what a message promises. `sent` has the messages of all nodes, but for the last ones of
    /// those that were killed.
    fn add(&mut self, message: &Message, sent: &BTreeMap<(NodeId, DatagramId), Message>) {
        let life = message.life();
        self.life = Some(life);
        self.term = self.term.max(message.term);
        self.enrolment = self.enrolment.max(rank(Enrolment::told_by(message.standing.flags)));
        match message.body {
            Body::Vote { candidate, request, granted: true } => {
                let Some(asked) = sent.get(&(candidate, request)) else { return };
                if let Body::VoteRequest { hold_us } = asked.body {
                    self.vote = Some((asked.term, asked.life()));
                    self.pledge = Some((asked.life(), asked.term, micros(hold_us)));
                }
            }
            Body::VoteRequest { .. } => self.vote = Some((message.term, life)),
            Body::Heartbeat { acknowledged: Some(declaration), leader: Some(leader), .. } => {
                let Some(declared) = sent.get(&(leader, declaration)) else { return };
                if let Body::Declaration { hold_us, .. } = declared.body {
                    self.pledge = Some((declared.life(), declared.term, micros(hold_us)));
                }
            }
            _ => {}
        }
    }

    /// Which promise a state breaks. A later pledge may be to another life, because that one has
    /// resigned or the pledge has expired; then the term is higher.
    fn broken_by(&self, found: Option<&PersistentState>) -> Option<&'static str> {
        let life = self.life?;
        let Some(state) = found else { return Some("the state") };
        let votes_again = self.vote.is_some_and(|(term, candidate)| {
            state.ballot.is_none_or(|kept| {
                (kept.term, kept.candidate) != (term, candidate) && kept.term <= term
            })
        });
        let is_free = self.pledge.is_some_and(|(to, term, hold)| {
            state.pledge.is_none_or(|kept| {
                kept.term < term
                    || kept.to == to && kept.hold() < hold
                    || kept.to != to && kept.term == term
            })
        });
        [
            (state.incarnation < life.incarnation, "the life"),
            (state.term < self.term, "the term"),
            (rank(state.enrolment) < self.enrolment, "the enrolment"),
            (votes_again, "the vote"),
            (is_free, "the pledge"),
        ]
        .into_iter()
        .find_map(|(is_broken, what)| is_broken.then_some(what))
    }
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros.into())
}

fn rank(enrolment: Enrolment) -> u8 {
    match enrolment {
        Enrolment::None => 0,
        Enrolment::Founding => 1,
        Enrolment::Enrolled => 2,
    }
}

fn message_of(call: &Call, codec: &Codec) -> Option<Message> {
    let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let is_sent = call.name.starts_with("send");
    call.strings
        .iter()
        .filter(|_| is_sent)
        .find_map(|data| codec.decode(source, data).ok())
        .map(|decoded| decoded.message)
}

fn state_on(image: &Image, dir: &Path) -> Result<Option<PersistentState>, StoreError> {
    let root = make(image);
    Store::open(&root.path().join(dir), "blue".parse().unwrap()).map(|(_, found)| found)
}

#[test]
fn no_voter_sends_what_a_power_loss_can_take_back() {
    if ["strace", "unshare", "ip"].into_iter().any(is_missing) {
        return;
    }
    let mut group = Group::start();
    let mut first = None;
    until("all follow one leader", || {
        first = group.complaint().map(Err).or_else(|| group.leader_of(&NODES).map(Ok));
        first.is_some()
    });
    let first = match first.unwrap() {
        Ok(leader) => leader,
        Err(complaint) => {
            eprintln!(
                "skipped, there are no namespaces here, or strace may trace nothing: {complaint}"
            );
            return;
        }
    };
    group.kill(&first);
    let left: Vec<_> = NODES.into_iter().filter(|node| *node != first).collect();
    until("the others follow a new leader", || group.leader_of(&left).is_some());
    group.end();

    let codec = Codec::new("blue".parse().unwrap(), None);
    let traces = NODES.map(|node| {
        let trace = fs::read_to_string(group.root.path().join(node).join("trace")).unwrap();
        (node, Call::parse_all(&trace))
    });
    let sent: BTreeMap<_, _> = traces
        .iter()
        .flat_map(|(_, calls)| calls.iter().filter_map(|call| message_of(call, &codec)))
        .map(|message| ((message.sender, message.id()), message))
        .collect();
    let mut kinds = BTreeMap::<&str, usize>::new();
    let mut disks = 0;
    for (node, calls) in &traces {
        let root = group.root.path().join(node).join("disk");
        let mut disk = Disk::new(root.to_str().unwrap());
        let mut promises = Promises::default();
        let mut states = BTreeMap::new();
        for call in calls {
            let message = message_of(call, &codec);
            if let Some(message) = &message {
                promises.add(message, &sent);
                *kinds.entry(kind(message, &sent)).or_default() += 1;
            }
            let changes = disk.has(call) && disk.handle(call);
            if message.is_none() && !changes {
                continue;
            }
            for image in disk.after_power_loss(".state") {
                disks += 1;
                let state = states
                    .entry(image)
                    .or_insert_with_key(|image| state_on(image, Path::new("var/lanelect")));
                let state = state.as_ref().unwrap();
                let broken = promises.broken_by(state.as_ref());
                assert_eq!(broken, None, "{node}: {promises:?}, {state:?}, after {call:?}");
            }
        }
    }
    println!("{} datagrams, {disks} disks: {kinds:?}", sent.len());
    let needed = ["acknowledgement", "declaration", "request", "vote"];
    assert!(needed.iter().all(|kind| kinds.contains_key(kind)), "{kinds:?}");
}

fn kind(message: &Message, sent: &BTreeMap<(NodeId, DatagramId), Message>) -> &'static str {
    match message.body {
        Body::Heartbeat { acknowledged: Some(_), .. } => "acknowledgement",
        Body::Declaration { .. } => "declaration",
        Body::VoteRequest { .. } => "request",
        Body::Vote { candidate, request, granted: true } => {
            let asked = sent.get(&(candidate, request)).map(|asked| asked.body);
            if matches!(asked, Some(Body::VoteRequest { .. })) { "vote" } else { "other" }
        }
        _ => "other",
    }
}
