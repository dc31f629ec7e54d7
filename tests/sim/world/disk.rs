//! Saving what must outlive the daemon: at once, or beside everything else. On a disk that hangs no
//! write ends. On one that fails, a daemon in available mode goes on without; a voter tries again.

use lanelect::core::persist::PersistentState;
use lanelect::types::Term;

use super::host::DiskFault;
use super::{Action, Sabotage, World};
use crate::watch::{Violation, Watch};

/// Pause before a voter writes again what it could not, in nanoseconds of its own clock.
const RETRY_PAUSE: u64 = 1_000_000_000;

impl<W: Watch> World<W> {
    /// A disk begins to hang or to fail, or works again.
    pub fn set_disk_fault(&mut self, index: usize, fault: DiskFault) {
        self.log(index, || format!("has the disk fault {fault:?}"));
        self.watch.disturb(self.now);
        let host = &mut self.hosts[index];
        host.disk.fault = fault;
        host.disk.faults += 1;
        if host.disk.writing.is_some() {
            self.schedule_end_of_write(index);
        }
        self.write_next(index);
    }

    /// The same for a while.
    pub fn set_disk_fault_for(&mut self, index: usize, fault: DiskFault, duration: u64) {
        self.set_disk_fault(index, fault);
        let fault = self.hosts[index].disk.faults;
        self.schedule(duration, Action::DiskWorks { host: index, fault });
    }

    pub(super) fn end_disk_fault(&mut self, index: usize, fault: u64) {
        if self.hosts[index].disk.faults == fault {
            self.set_disk_fault(index, DiskFault::None);
        }
    }

    /// Begins to write `state`, or has it wait for the write that is going on. What waits already
    /// is replaced.
    pub(super) fn save(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        self.watch.note_asked_to_keep(index, &state)?;
        self.log(index, || format!("is to keep {state:?}"));
        let disk = &self.hosts[index].disk;
        if disk.slowest == 0 && disk.fault == DiskFault::None && !disk.is_busy() {
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
    pub(super) fn write_next(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if host.disk.writing.is_some() || host.held.is_some() {
            return;
        }
        host.disk.writing = host.disk.waiting.take();
        if host.disk.writing.is_some() {
            self.schedule_end_of_write(index);
        }
    }

    fn schedule_end_of_write(&mut self, index: usize) {
        let host = &self.hosts[index];
        let (slowest, life) = (host.disk.slowest, host.life);
        let takes = self.rng.u64(0..=slowest);
        self.schedule(takes, Action::Written { host: index, life });
    }

    /// The write that was going on is over, unless the disk hangs; its end is told now or a while
    /// later.
    pub(super) fn finish_write(&mut self, index: usize) -> Result<(), Violation> {
        let host = &mut self.hosts[index];
        if host.disk.fault == DiskFault::Hangs {
            return Ok(());
        }
        let Some(state) = host.disk.writing.take() else { return Ok(()) };
        if host.disk.fault == DiskFault::None {
            self.keep(index, state)?;
        } else if host.params.quorum.is_some() {
            self.write_again_later(index, state);
            return Ok(());
        } else {
            self.log(index, || "goes on without its state".into());
            self.hosts[index].disk.unkept = Some(state);
        }
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

    /// A voter relies on nothing that is not on disk.
    fn write_again_later(&mut self, index: usize, state: PersistentState) {
        let host = &mut self.hosts[index];
        host.disk.waiting.get_or_insert(state);
        let (takes, life) = (host.clock.span(RETRY_PAUSE), host.life);
        self.schedule(takes, Action::WriteAgain { host: index, life });
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
        let works = disk.fault == DiskFault::None;
        self.hosts[index].disk.forget_writes();
        unsaved.filter(|_| works).map_or(Ok(()), |state| self.keep(index, state))
    }

    fn keep(&mut self, index: usize, state: PersistentState) -> Result<(), Violation> {
        self.watch.note_kept(index, &self.hosts[index].disk.kept, &state)?;
        self.hosts[index].disk.kept = state;
        self.hosts[index].disk.unkept = None;
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
