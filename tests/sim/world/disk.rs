//! Saving what must outlive the daemon: at once, or beside everything else.

use lanelect::core::persist::PersistentState;
use lanelect::types::Term;

use super::{Action, Sabotage, World};
use crate::watch::{Violation, Watch};

impl<W: Watch> World<W> {
    /// Begins to write `state`, or has it wait for the write that is going on. What waits already
    /// is replaced.
    pub(super) fn save(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        self.watch.note_asked_to_keep(index, &state)?;
        self.log(index, || format!("is to keep {state:?}"));
        if self.hosts[index].disk.slowest == 0 {
            self.keep(index, state)?;
            return self.report_kept(index, state);
        }
        if self.sabotage == Some(Sabotage::ReportWritesEarly) {
            self.report_kept(index, state)?;
        }
        let disk = &mut self.hosts[index].disk;
        disk.waiting = Some(state);
        self.write_next(index);
        Ok(())
    }

    /// Begins the next write, unless one is going on.
    fn write_next(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if host.disk.writing.is_some() || host.held.is_some() {
            return;
        }
        host.disk.writing = host.disk.waiting.take();
        if host.disk.writing.is_some() {
            let (slowest, life) = (host.disk.slowest, host.life);
            let takes = self.rng.u64(0..=slowest);
            self.schedule(takes, Action::Written { host: index, life });
        }
    }

    /// The write that was going on is over; its end is told now or a while later.
    pub(super) fn finish_write(&mut self, index: usize) -> Result<(), Violation> {
        let Some(state) = self.hosts[index].disk.writing.take() else { return Ok(()) };
        self.keep(index, state)?;
        self.hosts[index].disk.unreported = Some(state);
        self.write_next(index);
        if self.rng.bool() {
            return self.tell_kept(index);
        }
        let host = &self.hosts[index];
        let (slowest, life) = (host.disk.slowest, host.life);
        let takes = self.rng.u64(0..=slowest);
        self.schedule(takes, Action::TellKept { host: index, life });
        Ok(())
    }

    /// Tells the election what is on disk, where it was not told and is not held.
    pub(super) fn tell_kept(&mut self, index: usize) -> Result<(), Violation> {
        if self.hosts[index].held.is_some() {
            return Ok(());
        }
        self.write_next(index);
        let Some(state) = self.hosts[index].disk.unreported.take() else { return Ok(()) };
        self.report_kept(index, state)?;
        self.drain(index)
    }

    /// A daemon that stops waits for what is not saved.
    pub(super) fn save_the_rest(&mut self, index: usize) -> Result<(), Violation> {
        let disk = &self.hosts[index].disk;
        let unsaved = disk.waiting.or(disk.writing);
        self.hosts[index].disk.forget_writes();
        unsaved.map_or(Ok(()), |state| self.keep(index, state))
    }

    fn keep(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        self.watch.note_kept(index, &self.hosts[index].disk.kept, &state)?;
        self.hosts[index].disk.kept = state;
        if self.sabotage == Some(Sabotage::ForgetPersisted) {
            self.hosts[index].disk.kept.term = Term(0);
        }
        Ok(())
    }

    fn report_kept(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        let now = self.hosts[index].local(self.now);
        self.watch.note_told_kept(index, &state);
        if let Some(election) = &mut self.hosts[index].election {
            election.handle_persisted(now, state);
        }
        Ok(())
    }
}
