"""Platter files as docs/formats/platter.md has them: read the header, spoil sectors and tracks.

Written from the document, not from the program: what this finds, any reader can find.
"""

from __future__ import annotations

import json
import random
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"FGSECTOR"
SECTOR_HEADER_BYTES = 96
CHECKSUM_BYTES = 32
PAGE_HEADER_BYTES = 16
KIND_HEADER = 0


@dataclass(frozen=True)
class Sector:
    """The position of a sector, and its header."""

    offset: int
    track: int
    layer: int
    kind: int


class Platter:
    """One platter file, in memory; `save` writes it back."""

    def __init__(self, path: Path) -> None:
        """Read the file and its header."""
        self.path = path
        self.bytes = bytearray(path.read_bytes())
        assert self.bytes.startswith(MAGIC), f"{path} does not begin with a sector"
        (self.payload_bytes,) = struct.unpack_from("<I", self.bytes, 24)
        self.sector_bytes = SECTOR_HEADER_BYTES + self.payload_bytes + CHECKSUM_BYTES
        self.sectors = self._find_sectors()
        self.header = self._read_header()

    def _find_sectors(self) -> list[Sector]:
        found = []
        for offset in range(0, len(self.bytes) - self.sector_bytes + 1, self.sector_bytes):
            if self.bytes[offset : offset + len(MAGIC)] != MAGIC:
                break
            kind = self.bytes[offset + 10]
            track, layer = struct.unpack_from("<IH", self.bytes, offset + 12)
            found.append(Sector(offset, track, layer, kind))
        return found

    def _read_header(self) -> dict[str, Any]:
        pages: dict[int, bytes] = {}
        json_bytes = 0
        for sector in self.sectors:
            if sector.kind != KIND_HEADER:
                break
            begin = sector.offset + SECTOR_HEADER_BYTES
            page, _, json_bytes, _ = struct.unpack_from("<IIII", self.bytes, begin)
            pages[page] = bytes(self.bytes[begin + PAGE_HEADER_BYTES : begin + self.payload_bytes])
        document = b"".join(pages[page] for page in sorted(pages))
        return json.loads(document[:json_bytes])["platter"]

    @property
    def geometry(self) -> dict[str, Any]:
        """The numbers of the platter."""
        return self.header["geometry"]

    @property
    def is_information(self) -> bool:
        """Whether the platter holds user bytes."""
        return self.header["role"]["kind"] == "information"

    def tracks(self) -> dict[int, list[Sector]]:
        """Sectors by track, header tracks left out."""
        by_track: dict[int, list[Sector]] = {}
        for sector in self.sectors:
            if sector.kind != KIND_HEADER:
                by_track.setdefault(sector.track, []).append(sector)
        return by_track

    def groups(self) -> list[list[int]]:
        """Tracks by large group, in their order on the platter."""
        size = self.geometry["group_information_tracks"] + self.geometry["group_redundancy_tracks"]
        tracks = sorted(self.tracks())
        return [tracks[at : at + size] for at in range(0, len(tracks), size)]

    def spoil(self, sector: Sector, rng: random.Random) -> None:
        """Change one byte of a sector, anywhere in it."""
        self.bytes[sector.offset + rng.randrange(self.sector_bytes)] ^= rng.randrange(1, 256)

    def spoil_sectors(self, count: int, rng: random.Random) -> None:
        """Spoil `count` sectors of every track."""
        for sectors in self.tracks().values():
            for sector in rng.sample(sectors, count):
                self.spoil(sector, rng)

    def spoil_tracks(self, count: int, rng: random.Random) -> None:
        """Spoil `count` whole tracks of every large group."""
        tracks = self.tracks()
        for group in self.groups():
            for track in rng.sample(group, min(count, len(group))):
                for sector in tracks[track]:
                    self.spoil(sector, rng)

    def save(self) -> None:
        """Write the file back, its owner's alone as it was."""
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(self.bytes)
        self.path.chmod(0o600)
