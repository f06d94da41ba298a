"""A reader that was written from the format's document alone reads the stacks of a rack.

The stacks are those of `tests/fixtures/stacks-1.txt`, which the program's writer makes to the byte
(`crates/rack/src/tests/golden.rs`).
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
import uuid
from itertools import combinations
from pathlib import Path

import pytest
import stack
from harness import seed
from stack import SUM, BlobError, Stack, StackError, crc64, find

FIXTURE = Path(__file__).parents[1] / "fixtures" / "stacks-1.txt"
LONG, SHORT, EMPTY = (uuid.UUID(bytes=bytes([number]) * 16) for number in (1, 2, 3))
STACKS = {LONG: 5, SHORT: 18, EMPTY: 3}


def content(line: str) -> bytes:
    """Bytes of a line: hexadecimal, or `byte*count`."""
    words = (word.partition("*") for word in line.split())
    return b"".join(bytes.fromhex(of) * int(count or 1) for of, _, count in words)


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """A folder of disks, as the program's writer left them."""
    parts = re.split(r"^(disk-.*)\n", FIXTURE.read_text(), flags=re.MULTILINE)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(map(content, text.splitlines())))
    return tmp_path


def paths(disks: Path, blob: uuid.UUID) -> list[Path]:
    """Files of a blob, by index."""
    return sorted(disks.glob(f"disk-*/stacks/{blob}.*.stack"))


def read(disks: Path, blob: uuid.UUID) -> bytes:
    """Bytes of a blob."""
    return find([disks])[0][blob].read()


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Change a bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_checksum_has_the_reference_value() -> None:
    """The check value of the catalog of CRCs."""
    assert crc64(b"123456789") == 0xAE8B14860A799888


def test_blobs_are_found_and_read(disks: Path) -> None:
    """Sums of fragments and blobs are the program's, so that bytes that come are those put."""
    blobs, faults = find([disks])
    assert not faults
    assert {id_: len(found.stacks) for id_, found in blobs.items()} == STACKS
    assert [blobs[id_].of.length for id_ in (LONG, SHORT, EMPTY)] == [493_217, 1000, 0]
    for found in blobs.values():
        assert len(found.read()) == found.of.length
        assert found.of.entry.startswith(b'{"key":"blob ')
    data = blobs[LONG].read()
    assert data[:700] == data[:1] * 700 and data[700:1400] == data[700:701] * 700


def test_any_k_stacks_are_enough(disks: Path) -> None:
    """All ways to lose two of five, and some to lose three of eighteen."""
    rng = random.Random(seed())
    of_18 = [tuple(rng.sample(range(18), 3)) for _ in range(20)]
    for blob, ways in ((LONG, list(combinations(range(5), 2))), (SHORT, of_18)):
        expected, all_of_it = read(disks, blob), paths(disks, blob)
        for lost in ways:
            left = [path for at, path in enumerate(all_of_it) if at not in lost]
            assert find(left)[0][blob].read() == expected, lost


def test_more_than_r_losses_are_an_error_that_lists_them(disks: Path) -> None:
    """Blob, lost stacks, and what is wrong with those that are there."""
    lost = paths(disks, LONG)
    lost[0].unlink()
    lost[2].write_bytes(lost[2].read_bytes()[:100_000])
    flip(lost[4], 4096 + 131_072 + 8 + 1000)
    with pytest.raises(BlobError) as error:
        read(disks, LONG)
    said = str(error.value)
    assert said.startswith(
        f"blob {LONG}: 2 stacks can be used for stripe 1, and 3 are needed; lost are 0, 2, 4"
    )
    assert f"{lost[2]}: never finished, or without its end" in said
    assert f"{lost[4]}: the fragment of stripe 1 is damaged" in said


def test_a_flipped_bit_anywhere_is_found(disks: Path) -> None:
    """In headers, fragments, sums and trailers; two such stacks may be."""
    rng = random.Random(seed())
    expected = read(disks, SHORT)
    originals = [(path, path.read_bytes()) for path in paths(disks, SHORT)]
    for _ in range(30):
        path, data = rng.choice(originals)
        flip(path, rng.randrange(len(data)), rng.randrange(8))
        with contextlib.suppress(StackError):
            assert Stack(path).fragment(0) is None, path
        assert read(disks, SHORT) == expected
        path.write_bytes(data)


def test_a_cut_or_longer_stack_is_not_used(disks: Path) -> None:
    """Whatever its length, and whether or not its last bytes are a trailer."""
    path = paths(disks, LONG)[1]
    data = path.read_bytes()
    for length in (0, 7, 56, 4095, 4096, 5000, len(data) - 64, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(StackError):
            Stack(path)
    path.write_bytes(data[:50_000] + data[-64:])
    with pytest.raises(StackError, match=f"50064 bytes long instead of {len(data)}"):
        Stack(path)
    path.write_bytes(data + data[-64:])
    with pytest.raises(StackError, match="long instead of"):
        Stack(path)
    assert len(read(disks, LONG)) == 493_217, "four others are there"


def test_fragments_in_wrong_places_are_not_used(disks: Path) -> None:
    """Their sum is that of blob, index and stripe as well."""
    first, second = (Stack(path) for path in paths(disks, SHORT)[:2])
    begin, end = first.header_bytes, -64
    first.bytes = first.bytes[:begin] + second.bytes[begin:end] + first.bytes[end:]
    assert first.fragment(0) is None


def test_stack_of_another_blob_is_reported(disks: Path) -> None:
    """What most stacks say of a blob is right."""
    path = paths(disks, SHORT)[4]
    data = bytearray(path.read_bytes())
    data[16] ^= 1
    data[4088:4096] = SUM.pack(crc64(bytes(data[:4088])))
    path.write_bytes(data)
    blobs, _ = find([disks])
    assert blobs[SHORT].faults == [f"{path}: of another blob"]
    assert len(blobs[SHORT].read()) == 1000


def test_reader_runs_standalone(disks: Path, tmp_path: Path) -> None:
    """The commands that its first lines name, without anything of the tests."""
    reader, out = stack.__file__, tmp_path / "blob"
    for path in paths(disks, SHORT)[:3]:
        path.unlink()

    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, reader, *args, disks]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    listed = run().stdout.splitlines()
    assert any(line.startswith(f"{SHORT}  1000 bytes  15 of 15+3 stacks") for line in listed)
    assert run("--blob", str(SHORT), "--out", out).returncode == 0
    assert out.read_bytes() == read(disks, SHORT)
    paths(disks, SHORT)[0].unlink()
    failed = run("--blob", str(SHORT), "--out", out)
    assert failed.returncode == 1
    assert "14 stacks can be used for stripe 0, and 15 are needed" in failed.stderr
