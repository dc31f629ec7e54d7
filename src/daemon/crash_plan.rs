//! The daemon's crash plan, in a file beside its control socket.
//!
//! There is one while this node leads, or its hooks still hold what the leader holds. It is for
//! `post-stop`, which finds it where the daemon was killed, and has the configuration with it that
//! was in force: the config file may have been changed since, or broken. A restart of the machine
//! ends what it is about; so the file is not synced, and lies where a restart removes it.

use std::env;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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
    /// The last attempt to write failed, which was told.
    failing: bool,
}

/// What the file says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    plan: CrashPlan,
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
    pub(super) config: Config,
    pub(super) interfaces: Vec<String>,
    pub(super) holders: Vec<i32>,
    pub(super) peers: Vec<Vec<IpAddr>>,
}

impl CrashPlanFile {
    /// The daemon's that runs by `config` from `source`.
    pub(super) fn of(source: &ConfigSource, config: &Config) -> Self {
        let path = in_runtime_directory(source);
        let path = path.unwrap_or_else(|| config.socket.with_extension("crash-plan"));
        CrashPlanFile { path, failing: false }
    }

    /// The file of a daemon that ran by `source`. Where systemd gives the directory, no
    /// configuration is needed to find it.
    ///
    /// # Errors
    ///
    /// Where it is, and there is none to be had.
    pub(super) fn find(source: &ConfigSource) -> Result<Self, ConfigError> {
        match in_runtime_directory(source) {
            Some(path) => Ok(CrashPlanFile { path, failing: false }),
            None => Ok(CrashPlanFile::of(source, &source.load()?)),
        }
    }

    /// Keeps this crash plan, or none. Where that fails the daemon goes on: what is missing is only
    /// what follows its death.
    pub(super) fn keep(
        &mut self,
        plan: Option<&CrashPlan>,
        config: &Config,
        interfaces: &[String],
        holders: &[i32],
        peers: &[Vec<IpAddr>],
    ) {
        let kept = match plan {
            Some(plan) => self.replace(Kept {
                plan: plan.clone(),
                config: config.to_toml(),
                interfaces: interfaces.to_vec(),
                holders: holders.to_vec(),
                peers: peers.to_vec(),
            }),
            None => self.remove(),
        };
        let was_failing = mem::replace(&mut self.failing, kept.is_err());
        let Some(error) = kept.err().filter(|_| !was_failing) else { return };
        let path = self.path.display();
        match plan {
            Some(_) => log::warn!(
                "cannot write the crash plan {path}: {error}; if this daemon dies now, post-stop \
                 cannot run the demote hook or resign for it"
            ),
            None => log::warn!(
                "cannot remove the crash plan {path}: {error}; if this daemon dies now, post-stop \
                 may run the demote hook for a leadership that is over; remove the file"
            ),
        }
    }

    /// The crash plan that was kept last, and what goes with it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or holds something else.
    pub(super) fn read(&self) -> io::Result<Option<Left>> {
        let Some(content) = small_file::read(&self.path, CRASH_PLAN_MAX)? else { return Ok(None) };
        let Kept { plan, config, interfaces, holders, peers } = serde_json::from_slice(&content)?;
        let invalid = |problems| ConfigError::Invalid { file: None, problems };
        let config = Config::from_toml(&config).map_err(|p| io::Error::other(invalid(p)))?;
        Ok(Some(Left { plan, config, interfaces, holders, peers }))
    }

    /// Nothing is left to be done.
    pub(super) fn remove(&self) -> io::Result<()> {
        small_file::remove(&self.path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn replace(&self, kept: Kept) -> io::Result<()> {
        small_file::replace(&self.path, &serde_json::to_vec(&kept)?)
    }
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
