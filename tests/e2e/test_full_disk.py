"""A disk that is full: what is refused, what still works, and that it mends by itself.

The data directory is on a tmpfs of its own and a file beside it takes the rest of the room, so
these tests need root; elsewhere they are skipped with a line.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from conftest import Start
from harness import KIB, MIB, STOP_SECONDS, code_of, read, refused, wait_until

DISK = 64 * MIB
FLOOR = 4 * MIB
FULL = (507, "InsufficientStorage")


@dataclass
class Disk:
    """A small disk, and a file that takes what room there is."""

    folder: Path

    @property
    def ballast(self) -> Path:
        """The file that takes room."""
        return self.folder / "ballast"

    def free(self) -> int:
        """Bytes free."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Take all room but `leave` bytes."""
        with self.ballast.open("ab") as file:
            while (more := self.free() - leave) > 0:
                try:
                    file.write(b"\1" * more)
                    file.flush()
                except OSError:
                    break

    def empty(self) -> None:
        """Give the room back."""
        self.ballast.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of its own for the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if os.geteuid() != 0:
        pytest.skip("a full disk is made with mount, which needs root")
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"this root may not mount: {mounted.stderr.strip()}")
    # What the server prints goes elsewhere: these tests are about its data.
    (folder / "archive").mkdir()
    (folder / "archive" / "serve.log").symlink_to(tmp_path / "serve.log")
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def settings(**storage: Any) -> dict[str, Any]:
    """Configure an archive whose logs could take the whole disk."""
    return {
        "profile": "demo",
        "moves": {"age": "10d", "bytes": "48MiB"},
        "storage": {"log_capacity": "48MiB", "free_min": f"{FLOOR}B"} | storage,
    }


def put_until_refused(s3: Any, bucket: str) -> dict[str, bytes]:
    """Put objects until one is refused for lack of room: those that were not."""
    kept: dict[str, bytes] = {}
    while True:
        body = os.urandom(500 * KIB)
        try:
            s3.put_object(Bucket=bucket, Key=f"key-{len(kept)}", Body=body)
        except ClientError as error:
            assert code_of(error) == FULL, error
            return kept
        kept[f"key-{len(kept)}"] = body


def test_full_disk_refuses_puts_early_but_not_deletions(start: Start, disk: Disk) -> None:
    """Puts, parts and copies meet the floor; deletions give room back that is taken again."""
    server = start(settings(log_capacity="1GiB"), folder=disk.folder / "archive")
    s3 = server.s3()
    s3.create_bucket(Bucket="full")
    upload = s3.create_multipart_upload(Bucket="full", Key="parts")["UploadId"]
    kept = put_until_refused(s3, "full")
    assert len(kept) > 10
    assert disk.free() >= FLOOR, "the floor is kept"
    part = {"Bucket": "full", "Key": "parts", "UploadId": upload, "PartNumber": 1}
    big = b"x" * (6 * MIB)
    assert refused(lambda: s3.upload_part(**part, Body=big)) == FULL
    copy = {"CopySource": "full/key-0"}
    assert refused(lambda: s3.copy_object(Bucket="full", Key="copy", **copy)) == FULL
    assert server.is_answering("/readyz"), "a full disk is no reason to take the archive away"
    status = server.status()
    assert status["free_bytes_min"] == FLOOR
    assert status["reserve_bytes"] == status["reserve_bytes_wanted"] > 0
    # Deleting gives the room back, and what it gave is taken again.
    for key in list(kept)[:8]:
        s3.delete_object(Bucket="full", Key=key)
        del kept[key]
    s3.put_object(Bucket="full", Key="again", Body=b"a" * (500 * KIB))
    server.restart()
    assert {key: read(server.s3(), "full", key) for key in kept} == kept


def test_body_of_unknown_length_is_checked_while_read(start: Start, disk: Disk) -> None:
    """A chunked body that outgrows the disk is refused, and its room comes back."""
    server = start(settings(log_capacity="1GiB"), folder=disk.folder / "archive")
    s3 = server.s3()
    s3.create_bucket(Bucket="full")
    command = [
        "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}",
        "--aws-sigv4", "aws:amz:us-east-1:s3",
        "--user", "E2EACCESSKEY00000001:e2e-secret-of-forty-characters-abcdefghij",
        "--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
        "--header", "Transfer-Encoding: chunked",
        "--upload-file", "-", f"{server.endpoint}/full/endless",
    ]  # fmt: skip
    if subprocess.run(["curl", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("curl is not installed")
    body = os.urandom(DISK)
    done = subprocess.run(
        command, input=body, capture_output=True, check=False, timeout=STOP_SECONDS
    )
    # Without a length S3 may refuse at once (411); with decoded framing it is the disk that says.
    assert done.stdout in (b"507", b"411"), done
    wait_until("its room is given back", lambda: disk.free() > DISK // 2)
    s3.put_object(Bucket="full", Key="small", Body=b"body")


def test_catalog_recovers_by_itself_from_a_full_disk(start: Start, disk: Disk) -> None:
    """Reads continue, readyz says why, and free space alone restores writes."""
    # Without a reserve nothing but room helps.
    server = start(settings(reserve="0B"), folder=disk.folder / "archive")
    s3 = server.s3()
    s3.create_bucket(Bucket="first")
    s3.put_object(Bucket="first", Key="key", Body=b"body")
    made = {"first"}
    disk.fill()

    def is_broken() -> bool:
        """Make buckets, which are rows and nothing else, until one is refused."""
        name = f"bucket-{len(made)}"
        try:
            s3.create_bucket(Bucket=name)
        except ClientError as error:
            assert code_of(error) == (503, "ServiceUnavailable")
            return True
        made.add(name)
        return False

    wait_until("the journal meets the end of the disk", is_broken)
    code, page = server.fetch("/readyz")
    assert code == 503 and b"not ready: nothing can be written" in page, page
    assert read(s3, "first", "key") == b"body", "reads go on"
    # What was refused is not there; unconfirmed puts may be.
    assert made <= {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    assert server.status()["catalog_refusal"]

    disk.empty()
    wait_until("it is ready again, without a restart", lambda: server.is_answering("/readyz"))
    s3.create_bucket(Bucket="after")
    s3.put_object(Bucket="after", Key="key", Body=b"more")
    assert server.status()["catalog_refusal"] is None
    server.kill()
    server.start()
    names = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    assert made | {"after"} <= names <= made | {"after", f"bucket-{len(made)}"}
    assert read(s3, "first", "key") == b"body" and read(s3, "after", "key") == b"more"


def test_server_starts_on_a_full_disk(start: Start, disk: Disk) -> None:
    """At no byte free it starts, reads and deletes."""
    server = start(settings(), folder=disk.folder / "archive")
    s3 = server.s3()
    s3.create_bucket(Bucket="full")
    kept = {}
    for number in range(8):
        kept[f"key-{number}"] = os.urandom(500 * KIB)
        s3.put_object(Bucket="full", Key=f"key-{number}", Body=kept[f"key-{number}"])
    wait_until("the reserve is there", lambda: server.status()["reserve_bytes"] > 0)
    server.kill()
    disk.fill()
    assert disk.free() == 0
    server.start()
    assert server.status()["reserve_bytes"] == 0, "it was given up"
    for number in range(4):
        s3.delete_object(Bucket="full", Key=f"key-{number}")
        del kept[f"key-{number}"]
    assert {key: read(s3, "full", key) for key in kept} == kept
    disk.empty()
    status = server.status()
    wanted = status["reserve_bytes_wanted"]
    wait_until("it is rebuilt", lambda: server.status()["reserve_bytes"] == wanted)
    s3.put_object(Bucket="full", Key="later", Body=b"body")
    server.restart()
    assert {key: read(s3, "full", key) for key in kept} == kept


def test_tomes_keep_acknowledged_objects_on_a_full_disk(start: Start, disk: Disk) -> None:
    """The metadata stores are on a full disk; with space and a restart the set recovers."""
    tomes = {
        "kind": "tome",
        "count": 4,
        "groups": "2+1",
        "segments": 2,
        "regions": 1,
        "spares": 512,
    }
    tomes |= {"backend": "simulated", "make": True}
    server = start(
        settings(reserve="0B") | {"tiers": {"tomes": tomes}}, folder=disk.folder / "archive"
    )
    s3 = server.s3()
    s3.create_bucket(Bucket="cold")
    kept: dict[str, bytes] = {}

    def put(number: int) -> None:
        """Put an object; it counts when that was answered."""
        body, key = os.urandom(3000), f"key-{number}"
        s3.put_object(Bucket="cold", Key=key, Body=body, StorageClass="GLACIER_IR")
        kept[key] = body

    for number in range(3):
        put(number)
    wait_until("all is on tomes", lambda: server.status()["objects_staged"] == 0, 300)
    put(3)
    disk.fill()

    def is_reported() -> bool:
        """Whether the set reports that its disk is full."""
        try:
            put(len(kept))
        except ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] in (503, 507), error
        return b'fulgurite_tier_healthy{tier="tomes",kind="tome"} 0' in server.fetch("/metrics")[1]

    wait_until("tomes report the full disk", is_reported, 300)
    disk.empty()
    server.restart()
    s3 = server.s3()
    assert {key: read(s3, "cold", key) for key in kept} == kept
    wait_until("all is on tomes again", lambda: server.status()["objects_staged"] == 0, 300)
    assert b'fulgurite_tier_healthy{tier="tomes",kind="tome"} 1' in server.fetch("/metrics")[1]
    assert {key: read(s3, "cold", key) for key in kept} == kept
