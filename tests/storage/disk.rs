//! A model of a file system: what is on it while its machine runs, and what may be on it after a
//! power loss.
//!
//! It promises no more than POSIX does. Until a file is synced, its data may be on disk, as a whole
//! or in part; the rest is old, zero or missing. Until a directory is synced, each change of it may
//! be on disk or not, in any order; a rename is one change. Syncing a file does not sync its name.
//! What a sync that failed was to write may never be written, and a later sync does not notice.
//! Only what is created and at once removed between two syncs is taken to be gone.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::trace::{Call, Ended};

/// Each subset is tried of this many of the changes of directories that wait for a sync. More are
/// waiting only if the store does not sync; then the older ones are taken to be on disk.
const PENDING_MAX: usize = 10;

/// The files and directories below the root by their paths; a directory has no content.
pub(crate) type Image = BTreeMap<String, Option<Rc<[u8]>>>;

type Names = BTreeMap<String, usize>;

#[derive(Debug)]
enum Node {
    File(Contents),
    Directory(Directory),
}

#[derive(Debug, Default)]
struct Contents {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Whether a sync failed, so that the next one does not write what this one was to write.
    is_lost: bool,
}

#[derive(Debug, Default)]
struct Directory {
    now: Names,
    synced: Names,
    pending: Vec<Change>,
    is_lost: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Add(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Change::Add(name, node) => {
                names.insert(name.clone(), *node);
            }
            Change::Remove(name) => {
                names.remove(name);
            }
            Change::Rename(from, to, node) => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Disk {
    root: String,
    /// Number 0 is the root.
    nodes: Vec<Node>,
    /// The node and the position of each descriptor.
    open: BTreeMap<i32, (usize, usize)>,
}

impl Disk {
    /// A disk with an empty directory, which is synced, at the path `root`.
    pub(crate) fn new(root: &str) -> Self {
        let nodes = vec![Node::Directory(Directory::default())];
        Disk { root: root.to_owned(), nodes, open: BTreeMap::new() }
    }

    /// Whether a call is on a file or directory of this disk.
    pub(crate) fn has(&self, call: &Call) -> bool {
        match call.fd {
            Some(fd) => self.open.contains_key(&fd),
            None => call.strings.first().is_some_and(|path| path.starts_with(self.root.as_bytes())),
        }
    }

    /// Takes note of a call. Returns whether a power loss after it may leave another image than
    /// one before it.
    pub(crate) fn handle(&mut self, call: &Call) -> bool {
        let result = match (call.ended, call.name.as_str()) {
            (Ended::Done(result), _) => result,
            (Ended::Failed, "fsync" | "fdatasync") => {
                self.lose(call);
                return true;
            }
            _ => return false,
        };
        match call.name.as_str() {
            "openat" => return self.open(call, result.try_into().unwrap()),
            "mkdir" | "mkdirat" => {
                self.create(call.path(0), Node::Directory(Directory::default()));
            }
            "write" => self.write(call, result),
            "ftruncate" => self.truncate(call),
            "lseek" => {
                self.open.get_mut(&call.fd.unwrap()).unwrap().1 = result;
                return false;
            }
            "fsync" | "fdatasync" => self.sync(call),
            "rename" | "renameat" | "renameat2" => self.rename(call.path(0), call.path(1)),
            "unlink" | "unlinkat" | "rmdir" => self.remove(call.path(0)),
            "close" => {
                self.open.remove(&call.fd.unwrap());
                return false;
            }
            "flock" | "fstat" | "newfstatat" | "read" | "stat" | "statx" => return false,
            other => unreachable!("what does {other} change?"),
        }
        true
    }

    fn open(&mut self, call: &Call, fd: i32) -> bool {
        let path = call.path(0);
        let found = self.find(path);
        let node = found.unwrap_or_else(|| self.create(path, Node::File(Contents::default())));
        self.open.insert(fd, (node, 0));
        let truncates = call.arguments.contains("O_TRUNC");
        if let (true, Node::File(file)) = (truncates, &mut self.nodes[node]) {
            file.now.clear();
            file.is_lost = false;
        }
        found.is_none() || truncates
    }

    fn write(&mut self, call: &Call, written: usize) {
        let (node, position) = self.open[&call.fd.unwrap()];
        let end = position + written;
        let file = self.file(node);
        file.now.resize(end.max(file.now.len()), 0);
        file.now[position..end].copy_from_slice(&call.strings[0][..written]);
        self.open.insert(call.fd.unwrap(), (node, end));
    }

    fn truncate(&mut self, call: &Call) {
        let len = call.arguments.trim_end_matches(')').split(", ").nth(1).unwrap();
        let (node, _) = self.open[&call.fd.unwrap()];
        self.file(node).now.resize(len.trim_end_matches([' ', ')']).parse().unwrap(), 0);
    }

    fn sync(&mut self, call: &Call) {
        let (node, _) = self.open[&call.fd.unwrap()];
        match &mut self.nodes[node] {
            Node::File(file) if !file.is_lost => file.synced.clone_from(&file.now),
            Node::Directory(directory) if !directory.is_lost => {
                directory.synced.clone_from(&directory.now);
                directory.pending.clear();
            }
            _ => {}
        }
    }

    fn lose(&mut self, call: &Call) {
        let (node, _) = self.open[&call.fd.unwrap()];
        match &mut self.nodes[node] {
            Node::File(file) => file.is_lost = true,
            Node::Directory(directory) => directory.is_lost = true,
        }
    }

    fn create(&mut self, path: &str, node: Node) -> usize {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.change(path, |name| Change::Add(name, number));
        number
    }

    fn rename(&mut self, from: &str, to: &str) {
        let node = self.find(from).unwrap();
        let to = to.rsplit_once('/').unwrap().1.to_owned();
        self.change(from, |name| Change::Rename(name, to, node));
    }

    fn remove(&mut self, path: &str) {
        self.change(path, Change::Remove);
    }

    /// Changes the directory of `path`.
    fn change(&mut self, path: &str, change: impl FnOnce(String) -> Change) {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let parent = self.find(parent).unwrap();
        let Node::Directory(directory) = &mut self.nodes[parent] else { unreachable!("{path}") };
        let change = change(name.to_owned());
        change.apply(&mut directory.now);
        match (directory.pending.last(), &change) {
            (Some(Change::Add(added, _)), Change::Remove(removed)) if added == removed => {
                directory.pending.pop();
            }
            _ => directory.pending.push(change),
        }
        directory.is_lost = false;
    }

    fn find(&self, path: &str) -> Option<usize> {
        let below = path.strip_prefix(&self.root).unwrap();
        below.split('/').filter(|name| !name.is_empty()).try_fold(0, |node, name| {
            let Node::Directory(directory) = &self.nodes[node] else { return None };
            directory.now.get(name).copied()
        })
    }

    fn file(&mut self, node: usize) -> &mut Contents {
        let Node::File(file) = &mut self.nodes[node] else { unreachable!("it is a directory") };
        file
    }

    /// What a process finds while the machine runs.
    pub(crate) fn now(&self) -> Image {
        let mut image = Image::new();
        self.walk(0, "", &|node, _| node.now.clone(), &mut |path, node| {
            let content = match &self.nodes[node] {
                Node::File(file) => Some(Rc::from(&*file.now)),
                Node::Directory(_) => None,
            };
            image.insert(path, content);
        });
        image
    }

    /// Everything that may be there after a power loss. Only of the files whose names end in
    /// `vital` does the content matter.
    pub(crate) fn after_power_loss(&self, vital: &str) -> Vec<Image> {
        let mut pending = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            if let Node::Directory(directory) = node {
                pending.extend((0..directory.pending.len()).map(|index| (number, index)));
            }
        }
        let certain = pending.len().saturating_sub(PENDING_MAX);
        let mut images = Vec::new();
        for kept in 0_u32..1 << (pending.len() - certain) {
            let is_kept = |number: usize, index: usize| {
                let at = pending.iter().position(|&change| change == (number, index)).unwrap();
                at < certain || kept & 1 << (at - certain) != 0
            };
            let names = |directory: &Directory, number: usize| {
                let mut names = directory.synced.clone();
                for (index, change) in directory.pending.iter().enumerate() {
                    if is_kept(number, index) {
                        change.apply(&mut names);
                    }
                }
                names
            };
            let mut variants = vec![Image::new()];
            self.walk(0, "", &names, &mut |path, node| {
                let contents = match &self.nodes[node] {
                    Node::File(file) if path.ends_with(vital) => file.after_power_loss(),
                    Node::File(_) => vec![Some(Rc::default())],
                    Node::Directory(_) => vec![None],
                };
                variants = variants
                    .iter()
                    .flat_map(|image| contents.iter().map(move |content| (image, content)))
                    .map(|(image, content)| {
                        let mut image = image.clone();
                        image.insert(path.clone(), content.clone());
                        image
                    })
                    .collect();
            });
            images.extend(variants);
        }
        images
    }

    /// Visits everything below a directory, which has the names that `names` picks.
    fn walk(
        &self,
        number: usize,
        path: &str,
        names: &impl Fn(&Directory, usize) -> Names,
        visit: &mut impl FnMut(String, usize),
    ) {
        let Node::Directory(directory) = &self.nodes[number] else { return };
        for (name, node) in names(directory, number) {
            let path = format!("{path}/{name}");
            visit(path.clone(), node);
            self.walk(node, &path, names, visit);
        }
    }
}

impl Contents {
    fn after_power_loss(&self) -> Vec<Option<Rc<[u8]>>> {
        let half = self.now.len() / 2;
        let mut torn = self.now[..half].to_vec();
        torn.resize(self.now.len(), 0);
        let mut mixed = self.now[..half].to_vec();
        mixed.extend(self.synced.iter().skip(half));
        let mut variants = vec![self.synced.clone(), self.now.clone()];
        if self.now != self.synced {
            variants.extend([
                Vec::new(),
                self.now[..half].to_vec(),
                vec![0; self.now.len()],
                torn,
                mixed,
            ]);
        }
        variants.sort();
        variants.dedup();
        variants.into_iter().map(|content| Some(Rc::from(content))).collect()
    }
}
