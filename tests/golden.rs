//! The bytes on the wire, in both directions, and everything that is no datagram.
//!
//! `tests/golden/*.hex` hold one datagram each, split into its fields as the header of
//! `src/wire/frame.rs` draws them: hexadecimal digits, blanks and line ends without meaning, `#` to
//! the end of the line a comment. They are the protocol: nodes of different builds meet in one
//! group, so a change here needs a new [`VERSION`].

#![expect(clippy::unwrap_used, reason = "a test may fail where its own footing gives way")]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use lanelect::core::quorum::Voters;
use lanelect::types::{
    DatagramId, GroupName, Incarnation, NAME_MAX, NodeId, Priority, Role, Sequence, Term, TieBreak,
};
use lanelect::wire::auth::{KEY_LEN, Key, Keyring};
use lanelect::wire::echo::{ECHOES_MAX, Echo, Echoes};
use lanelect::wire::frame::{
    Codec, DATAGRAM_MAX, Decoded, EXTENDED_MAX, Reject, TAG_LEN, VERSION, alleged_sender,
};
use lanelect::wire::message::{Body, Flags, Message, Standing, VotersDigest};
use proptest::prelude::*;

const GROUP: &str = "web";

fn id(text: &str) -> NodeId {
    text.parse().unwrap()
}

fn key(fill: u8) -> Keyring {
    Keyring::new(&Key::new([fill; KEY_LEN]), &[]).unwrap()
}

/// Where the sealed ones of these datagrams come from.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10));

fn open() -> Codec {
    Codec::new(GROUP.parse().unwrap(), None)
}

/// Sealed under the key of 32 bytes 07.
fn sealed() -> Codec {
    Codec::new(GROUP.parse().unwrap(), Some(key(7)))
}

fn encode(codec: &Codec, message: &Message) -> Vec<u8> {
    let mut datagram = vec![0xff; 3];
    codec.encode(SOURCE, message, &mut datagram).unwrap();
    datagram
}

/// The datagrams of the golden files all come from this node; `role` and `body` differ.
fn from_web1(role: Role, body: Body) -> Message {
    Message {
        sender: id("web1"),
        incarnation: Incarnation(1_700_000_000_000),
        sequence: Sequence(300),
        term: Term(7),
        standing: Standing {
            role,
            priority: Priority(100),
            tie_break: TieBreak::default(),
            flags: Flags::CANDIDATE.with(Flags::ELIGIBLE, true),
            voters: None,
        },
        echoes: Echoes::NONE,
        body,
    }
}

/// The same node in quorum mode, one of three voters, with `flag` too.
fn from_voter(role: Role, flag: Flags, body: Body) -> Message {
    let mut message = from_web1(role, body);
    let voters = Voters::new(["web1", "web2", "web3"].map(id)).unwrap();
    message.standing.flags = message.standing.flags.with(flag, true);
    message.standing.voters = Some(voters.digest());
    message
}

/// A datagram of another node, as answers name it.
const ANSWERED: DatagramId =
    DatagramId { incarnation: Incarnation(1_700_000_000_002), sequence: Sequence(900) };

/// The shortest datagram there is but for its group.
fn shortest() -> Message {
    Message {
        sender: id("a"),
        incarnation: Incarnation(0),
        sequence: Sequence(1),
        term: Term(0),
        standing: Standing {
            role: Role::Starting,
            priority: Priority(0),
            tie_break: TieBreak::default(),
            flags: Flags::default(),
            voters: None,
        },
        echoes: Echoes::NONE,
        body: Body::Heartbeat { interval_us: 0, leader: None, conceded: None, acknowledged: None },
    }
}

/// The longest messages that there are, the very longest first.
fn longest() -> [Message; 2] {
    let name = id(&"n".repeat(NAME_MAX));
    let last = DatagramId { incarnation: Incarnation(u64::MAX), sequence: Sequence(u64::MAX) };
    let heartbeat = Body::Heartbeat {
        interval_us: u32::MAX,
        leader: Some(name),
        conceded: Some(Term(u64::MAX)),
        acknowledged: Some(last),
    };
    let vote = Body::Vote { candidate: name, request: last, granted: true };
    let flags = [Flags::ELIGIBLE, Flags::FIXED, Flags::ENROLLED, Flags::FOUNDING];
    let heard = |letter: &str| Echo { node_id: id(&letter.repeat(NAME_MAX)), datagram: last };
    [heartbeat, vote].map(|body| Message {
        sender: name,
        incarnation: Incarnation(u64::MAX),
        sequence: Sequence(u64::MAX),
        term: Term(u64::MAX),
        standing: Standing {
            role: Role::Leader,
            priority: Priority(255),
            tie_break: TieBreak(u32::MAX),
            flags: flags.into_iter().fold(Flags::CANDIDATE, |flags, flag| flags.with(flag, true)),
            voters: Some(VotersDigest([0xff; 8])),
        },
        echoes: ["a", "b", "c", "d"].into_iter().map(heard).collect(),
        body,
    })
}

fn golden_messages() -> Vec<(&'static str, Codec, Message)> {
    let one_letter = || Codec::new("g".parse().unwrap(), None);
    let full_length = || Codec::new("g".repeat(NAME_MAX).parse().unwrap(), Some(key(7)));
    let [longest, longest_vote] = longest();
    let mut messages = vec![
        ("shortest", one_letter(), shortest()),
        ("longest", full_length(), longest),
        ("longest-vote", full_length(), longest_vote),
    ];
    messages.extend(available_messages());
    messages.extend(quorum_messages().map(|(name, message)| (name, open(), message)));
    messages
}

fn available_messages() -> [(&'static str, Codec, Message); 18] {
    let heartbeat = |leader: Option<&str>, conceded: Option<u64>| Body::Heartbeat {
        interval_us: 2_200_000,
        leader: leader.map(id),
        conceded: conceded.map(Term),
        acknowledged: None,
    };
    let starting = from_web1(Role::Starting, heartbeat(None, None));
    let following = from_web1(Role::Follower, heartbeat(Some("web2"), None));
    let conceding = from_web1(Role::Follower, heartbeat(Some("web2"), Some(6)));
    let proposal = from_web1(Role::Candidate, Body::Proposal);
    let declaration =
        from_web1(Role::Leader, Body::Declaration { interval_us: 1_000_000, hold_us: 0 });
    let to_web2 = from_web1(Role::Follower, Body::Resignation { successor: Some(id("web2")) });
    let to_nobody = from_web1(Role::Follower, Body::Resignation { successor: None });
    let farewell = from_web1(Role::Follower, Body::Farewell);
    let claim = from_web1(Role::Follower, Body::Claim);
    let probe = from_web1(Role::Follower, Body::Probe { leader: id("web2") });
    let reply =
        from_web1(Role::Follower, Body::ProbeReply { leader: id("web2"), newest: ANSWERED });
    let heard = |name, datagram| Echo { node_id: id(name), datagram };
    let earlier = DatagramId { sequence: Sequence(1), ..ANSWERED };
    let challenge = Message {
        echoes: [heard("web2", ANSWERED), heard("web3", earlier)].into_iter().collect(),
        ..from_web1(Role::Leader, Body::Challenge)
    };
    let ping = from_web1(Role::Follower, Body::Ping { node: None });
    let ping_of_one = from_web1(Role::Follower, Body::Ping { node: Some(id("web2")) });
    let pong = from_web1(Role::Leader, Body::Pong { asker: id("web2"), ping: ANSWERED });
    let objection =
        from_web1(Role::Leader, Body::Objection { newcomer: Incarnation(1_700_000_000_001) });
    [
        ("heartbeat-starting", open(), starting),
        ("heartbeat", open(), following),
        ("heartbeat-conceding", open(), conceding),
        ("proposal", open(), proposal),
        ("declaration", open(), declaration),
        ("declaration-sealed", sealed(), declaration),
        ("resignation", open(), to_web2),
        ("resignation-to-nobody", open(), to_nobody),
        ("resignation-sealed", sealed(), to_web2),
        ("farewell", open(), farewell),
        ("claim", open(), claim),
        ("probe", open(), probe),
        ("probe-reply", open(), reply),
        ("objection", open(), objection),
        ("challenge", sealed(), challenge),
        ("ping", open(), ping),
        ("ping-of-one", open(), ping_of_one),
        ("pong", open(), pong),
    ]
}

fn quorum_messages() -> [(&'static str, Message); 7] {
    let acknowledging = Body::Heartbeat {
        interval_us: 1_100_000,
        leader: Some(id("web2")),
        conceded: None,
        acknowledged: Some(ANSWERED),
    };
    let declaration = Body::Declaration { interval_us: 1_000_000, hold_us: 8_161_617 };
    let request = Body::VoteRequest { hold_us: 3_060_607 };
    let vote = |granted| Body::Vote { candidate: id("web2"), request: ANSWERED, granted };
    let mut inquiry = from_voter(Role::Follower, Flags::CANDIDATE, Body::Inquiry);
    inquiry.standing.flags = Flags::CANDIDATE;
    let enrolled = Flags::ENROLLED;
    [
        ("heartbeat-acknowledging", from_voter(Role::Follower, enrolled, acknowledging)),
        ("declaration-quorum", from_voter(Role::Leader, enrolled, declaration)),
        ("proposal-founding", from_voter(Role::Candidate, Flags::FOUNDING, Body::Proposal)),
        ("vote-request", from_voter(Role::Candidate, enrolled, request)),
        ("vote", from_voter(Role::Follower, enrolled, vote(true))),
        ("vote-refused", from_voter(Role::Follower, enrolled, vote(false))),
        ("inquiry", inquiry),
    ]
}

/// Reads a golden file.
fn bytes_of(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let digits: String = text.lines().filter_map(|line| line.split('#').next()).collect();
    let digits: Vec<u8> = digits.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn messages_become_the_golden_bytes_and_the_golden_bytes_messages() {
    for (name, codec, message) in golden_messages() {
        let encoded = encode(&codec, &message);
        assert_eq!(hex(&encoded), hex(&bytes_of(name)), "{name}");
        assert_eq!(decode(&codec, &bytes_of(name)), Ok(message), "{name}");
    }
}

#[test]
fn every_golden_file_is_compared() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut compared: Vec<_> =
        golden_messages().iter().map(|(name, ..)| format!("{name}.hex")).collect();
    compared.sort();
    assert_eq!(files, compared);
}

#[test]
fn an_everyday_declaration_fits_64_bytes() {
    let codec = Codec::new("twelve-bytes".parse().unwrap(), None);
    let message = Message {
        sender: id("host-000.lan"),
        // The wall clock in milliseconds until the year 2109; a datagram a millisecond for a year.
        incarnation: Incarnation(1 << 42),
        sequence: Sequence((1 << 35) - 1),
        term: Term(u64::from(u32::MAX)),
        body: Body::Declaration { interval_us: 60_000_000, hold_us: 0 },
        ..from_web1(Role::Leader, Body::Claim)
    };
    let length = encode(&codec, &message).len();
    assert!(length <= 64, "{length} bytes");
}

#[test]
fn the_longest_datagram_is_as_long_as_the_bound() {
    let codec = Codec::new("g".repeat(NAME_MAX).parse().unwrap(), Some(key(7)));
    let lengths = longest().map(|message| encode(&codec, &message).len());
    assert_eq!(lengths.into_iter().max(), Some(DATAGRAM_MAX), "{lengths:?}");
}

#[test]
fn an_authenticator_adds_its_length_and_changes_the_seal_alone() {
    let message = from_web1(Role::Follower, Body::Claim);
    let (plain, tagged) = (encode(&open(), &message), encode(&sealed(), &message));
    assert_eq!(tagged.len(), plain.len() + TAG_LEN);
    assert_eq!((plain[1], tagged[1]), (0, 1));
    assert_eq!(plain[2..], tagged[2..plain.len()]);
}

#[test]
fn a_datagram_cut_off_anywhere_is_rejected() {
    for (name, codec, message) in golden_messages() {
        let datagram = encode(&codec, &message);
        for length in 0..datagram.len() {
            let verdict = decode(&codec, &datagram[..length]);
            assert!(verdict.is_err(), "{name}, {length} bytes: {verdict:?}");
        }
    }
    let datagram = encode(&open(), &shortest());
    assert_eq!(decode(&open(), &datagram[..datagram.len() - 1]), Err(Reject::Malformed));
}

fn decode(codec: &Codec, datagram: &[u8]) -> Result<Message, Reject> {
    codec.decode(SOURCE, datagram).map(|decoded| decoded.message)
}

/// What a later release may append: the rest of the datagram is understood without it.
#[test]
fn an_extension_is_skipped_and_authenticated() {
    let message = from_web1(Role::Follower, Body::Claim);
    let extended = [encode(&open(), &message), b"later".to_vec()].concat();
    let decoded = |is_sealed| Decoded { message, is_extended: true, is_sealed };
    assert_eq!(open().decode(SOURCE, &extended), Ok(decoded(false)));
    assert_eq!(sealed().decode(SOURCE, &seal(&extended)), Ok(decoded(true)));
    let after_the_tag = [encode(&sealed(), &message), vec![0]].concat();
    assert_eq!(decode(&sealed(), &after_the_tag), Err(Reject::Forged));
}

#[test]
fn a_body_of_an_unknown_kind_is_skipped() {
    for kind in [Body::KINDS, 127, 255, u32::MAX] {
        let mut rest = A_HEARTBEAT[..BEFORE_THE_BODY].to_vec();
        postcard::to_io(&kind, &mut rest).unwrap();
        rest.extend([0xff; 9]);
        let datagram = with_sender(b"web1", &rest);
        let decoded = open().decode(SOURCE, &datagram).unwrap();
        assert_eq!((decoded.message.body, decoded.is_extended), (Body::Unknown, true), "{kind}");
    }
}

/// A later release says so where half a datagram would be worse than none.
#[test]
fn a_critical_datagram_is_rejected_unless_all_of_it_is_known() {
    let mut message = from_web1(Role::Follower, Body::Claim);
    message.standing.flags = message.standing.flags.with(Flags::CRITICAL, true);
    let known = encode(&sealed(), &message);
    assert_eq!(decode(&sealed(), &known), Ok(message));
    let extended = seal(&[encode(&open(), &message), vec![0]].concat());
    assert_eq!(decode(&sealed(), &extended), Err(Reject::TooNew));
}

#[test]
fn a_datagram_is_as_long_as_the_smallest_mtu_allows() {
    let message = from_web1(Role::Follower, Body::Claim);
    let mut datagram = encode(&open(), &message);
    datagram.resize(EXTENDED_MAX, 0);
    assert_eq!(decode(&open(), &datagram), Ok(message));
    datagram.push(0);
    assert_eq!(decode(&open(), &datagram), Err(Reject::Malformed));
}

/// Makes a sealed datagram of an open one's bytes, whatever they are.
fn seal(open: &[u8]) -> Vec<u8> {
    let mut datagram = open.to_vec();
    datagram[1] = 1;
    let tag = key(7).tag(SOURCE, &datagram);
    datagram.extend_from_slice(&tag);
    datagram
}

#[test]
fn sealing_by_hand_gives_what_the_codec_gives() {
    let message = from_web1(Role::Follower, Body::Claim);
    assert_eq!(seal(&encode(&open(), &message)), encode(&sealed(), &message));
}

#[test]
fn other_versions_are_told_from_garbage() {
    let mut datagram = encode(&open(), &shortest());
    for version in (0..=u8::MAX).filter(|version| *version != VERSION) {
        datagram[0] = version;
        assert_eq!(decode(&open(), &datagram), Err(Reject::Version));
    }
    assert_eq!(decode(&open(), &[VERSION + 1, 0]), Err(Reject::Version), "whatever follows");
    assert_eq!(decode(&open(), &[]), Err(Reject::Malformed));
    assert_eq!(decode(&open(), &[VERSION]), Err(Reject::Malformed));
}

#[test]
fn other_groups_are_foreign_and_no_attackers_even_with_another_key() {
    let neighbour = || "web2".parse::<GroupName>().unwrap();
    let message = from_web1(Role::Follower, Body::Claim);
    for codec in [Codec::new(neighbour(), None), Codec::new(neighbour(), Some(key(8)))] {
        let datagram = encode(&codec, &message);
        assert_eq!(decode(&open(), &datagram), Err(Reject::ForeignGroup));
        assert_eq!(decode(&sealed(), &datagram), Err(Reject::ForeignGroup));
    }
}

/// Pairs that CRC-32, FNV-1a (32 bits), and a sum of digits to the base 31 cannot tell apart, and
/// such as differ in case, length or form alone.
const LOOKALIKES: [(&str, &str); 7] = [
    ("plumless", "buckeroo"),
    ("costarring", "liquid"),
    ("Aa", "BB"),
    ("web", "Web"),
    ("web", "we"),
    ("web", "webweb"),
    ("\u{e9}", "e\u{301}"),
];

#[test]
fn groups_are_told_apart_by_their_whole_name_with_one_key_as_without() {
    for (one, other) in LOOKALIKES {
        for (from, to) in [(one, other), (other, one)] {
            for keyring in [None, Some(key(7))] {
                let codec = |group: &str| Codec::new(group.parse().unwrap(), keyring.clone());
                let message = from_web1(Role::Leader, Body::Claim);
                let datagram = encode(&codec(from), &message);
                assert_eq!(decode(&codec(from), &datagram), Ok(message));
                assert_eq!(
                    codec(to).decode(SOURCE, &datagram),
                    Err(Reject::ForeignGroup),
                    "{from} {to}"
                );
            }
        }
    }
}

#[test]
fn what_one_group_has_sealed_cannot_be_passed_off_as_another_s_with_the_same_key() {
    let datagram = encode(&sealed(), &from_web1(Role::Leader, Body::Claim));
    let neighbour = Codec::new("wed".parse().unwrap(), Some(key(7)));
    let mut relabelled = datagram;
    relabelled[2 + 1..][..GROUP.len()].copy_from_slice(b"wed");
    assert_eq!(decode(&neighbour, &relabelled), Err(Reject::Forged));
}

#[test]
fn sealed_datagram_from_another_address_is_forged() {
    let message = from_web1(Role::Leader, Body::Claim);
    let datagram = encode(&sealed(), &message);
    for another in ["10.0.0.11", "::ffff:10.0.0.11", "fe80::1"] {
        let verdict = sealed().decode(another.parse().unwrap(), &datagram);
        assert_eq!(verdict, Err(Reject::Forged), "{another}");
    }
    assert_eq!(decode(&sealed(), &datagram), Ok(message));
}

#[test]
fn the_seal_must_be_what_this_nodes_keys_say() {
    let message = from_web1(Role::Follower, Body::Claim);
    assert_eq!(decode(&sealed(), &encode(&open(), &message)), Err(Reject::Unsealed));
    assert_eq!(decode(&open(), &encode(&sealed(), &message)), Err(Reject::Sealed));
    let other_key = Codec::new(GROUP.parse().unwrap(), Some(key(8)));
    assert_eq!(decode(&sealed(), &encode(&other_key, &message)), Err(Reject::Forged));
    for codec in [open(), sealed()] {
        let mut datagram = encode(&codec, &message);
        for unknown in 2..=u8::MAX {
            datagram[1] = unknown;
            assert_eq!(decode(&codec, &datagram), Err(Reject::Malformed), "seal {unknown}");
        }
    }
}

#[test]
fn every_flipped_bit_of_a_sealed_datagram_is_noticed_and_blamed_on_the_right_thing() {
    let datagram = encode(&sealed(), &from_web1(Role::Leader, Body::Claim));
    let group = 2..2 + 1 + GROUP.len();
    for bit in 0..8 * datagram.len() {
        let mut flipped = datagram.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = decode(&sealed(), &flipped);
        let expected: &[Reject] = match bit / 8 {
            0 => &[Reject::Version],
            1 if bit % 8 == 0 => &[Reject::Unsealed],
            1 => &[Reject::Malformed],
            byte if group.contains(&byte) => &[Reject::ForeignGroup, Reject::Malformed],
            _ => &[Reject::Forged],
        };
        let why = verdict.expect_err("a flipped bit");
        assert!(expected.contains(&why), "bit {bit}: {why:?} instead of {expected:?}");
    }
}

/// An open datagram with this sender and these bytes after it.
fn with_sender(sender: &[u8], rest: &[u8]) -> Vec<u8> {
    let group = [&[GROUP.len() as u8], GROUP.as_bytes()].concat();
    [&[VERSION, 0], &group[..], &[sender.len() as u8], sender, rest].concat()
}

/// Life 1, datagram 1, term 0, starting, priority 0, tie-break 0, no flags, no voters, no echoes,
/// and a heartbeat without interval, leader, concession and acknowledgement.
const A_HEARTBEAT: [u8; 14] = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const BEFORE_THE_BODY: usize = 9;

#[test]
fn names_that_are_no_names_are_rejected() {
    assert!(
        decode(&open(), &with_sender(b"web1", &A_HEARTBEAT)).is_ok(),
        "the bytes fit otherwise"
    );
    let too_long = "n".repeat(NAME_MAX + 1);
    let bad: [&[u8]; 7] =
        [b"", b"a b", b"a\n", b"a\0b", "a\u{a0}b".as_bytes(), too_long.as_bytes(), b"\xff\xfe"];
    for name in bad {
        let verdict = decode(&open(), &with_sender(name, &A_HEARTBEAT));
        assert_eq!(verdict, Err(Reject::Malformed), "{name:?}");
    }
}

#[test]
fn roles_and_options_beyond_the_known_ones_are_rejected() {
    let bad: [&[u8]; 6] = [
        &[1, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0], // no fifth role
        &[1, 1, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 1], // neither none nor some voters
        &[1, 1, 0, 0, 0, 0, 0, 0, 3, 2],          // neither none nor some successor
        &[1, 1, 0, 0, 0, 0, 0, 0, 4, 2],          // neither false nor true
        &[1, 1, 0, 0, 0, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0x7f, 0], // no u32
        &[1, 1, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0x7f], // nor here
    ];
    for rest in bad {
        let verdict = decode(&open(), &with_sender(b"web1", rest));
        assert_eq!(verdict, Err(Reject::Malformed), "{rest:?}");
    }
}

#[test]
fn unknown_flags_are_kept_for_those_who_know_them() {
    let datagram = with_sender(b"web1", &[1, 1, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0]);
    let message = decode(&open(), &datagram).unwrap();
    assert!(message.standing.flags.contains(Flags::FIXED));
    assert_eq!(encode(&open(), &message)[2 + 4 + 5 + 6], 0xff);
}

/// A varint may be written with more bytes than it needs. Such a datagram is taken: nobody is
/// harmed by it, and the authenticator covers the bytes as they came.
#[test]
fn over_long_varints_are_taken_and_covered_by_the_authenticator_as_they_came() {
    let padded = with_sender(b"web1", &[0x81, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let plain = with_sender(b"web1", &A_HEARTBEAT);
    assert_eq!(decode(&open(), &padded), decode(&open(), &plain));
    assert_eq!(decode(&sealed(), &seal(&padded)), decode(&open(), &plain));
    let too_long = [&[0x80; 10][..], &[1], &A_HEARTBEAT[1..]].concat();
    assert_eq!(decode(&open(), &with_sender(b"web1", &too_long)), Err(Reject::Malformed));
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("n".repeat(NAME_MAX)), "[!-~]{1,64}", "[äöü€]{1,16}"]
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..300u64, Just(u64::MAX)]
}

fn any_datagram() -> impl Strategy<Value = DatagramId> {
    (any_number(), any_number()).prop_map(|(incarnation, sequence)| DatagramId {
        incarnation: Incarnation(incarnation),
        sequence: Sequence(sequence),
    })
}

fn any_heartbeat() -> impl Strategy<Value = Body> {
    let leader = prop::option::of(any_name());
    let conceded = prop::option::of(any_number());
    (any::<u32>(), leader, conceded, prop::option::of(any_datagram())).prop_map(
        |(interval_us, leader, conceded, acknowledged)| Body::Heartbeat {
            interval_us,
            leader: leader.map(|name| id(&name)),
            conceded: conceded.map(Term),
            acknowledged,
        },
    )
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        any_heartbeat(),
        Just(Body::Proposal),
        any::<[u32; 2]>()
            .prop_map(|[interval_us, hold_us]| Body::Declaration { interval_us, hold_us }),
        prop::option::of(any_name())
            .prop_map(|successor| Body::Resignation { successor: successor.map(|name| id(&name)) }),
        Just(Body::Farewell),
        Just(Body::Claim),
        any_number().prop_map(|newcomer| Body::Objection { newcomer: Incarnation(newcomer) }),
        any::<u32>().prop_map(|hold_us| Body::VoteRequest { hold_us }),
        (any_name(), any_datagram(), any::<bool>()).prop_map(|(candidate, request, granted)| {
            Body::Vote { candidate: id(&candidate), request, granted }
        }),
        Just(Body::Inquiry),
        any_name().prop_map(|leader| Body::Probe { leader: id(&leader) }),
        (any_name(), any_datagram())
            .prop_map(|(leader, newest)| Body::ProbeReply { leader: id(&leader), newest }),
        Just(Body::Challenge),
        prop::option::of(any_name())
            .prop_map(|node| Body::Ping { node: node.map(|name| id(&name)) }),
        (any_name(), any_datagram())
            .prop_map(|(asker, ping)| Body::Pong { asker: id(&asker), ping }),
    ]
}

fn any_echoes() -> impl Strategy<Value = Echoes> {
    let echo = (any_name(), any_datagram())
        .prop_map(|(name, datagram)| Echo { node_id: id(&name), datagram });
    prop::collection::vec(echo, 0..=ECHOES_MAX).prop_map(Echoes::from_iter)
}

fn any_standing() -> impl Strategy<Value = Standing> {
    let role = prop_oneof![
        Just(Role::Starting),
        Just(Role::Follower),
        Just(Role::Candidate),
        Just(Role::Leader)
    ];
    let voters = prop::option::of(any::<[u8; 8]>().prop_map(VotersDigest));
    let ranks = (any::<u8>(), any::<u32>());
    (role, ranks, any::<[bool; 5]>(), voters).prop_map(
        |(role, (priority, tie_break), bits, voters)| Standing {
            role,
            priority: Priority(priority),
            tie_break: TieBreak(tie_break),
            flags: Flags::default()
                .with(Flags::CANDIDATE, bits[0])
                .with(Flags::ELIGIBLE, bits[1])
                .with(Flags::FIXED, bits[2])
                .with(Flags::ENROLLED, bits[3])
                .with(Flags::FOUNDING, bits[4]),
            voters,
        },
    )
}

prop_compose! {
    fn any_message()(
        sender in any_name(),
        numbers in (any_number(), any_number(), any_number()),
        standing in any_standing(),
        echoes in any_echoes(),
        body in any_body(),
    ) -> Message {
        Message {
            sender: id(&sender),
            incarnation: Incarnation(numbers.0),
            sequence: Sequence(numbers.1),
            term: Term(numbers.2),
            standing,
            echoes,
            body,
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_encoded_decodes_to_itself(
        message in any_message(),
        group in any_name(),
        seals in any::<bool>(),
    ) {
        let codec = Codec::new(group.parse().unwrap(), seals.then(|| key(7)));
        let datagram = encode(&codec, &message);
        prop_assert!(datagram.len() <= DATAGRAM_MAX);
        prop_assert_eq!(decode(&codec, &datagram), Ok(message));
        prop_assert_eq!(alleged_sender(&datagram), Some(message.sender));
    }

    #[test]
    fn no_group_takes_another_s_datagrams(
        message in any_message(),
        groups in (any_name(), any_name()),
        seals in any::<bool>(),
    ) {
        prop_assume!(groups.0 != groups.1);
        let codec = |group: &str| Codec::new(group.parse().unwrap(), seals.then(|| key(7)));
        let datagram = encode(&codec(&groups.0), &message);
        prop_assert_eq!(codec(&groups.1).decode(SOURCE, &datagram), Err(Reject::ForeignGroup));
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&open(), &bytes);
        let _ = decode(&sealed(), &bytes);
        let _ = alleged_sender(&bytes);
    }

    /// Random bytes hardly get past the header, so these do.
    #[test]
    fn what_decodes_is_a_message_that_encodes_again(
        sender in any_name(),
        rest in prop::collection::vec(prop_oneof![0..10u8, any::<u8>()], 0..40),
    ) {
        let known = decode(&open(), &with_sender(sender.as_bytes(), &rest));
        if let Some(message) = known.ok().filter(|message| message.body != Body::Unknown) {
            prop_assert_eq!(decode(&open(), &encode(&open(), &message)), Ok(message));
        }
    }

    #[test]
    fn a_datagram_that_was_tampered_with_is_never_taken(
        message in any_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
    ) {
        let datagram = encode(&sealed(), &message);
        let mut tampered = datagram.clone();
        for (at, mask) in changes {
            tampered[at.index(datagram.len())] ^= mask;
        }
        if tampered != datagram {
            prop_assert!(decode(&sealed(), &tampered).is_err());
        }
    }
}
