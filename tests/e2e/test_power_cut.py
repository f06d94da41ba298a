"""A power cut at any call: what was not synced is gone, and all that was acknowledged is there.

A load runs once under the shim, over several lives of the archive; the disk model then builds the
directory that a cut after some call may leave, by three readings of what a disk promises. An
archive is started on it, and every key must be what was acknowledged before the cut, or what was
under way; every byte is read back, from glass too.

That this can fail is shown by the same run with blinded syncs: if those of one class of files are
not counted, something must be lost.

FULGURITE_TEST_CUTS sets how many places are tried (36 in the gate); FULGURITE_TEST_SEED repeats
the load and the places, while the threads of the archive keep their own order.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from conftest import NewFolder, Start
from crash_driver import BUCKET
from disk_model import Disk
from fault_shim import Shim, missing
from harness import TINY_GEOMETRY, Server, seed
from power_cut import Classes, Cut, Run, describe, plan, wait_loaded
from recorded_run import Loss, Oracle, RecordedDriver

CUTS = int(os.environ.get("FULGURITE_TEST_CUTS", "36"))
# Places that a test tries.
CUTS_PER_TEST = 6
THREADS = 3
LIVES = 3
# Requests acknowledged in each life.
REQUESTS_PER_LIFE = 90
CONFIG = {
    "profile": "demo",
    "geometry": TINY_GEOMETRY,
    # Seals run during the load, and platters are released within it.
    "moves": {"bytes": "300KiB", "age": "1s"},
}
# What a blinded run lost does not come however long one waits.
BLINDED_RESTORE_SECONDS = 15.0
LOGS = ("/staging", "/online", "/restored", "/orphaned")
CLASSES: Classes = {
    "logs": lambda path: any(f"/data{log}" in path for log in LOGS),
    "keys": lambda path: "/data/keys" in path,
    "catalog": lambda path: path.endswith(".jnl"),
    "platters": lambda path: "/data/platters" in path,
}

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def run(new_folder: NewFolder) -> Run:
    """Load an archive under the shim, kill it, start it again, and load it again."""
    folder = new_folder("recorded")
    server = Server(folder=folder, config=CONFIG)
    shim = Shim(folder / "shim", server.data)
    server.environment = shim.environment()
    found = Run(shim, RecordedDriver(server, shim, seed(), THREADS))
    try:
        for life in range(LIVES):
            found.life_begins.append(shim.position())
            server.start()
            if life == 0:
                found.driver.client.create_bucket(Bucket=BUCKET)
                found.bucket_made = shim.position()
            load(server, found.driver)
            server.seal()
            # The last life ends in order, the others within their work.
            shim.kill(server) if life < LIVES - 1 else server.stop()
    finally:
        server.kill()
    assert not found.driver.findings, found.driver.findings
    found.records = shim.records()
    return found


def load(server: Server, driver: RecordedDriver) -> None:
    """Load the archive until it has acknowledged its share."""
    enough = driver.acknowledged + REQUESTS_PER_LIFE
    driver.run(lambda: wait_loaded(server, lambda: driver.acknowledged >= enough))


def check_cut(
    start: Start, run: Run, disk: Disk, cut: Cut, folder: Path, seconds: float = 120.0
) -> list[Loss]:
    """Start an archive on what the cut left: what it lost."""
    folder.mkdir()
    rng = random.Random(f"{seed()} {cut}")
    disk.cut(cut.mode, rng, folder / "data")
    oracle = Oracle(run.driver, cut.moment, seconds)
    try:
        server = start(CONFIG, folder=folder)
    except AssertionError as error:
        return [Loss(f"the archive does not start: {error}")]
    if cut.moment < run.bucket_made:
        # Whether the bucket is there is open; that it can be had is not.
        names = [bucket["Name"] for bucket in server.s3().list_buckets()["Buckets"]]
        if BUCKET not in names:
            server.s3().create_bucket(Bucket=BUCKET)
    losses = oracle.check(server)
    server.kill()
    if not losses:
        shutil.rmtree(folder)
    return losses


@pytest.mark.parametrize("part", range(-(-CUTS // CUTS_PER_TEST)))
def test_nothing_acknowledged_is_lost(start: Start, run: Run, tmp_path: Path, part: int) -> None:
    """Cut the power at many places, in each reading of what a disk promises."""
    assert run.records, "the shim saw nothing"
    disk = Disk(run.shim.root)
    taken, lost = 0, {}
    cuts = plan(run, CUTS, random.Random(seed()))
    for number, cut in enumerate(cuts[part * CUTS_PER_TEST :][:CUTS_PER_TEST]):
        disk.take(run.records[taken : cut.index + 1])
        taken = max(taken, cut.index + 1)
        losses = check_cut(start, run, disk, cut, tmp_path / f"cut{number}")
        if losses:
            lost[cut] = losses
    disk.take(run.records[taken:])
    assert not disk.unseen, disk.unseen
    assert not lost, "\n".join(describe(run, cut, losses) for cut, losses in lost.items())


@pytest.mark.parametrize("blinded", CLASSES)
def test_blinded_run_finds_losses(start: Start, run: Run, tmp_path: Path, blinded: str) -> None:
    """With the syncs of one class of files not counted, something must be missing."""
    disk = Disk(run.shim.root, CLASSES[blinded])
    # The end of a life that was killed: one that stops in order leaves less in its journal.
    moment = run.life_begins[-1]
    records = [record for record in run.records if record.end <= moment]
    disk.take(records)
    cut = Cut(len(records) - 1, moment, "strict")
    losses = check_cut(start, run, disk, cut, tmp_path / "cut", BLINDED_RESTORE_SECONDS)
    print(f"without syncs of {blinded}: {losses[:3]}")
    assert losses
