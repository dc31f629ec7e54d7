//! Whether the reader of a command's output is still there.
//!
//! A write says so, but a command that waits for news may not write for days. Meanwhile it would
//! hold one of the daemon's few places for watchers.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The far end of an output: a pipe's, a socket's or a terminal's. A file has none.
#[derive(Debug)]
pub(super) struct Reader<'a>(Option<BorrowedFd<'a>>);

impl<'a> Reader<'a> {
    /// Of this output.
    pub(super) fn of(output: &'a impl AsFd) -> io::Result<Self> {
        let output = output.as_fd();
        let kind = File::from(output.try_clone_to_owned()?).metadata()?.file_type();
        // Some devices report an error that is none of the writer's.
        let may_hang_up =
            kind.is_fifo() || kind.is_socket() || io::IsTerminal::is_terminal(&output);
        Ok(Reader(may_hang_up.then_some(output)))
    }

    /// Whether it has hung up.
    pub(super) fn has_gone(&self) -> io::Result<bool> {
        let Some(output) = self.0 else { return Ok(false) };
        Ok(ready([gone(output)], PollTimeout::ZERO)? != [false])
    }

    /// Waits until `news` can be read, or its writer has hung up. False if the reader hangs up
    /// before.
    pub(super) fn waits_for(&self, news: &impl AsFd) -> io::Result<bool> {
        let news = PollFd::new(news.as_fd(), PollFlags::POLLIN);
        let Some(output) = self.0 else {
            ready([news], PollTimeout::NONE)?;
            return Ok(true);
        };
        let [_, has_gone] = ready([news, gone(output)], PollTimeout::NONE)?;
        Ok(!has_gone)
    }
}

/// Ready when the reader has hung up, and not because there is room to write.
fn gone(output: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::new(output, PollFlags::empty())
}

/// Which of these are ready.
fn ready<const N: usize>(mut fds: [PollFd<'_>; N], limit: PollTimeout) -> io::Result<[bool; N]> {
    loop {
        match poll(&mut fds, limit) {
            Err(Errno::EINTR) => {}
            polled => {
                polled?;
                return Ok(fds.each_ref().map(|fd| fd.any().unwrap_or(true)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn reader_of_a_pipe_and_of_a_socket_can_hang_up() {
        let (far, pipe) = io::pipe().unwrap();
        let reader = Reader::of(&pipe).unwrap();
        assert!(!reader.has_gone().unwrap());
        drop(far);
        assert!(reader.has_gone().unwrap());
        let (far, socket) = UnixStream::pair().unwrap();
        let reader = Reader::of(&socket).unwrap();
        assert!(!reader.has_gone().unwrap());
        drop(far);
        assert!(reader.has_gone().unwrap());
    }

    #[test]
    fn file_and_null_device_have_no_reader_that_hangs_up() {
        let home = tempfile::tempdir().unwrap();
        let file = File::create(home.path().join("output")).unwrap();
        let null = File::options().write(true).open("/dev/null").unwrap();
        for output in [file, null] {
            let reader = Reader::of(&output).unwrap();
            assert!(!reader.has_gone().unwrap());
            let (news, writer) = io::pipe().unwrap();
            drop(writer);
            assert!(reader.waits_for(&news).unwrap(), "the end of the news is news");
        }
    }

    #[test]
    fn news_are_read_before_the_reader_hangs_up_and_not_after() {
        let (far, pipe) = io::pipe().unwrap();
        let reader = Reader::of(&pipe).unwrap();
        let (news, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"x").unwrap();
        assert!(reader.waits_for(&news).unwrap());
        drop(far);
        assert!(!reader.waits_for(&news).unwrap());
    }
}
