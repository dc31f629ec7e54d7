//! Whatever bytes arrive: decoding them does not panic, and what they say survives being sent on.
//!
//! The bytes need not be equal: the varints of the format may be longer than necessary.

#![no_main]

use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::frame::{Codec, DATAGRAM_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    round_trip(&Codec::new(group(), None), bytes);
    round_trip(&Codec::new(group(), Some(keyring())), bytes);
    round_trip(&Codec::new(group(), Some(keyring())), &sealed(bytes));
});

fn round_trip(codec: &Codec, bytes: &[u8]) {
    let Ok(message) = codec.decode(bytes) else { return };
    let mut again = Vec::new();
    codec.encode(&message, &mut again).expect("what was decoded encodes");
    assert!(again.len() <= DATAGRAM_MAX, "{} bytes", again.len());
    assert_eq!(codec.decode(&again), Ok(message));
}

/// The bytes as a holder of the key might send them, so that fuzzing gets past the authenticator.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut datagram = bytes.to_vec();
    datagram.extend_from_slice(&keyring().tag(bytes));
    datagram
}

fn keyring() -> Keyring {
    Keyring::new(&Key::new([7; KEY_LEN]), &[]).expect("one key is not too many")
}

fn group() -> lanelect::types::GroupName {
    "g".parse().expect("a valid name")
}
