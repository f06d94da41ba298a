"""What tests of power cuts have in common: a load that was recorded, and places to cut it at."""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from disk_model import MODES
from fault_shim import Record, Shim
from harness import Server, wait_until
from recorded_run import Loss, RecordedDriver

LOAD_SECONDS_MAX = 300.0
# Calls at which most is decided: syncs, renames, removals, creations and truncations.
DECISIVE = "SERUCT"
# What a message of a failure shows of them.
LOSSES_SHOWN = 10
LOSS_LENGTH = 1_000
Classes = dict[str, Callable[[str], bool]]


@dataclass
class Run:
    """A load that was recorded: what the archive called, and what it acknowledged."""

    shim: Shim
    driver: RecordedDriver
    records: list[Record] = field(default_factory=list)
    bucket_made: int = 0
    life_begins: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Cut:
    """After which record the power goes, the moment that is, and what the disk keeps."""

    index: int
    moment: int
    mode: str


def wait_loaded(server: Server, is_enough: Callable[[], bool]) -> None:
    """Wait until the archive has acknowledged its share."""

    def is_done() -> bool:
        assert server.is_running(), server.tail()
        return is_enough()

    wait_until("the load is acknowledged", is_done, LOAD_SECONDS_MAX)


def plan(
    run: Run, count: int, rng: random.Random, classes: Classes | None = None, begin: int = 0
) -> list[Cut]:
    """Places to cut: anywhere, and at the calls where most is decided; in the order of the run.

    Of those the calls of each class of files are as likely as those of another. None is before the
    record `begin`.
    """
    records = run.records
    places: dict[tuple[str, str], list[int]] = {}
    for at, record in enumerate(records[begin:], begin):
        if record.op in DECISIVE:
            for name, is_of in (classes or {"": lambda _path: True}).items():
                if is_of(record.path):
                    places.setdefault((name, record.op), []).append(at)
    names = sorted({name for name, _ in places})
    cuts = []
    for number in range(count):
        near = places.get((rng.choice(names), rng.choice(DECISIVE)), []) if number % 2 else []
        index = rng.choice(near) if near else rng.randrange(begin, len(records))
        # Just before or just after that call.
        index = max(index - rng.randrange(2), begin)
        cuts.append(Cut(index, records[index].end, MODES[number % len(MODES)]))
    return sorted(cuts, key=lambda cut: cut.index)


def describe(run: Run, cut: Cut, losses: list[Loss]) -> str:
    """What a cut lost, and between which calls it was."""
    life = bisect.bisect(run.life_begins, cut.moment)
    around = run.records[max(cut.index - 3, 0) : cut.index + 2]
    calls = ", ".join(f"{it.op} {it.path.removeprefix(str(run.shim.root))}" for it in around)
    report = "\n  ".join(f"{loss.key}: {loss.what[:LOSS_LENGTH]}" for loss in losses[:LOSSES_SHOWN])
    report += f"\n  and {len(losses) - LOSSES_SHOWN} more" if len(losses) > LOSSES_SHOWN else ""
    return f"{cut} in life {life}, near {calls}:\n  {report}"
