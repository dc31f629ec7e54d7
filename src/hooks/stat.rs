//! What the kernel reports about a process in proc_pid_stat(5).

use std::fs;
use std::io::{self, ErrorKind};

use nix::errno::Errno;
use nix::unistd::Pid;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Whether no part of it runs any more, although it was not reaped.
    pub(super) is_dead: bool,
    /// Its process group.
    pub(super) group: Pid,
    /// When it was started, in clock ticks since the machine booted.
    pub(super) started: u64,
}

impl Stat {
    /// Of the process `pid`; none if there is none.
    pub(super) fn of(pid: Pid) -> io::Result<Option<Self>> {
        match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(text) => Ok(Stat::parse(&text)),
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
        Some(Stat {
            is_dead: matches!(field(3)?, "Z" | "X") && is_alone,
            group: Pid::from_raw(field(5)?.parse().ok()?),
            started: field(22)?.parse().ok()?,
        })
    }
}

/// Whether anything of `group` still runs. If that is unknown, it counts as running.
pub(super) fn is_group_alive(group: Pid) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let members: Vec<Stat> = numbers
        .filter_map(|pid| Stat::of(Pid::from_raw(pid)).ok()?)
        .filter(|process| process.group == group)
        .collect();
    // Another user's processes may be hidden.
    members.is_empty() || members.iter().any(|process| !process.is_dead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, state: &str, group: u32, threads: u32) -> Option<Stat> {
        let rest = format!("0 0 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 99");
        Stat::parse(&format!("12 ({name}) {state} 1 {group} 12 {rest}"))
    }

    #[test]
    fn a_process_is_read_whatever_its_command_is_called() {
        let living = Stat { is_dead: false, group: Pid::from_raw(11), started: 4711 };
        assert_eq!(stat("sh", "S", 11, 1), Some(living));
        assert_eq!(stat("a) S 1 (b", "R", 11, 1), Some(living));
        assert_eq!(Stat::parse("12 (sh) S 1 12"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn a_process_is_dead_once_all_of_its_threads_are() {
        assert!(stat("sh", "Z", 11, 1).unwrap().is_dead);
        assert!(!stat("sh", "Z", 11, 2).unwrap().is_dead);
        assert!(!stat("sh", "D", 11, 1).unwrap().is_dead);
    }
}
