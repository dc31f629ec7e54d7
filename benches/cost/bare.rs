//! The least that a heartbeat by multicast can cost here: one host sends a datagram of the size of
//! a declaration in each interval, two take it from their sockets, and nothing else is done. What a
//! program costs above that is its own; what it costs below is not to be had.

use std::env;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::programs::{Group, Program, Seat, sole_speaker};

/// By which word this program knows that it is to be the bare one.
const WORD: &str = "--bare";

const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 76, 70), 7670);

/// As long as a declaration of `h1`.
const DATAGRAM: [u8; 35] = [0; 35];

pub(crate) struct Bare;

impl Program for Bare {
    fn name(&self) -> &'static str {
        "bare datagram"
    }

    fn version(&self) -> Result<String, String> {
        Ok("bare datagrams, sent and received".to_owned())
    }

    fn supports(&self, _: Duration) -> bool {
        true
    }

    fn takeover(&self) -> f64 {
        unreachable!("it replaces nobody")
    }

    fn command(&self, seat: &Seat<'_>) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        let role = if seat.rank == 0 { "send" } else { "hear" };
        command.args([WORD, role]).arg(seat.host.address(0));
        command.arg(seat.interval.as_millis().to_string());
        command
    }

    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize> {
        sole_speaker(group)
    }
}

/// Where this process was started to be the bare program: is it, until it is killed.
pub(crate) fn run_if_asked() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [word, role, address, millis] = &arguments[..] else { return };
    if word != WORD {
        return;
    }
    let (address, millis) = (address.parse().unwrap(), millis.parse().unwrap());
    match role.as_str() {
        "send" => send(address, Duration::from_millis(millis)),
        _ => hear(address),
    }
}

fn send(address: Ipv4Addr, interval: Duration) {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_multicast_loop_v4(false).unwrap();
    loop {
        socket.send_to(&DATAGRAM, GROUP).unwrap();
        sleep(interval);
    }
}

fn hear(address: Ipv4Addr) {
    let socket = UdpSocket::bind(GROUP).unwrap();
    socket.join_multicast_v4(&GROUP.0, &address).unwrap();
    let mut buffer = [0; 512];
    loop {
        socket.recv(&mut buffer).unwrap();
    }
}
