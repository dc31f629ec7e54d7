//! The daemon's crash plan, in a file beside its control socket.
//!
//! There is one while this node leads, or its hooks still hold what the leader holds. It is for
//! `post-stop`, which finds it where the daemon was killed, and has the configuration with it that
//! was in force: the config file may have been changed since, or broken. A restart of the machine
//! ends what it is about; so the file is not synced, and lies where a restart removes it.

use std::env;
use std::io;
use std::mem::{self, Discriminant};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process;

use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError, ConfigSource};
use crate::core::crash_plan::CrashPlan;
use crate::os::small_file;

/// Where systemd has made a directory for this service's files of this boot.
const RUNTIME_DIRECTORY: &str = "RUNTIME_DIRECTORY";

/// Longest will, in bytes. A longer one is not ours.
const CRASH_PLAN_MAX: u64 = 1024 * 1024;

/// Where the crash plan is kept.
#[derive(Debug)]
pub(super) struct CrashPlanFile {
    path: PathBuf,
    /// Why the last attempt to keep a plan failed, which was logged.
    failure: Option<Discriminant<KeepError>>,
}

/// Why the file is not as it should be.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    /// There is no plan.
    #[error(
        "cannot write the crash plan {path}: {source}; if this daemon dies now, post-stop cannot \
         run the demote hook or resign for it"
    )]
    Missing { path: PathBuf, source: io::Error },
    /// The plan from before is still there.
    #[error(
        "cannot remove the outdated crash plan {path}: {source}; if this daemon dies now, \
         post-stop may run the demote hook for a leadership that is over, or resign without it; \
         remove the file"
    )]
    Outdated { path: PathBuf, source: io::Error },
}

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    plan: CrashPlan,
    /// The daemon.
    process: u32,
    /// The configuration in force, as TOML.
    config: String,
    /// The interfaces that hooks are told of: those of the configuration, or those that the
    /// kernel's routes led to.
    interfaces: Vec<String>,
    /// The processes that live as long as the commands of `lanelect exec`.
    holders: Vec<i32>,
    /// The addresses of each peer, as its name had them.
    peers: Vec<Vec<IpAddr>>,
}

/// What a daemon left to be done.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) plan: CrashPlan,
    pub(super) process: u32,
    pub(super) config: Config,
    pub(super) interfaces: Vec<String>,
    pub(super) holders: Vec<i32>,
    pub(super) peers: Vec<Vec<IpAddr>>,
}

impl CrashPlanFile {
    /// The daemon's that runs by `config` from `source`.
    pub(super) fn of(source: &ConfigSource, config: &Config) -> Self {
        let path = in_runtime_directory(source);
        let path = path.unwrap_or_else(|| beside(&config.socket));
        CrashPlanFile { path, failure: None }
    }

    /// The file of a daemon that ran by `source`. Where systemd gives the directory, no
    /// configuration is needed to find it.
    ///
    /// # Errors
    ///
    /// Where it is, and there is none to be had.
    pub(super) fn find(source: &ConfigSource) -> Result<Self, ConfigError> {
        match in_runtime_directory(source) {
            Some(path) => Ok(CrashPlanFile { path, failure: None }),
            None => Ok(CrashPlanFile::of(source, &source.load()?)),
        }
    }

    /// Keeps this crash plan, or none. If that fails, the daemon continues: only what follows its
    /// death is missing.
    pub(super) fn keep(
        &mut self,
        plan: Option<&CrashPlan>,
        config: &Config,
        interfaces: &[String],
        holders: &[i32],
        peers: &[Vec<IpAddr>],
    ) {
        let kept = match plan {
            Some(plan) => self.replace(&Kept {
                plan: plan.clone(),
                process: process::id(),
                config: config.to_toml(),
                interfaces: interfaces.to_vec(),
                holders: holders.to_vec(),
                peers: peers.to_vec(),
            }),
            None => self.clear(),
        };
        let failure = kept.as_ref().err().map(mem::discriminant);
        let is_new = mem::replace(&mut self.failure, failure) != failure;
        match kept {
            Ok(()) if is_new => log::info!("the crash plan {} is up to date", self.path.display()),
            Err(error @ KeepError::Missing { .. }) if is_new => log::warn!("{error}"),
            Err(error @ KeepError::Outdated { .. }) if is_new => log::error!("{error}"),
            _ => {}
        }
    }

    /// Whether the last attempt to keep a plan failed.
    pub(super) const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The crash plan that was kept last, and what goes with it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or holds something else.
    pub(super) fn read(&self) -> io::Result<Option<Left>> {
        let content = small_file::read(&self.path, CRASH_PLAN_MAX)?;
        // An empty file is one that could not be removed.
        let Some(content) = content.filter(|it| !it.is_empty()) else { return Ok(None) };
        let Kept { plan, process, config, interfaces, holders, peers } =
            serde_json::from_slice(&content)?;
        let invalid = |problems| ConfigError::Invalid { file: None, problems };
        let config = Config::from_toml(&config).map_err(|p| io::Error::other(invalid(p)))?;
        Ok(Some(Left { plan, process, config, interfaces, holders, peers }))
    }

    /// Nothing is left to be done.
    pub(super) fn remove(&self) -> io::Result<()> {
        small_file::remove(&self.path).or_else(|_| small_file::empty(&self.path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// If the new plan cannot be written, the old one goes all the same: it may say that no hook
    /// holds, and `post-stop` would then resign beside a hook that has begun to take over since.
    fn replace(&self, kept: &Kept) -> Result<(), KeepError> {
        let write = || small_file::replace(&self.path, &serde_json::to_vec(kept)?);
        write().or_else(|_| {
            self.clear()?;
            // Where the disk was full, the old plan has left room.
            write().map_err(|source| KeepError::Missing { path: self.path.clone(), source })
        })
    }

    fn clear(&self) -> Result<(), KeepError> {
        self.remove().map_err(|source| KeepError::Outdated { path: self.path.clone(), source })
    }
}

/// Without the `sock` of the usual names it is the file that systemd's directory has.
fn beside(socket: &Path) -> PathBuf {
    let is_usual = socket.extension().is_some_and(|extension| extension == "sock");
    let mut name = if is_usual { socket.with_extension("") } else { socket.to_owned() };
    name.as_mut_os_string().push(".crash-plan");
    name
}

/// Named after the config file. Of several directories the first is the one.
fn in_runtime_directory(source: &ConfigSource) -> Option<PathBuf> {
    let directories = env::var_os(RUNTIME_DIRECTORY)?;
    let directories = directories.to_str()?;
    let first = directories.split(':').next().filter(|first| !first.is_empty())?;
    let mut name = source.file.as_ref()?.file_stem()?.to_owned();
    name.push(".crash-plan");
    Some(Path::new(first).join(name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_socket_has_a_crash_plan_of_its_own() {
        for (socket, plan) in [
            ("/run/lanelect/web.sock", "/run/lanelect/web.crash-plan"),
            ("/run/lanelect/web.1.sock", "/run/lanelect/web.1.crash-plan"),
            ("/run/lanelect/mail.1", "/run/lanelect/mail.1.crash-plan"),
            ("/run/lanelect/mail.2", "/run/lanelect/mail.2.crash-plan"),
        ] {
            assert_eq!(beside(Path::new(socket)), Path::new(plan));
        }
    }

    /// The old one may say that no hook holds, and one has begun to take over since.
    #[test]
    fn no_plan_is_left_where_a_new_one_finds_no_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.crash-plan");
        let mut file = CrashPlanFile { path, failure: None };
        let plan = CrashPlan { hook: None, grace: None, grace_end: None, resignation: None };
        let config = Config::from_toml("").unwrap();
        let keep = |file: &mut CrashPlanFile| {
            file.keep(Some(&plan), &config, &[], &[], &[]);
            (file.has_failed(), file.read().unwrap().is_some())
        };
        assert_eq!(keep(&mut file), (false, true));
        let in_the_way = dir.path().join("a.crash-plan.tmp");
        fs::create_dir(&in_the_way).unwrap();
        assert_eq!(keep(&mut file), (true, false));
        fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(keep(&mut file), (false, true));
    }
}
