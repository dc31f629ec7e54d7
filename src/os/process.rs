//! What the kernel reports about a process in proc_pid_stat(5).

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpgid};

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Whether no part of it runs any more, although it was not reaped.
    pub(crate) is_dead: bool,
    /// Whether its first thread has ended. Others may still run, or wait in the kernel.
    pub(crate) is_headless: bool,
    /// Its process group.
    pub(crate) group: Pid,
    /// Its session; zero if that began in another namespace.
    pub(crate) session: i32,
    /// When it was started, in clock ticks since the machine booted.
    pub(crate) started: u64,
}

impl Stat {
    /// Of the process `pid`; none if there is none.
    pub(crate) fn of(pid: Pid) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            // The kernel cuts the command's name, even within a character.
            Ok(text) => Ok(Stat::parse(&String::from_utf8_lossy(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // It ended while the file was open.
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        // The second field is the command's name, which may contain anything.
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let field = |number: usize| fields.get(number - 3).copied();
        // The first thread of a process may have ended before the others.
        let is_alone = field(20)?.parse::<u32>().ok()? <= 1;
        let is_headless = matches!(field(3)?, "Z" | "X");
        Some(Stat {
            is_dead: is_headless && is_alone,
            is_headless,
            group: Pid::from_raw(field(5)?.parse().ok()?),
            session: field(6)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        })
    }
}

/// Threads of a process that are looked at, and files of each.
const LOOKS_MAX: usize = 1024;

/// Whether the first thread of the process `number` has ended. If it was killed, the others wait in
/// the kernel.
pub(crate) fn is_headless(number: u32) -> bool {
    let pid = i32::try_from(number).ok().filter(|number| *number > 0).map(Pid::from_raw);
    pid.and_then(|pid| Stat::of(pid).ok().flatten()).is_some_and(|stat| stat.is_headless)
}

/// Whether the process `number` holds a lock by flock(2) on the file of this inode, as far as this
/// process may see its files.
pub(crate) fn has_flock(number: u32, inode: u64) -> bool {
    let listed = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().take(LOOKS_MAX);
    let is_lock = |line: &str| {
        line.starts_with("lock:") && line.contains("FLOCK") && line.contains(&format!(":{inode} "))
    };
    // A thread that has ended has no files, also if others have not.
    listed(format!("/proc/{number}/task").into())
        .flat_map(|thread| listed(thread.path().join("fdinfo")))
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .any(|file| file.lines().any(is_lock))
}

/// Whether this process ignores the signal of this number, as it may have been told to before it
/// was started.
pub(crate) fn ignores(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Whether the kernel forbids this process to signal the process `pid`.
pub(crate) fn is_out_of_reach(pid: Pid) -> bool {
    kill(pid, None) == Err(Errno::EPERM)
}

/// Whether anything of `group` still runs. If that is unknown, it counts as running.
pub(crate) fn is_group_alive(group: Pid) -> bool {
    let Ok(members) = members(group) else { return true };
    // Another user's processes may be hidden.
    members.is_empty() || members.iter().any(|(_, process)| !process.is_dead)
}

/// Whether anything of `group` still runs but the process `one`. If that is unknown, it does.
pub(crate) fn has_others(group: Pid, one: Pid) -> bool {
    let lives = |(pid, process): &(Pid, Stat)| *pid != one && !process.is_dead;
    members(group).map_or(true, |members| members.iter().any(lives))
}

/// What of `group` still runs but the process `one`, as far as that is known. `/proc` may be that
/// of another namespace, with other numbers, so the kernel is asked for the group of each.
pub(crate) fn others(group: Pid, one: Pid) -> Vec<Pid> {
    let listed = members(group).unwrap_or_default().into_iter();
    let living = listed.filter(|(pid, process)| *pid != one && !process.is_dead);
    living.map(|(pid, _)| pid).filter(|pid| getpgid(Some(*pid)) == Ok(group)).collect()
}

/// The processes of `group` that this process may see.
pub(crate) fn members(group: Pid) -> io::Result<Vec<(Pid, Stat)>> {
    let processes = fs::read_dir("/proc")?;
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let processes = numbers.map(Pid::from_raw).filter_map(|pid| Some((pid, Stat::of(pid).ok()??)));
    Ok(processes.filter(|(_, process)| process.group == group).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use nix::libc;

    use super::*;

    fn stat(name: &str, state: &str, group: u32, threads: u32) -> Option<Stat> {
        let rest = format!("0 0 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 99");
        Stat::parse(&format!("12 ({name}) {state} 1 {group} 12 {rest}"))
    }

    /// The runtime of Rust ignores SIGPIPE, and nobody can ignore SIGKILL.
    #[test]
    fn ignored_signals_are_known() {
        assert!(ignores(libc::SIGPIPE) && !ignores(libc::SIGKILL));
    }

    #[test]
    fn a_process_is_read_whatever_its_command_is_called() {
        let group = Pid::from_raw(11);
        let living = Stat { is_dead: false, is_headless: false, group, session: 12, started: 4711 };
        assert_eq!(stat("sh", "S", 11, 1), Some(living));
        assert_eq!(stat("a) S 1 (b", "R", 11, 1), Some(living));
        assert_eq!(Stat::parse("12 (sh) S 1 12"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn a_process_is_seen_even_if_its_name_is_cut_within_a_character() {
        // The end of a name such as `sync-données-clé`.
        let rename = "printf 'cl\\303' > /proc/$$/comm; echo; read line";
        let mut shell = Command::new("sh");
        shell.args(["-c", rename]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut shell = shell.spawn().unwrap();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let pid = Pid::from_raw(i32::try_from(shell.id()).unwrap());
        let listed = members(pid).unwrap();
        assert_eq!(listed.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [pid]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    #[test]
    fn a_process_is_dead_once_all_of_its_threads_are() {
        assert!(stat("sh", "Z", 11, 1).unwrap().is_dead);
        assert!(!stat("sh", "Z", 11, 2).unwrap().is_dead);
        assert!(!stat("sh", "D", 11, 1).unwrap().is_dead);
    }
}
