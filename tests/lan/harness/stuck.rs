//! A file system that never answers, so that a process that opens a file there cannot be killed: it
//! waits in the kernel, as it does for a disk or an NFS server that is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// A file in it, as hooks know it from their directory.
pub(crate) const FILE: &str = "stuck/file";

/// Larger than any request.
const REQUEST_MAX: usize = 1 << 17;

/// FUSE's header of a request: its length, what it asks for, and its number come first.
const HEADER: usize = 40;

const LOOKUP: u32 = 1;
const INIT: u32 = 26;

/// Its server, which takes requests in. It ends with this process, and so does every wait.
#[derive(Debug)]
pub(crate) struct Stuck {
    device: File,
    waiting: Arc<Mutex<Vec<u64>>>,
}

impl Stuck {
    /// Mounts it in `dir`; none where this machine or this user has no FUSE.
    pub(crate) fn mount_in(dir: &Path) -> Option<Stuck> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
        let at: PathBuf = dir.join(FILE).parent()?.into();
        fs::create_dir(&at).unwrap();
        // `mount` is to inherit it.
        fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let mut mount = Command::new("mount");
        let mount = mount.args(["-i", "-t", "fuse", "-o", &options, "none"]).arg(&at);
        let mounted = mount.output().unwrap().status.success();
        // But no daemon, or the wait would not end with this process.
        fcntl(&device, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        let stuck = mounted.then(|| Stuck { device, waiting: Arc::default() })?;
        let (device, waiting) = (stuck.device.try_clone().unwrap(), Arc::clone(&stuck.waiting));
        thread::spawn(move || serve(device, &waiting));
        Some(stuck)
    }

    /// Whether a process waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiting.lock().unwrap().is_empty()
    }

    /// Answers whoever waits; returns how many did.
    pub(crate) fn release(&self) -> usize {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        for request in &waiting {
            answer(&self.device, *request, Err(Errno::ENOENT));
        }
        waiting.len()
    }
}

fn serve(mut device: File, waiting: &Mutex<Vec<u64>>) {
    let mut buffer = vec![0; REQUEST_MAX];
    while let Ok(length) = device.read(&mut buffer) {
        let request = &buffer[..length];
        let operation = u32::from_le_bytes(request[4..8].try_into().unwrap());
        let number = u64::from_le_bytes(request[8..16].try_into().unwrap());
        match operation {
            INIT => answer(&device, number, Ok(&greeting(&request[HEADER..]))),
            LOOKUP => waiting.lock().unwrap().push(number),
            // That a signal came for who waits, or that it forgets a file: to be ignored.
            _ => {}
        }
    }
}

/// What a server says of itself: the version that the kernel speaks, and no more than it must.
fn greeting(kernel: &[u8]) -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[..8].copy_from_slice(&kernel[..8]);
    let write_max = 4096_u32;
    greeting[20..24].copy_from_slice(&write_max.to_le_bytes());
    greeting
}

fn answer(mut device: &File, request: u64, result: Result<&[u8], Errno>) {
    let (error, body) = result.map_or_else(|error| (-(error as i32), &[][..]), |body| (0, body));
    let length = u32::try_from(16 + body.len()).unwrap();
    let head = [&length.to_le_bytes()[..], &error.to_le_bytes(), &request.to_le_bytes()].concat();
    // Who waited may have gone with its host.
    let _ = device.write(&[&head, body].concat());
}
