"""Stacks as docs/formats/stack.md has them: a blob's bytes from any k of them.

Written from the document, not from the program. It needs nothing but Python and `codes.py` beside
it, so that a rack's disks can be read without Fulgurite:

    python3 stack.py DISK...                          # which blobs there are
    python3 stack.py --blob ID --out FILE DISK...     # one of them

A DISK is a folder with disks or stacks anywhere below it, or a stack. It is not a fast reader, and
it holds a whole blob in memory.
"""

from __future__ import annotations

import argparse
import struct
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import codes

HEADER_MAGIC = b"FULGSTCK"
TRAILER_MAGIC = b"FULGSTKE"
HEADER_FIELDS = struct.Struct("<8sBBBBI16s16sII")
TRAILER_FIELDS = struct.Struct("<8s16sB7xQQQQ")
FRAGMENT_BYTES = 131_072
HEADER_ALIGN = 4096
ENTRY_BYTES_MAX = 65_536
SUM = struct.Struct("<Q")
VERSION = 1


class StackError(Exception):
    """A file is no stack that can be used."""


class BlobError(Exception):
    """A blob cannot be read from the stacks that there are."""


def _table() -> list[int]:
    """CRC-64/NVME of each byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x9A6C9329AC4BC9B5 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc64(data: bytes) -> int:
    """CRC-64/NVME: bits reflected, all ones at the beginning and added at the end."""
    ones = (1 << 64) - 1
    value = ones
    for byte in data:
        value = TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ ones


def has_sum(data: bytes) -> bool:
    """Whether the last 8 bytes are the sum of all before."""
    return len(data) > SUM.size and SUM.unpack(data[-SUM.size :])[0] == crc64(data[: -SUM.size])


@dataclass(frozen=True)
class Blob:
    """What all stacks of a blob say of it."""

    rack: uuid.UUID
    blob: uuid.UUID
    k: int
    r: int
    length: int
    sequence: int
    sum: int
    entry: bytes

    @property
    def stripe_bytes(self) -> int:
        """Bytes of a stripe that is not the last."""
        return self.k * FRAGMENT_BYTES

    @property
    def stripes(self) -> int:
        """How many there are."""
        return -(-self.length // self.stripe_bytes)

    def data_bytes(self, stripe: int) -> int:
        """Bytes of the blob that are in a stripe."""
        return min(self.stripe_bytes, self.length - stripe * self.stripe_bytes)

    def fragment_bytes(self, stripe: int) -> int:
        """Bytes of each fragment of a stripe."""
        return -(-self.data_bytes(stripe) // self.k)


class Stack:
    """One stack, whose header, length and trailer were checked."""

    def __init__(self, path: Path) -> None:
        """Read the file; `StackError` says why it cannot be used."""
        self.path = path
        self.bytes = path.read_bytes()
        header = self._header()
        trailer = self._trailer()
        _, _, k, r, self.index, fragment, rack, blob, _, entry = header
        if fragment != FRAGMENT_BYTES or not 0 < k + r <= 255 or self.index >= k + r:
            raise StackError("a header with numbers that cannot be")
        if (blob, self.index) != trailer[1:3]:
            raise StackError("the trailer is another stack's")
        begin = HEADER_FIELDS.size
        self.of = Blob(
            rack=uuid.UUID(bytes=rack),
            blob=uuid.UUID(bytes=blob),
            k=k,
            r=r,
            length=trailer[3],
            sequence=trailer[4],
            sum=trailer[5],
            entry=self.bytes[begin : begin + entry],
        )
        need = self.header_bytes + TRAILER_FIELDS.size
        if self.of.stripes:
            last = self.of.stripes - 1
            need += self._offset(last) + self.of.fragment_bytes(last) + SUM.size
        if len(self.bytes) != need:
            raise StackError(f"{len(self.bytes)} bytes long instead of {need}")

    def _header(self) -> tuple:
        if not self.bytes.startswith(HEADER_MAGIC):
            raise StackError("it does not begin as a stack")
        if len(self.bytes) < HEADER_ALIGN:
            raise StackError("cut in its header")
        fields = HEADER_FIELDS.unpack_from(self.bytes)
        if fields[1] != VERSION:
            raise StackError(f"version {fields[1]}, which this reader does not know")
        self.header_bytes, entry = fields[8:]
        room = self.header_bytes - HEADER_FIELDS.size - SUM.size
        if self.header_bytes % HEADER_ALIGN or not has_sum(self.bytes[: self.header_bytes]):
            raise StackError("its header is damaged")
        if entry > min(room, ENTRY_BYTES_MAX):
            raise StackError("an entry that is too long")
        return fields

    def _trailer(self) -> tuple:
        trailer = self.bytes[-TRAILER_FIELDS.size :]
        if not trailer.startswith(TRAILER_MAGIC):
            raise StackError("never finished, or without its end")
        if not has_sum(trailer):
            raise StackError("its trailer is damaged")
        return TRAILER_FIELDS.unpack(trailer)

    @staticmethod
    def _offset(stripe: int) -> int:
        return stripe * (FRAGMENT_BYTES + SUM.size)

    def fragment(self, stripe: int) -> bytes | None:
        """Return the fragment of a stripe; None if it is damaged."""
        begin = self.header_bytes + self._offset(stripe)
        end = begin + self.of.fragment_bytes(stripe)
        where = self.of.blob.bytes + bytes([self.index]) + SUM.pack(stripe)
        fragment = self.bytes[begin:end]
        return fragment if has_sum(where + self.bytes[begin : end + SUM.size]) else None


class Found:
    """The stacks of one blob, and what is wrong with the others that have its name."""

    def __init__(self, of: Blob) -> None:
        """Begin with none."""
        self.of = of
        self.stacks: list[Stack] = []
        self.faults: list[str] = []

    def read(self) -> bytes:
        """Return the blob's bytes; `BlobError` when too many stacks are lost."""
        parts = [self._stripe(stripe) for stripe in range(self.of.stripes)]
        data = b"".join(parts)
        if crc64(data) != self.of.sum:
            raise BlobError(f"blob {self.of.blob}: the sum of its bytes is another")
        return data

    def _stripe(self, stripe: int) -> bytes:
        shards: list[bytes | None] = [None] * (self.of.k + self.of.r)
        faults = []
        for stack in self.stacks:
            # A stack may be on two disks; one good fragment is enough.
            if shards[stack.index] is None:
                shards[stack.index] = stack.fragment(stripe)
            if shards[stack.index] is None:
                faults.append(f"{stack.path}: the fragment of stripe {stripe} is damaged")
        have = sum(shard is not None for shard in shards)
        if have < self.of.k:
            lost = [str(at) for at, shard in enumerate(shards) if shard is None]
            raise BlobError(
                f"blob {self.of.blob}: {have} stacks can be used for stripe {stripe}, and "
                f"{self.of.k} are needed; lost are {', '.join(lost)}"
                + "".join(f"; {fault}" for fault in self.faults + faults)
            )
        data = b"".join(codes.small(self.of.k, shards))
        return data[: self.of.data_bytes(stripe)]


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files that may be stacks."""
    for path in paths:
        yield from sorted(path.rglob("*.stack")) if path.is_dir() else [path]


def find(paths: Iterable[Path]) -> tuple[dict[uuid.UUID, Found], list[str]]:
    """Return the blobs of disks, and what is wrong with files that are in none."""
    by_blob: dict[Blob, Found] = {}
    faults: list[tuple[Path, str]] = []
    for path in files(paths):
        try:
            stack = Stack(path)
        except (StackError, OSError) as error:
            faults.append((path, f"{path}: {error}"))
            continue
        by_blob.setdefault(stack.of, Found(stack.of)).stacks.append(stack)
    # Of stacks that say different things of one blob, most are right.
    blobs: dict[uuid.UUID, Found] = {}
    for found in sorted(by_blob.values(), key=lambda found: -len(found.stacks)):
        if blobs.setdefault(found.of.blob, found) is not found:
            faults += [(stack.path, f"{stack.path}: of another blob") for stack in found.stacks]
    others = []
    for path, fault in faults:
        named = [found for id_, found in blobs.items() if path.name.startswith(f"{id_}.")]
        (named[0].faults if named else others).append(fault)
    return blobs, others


def main() -> int:
    """Run the command of the first lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--blob", type=uuid.UUID, help="id of the blob that is wanted")
    parser.add_argument("--out", type=Path, help="where its bytes go")
    parser.add_argument("disks", type=Path, nargs="+")
    args = parser.parse_args()
    if (args.blob is None) != (args.out is None):
        parser.error("--blob and --out belong together")
    blobs, faults = find(args.disks)
    if args.blob is None:
        for found in blobs.values():
            of, stacks = found.of, len({stack.index for stack in found.stacks})
            entry = of.entry.decode(errors="replace")
            print(f"{of.blob}  {of.length} bytes  {stacks} of {of.k}+{of.r} stacks  {entry}")
        faults += [fault for found in blobs.values() for fault in found.faults]
        print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
        return 0
    try:
        if args.blob not in blobs:
            raise BlobError(f"blob {args.blob}: none of its stacks is there to be used")
        args.out.write_bytes(blobs[args.blob].read())
    except BlobError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
