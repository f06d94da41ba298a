"""A run under the shim with a load of which every answer is placed on the run's clock.

What was acknowledged at a moment follows from the clock alone, so that one run can be cut at any
number of places.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crash_driver import BUCKET, DAYS_FOREVER, Driver, Key, Version, matches
from fault_shim import Shim
from harness import Server, keys_of, read, restore, wait_restored, wait_until

LARGE_BYTES_MAX = 600_000


@dataclass
class Event:
    """One request that changes a key: when it was sent, and when it was answered."""

    outcome: Version | None
    begin: int
    end: int | None = None


@dataclass
class Allowed:
    """What a key may be at a moment; the first is what was acknowledged last."""

    outcomes: list[Version | None]
    history: list[Event]


class RecordedDriver(Driver):
    """The crash test's load, which also writes down when each request was answered."""

    # One upload in so many is large.
    large_every = 12

    def __init__(self, server: Server, shim: Shim, seed: int, threads: int) -> None:
        """Make clients and keys; nothing is sent yet."""
        super().__init__(server, seed, threads)
        self.shim = shim
        self.events: dict[str, list[Event]] = {key.name: [] for key in self.every_key()}

    def _begin(self, key: Key, outcome: Version | None) -> None:
        super()._begin(key, outcome)
        self.events[key.name].append(Event(outcome, self.shim.position()))

    def _done(self, key: Key, outcome: Version | None) -> None:
        super()._done(key, outcome)
        self.events[key.name][-1].end = self.shim.position()

    def _body_bytes(self, rng: random.Random) -> int:
        if rng.randrange(self.large_every) == 0:
            return rng.randrange(LARGE_BYTES_MAX)
        return super()._body_bytes(rng)

    def allowed(self, name: str, moment: int) -> Allowed:
        """What the key may be when the power went at `moment`."""
        outcomes: list[Version | None] = [None]
        for event in self.events[name]:
            if event.end is not None and event.end <= moment:
                outcomes = [event.outcome]
            elif event.begin < moment:
                outcomes.append(event.outcome)
        return Allowed(outcomes, self.events[name])


@dataclass
class Loss:
    """Something that is not as it was acknowledged."""

    what: str
    key: str = ""


@dataclass
class Oracle:
    """What must be there after a cut, and what is not."""

    driver: RecordedDriver
    moment: int
    restore_seconds: float = 120.0
    losses: list[Loss] = field(default_factory=list)

    def check(self, server: Server) -> list[Loss]:
        """Compare a started archive with what was acknowledged, to the last byte."""
        s3 = server.s3()
        kept = self._check_listing(s3)
        archived = {name: it for name, it in kept.items() if it.storage_class != "STANDARD"}
        for name, version in kept.items():
            if name not in archived:
                self._check_body(s3, name, version)
        with self._noting("sealing and restoring"):
            server.seal()
            for name in archived:
                wait_until(f"{name!r} takes a restore", lambda name=name: asks(s3, name))
            wait_restored(s3, BUCKET, self.restore_seconds)
        for name, version in archived.items():
            self._check_body(s3, name, version)
        return self.losses

    def _check_listing(self, s3: Any) -> dict[str, Version]:
        listed: dict[str, dict[str, Any]] = {}
        with self._noting("listing"):
            listed = {item["Key"]: item for item in keys_of(s3, BUCKET)}
        kept = {}
        for name in self.driver.events:
            item = listed.pop(name, None)
            allowed = self.driver.allowed(name, self.moment)
            found = [version for version in allowed.outcomes if matches(version, item)]
            if not found:
                self.losses.append(Loss(f"may be {allowed}, and is {item}", name))
            elif found[0] is not None:
                kept[name] = found[0]
        self.losses += [Loss("nobody put it", name) for name in listed]
        return kept

    def _check_body(self, s3: Any, name: str, version: Version) -> None:
        with self._noting("reading", name):
            if read(s3, BUCKET, name) != version.body():
                self.losses.append(Loss("other bytes than were put", name))

    @contextmanager
    def _noting(self, what: str, key: str = "") -> Iterator[None]:
        """Write a failure down and go on: a check names every loss, not only the first."""
        try:
            yield
        except Exception as error:
            self.losses.append(Loss(f"{what}: {error}", key))


def asks(s3: Any, key: str) -> bool:
    """Ask for a copy that outlasts the test; a restore already under way may end too soon."""
    try:
        restore(s3, BUCKET, key, days=DAYS_FOREVER)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "RestoreAlreadyInProgress":
            raise
        return False
    return True
