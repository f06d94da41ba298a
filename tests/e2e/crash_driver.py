"""Load for the crash test, and the memory of what was acknowledged.

Every key belongs to one thread, so at most one request for it is under way when the archive dies;
that request may have happened or not, every earlier one must have happened.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from botocore.handlers import add_expect_header
from harness import Server, keys_of, read, restore, wait_until

BUCKET = "crash"
# One key in so many is only read for a while after each change and each restore. The faster a
# machine, the sooner every other key is put or restored again: none would reach glass, or none of
# the copies there would live to its expiry, which every restore puts off.
CALM_KEYS_EVERY = 4
CALM_SECONDS = 5.0
# Restore days of the last check are the configured short ones; this many outlast the test.
DAYS_FOREVER = 36_000
# How long a process may go on running after it stopped answering.
DEATH_SECONDS = 60.0
# What the archive may answer while it is alive; anything else is a finding.
EXPECTED_CODES = {"InvalidObjectState", "RestoreAlreadyInProgress", "SlowDown"}


Verb = Callable[[Any, "Key", random.Random], None]


@dataclass(frozen=True)
class Version:
    """One acknowledged upload; bodies are made from their seed, not kept."""

    body_seed: int
    size: int
    storage_class: str
    tag: str

    def body(self) -> bytes:
        """Make the bytes."""
        return random.Random(self.body_seed).randbytes(self.size)


@dataclass
class Key:
    """What is known of one key."""

    name: str
    is_calm: bool = False
    # When it was changed or restored last, by the monotonic clock.
    touched: float = 0.0
    acknowledged: Version | None = None
    # Outcomes that a request without an answer may have had.
    possible: list[Version | None] = field(default_factory=list)
    # What happened to it, oldest first, for the message of a failure.
    history: list[str] = field(default_factory=list)


class Driver:
    """Puts, deletes, restores and reads on several threads until the archive dies."""

    connection_errors = (NoConnection, HTTPClientError)
    keys_per_thread = 24
    body_bytes_max = 40_000
    # Weighted by repetition.
    storage_classes = ("STANDARD", "GLACIER", "DEEP_ARCHIVE", "DEEP_ARCHIVE")

    def __init__(self, server: Server, seed: int, threads: int) -> None:
        """Make clients and keys; nothing is sent yet."""
        self.server = server
        self.client = server.s3()
        self.findings: list[str] = []
        self.acknowledged = 0
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._clients = [server.s3() for _ in range(threads)]
        for client in self._clients:
            # After an answer to an empty body, botocore takes the next answer on that connection
            # for a success without reading it; it does not when it never waits for 100 Continue.
            client.meta.events.unregister("before-call.s3", add_expect_header)
        self._keys = [
            [
                Key(f"{thread}/{at:02} {thread}+%", is_calm=at % CALM_KEYS_EVERY == 0)
                for at in range(self.keys_per_thread)
            ]
            for thread in range(threads)
        ]

    def every_key(self) -> list[Key]:
        """Every key of every thread."""
        return [key for keys in self._keys for key in keys]

    def run(self, until: Callable[[], None]) -> None:
        """Load the archive while `until` runs; return when every thread has stopped."""
        self._stop.clear()
        threads = [
            threading.Thread(
                target=self._work, args=(client, keys, self._random.randrange(1 << 30))
            )
            for client, keys in zip(self._clients, self._keys, strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            until()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _work(self, client: Any, keys: list[Key], seed: int) -> None:
        rng = random.Random(seed)
        while not self._stop.is_set():
            key, verb = self._choose(keys, rng)
            try:
                verb(client, key, rng)
                self.acknowledged += 1
            except self.connection_errors as error:
                # A dead archive answers nobody; a living one owes every request an answer.
                if self._outlives_its_connections():
                    self.findings.append(f"{verb.__name__} of {key.name!r}: {error!r}")
                return
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code not in EXPECTED_CODES:
                    self.findings.append(f"{verb.__name__} of {key.name!r}: {error}")

    def _choose(self, keys: list[Key], rng: random.Random) -> tuple[Key, Verb]:
        """Choose the next request."""
        verbs = [self._put, self._put, self._put, self._put_parts, self._delete, self._restore]
        verbs += [self._read, self._read]
        key, verb = rng.choice(keys), rng.choice(verbs)
        if key.is_calm:
            is_left_alone = time.monotonic() < key.touched + CALM_SECONDS
            verb = self._read if is_left_alone else rng.choice([verb, self._restore])
        return key, verb

    def _outlives_its_connections(self) -> bool:
        try:
            wait_until("the archive dies", lambda: not self.server.is_running(), DEATH_SECONDS)
        except AssertionError:
            return True
        return False

    def _begin(self, key: Key, outcome: Version | None) -> None:
        key.touched = time.monotonic()
        key.possible.append(outcome)
        key.history.append(f"asked for {outcome}")

    def _done(self, key: Key, outcome: Version | None) -> None:
        key.acknowledged = outcome
        key.possible.clear()
        key.history.append("acknowledged")

    def _new_version(self, rng: random.Random, is_parts: bool) -> Version:
        body_seed, size = rng.randrange(1 << 62), self._body_bytes(rng)
        storage_class = rng.choice(self.storage_classes)
        digest = hashlib.md5(random.Random(body_seed).randbytes(size))
        tag = digest.hexdigest()
        if is_parts:
            tag = hashlib.md5(digest.digest()).hexdigest() + "-1"
        return Version(body_seed, size, storage_class, tag)

    def _body_bytes(self, rng: random.Random) -> int:
        return int(rng.random() ** 3 * self.body_bytes_max)

    def _put(self, client: Any, key: Key, rng: random.Random) -> None:
        version = self._new_version(rng, is_parts=False)
        self._begin(key, version)
        client.put_object(
            Bucket=BUCKET, Key=key.name, Body=version.body(), StorageClass=version.storage_class
        )
        self._done(key, version)

    def _put_parts(self, client: Any, key: Key, rng: random.Random) -> None:
        version = self._new_version(rng, is_parts=True)
        target = {"Bucket": BUCKET, "Key": key.name}
        upload = client.create_multipart_upload(**target, StorageClass=version.storage_class)
        target["UploadId"] = upload["UploadId"]
        part = client.upload_part(**target, PartNumber=1, Body=version.body())
        self._begin(key, version)
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        client.complete_multipart_upload(**target, MultipartUpload=parts)
        self._done(key, version)

    def _delete(self, client: Any, key: Key, rng: random.Random) -> None:
        self._begin(key, None)
        client.delete_object(Bucket=BUCKET, Key=key.name)
        self._done(key, None)

    def _restore(self, client: Any, key: Key, rng: random.Random) -> None:
        version = key.acknowledged
        if version is None or version.storage_class == "STANDARD":
            return
        key.touched = time.monotonic()
        restore(client, BUCKET, key.name, days=1)

    def _read(self, client: Any, key: Key, rng: random.Random) -> None:
        version = key.acknowledged
        if version is not None and read(client, BUCKET, key.name) != version.body():
            self.findings.append(f"{key.name!r} gave other bytes than were put")

    def check_listing(self) -> None:
        """After a restart: every key is what was acknowledged, or what was under way."""
        listed = {item["Key"]: item for item in keys_of(self.client, BUCKET)}
        strangers = listed.keys() - {key.name for key in self.every_key()}
        assert not strangers, f"keys nobody put: {strangers}"
        for key in self.every_key():
            item = listed.get(key.name)
            allowed = [key.acknowledged, *key.possible]
            found = [version for version in allowed if matches(version, item)]
            past = "\n".join(key.history)
            assert found, f"{key.name!r}: allowed {allowed}, listed {item}, history:\n{past}"
            key.acknowledged, key.possible = found[0], []
            key.history.append(f"restarted with {key.acknowledged}")

    def check_standard(self, limit: int | None = None) -> None:
        """STANDARD objects are readable at once."""
        kept = [key for key in self.every_key() if key.acknowledged]
        standard = [key for key in kept if key.acknowledged.storage_class == "STANDARD"]
        if limit is not None:
            standard = self._random.sample(standard, min(limit, len(standard)))
        for key in standard:
            assert read(self.client, BUCKET, key.name) == key.acknowledged.body(), key

    def archived(self) -> list[Key]:
        """Keys whose object is archived."""
        kept = [key for key in self.every_key() if key.acknowledged]
        return [key for key in kept if key.acknowledged.storage_class != "STANDARD"]


def matches(version: Version | None, item: dict[str, Any] | None) -> bool:
    """Whether a listed item is this version."""
    if version is None or item is None:
        return version is None and item is None
    listed = (item["ETag"].strip('"'), item["Size"], item["StorageClass"])
    return listed == (version.tag, version.size, version.storage_class)
