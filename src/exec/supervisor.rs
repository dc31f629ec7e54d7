//! The event loop of `lanelect exec`.

use std::io;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use super::job::{Job, is_over};
use super::link::{Link, News};
use super::{BY_SIGNAL, ExecError, Settings, code, say};
use crate::client::ClientError;
use crate::control_api::Grant;
use crate::os::clock::{self, Alarm};
use crate::os::{polling, process};
use crate::time::Time;

/// Pause between two attempts to reach a daemon that does not answer.
const RECONNECT: Duration = Duration::from_secs(1);

const LINK: Token = Token(0);
const SIGNALS: Token = Token(1);
const ALARM: Token = Token(2);

/// Runs one command at a time, by the grants of one daemon.
pub(super) struct Supervisor {
    settings: Settings,
    poll: Poll,
    alarm: Alarm,
    signals: Signals,
    /// None while the daemon cannot be reached.
    link: Option<Link>,
    /// When to connect again; none if that is not planned.
    connect_at: Option<Time>,
    /// Whether it was said that the daemon cannot be reached.
    has_complained: bool,
    job: Option<Job>,
    /// The signal that ends this process, once the command has ended.
    asked_to_end: Option<i32>,
}

impl Supervisor {
    pub(super) fn new(settings: Settings) -> Result<Self, ExecError> {
        let poll = Poll::new()?;
        let mut signals = Signals::new([SIGCHLD, SIGINT, SIGTERM])?;
        // `nohup` lets a command outlive its terminal.
        if !process::ignores(SIGHUP) {
            signals.add_signal(SIGHUP)?;
        }
        poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        // A unit may start before that of the daemon. Without `restarts` a daemon that is not there
        // is a mistake.
        let connect_at = settings.restarts.then(clock::now);
        let link = match connect_at {
            Some(_) => None,
            None => Some(Link::open(&settings.target, poll.registry(), LINK)?),
        };
        Ok(Supervisor {
            settings,
            poll,
            alarm,
            signals,
            link,
            connect_at,
            has_complained: false,
            job: None,
            asked_to_end: None,
        })
    }

    /// Until the command has ended and is not to run again.
    pub(super) fn run(mut self) -> Result<u8, ExecError> {
        loop {
            self.take_signals();
            self.take_news()?;
            self.let_time_pass()?;
            if let Some(code) = self.take_end() {
                return Ok(u8::try_from(code).unwrap_or(u8::MAX));
            }
            self.sleep()?;
        }
    }

    fn sleep(&mut self) -> io::Result<()> {
        let job = self.job.as_ref().map(|job| job.poll_timeout(clock::now()));
        self.alarm.set([job, self.connect_at].into_iter().flatten().min())?;
        polling::wait(&mut self.poll, &mut Events::with_capacity(4), None)?;
        self.alarm.acknowledge();
        Ok(())
    }

    fn take_signals(&mut self) {
        let signals: Vec<_> = self.signals.pending().filter(|signal| *signal != SIGCHLD).collect();
        for signal in signals {
            let is_impatient = self.asked_to_end.replace(signal).is_some();
            let Some(job) = &mut self.job else { continue };
            if is_impatient {
                job.kill(clock::now());
            } else {
                job.stop(clock::now());
            }
        }
    }

    fn take_news(&mut self) -> Result<(), ExecError> {
        // Only the newest counts: if the grant has ended since, the command does not begin.
        match self.link.as_mut().and_then(Link::receive) {
            Some(News::Grant(grant)) => self.take_grant(grant),
            Some(News::End) => {
                self.end_grant();
                Ok(())
            }
            Some(News::HungUp) => self.hang_up(),
            None => Ok(()),
        }
    }

    fn take_grant(&mut self, grant: Grant) -> Result<(), ExecError> {
        if let Some(job) = &mut self.job {
            job.renew(grant);
            return Ok(());
        }
        let is_valid = !is_over(&grant, clock::now());
        let Some(link) = self.link.as_mut().filter(|_| is_valid && self.asked_to_end.is_none())
        else {
            return Ok(());
        };
        let shared = link.share().map_err(ExecError::Guard)?;
        self.job = Job::start(&self.settings.command, grant, shared)?;
        if let Some(job) = &self.job {
            link.report_start(job.guard());
        }
        Ok(())
    }

    fn end_grant(&mut self) {
        self.lose("this node no longer leads");
        if self.job.is_none() {
            // The grant came too late. The daemon's hook waits until this process hangs up.
            self.link = None;
            self.connect_at = Some(clock::now());
        }
    }

    fn hang_up(&mut self) -> Result<(), ExecError> {
        self.link = None;
        self.lose("the daemon has ended");
        if self.job.is_none() {
            let socket = self.settings.target.socket().to_owned();
            if !self.settings.restarts {
                return Err(ClientError::HungUp(socket).into());
            }
            self.connect_at = Some(clock::now() + RECONNECT);
        }
        Ok(())
    }

    fn lose(&mut self, why: &str) {
        if let Some(job) = self.job.as_mut().filter(|job| !job.is_ending()) {
            job.stop(clock::now());
            say(&format!("{why}: stopping the command"));
        }
    }

    fn let_time_pass(&mut self) -> Result<(), ExecError> {
        let now = clock::now();
        if self.job.as_ref().is_some_and(|job| job.is_overdue(now)) {
            self.lose("the daemon does not answer");
        }
        if let Some(job) = &mut self.job {
            job.advance(now);
        }
        if self.connect_at.is_some_and(|at| at <= now) {
            self.connect()?;
            // A grant may have arrived with the answer: it is read already, and wakes nobody.
            self.take_news()?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), ClientError> {
        match Link::open(&self.settings.target, self.poll.registry(), LINK) {
            Ok(link) => {
                self.link = Some(link);
                self.connect_at = None;
                self.has_complained = false;
            }
            Err(error) if !self.settings.restarts || !error.is_unreachable() => return Err(error),
            Err(error) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    say(&format!("{error}; trying again until it answers"));
                }
                self.connect_at = Some(clock::now() + RECONNECT);
            }
        }
        Ok(())
    }

    /// The exit status, if this process has nothing more to do.
    fn take_end(&mut self) -> Option<i32> {
        let Some(job) = &self.job else {
            return self.asked_to_end.map(|signal| BY_SIGNAL + signal);
        };
        let (status, was_stopped) = (job.end()?, job.was_stopped());
        self.job = None;
        if !was_stopped || !self.settings.restarts || self.asked_to_end.is_some() {
            return Some(code(status));
        }
        // Hangs up, which lets the daemon's hook begin.
        self.link = None;
        self.connect_at = Some(clock::now());
        None
    }
}
