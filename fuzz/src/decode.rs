//! Whatever bytes arrive as a datagram: decoding them does not panic, and what they say survives
//! being sent on.

use std::net::{IpAddr, Ipv4Addr};

use lanelect::types::GroupName;
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::frame::{Codec, DATAGRAM_MAX, Reject};

/// Where every datagram comes from.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Decodes `bytes` as they are, and as a holder of the key might send them: no fuzzer guesses a
/// tag.
pub fn run(bytes: &[u8]) {
    let sealed = [bytes, &keyring().tag(SOURCE, bytes)].concat();
    check(None, bytes);
    check(Some(keyring()), bytes);
    check(Some(keyring()), &sealed);
}

fn check(keyring: Option<Keyring>, datagram: &[u8]) {
    let codec = Codec::new(group("web"), keyring);
    let Ok(message) = codec.decode(SOURCE, datagram) else { return };
    let mut again = Vec::new();
    codec.encode(SOURCE, &message, &mut again).expect("what was decoded encodes");
    assert_eq!(codec.decode(SOURCE, &again), Ok(message));
    // Numbers may come in more bytes than they need, never in fewer.
    assert!(again.len() <= datagram.len().min(DATAGRAM_MAX), "{} bytes", again.len());
    let mark = codec.mark(message.life()).expect("a life encodes");
    assert!(again[mark.at as usize..].starts_with(&mark.bytes), "without its mark");
    check_others(&codec, datagram);
}

/// A datagram ends where it ends, and is for one group.
fn check_others(codec: &Codec, datagram: &[u8]) {
    let longer = [datagram, &[0]].concat();
    assert!(codec.decode(SOURCE, &longer).is_err(), "followed by a byte");
    assert!(codec.decode(SOURCE, &datagram[..datagram.len() - 1]).is_err(), "cut short");
    let another = Codec::new(group("elsewhere"), Some(keyring()));
    assert_eq!(another.decode(SOURCE, datagram), Err(Reject::ForeignGroup));
}

/// That of the datagrams in `tests/golden`.
fn keyring() -> Keyring {
    Keyring::new(&Key::new([7; KEY_LEN]), &[]).expect("one key is not too many")
}

fn group(name: &str) -> GroupName {
    name.parse().expect("a valid name")
}
