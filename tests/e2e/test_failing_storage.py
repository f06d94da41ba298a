"""Storage that fails for a while, below every tier: nothing is lost, it is told, and it heals.

One archive for each place has all tiers and runs under the shim (shim.c), which lets calls below
that place fail: no room, one sync that fails, a disk that fails for good, a file system that is
read-only. The last fault moves the directory away. While a fault lasts, all classes are put and
read; then its cause goes, and everything has to be moved, ready and readable without a restart, and
after a kill. A new tier joins PLACES (docs/design/adding-a-tier.md).
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError
from fault_shim import Shim, missing
from harness import KEYS, TINY_GEOMETRY, Server, binary, is_restored, read, restore, run, wait_until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

BUCKET = "vault"
SITES = ("lisbon", "oslo", "turin")
# Where each class goes, and whether it is read at once.
CLASSES = {
    "STANDARD": ("archive", True),
    "DEEP_ARCHIVE": ("archive", False),
    "GLACIER": ("rack", False),
    "GLACIER_IR": ("tomes", True),
    "STANDARD_IA": ("geo", True),
    "ONEZONE_IA": ("folder", True),
}
ANSWER_SECONDS = 30
TOLD_SECONDS = 45.0
HEAL_SECONDS = 60.0
# What a client is told that is to come again, or to make room.
REFUSALS = {(503, "ServiceUnavailable"), (503, "SlowDown"), (507, "InsufficientStorage")}


@dataclass(frozen=True)
class Place:
    """A directory below the archive's folder, and the tier that needs it."""

    folder: str
    tier: str
    # Whether its tier does without it: of several disks or sites one is missing.
    is_spare: bool = False


@dataclass(frozen=True)
class Fault:
    """What the calls below a place do."""

    mode: str
    calls: tuple[str, ...] = ()
    error: int = 0


PLACES = {
    "archive": Place("data", "archive"),
    "rack-disks": Place("rack-disks", "rack"),
    "rack-index": Place("rack-index", "rack"),
    "tomes-disks": Place("tomes-disks", "tomes"),
    "tomes-awake": Place("tomes-awake", "tomes"),
    "site": Place("oslo", "geo", is_spare=True),
    "folder": Place("folder", "folder"),
}
CHANGES = ("create", "modify", "write", "truncate", "allocate", "rename", "unlink", "mkdir")
FAULTS = {
    "full": Fault("always", ("create", "write", "allocate", "mkdir"), errno.ENOSPC),
    "one-sync": Fault("once", ("sync",), errno.EIO),
    "dead": Fault("always", ("open", "read", "sync", *CHANGES), errno.EIO),
    "read-only": Fault("always", CHANGES, errno.EROFS),
    "gone": Fault("gone"),
}


@dataclass
class Rig:
    """An archive with all tiers, and what it acknowledged."""

    place: Place
    server: Server
    shim: Shim
    # Key: its class and the bodies that it may have; more than one where a put was in doubt.
    kept: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    refused: dict[str, bytes] = field(default_factory=dict)
    # What was last told of what does not go well.
    told: str = ""

    @property
    def folder(self) -> Path:
        """The directory of the place."""
        return self.server.folder / self.place.folder

    @property
    def away(self) -> Path:
        """Where it is while it is gone."""
        return self.server.folder / f"{self.place.folder}-away"

    def s3(self) -> Any:
        """A client that does not wait for long."""
        return self.server.s3(config=Config(read_timeout=ANSWER_SECONDS))

    def begin(self) -> None:
        """Put, move and restore some of each class, while nothing fails."""
        self.server.start()
        self.s3().create_bucket(Bucket=BUCKET)
        self.put_all("first")
        assert not self.refused, self.refused
        wait_until("all is moved", self.is_moved)
        self.check_all()

    def put_all(self, name: str) -> None:
        """Put one object of each class; it is acknowledged or refused, in time."""
        s3 = self.s3()
        for storage_class in CLASSES:
            key, body = f"{name}-{storage_class}", random.Random(name).randbytes(3000)
            try:
                s3.put_object(Bucket=BUCKET, Key=key, Body=body, StorageClass=storage_class)
                self.kept[key] = (storage_class, body)
            except ClientError as error:
                answer = error.response
                code = answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]
                assert code in REFUSALS, f"{key}: {error}"
                self.refused[key] = body

    def read_some(self) -> None:
        """Read what may be read at once: what is not of the tier is right; else it may wait."""
        s3 = self.s3()
        for key, (storage_class, body) in list(self.kept.items()):
            tier, at_once = CLASSES[storage_class]
            if not at_once and not self.has_copy(s3, key):
                continue
            try:
                assert read(s3, BUCKET, key) == body, f"{key} is served wrong"
            except (ClientError, ReadTimeoutError) as error:
                # Copies, and what is not moved yet, lie on the archive's own disk.
                is_hit = self.place.tier in (tier, "archive") and not self.place.is_spare
                assert is_hit, f"{key} is of {tier}: {error}"
                assert isinstance(error, ClientError), f"{key} is not answered: {error}"
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                assert status == 503, f"{key}: {error}"

    def has_copy(self, s3: Any, key: str) -> bool:
        """Whether an archived object was restored."""
        try:
            return is_restored(s3, BUCKET, key)
        except ClientError:
            return False

    def check_all(self) -> None:
        """Read every object, archived ones after a restore. What was refused may be there whole."""
        s3 = self.s3()
        archived = [key for key, (name, _) in self.kept.items() if not CLASSES[name][1]]
        for key in archived:
            if not is_restored(s3, BUCKET, key):
                restore(s3, BUCKET, key)
        for key in archived:
            wait_until(
                f"{key} is restored", lambda key=key: is_restored(s3, BUCKET, key), HEAL_SECONDS
            )
        for key, (_, body) in self.kept.items():
            assert read(s3, BUCKET, key) == body, key
        listed = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        assert {item["Key"] for item in listed} <= set(self.kept) | set(self.refused)

    def admin_status(self, *options: str) -> str:
        """What `fulgurite admin status` prints, wherever the data directory is."""
        command = ["admin", "status", "--endpoint", self.server.endpoint, *options]
        done = self.server.run(*command)
        return done.stdout + done.stderr

    def is_moved(self) -> bool:
        """Whether nothing is staged."""
        found = self.admin_status("--json").splitlines()
        try:
            status = json.loads(found[0])
        except (json.JSONDecodeError, IndexError):
            return False
        return status.get("objects_staged") == 0

    def ready(self) -> str:
        """What readiness says."""
        return self.server.fetch("/readyz")[1].decode()

    def fail(self, fault: Fault) -> None:
        """Let the fault begin."""
        if fault.mode == "gone":
            os.rename(self.folder, self.away)
        else:
            match = f"/{self.place.folder}/"
            self.shim.arm(fault.mode, list(fault.calls), fault.error, match=match)

    def mend(self, fault: Fault) -> None:
        """Take its cause away."""
        if fault.mode == "gone":
            os.rename(self.away, self.folder)
        else:
            assert self.shim.disarm() > 0, "no call failed: the test met nothing"

    def is_told(self, fault: Fault) -> bool:
        """Whether readiness, the status and the metrics say what fails."""
        ready, status = self.ready(), self.admin_status()
        metrics = self.server.fetch("/metrics")[1].decode()
        self.told = f"{ready}\n{status}\n{told_metrics(metrics)}"
        return ready != "ready\n"

    def is_healed(self) -> bool:
        """Whether everything is moved, and nothing is told any more."""
        return self.server.is_running() and self.ready() == "ready\n" and self.is_moved()


def told_metrics(page: str) -> str:
    """Those lines of the metrics that say that something is not well."""
    bad = r'^(fulgurite_job_state\{job="[^"]*",state="resting"\} 1|fulgurite_\w+_healthy 0'
    bad += r'|fulgurite_geo_site_up\{site="\w+"\} 0|fulgurite_catalog_writable 0'
    bad += r"|fulgurite_seal_troubles [1-9].*)$"
    return "\n".join(line for line in page.splitlines() if re.match(bad, line))


def configured(folder: Path) -> dict[str, Any]:
    """Configure an archive with all tiers, each in a directory of its own."""
    text = 'name = "records"\ndata = 2\nparity = 1\nround = "2s"\npatience = "8s"\nlease = "9s"\n'
    for site in SITES:
        place = f"dir://{folder}/{site}"
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    (folder / "sites.toml").write_text(text, encoding="utf-8")
    classes = {name: tier for name, (tier, _) in CLASSES.items() if tier not in ("archive",)}
    rack = {"directory": f"{folder}/rack-index", "disks": f"{folder}/rack-disks/{{place}}"}
    rack |= {"shape": "laptop", "make": True, "idle": "1s", "moves": {"calm_age": "0s"}}
    tomes = {"directory": f"{folder}/tomes-awake", "disks": f"{folder}/tomes-disks/{{tome}}"}
    tomes |= {"count": 4, "groups": "2+1", "segments": 2, "regions": 1, "spares": 512}
    tomes |= {"make": True, "idle": "300ms"}
    return {
        "profile": "demo",
        "geometry": TINY_GEOMETRY,
        "seal": {"age": "2s"},
        "storage": {"log_capacity": "1GiB", "reserve": "1MiB"},
        "classes": classes,
        "tiers": {"folder": {"url": f"file://{folder}/folder"}},
        "rack": rack,
        "tomes": tomes,
        "geo": {"map": f"{folder}/sites.toml", "near": "lisbon", "heal_every": "1s"},
    }


# The others do not get over all of it yet.
WELL = ("rack-index", "tomes-disks", "site", "folder")


@pytest.fixture(scope="module", params=WELL)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run an archive for a place."""
    folder = tmp_path_factory.mktemp(request.param)
    archive = folder / "archive"
    archive.mkdir()
    server = Server(archive, configured(archive))
    # What it prints is not below any place.
    made = run([str(binary()), "geo", "init", "--map", f"{archive}/sites.toml"], environment=KEYS)
    assert made.returncode == 0, made.stderr
    shim = Shim(folder / "shim", archive, reads=True)
    server.environment = shim.environment()
    rig = Rig(PLACES[request.param], server, shim)
    try:
        rig.begin()
        yield rig
    finally:
        server.kill()


@pytest.mark.parametrize("name", FAULTS)
def test_storage_fails_for_a_while(rig: Rig, name: str) -> None:
    """Use the archive while its storage fails, take the cause away, wait, kill, and compare."""
    fault = FAULTS[name]
    rig.fail(fault)
    rig.put_all(name)
    rig.read_some()
    if fault.mode == "once":
        wait_until("a call fails", lambda: rig.shim.fired() > 0, HEAL_SECONDS)
    else:
        wait_until("it is told", lambda: rig.is_told(fault), TOLD_SECONDS)
        rig.put_all(f"{name}-told")
        rig.read_some()
    rig.mend(fault)
    try:
        wait_until("it is healed", rig.is_healed, HEAL_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{rig.ready()}\n{rig.admin_status()}") from None
    rig.check_all()
    rig.server.kill()
    rig.server.start()
    rig.check_all()
