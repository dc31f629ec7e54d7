"""The datagrams of version 1, written from docs/protocol.md alone.

`python3 wire.py docs/protocol.md` decodes and encodes each block of bytes in that document.
"""

import hashlib
import hmac
import ipaddress
import re
import sys
import unicodedata
from dataclasses import dataclass, field

VERSION = 1
OPEN, SEALED = 0, 1
LONGEST = 1232
TAG = 16
TEXT_MAX = 64
ECHOES_MAX = 4

# Characters that only format others.
INVISIBLE = [(0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F), (0x202A, 0x202E),
             (0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F)]

STARTING, FOLLOWER, CANDIDATE, LEADER = range(4)
IS_CANDIDATE, ELIGIBLE, STATIC, ENROLLED, FOUNDING, CRITICAL = 1, 2, 4, 8, 16, 128


class Rejected(Exception):
    """A datagram that fails a step of "On receipt"; the message is the counter's name."""


def malformed():
    return Rejected("malformed")


class Reader:
    """Reads fields from the front of some bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, count):
        part = self.data[self.at:self.at + count]
        if len(part) < count:
            raise malformed()
        self.at += count
        return part

    def byte(self):
        return self.bytes(1)[0]

    def rest(self):
        return self.bytes(len(self.data) - self.at)


# Each type of field is a pair: what writes a value, and what reads one.


def varint(bits):
    def write(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out + bytes([value]))

    def read(reader):
        value = 0
        for place in range((bits + 6) // 7):
            byte = reader.byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if value >> bits:
                    raise malformed()
                return value
        raise malformed()

    return write, read


def at_most(highest, of):
    def read(reader):
        value = of[1](reader)
        if value > highest:
            raise malformed()
        return value

    return of[0], read


U64, U32 = varint(64), varint(32)
BYTE = (lambda value: bytes([value])), Reader.byte
BOOL = at_most(1, BYTE)


def write_text(value):
    data = value.encode()
    return U32[0](len(data)) + data


def is_invisible(letter):
    code = ord(letter)
    return any(first <= code <= last for first, last in INVISIBLE)


def is_text(value):
    hidden = ("Cc", "Zs", "Zl", "Zp")
    return value and not any(unicodedata.category(letter) in hidden or is_invisible(letter)
                             for letter in value)


def read_text(reader):
    length = U32[1](reader)
    if length > TEXT_MAX:
        raise malformed()
    try:
        value = reader.bytes(length).decode()
    except UnicodeDecodeError:
        raise malformed() from None
    if not is_text(value):
        raise malformed()
    return value


TEXT = write_text, read_text


def option(of):
    def write(value):
        return b"\0" if value is None else b"\1" + of[0](value)

    def read(reader):
        return of[1](reader) if BOOL[1](reader) else None

    return write, read


def sequence_of(*types):
    def write(values):
        return b"".join(each[0](value) for each, value in zip(types, values))

    def read(reader):
        return tuple(each[1](reader) for each in types)

    return write, read


DATAGRAM_ID = sequence_of(U64, U64)
ECHO = sequence_of(TEXT, DATAGRAM_ID)
DIGEST = (lambda value: value), (lambda reader: reader.bytes(8))


def write_echoes(echoes):
    return U32[0](len(echoes)) + b"".join(ECHO[0](echo) for echo in echoes.items())


def read_echoes(reader):
    count = U32[1](reader)
    if count > ECHOES_MAX:
        raise malformed()
    echoes = dict(ECHO[1](reader) for _ in range(count))
    if len(echoes) < count:
        raise malformed()
    return echoes


ECHOES = write_echoes, read_echoes

# The header's fields from the sender on.
HEADER = {
    "sender": TEXT,
    "incarnation": U64,
    "sequence": U64,
    "term": U64,
    "role": at_most(LEADER, U32),
    "priority": BYTE,
    "tie_break": U32,
    "flags": BYTE,
    "voters": option(DIGEST),
    "echoes": ECHOES,
}

(HEARTBEAT, PROPOSAL, DECLARATION, RESIGNATION, FAREWELL, CLAIM, OBJECTION, VOTE_REQUEST, VOTE,
 INQUIRY, PROBE, PROBE_REPLY, CHALLENGE, PING, PONG) = range(15)

BODIES = {
    HEARTBEAT: {
        "interval": U32,
        "leader": option(TEXT),
        "conceded": option(U64),
        "acknowledged": option(DATAGRAM_ID),
    },
    PROPOSAL: {},
    DECLARATION: {"interval": U32, "hold": U32},
    RESIGNATION: {"successor": option(TEXT)},
    FAREWELL: {},
    CLAIM: {},
    OBJECTION: {"newcomer": U64},
    VOTE_REQUEST: {"hold": U32},
    VOTE: {"candidate": TEXT, "request": DATAGRAM_ID, "granted": BOOL},
    INQUIRY: {},
    PROBE: {"leader": TEXT},
    PROBE_REPLY: {"leader": TEXT, "newest": DATAGRAM_ID},
    CHALLENGE: {},
    PING: {"node": option(TEXT)},
    PONG: {"asker": TEXT, "ping": DATAGRAM_ID},
}


@dataclass
class Datagram:
    """What a datagram says."""

    sender: str
    incarnation: int
    sequence: int
    term: int
    role: int
    priority: int
    flags: int
    kind: int
    body: dict = field(default_factory=dict)
    tie_break: int = 0
    voters: bytes = None
    echoes: dict = field(default_factory=dict)
    extension: bytes = b""

    @property
    def id(self):
        return (self.incarnation, self.sequence)

    def has(self, flag):
        return bool(self.flags & flag)


class Codec:
    """Encodes and decodes the datagrams of one group, with a key or without."""

    def __init__(self, group, key=None):
        self.group, self.key = group, key

    def encode(self, source, datagram):
        seal = OPEN if self.key is None else SEALED
        data = bytes([VERSION, seal]) + write_text(self.group)
        data += b"".join(of[0](getattr(datagram, name)) for name, of in HEADER.items())
        data += U32[0](datagram.kind)
        fields = BODIES.get(datagram.kind, {})
        data += b"".join(of[0](datagram.body[name]) for name, of in fields.items())
        data += datagram.extension
        return data if self.key is None else data + self.tag(source, data)

    def decode(self, source, data):
        if len(data) < 2:
            raise malformed()
        if data[0] != VERSION:
            raise Rejected("version")
        reader = Reader(data[2:])
        if read_text(reader) != self.group:
            raise Rejected("foreign_group")
        if len(data) > LONGEST:
            raise malformed()
        contents = self.authenticated(source, data)
        reader.data = contents[2:]
        return self.read_message(reader)

    def authenticated(self, source, data):
        """The bytes before the tag, which must be right."""
        if data[1] not in (OPEN, SEALED):
            raise malformed()
        if data[1] != (OPEN if self.key is None else SEALED):
            raise Rejected("auth")
        if data[1] == OPEN:
            return data
        contents, tag = data[:-TAG], data[-TAG:]
        if len(tag) < TAG:
            raise malformed()
        if not hmac.compare_digest(tag, self.tag(source, contents)):
            raise Rejected("auth")
        return contents

    def read_message(self, reader):
        header = {name: of[1](reader) for name, of in HEADER.items()}
        kind = U32[1](reader)
        fields = BODIES.get(kind)
        body = {name: of[1](reader) for name, of in (fields or {}).items()}
        datagram = Datagram(kind=kind, body=body, extension=reader.rest(), **header)
        is_extended = fields is None or datagram.extension
        if is_extended and datagram.has(CRITICAL):
            raise Rejected("version")
        return datagram

    def tag(self, source, data):
        address = ipaddress.ip_address(source)
        if address.version == 4:
            address = ipaddress.ip_address(f"::ffff:{address}")
        return hmac.new(self.key, address.packed + data, hashlib.sha256).digest()[:TAG]


def voters_digest(voters):
    data = b"".join(voter + b"\0" for voter in sorted(voter.encode() for voter in voters))
    return hashlib.sha256(data).digest()[:8]


def check_document(path):
    """Decodes and encodes each block of bytes in the document; returns how many there are."""
    with open(path, encoding="utf-8") as document:
        blocks = re.findall(r"```hex ([\w-]+)\n(.*?)```", document.read(), re.DOTALL)
    for name, text in blocks:
        data = bytes.fromhex(text)
        codec = Codec("default", bytes(range(32)) if data[1] == SEALED else None)
        again = codec.encode("10.0.0.10", codec.decode("10.0.0.10", data))
        assert again == data, f"{name}: {again.hex(' ')}"
    return len(blocks)


if __name__ == "__main__":
    print(check_document(sys.argv[1]), "blocks of bytes are as they are described")
