//! Reading the configuration again, on HUP.

use super::Daemon;
use crate::config::{Config, keys};
use crate::daemon::RunError;
use crate::daemon::clock;
use crate::daemon::control::Access;
use crate::daemon::hooks::HookSettings;
use crate::daemon::hooks::schedule::CheckSettings;
use crate::wire::auth::Keyring;

impl Daemon {
    /// Takes over what can change while the daemon runs; a bad configuration changes nothing.
    pub(super) fn reload(&mut self) {
        self.notifier.reloading();
        match self.load_anew() {
            Ok((config, access, keyring)) => {
                self.codec.set_keyring(keyring);
                self.rejections.tell_anew();
                self.apply(config, access);
                log::info!("configuration reloaded");
            }
            Err(error) => log::error!("{error}\nthe configuration from before stays in force"),
        }
        self.notifier.ready();
    }

    /// Reads everything before anything is taken over. The files whose names take a restart to
    /// change are read anew under their old names: keys rotate, and groups get members.
    fn load_anew(&self) -> Result<(Config, Access, Option<Keyring>), RunError> {
        let config = self.source.load()?;
        let access = Access::resolve(self.config.socket_group.as_deref())?;
        let keyring = self.config.key_file.as_deref().map(keys::load).transpose()?;
        Ok((config, access, keyring))
    }

    fn apply(&mut self, new: Config, access: Access) {
        let unchanged = self.config.changes_needing_restart(&new);
        if !unchanged.is_empty() {
            log::warn!("changes only with a restart, and did not: {}", unchanged.join(", "));
        }
        self.config = self.config.taking_over(new);
        self.control.set_access(access);
        self.hooks.reconfigure(HookSettings::from(&self.config));
        self.election.reconfigure(clock::now(), self.config.election.clone());
        self.carry_out();
        self.keep_will();
        if self.check.schedule.reconfigure(CheckSettings::new(&self.config), clock::now()) {
            self.end_check();
        }
    }
}
