"""Models a disk at a power cut: synced data is there, unsynced data may be.

The model takes the records of the shim in order and keeps, for each file and each folder, what is
on stable storage and the changes that are not. From these it builds a directory in one of three
ways; each is a state that the rules of that way permit, not the state of a real disk:

    strict     only what was synced: a file's bytes by a sync of the file, its name by a sync of
               its folder (POSIX promises no more)
    ordered    as ext4 with data=ordered: names, cuts and holes in the order they were made, up to
               some moment after the last sync; appended bytes before the size that shows them;
               overwritten pages each old or new
    reordered  any subset of what was not synced, by pages or by sectors of 512 bytes
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fault_shim import Record

PAGE_BYTES = 4096
SECTOR_BYTES = 512
MODES = ["strict", "ordered", "reordered"]
Blind = Callable[[str], bool]


@dataclass
class Contents:
    """The bytes of a file; a page that is not there is a hole."""

    pages: dict[int, bytes] = field(default_factory=dict)
    size: int = 0

    def copy(self) -> Contents:
        """Copy it; pages are never changed in place."""
        return Contents(dict(self.pages), self.size)

    def write(self, offset: int, data: bytes) -> None:
        """Put bytes anywhere; the file grows as needed."""
        at = 0
        while at < len(data):
            page, skip = divmod(offset + at, PAGE_BYTES)
            now = data[at : at + PAGE_BYTES - skip]
            if len(now) < PAGE_BYTES:
                old = self.pages.get(page, bytes(PAGE_BYTES))
                self.pages[page] = old[:skip] + now + old[skip + len(now) :]
            else:
                self.pages[page] = now
            at += len(now)
        self.size = max(self.size, offset + len(data))

    def truncate(self, size: int) -> None:
        """Cut the file, or let it grow by a hole."""
        if size < self.size:
            self.punch(size, self.size - size)
        self.size = size

    def punch(self, offset: int, size: int) -> None:
        """Turn a stretch into zeros; the size stays."""
        end = min(offset + size, self.size)
        first, last = offset // PAGE_BYTES, -(-end // PAGE_BYTES)
        for page in [page for page in self.pages if first <= page < last]:
            start = page * PAGE_BYTES
            if offset <= start and start + PAGE_BYTES <= end:
                del self.pages[page]
            else:
                low, high = max(offset - start, 0), min(end - start, PAGE_BYTES)
                old = self.pages[page]
                self.pages[page] = old[:low] + bytes(high - low) + old[high:]

    def save(self, path: Path) -> None:
        """Write it as a sparse file."""
        with path.open("wb") as file:
            for page, data in self.pages.items():
                start = page * PAGE_BYTES
                if start < self.size:
                    file.seek(start)
                    file.write(data[: self.size - start])
            file.truncate(self.size)


@dataclass
class Change:
    """One change of a file that is not on stable storage yet."""

    at: int
    op: str
    offset: int
    size: int
    data: bytes
    # A sync of it failed: the system counts it as clean, and no later sync writes it.
    is_dropped: bool = False

    def apply(self, to: Contents) -> None:
        """Make the change."""
        if self.op == "W" and not self.is_dropped:
            to.write(self.offset, self.data)
        elif self.op == "W":
            to.size = max(to.size, self.offset + len(self.data))
        elif self.op == "T":
            to.truncate(self.offset)
        elif self.op == "P":
            to.punch(self.offset, self.size)
        elif self.op == "A":
            to.size = max(to.size, self.offset + self.size)


@dataclass
class File:
    """A file: what is stable, and what was done since."""

    stable: Contents = field(default_factory=Contents)
    pending: list[Change] = field(default_factory=list)

    def settle(self, until: int) -> None:
        """A sync that began at `until` has ended."""
        for change in self.pending:
            if change.at <= until:
                change.apply(self.stable)
        self.pending = [change for change in self.pending if change.at > until]

    def drop(self, until: int) -> None:
        """A sync that began at `until` has failed."""
        for change in self.pending:
            change.is_dropped |= change.op == "W" and change.at <= until


@dataclass
class Naming:
    """One change of a folder's names: each name and its node, or None."""

    at: int
    names: dict[str, int | None]


@dataclass
class Folder:
    """A folder: the names that are stable, all names, and what was done since."""

    stable: dict[str, int] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)
    pending: list[Naming] = field(default_factory=list)

    def change(self, at: int, names: dict[str, int | None]) -> None:
        """Name, rename or unlink."""
        naming = Naming(at, names)
        rename(self.now, naming)
        self.pending.append(naming)

    def settle(self, until: int) -> None:
        """A sync that began at `until` has ended."""
        for naming in self.pending:
            if naming.at <= until:
                rename(self.stable, naming)
        self.pending = [naming for naming in self.pending if naming.at > until]


def rename(names: dict[str, int], naming: Naming) -> None:
    """Apply one change to a folder's names."""
    for name, node in naming.names.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """All files and folders below a root that was empty at first."""

    def __init__(self, root: Path, blind: Blind | None = None) -> None:
        """Begin empty; syncs of paths that `blind` names are not seen."""
        self._root = str(root)
        self._blind = blind or (lambda _path: False)
        self._nodes: list[File | Folder] = [Folder()]
        # The node that an inode number means now; numbers are used again.
        self._inodes: dict[int, int] = {}
        self._syncs: dict[int, tuple[int, int]] = {}
        self._at = 0
        self._last_sync = 0
        self.unseen: list[str] = []

    def take(self, records: Iterable[Record]) -> None:
        """Follow the archive."""
        for record in records:
            self._at += 1
            self._take(record)

    def _take(self, record: Record) -> None:
        match record.op:
            case "C" | "M":
                self._create(record)
            case "W" | "T" | "P" | "A":
                file = self._nodes[self._inodes[record.file]]
                assert isinstance(file, File), record.path
                change = Change(self._at, record.op, record.offset, record.size, record.data)
                file.pending.append(change)
            case "S":
                node = self._sync_node(record)
                if node is not None and not self._blind(record.path):
                    self._syncs[record.offset] = (node, self._at)
            case "E":
                self._end_sync(record)
            case "R" | "L":
                self._move(record, record.data.decode())
            case "U":
                folder, name = self._parent(record.path)
                folder.change(self._at, {name: None})
            case "!":
                self.unseen.append(f"{record.call} of {record.path}")
            case "I":
                pass
            case other:
                raise AssertionError(f"a record of kind {other!r}")

    def _create(self, record: Record) -> None:
        node = 0
        if record.path != self._root:
            node = len(self._nodes)
            self._nodes.append(Folder() if record.op == "M" else File())
            folder, name = self._parent(record.path)
            folder.change(self._at, {name: node})
        self._inodes[record.file] = node

    def _sync_node(self, record: Record) -> int | None:
        if record.path == self._root:
            return 0
        # What was there before the run is not followed.
        return self._inodes.get(record.file)

    def _end_sync(self, record: Record) -> None:
        node, begin = self._syncs.pop(record.offset, (None, 0))
        if node is None:
            return
        target = self._nodes[node]
        if not record.error:
            target.settle(begin)
            self._last_sync = max(self._last_sync, begin)
        elif isinstance(target, File):
            target.drop(begin)

    def _move(self, record: Record, to: str) -> None:
        (old, old_name), (new, new_name) = self._parent(record.path), self._parent(to)
        node = old.now[old_name]
        if record.op == "L":
            new.change(self._at, {new_name: node})
        elif old is new:
            old.change(self._at, {old_name: None, new_name: node})
        else:
            new.change(self._at, {new_name: node})
            old.change(self._at, {old_name: None})

    def _parent(self, path: str) -> tuple[Folder, str]:
        """Return the folder of a path, and its name there."""
        assert path.startswith(self._root + "/"), path
        *folders, name = path[len(self._root) + 1 :].split("/")
        node = self._nodes[0]
        for folder in folders:
            assert isinstance(node, Folder), path
            node = self._nodes[node.now[folder]]
        assert isinstance(node, Folder), path
        return node, name

    def cut(self, mode: str, rng: random.Random, target: Path) -> None:
        """Build at `target` what a power cut now may leave."""
        moment = rng.randint(self._last_sync, max(self._at, self._last_sync))
        self._save(0, target, mode, rng, moment)

    def _save(self, node: int, path: Path, mode: str, rng: random.Random, moment: int) -> None:
        found = self._nodes[node]
        if isinstance(found, File):
            contents_after(found, mode, rng, moment).save(path)
            return
        path.mkdir(mode=0o700)
        names = dict(found.stable)
        for naming in found.pending:
            is_kept = mode == "ordered" and naming.at <= moment
            if is_kept or (mode == "reordered" and rng.random() < 0.5):
                rename(names, naming)
        for name, inner in names.items():
            self._save(inner, path / name, mode, rng, moment)


def contents_after(file: File, mode: str, rng: random.Random, moment: int) -> Contents:
    """What a power cut may leave of a file."""
    contents = file.stable.copy()
    if mode == "strict" or not file.pending:
        return contents
    if mode == "reordered":
        unit = rng.choice([SECTOR_BYTES, PAGE_BYTES])
        for change in file.pending:
            for piece in pieces(change, unit):
                if rng.random() < 0.5:
                    piece.apply(contents)
        return contents
    # Appended bytes reach the disk in some order before the size that shows them does.
    appended = rng.randint(0, len(file.pending))
    for index, change in enumerate(file.pending):
        if change.op != "W":
            if change.at <= moment:
                change.apply(contents)
            continue
        for piece in pieces(change, PAGE_BYTES):
            is_overwrite = piece.offset // PAGE_BYTES in contents.pages
            if rng.random() < 0.5 if is_overwrite else index < appended:
                piece.apply(contents)
    return contents


def pieces(change: Change, unit: int) -> list[Change]:
    """Cut a write at multiples of `unit`; other changes are one piece."""
    if change.op != "W":
        return [change]
    found, at = [], 0
    while at < len(change.data):
        size = unit - (change.offset + at) % unit
        data = change.data[at : at + size]
        offset = change.offset + at
        found.append(Change(change.at, "W", offset, len(data), data, change.is_dropped))
        at += size
    return found
