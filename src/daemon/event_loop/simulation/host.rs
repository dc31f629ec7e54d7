//! A simulated machine: its files, its daemon's process and threads, its hook-runner, its clients.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use socket2::{Domain, Protocol, Socket, Type};

use super::clients::Client;
use super::guarantees::HookHistory;
use super::hook_runner::HookRunner;
use super::process::Process;
use crate::control_api::StatusReport;
use crate::core::persist::PersistentState;
use crate::daemon::store;
use crate::os::simulated::Work;
use crate::time::Time;
use crate::types::NodeId;

/// The multicast address of all hosts. Each has a port of its own there, so that it hears only what
/// the simulation passes on.
pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 9);
const FIRST_PORT: u16 = 7710;

/// A thread of a daemon.
pub(super) struct Thread {
    pub(super) name: &'static str,
    pub(super) work: Work,
    pub(super) is_busy: bool,
}

/// A simulated machine.
pub(super) struct Host {
    pub(super) node_id: NodeId,
    pub(super) dir: PathBuf,
    pub(super) process: Option<Process>,
    /// Counts the daemon's processes.
    pub(super) life: u64,
    /// When it runs next; none if it sleeps until something happens.
    pub(super) wakes_at: Option<Time>,
    pub(super) is_held: bool,
    /// Whether the daemon has not run yet.
    pub(super) is_new: bool,
    pub(super) threads: Vec<Thread>,
    pub(super) runner: HookRunner,
    pub(super) hooks: HookHistory,
    pub(super) clients: Vec<Client>,
    pub(super) ear: UdpSocket,
    pub(super) disk: PersistentState,
    /// Whether the disk refuses to write.
    pub(super) disk_is_full: bool,
    /// Whether the last save was refused. In available mode the daemon goes on without.
    pub(super) is_unsaved: bool,
    /// Since when its daemon has had the time to write its crash plan; none if nothing ever kept it
    /// from that.
    pub(super) plan_due: Option<Time>,
    /// Whether `post-stop` runs, so no daemon starts.
    pub(super) is_cleaned: bool,
    pub(super) is_healthy: bool,
    /// Whether it was asked to stop.
    pub(super) is_stopping: bool,
    /// The newest status that a client has read.
    pub(super) status: Option<Box<StatusReport>>,
    /// How often the daemon has woken in this second of the simulation.
    pub(super) wakes: u32,
    pub(super) second: u64,
}

impl Host {
    pub(super) fn new(index: usize, parent: &Path, config: &str) -> Self {
        let dir = parent.join(format!("n{index}"));
        fs::create_dir_all(dir.join("run")).unwrap();
        let own = format!(
            "node_id = \"n{index}\"\ninterface = [\"lo\"]\nmulticast = \"{GROUP}:{}\"\n\
             state_dir = '{dir}/state'\nsocket = '{dir}/run/control.sock'\n\
             hook_socket = '{dir}/hook.sock'\nhook = 'true'\n",
            port(index),
            dir = dir.display(),
        );
        fs::write(dir.join("config.toml"), own + config).unwrap();
        Host {
            node_id: format!("n{index}").parse().unwrap(),
            process: None,
            life: 0,
            wakes_at: None,
            is_held: false,
            is_new: false,
            threads: Vec::new(),
            runner: HookRunner::new(dir.join("hook.sock")),
            hooks: HookHistory::default(),
            clients: Vec::new(),
            ear: ear(index),
            disk: PersistentState::default(),
            disk_is_full: false,
            is_unsaved: false,
            plan_due: None,
            is_cleaned: false,
            is_healthy: true,
            is_stopping: false,
            status: None,
            wakes: 0,
            second: 0,
            dir,
        }
    }

    /// The directory of its control socket and its crash plan.
    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.dir.join("run")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.runtime_dir().join("control.sock")
    }

    /// Whether this life of its daemon has not ended.
    pub(super) fn is_in_life(&self, life: u64) -> bool {
        self.process.is_some() && self.life == life
    }

    /// Whether its daemon was asked to stop, and has not ended.
    pub(super) fn is_ending(&self) -> bool {
        self.process.is_some() && self.is_stopping
    }

    /// What the daemon of this host has sent.
    pub(super) fn drain_ear(&mut self, mouth: SocketAddr) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let mut buffer = [0; 2048];
        loop {
            match self.ear.recv_from(&mut buffer) {
                Ok((length, from)) if from.port() != mouth.port() => {
                    datagrams.push(buffer[..length].to_vec());
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return datagrams,
                Err(error) => panic!("cannot hear a host: {error}"),
            }
        }
    }

    pub(super) fn read_disk(&mut self) {
        // There is none before the first save.
        if let Some(state) = store::read(&self.dir.join("state/default.state")).unwrap() {
            self.disk = state;
        }
    }
}

/// Where the host of this number hears.
pub(super) fn port(index: usize) -> u16 {
    FIRST_PORT + u16::try_from(index).unwrap()
}

/// Hears what the daemon of a host sends, and what it is sent.
fn ear(index: usize) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((GROUP, port(index))).into()).unwrap();
    socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}
