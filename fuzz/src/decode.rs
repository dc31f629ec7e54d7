//! Whatever bytes arrive as a datagram: decoding them does not panic, and what they say survives
//! being sent on.

use std::net::{IpAddr, Ipv4Addr};

use lanelect::types::GroupName;
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::frame::{Codec, DATAGRAM_MAX, Decoded, EXTENDED_MAX, Reject};
use lanelect::wire::message::Body;

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
    let Ok(decoded) = codec.decode(SOURCE, datagram) else { return };
    let Decoded { message, .. } = decoded;
    assert!(datagram.len() <= EXTENDED_MAX, "{} bytes", datagram.len());
    if message.body != Body::Unknown {
        check_known(&codec, datagram, &decoded);
    }
    let another = Codec::new(group("elsewhere"), None);
    assert_eq!(another.decode(SOURCE, datagram), Err(Reject::ForeignGroup));
}

fn check_known(codec: &Codec, datagram: &[u8], known: &Decoded) {
    let Decoded { message, is_extended, .. } = known;
    let mut again = Vec::new();
    codec.encode(SOURCE, message, &mut again).expect("what was decoded encodes");
    let decoded = codec.decode(SOURCE, &again).expect("what was encoded decodes");
    assert_eq!(decoded, Decoded { is_extended: false, ..*known });
    // Numbers may come in more bytes than they need, never in fewer.
    assert!(again.len() <= datagram.len().min(DATAGRAM_MAX), "{} bytes", again.len());
    let mark = codec.mark(message.life()).expect("a life encodes");
    assert!(again[mark.at as usize..].starts_with(&mark.bytes), "without its mark");
    if !is_extended {
        let cut = codec.decode(SOURCE, &datagram[..datagram.len() - 1]);
        assert!(cut.is_err(), "cut short");
    }
}

/// That of the datagrams in `tests/golden`.
fn keyring() -> Keyring {
    Keyring::new(&Key::new([7; KEY_LEN]), &[]).expect("one key is not too many")
}

fn group(name: &str) -> GroupName {
    name.parse().expect("a valid name")
}
