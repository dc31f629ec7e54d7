"""A second implementation of the protocol: `python3 peer.py SETTINGS.json`.

It takes part in the election as the node that the settings describe, and writes its status beside
them. SIGTERM stops it in order.
"""

import json
import os
import select
import signal
import socket
import struct
import sys
import time

import wire
from node import Node

TTL = 255
# What Linux calls it; Python has no name for it.
IP_RECVTTL = 12
TICK = 0.005


class Disk:
    """One file, replaced as a whole."""

    def __init__(self, path):
        self.path, self.saved = path, None

    def load(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def save(self, state):
        text = json.dumps(state)
        if text != self.saved:
            replace(self.path, text)
            self.saved = text


def replace(path, text):
    temporary = f"{path}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


class Transport:
    """A socket of one interface."""

    def __init__(self, settings):
        self.to = (settings["multicast"], settings["port"])
        own = socket.inet_aton(settings["address"])
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for level, option, value in [
            (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, settings["interface"].encode()),
            (socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own),
            (socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TTL),
            (socket.IPPROTO_IP, IP_RECVTTL, 1),
            (socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
             socket.inet_aton(self.to[0]) + own),
        ]:
            self.socket.setsockopt(level, option, value)
        self.socket.bind(self.to)
        self.socket.setblocking(False)

    def send(self, data):
        try:
            self.socket.sendto(data, self.to)
        except OSError as error:
            print("cannot send:", error, file=sys.stderr, flush=True)

    def receive(self):
        """The waiting datagrams that have passed no router, with their sources."""
        while True:
            try:
                data, ancillary, _, source = self.socket.recvmsg(65536, 64)
            except OSError:
                return
            ttls = [struct.unpack("i", value)[0] for _, kind, value in ancillary
                    if kind == socket.IP_TTL]
            if ttls == [TTL]:
                yield source[0], data


def run(settings):
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    transport = Transport(settings)
    key = bytes.fromhex(settings["key"]) if settings["key"] else None
    codec = wire.Codec(settings["group"], key)
    settings["life"] = time.time_ns() // 1000
    node = Node(settings, codec, Disk(settings["state"]), transport.send, clock())
    shown = None
    while not stopping:
        select.select([transport.socket], [], [], TICK)
        for source, data in transport.receive():
            node.receive(source, data, clock())
        node.tick(clock())
        if node.status() != shown:
            shown = node.status()
            replace(settings["status"], json.dumps(shown))
    node.stop(clock())


def clock():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        run(json.load(file))
