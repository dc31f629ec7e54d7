//! The store under faults of its disk: every call fails once, and from then on; every sync and
//! write lies; the daemon is killed before every call; and after every call the power is lost.
//!
//! `strace` records and breaks the calls of a process that uses the daemon's own store. `disk`
//! lists what the calls may have left on a disk, and the store opens each of those. `daemons` has
//! the same for the calls of whole daemons.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod daemons;
mod disk;
#[path = "../common/programs.rs"]
#[expect(dead_code, reason = "the tests of hooks need more of it")]
mod programs;
mod trace;
#[path = "../common/waiting.rs"]
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use lanelect::core::persist::{Ballot, Enrolment, PersistentState, Pledge};
use lanelect::daemon::store::{Store, StoreError};
use lanelect::types::{Incarnation, Life, Term};
use tempfile::TempDir;

use disk::{Disk, Image};
use programs::is_missing;
use trace::{Call, Ended};

/// Tells the process that uses the store where.
const ROOT: &str = "TEST_STORAGE_ROOT";
/// The number of the first state that it saves.
const FIRST: &str = "TEST_STORAGE_FIRST";

/// Lives of the daemon in one process, where nothing kills it.
const LIVES: u64 = 2;
/// States that each life saves.
const SAVES: u64 = 2;
/// How often a life tries to save before it ends.
const TRIES: u64 = 3;

/// The calls that may touch a file or directory. `?` stands before one that not every machine has.
const CALLS: [&str; 20] = [
    "openat",
    "read",
    "write",
    "fsync",
    "fdatasync",
    "ftruncate",
    "lseek",
    "flock",
    "close",
    "?statx",
    "?fstat",
    "?newfstatat",
    "?stat",
    "?mkdir",
    "?mkdirat",
    "?rename",
    "?renameat",
    "?unlink",
    "?unlinkat",
    "?rmdir",
];

/// The one that nothing but a mark is written with.
const MARK: &str = "pwrite64";

/// The state directory is two levels below the root, and neither exists at first.
fn state_dir(root: &Path) -> PathBuf {
    root.join("var/lanelect")
}

fn paths(root: &Path) -> Vec<PathBuf> {
    let dir = state_dir(root);
    let files = ["blue.lock", "blue.state", "blue.state.tmp"].map(|name| dir.join(name));
    let parent = dir.parent().unwrap().to_owned();
    [root.to_owned(), parent, dir.clone()].into_iter().chain(files).collect()
}

/// The state number `number`. Their lengths differ.
fn state(number: u64) -> PersistentState {
    let life = |id: &str| Life { node_id: id.parse().unwrap(), incarnation: Incarnation(number) };
    let voted = Ballot { term: Term(number), candidate: life("web1") };
    let pledged = Pledge::new(life("web2"), Term(number), Duration::from_millis(8162));
    PersistentState {
        revision: 0,
        term: Term(number),
        incarnation: Incarnation(number),
        maintenance: number % 2 == 0,
        enrolment: Enrolment::Enrolled,
        ballot: (number % 3 > 0).then_some(voted),
        pledge: (number % 3 == 1).then_some(pledged),
    }
}

/// What a daemon makes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    /// It has the state of this number; 0 if it has none.
    Has(u64),
    Refused,
}

fn open_store(root: &Path) -> Result<(Store, u64), StoreError> {
    loop {
        match Store::open(&state_dir(root), "blue".parse().unwrap()) {
            // A process that this one has just forked has the lock, too, until it executes its
            // program.
            Err(StoreError::Locked { .. }) => thread::yield_now(),
            opened => return opened.map(|(store, found)| (store, number_of(found))),
        }
    }
}

fn open(root: &Path) -> Opened {
    open_store(root).map_or(Opened::Refused, |(_, number)| Opened::Has(number))
}

/// The number of a state, which must be whole.
fn number_of(found: Option<PersistentState>) -> u64 {
    let Some(found) = found else { return 0 };
    assert_eq!(found, state(found.term.0), "a state that nobody saved");
    found.term.0
}

/// A fast file system, if there is one: what is lost is worked out, and not tried out.
fn directory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

#[test]
#[ignore = "the process whose calls the other tests record and break"]
fn saves_in_two_lives() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let mut next: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    // Neither opened nor closed here, because it would count as a call on a file of the store.
    let marks = ManuallyDrop::new(File::from(io::stderr().as_fd().try_clone_to_owned().unwrap()));
    let mark = |text: String| marks.write_all_at(text.as_bytes(), 0).unwrap();
    for _ in 0..LIVES {
        // A daemon that refuses to run is started again.
        let Some((mut store, found)) =
            (0..2).find_map(|_| Store::open(&state_dir(&root), "blue".parse().unwrap()).ok())
        else {
            continue;
        };
        mark(format!("found {}", number_of(found)));
        let mut left = SAVES;
        for number in next..next + TRIES {
            if left == 0 {
                break;
            }
            match store.save(&state(number)) {
                Ok(()) => {
                    mark(format!("told {number}"));
                    left -= 1;
                }
                Err(error) => {
                    let blames = matches!(error, StoreError::Locked { .. });
                    assert!(!blames, "there is no other daemon: {error}");
                }
            }
        }
        next += TRIES;
    }
}

/// What goes wrong in a process.
#[derive(Debug, Clone)]
struct Fault {
    name: String,
    /// For `strace --inject`.
    injections: Vec<String>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    None,
    /// The call fails, and whoever made it knows.
    Fails,
    /// The call and all later ones fail, for as long as the process runs.
    FailsForGood,
    /// A write that was not carried out, or a file that was not synced.
    FileLies,
    /// A directory that was not synced.
    DirectoryLies,
    /// The daemon is killed before the call.
    Kills,
}

/// Calls that need room on the disk.
const NEED_ROOM: [&str; 7] =
    ["write", "fsync", "ftruncate", "mkdir", "mkdirat", "rename", "renameat"];

/// Every fault at every call of a run that had none.
fn faults(calls: &[Call]) -> Vec<Fault> {
    let names: BTreeSet<_> = calls.iter().map(|call| call.name.as_str()).collect();
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut faults =
        vec![Fault { name: "no fault".to_owned(), injections: vec![], kind: Kind::None }];
    for (index, call) in calls.iter().enumerate() {
        let name = call.name.as_str();
        for (error, needs) in [("EIO", &[][..]), ("ENOSPC", &NEED_ROOM)] {
            let fails = |name: &&str| needs.is_empty() || needs.contains(name);
            let from_now_on = |name: &str| {
                format!(
                    "{name}:error={error}:when={}+",
                    counts.get(name).map_or(1, |count| count + 1)
                )
            };
            if fails(&name) {
                let injections = names.iter().copied().filter(fails).map(from_now_on).collect();
                let name = format!("{error} from call {index} on, which is {name}");
                faults.push(Fault { name, injections, kind: Kind::FailsForGood });
            }
        }
        let count = counts.entry(name).or_default();
        *count += 1;
        for (kind, what) in faults_of(call, opened_before(&calls[..index], call.fd)) {
            let injections = vec![format!("{name}:{what}:when={count}")];
            let name = format!("{what} at call {index}, which is {name}");
            faults.push(Fault { name, injections, kind });
        }
    }
    faults
}

/// What the call on the file or directory `path` may do instead of what it is asked to do.
fn faults_of(call: &Call, path: &str) -> Vec<(Kind, String)> {
    let mut faults =
        vec![(Kind::Kills, "signal=SIGKILL".to_owned()), (Kind::Fails, "error=EIO".to_owned())];
    let name = call.name.as_str();
    if name == "openat" || NEED_ROOM.contains(&name) {
        faults.push((Kind::Fails, "error=ENOSPC".to_owned()));
    }
    match (name, path.contains(".state")) {
        ("write", is_state) => {
            faults.push((Kind::Fails, "retval=0".to_owned()));
            let lies = [call.len() / 2, call.len()].map(|len| format!("retval={len}"));
            faults.extend(lies.into_iter().filter(|_| is_state).map(|lie| (Kind::FileLies, lie)));
        }
        ("fsync", true) => faults.push((Kind::FileLies, "retval=0".to_owned())),
        ("fsync", false) => faults.push((Kind::DirectoryLies, "retval=0".to_owned())),
        _ => {}
    }
    faults
}

/// The path that the descriptor was opened with last.
fn opened_before(calls: &[Call], fd: Option<i32>) -> &str {
    let is_it = |call: &&Call| {
        call.name == "openat"
            && matches!(call.ended, Ended::Done(opened) if i32::try_from(opened).ok() == fd)
    };
    calls.iter().rev().find(is_it).map_or("", |call| call.path(0))
}

/// This program, as the process that uses the store.
fn process(root: &Path, first: u64, before: &mut Command) -> Output {
    before
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1", "saves_in_two_lives"])
        .env(ROOT, root)
        .env(FIRST, first.to_string())
        .stderr(File::options().write(true).open(root.join("marks")).unwrap())
        .output()
        .unwrap()
}

/// Runs the process and returns its calls.
fn record(root: &Path, first: u64, injections: &[String]) -> Result<Vec<Call>, String> {
    let file = root.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "--signal=none", "-xx", "-s", "100000", "-o"]).arg(&file);
    strace.arg(format!("--trace={},{MARK}", CALLS.join(",")));
    for path in paths(root) {
        strace.arg("-P").arg(path);
    }
    strace.arg("-P").arg(root.join("marks"));
    strace.args(injections.iter().map(|injection| format!("--inject={injection}"))).arg("--");
    let output = process(root, first, &mut strace);
    let calls = Call::parse_all(&fs::read_to_string(&file).unwrap_or_default());
    let is_killed = calls.last().is_some_and(|call| call.ended == Ended::Killed);
    if is_killed || output.status.success() && !calls.is_empty() {
        return Ok(calls);
    }
    let complaint = fs::read(root.join("marks")).unwrap();
    Err(format!("{} {output:?}", String::from_utf8_lossy(&complaint)))
}

/// What became of the disks that were looked at.
#[derive(Debug, Default, Clone)]
struct Tally {
    runs: usize,
    disks: usize,
    kept: usize,
    refused: usize,
    forgot: usize,
    /// What must not be.
    broken: Vec<String>,
}

/// What daemons make of images: most occur again and again.
#[derive(Default)]
struct Openings(BTreeMap<Image, Opened>);

impl Openings {
    fn open(&mut self, image: &Image) -> Opened {
        if let Some(opened) = self.0.get(image) {
            return *opened;
        }
        let root = make(image);
        let opened = open(root.path());
        if opened != Opened::Refused {
            let (mut store, _) = open_store(root.path()).unwrap();
            store.save(&state(1000)).unwrap();
            drop(store);
            assert_eq!(open(root.path()), Opened::Has(1000), "{image:?}");
        }
        self.0.insert(image.clone(), opened);
        opened
    }
}

/// Puts an image into a directory.
fn make(image: &Image) -> TempDir {
    let root = directory();
    for (path, content) in image {
        let path = root.path().join(path.trim_start_matches('/'));
        match content {
            Some(content) => fs::write(path, content).unwrap(),
            None => fs::create_dir(path).unwrap(),
        }
    }
    root
}

/// Runs the store with a fault, and once more without if the fault has ended it; loses the power
/// after every call.
fn try_out(fault: &Fault, openings: &mut Openings, tally: &mut Tally) {
    let root = directory();
    fs::write(root.path().join("marks"), "").unwrap();
    let mut calls = record(root.path(), 1, &fault.injections).unwrap();
    let is_hit = |call: &Call| call.is_injected || call.ended == Ended::Killed;
    assert!(fault.kind == Kind::None || calls.iter().any(is_hit), "{fault:?} happened nowhere");
    if matches!(fault.kind, Kind::Kills | Kind::FailsForGood) {
        calls.extend(record(root.path(), 100, &[]).unwrap());
    }
    tally.runs += 1;

    let mut disk = Disk::new(root.path().to_str().unwrap());
    let mut told = 0;
    let mut check = |opened: Opened, told: u64, lost_after: Option<usize>| {
        tally.disks += 1;
        let (count, may) = match opened {
            Opened::Has(number) if number >= told => (&mut tally.kept, true),
            // A directory that was not synced, though the system said so, leaves no trace.
            Opened::Has(_) => {
                (&mut tally.forgot, fault.kind == Kind::DirectoryLies && lost_after.is_some())
            }
            // Whatever else happens leaves a state that can be used.
            Opened::Refused => (&mut tally.refused, fault.kind == Kind::FileLies),
        };
        *count += 1;
        if !may {
            let name = &fault.name;
            let when = lost_after.map(|index| format!(", the power lost after call {index}"));
            let when = when.unwrap_or_default();
            tally.broken.push(format!("{name}{when}: {opened:?}, though {told} was told"));
        }
    };
    for (index, call) in calls.iter().enumerate() {
        let may_matter = if call.name == MARK {
            let text = std::str::from_utf8(&call.strings[0]).unwrap();
            let (what, number) = text.split_once(' ').unwrap();
            let number = number.parse().unwrap();
            match what {
                "found" => check(Opened::Has(number), told, None),
                _ => told = number,
            }
            true
        } else {
            disk.handle(call)
        };
        if may_matter {
            for image in disk.after_power_loss(".state") {
                check(openings.open(&image), told, Some(index));
            }
        }
    }
    assert_eq!(disk.now(), image_of(root.path(), ""), "{fault:?}: the model is wrong");
    check(open(root.path()), told, None);
}

/// What is there, but for what the test itself put there.
fn image_of(root: &Path, below: &str) -> Image {
    let mut image = Image::new();
    for entry in fs::read_dir(root.join(below.trim_start_matches('/'))).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            image.extend(image_of(root, &path));
            image.insert(path, None);
        } else if !below.is_empty() {
            image.insert(path, Some(Rc::from(fs::read(entry.path()).unwrap())));
        }
    }
    image
}

#[test]
fn no_fault_of_the_disk_makes_a_daemon_forget_what_it_told() {
    if is_missing("strace") {
        return;
    }
    let root = directory();
    fs::write(root.path().join("marks"), "").unwrap();
    let calls = match record(root.path(), 1, &[]) {
        Ok(calls) => calls,
        Err(error) if error.to_lowercase().contains("ptrace") => {
            eprintln!("skipped: strace may trace nothing here: {error}");
            return;
        }
        Err(error) => unreachable!("{error}"),
    };
    let marks: Vec<_> =
        calls.iter().filter(|call| call.name == MARK).map(|call| call.path(0)).collect();
    assert_eq!(marks, ["found 0", "told 1", "told 2", "found 2", "told 4", "told 5"]);

    let calls: Vec<_> = calls.into_iter().filter(|call| call.name != MARK).collect();
    let faults = faults(&calls);
    let next = AtomicUsize::new(0);
    let tallies = Mutex::new(BTreeMap::<Kind, Tally>::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                let mut openings = Openings::default();
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut tally = Tally::default();
                    try_out(fault, &mut openings, &mut tally);
                    let mut tallies = tallies.lock().unwrap();
                    let total = tallies.entry(fault.kind).or_default();
                    total.runs += tally.runs;
                    total.disks += tally.disks;
                    total.kept += tally.kept;
                    total.refused += tally.refused;
                    total.forgot += tally.forgot;
                    total.broken.extend(tally.broken);
                }
            });
        }
    });
    println!("{} calls, {} faults", calls.len(), faults.len() - 1);
    let mut broken = Vec::new();
    for (kind, tally) in &*tallies.lock().unwrap() {
        let Tally { runs, disks, kept, refused, forgot, .. } = tally;
        println!(
            "{kind:?}: {runs} runs, {disks} disks: {kept} kept, {refused} refused, {forgot} forgot"
        );
        broken.extend(tally.broken.iter().cloned());
    }
    let some = &broken[..broken.len().min(20)];
    assert!(broken.is_empty(), "{} broken promises: {some:#?}", broken.len());
}

/// A write that is cut short, after more and more bytes, and then fails because there is no room.
#[test]
fn a_write_that_is_cut_short_leaves_the_state_from_before() {
    if is_missing("prlimit") {
        return;
    }
    let root = directory();
    fs::write(root.path().join("marks"), [b' '; 9]).unwrap();
    let (mut store, _) = open_store(root.path()).unwrap();
    store.save(&state(1)).unwrap();
    drop(store);
    let whole = fs::metadata(state_dir(root.path()).join("blue.state")).unwrap().len();
    for room in (10..whole / 2).step_by(7) {
        // Without the signal that the limit sends, the write fails.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec prlimit --fsize=\"$0:\" \"$@\"", &room.to_string()]);
        let output = process(root.path(), 2, &mut shell);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read(root.path().join("marks")).unwrap(), b"found 1  ", "{room}");
        assert_eq!(open(root.path()), Opened::Has(1), "{room}");
    }
}
