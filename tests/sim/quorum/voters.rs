//! Changing the voters by rolling restarts, one voter at a time; and a node that is set to wrong
//! ones.

use lanelect::core::Election;
use lanelect::core::status::VoterStanding;

use super::scenario::Scenario;
use super::settings::voters_of;
use crate::watch::Violation;
use crate::world::nanos;

impl Scenario {
    /// Changes the voters, at times without a pause and at times as slowly as other faults let it;
    /// one of them may lose its disk just then.
    pub fn change_voters(&mut self) -> Result<(), Violation> {
        if !self.begin_change_of_voters() {
            return Ok(());
        }
        match self.rng.u8(0..4) {
            0 => return self.forget_what_one_side_knows(),
            1..=2 => return Ok(()),
            _ => {}
        }
        for _ in 0..self.settings.hosts {
            match self.rng.u8(0..6) {
                0 => self.partition(),
                1 => {
                    let host = self.choose_host();
                    self.lose_disk(host)?;
                }
                2..=3 => self.let_pass(0, 15)?,
                _ => {}
            }
            self.restart_for_voters()?;
        }
        Ok(())
    }

    /// A bare majority of the former voters, the one that is being removed among them, may elect a
    /// leader that the others do not hear of. Then one of that majority loses its disk, and the
    /// others of it are down while the rest changes over.
    fn forget_what_one_side_knows(&mut self) -> Result<(), Violation> {
        let removed = self.former_voters.iter().find(|voter| !self.voters.contains(voter));
        let Some(removed) = removed.copied() else { return Ok(()) };
        let mut side: Vec<usize> = self.voters.clone();
        self.rng.shuffle(&mut side);
        side.truncate(self.former_voters.len() / 2);
        side.push(removed);
        let colours: Vec<usize> =
            (0..self.world.hosts.len()).map(|host| usize::from(side.contains(&host))).collect();
        self.world.network.partition(&colours);
        let hold = nanos(self.settings.longest_hold());
        self.world.run_for(hold * 2)?;
        let forgetful = side[0];
        for host in side.into_iter().skip(1) {
            self.world.crash(host)?;
        }
        self.world.network.heal();
        self.lose_disk(forgetful)?;
        for host in self.voters.clone() {
            if self.is_outdated(host) {
                self.world.crash(host)?;
                self.world.start(host)?;
            }
        }
        self.world.run_for(hold * 4)
    }

    /// Decides to add or remove a voter, where the last change is over, and every voter that stays
    /// runs and sees every other one count, as the documentation has operators wait for. Every host
    /// is to be restarted.
    fn begin_change_of_voters(&mut self) -> bool {
        let host = self.rng.usize(0..self.settings.hosts);
        let mut voters = self.voters.clone();
        voters.retain(|voter| *voter != host);
        self.note_change_of_voters();
        if !self.change_is_over || !self.all_agree_on_voters() || !self.all_count(&voters) {
            return false;
        }
        if voters.len() == self.voters.len() {
            voters.push(host);
        }
        let candidates = voters.iter().any(|voter| self.settings.params[*voter].candidate);
        if !candidates || voters.len() > 5 {
            return false;
        }
        self.world.log(host, || format!("is in or out: the voters are to be {voters:?}"));
        self.former_voters = std::mem::replace(&mut self.voters, voters);
        self.change_is_over = false;
        let voters = voters_of(&self.voters);
        for host in 0..self.settings.hosts {
            let quorum = self.world.hosts[host].params.quorum.as_mut();
            quorum.expect("quorum mode").voters = voters.clone();
        }
        true
    }

    /// A change is over once every voter, also one that is removed next, has seen every other one
    /// count, and a leader was elected: from then on a majority has a term on disk that is above
    /// all that were won before.
    pub fn note_change_of_voters(&mut self) {
        let mut elections = self.world.hosts.iter().filter_map(|host| host.election.as_ref());
        let one_leads = elections.any(Election::is_leader);
        self.change_is_over |=
            one_leads && self.all_agree_on_voters() && self.all_count(&self.voters);
    }

    /// Stops a host that still runs under other voters than it is set to.
    pub fn restart_for_voters(&mut self) -> Result<(), Violation> {
        let Some(host) = (0..self.settings.hosts).find(|host| self.is_outdated(*host)) else {
            return Ok(());
        };
        if self.rng.u8(0..4) == 0 {
            self.world.crash(host)?;
        } else {
            self.world.command(host, "is stopped", Election::stop)?;
        }
        if self.world.hosts[host].is_alive() { Ok(()) } else { self.world.start(host) }
    }

    /// Whether a host's daemon runs under other voters than it is set to.
    pub fn is_outdated(&self, host: usize) -> bool {
        let host = &self.world.hosts[host];
        let set = host.params.quorum.as_ref().map(|quorum| &quorum.voters);
        host.election.as_ref().is_some_and(|election| {
            election.params().quorum.as_ref().map(|quorum| &quorum.voters) != set
        })
    }

    /// Whether every host is set to the right voters, and no daemon runs under others.
    pub fn all_agree_on_voters(&self) -> bool {
        let right = voters_of(&self.voters);
        self.misled.is_none()
            && (0..self.settings.hosts).all(|host| {
                let quorum = self.world.hosts[host].params.quorum.as_ref();
                quorum.is_some_and(|quorum| quorum.voters == right) && !self.is_outdated(host)
            })
    }

    /// Whether each of `voters` shows that all of them count. What one knows the others have heard
    /// then.
    fn all_count(&self, voters: &[usize]) -> bool {
        let shows_all = |voter: &usize| {
            let host = &self.world.hosts[*voter];
            let status = host.election.as_ref().map(|it| it.status(host.local(self.world.now)));
            let quorum = status.filter(|_| host.is_up()).and_then(|status| status.quorum);
            quorum.is_some_and(|quorum| {
                let counts = |other: &usize| {
                    let other = self.world.hosts[*other].node_id;
                    let shown = quorum.voters.iter().find(|shown| shown.node_id == other);
                    shown.is_some_and(|shown| shown.standing == VoterStanding::Counts)
                };
                voters.iter().all(counts)
            })
        };
        voters.iter().all(shows_all)
    }

    /// One host is restarted with wrong voters, or with the right ones again.
    pub fn mislead(&mut self) -> Result<(), Violation> {
        let (host, voters) = match self.misled.take() {
            Some(host) => (host, self.voters.clone()),
            None if self.all_agree_on_voters() && self.all_enrolled() => {
                let host = self.rng.usize(0..self.settings.hosts);
                let wrong = self.choose_wrong_voters();
                if voters_of(&wrong) == voters_of(&self.voters) {
                    return Ok(());
                }
                self.misled = Some(host);
                (host, wrong)
            }
            None => return Ok(()),
        };
        self.world.log(host, || format!("is set to the voters {voters:?}"));
        let quorum = self.world.hosts[host].params.quorum.as_mut();
        quorum.expect("quorum mode").voters = voters_of(&voters);
        self.world.crash(host)?;
        self.world.start(host)
    }

    /// At least two: one that is its own majority would need nobody.
    fn choose_wrong_voters(&mut self) -> Vec<usize> {
        let mut hosts: Vec<usize> = (0..self.settings.hosts).collect();
        self.rng.shuffle(&mut hosts);
        hosts.truncate(self.rng.usize(2..=self.settings.hosts.min(5)));
        hosts
    }
}
