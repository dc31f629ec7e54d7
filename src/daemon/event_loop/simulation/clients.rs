//! Clients of the control sockets: what they ask, and what the answers show.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::world::World;
use crate::control_api::{Done, Grant, Leadership, Response, Transition};
use crate::time::Time;
use crate::types::Role;

/// Fewer than the daemon serves at a time, so that it turns none away.
const CLIENTS_MAX: usize = 20;

/// A client of a control socket.
pub(super) struct Client {
    request: &'static str,
    opened: Time,
    stream: UnixStream,
    text: Vec<u8>,
    answers: u32,
    /// Whether the daemon was held meanwhile.
    was_held: bool,
    /// Whether another client changed the same at that time.
    is_contended: bool,
}

impl Client {
    /// Reads what is there. Returns whether there may be more.
    fn read(&mut self) -> bool {
        match self.stream.read_to_end(&mut self.text) {
            Ok(_) => false,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// The daemon was held until now, and has all the time again.
    pub(super) fn note_held(&mut self, now: Time) {
        self.was_held = true;
        self.opened = now;
    }

    /// Whether this waits for an answer about maintenance.
    fn changes_maintenance(&self) -> bool {
        self.answers == 0 && self.request.contains("maintenance")
    }
}

impl World {
    /// A client connects and asks.
    pub(super) fn ask(&mut self, index: usize, request: &'static str) {
        let host = &mut self.hosts[index];
        if host.process.is_none() || host.clients.len() == CLIENTS_MAX {
            return;
        }
        // There is no socket while it starts or ends.
        let Ok(mut stream) = UnixStream::connect(host.socket()) else { return };
        writeln!(stream, "{request}").unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut client = Client {
            request,
            opened: self.now,
            stream,
            text: Vec::new(),
            answers: 0,
            was_held: host.is_held,
            is_contended: false,
        };
        if client.changes_maintenance() {
            for other in host.clients.iter_mut().filter(|other| other.changes_maintenance()) {
                (client.is_contended, other.is_contended) = (true, true);
            }
        }
        host.clients.push(client);
        self.log(index, || format!("is asked {request}"));
        self.rouse(index);
    }

    pub(super) fn read_clients(&mut self, index: usize) {
        let mut clients = std::mem::take(&mut self.hosts[index].clients);
        clients.retain_mut(|client| {
            let is_open = client.read();
            while let Some(end) = client.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = client.text.drain(..=end).collect();
                client.answers += 1;
                self.log(index, || String::from_utf8_lossy(&line).chars().take(200).collect());
                self.read_line(index, client, &line);
            }
            if !is_open && client.answers == 0 {
                let node_id = self.hosts[index].node_id;
                let excused = client.was_held || self.hosts[index].is_stopping;
                assert!(excused, "{node_id} gives no answer to {}", client.request);
            }
            is_open
        });
        self.hosts[index].clients.append(&mut clients);
    }

    fn read_line(&mut self, index: usize, client: &Client, line: &[u8]) {
        let node_id = self.hosts[index].node_id;
        if client.answers > 1 && client.request.contains("hold") {
            let grant: Option<Grant> = serde_json::from_slice(line).unwrap();
            if let Some(grant) = grant {
                let until = Time::from_nanos(grant.until_ns);
                self.seen.note_grant(self.now, node_id, grant.term, until);
            }
            return;
        }
        if client.answers > 1 {
            let transition: Transition = serde_json::from_slice(line).unwrap();
            if transition.role == Role::Leader {
                self.seen.note_leader(self.now, node_id, transition.term, "tells watchers");
            }
            return;
        }
        match serde_json::from_slice(line).unwrap() {
            Response::Status(status) => {
                if status.role == Role::Leader {
                    self.seen.note_leader(self.now, node_id, status.term, "shows a status");
                }
                self.hosts[index].status = Some(status);
            }
            Response::Leadership(Leadership { leads: true, term, .. }) => {
                self.seen.note_leader(self.now, node_id, term, "answers is-leader");
            }
            Response::Ok(done @ (Done::MaintenanceOn | Done::MaintenanceOff)) => {
                let is_on = done == Done::MaintenanceOn;
                let disk = &self.hosts[index].disk;
                let is_kept = disk.maintenance == is_on || client.is_contended;
                assert!(is_kept, "{node_id} answers {done:?} before that is on disk");
            }
            _ => {}
        }
    }

    /// No client waits too long for its answer.
    pub(super) fn check_answers(&self) {
        for host in self.hosts.iter().filter(|host| host.process.is_some() && !host.is_held) {
            for client in &host.clients {
                let waits = self.now.since(client.opened);
                let is_late = client.answers == 0 && waits > Duration::from_secs(10);
                assert!(!is_late, "{} does not answer {}", host.node_id, client.request);
            }
        }
    }
}
