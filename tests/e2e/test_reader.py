"""A reader that was written from the format's document alone reads damaged sets.

What it reads of intact platters is held against the platters' own checksums and digests; what it
reads of damaged ones against what it read before.
"""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import codes
import pytest
from blake3 import blake3
from conftest import Start
from harness import TINY_GEOMETRY, seed
from platter import CHECKSUM_BYTES, KIND_HEADER, PAGE_HEADER_BYTES, SECTOR_HEADER_BYTES, Platter
from platter_set import Glass, PlatterSet, digest
from test_damage import archive

INFORMATION = TINY_GEOMETRY["set_information_platters"]
REDUNDANCY = TINY_GEOMETRY["set_redundancy_platters"]


def open_set(folder: Path) -> PlatterSet:
    """All platters of a folder."""
    return PlatterSet([Glass(path) for path in sorted(folder.glob("*.glass"))])


@pytest.fixture
def written(start: Start) -> PlatterSet:
    """A set, as an archive wrote it."""
    server = start({"geometry": TINY_GEOMETRY})
    archive(server, random.Random(seed()))
    server.stop()
    return open_set(server.platters)


def positions(of: PlatterSet) -> list[int]:
    """Information platters that were written."""
    return [at for at in range(INFORMATION) if of.members[at]]


def check(of: PlatterSet, expected: dict[int, bytes]) -> None:
    """Compare all user bytes, and let every file list be checked by its digest."""
    for position, data in expected.items():
        assert of.user_bytes(position) == data, position
        for _, first, length in of.file_list(position):
            assert first + length <= len(data)


def test_sets_are_read_back(written: PlatterSet) -> None:
    """Sectors, tracks and platters are lost, as many as each code corrects."""
    rng = random.Random(seed())
    expected = {position: written.user_bytes(position) for position in positions(written)}
    assert len(expected) > 1, "a set of several platters"
    for platter in written.platters:
        record = platter.final_record()
        assert record is not None
        assert record["file"] == len(platter.bytes) and record["user"] == platter.user_bytes
        assert record["tracks"] == platter.track_count
        if platter.is_information:
            # One sector that is solved for is rebuilt, checksum and all.
            place = platter.information_place(0)
            platter.bytes[place * platter.track_sectors * platter.sector_bytes + 100] ^= 1
            assert platter.payload(place, 0) is None
            assert digest(platter, written) == record["digest"]
        platter.spoil_sectors(TINY_GEOMETRY["track_redundancy_sectors"] - 1, rng)
    check(written, expected)
    written.platters[0].spoil_tracks(TINY_GEOMETRY["group_redundancy_tracks"], rng)
    check(written, expected)
    for position in rng.sample(positions(written), min(REDUNDANCY, len(expected))):
        written.platters[position] = None
    check(written, expected)


def test_null_redundancy_platter_counts_as_lost(written: PlatterSet) -> None:
    """Its equations say nothing: zeros in its place would make wrong bytes."""
    expected = {position: written.user_bytes(position) for position in positions(written)}
    folder = written.platters[0].path.parent
    written.platters[INFORMATION].path.unlink()
    for platter in written.platters[:INFORMATION] + written.platters[INFORMATION + 1 :]:
        if platter is not None:
            forget(platter, INFORMATION)
    lost = random.Random(seed()).sample(sorted(expected), min(REDUNDANCY - 1, len(expected)))
    for position in lost:
        written.platters[position].path.unlink()
    left = open_set(folder)
    assert left.members[INFORMATION] is None
    assert [at for at in positions(left) if left.platters[at] is None] == sorted(lost)
    check(left, expected)
    # A reader that takes it for zeros solves for other bytes, and nothing tells it.
    shards = [member[0] for member in left.shards(0)]
    literal = [*shards[:INFORMATION], bytes(left.payload_bytes), *shards[INFORMATION + 1 :]]
    assert codes.small(INFORMATION, literal)[lost[0]] != codes.small(INFORMATION, shards)[lost[0]]


def test_the_end_of_a_file_is_found(written: PlatterSet) -> None:
    """Bytes behind the final record mean nothing; without the record, tracks are still read."""
    glass = written.platters[0]
    expected, record = written.user_bytes(0), glass.final_record()
    glass.bytes += b"what is this"
    assert glass.final_record() == record
    assert written.user_bytes(0) == expected
    del glass.bytes[glass.record_offset :]
    assert glass.final_record() is None
    assert written.user_bytes(0) == expected
    del glass.bytes[len(glass.bytes) // 2 :]
    assert written.user_bytes(0) == expected, "the rest is the set's"


def forget(platter: Platter, position: int) -> None:
    """Make a member null in a platter's header, in sectors that stay good."""
    member = json.dumps(platter.header["members"][position], separators=(",", ":")).encode()
    pages: dict[int, bytearray] = {}
    headers = [sector for sector in platter.sectors if sector.kind == KIND_HEADER]
    begins = [sector.offset + SECTOR_HEADER_BYTES for sector in headers]
    end = platter.payload_bytes
    for begin in begins:
        (page,) = struct.unpack_from("<I", platter.bytes, begin)
        pages[page] = platter.bytes[begin + PAGE_HEADER_BYTES : begin + end]
    document = b"".join(pages[page] for page in sorted(pages))
    assert document.count(member) == 1
    document = document.replace(member, b"null".ljust(len(member)))
    size = end - PAGE_HEADER_BYTES
    for begin in begins:
        (page,) = struct.unpack_from("<I", platter.bytes, begin)
        part = document[page * size : (page + 1) * size]
        platter.bytes[begin + PAGE_HEADER_BYTES : begin + end] = part
        sector = platter.bytes[begin - SECTOR_HEADER_BYTES : begin + end]
        platter.bytes[begin + end : begin + end + CHECKSUM_BYTES] = blake3(sector).digest()
    platter.save()
