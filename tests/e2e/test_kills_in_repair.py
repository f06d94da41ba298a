"""Kills within what mends: `recover`, of the archive, a rack and tomes, and what mends losses.

Something is lost whose loss costs no object: a catalog, an index, a metadata store of a tome, a
whole tome, a site. The command that repairs it is killed several times in a row, at random moments
and at its fail points, and must have been at work at one kill at least. Then it completes, the
archive is started, and everything must be as it was acknowledged: objects that were replaced are
the last, those that were deleted are gone, every byte is read; and more is put and read.

FULGURITE_TEST_REPAIR_KILLS sets how often each is killed at random moments (2 in the gate).
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harness import (
    POLL_SECONDS,
    RACK,
    TINY_GEOMETRY,
    TOMES,
    Server,
    binary,
    is_restored,
    keys_of,
    read,
    restore,
    run,
    seed,
    wait_until,
)

KILLS = int(os.environ.get("FULGURITE_TEST_REPAIR_KILLS", "2"))
BUCKET = "kept"
# Commands that take longer do not end at all.
END_SECONDS = 300.0
KILLED = -9
# A tome that is not lost is not inventoried.
USAGE = 2
OBJECTS = 60
# Fail points that the move of a member slot passes, in this order.
SLOT_MOVE_POINTS = [
    "tomes-moves-planned",
    "tomes-adopted",
    "tomes-names-moved",
    "tomes-slot-recorded",
]
EACH: dict[str, Any] = {
    "profile": "demo",
    "geometry": TINY_GEOMETRY,
    "moves": {"bytes": "300KiB", "age": "1s"},
    "tiers": {
        "rack": RACK,
        "tomes": TOMES | {"count": 5, "segments": 8, "regions": 1, "spares": 128},
    },
}


@dataclass
class Archive:
    """An archive, and what was acknowledged."""

    server: Server
    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(seed()))

    def fill(self, classes: list[str]) -> None:
        """Put objects, replace some, delete some, and wait until none is staged."""
        s3 = self.server.start().s3()
        s3.create_bucket(Bucket=BUCKET)
        for at in range(OBJECTS):
            # The last ones replace some of the first.
            name, kind = f"{at % (OBJECTS - 10):03}", classes[at % len(classes)]
            size = 200_000 if at == OBJECTS // 2 else self.random.randrange(9_000)
            self.objects[name] = (kind, self.random.randbytes(size))
            s3.put_object(Bucket=BUCKET, Key=name, Body=self.objects[name][1], StorageClass=kind)
            if at == OBJECTS // 2:
                self.settle()
        for name in self.random.sample(sorted(self.objects), 10):
            s3.delete_object(Bucket=BUCKET, Key=name)
            del self.objects[name]
        self.settle()
        self.server.stop()

    def settle(self) -> None:
        """Wait until nothing is staged."""
        self.server.seal()
        wait_until("nothing is staged", lambda: self.server.status()["objects_staged"] == 0)

    def check(self) -> None:
        """Start it, and hold everything against what was acknowledged; then put and read more."""
        s3 = self.server.start().s3()
        listed = {item["Key"]: item["StorageClass"] for item in keys_of(s3, BUCKET)}
        assert listed == {name: kind for name, (kind, _) in self.objects.items()}
        self.read_all(s3)
        for kind in sorted({kind for kind, _ in self.objects.values()}):
            body = self.random.randbytes(5_000)
            self.objects[f"later {kind}"] = (kind, body)
            s3.put_object(Bucket=BUCKET, Key=f"later {kind}", Body=body, StorageClass=kind)
        self.settle()
        self.read_all(s3)

    def read_all(self, s3: Any) -> None:
        """Read every object, archived ones after a restore."""
        asked = [name for name, (kind, _) in self.objects.items() if kind in ARCHIVED]
        for name in asked:
            restore(s3, BUCKET, name)
        for name in asked:
            wait_until(f"{name} is restored", lambda name=name: is_restored(s3, BUCKET, name))
        for name, (_, body) in self.objects.items():
            assert read(s3, BUCKET, name) == body, name

    def check_without_each(self, mended: int) -> None:
        """Read everything without each tome beside the one that was mended, one at a time."""
        self.server.stop()
        folder = self.server.data / "tiers" / "tomes"
        back = copied(folder)
        used = {int(path.parent.name) for path in folder.glob("disks/*/blocks-*")} - {mended}
        assert len(used) >= 2, used
        for lost in used:
            lose_tome(folder, lost)
            self.read_all(self.server.start().s3())
            self.server.stop()
            back()

    def place(self) -> list[str]:
        """Return what names this archive to a command."""
        # Its tiers stand in the configuration that it was started with.
        config = str(self.server.folder / "config.toml")
        return ["--data", str(self.server.data), "--config", config]


ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")


@dataclass
class Command:
    """A command that mends something, and what loses the same again when all was mended."""

    archive: Archive
    words: list[str]
    lose: Callable[[], object]
    # What it ends with: well, or since nothing is lost.
    ends: tuple[int, ...] = (0,)
    seconds: float = 0.0

    def launch(self, point: str | None = None) -> subprocess.Popen[bytes]:
        """Begin it; it has itself killed at a fail point."""
        environment = self.archive.server.process_environment()
        if point is not None:
            environment["FULGURITE_FAIL_POINT"] = point
        with self.archive.server.log.open("ab") as log:
            command = [str(binary()), *self.words]
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def finish(self) -> None:
        """Run it to its end."""
        began = time.monotonic()
        self._ended(self.launch().wait(END_SECONDS))
        self.seconds = time.monotonic() - began

    def _ended(self, *codes: int) -> None:
        for code in codes:
            assert code in self.ends, f"{self.words}: {code}\n{self.archive.server.tail()}"

    def kill_at(self, point: str) -> bool:
        """Have it killed at a fail point; whether it came there."""
        code = self.launch(point).wait(END_SECONDS)
        if code != KILLED:
            # Those before may have left nothing of this step.
            self._ended(code)
            self.lose()
            code = self.launch(point).wait(END_SECONDS)
        return code == KILLED

    def kill_at_random(self) -> bool:
        """Kill it at some moment; whether it was still at work."""
        process = self.launch()
        try:
            code = process.wait(self.archive.random.uniform(0.0, self.seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code != KILLED:
            self._ended(code)
            self.lose()
        return code == KILLED

    def kill_over_and_over(self, points: dict[str, list[int]]) -> None:
        """Kill it at each point and at random moments, in random order, one after the other."""
        named = [f"{point}:{passages}" for point, counts in points.items() for passages in counts]
        kills: list[str | None] = [*named, *[None] * KILLS]
        self.archive.random.shuffle(kills)
        died = 0
        for point in kills:
            is_dead = self.kill_at_random() if point is None else self.kill_at(point)
            print(f"{self.words[:3]}: {point or 'at random'}: {is_dead}", flush=True)
            assert is_dead or point is None, f"it does not come to {point}"
            died += is_dead
        assert died, "it was killed at work"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Archive]]:
    """Make an archive that has objects of some classes, and does not run."""
    made: list[Archive] = []

    def one(classes: dict[str, str], **more: Any) -> Archive:
        tiers = {
            name: EACH["tiers"][name] for name in ("rack", "tomes") if name in classes.values()
        }
        config = EACH | {"classes": classes, "tiers": tiers | more}
        made.append(Archive(Server(tmp_path / "archive", config)))
        made[-1].fill(sorted(classes))
        return made[-1]

    yield one
    for archive in made:
        archive.server.kill()


def copied(folder: Path) -> Callable[[], None]:
    """Keep a copy of a folder, and return what brings it back."""
    kept = folder.with_name(folder.name + ".kept")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept)

    def back() -> None:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    return back


def lose_tome(folder: Path, tome: int) -> None:
    """Remove the disk of a tome and its metadata store."""
    shutil.rmtree(folder / "disks" / str(tome))
    shutil.rmtree(folder / f"tome-{tome:04}")


def test_recover_is_killed(make: Callable[..., Archive]) -> None:
    """Lose the catalog of an archive with glass, rack and tomes."""
    archive = make({"DEEP_ARCHIVE": "glass", "GLACIER": "rack", "GLACIER_IR": "tomes"})
    catalog = archive.server.data / "catalog"

    def lose() -> None:
        shutil.rmtree(catalog, ignore_errors=True)

    recover = Command(archive, ["recover", *archive.place()], lose)
    lose()
    recover.finish()
    lose()
    recover.kill_over_and_over({})
    lose()
    archive.server.launch()
    assert archive.server.process is not None
    assert archive.server.process.wait(END_SECONDS) != 0, "nothing is served without a catalog"
    recover.finish()
    archive.check()


def test_rack_recover_is_killed(make: Callable[..., Archive]) -> None:
    """Lose the index of a rack."""
    archive = make({"GLACIER": "rack"})
    index = archive.server.data / "tiers" / "rack" / "index"

    def lose() -> None:
        shutil.rmtree(index, ignore_errors=True)

    recover = Command(archive, ["tier", "recover", "rack", *archive.place()], lose)
    lose()
    recover.finish()
    lose()
    recover.kill_over_and_over({"rack-found": [0, 3, 20]})
    recover.finish()
    archive.check()


def test_tomes_recover_is_killed(make: Callable[..., Archive]) -> None:
    """Lose the index of a set of tomes."""
    archive = make({"GLACIER_IR": "tomes"})
    index = archive.server.data / "tiers" / "tomes" / "index"

    def lose() -> None:
        shutil.rmtree(index, ignore_errors=True)

    recover = Command(archive, ["tier", "recover", "tomes", *archive.place()], lose)
    lose()
    recover.finish()
    lose()
    recover.kill_over_and_over({})
    recover.finish()
    archive.check()


def test_inventory_is_killed(make: Callable[..., Archive]) -> None:
    """Lose the metadata store of a tome, but not its disk."""
    archive = make({"GLACIER_IR": "tomes"})
    store = archive.server.data / "tiers" / "tomes" / "tome-0001" / "awake"

    def lose() -> None:
        shutil.rmtree(store)

    inventory = Command(
        archive, ["tier", "inventory", "tomes", "1", *archive.place()], lose, ends=(0, USAGE)
    )
    lose()
    inventory.finish()
    lose()
    points = ["tomes-inventoried", "tomes-metadata-rebuilt", "tomes-metadata-recorded"]
    inventory.kill_over_and_over({point: [0] for point in points})
    inventory.finish()
    archive.check()
    archive.check_without_each(1)


def test_rebuild_is_killed(make: Callable[..., Archive]) -> None:
    """Lose a tome with its disk, and rebuild it on others."""
    archive = make({"GLACIER_IR": "tomes"})
    folder = archive.server.data / "tiers" / "tomes"
    back = copied(folder)

    def lose() -> None:
        back()
        lose_tome(folder, 1)

    rebuild = Command(archive, ["tier", "rebuild", "tomes", "1", *archive.place()], lose)
    lose()
    rebuild.finish()
    lose()
    rebuild.kill_over_and_over({point: [0] for point in SLOT_MOVE_POINTS})
    rebuild.finish()
    archive.check()
    archive.check_without_each(1)


def test_a_server_that_rebuilds_is_killed(make: Callable[..., Archive]) -> None:
    """Lose a tome with its disk, and rebuild it in a server; each start goes on by itself."""
    archive = make({"GLACIER_IR": "tomes"})
    server, folder = archive.server, archive.server.data / "tiers" / "tomes"
    lose_tome(folder, 1)
    rebuild = Command(archive, ["tier", "rebuild", "tomes", "1", *archive.place()], lambda: None)
    for point in SLOT_MOVE_POINTS:
        server.environment["FULGURITE_FAIL_POINT"] = f"{point}:0"
        server.launch()
        assert server.process is not None
        while server.is_running():
            # As soon as it answers; what was planned goes on without being asked for.
            if server.is_answering("/livez"):
                rebuild.launch().wait(END_SECONDS)
            time.sleep(POLL_SECONDS)
        assert server.process.returncode == KILLED, f"{point}: {server.tail()}"
    del server.environment["FULGURITE_FAIL_POINT"]
    server.start()
    rebuild.finish()
    server.stop()
    archive.check()
    archive.check_without_each(1)


LEASE_SECONDS = 3


def test_replace_site_is_killed(make: Callable[..., Archive], tmp_path: Path) -> None:
    """Lose a site and put another place behind it; then lose another."""
    path = tmp_path / "sites.toml"
    times = f'round = "1s"\npatience = "2s"\nlease = "{LEASE_SECONDS}s"\n'
    text = f'name = "records"\ndata = 2\nparity = 1\n{times}'
    for site in ("lisbon", "oslo", "turin"):
        place = f"dir://{tmp_path}/{site}"
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    path.write_text(text, encoding="utf-8")
    tier = ["--tier", f"geo=geo:{path}", "--data", str(tmp_path / "none")]
    begun = run([str(binary()), "tier", "init", "geo", *tier])
    assert begun.returncode == 0, begun.stderr
    archive = make({"STANDARD": "geo"}, geo={"kind": "geo", "map": str(path), "near": "lisbon"})
    places = (tmp_path / f"oslo-{number}" for number in itertools.count())

    def words() -> list[str]:
        place = f"dir://{next(places)}"
        return ["tier", "replace", "geo", "oslo", "--table", place, "--blobs", place, *tier]

    shutil.rmtree(tmp_path / "oslo")
    replace = Command(archive, words(), lambda: None)
    replace.finish()

    def lose() -> None:
        for site in tmp_path.glob("oslo-*"):
            shutil.rmtree(site)
        replace.words = words()

    replace.lose = lose
    lose()
    replace.kill_over_and_over({})
    replace.finish()
    assert replace.seconds >= LEASE_SECONDS, "it waits until every program knows, each time"
    shutil.rmtree(tmp_path / "turin")
    archive.check()
