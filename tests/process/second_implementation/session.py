# SPDX-License-Identifier: BSD-3-Clause
"""An engine, our rank on its wire, and the programs `exchange` that are the other ranks."""
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from job import Job
from rank import Rank

ULC, EXCHANGE, ECHO_LINKS = sys.argv[1:4]
ENGINE = os.environ["ULC_ENGINE_PATH"]
LIMIT = 30.0  # seconds of one case
UNICAST, MULTICAST, IN_GROUP = 1, 2, 3  # tags of exchange
BURST = 12  # copies of a unicast in its mode `bursts`
# Lengths of exchange
LENGTHS = [0, 1, 104, 105, 1000, 1469, 1470, 1478, 1479, 1486, 1487, 5000, 100_000]
DISAGREEMENT = ["drop_" + reason for reason in (
    "ack_range ack_stream after_unmeetable beyond_window crc extension flags forward framing job "
    "misrouted own_echo short type unsealed version wrong_source").split()]


class Failed(Exception):
    pass


@contextlib.contextmanager
def engine(*options):
    """Runs an engine on the interface `far`, unless the options name devices."""
    if "--device" not in options:
        options = "--device", "net_af_packet0,iface=far", *options
    with tempfile.TemporaryDirectory() as folder:
        socket, log = f"{folder}/a.sock", pathlib.Path(f"{folder}/log")
        with log.open("w") as out:
            child = subprocess.Popen([ENGINE, "--socket", socket, "--hugepages", "never",
                                      *options], stdout=out, stderr=out)
        try:
            end = time.monotonic() + 20
            while "ulc-engine ready" not in log.read_text():
                if time.monotonic() > end or child.poll() is not None:
                    raise Failed(f"the engine did not start: {log.read_text()}")
                time.sleep(0.01)
            yield socket
            child.terminate()
            if child.wait(20) != 0:
                raise Failed(f"the engine ended with status {child.returncode}: {log.read_text()}")
        finally:
            child.kill()
            child.wait()


def counters(socket):
    said = subprocess.run([ULC, "stat", "--json", socket], capture_output=True, text=True,
                          check=True).stdout
    return json.loads(said)["counters"]


PATTERN = bytes(i & 255 for i in range(max(LENGTHS) + 256))


def payload_of(source, round_, tag):
    """Makes the payload like apps/exchange.cc."""
    first = source * 31 + round_ * 7 + tag * 101 & 255
    return PATTERN[first:first + LENGTHS[round_ % len(LENGTHS)]]


class Session:
    """Our rank, and the exchange programs of the others on one engine. `arguments`: those of
    exchange."""

    def __init__(self, socket, rank, size, wire, *arguments, nonce=None, profile=b"urtp",
                 **options):
        seed = random.Random(wire.random.random())
        self.job = Job(wire, seed, b"second", size, rank, profile, nonce)
        given = dict(os.environ, ULC_ENGINE=socket, ULC_JOB="second", ULC_SIZE=str(size))
        if nonce:
            given["ULC_NONCE"] = nonce.hex()
        self.rank = Rank(wire, self.job, **options)
        self.others = [r for r in range(size) if r != rank]
        self.programs = [subprocess.Popen(
            [EXCHANGE, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=dict(given, ULC_RANK=str(r)))
            for r in self.others]
        self.group = None
        self.copies = BURST if "bursts" in arguments else 1  # of each unicast
        self.came = {r: [] for r in self.others}
        self.end = time.monotonic() + LIMIT

    def until(self, holds, what):
        while not holds():
            if time.monotonic() > self.end:
                raise Failed(f"not within {LIMIT} s: {what}; {dict(self.rank.counters)}")
            self.rank.step(time.monotonic, 0.0005)
            while self.rank.inbox:
                message = self.rank.inbox.popleft()
                self.came[message.source].append((message.tag, message.octets))

    def form(self):
        self.until(lambda: self.job.formed and self.rank.groups, "the job forms")

    def exchange(self, rounds):
        """Acts like apps/exchange.cc."""
        for round_ in rounds:
            for to in (to for to in self.others for _ in range(self.copies)):
                self.rank.submit(to, UNICAST, payload_of(self.job.rank, round_, UNICAST))
            self.rank.submit(self.job.world, MULTICAST,
                             payload_of(self.job.rank, round_, MULTICAST))
            if self.group:
                self.rank.submit(self.group.handle, IN_GROUP,
                                 payload_of(self.job.rank, round_, IN_GROUP),
                                 self.subset(self.job.rank, round_))
            for source in self.others:
                self.receive(source, round_)

    def receive(self, source, round_):
        tags = [UNICAST] * self.copies + [MULTICAST]
        index = self.group.ranks.index(self.job.rank) if self.group else 0
        if self.group and (self.subset(source, round_) or -1) >> index & 1:
            tags.append(IN_GROUP)
        self.until(lambda: len(self.came[source]) >= len(tags), f"round {round_} of rank {source}")
        for tag in tags:
            got, expected = self.came[source].pop(0), (tag, payload_of(source, round_, tag))
            if got != expected:
                raise Failed(f"round {round_} of rank {source}: tag {got[0]}, {len(got[1])} "
                             f"octets, not {tag}, {len(expected[1])}, or other octets")

    def subset(self, source, round_):
        """Returns the receivers of the message in the group: one member in odd rounds, if that is
        not the source itself; 0: all."""
        index = round_ % self.job.size
        return 0 if round_ % 2 == 0 or self.group.ranks[index] == source else 1 << index

    def make_group(self):
        """Makes a group of all ranks, the last first."""
        self.group = self.rank.making.create(self.job.world, list(range(self.job.size))[::-1])
        self.until(lambda: self.group.over, "the group is made")
        if self.group.status:
            raise Failed(f"the group was not made: error {self.group.status}")

    def leave(self):
        """Waits until all is acknowledged, sends BYE, and checks the reports of the others."""
        self.until(self.rank.idle, "all is acknowledged")
        self.job.leave()
        self.until(lambda: not self.job.byes and all(p.poll() is not None for p in self.programs),
                   "the others end")
        for program in self.programs:
            said = program.communicate()[0]
            if program.returncode != 0:
                raise Failed(f"exchange: status {program.returncode}: {said}")

    def check(self, theirs):
        """Checks that neither side found a frame of the other bad."""
        ours = self.rank.counters
        bad = {reason: n for reason, n in theirs.items() if reason in DISAGREEMENT and n}
        bad.update({reason: n for reason, n in ours.items()
                    if reason.split()[0] in ("bad", "wrong_source", "framing", "beyond_credit")})
        if self.rank.wire.malformed or bad:
            raise Failed(f"the implementations disagree: {self.rank.wire.malformed} frames, {bad}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            if program.poll() is None:
                program.kill()
                print("    exchange:", program.communicate()[0])
        self.rank.wire.close()
