"""Every call to the disk fails once: nothing acknowledged is lost, and nothing stays stuck.

A fixed load is run over and over on one archive under the shim. In each round one call fails, by
its class, its number within the load and its error: a read or write error (EIO), no room (ENOSPC),
no descriptor (EMFILE), a short write. Some fail once, some until the cause goes away. Then the
archive must go on by itself, or have ended with one of its exit codes and start again; what it
acknowledged must be there and what it deleted must not. At the end of each stretch of rounds the
disk model says what is really on the disk, where a failed sync has dropped what it should have
written, and an archive is started on that.

FULGURITE_TEST_FAILURES sets how many rounds there are (32 in the gate);
FULGURITE_TEST_EVERY_FAILURE=1 goes through each class, error and call instead.
"""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Start
from crash_driver import BUCKET
from disk_model import Disk
from fault_shim import Shim, missing
from harness import TINY_GEOMETRY, Server, is_restored, refused, restore, seed, wait_until
from recorded_run import Loss, Oracle, RecordedDriver

ROUNDS = int(os.environ.get("FULGURITE_TEST_FAILURES", "32"))
EVERY = os.environ.get("FULGURITE_TEST_EVERY_FAILURE") == "1"
ROUNDS_PER_STRETCH = 4
GO_ON_SECONDS = 120.0
# The table in docs/operating.md ends here; a panic would be 101, a signal is negative.
EXIT_CODES = range(12)
CONFIG = {
    "profile": "demo",
    "geometry": TINY_GEOMETRY,
    # Seals are asked for by the load, so that each round makes much the same calls.
    "moves": {"bytes": "1GiB", "age": "24h"},
}
ROOM = ["create", "write", "allocate", "rename", "mkdir", "truncate"]

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@dataclass(frozen=True)
class Failure:
    """A way in which calls fail."""

    mode: str
    calls: tuple[str, ...]
    error: int

    def __str__(self) -> str:
        """Name it for a message."""
        return f"{errno.errorcode[self.error]} {self.mode} at {'/'.join(self.calls)}"


FAILURES = [
    Failure("once", ("write",), errno.EIO),
    Failure("once", ("write",), errno.ENOSPC),
    Failure("short", ("write",), errno.EIO),
    Failure("once", ("sync",), errno.EIO),
    Failure("once", ("create",), errno.ENOSPC),
    Failure("once", ("create",), errno.EMFILE),
    Failure("once", ("open",), errno.EMFILE),
    Failure("once", ("open",), errno.EIO),
    Failure("once", ("rename",), errno.EIO),
    Failure("once", ("unlink",), errno.EIO),
    Failure("once", ("truncate",), errno.EIO),
    Failure("once", ("mkdir",), errno.ENOSPC),
    Failure("always", ("open", "create"), errno.EMFILE),
    Failure("always", tuple(ROOM), errno.ENOSPC),
    Failure("always", ("write", "sync"), errno.EIO),
]


@dataclass
class Round:
    """One failure: which call of the load it meets, or of a start."""

    failure: Failure
    after: int
    is_start: bool


class Stretch:
    """One archive, and the rounds it goes through."""

    def __init__(self, folder: Path, number: int) -> None:
        """Start it, and count the calls of a round and of a start."""
        self.rng = random.Random(seed() + number)
        self.server = Server(folder=folder, config=CONFIG)
        self.shim = Shim(folder / "shim", self.server.data)
        self.server.environment = self.shim.environment()
        self.findings: list[str] = []
        self.driver = RecordedDriver(self.server, self.shim, seed() + number, threads=1)
        self.server.start()
        self.driver.client.create_bucket(Bucket=BUCKET)
        self.load()
        self.count()
        self.load()
        self.calls = self.shim.calls()
        self.server.stop()
        self.count()
        self.server.start()
        self.start_calls = self.shim.calls()

    def count(self) -> None:
        """Count calls from now on; none fails."""
        self.shim.arm("idle", [])

    def load(self) -> None:
        """Make the same requests each time: of every kind, and through glass and back."""
        driver, rng, client = self.driver, self.rng, self.driver.client
        keys = driver.every_key()
        for verb in [driver._put, driver._put, driver._put_parts, driver._delete, driver._put]:
            self.attempt(lambda verb=verb: verb(client, rng.choice(keys), rng))
        self.server.run("archive", "seal", "--data", str(self.server.data))
        archived = [key for key in driver.archived() if key.acknowledged]
        if archived:
            key = rng.choice(archived)
            self.attempt(lambda: restore(client, BUCKET, key.name))
        for verb in [driver._put, driver._read, driver._delete]:
            self.attempt(lambda verb=verb: verb(client, rng.choice(keys), rng))

    def attempt(self, request: object) -> None:
        """Send a request; that it is refused is what the round is about."""
        try:
            request()  # type: ignore[operator]
        except (*self.driver.connection_errors, self.driver.client.exceptions.ClientError):
            pass

    def meet(self, it: Round) -> bool:
        """Play a round until its call is met; false if it is never made.

        A load makes fewer calls one time than another, so a call that was not reached is looked
        for in the first half of those before it.
        """
        after = it.after
        while True:
            self.play(Round(it.failure, after, it.is_start))
            if self.shim.fired() > 0:
                return True
            if EVERY or after == 1:
                return False
            after //= 2

    def play(self, it: Round) -> None:
        """Let a call fail, take the cause away, and see the archive go on."""
        if it.is_start:
            self.server.stop()
            self.shim.arm(it.failure.mode, list(it.failure.calls), it.failure.error, it.after)
            self.start_failing(it)
        else:
            self.shim.arm(it.failure.mode, list(it.failure.calls), it.failure.error, it.after)
            self.load()
        self.shim.disarm()
        self.go_on(it)

    def start_failing(self, it: Round) -> None:
        """Start while calls fail: it serves, ready or not, or ends with an exit code."""
        server = self.server
        server.launch()
        try:
            wait_until(
                "the start ends or serves",
                lambda: not server.is_running() or server.is_answering("/livez"),
                GO_ON_SECONDS,
            )
        except AssertionError:
            self.shim.disarm()
            self.finding(it, "the start neither ended nor served")
            self.shim.kill(server)

    def go_on(self, it: Round) -> None:
        """Wait until the archive does all its work again; a restart is a finding."""
        if not self.server.is_running():
            assert self.server.process is not None
            code = self.server.process.returncode
            if code not in EXIT_CODES:
                self.finding(it, f"ended with {code}: {self.server.tail(5)}")
            self.restart(it)
        try:
            wait_until("the archive works again", self.is_working, GO_ON_SECONDS)
        except AssertionError:
            self.finding(it, f"needs a restart: {self.server.tail(3)}")
            self.shim.kill(self.server)
            self.restart(it)

    def restart(self, it: Round) -> None:
        """Start again, with nothing failing."""
        try:
            self.server.start()
        except AssertionError as error:
            self.finding(it, f"does not start: {error}")
            raise

    def is_working(self) -> bool:
        """Whether it stores, seals and is ready."""
        if not self.server.is_running():
            self.server.start()
        client = self.driver.client
        try:
            for storage_class in ("STANDARD", "DEEP_ARCHIVE"):
                client.put_object(Bucket=BUCKET, Key="probe", Body=b"p", StorageClass=storage_class)
            client.delete_object(Bucket=BUCKET, Key="probe")
        except (*self.driver.connection_errors, client.exceptions.ClientError):
            return False
        done = self.server.run("archive", "seal", "--data", str(self.server.data))
        return done.returncode == 0 and self.server.is_answering("/readyz")

    def finding(self, it: Round, what: str) -> None:
        """Note a failure that the archive did not get over."""
        where = "start" if it.is_start else "load"
        hit = [record for record in self.shim.records() if record.op == "I"][-1:]
        path = hit[0].path.removeprefix(str(self.shim.root)) if hit else "no call"
        self.findings.append(f"{it.failure}, call {it.after} of the {where} ({path}): {what}")

    def check(self, start: Start, folder: Path) -> list[Loss]:
        """Everything acknowledged is there: now, after a kill, and on what the disk holds."""
        losses = self.check_state(self.server)
        self.shim.kill(self.server)
        losses += self.check_state(self.server.start())
        self.shim.kill(self.server)
        disk = Disk(self.shim.root)
        disk.take(self.shim.records())
        folder.mkdir()
        disk.cut("strict", self.rng, folder / "data")
        assert not disk.unseen, disk.unseen
        try:
            server = start(CONFIG, folder=folder)
        except AssertionError as error:
            return [*losses, Loss(f"what is on the disk does not start: {error}")]
        return losses + self.check_state(server)

    def check_state(self, server: Server) -> list[Loss]:
        """Compare one archive with what was acknowledged until now."""
        assert refused(lambda: server.s3().head_object(Bucket=BUCKET, Key="probe"))[0] == 404
        return Oracle(self.driver, self.shim.position()).check(server)


def rounds_of(stretch: Stretch, number: int) -> list[Round]:
    """The rounds of one stretch: some by seed, or all of one failure."""
    rng = stretch.rng

    def calls_of(failure: Failure, is_start: bool) -> int:
        counted = stretch.start_calls if is_start else stretch.calls
        return sum(counted[name] for name in failure.calls)

    if EVERY:
        failure = FAILURES[number]
        return [
            Round(failure, after, is_start)
            for is_start in (True, False)
            for after in range(1, calls_of(failure, is_start) + 1)
        ]
    rounds = []
    for at in range(min(ROUNDS_PER_STRETCH, ROUNDS - number * ROUNDS_PER_STRETCH)):
        failure = FAILURES[(number * ROUNDS_PER_STRETCH + at) % len(FAILURES)]
        is_start = rng.randrange(4) == 0
        if calls_of(failure, is_start) == 0:
            is_start = not is_start
        most = calls_of(failure, is_start)
        # A file is cut only where a start finds one that a crash left too long.
        if most > 0:
            rounds.append(Round(failure, rng.randint(1, most), is_start))
    return rounds


@pytest.mark.parametrize(
    "number", range(len(FAILURES) if EVERY else -(-ROUNDS // ROUNDS_PER_STRETCH))
)
def test_every_call_may_fail(start: Start, tmp_path: Path, number: int) -> None:
    """Let one call after the other fail."""
    stretch = Stretch(tmp_path / "archive", number)
    rounds = rounds_of(stretch, number)
    if not rounds:
        stretch.server.kill()
        pytest.skip("neither a start nor the load has a call that could fail")
    try:
        missed = [str(it) for it in rounds if not stretch.meet(it)]
        losses = stretch.check(start, tmp_path / "disk")
    finally:
        stretch.server.kill()
    # Going through every call, the last ones of the counted load may not come again.
    assert EVERY or not missed, f"no call failed in {missed}"
    failures = [*stretch.findings, *(f"{loss.key}: {loss.what}" for loss in losses)]
    assert not failures, "\n".join(failures)


def test_unconfirmed_restore_completes(tmp_path: Path) -> None:
    """The sync behind a request fails, but its row is there once the catalog is opened again."""
    server = Server(folder=tmp_path / "archive", config=CONFIG)
    shim = Shim(tmp_path / "shim", server.data)
    server.environment = shim.environment()
    try:
        server.start()
        client = server.s3()
        client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key="a", Body=b"a", StorageClass="DEEP_ARCHIVE")
        server.seal()
        shim.arm("once", ["sync"], errno.EIO, match="/catalog/")
        assert refused(lambda: restore(client, BUCKET, "a"))[0] == 503
        assert shim.disarm() == 1
        wait_until("the copy is there", lambda: is_restored(client, BUCKET, "a"))
    finally:
        server.kill()
