//! A packet socket on a host: it hears every frame of the wire and sends any, as whoever is on the
//! LAN may.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::PACKET_OUTGOING;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, bind, recvmsg, sendmmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{SockFilter, SockRef};

use super::Host;
use super::frame::{complete_udp_checksum, udp_payload};
use super::switch::{FRAME_MAX, link_address};

/// Most frames that one system call sends.
const BATCH_MAX: usize = 64;

/// What a listener may fall behind, in bytes.
const BUFFER: usize = 1 << 20;

/// How soon a recorder that hears nothing notices that it is to stop.
const TICK: Duration = Duration::from_millis(50);

/// A frame that was on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// When the kernel took it in, by the wall clock.
    pub(crate) at: Duration,
    pub(crate) frame: Vec<u8>,
}

/// A packet socket on `eth0` of a host.
pub(crate) struct Tap {
    socket: OwnedFd,
    link: LinkAddr,
}

impl Tap {
    /// Hears everything that reaches the host.
    pub(crate) fn on(host: &Host) -> Tap {
        let tap = Tap::open(host, Some(SockProtocol::EthAll));
        setsockopt(&tap.socket, sockopt::ReceiveTimestampns, &true).unwrap();
        let options = SockRef::from(&tap.socket);
        options.set_recv_buffer_size(BUFFER).unwrap();
        options.set_read_timeout(Some(TICK)).unwrap();
        tap
    }

    /// Hears nothing, and so is faster.
    pub(crate) fn deaf_on(host: &Host) -> Tap {
        Tap::open(host, None)
    }

    fn open(host: &Host, hears: Option<SockProtocol>) -> Tap {
        host.run(|| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, hears).unwrap();
            let link = link_address("eth0");
            bind(socket.as_raw_fd(), &link).unwrap();
            Tap { socket, link }
        })
    }

    /// Hears only what comes from this hardware address. The kernel drops everything else at once.
    pub(crate) fn hearing_only(self, mac: [u8; 6]) -> Tap {
        let [_, _, low @ ..] = mac;
        let filter = [
            SockFilter::new(0x20, 0, 0, 8),
            SockFilter::new(0x15, 0, 1, u32::from_be_bytes(low)),
            SockFilter::new(0x06, 0, 0, u32::MAX),
            SockFilter::new(0x06, 0, 0, 0),
        ];
        SockRef::from(&self.socket).attach_filter(&filter).unwrap();
        self
    }

    /// The hardware address of the host.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.link.addr().unwrap()
    }

    /// Sends these frames as they are, as fast as the interface takes them; returns how many it
    /// took.
    pub(crate) fn send(&self, frames: &[impl AsRef<[u8]>]) -> usize {
        frames.chunks(BATCH_MAX).map(|batch| self.send_batch(batch)).sum()
    }

    fn send_batch(&self, frames: &[impl AsRef<[u8]>]) -> usize {
        let slices: Vec<_> = frames.iter().map(|frame| [IoSlice::new(frame.as_ref())]).collect();
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(frames.len(), None);
        let to = vec![None; frames.len()];
        let flags = MsgFlags::empty();
        match sendmmsg(self.socket.as_raw_fd(), &mut headers, &slices, to, [], flags) {
            Ok(sent) => sent.count(),
            Err(Errno::ENOBUFS | Errno::EINTR) => 0,
            Err(e) => panic!("the tap cannot send: {e}"),
        }
    }

    /// The next frame from another host; none where there is none for a while.
    fn hear(&self, buffer: &mut [u8]) -> Option<Heard> {
        let mut space = cmsg_space!(TimeSpec);
        let mut slices = [std::io::IoSliceMut::new(buffer)];
        let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        let (length, at) = match recvmsg::<LinkAddr>(fd, &mut slices, Some(&mut space), flags) {
            Ok(message) if message.address?.pkttype() == PACKET_OUTGOING => return None,
            Ok(message) => (message.bytes, message.cmsgs().unwrap().find_map(|c| taken_in(&c))),
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return None,
            Err(e) => panic!("the tap cannot hear: {e}"),
        };
        let mut frame = buffer[..length].to_vec();
        // A frame that is sent once more is dropped unless it is complete.
        complete_udp_checksum(&mut frame);
        Some(Heard { at: at.expect("a time with each frame"), frame })
    }
}

fn taken_in(message: &ControlMessageOwned) -> Option<Duration> {
    match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(*time)),
        _ => None,
    }
}

/// Keeps what a tap hears, until it is dropped.
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    heard: Mutex<Vec<Heard>>,
    stop: AtomicBool,
}

impl Recorder {
    /// Begins to record.
    pub(crate) fn start(tap: Tap) -> Recorder {
        let shared = Arc::new(Shared::default());
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || record(&tap, &shared)
        });
        Recorder { shared, thread: Some(thread) }
    }

    /// The UDP datagrams so far, in the order in which they were heard.
    pub(crate) fn datagrams(&self) -> Vec<Heard> {
        let heard = self.shared.heard.lock().unwrap();
        let is_datagram = |heard: &&Heard| udp_payload(&mut heard.frame.clone()).is_some();
        heard.iter().filter(is_datagram).cloned().collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn record(tap: &Tap, shared: &Shared) {
    let mut buffer = vec![0; FRAME_MAX];
    while !shared.stop.load(Ordering::Relaxed) {
        if let Some(heard) = tap.hear(&mut buffer) {
            shared.heard.lock().unwrap().push(heard);
        }
    }
}
