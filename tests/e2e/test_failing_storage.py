"""Storage that fails for a while, below every tier: nothing is lost, it is reported, and it heals.

One archive for each place has all tiers and runs under the shim (shim.c), which lets calls below
that place fail: no room, one sync that fails, a disk that fails for good, a file system that is
read-only. The last fault moves the directory away. While a fault lasts, all classes are put and
read; then its cause goes, and everything has to be moved, ready and readable without a restart, and
after a kill. A new tier joins PLACES (docs/design/adding-a-tier.md).
"""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)
from conftest import NewFolder
from fault_shim import Shim, missing
from harness import (
    KEYS,
    STOP_SECONDS,
    TINY_GEOMETRY,
    Server,
    binary,
    is_restored,
    read,
    restore,
    run,
    wait_until,
)

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
REPORT_SECONDS = 180.0
HEAL_SECONDS = 60.0
# `serve` ended itself, since the key table could not be synced (docs/operating.md).
KEY_TABLE_FAILED = 11
# Answers that ask a client to retry or to make room; and one more where the archive's own disk
# fails.
BUSY = {(503, "ServiceUnavailable"), (503, "SlowDown"), (507, "InsufficientStorage")}
REFUSALS = {False: BUSY, True: BUSY | {(500, "InternalError")}}


@dataclass(frozen=True)
class Place:
    """A directory below the archive's folder, and the tier that needs it."""

    folder: str
    tier: str
    # Whether its tier does without it: of several sites one is missing.
    is_spare: bool = False
    heal_seconds: float = HEAL_SECONDS
    # Other lines of the status and of the metrics that name it than those of a tier of objects.
    status: str = "failure"
    metrics: str = "none"
    # What it may say in place of the cause.
    cause: str = "none"
    # Whether its files are open all the time: renamed away, they are still written, and nothing
    # fails until a store is opened again.
    is_held_open: bool = False


@dataclass(frozen=True)
class Fault:
    """How the calls below a place fail, and the cause that is then reported."""

    mode: str
    cause: str
    calls: tuple[str, ...] = ()
    error: int = 0


RACK = {"status": "rack", "metrics": r'fulgurite_tier_healthy\{tier="rack",kind="rack"\} 0'}
TOMES = {"status": "tomes", "metrics": r'fulgurite_tier_healthy\{tier="tomes",kind="tome"\} 0'}
PLACES = {
    "archive": Place(
        "data",
        "archive",
        status="catalog|disk|failure|pipeline",
        metrics=r'fulgurite_(catalog_writable 0|free_bytes 0|job_state\{job="tending",.*g"\} 1)',
    ),
    # Disks that did not come up back off for a minute, and are then spun up by the next request, or
    # within another minute to see whether they do.
    "rack-disks": Place("rack-disks", "rack", heal_seconds=200, **RACK),
    "rack-index": Place("rack-index", "rack", is_held_open=True, **RACK),
    "tomes-disks": Place("tomes-disks", "tomes", **TOMES),
    # A known exception: where the store's own thread met the failure, the log alone has its cause.
    "tomes-awake": Place(
        "tomes-awake",
        "tomes",
        cause="a write of rows to tables or to the journal failed",
        is_held_open=True,
        **TOMES,
    ),
    "site": Place(
        "oslo",
        "geo",
        True,
        status="geo",
        metrics=r'fulgurite_tier_site_up\{tier="geo",kind="geo",site="oslo"\} 0',
    ),
    "folder": Place("folder", "folder"),
}
CHANGES = ("create", "modify", "write", "truncate", "allocate", "rename", "unlink", "mkdir")
ROOM = ("create", "write", "allocate", "mkdir", "statfs")
GONE = "No such file or directory|is not there|it is missing|no disk is in its place"
FAULTS = {
    "full": Fault("always", "[Nn]o space left|0 B free|rack is full", ROOM, errno.ENOSPC),
    "one-sync": Fault("once", "Input/output error", ("sync",), errno.EIO),
    "dead": Fault("always", "Input/output error", ("open", "read", "sync", *CHANGES), errno.EIO),
    "read-only": Fault("always", "Read-only file system", CHANGES, errno.EROFS),
    "gone": Fault("gone", GONE),
}


@dataclass
class Rig:
    """An archive with all tiers, and what it acknowledged."""

    place: Place
    server: Server
    shim: Shim
    # Key: its class and its possible bodies; more than one if the outcome of a put is unknown.
    kept: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    refused: dict[str, bytes] = field(default_factory=dict)
    # The last report of failures.
    report: str = ""

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
            except (EndpointConnectionError, HTTPClientError) as error:
                assert self.has_ended(), error
                self.refused[key] = body
            except ClientError as error:
                answer = error.response
                code = answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]
                assert code in REFUSALS[self.place.tier == "archive"], f"{key}: {error}"
                self.refused[key] = body

    def use(self, name: str) -> None:
        """Put and read, unless the program has ended itself."""
        if self.server.is_running():
            self.put_all(name)
        if self.server.is_running():
            self.read_some()

    def read_some(self) -> None:
        """Read what may be read at once: what is not of the tier is right; else it may wait."""
        s3 = self.s3()
        for key, (storage_class, body) in list(self.kept.items()):
            tier, at_once = CLASSES[storage_class]
            if not at_once and not self.has_copy(s3, key):
                continue
            try:
                assert read(s3, BUCKET, key) == body, f"{key} is served wrong"
            except (ClientError, EndpointConnectionError, HTTPClientError) as error:
                if not isinstance(error, (ClientError, ReadTimeoutError)) and self.has_ended():
                    return
                # Copies, and what is not moved yet, lie on the archive's own disk.
                is_hit = self.place.tier in (tier, "archive") and not self.place.is_spare
                assert is_hit, f"{key} is of {tier}: {error}"
                assert isinstance(error, ClientError), f"{key} is not answered: {error}"
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                assert status in (500, 503), f"{key}: {error}"

    def has_copy(self, s3: Any, key: str) -> bool:
        """Whether an archived object was restored."""
        try:
            return is_restored(s3, BUCKET, key)
        except (ClientError, EndpointConnectionError, HTTPClientError):
            return False

    def has_ended(self) -> bool:
        """Whether the program ended itself, which it does for its key table alone."""
        if self.place.tier == "archive":
            wait_until("it has ended", lambda: not self.server.is_running(), STOP_SECONDS)
        if self.server.is_running() or self.server.process is None:
            return False
        code = self.server.process.returncode
        assert code == KEY_TABLE_FAILED and self.place.tier == "archive", self.server.tail()
        assert "key table failed" in self.server.tail(), self.server.tail()
        return True

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

    def admin_status(self) -> str:
        """What `fulgurite archive status` prints, wherever the data directory is."""
        done = self.server.run("archive", "status", "--endpoint", self.server.endpoint)
        return done.stdout + done.stderr

    def metrics(self) -> str:
        """The page of metrics."""
        return self.server.fetch("/metrics")[1].decode()

    def is_moved(self) -> bool:
        """Whether nothing is staged."""
        return 'fulgurite_objects{residence="staged"} 0\n' in self.metrics()

    def ready(self) -> str:
        """Return the answer of `/readyz`."""
        return self.server.fetch("/readyz")[1].decode()

    def fail(self, fault: Fault) -> None:
        """Let the fault begin."""
        if fault.mode == "gone":
            self.folder.rename(self.away)
        else:
            self.shim.arm(fault.mode, list(fault.calls), fault.error, match=str(self.folder))

    def mend(self, fault: Fault) -> None:
        """Take its cause away."""
        if fault.mode == "gone":
            self.away.rename(self.folder)
        else:
            assert self.shim.disarm() > 0, "no call failed: the test met nothing"

    def is_reported(self, fault: Fault) -> bool:
        """Whether readiness, the status and the metrics say what fails, and of which tier."""
        if not self.server.is_running():
            return self.has_ended()
        place, metrics, status = self.place, self.metrics(), ""
        counted = rf'^({place.metrics}|fulgurite_job_state\{{job="moving-{place.tier}",'
        counted += r'state="resting"\} 1)$'
        found = re.search(counted, metrics, re.MULTILINE)
        ready = self.ready()
        if found and ready != "ready\n":
            status = self.admin_status()
        self.report = f"{ready}\n{found}\n{status}"
        causes = f"{fault.cause}|{place.cause}"
        named = rf"^({place.status}|failure +moving-{place.tier}) *.*({causes})"
        return bool(re.search(named, status, re.MULTILINE))

    def is_unaffected(self, fault: Fault) -> bool:
        """Whether a folder is away whose files are open, and all that was put is moved."""
        return fault.mode == "gone" and self.place.is_held_open and self.is_healed()

    def is_healed(self) -> bool:
        """Whether everything is moved, and no failure is reported any more."""
        if not self.server.is_running() and self.has_ended():
            self.server.start()
        return self.ready() == "ready\n" and self.is_moved()


def configured(folder: Path) -> dict[str, Any]:
    """Configure an archive with all tiers, each in a directory of its own."""
    text = 'name = "records"\ndata = 2\nparity = 1\nround = "2s"\npatience = "8s"\nlease = "9s"\n'
    for site in SITES:
        place = f"dir://{folder}/{site}"
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    (folder / "sites.toml").write_text(text, encoding="utf-8")
    classes = {name: tier for name, (tier, _) in CLASSES.items() if tier not in ("archive",)}
    rack = {"directory": f"{folder}/rack-index", "disks": f"{folder}/rack-disks/{{place}}"}
    rack |= {
        "kind": "rack",
        "shape": "laptop",
        "make": True,
        "idle": "1s",
        "moves": {"calm_age": "0s"},
    }
    tomes = {"directory": f"{folder}/tomes-awake", "disks": f"{folder}/tomes-disks/{{tome}}"}
    tomes |= {
        "kind": "tome",
        "count": 4,
        "groups": "2+1",
        "segments": 2,
        "regions": 1,
        "spares": 512,
    }
    tomes |= {"make": True, "idle": "300ms"}
    near = {"near": "lisbon", "heal_every": "1s"}
    return {
        "profile": "demo",
        "geometry": TINY_GEOMETRY,
        "moves": {"age": "2s"},
        "storage": {"log_capacity": "1GiB", "reserve": "1MiB"},
        "classes": classes,
        "tiers": {
            "folder": {"kind": "objects", "url": f"file://{folder}/folder"},
            "rack": rack,
            "tomes": tomes,
            "geo": {"kind": "geo", "map": f"{folder}/sites.toml"} | near,
        },
    }


@pytest.fixture(scope="module", params=PLACES)
def rig(request: pytest.FixtureRequest, new_folder: NewFolder) -> Iterator[Rig]:
    """Run an archive for a place."""
    folder = new_folder(request.param)
    archive = folder / "archive"
    archive.mkdir()
    server = Server(archive, configured(archive))
    # What it prints is not below any place.
    place = ["--tier", f"geo=geo:{archive}/sites.toml", "--data", str(server.data)]
    made = run([str(binary()), "tier", "init", "geo", *place], environment=KEYS)
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
def test_tiers_recover_from_temporary_storage_failures(rig: Rig, name: str) -> None:
    """Use the archive while its storage fails, take the cause away, wait, kill, and compare."""
    fault = FAULTS[name]
    rig.fail(fault)
    rig.use(name)
    try:
        if fault.mode == "once":
            wait_until("a call fails", lambda: rig.shim.fired() > 0, HEAL_SECONDS)
        else:
            wait_until(
                "it is reported",
                lambda: rig.is_reported(fault) or rig.is_unaffected(fault),
                REPORT_SECONDS,
            )
            rig.use(f"{name}-reported")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{rig.report}") from None
    finally:
        rig.mend(fault)
    try:
        wait_until("it is healed", rig.is_healed, rig.place.heal_seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{rig.ready()}\n{rig.admin_status()}") from None
    rig.check_all()
    rig.server.kill()
    rig.server.start()
    rig.check_all()
