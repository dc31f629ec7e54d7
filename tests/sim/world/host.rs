//! One simulated machine: a clock, a disk, hooks, and at times a daemon.

use std::collections::VecDeque;

use lanelect::core::Election;
use lanelect::core::crash_plan::CrashPlan;
use lanelect::core::hook::{HookEvent, HookOutcome};
use lanelect::core::output::Output;
use lanelect::core::params::Params;
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Term};
use lanelect::wire::message::Message;

use super::Came;
use super::archive::Kept;

/// What every wall clock shows first, in microseconds. One that was set back shows less.
pub(super) const CLOCKS_BEGAN_AT: u64 = 1_000_000_000;

/// One simulated machine.
pub struct Host {
    pub node_id: NodeId,
    pub params: Params,
    pub hooks: HookHabit,
    pub clock: Clock,
    pub disk: Disk,
    pub election: Option<Election>,
    /// Counts its lives, so that events of an earlier one are recognised.
    pub life: u64,
    /// The number of its last life.
    pub incarnation: Incarnation,
    /// Whether its next life begins with its wall clock set back before all earlier ones.
    pub clock_is_back: bool,
    /// Whether its hooks hold what the leader holds: from the start of an `elected` to the end of
    /// whatever makes them let go, over all its lives.
    pub hooks_hold: bool,
    /// Whether the last run that began takes over, and was lost: it may still run.
    pub(super) lost_takeover: bool,
    /// The end of a run that its daemon has not been told of, because it was held.
    pub(super) untold_end: Option<(HookEvent, HookOutcome)>,
    /// Since when they hold on although they were to let go, by its own clock.
    pub late_since: Option<Time>,
    /// What is to be done in its daemon's name where that dies.
    pub(super) plan: Option<CrashPlan>,
    /// When the latest lease of this life ends or ended, by its own clock.
    pub lease_seen: Option<Time>,
    /// What its check says, where it has one.
    pub healthy: bool,
    /// True time from which on its daemon may be started again.
    pub busy_until: u64,
    /// True time from which on it may claim the leadership again, after claims that failed.
    pub claims_again_at: u64,
    /// True time at which it was last held and let go.
    pub released_at: u64,
    pub(super) hook: Option<RunningHook>,
    pub(super) hooks_run: u64,
    /// Whether a fence command of this life runs.
    pub(super) fence_runs: bool,
    /// Whether a run that takes over had not ended when that command began.
    pub(super) fenced_beside_takeover: bool,
    /// What its last hook was for that has ended.
    pub(super) last_hook: Option<HookEvent>,
    /// Whether that hook could not run, and the one before it neither, for the same event.
    pub(super) tries_in_vain: bool,
    /// A run does not end, also after its daemon, so no other starts.
    pub(super) is_stuck: bool,
    /// The wake that is scheduled; a later one makes it moot.
    pub(super) wake_at: u64,
    /// True time since when it has taken in every datagram that arrived.
    pub(super) listens_since: u64,
    /// Whether it has believed a forgery, and may ignore what its sender says because of that.
    pub is_deceived: bool,
    /// When it last went on after it was held, or heard something late.
    pub(super) misled_at: u64,
    /// What happens to it while it is held; none where it runs.
    pub(super) held: Option<Held>,
    pub(super) last_sent: Option<Message>,
    /// Heartbeats that it sent which say no more than that it is alive.
    pub(super) plain_heartbeats: u64,
}

/// How a host's hooks behave. Times in nanoseconds of its own clock.
#[derive(Debug, Clone, Copy)]
pub struct HookHabit {
    /// Longest run.
    pub longest: u64,
    /// Longest run of `demoted`; every other one takes that long.
    pub demoted_longest: u64,
    /// Probability that a run hangs, until its time limit ends it.
    pub hangs: f64,
    /// The same for a run of `demoted`.
    pub demoted_hangs: f64,
    /// The time limit of a run that hangs.
    pub limit: u64,
    pub fence: FenceHabit,
    /// Probability that a run fails, or is lost: nobody is told whether it has ended.
    pub failure: f64,
    /// The same for a run by which the hooks are to let go; then they have not.
    pub stubbornness: f64,
    /// Probability that a run never starts.
    pub absence: f64,
    /// Nothing ends the next run, so no other starts.
    pub blocked: bool,
}

impl HookHabit {
    /// Every hook takes up to `longest` and succeeds.
    pub const fn of_length(longest: u64) -> Self {
        HookHabit {
            longest,
            demoted_longest: longest,
            hangs: 0.0,
            demoted_hangs: 0.0,
            limit: 0,
            fence: FenceHabit::Mixed,
            failure: 0.0,
            stubbornness: 0.0,
            absence: 0.0,
            blocked: false,
        }
    }

    /// Nothing fails or hangs any more that begins from now on.
    pub fn mend(&mut self) {
        (self.hangs, self.demoted_hangs, self.fence) = (0.0, 0.0, FenceHabit::Mixed);
        (self.failure, self.stubbornness, self.absence) = (0.0, 0.0, 0.0);
    }

    /// How long a run may go on that began before everything was mended.
    pub fn longest_run(&self) -> u64 {
        self.longest.max(self.limit)
    }

    /// The longest that the core waits before it tries a run again.
    pub fn longest_retry(&self) -> u64 {
        const HOOK_RETRY_MAX: u64 = 10_000_000_000;
        let may_repeat = self.stubbornness + self.absence + self.hangs > 0.0;
        if may_repeat { HOOK_RETRY_MAX } else { 0 }
    }
}

/// How the fence command of a host behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceHabit {
    /// It succeeds every other time.
    Mixed,
    /// There is none, or it fails each time.
    Fails,
    /// It hangs until its time limit ends it.
    Hangs,
}

/// The hook that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningHook {
    pub(super) number: u64,
    pub(super) event: HookEvent,
    pub(super) ends_at: u64,
    /// Whether it started at all.
    pub(super) ran: bool,
    /// Whether only its time limit ends it.
    pub(super) hangs: bool,
}

/// A daemon that is held, as by SIGSTOP.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Since when, in true time.
    pub(super) since: u64,
    /// What it was about to carry out.
    pub(super) in_hand: VecDeque<Output>,
    /// What arrived meanwhile.
    pub(super) inbox: VecDeque<(Kept, Came)>,
}

/// What a host keeps. Writing takes a while; until it is over, a crash leaves what was there
/// before.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub kept: PersistentState,
    /// The longest time that a write takes; zero where the daemon waits for it.
    pub slowest: u64,
    /// It holds something that cannot be read: no daemon starts on it.
    pub torn: bool,
    pub fault: DiskFault,
    /// Counts its faults, so that the end of an earlier one is recognised.
    pub(super) faults: u64,
    /// What a daemon in available mode goes on with although it could not be written; or what was
    /// there before the disk was replaced.
    pub(super) unkept: Option<PersistentState>,
    /// Whether the present life began with lower terms than the last one had.
    pub has_lost_terms: bool,
    /// What is being written, what is to be written next, and what is there and was not reported.
    pub(super) writing: Option<PersistentState>,
    pub(super) waiting: Option<PersistentState>,
    pub(super) unreported: Option<PersistentState>,
}

/// Why a disk takes no writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiskFault {
    #[default]
    None,
    /// No write ends.
    Hangs,
    /// Every write fails.
    Fails,
}

impl Disk {
    /// The highest term that its daemon may take for saved.
    pub fn settled_term(&self) -> Term {
        self.unkept.map_or(self.kept.term, |unkept| unkept.term.max(self.kept.term))
    }

    /// Whether something is not yet known to be there.
    pub const fn is_busy(&self) -> bool {
        self.writing.is_some() || self.waiting.is_some() || self.unreported.is_some()
    }

    pub(super) fn forget_writes(&mut self) {
        (self.writing, self.waiting, self.unreported) = (None, None, None);
    }

    /// A daemon starts with what it holds.
    pub(super) fn begin_life(&mut self) {
        self.forget_writes();
        self.has_lost_terms = self.settled_term() > self.kept.term;
        self.unkept = None;
    }

    /// It is replaced by an empty one.
    pub fn replace(&mut self) {
        self.unkept.get_or_insert(self.kept);
        self.kept = PersistentState::default();
        (self.torn, self.fault) = (false, DiskFault::None);
    }
}

/// A clock that was `offset` at time zero and runs `drift` parts per billion fast.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub offset: u64,
    pub drift: i64,
}

const BILLION: i128 = 1_000_000_000;

impl Clock {
    /// A reading is not in step with true time by so much, in nanoseconds.
    pub const GRAIN: u64 = 100;

    /// What it shows.
    pub fn show(&self, now: u64) -> Time {
        let gained = i128::from(now) * i128::from(self.drift) / BILLION;
        Time::from_nanos((i128::from(self.offset) + i128::from(now) + gained) as u64)
    }

    /// The first true time at which it shows at least `local`.
    pub fn true_time(&self, local: Time) -> u64 {
        let ahead = i128::from(local.as_nanos()) - i128::from(self.offset);
        let rate = BILLION + i128::from(self.drift);
        ((ahead.max(0) * BILLION + rate - 1) / rate + 1) as u64
    }

    /// How much true time passes at the most while it shows `local` more nanoseconds.
    pub fn span(&self, local: u64) -> u64 {
        (i128::from(local) * BILLION / (BILLION + i128::from(self.drift))) as u64
    }
}

impl Host {
    pub(super) fn new(node_id: NodeId, params: Params, hooks: HookHabit, clock: Clock) -> Self {
        Host {
            node_id,
            params,
            hooks,
            clock,
            disk: Disk::default(),
            election: None,
            life: 0,
            incarnation: Incarnation::default(),
            clock_is_back: false,
            hooks_hold: false,
            lost_takeover: false,
            untold_end: None,
            late_since: None,
            plan: None,
            healthy: true,
            lease_seen: None,
            busy_until: 0,
            claims_again_at: 0,
            released_at: 0,
            hook: None,
            hooks_run: 0,
            fence_runs: false,
            fenced_beside_takeover: false,
            last_hook: None,
            tries_in_vain: false,
            is_stuck: false,
            wake_at: u64::MAX,
            listens_since: 0,
            is_deceived: false,
            misled_at: 0,
            held: None,
            last_sent: None,
            plain_heartbeats: 0,
        }
    }

    /// Whether its life has a number below its earlier ones.
    pub const fn is_set_back(&self) -> bool {
        self.incarnation.0 < CLOCKS_BEGAN_AT
    }

    /// Whether its daemon runs and is not held.
    pub fn is_up(&self) -> bool {
        self.election.is_some() && self.held.is_none()
    }

    /// Whether its daemon runs, held or not.
    pub fn is_alive(&self) -> bool {
        self.election.is_some()
    }

    /// Whether its next run gets stuck. Otherwise the one that is has ended.
    pub fn block_hooks(&mut self, blocked: bool) {
        self.hooks.blocked = blocked;
        self.is_stuck &= blocked;
    }

    /// When the run that could not begin, or hangs, is reported as such, if there is one.
    pub fn failing_run_ends_at(&self) -> Option<u64> {
        self.hook.filter(|hook| !hook.ran || hook.hangs).map(|hook| hook.ends_at)
    }

    /// Its hooks hold nothing any more.
    pub(super) fn let_go(&mut self) {
        (self.hooks_hold, self.late_since) = (false, None);
    }

    /// Whether a run that takes over may not have ended, as far as its daemon knows. It cannot know
    /// of one that it has asked for whether that has begun.
    pub(super) fn may_take_over(&self) -> bool {
        let untold = self.untold_end.map(|(event, _)| event);
        let asked_for = self.hook.map(|hook| hook.event).or(untold);
        asked_for.is_some_and(takes_over) || self.lost_takeover
    }

    /// Whether its hooks are doing something.
    pub fn runs_hook(&self) -> bool {
        self.hook.is_some()
    }

    /// What its clock shows.
    pub fn local(&self, now: u64) -> Time {
        self.clock.show(now)
    }
}

/// Whether a run for `event` may take what the leader holds.
pub(super) const fn takes_over(event: HookEvent) -> bool {
    matches!(event, HookEvent::Elected | HookEvent::Reaffirmed)
}
