"""The shim between the archive and its disk: built, controlled, and what it wrote down.

`shim.c` says how it works. It writes every call that changes the data directory into one file, so
the length of that file is the clock of a run: whatever the archive did before it answered a request
stands before the length that is seen after the answer.
"""

from __future__ import annotations

import errno
import functools
import mmap
import platform
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import Server

SOURCE = Path(__file__).with_name("shim.c")
PAGE_BYTES = 4096
# Classes of calls, in the order of shim.c.
CLASSES = [
    "open", "create", "write", "sync", "truncate", "allocate", "rename", "unlink", "mkdir",
    # An open for writing of what is there, which is an "open" as well.
    "modify",
    # Only with `reads`; where "statfs" fails nothing is free.
    "read", "statfs",
]  # fmt: skip
MODES = {"idle": 0, "once": 1, "always": 2, "short": 3}
HEADER = struct.Struct("<cbhIQQQ")
# mode, classes, errno, countdown, fired, calls of each class, match
CONTROL = struct.Struct(f"<IIiiI{len(CLASSES)}I256s")
MATCH_BYTES_MAX = 255
# Behind that: whether to pause, and whether a call does.
PAUSE_AT = CONTROL.size
PAUSE_SECONDS = 2.0


def missing() -> str | None:
    """Return what this machine lacks for the shim, if anything."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the shim knows Linux on x86-64, not {platform.system()} on {platform.machine()}"
    return None if shutil.which("cc") else "no C compiler (cc)"


@functools.cache
def library(folder: Path) -> Path:
    """Build the shim in `folder`."""
    path = folder / "shim.so"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", str(path), str(SOURCE)], check=True)
    return path


@dataclass(frozen=True)
class Record:
    """One call, and how long the file of records was after it."""

    end: int
    op: str
    call: str
    error: int
    path: str
    file: int
    offset: int
    size: int
    data: bytes


class Shim:
    """The shim of one data directory, over all lives of its archive."""

    def __init__(self, folder: Path, root: Path, reads: bool = False) -> None:
        """Build it; `root` is the directory it watches, and `reads` whether reads may fail."""
        self._reads = reads
        folder.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self.log = folder / "calls"
        self.log.touch()
        self._library = library(folder.resolve().parent)
        self._control_path = folder / "control"
        self._control_path.write_bytes(bytes(PAGE_BYTES))
        with self._control_path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), PAGE_BYTES)

    def environment(self) -> dict[str, str]:
        """Environment that makes a process run under the shim."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAULT_ROOT": str(self.root),
            "FAULT_LOG": str(self.log),
            "FAULT_CONTROL": str(self._control_path),
            **({"FAULT_READS": "1"} if self._reads else {}),
        }

    def position(self) -> int:
        """Return the time on this run's clock."""
        return self.log.stat().st_size

    def arm(
        self, mode: str, calls: list[str], error: int = errno.EIO, after: int = 1, match: str = ""
    ) -> None:
        """Let the `after`-th of these calls fail from now on, on paths that contain `match`."""
        encoded = match.encode()
        assert len(encoded) <= MATCH_BYTES_MAX, match
        classes = sum(1 << CLASSES.index(name) for name in calls)
        counted = [0] * len(CLASSES)
        # Armed last: the process reads the page while it is written.
        page = CONTROL.pack(0, classes, error, after, 0, *counted, encoded)
        self._control[: CONTROL.size] = page
        self._control[:4] = struct.pack("<I", MODES[mode])

    def disarm(self) -> int:
        """Let no call fail any more; how many did."""
        self._control[:4] = struct.pack("<I", MODES["idle"])
        return self.fired()

    def kill(self, server: Server) -> None:
        """Kill a process while none of its calls is made but not yet recorded."""
        self._control[PAUSE_AT : PAUSE_AT + 8] = struct.pack("<II", 1, 0)
        ends = time.monotonic() + PAUSE_SECONDS
        # Who makes no call for so long is within none.
        while not self._is_paused() and time.monotonic() < ends:
            time.sleep(0.001)
        server.kill()
        self._control[PAUSE_AT : PAUSE_AT + 8] = struct.pack("<II", 0, 0)

    def _is_paused(self) -> bool:
        return bool(struct.unpack_from("<I", self._control, PAUSE_AT + 4)[0])

    def fired(self) -> int:
        """Count the calls that failed since the shim was armed."""
        return int(CONTROL.unpack_from(self._control)[4])

    def calls(self) -> dict[str, int]:
        """Count the calls of each class since the shim was armed."""
        return dict(zip(CLASSES, CONTROL.unpack_from(self._control)[5:-1], strict=True))

    def records(self, until: int | None = None) -> list[Record]:
        """Return all records, up to a position."""
        return list(read_records(self.log, until))


def read_records(path: Path, until: int | None = None) -> Iterator[Record]:
    """Read a file of records; an incomplete last one is ignored."""
    with path.open("rb") as file:
        while head := file.read(HEADER.size):
            if len(head) < HEADER.size:
                return
            op, call, error, path_bytes, node, offset, size = HEADER.unpack(head)
            kind = op.decode()
            data_bytes = size if kind in "WRL" else 0
            rest = file.read(path_bytes + data_bytes)
            if len(rest) < path_bytes + data_bytes or (until is not None and file.tell() > until):
                return
            yield Record(
                end=file.tell(),
                op=kind,
                call=CLASSES[call] if call < len(CLASSES) else "unseen",
                error=error,
                path=rest[:path_bytes].decode(),
                file=node,
                offset=offset,
                size=size,
                data=rest[path_bytes:],
            )
