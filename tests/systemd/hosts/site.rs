//! The hosts of a test, the network between them, and what is expected of all of them together.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::stat::{Mode, umask};

use super::cgroup::Cgroup;
use super::host::{DAEMON, ELECTION, Host};
use super::story;
use super::trial::{CGROUPS, SHARED, SITE, prepare, trial};
use crate::harness::inside::{self, Needs, isolated_with};
use crate::harness::journal::Journal;
use crate::harness::switch::{Rule, Switch};
use crate::harness::{wait_for, wait_until};

/// The longest a scenario may take.
const LIMIT: Duration = Duration::from_secs(600);

/// How many hosts of all tests together have power at a time. The kernel gives a user 128 inotify
/// instances; a host takes several, and one that gets none never comes up.
const HOSTS_MAX: usize = 12;

/// Hosts on one network.
pub(crate) struct Site {
    hosts: Vec<Host>,
    switch: Switch,
    journal: Journal,
}

/// Runs a test on as many hosts as `body` takes, which are up and have the files of lanelect;
/// afterwards checks every host's hooks, and that every daemon stops in order.
pub(crate) fn scenario<const N: usize>(body: impl FnOnce(&Site, [&Host; N])) {
    run(inside::test_name(&body), with_lanelect, body);
}

/// A [`scenario`] on hosts that do not have lanelect.
pub(crate) fn bare_scenario<const N: usize>(body: impl FnOnce(&Site, [&Host; N])) {
    run(inside::test_name(&body), without_lanelect, body);
}

fn run<const N: usize>(test: &str, image: fn(&Path), body: impl FnOnce(&Site, [&Host; N])) {
    let needs = Needs { limit: LIMIT, real_root: true, trial };
    let _places = Places::take(N);
    isolated_with(needs, test, |_inside| {
        let site = Site::new(N, image);
        site.boot();
        body(&site, std::array::from_fn(|i| &site.hosts[i]));
        site.stop_all();
    });
}

/// Places for hosts, of the [`HOSTS_MAX`] that there are. Free again when dropped.
struct Places(usize);

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Places {
    /// Waits until so many are free.
    fn take(count: usize) -> Places {
        let taken = TAKEN.lock().unwrap();
        let mut taken = FREED.wait_while(taken, |taken| *taken + count > HOSTS_MAX).unwrap();
        *taken += count;
        Places(count)
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap() -= self.0;
        FREED.notify_all();
    }
}

impl Site {
    /// Hosts without power. `image` writes the files in which they differ from this machine.
    fn new(hosts: usize, image: fn(&Path)) -> Site {
        // Whatever the user's mask, the hosts' files are to be read there.
        umask(Mode::from_bits_truncate(0o022));
        prepare();
        image(&Path::new(SITE).join("image"));
        let cgroup = Rc::new(Cgroup::new(Path::new(CGROUPS)));
        symlink(cgroup.path(), Path::new(SITE).join("cgroup")).unwrap();
        let journal = Journal::new(Path::new(SHARED));
        // No dice are cast: nothing is lost or delayed here.
        let switch = Switch::new(0, ELECTION);
        let host = |n| Host::new(n, Rc::clone(&cgroup), journal.clone());
        let hosts: Vec<Host> = (1..=hosts).map(host).collect();
        hosts.iter().for_each(|host| switch.plug(host.number, &format!("p{}", host.number)));
        Site { hosts, switch, journal }
    }

    fn boot(&self) {
        self.hosts.iter().for_each(Host::power_on);
        self.hosts.iter().for_each(Host::wait_until_up);
    }

    /// Installs and starts the daemons so that the first host leads: the others join when it does.
    pub(crate) fn start_led_by_first(&self, hosts: &[&Host], lines: &str) {
        let (first, rest) = hosts.split_first().unwrap();
        hosts.iter().for_each(|host| host.install(lines));
        first.enable();
        self.wait_for_leader(first);
        rest.iter().for_each(|host| host.enable());
        self.wait_for_leader(first);
    }

    /// Waits until one host with power leads, all the others follow it and no hook runs; returns
    /// it.
    #[track_caller]
    pub(crate) fn sole_leader(&self) -> &Host {
        wait_for("one host leads and the others follow it", || self.agreed_leader())
    }

    /// Waits until each host, all voters of a group, counts the votes of all: two of three elect a
    /// leader while the third still finds out that it may vote.
    #[track_caller]
    pub(crate) fn wait_until_all_vote(&self) {
        let counted =
            |host: &Host| host.status()["quorum"]["counting"].as_array().map_or(0, Vec::len);
        wait_until("every voter counts every voter", || {
            self.hosts.iter().all(|host| counted(host) == self.hosts.len())
        });
    }

    /// Waits until `host` is the sole leader.
    #[track_caller]
    pub(crate) fn wait_for_leader(&self, host: &Host) {
        wait_until(&format!("{} leads and the others follow it", host.name), || {
            self.agreed_leader().is_some_and(|leader| leader.name == host.name)
        });
    }

    /// Lets nothing through from or to `host`.
    pub(crate) fn cut_off(&self, host: &Host) {
        for other in self.hosts.iter().filter(|other| other.number != host.number) {
            self.switch.link(host.number, other.number, Rule::cut());
            self.switch.link(other.number, host.number, Rule::cut());
        }
    }

    /// The network.
    pub(crate) fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Panics where one host's `elected` hook started before another's `demoted` had ended.
    pub(crate) fn check_overlaps(&self) {
        let overlaps = story::overlaps(&self.journal.entries());
        assert!(overlaps.is_empty(), "{overlaps:#?}");
    }

    fn agreed_leader(&self) -> Option<&Host> {
        let on = || self.hosts.iter().filter(|host| host.has_power() && !host.status().is_null());
        let leader = on().find(|host| host.leads())?;
        on().all(|host| host.name == leader.name || host.follows(leader)).then_some(leader)
    }

    /// Stops every daemon, one after the other; panics where one does not end in order, or where
    /// any hook broke the rules.
    fn stop_all(&self) {
        for host in self.hosts.iter().filter(|host| host.has_power() && host.has_daemon()) {
            wait_until(&format!("{}'s daemon is not about to start", host.name), || {
                host.show(DAEMON, "ActiveState") != "activating"
            });
            host.systemctl(&format!("stop {DAEMON}"));
            assert_eq!(host.show(DAEMON, "Result"), "success", "{}", host.name);
            let last = host.hooks().pop().unwrap_or_default();
            let let_go = !last.starts_with("elected") && !last.starts_with("reaffirmed");
            assert!(let_go, "{} stopped after {last}", host.name);
        }
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let wrong = story::violations(&self.journal.entries(), &names);
        assert!(wrong.is_empty(), "{wrong}");
    }
}

impl Drop for Site {
    /// Prints what there is to know, where the test fails.
    fn drop(&mut self) {
        if thread::panicking() {
            println!("--- all hooks\n{}", self.journal.text());
            for host in &self.hosts {
                println!("{}", host.report());
            }
        }
    }
}

/// Nothing of this machine is mounted or started there, or kept from being started.
fn without_lanelect(image: &Path) {
    let generators = image.join("etc/systemd/system-generators");
    fs::create_dir_all(&generators).unwrap();
    for name in names_in(Path::new("/usr/lib/systemd/system-generators")) {
        symlink("/dev/null", generators.join(name)).unwrap();
    }
    fs::write(image.join("etc/fstab"), "").unwrap();
    fs::create_dir_all(image.join("usr/sbin")).unwrap();
    symlink("/bin/true", image.join("usr/sbin/policy-rc.d")).unwrap();
}

/// Besides, the files of lanelect are where a package puts them.
fn with_lanelect(image: &Path) {
    without_lanelect(image);
    install(Path::new(env!("CARGO_BIN_EXE_lanelect")), image, "usr/bin/lanelect", 0o755);
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    for name in names_in(&units) {
        let to = match name.rsplit_once('.') {
            Some((_, "service" | "socket" | "target")) => format!("usr/lib/systemd/system/{name}"),
            Some((stem, "sysusers")) => format!("usr/lib/sysusers.d/{stem}.conf"),
            _ => continue,
        };
        install(&units.join(&name), image, &to, 0o644);
    }
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/hooks");
    for name in names_in(&hooks) {
        install(&hooks.join(&name), image, &format!("usr/share/lanelect/hooks/{name}"), 0o755);
    }
}

fn install(file: &Path, image: &Path, to: &str, mode: u32) {
    let to = image.join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(file, &to).unwrap();
    fs::set_permissions(&to, fs::Permissions::from_mode(mode)).unwrap();
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
