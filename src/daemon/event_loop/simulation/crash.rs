//! What a daemon that is killed leaves to `post-stop`: its crash plan, which has to fit what others
//! saw of the daemon, and what comes of it when it is carried out.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::guarantees::Guarantees;
use super::host::Host;
use super::process::{End, Holds, Pause, Process};
use super::world::World;
use crate::config::ConfigSource;
use crate::core::hook::HookEvent;
use crate::daemon::crash_plan::{CrashPlanFile, Left};
use crate::hooks::Lane;
use crate::time::Time;
use crate::wire::message::Message;

/// A plan that could not be written is written so long after the directory takes files again, also
/// by a daemon that is held meanwhile.
const WRITTEN_WITHIN: Duration = Duration::from_secs(25);

const NEVER: Time = Time::from_nanos(u64::MAX);

/// What becomes of the directory of the control socket and the crash plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runtime {
    Works,
    /// It takes no new file.
    IsFull,
    /// It was removed.
    IsGone,
}

impl Host {
    fn source(&self) -> ConfigSource {
        ConfigSource { file: Some(self.dir.join("config.toml")), ..Default::default() }
    }

    /// What is in the way of a new crash plan if the directory is full.
    fn obstacle(&self) -> PathBuf {
        self.runtime_dir().join("control.crash-plan.tmp")
    }

    /// The service manager makes the directory for each life.
    pub(super) fn make_runtime_dir(&mut self) {
        fs::create_dir_all(self.runtime_dir()).unwrap();
        self.plan_due = self.obstacle().exists().then_some(NEVER);
    }

    fn crash_plan(&self) -> Option<Left> {
        CrashPlanFile::find(&self.source()).unwrap().read().unwrap()
    }

    /// Whether a hook that began in the last life may hold what a leader holds.
    fn may_hold(&self, quorum: bool) -> bool {
        let of_this_life = !self.hooks.is_new_life;
        let runs = self.runner.is_busy(Lane::Hook);
        of_this_life
            && match self.hooks.last {
                Some(HookEvent::Elected | HookEvent::Reaffirmed) => true,
                Some(HookEvent::Demoted) => runs || quorum && !self.hooks.succeeded,
                Some(HookEvent::Started) | None => false,
            }
    }
}

impl World {
    pub(super) fn change_runtime(&mut self, index: usize, runtime: Runtime) {
        self.log(index, || format!("its runtime directory: {runtime:?}"));
        let now = self.now;
        let host = &mut self.hosts[index];
        // Whatever was there before is gone, or was not there.
        let _ = fs::remove_dir(host.obstacle());
        fs::create_dir_all(host.runtime_dir()).unwrap();
        host.plan_due = match (runtime, host.plan_due) {
            (Runtime::Works, Some(due)) => Some(due.min(now + WRITTEN_WITHIN)),
            (Runtime::Works, None) => None,
            (Runtime::IsFull | Runtime::IsGone, _) => Some(NEVER),
        };
        match runtime {
            Runtime::Works => {}
            Runtime::IsFull => fs::create_dir(host.obstacle()).unwrap(),
            Runtime::IsGone => fs::remove_dir_all(host.runtime_dir()).unwrap(),
        }
    }

    /// What a daemon left that was killed fits what others saw of it; mostly it is carried out.
    pub(super) fn clean_up_after(&mut self, index: usize) {
        let now = self.now;
        let host = &self.hosts[index];
        let is_excused = host.plan_due.is_some_and(|due| now < due);
        let may_hold = host.may_hold(self.seen.quorum);
        let node_id = host.node_id;
        let Some(left) = host.crash_plan() else {
            assert!(!may_hold || is_excused, "{node_id} holds, and leaves no crash plan");
            return;
        };
        let Left { plan, .. } = &left;
        assert!(!may_hold || plan.hook.is_some(), "{node_id} holds, and post-stop runs no hook");
        // No copy of it runs.
        let Message { sender, term, .. } = plan.resignation.unwrap();
        assert_eq!(sender, node_id, "post-stop resigns for another node");
        let is_kept = term <= host.disk.term || (host.is_unsaved && !self.seen.quorum);
        assert!(is_kept, "{node_id} is to resign in term {term}, which is not on disk");
        if self.rng.bool() {
            self.begin_post_stop(index, left);
        }
    }

    /// `post-stop` first waits for the commands that it knows of.
    fn begin_post_stop(&mut self, index: usize, left: Left) {
        self.log(index, || format!("runs post-stop: {:?}", left.plan));
        let host = &mut self.hosts[index];
        host.is_cleaned = true;
        let granted = self.seen.granted_until(host.node_id).filter(|_| !left.holders.is_empty());
        let wait = granted.map_or(Duration::ZERO, |until| until.since(self.now));
        self.after(wait, move |world| world.run_demoted(index, left));
    }

    /// Then it ends what is left of the daemon's hook, and runs `demoted`.
    fn run_demoted(&mut self, index: usize, left: Left) {
        let host = &mut self.hosts[index];
        let Some(run) = left.plan.hook else { return self.resign_for(index, &left) };
        let can_run = host.runner.end_orphans();
        // An `elected` that never began has taken nothing over.
        if can_run && host.hooks.last != Some(HookEvent::Started) {
            Guarantees::note_hook(host.node_id, &run, &mut host.hooks);
        }
        let succeeds = can_run && self.rng.f64() >= self.weather.hook_fails;
        let takes = self.some_of(self.weather.hook);
        self.after(takes, move |world| world.end_demoted(index, &left, succeeds));
    }

    /// In quorum mode nobody resigns for hooks that may hold. The next life cleans up.
    fn end_demoted(&mut self, index: usize, left: &Left, succeeds: bool) {
        self.log(index, || format!("post-stop's demoted: {succeeds}"));
        self.hosts[index].hooks.succeeded = succeeds;
        if succeeds || left.plan.grace.is_none() {
            self.resign_for(index, left);
        } else {
            self.hosts[index].is_cleaned = false;
        }
    }

    fn resign_for(&mut self, index: usize, left: &Left) {
        self.log(index, || "post-stop resigns".to_owned());
        let host = &mut self.hosts[index];
        host.is_cleaned = false;
        CrashPlanFile::find(&host.source()).unwrap().remove().unwrap();
        let datagram: Rc<[u8]> = self.encode(&left.plan.resignation.unwrap()).into();
        for to in (0..self.hosts.len()).filter(|to| *to != index) {
            self.pass_on(index, to, &datagram);
        }
    }

    /// A second daemon is started while the first runs: it ends, and leaves the first alone.
    pub(super) fn start_a_second(&mut self, index: usize) {
        let seed = self.rng.u64(..);
        let host = &self.hosts[index];
        if host.process.is_none() || host.is_new {
            return;
        }
        self.log(index, || "is started a second time".to_owned());
        let kept = |host: &Host| {
            let plan = fs::read(host.runtime_dir().join("control.crash-plan")).ok();
            (plan, host.socket().exists())
        };
        let before = kept(host);
        let mut second = Process::new(host.source(), seed);
        let end = loop {
            if let (_, Pause::Ended(end)) = second.run(self.now, Holds::default()) {
                break end;
            }
        };
        let is_refused = matches!(&end, End::Failed(why) if why.contains("holds the lock"));
        assert!(is_refused, "a second daemon of {} ends: {end:?}", host.node_id);
        assert_eq!(before, kept(host), "a second daemon removes what the first one keeps");
    }
}
