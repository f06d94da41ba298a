"""What programs of before wrote is opened, read, restored and recovered by this one.

Each fixture is a data directory that a program of before left when it was killed; see `older_data`.
A format may change; what was acknowledged may not.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harness import Server, is_restored, read, refused, restore, wait_until
from older_data import BUCKET, CONFIG, FIXTURES, digest_of, listing, unpack

OLDER = sorted(FIXTURES.glob("data-*.tar.xz"))
Served = tuple[Server, dict[str, Any]]


def test_fixtures_exist() -> None:
    """Without any the tests below would all pass."""
    names = {path.name for path in OLDER}
    assert names >= {"data-0.1.tar.xz", "data-0.1-planned.tar.xz"}


@pytest.fixture(params=OLDER, ids=lambda path: path.name.removesuffix(".tar.xz"))
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An archive of before, not started, and what it holds."""
    held = unpack(request.param, tmp_path)
    server = Server(folder=tmp_path, config=CONFIG | {"library": {"time_scale": 0.0}})
    yield server, held
    server.kill()


def restore_all(s3: Any, held: dict[str, Any]) -> None:
    """Ask for each archived object that has no copy, and wait for it."""
    for row in held["objects"]:
        key = row["Key"]
        if row["StorageClass"] == "STANDARD":
            continue
        if "Restore" not in s3.head_object(Bucket=BUCKET, Key=key):
            restore(s3, BUCKET, key)
        wait_until(f"{key} is restored", lambda key=key: is_restored(s3, BUCKET, key))


def check_bytes(s3: Any, held: dict[str, Any]) -> None:
    """Every byte of every object is what it was."""
    assert {row["Key"] for row in held["objects"]} == set(held["sha256"])
    for key, digest in held["sha256"].items():
        assert digest_of(s3, key) == digest, key


def check_upload(s3: Any, held: dict[str, Any]) -> None:
    """The upload goes on where it was: its part is there, and it can be completed."""
    saved = held["upload"]
    (upload,) = s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert (upload["Key"], upload["UploadId"]) == ("upload", saved["UploadId"])
    target = {"Bucket": BUCKET, "Key": "upload", "UploadId": saved["UploadId"]}
    (part,) = s3.list_parts(**target)["Parts"]
    named = {name: part[name] for name in ("PartNumber", "ETag", "ChecksumSHA256")}
    assert named == {"PartNumber": 3, **{name: saved[name] for name in ("ETag", "ChecksumSHA256")}}
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": [named]})
    restore(s3, BUCKET, "upload")
    wait_until("the upload is restored", lambda: is_restored(s3, BUCKET, "upload"))
    assert digest_of(s3, "upload") == saved["sha256"]
    head = s3.head_object(Bucket=BUCKET, Key="upload")
    assert head["Metadata"] == held["metadata"]
    s3.delete_object(Bucket=BUCKET, Key="upload")


def unconfirmed(server: Server) -> list[str]:
    """Return the keys of unconfirmed objects."""
    return [row["key"] for row in server.status()["objects_in_doubt"]]


def test_older_data_is_served(older: Served) -> None:
    """Everything stored is unchanged, including unconfirmed objects; pending work continues."""
    server, held = older
    server.start()
    s3 = server.s3()
    assert {row["Name"] for row in s3.list_buckets()["Buckets"]} == {BUCKET, "empty-bucket"}
    assert listing(s3) == held["objects"]
    assert is_restored(s3, BUCKET, held["restored"])
    assert digest_of(s3, held["restored"]) == held["sha256"][held["restored"]]
    queued = held["queued"]
    wait_until(f"{queued} comes", lambda: is_restored(s3, BUCKET, queued))
    assert unconfirmed(server) == held["in_doubt"]
    check_upload(s3, held)
    server.seal()
    status = server.status()
    assert (status["objects_staged"], status["keys_lost"]) == (0, 0)
    assert {row["state"] for row in status["sets"]} == {"released"}
    restore_all(s3, held)
    check_bytes(s3, held)
    # Deleting ends the copy, the unconfirmed state and the key, whichever version wrote their rows.
    for key in (held["restored"], *held["in_doubt"]):
        s3.delete_object(Bucket=BUCKET, Key=key)
    server.restart()
    assert unconfirmed(server) == []
    assert refused(lambda: read(s3, BUCKET, held["restored"]))[0] == 404


def test_catalog_of_older_data_is_recovered(older: Served) -> None:
    """Platters, logs and keys of before give the same objects, with those of today beside them."""
    server, held = older
    server.start()
    s3 = server.s3()
    s3.put_object(Bucket=BUCKET, Key="today", Body=b"today", StorageClass="GLACIER")
    server.stop()
    shutil.rmtree(server.data / "catalog")
    done = server.run("recover", "--data", str(server.data))
    assert done.returncode == 0, done.stderr + done.stdout
    server.start()
    today = [row for row in listing(s3) if row["Key"] == "today"]
    assert [row for row in listing(s3) if row not in today] == held["objects"]
    assert unconfirmed(server) == held["in_doubt"]
    check_upload(s3, held)
    restore(s3, BUCKET, "today")
    wait_until("what is of today is restored", lambda: is_restored(s3, BUCKET, "today"))
    assert read(s3, BUCKET, "today") == b"today"
    restore_all(s3, held)
    check_bytes(s3, held)


def test_older_data_is_recovered_after_a_kill(older: Served) -> None:
    """Without a start between, the deletion that was not acknowledged is all that may differ."""
    server, held = older
    shutil.rmtree(server.data / "catalog")
    done = server.run("recover", "--data", str(server.data))
    assert done.returncode == 0, done.stderr + done.stdout
    server.start()
    s3 = server.s3()
    rows = [row for row in listing(s3) if row["Key"] != held["shredded_late"]]
    assert rows == held["objects"]
    restore_all(s3, held)
    check_bytes(s3, held)


def test_older_platters_are_self_describing(older: Served) -> None:
    """`inspect` reads each platter whole, without catalog or keys, and finds no name on it."""
    server, _ = older
    entries = 0
    for path in sorted(server.platters.glob("*.glass")):
        done = server.run("inspect", "--json", "--map", str(path))
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        (header,) = (row for row in rows if row["type"] == "header")
        assert header["header"]["platter"] == path.stem
        entries += sum(row["type"] == "body" for row in rows)
        content = path.read_bytes()
        for name in (BUCKET, "glass/", "staged/", "Silica", "x-test"):
            assert name.encode() not in content, f"{path.name} has {name!r} in the clear"
    # Eight bodies of the first set, one of them in two shards at least.
    assert entries >= 9
