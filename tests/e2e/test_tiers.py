"""Classes whose objects go to a tier of objects: a bucket of a real S3 server, or a directory.

The server is another archive of this program: its online objects are read at once and its
conditional writes are honored.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from harness import (
    ACCESS_KEY,
    MIB,
    SECRET_KEY,
    STOP_SECONDS,
    Server,
    binary,
    read,
    restore,
    run,
    wait_until,
)

BUCKET = "library"
TIER = "fulgurite-tier"
CLASSES = {"STANDARD": "cold", "GLACIER_IR": "cold", "GLACIER": "cold"}
SIZES = {"STANDARD": 1000, "GLACIER_IR": 20 * MIB, "GLACIER": 300_000}
Make = Callable[..., Server]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make servers that are started when their test likes; all are killed when it ends."""
    servers: list[Server] = []

    def made(*arguments: Any, **options: Any) -> Server:
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield made
    for server in servers:
        server.kill()


@pytest.fixture
def store(make: Make, tmp_path: Path) -> Server:
    """A server with a bucket for a tier."""
    server = make(tmp_path / "store").start()
    server.s3().create_bucket(Bucket=TIER)
    return server


def on_bucket(make: Make, folder: Path, store: Server) -> Server:
    """An archive whose classes go to a bucket of `store`."""
    options = {
        "aws_endpoint": store.endpoint,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
        "aws_access_key_id": ACCESS_KEY,
    }
    config = {
        "classes": CLASSES,
        "tiers": {
            "cold": {"kind": "objects", "url": f"s3://{TIER}/below/here", "options": options}
        },
    }
    secret = {"FULGURITE_TIER_COLD_AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return make(folder / "archive", config, environment=secret)


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes(SIZES[name])


def put_all(server: Server) -> None:
    """Put an object of each class."""
    for name in SIZES:
        server.s3().put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass=name)


def wait_moved(server: Server) -> None:
    """Wait until nothing is staged."""
    wait_until("all is moved", lambda: server.status()["objects_staged"] == 0)
    assert server.status()["objects_in_tiers"] == len(SIZES)


def is_restored(s3: Any) -> bool:
    """Whether the one object that needs it has its copy."""
    return "expiry-date" in s3.head_object(Bucket=BUCKET, Key="GLACIER").get("Restore", "")


def check_all(server: Server) -> None:
    """Read each object, archived ones after a restore."""
    s3 = server.s3()
    with pytest.raises(ClientError, match="InvalidObjectState"):
        s3.get_object(Bucket=BUCKET, Key="GLACIER")
    restore(s3, BUCKET, "GLACIER")
    wait_until("it is restored", lambda: is_restored(s3))
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name
        assert s3.head_object(Bucket=BUCKET, Key=name).get("StorageClass", "STANDARD") == name
    part = s3.get_object(Bucket=BUCKET, Key="GLACIER_IR", Range="bytes=9000000-9000999")
    assert part["Body"].read() == body("GLACIER_IR")[9_000_000:9_001_000]


def recover(server: Server) -> subprocess.CompletedProcess[str]:
    """Rebuild the catalog, with the tiers that the archive is configured with."""
    command = [str(binary()), "recover", "--data", str(server.data)]
    command += ["--config", str(server.folder / "config.toml")]
    return run(command, environment=server.process_environment())


def names(store: Server) -> list[str]:
    """List the bodies and entries in the bucket of a tier."""
    listed = store.s3().list_objects_v2(Bucket=TIER, Prefix="below/here/bodies/")
    return [item["Key"] for item in listed.get("Contents", [])]


def test_objects_live_in_a_bucket_of_an_s3_server(
    make: Make, store: Server, tmp_path: Path
) -> None:
    """Put, move, read, restore, lose the store for a while, recover, delete."""
    server = on_bucket(make, tmp_path, store).start()
    server.s3().create_bucket(Bucket=BUCKET)
    put_all(server)
    wait_moved(server)
    assert len(names(store)) == 2 * len(SIZES)
    assert SECRET_KEY not in server.log.read_text(encoding="utf-8")
    check_all(server)

    # Without its store an archive says so, and serves what it has.
    store.stop()
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        server.s3().get_object(Bucket=BUCKET, Key="STANDARD")
    server.s3().put_object(Bucket=BUCKET, Key="later", Body=b"later")
    assert read(server.s3(), BUCKET, "later") == b"later"
    server.restart()
    assert read(server.s3(), BUCKET, "later") == b"later"
    store.start()
    server.s3().delete_object(Bucket=BUCKET, Key="later")

    # The catalog is lost: what the bucket holds comes back.
    server.stop()
    shutil.rmtree(server.data / "catalog")
    done = recover(server)
    assert done.returncode == 0, done.stderr
    server.start()
    check_all(server)

    for name in SIZES:
        server.s3().delete_object(Bucket=BUCKET, Key=name)
    wait_until("the bucket is empty", lambda: not names(store))


def test_a_bucket_of_another_archive_is_left_alone(
    make: Make, store: Server, tmp_path: Path
) -> None:
    """The first archive takes it; the second says whose it is, and keeps what it has staged."""
    first = on_bucket(make, tmp_path / "first", store).start()
    second = on_bucket(make, tmp_path / "second", store)
    first.s3().create_bucket(Bucket=BUCKET)
    put_all(first)
    wait_moved(first)
    before = names(store)
    second.start()
    second.s3().create_bucket(Bucket=BUCKET)
    put_all(second)
    wait_until("it says so", lambda: "of archive" in second.tail())
    assert names(store) == before
    assert read(second.s3(), BUCKET, "STANDARD") == body("STANDARD")


def test_secrets_and_unknown_tiers_in_the_file_are_refused(make: Make, tmp_path: Path) -> None:
    """Each with the name of what is wrong."""
    hidden = {"aws_secret_access_key": "hidden"}
    for wrong, message in [
        ({"classes": {"GLACIER": "cold"}}, "cold"),
        ({"classes": {"COLD": "glass"}}, "COLD"),
        ({"classes": {"STANDARD": {"tier": "glass", "access": "at-once"}}}, "glass"),
        (
            {"tiers": {"cold": {"kind": "objects", "url": "s3://b", "options": hidden}}},
            "FULGURITE_TIER_COLD_AWS_SECRET_ACCESS_KEY",
        ),
        ({"tiers": {"Cold": {"kind": "objects", "url": "file:///tmp"}}}, "Cold"),
    ]:
        server = make(tmp_path, wrong)
        server.launch()
        assert server.process is not None
        assert server.process.wait(timeout=STOP_SECONDS) == 3, server.tail()
        assert message in server.tail(), (wrong, server.tail())
        assert "hidden" not in server.tail()


def test_objects_are_moved_to_another_class(make: Make, tmp_path: Path) -> None:
    """An operator moves one, then all below a prefix; what is archived is named and left."""
    tier = tmp_path / "tier"
    config = {"classes": CLASSES, "tiers": {"cold": {"kind": "objects", "url": f"file://{tier}"}}}
    server = make(tmp_path / "archive", config).start()
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    for name in ["docs/a", "docs/b", "other"]:
        s3.put_object(Bucket=BUCKET, Key=name, Body=name.encode(), Metadata={"of": name})
    s3.put_object(Bucket=BUCKET, Key="docs/deep", Body=b"deep", StorageClass="DEEP_ARCHIVE")
    moved = server.admin("move", f"s3://{BUCKET}/docs/a", "--class", "GLACIER_IR")
    assert (moved["objects"], moved["bytes"], moved["left"]) == (1, 6, [])
    command = ["archive", "move", "--data", str(server.data), "--class", "GLACIER_IR"]
    done = server.run(*command, "--recursive", f"s3://{BUCKET}/docs/")
    assert done.returncode == 10, done.stderr
    assert "1 object with 6 B moved; 1 there already" in done.stdout, done.stdout
    assert f"s3://{BUCKET}/docs/deep  left: " in done.stdout, done.stdout
    classes = {name: class_of(s3, name) for name in ["docs/a", "docs/b", "docs/deep", "other"]}
    expected = ["GLACIER_IR", "GLACIER_IR", "DEEP_ARCHIVE", "STANDARD"]
    assert list(classes.values()) == expected, classes
    wait_until("the tier has them", lambda: server.status()["objects_in_tiers"] == 3)
    for name in ["docs/a", "docs/b"]:
        assert read(s3, BUCKET, name) == name.encode()
        assert s3.head_object(Bucket=BUCKET, Key=name)["Metadata"] == {"of": name}
        located = server.admin("locate", f"s3://{BUCKET}/{name}")
        assert (located["residence"], located["tier"]) == ("tier", "cold")
    missing = server.run(*command, f"s3://{BUCKET}/none")
    assert missing.returncode == 4, missing.stderr


def class_of(s3: Any, name: str) -> str:
    """Return the storage class of an object."""
    found: str = s3.head_object(Bucket=BUCKET, Key=name).get("StorageClass", "STANDARD")
    return found


def test_a_kill_at_each_step_on_the_way_to_a_bucket_loses_nothing(
    make: Make, store: Server, tmp_path: Path
) -> None:
    """Die behind each step of bringing and removing, start again, find all of it once."""
    server = on_bucket(make, tmp_path, store)
    is_first = True
    for point in ["move-written", "move-committed", "move-removed"]:
        server.environment["FULGURITE_FAIL_POINT"] = f"{point}:0"
        server.start()
        if is_first:
            server.s3().create_bucket(Bucket=BUCKET)
            is_first = False
        # What is put over has to leave the bucket: then a removal is killed, too.
        acknowledged = []
        while server.is_running():
            try:
                for name in SIZES:
                    server.s3().put_object(
                        Bucket=BUCKET, Key=name, Body=body(name), StorageClass=name
                    )
                    acknowledged.append(name)
            except (ClientError, HTTPClientError, NoConnection):
                wait_until("it is dead", lambda: not server.is_running())
        assert server.process is not None
        assert server.process.returncode == -9, server.tail()
        server.environment.pop("FULGURITE_FAIL_POINT")
        server.start()
        for name in set(acknowledged) - {"GLACIER"}:
            assert read(server.s3(), BUCKET, name) == body(name), (point, name)
        server.stop()
    server.start()
    put_all(server)
    wait_moved(server)
    check_all(server)
    wait_until("the rest is removed", lambda: len(names(store)) == 2 * len(SIZES))


def test_objects_changed_in_the_bucket_are_never_served(
    make: Make, store: Server, tmp_path: Path
) -> None:
    """Swap, cut short and remove behind the archive's back."""
    server = on_bucket(make, tmp_path, store).start()
    server.s3().create_bucket(Bucket=BUCKET)
    for name in ["one", "two"]:
        value = random.Random(name).randbytes(200_000)
        server.s3().put_object(Bucket=BUCKET, Key=name, Body=value, StorageClass="GLACIER_IR")
    wait_until("both are moved", lambda: server.status()["objects_in_tiers"] == 2)
    bodies = [name for name in names(store) if "/bodies/" in name and not name.endswith(".entry")]
    kept = [read(store.s3(), TIER, name) for name in bodies]
    for one, two in [(kept[1], kept[0]), (kept[0][:100_000], kept[1][:1]), (None, None)]:
        for name, value in zip(bodies, [one, two], strict=True):
            if value is None:
                store.s3().delete_object(Bucket=TIER, Key=name)
            else:
                store.s3().put_object(Bucket=TIER, Key=name, Body=value)
        for name in ["one", "two"]:
            with pytest.raises((ClientError, HTTPClientError)):
                read(server.s3(), BUCKET, name)
        done = server.run("archive", "verify", "--data", str(server.data))
        assert done.returncode == 8, done.stderr
        assert "tier cold  2 of 2 bodies damaged" in done.stdout, done.stdout
        assert f"s3://{BUCKET}/one  " in done.stdout, done.stdout
    for name, value in zip(bodies, kept, strict=True):
        store.s3().put_object(Bucket=TIER, Key=name, Body=value)
    for name in ["one", "two"]:
        assert read(server.s3(), BUCKET, name) == random.Random(name).randbytes(200_000)
    assert server.run("archive", "verify", "--data", str(server.data)).returncode == 0
