"""A power cut over all tiers at once: a rack, a set of tomes and three sites of directories.

All of it lies below one folder, so one record is the clock of all: a cut takes every directory at
the same moment. More than two thousand bodies are put, some replaced and deleted, over lives that
are killed within their work; fewer tear nothing.

After a cut the archive is started on what it left, in place. Every key is listed and must be what
was acknowledged, or what was under way. Objects of each class are put then, and everything staged
has to reach its tier. Bodies are read back, after a restore where one is needed: those that were
changed last before the cut and a sample of all others, each compared to the last byte. Then `rack
verify` reads every blob of the rack, and `tier verify` every object of the sites, and neither may
find damage. What is of the tomes and neither changed late nor in the sample is not read.

That this can fail is shown by blinded runs: the syncs of one class of files are not counted in the
last life, and something must be lost.

FULGURITE_TEST_TIER_CUTS sets how many places are tried (3 in the gate), FULGURITE_TEST_TIER_READS
how many bodies are read at each (250 in the gate).
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import NewFolder
from crash_driver import BUCKET, Key, Verb, Version
from disk_model import Disk
from fault_shim import Shim, missing
from harness import RACK, RUN_SECONDS, TOMES, Server, binary, is_restored, run, seed, wait_until
from power_cut import Classes, Cut, Run, describe, plan, wait_loaded
from recorded_run import Loss, Oracle, RecordedDriver, asks

CUTS = int(os.environ.get("FULGURITE_TEST_TIER_CUTS", "3"))
READS = int(os.environ.get("FULGURITE_TEST_TIER_READS", "250"))
# Places that a test tries.
CUTS_PER_TEST = 10
THREADS = 6
LIVES = 3
# Bodies put in all lives.
BODIES = 2_100
SETTLE_SECONDS = 120.0
# What a blinded run lost does not come however long one waits.
BLINDED_SECONDS = 20.0
# A third of all bodies is of the last life.
BLINDED_READS = 60
SITES = ("lisbon", "oslo", "turin")
TIERS = {"STANDARD": "geo", "GLACIER": "rack", "GLACIER_IR": "tomes"}
CONFIG = {
    "profile": "demo",
    "classes": TIERS,
    "tiers": {
        "rack": RACK,
        "tomes": TOMES | {"count": 5, "segments": 64, "regions": 2, "spares": 512},
    },
}
CLASSES: Classes = {
    "rack disks": lambda path: "/data/tiers/rack/disks/" in path,
    "rack index": lambda path: "/data/tiers/rack/index" in path,
    "tome disks": lambda path: "/data/tiers/tomes/disks/" in path,
    "metadata stores": lambda path: "/data/tiers/tomes/tome-" in path,
    "tome index": lambda path: "/data/tiers/tomes/index" in path,
    "sites": lambda path: any(f"/disks/{site}/" in path for site in SITES),
}

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


class Everywhere(Server):
    """An archive whose data directory lies beside its sites, below one folder."""

    @property
    def disks(self) -> Path:
        """What the power is cut of."""
        return self.folder / "disks"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.disks / "data"

    @property
    def map(self) -> Path:
        """The map of the sites."""
        return self.folder / "sites.toml"

    def geo(self, verb: str) -> Any:
        """Run `fulgurite tier VERB geo` to its end."""
        command = [str(binary()), "tier", verb, "geo", "--tier", f"geo=geo:{self.map}", "--json"]
        command += ["--data", str(self.data)]
        return run(command, RUN_SECONDS, self.process_environment())


class TierDriver(RecordedDriver):
    """A load of many bodies: new ones most of the time."""

    keys_per_thread = BODIES // THREADS
    storage_classes = tuple(TIERS)
    large_every = 60
    body_bytes_max = 12_000

    def __init__(self, *arguments: Any) -> None:
        """Begin with no key put."""
        super().__init__(*arguments)
        self._fresh = {key.name: iter(keys) for keys in self._keys for key in keys[:1]}
        self.bodies = 0
        self._counter = itertools.count(1)

    def _choose(self, keys: list[Key], rng: random.Random) -> tuple[Key, Verb]:
        if rng.random() < 0.9:
            key = next(self._fresh[keys[0].name], None)
            if key is not None:
                return key, self._put
        verbs: list[Verb] = [self._put, self._put, self._put_parts, self._delete, self._delete]
        return rng.choice(keys), rng.choice([*verbs, self._restore, self._read])

    def _done(self, key: Key, outcome: Version | None) -> None:
        super()._done(key, outcome)
        if outcome is not None:
            self.bodies = next(self._counter)


@pytest.fixture(scope="module")
def loaded(new_folder: NewFolder) -> Run:
    """Load an archive under the shim over lives that are killed, and leave the record alone."""
    folder = new_folder("tiers")
    server = Everywhere(folder, CONFIG)
    server.config = CONFIG | {"tiers": CONFIG["tiers"] | {"geo": write_map(server)}}
    shim = Shim(folder / "shim", server.disks)
    server.environment = shim.environment()
    found = Run(shim, TierDriver(server, shim, seed(), THREADS))
    made = server.geo("init")
    assert made.returncode == 0, made.stderr
    try:
        for life in range(LIVES):
            found.life_begins.append(shim.position())
            server.start()
            if life == 0:
                found.driver.client.create_bucket(Bucket=BUCKET)
                found.bucket_made = shim.position()
            found.driver.check_listing()
            live(server, found, life)
    finally:
        server.kill()
    assert not found.driver.findings, found.driver.findings
    found.records = shim.records()
    shutil.rmtree(server.disks)
    return found


def write_map(server: Everywhere) -> dict[str, str]:
    """Write the map of the sites: the settings that name it."""
    text = 'name = "records"\ndata = 2\nparity = 1\nround = "2s"\npatience = "8s"\nlease = "9s"\n'
    for site in SITES:
        place = f"dir://{server.disks}/{site}"
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    server.map.write_text(text, encoding="utf-8")
    settings = {"kind": "geo", "map": str(server.map), "near": SITES[0]}
    return settings | {"heal_every": "1s", "collect_every": "2s"}


def live(server: Server, run: Run, life: int) -> None:
    """Load the archive with its share and kill it: within its work, the last time after it."""
    enough = BODIES * (life + 1) // LIVES

    def work() -> None:
        wait_loaded(server, lambda: run.driver.bodies >= enough)
        if life < LIVES - 1:
            run.shim.kill(server)

    run.driver.run(work)
    if life == LIVES - 1:
        wait_moved(server, SETTLE_SECONDS)
        run.shim.kill(server)


def wait_moved(server: Server, seconds: float) -> None:
    """Wait until nothing is staged."""
    wait_until("all is in its tier", lambda: server.status()["objects_staged"] == 0, seconds)


@dataclass
class TierOracle(Oracle):
    """What must be there after a cut, in every tier."""

    reads: int = READS
    # A check that has found so many says no more by finding others.
    losses_max: int = 20

    def check(self, server: Server) -> list[Loss]:
        """Compare a started archive with what was acknowledged."""
        assert isinstance(server, Everywhere)
        s3 = server.s3()
        kept = self._check_listing(s3)
        with self._noting("putting"):
            for name in TIERS:
                s3.put_object(Bucket=BUCKET, Key=name, Body=name.encode(), StorageClass=name)
        with self._noting("moving"):
            wait_moved(server, self.restore_seconds)
        chosen = {name: kept[name] for name in self._chosen(list(kept))}
        of_rack = [name for name, version in chosen.items() if version.storage_class == "GLACIER"]
        self._each(of_rack, lambda name: self._ask(s3, name))
        self._each(list(chosen), lambda name: self._read(s3, name, chosen[name]))
        self._verify(server)
        return self.losses

    def _chosen(self, names: list[str]) -> list[str]:
        """What was changed last, and a sample of the rest."""

        def changed(name: str) -> int:
            begins = [it.begin for it in self.driver.events[name] if it.begin < self.moment]
            return max(begins, default=0)

        names.sort(key=changed, reverse=True)
        late, rest = names[: self.reads // 2], names[self.reads // 2 :]
        rng = random.Random(f"{seed()} {self.moment}")
        return late + rng.sample(rest, min(self.reads - len(late), len(rest)))

    def _each(self, names: list[str], check: Callable[[str], None]) -> None:
        """Check names side by side, until it is plain that it is bad."""

        def one(name: str) -> None:
            if len(self.losses) < self.losses_max:
                check(name)

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(one, names))

    def _ask(self, s3: Any, name: str) -> None:
        with self._noting("asking for it", name):
            wait_until("it takes a restore", lambda: asks(s3, name), self.restore_seconds)

    def _read(self, s3: Any, name: str, version: Version) -> None:
        with self._noting("restoring", name):
            if version.storage_class == "GLACIER":
                seconds = self.restore_seconds
                wait_until("it is restored", lambda: is_restored(s3, BUCKET, name), seconds)
            self._check_body(s3, name, version)

    def _verify(self, server: Everywhere) -> None:
        if self.losses:
            return
        config = str(server.folder / "config.toml")
        place = ["--data", str(server.data), "--config", config, "--json"]
        for what, done in [
            ("tier scrub", server.run("tier", "scrub", "rack", *place)),
            ("tier verify", server.geo("verify")),
        ]:
            with self._noting(what):
                report = json.loads(done.stdout.splitlines()[-1])
                is_well = not report["problems"] and not report.get("damaged")
                assert done.returncode == 0 and is_well, f"{done.stdout}{done.stderr}"


def check_cut(loaded: Run, disk: Disk, cut: Cut, evidence: Path, **options: Any) -> list[Loss]:
    """Start an archive on what the cut left, where it was: what it lost."""
    driver = loaded.driver
    server = driver.server
    assert isinstance(server, Everywhere)
    server.environment = {}
    shutil.rmtree(server.disks, ignore_errors=True)
    disk.cut(cut.mode, random.Random(f"{seed()} {cut}"), server.disks)
    oracle = TierOracle(driver, cut.moment, **{"restore_seconds": SETTLE_SECONDS} | options)
    try:
        try:
            server.start()
        except AssertionError as error:
            return [Loss(f"the archive does not start: {error}")]
        if cut.moment < loaded.bucket_made:
            names = [bucket["Name"] for bucket in server.s3().list_buckets()["Buckets"]]
            if BUCKET not in names:
                server.s3().create_bucket(Bucket=BUCKET)
        losses = oracle.check(server)
    finally:
        server.kill()
    if losses:
        shutil.move(server.disks, evidence)
    return losses


def begun(loaded: Run) -> int:
    """Count the records of making the namespace: what it leaves undone is no archive's to mend."""
    return sum(record.end <= loaded.life_begins[0] for record in loaded.records)


@pytest.mark.parametrize("part", range(-(-CUTS // CUTS_PER_TEST)))
def test_nothing_acknowledged_is_lost(loaded: Run, tmp_path: Path, part: int) -> None:
    """Cut the power at many places, in each reading of what a disk promises."""
    assert loaded.driver.bodies >= BODIES
    disk = Disk(loaded.shim.root)
    taken, lost = 0, {}
    cuts = plan(loaded, CUTS, random.Random(seed()), CLASSES, begun(loaded))
    for number, cut in enumerate(cuts[part * CUTS_PER_TEST :][:CUTS_PER_TEST]):
        disk.take(loaded.records[taken : cut.index + 1])
        taken = max(taken, cut.index + 1)
        losses = check_cut(loaded, disk, cut, tmp_path / f"cut{number}")
        print(f"{describe(loaded, cut, losses)}\n{len(losses)} losses", flush=True)
        if losses:
            lost[cut] = losses
    disk.take(loaded.records[taken:])
    assert not disk.unseen, disk.unseen
    assert not lost, "\n".join(describe(loaded, cut, losses) for cut, losses in lost.items())


def cut_at_the_end(loaded: Run, evidence: Path, blinded: Classes, **options: Any) -> list[Loss]:
    """Cut the power at the end, without the syncs of some files in the last life."""
    is_last = False
    is_of = list(blinded.values())
    disk = Disk(loaded.shim.root, lambda path: is_last and any(one(path) for one in is_of))
    last = sum(record.end <= loaded.life_begins[-1] for record in loaded.records)
    disk.take(loaded.records[:last])
    is_last = True
    disk.take(loaded.records[last:])
    cut = Cut(len(loaded.records) - 1, loaded.records[-1].end, "strict")
    return check_cut(loaded, disk, cut, evidence, **options)


@pytest.mark.parametrize("blinded", CLASSES)
def test_blinded_run_finds_losses(loaded: Run, tmp_path: Path, blinded: str) -> None:
    """With the syncs of one class of files not counted in the last life, something is missing."""
    losses = cut_at_the_end(
        loaded,
        tmp_path / "cut",
        {blinded: CLASSES[blinded]},
        restore_seconds=BLINDED_SECONDS,
        reads=BLINDED_READS,
        losses_max=1,
    )
    print(f"without syncs of {blinded}: {losses[:3]}")
    assert losses


def test_the_same_run_with_all_syncs_loses_nothing(loaded: Run, tmp_path: Path) -> None:
    """What a blinded run lost would have been there."""
    losses = cut_at_the_end(loaded, tmp_path / "cut", {})
    assert not losses, losses
