//! The system calls that `strace` recorded.

use std::collections::BTreeMap;

/// What a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was carried out, and returned this.
    Done(usize),
    /// It failed, because the system or `strace` let it.
    Failed,
    /// `strace` had it return success, and it was not carried out.
    Lied,
    /// The process was killed before it.
    Killed,
}

/// One call on a file or directory of the store.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The descriptor, if the call is given one.
    pub(crate) fd: Option<i32>,
    /// Paths and data, in the order of the arguments.
    pub(crate) strings: Vec<Vec<u8>>,
    /// The arguments as text, for flags and lengths.
    pub(crate) arguments: String,
    pub(crate) ended: Ended,
    /// Whether `strace` decided how it ended.
    pub(crate) is_injected: bool,
}

impl Call {
    /// Reads the output of `strace -f -xx`. A call during which another thread made one is where it
    /// ended, but what was sent is where the call began.
    pub(crate) fn parse_all(output: &str) -> Vec<Call> {
        let mut begun = BTreeMap::new();
        let mut calls = Vec::new();
        // The last line is not whole if `strace` was killed.
        for line in output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let (thread, rest) = line.split_once(' ').unwrap();
            let line = if let Some(start) = line.strip_suffix(" <unfinished ...>") {
                if !rest.trim_start().starts_with("send") {
                    begun.insert(thread, start);
                    continue;
                }
                format!("{start}) = 0")
            } else if let Some(resumed) = rest.trim_start().strip_prefix("<... ") {
                let Some(start) = begun.remove(thread) else { continue };
                format!("{start}{}", resumed.split_once(" resumed>").unwrap().1)
            } else {
                line.to_owned()
            };
            calls.push(Call::parse(&line).unwrap_or_else(|| unreachable!("{line}")));
        }
        calls
    }

    fn parse(line: &str) -> Option<Call> {
        let (_, line) = line.split_once(' ')?;
        let (name, rest) = line.trim_start().split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let is_injected = result.contains("(INJECTED)");
        let value = result.split(' ').next()?;
        let ended = match value.parse::<i64>() {
            Ok(value) => match usize::try_from(value) {
                Ok(_) if is_injected => Ended::Lied,
                Ok(value) => Ended::Done(value),
                Err(_) => Ended::Failed,
            },
            Err(_) if value == "?" => Ended::Killed,
            Err(_) => return None,
        };
        Some(Call {
            name: name.to_owned(),
            fd: arguments.split([',', ')']).next()?.trim().parse().ok(),
            strings: arguments.split('"').skip(1).step_by(2).map(unescape).collect(),
            arguments: arguments.to_owned(),
            ended,
            is_injected,
        })
    }

    /// The path that is the argument number `index` among those that are strings.
    pub(crate) fn path(&self, index: usize) -> &str {
        std::str::from_utf8(&self.strings[index]).unwrap()
    }

    /// How many bytes the call is asked to write.
    pub(crate) fn len(&self) -> usize {
        self.strings.last().map_or(0, Vec::len)
    }
}

/// `\x2f\x74` in bytes.
fn unescape(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}
