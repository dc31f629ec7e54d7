//! Makes the kernel drop this daemon's own datagrams, which would wake it for nothing.
//!
//! The kernel returns a multicast datagram to every member on the sending host, including the
//! sender. Other daemons on the host need that. A socket filter drops what was returned and has
//! this daemon's mark. All others pass, even if they are too short for a mark. What comes from
//! another host passes with the mark too: a copy of this daemon has sent it.
//!
//! The loopback interface returns nothing, because everything on it arrives. There the mark alone
//! decides.

use nix::libc;
use socket2::SockFilter;

use crate::wire::frame::Mark;

/// Length of the UDP header, from which offsets count.
const UDP_HEADER: u32 = 8;

/// Where a filter finds the packet's type, and the type of what the kernel returned.
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
const RETURNED: u32 = libc::PACKET_LOOPBACK as u32;

/// How many bytes of a datagram pass.
const NONE: u32 = 0;
const ALL: u32 = u32::MAX;

/// A program that drops this host's own datagrams with `mark`.
pub(super) fn dropping(mark: &Mark, on_loopback: bool) -> Vec<SockFilter> {
    let start = UDP_HEADER + mark.at;
    let length = start + mark.bytes.len() as u32;
    let mut program = Vec::new();
    if !on_loopback {
        program.push(load_byte(PACKET_TYPE));
        program.extend(pass_unless(libc::BPF_JEQ, RETURNED));
    }
    program.push(instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0));
    program.extend(pass_unless(libc::BPF_JGE, length));
    for (byte, at) in mark.bytes.iter().zip(start..) {
        program.push(load_byte(at));
        program.extend(pass_unless(libc::BPF_JEQ, u32::from(*byte)));
    }
    program.push(verdict(NONE));
    program
}

fn load_byte(at: u32) -> SockFilter {
    instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, at)
}

/// Continues if the comparison with `value` holds.
fn pass_unless(comparison: u32, value: u32) -> [SockFilter; 2] {
    [instruction(libc::BPF_JMP | libc::BPF_K | comparison, 1, value), verdict(ALL)]
}

fn verdict(bytes: u32) -> SockFilter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, bytes)
}

/// An instruction that skips `skip` others, if it compares and the comparison holds.
fn instruction(code: u32, skip: u8, value: u32) -> SockFilter {
    SockFilter::new(code as u16, skip, 0, value)
}
