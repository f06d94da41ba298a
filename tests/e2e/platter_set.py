"""Platter-sets as docs/formats/platter.md has them: user bytes back from what is left.

Written from the document, not from the program: what this reads, any reader can read.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import codes
from blake3 import blake3
from platter import CHECKSUM_BYTES, KIND_HEADER, MAGIC, SECTOR_HEADER_BYTES, Platter

RECORD_MAGIC = b"FGPLSEAL"
RECORD_BYTES = 256
RECORD_COPIES = 4
LIST_MAGIC = b"FGFILELS"
INFORMATION, TRACK_REDUNDANCY, GROUP_REDUNDANCY = 1, 2, 3

Layers = list[bytes | None]
"""Payloads of a track, or of its information layers; None is lost."""


class Glass(Platter):
    """A platter whose sectors are verified and solved for."""

    def __init__(self, path: Path) -> None:
        """Read the file, its header, and what follows from that."""
        super().__init__(path)
        sizes = self.geometry
        self.information_sectors: int = sizes["track_information_sectors"]
        self.track_sectors: int = self.information_sectors + sizes["track_redundancy_sectors"]
        self.group_tracks: int = sizes["group_information_tracks"]
        self.group_redundancy: int = sizes["group_redundancy_tracks"]
        self.span: int = sizes["group_span_sectors"]
        self.user_bytes: int = self.header["data_bytes"] + self.header["list_bytes"]
        self.information_tracks = -(-self.user_bytes // self.track_bytes)
        groups = -(-self.information_tracks // self.group_tracks)
        self.track_count = 2 + self.information_tracks + groups * self.group_redundancy
        self.record_offset = self.track_count * self.track_sectors * self.sector_bytes

    @property
    def track_bytes(self) -> int:
        """User bytes of a track."""
        return self.information_sectors * self.payload_bytes

    def kind(self, place: int, layer: int) -> int:
        """What kind of sector belongs there."""
        if place in (0, self.track_count - 1):
            return KIND_HEADER
        if layer >= self.information_sectors:
            return TRACK_REDUNDANCY
        group, at = divmod(place - 1, self.group_tracks + self.group_redundancy)
        here = min(self.group_tracks, self.information_tracks - group * self.group_tracks)
        return INFORMATION if at < here else GROUP_REDUNDANCY

    def sector_header(self, place: int, layer: int) -> bytes:
        """The header of the sector of this place, which follows from what is known."""
        head = MAGIC + struct.pack("<HBB", 1, self.kind(place, layer), 0)
        head += struct.pack("<IHH", place, layer, 0)
        head += struct.pack("<III", self.header["generation"], self.payload_bytes, 0)
        head += uuid.UUID(self.header["archive"]).bytes + uuid.UUID(self.header["platter"]).bytes
        return head.ljust(SECTOR_HEADER_BYTES, b"\0")

    def payload(self, place: int, layer: int) -> bytes | None:
        """The payload of a sector, if it is good."""
        at = (place * self.track_sectors + layer) * self.sector_bytes
        sector = bytes(self.bytes[at : at + self.sector_bytes])
        content, checksum = sector[:-CHECKSUM_BYTES], sector[-CHECKSUM_BYTES:]
        is_good = (
            len(sector) == self.sector_bytes
            and content.startswith(self.sector_header(place, layer))
            and blake3(content).digest() == checksum
        )
        return content[SECTOR_HEADER_BYTES:] if is_good else None

    def information_place(self, track: int) -> int:
        """Where in the file an information track is."""
        return 1 + track + track // self.group_tracks * self.group_redundancy

    def layers(self, place: int) -> Layers:
        """Information layers of a track, by its own code if that is enough."""
        found = [self.payload(place, layer) for layer in range(self.track_sectors)]
        try:
            return list(codes.small(self.information_sectors, found))
        except codes.TooManyLostError:
            return found[: self.information_sectors]

    def track(self, track: int) -> Layers:
        """Information layers of an information track, by its large group where that helps."""
        found = self.layers(self.information_place(track))
        for first in range(0, self.information_sectors, self.span):
            layers = range(first, min(first + self.span, self.information_sectors))
            if any(found[layer] is None for layer in layers):
                self.solve_column(track, layers, found)
        return found

    def solve_column(self, track: int, layers: range, found: Layers) -> None:
        """Fill in the layers of one column, if the group's code can."""
        group = track // self.group_tracks
        begin, end = group * self.group_tracks, (group + 1) * self.group_tracks
        shards: Layers = []
        for other in range(begin, end):
            if other >= self.information_tracks:
                shards += [bytes(self.payload_bytes)] * len(layers)
            else:
                whole = self.layers(self.information_place(other))
                shards += [whole[layer] for layer in layers]
        behind = 1 + min(end, self.information_tracks) + group * self.group_redundancy
        for redundancy in range(self.group_redundancy):
            whole = self.layers(behind + redundancy)
            shards += [whole[layer] for layer in layers]
        try:
            solved = codes.large(self.group_tracks * len(layers), shards)
        except codes.TooManyLostError:
            return
        own = track % self.group_tracks * len(layers)
        for at, layer in enumerate(layers):
            found[layer] = solved[own + at]

    def final_record(self) -> dict[str, int | bytes] | None:
        """The final record behind the last track, if a copy is valid."""
        for copy in range(RECORD_COPIES):
            at = self.record_offset + copy * RECORD_BYTES
            record = bytes(self.bytes[at : at + RECORD_BYTES])
            if record.startswith(RECORD_MAGIC) and blake3(record[:224]).digest() == record[224:]:
                tracks, sectors, payload = struct.unpack_from("<III", record, 48)
                user, file = struct.unpack_from("<QQ", record, 64)
                return {
                    "tracks": tracks,
                    "sectors": sectors,
                    "payload": payload,
                    "user": user,
                    "file": file,
                    "digest": record[80:112],
                }
        return None


class PlatterSet:
    """What is left of a set, by position."""

    def __init__(self, platters: Sequence[Glass]) -> None:
        """Take platters of one set in any order; the first one's header speaks for the set."""
        header = platters[0].header
        sizes = header["geometry"]
        self.members: list[dict[str, Any] | None] = header["members"]
        self.information: int = sizes["set_information_platters"]
        self.payload_bytes = platters[0].payload_bytes
        self.layers = platters[0].information_sectors
        ids = {platter.header["platter"]: platter for platter in platters}
        self.platters = [ids.get(member["platter"]) if member else None for member in self.members]

    def tracks_of(self, position: int) -> int:
        """Information tracks of a member."""
        member = self.members[position]
        if member is None:
            return 0
        size = member["data_bytes"] + member["list_bytes"]
        return -(-size // (self.layers * self.payload_bytes))

    def shards(self, track: int) -> list[Layers]:
        """Layers of a track of every member, as far as each can give them alone."""
        found: list[Layers] = []
        for position, platter in enumerate(self.platters):
            is_there = track < self.tracks_of(position)
            if platter is not None and is_there:
                found.append(platter.track(track))
            elif position < self.information and not is_there:
                found.append([bytes(self.payload_bytes)] * self.layers)
            else:
                found.append([None] * self.layers)
        return found

    def track(self, position: int, track: int) -> list[bytes]:
        """A track of an information platter, from the set where its platter cannot give it."""
        platter = self.platters[position]
        own = platter.track(track) if platter else [None] * self.layers
        whole = [payload for payload in own if payload is not None]
        if len(whole) == self.layers:
            return whole
        shards = self.shards(track)
        words = ([member[layer] for member in shards] for layer in range(self.layers))
        return [codes.small(self.information, word)[position] for word in words]

    def user_bytes(self, position: int) -> bytes:
        """Bodies and file list of an information platter."""
        member = self.members[position]
        assert member is not None, "it was never written"
        tracks = range(self.tracks_of(position))
        whole = b"".join(b"".join(self.track(position, track)) for track in tracks)
        size = member["data_bytes"] + member["list_bytes"]
        assert not any(whole[size:]), "what is behind the last byte is zeros"
        return whole[:size]

    def file_list(self, position: int) -> list[tuple[uuid.UUID, int, int]]:
        """Entries of a platter's file list: body, first byte, bytes. Checked by its digest."""
        member = self.members[position]
        assert member is not None
        text = self.user_bytes(position)[member["data_bytes"] :]
        version, _, count, size = struct.unpack_from("<HHIQ", text, 8)
        assert text.startswith(LIST_MAGIC) and version == 1 and size == len(text)
        assert uuid.UUID(bytes=text[32:48]) == uuid.UUID(member["platter"])
        assert blake3(text[:-CHECKSUM_BYTES]).digest() == text[-CHECKSUM_BYTES:]
        entries, at = [], 64
        for _ in range(count):
            first, length = struct.unpack_from("<QQ", text, at + 16)
            (sealed,) = struct.unpack_from("<I", text, at + 48)
            entries.append((uuid.UUID(bytes=text[at : at + 16]), first, length))
            at += 64 + sealed
        assert at == len(text) - CHECKSUM_BYTES
        return entries


def digest(glass: Glass, solved: PlatterSet) -> bytes:
    """BLAKE3 of the checksums of all sectors, those of lost sectors rebuilt.

    Only information sectors are rebuilt: what is lost of a track's redundancy, this does not
    compute, so a platter whose redundancy is damaged has no digest here.
    """
    total = blake3()
    information = {glass.information_place(at): at for at in range(glass.information_tracks)}
    position = glass.header["role"]["index"]
    for place in range(glass.track_count):
        for layer in range(glass.track_sectors):
            payload = glass.payload(place, layer)
            if payload is None:
                payload = solved.track(position, information[place])[layer]
            total.update(blake3(glass.sector_header(place, layer) + payload).digest())
    return total.digest()
