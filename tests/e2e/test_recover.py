"""The catalog is a cache of media and logs: it is thrown away and built again."""

from __future__ import annotations

import random
import shutil
from typing import Any

import pytest
from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError
from conftest import Start
from harness import (
    TINY_GEOMETRY,
    Server,
    keys_of,
    parts_count,
    read,
    refused,
    restore,
    seed,
    wait_restored,
    wait_until,
)

BUCKET = "recover"
OBJECTS = 120
METADATA = {"origin": "e2e", "title": "Silica"}


def listing(s3: Any) -> list[tuple[Any, ...]]:
    """Everything a listing and a HEAD say of every object."""
    rows = []
    for item in keys_of(s3, BUCKET):
        head = s3.head_object(Bucket=BUCKET, Key=item["Key"], ChecksumMode="ENABLED")
        names = ["ContentType", "ChecksumCRC32", "CacheControl", "ContentLanguage"]
        values = [head.get(name) for name in names] + [sorted(head["Metadata"].items())]
        values.append(parts_count(s3, BUCKET, item))
        named = [item[name] for name in ("Key", "Size", "ETag", "StorageClass", "LastModified")]
        rows.append((*named, *map(str, values)))
    return rows


def fill(server: Server, rng: random.Random) -> dict[str, bytes]:
    """Seal objects in several rounds; some are overwritten, some deleted, one is multipart."""
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    bodies: dict[str, bytes] = {}
    for at in range(OBJECTS):
        key = f"{at % 90:03} \u00e9+%"
        bodies[key] = rng.randbytes(rng.randrange(30_000))
        s3.put_object(
            Bucket=BUCKET,
            Key=key,
            Body=bodies[key],
            StorageClass=rng.choice(["GLACIER", "DEEP_ARCHIVE"]),
            Metadata={**METADATA, "number": str(at)},
            ContentType="application/x-test",
            CacheControl="no-store",
            ContentLanguage="la",
        )
        if at in {60, 100}:
            server.seal()
    parts = [rng.randbytes(5 << 20), rng.randbytes(100)]
    target = {"Bucket": BUCKET, "Key": "parts"}
    upload = s3.create_multipart_upload(**target, StorageClass="GLACIER", Metadata=METADATA)
    target["UploadId"] = upload["UploadId"]
    tags = []
    for number, part in enumerate(parts, start=1):
        tag = s3.upload_part(**target, PartNumber=number, Body=part)["ETag"]
        tags.append({"PartNumber": number, "ETag": tag})
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": tags})
    bodies["parts"] = b"".join(parts)
    for key in sorted(bodies)[5:15]:
        s3.delete_object(Bucket=BUCKET, Key=key)
        del bodies[key]
    server.seal()
    for key in sorted(bodies)[5:10]:
        s3.delete_object(Bucket=BUCKET, Key=key)
        del bodies[key]
    return bodies


def rebuild(server: Server) -> str:
    """Throw the catalog away and build it again: what `recover` says."""
    shutil.rmtree(server.data / "catalog")
    done = server.run("recover", "--data", str(server.data))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_recover_from_platters(start: Start) -> None:
    """The same listing, the same metadata, the same bytes; what was deleted stays gone."""
    rng = random.Random(seed())
    server = start({"geometry": TINY_GEOMETRY})
    bodies = fill(server, rng)
    s3 = server.s3()
    before = listing(s3)
    assert [row[0] for row in before] == sorted(bodies, key=str.encode)
    server.stop()
    # Nothing but platters, the key table and the master key is needed.
    for folder in ("staging", "online", "restored"):
        shutil.rmtree(server.data / folder, ignore_errors=True)
    print(rebuild(server))
    server.start()
    assert listing(s3) == before
    for key in bodies:
        assert restore(s3, BUCKET, key) == 202
    wait_restored(s3, BUCKET)
    for key, body in bodies.items():
        assert read(s3, BUCKET, key) == body, key

    # The rebuilt archive goes on: put, seal, delete.
    s3.put_object(Bucket=BUCKET, Key="new", Body=b"new", StorageClass="DEEP_ARCHIVE")
    server.seal()
    s3.delete_object(Bucket=BUCKET, Key="000 \u00e9+%")
    assert refused(lambda: s3.head_object(Bucket=BUCKET, Key="000 \u00e9+%"))[0] == 404
    server.kill()
    server.start()
    assert {"new"} <= {item["Key"] for item in keys_of(s3, BUCKET)}


def test_recover_with_platters_missing(start: Start) -> None:
    """Lists of lost platters come back from their set."""
    rng = random.Random(seed())
    server = start({"geometry": TINY_GEOMETRY})
    bodies = fill(server, rng)
    s3 = server.s3()
    before = listing(s3)
    server.stop()
    for path in sorted(server.platters.glob("*.glass"))[:2]:
        path.unlink()
    rebuild(server)
    server.start()
    assert listing(s3) == before
    for key in sorted(bodies)[:10]:
        restore(s3, BUCKET, key)


def test_recover_restores_objects_in_logs(start: Start) -> None:
    """Staged and STANDARD objects return as they were, and what was overwritten does not."""
    server = start({"geometry": TINY_GEOMETRY})
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="glass", Body=b"g" * 10_000, StorageClass="GLACIER")
    s3.put_object(Bucket=BUCKET, Key="overwritten", Body=b"o" * 10_000, StorageClass="GLACIER")
    server.seal()
    s3.put_object(Bucket=BUCKET, Key="overwritten", Body=b"o")
    s3.put_object(Bucket=BUCKET, Key="standard", Body=b"s")
    s3.put_object(Bucket=BUCKET, Key="staged", Body=b"s" * 100, StorageClass="GLACIER")
    before = listing(s3)
    server.stop()
    rebuild(server)
    server.start()
    assert listing(s3) == before
    assert read(s3, BUCKET, "overwritten") == b"o"
    assert read(s3, BUCKET, "standard") == b"s"
    restore(s3, BUCKET, "glass")
    restore(s3, BUCKET, "staged")
    wait_restored(s3, BUCKET)
    assert read(s3, BUCKET, "glass") == b"g" * 10_000
    assert read(s3, BUCKET, "staged") == b"s" * 100


def test_recover_refuses_data_that_it_could_damage(start: Start) -> None:
    """With a catalog there, or a server running, nothing is rebuilt."""
    server = start({"geometry": TINY_GEOMETRY})
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="k", Body=b"kept")
    assert server.run("recover", "--data", str(server.data)).returncode != 0
    server.stop()
    done = server.run("recover", "--data", str(server.data))
    assert done.returncode != 0
    assert "catalog" in done.stderr
    server.start()
    assert read(s3, BUCKET, "k") == b"kept"


def put_cut_short(server: Server, key: str, body: bytes) -> None:
    """Put an object; the archive dies when all of it but its row is on stable storage."""
    server.environment["FULGURITE_FAIL_POINT"] = "put-staged:0"
    server.start()
    with pytest.raises((NoConnection, HTTPClientError)):
        server.s3().put_object(Bucket=BUCKET, Key=key, Body=body)
    wait_until("the archive dies", lambda: not server.is_running())
    del server.environment["FULGURITE_FAIL_POINT"]


def test_interrupted_upload_stays_unconfirmed(start: Start) -> None:
    """No recovery takes back what a start showed, and what it did not show can be had."""
    server = start({"geometry": TINY_GEOMETRY})
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="both", Body=b"first")
    server.stop()
    for key in ("both", "alone", "deleted"):
        put_cut_short(server, key, b"second")
    server.start()
    s3.delete_object(Bucket=BUCKET, Key="deleted")
    status = server.status()
    assert status["bodies_unconfirmed"] == 2
    assert [body["key"] for body in status["objects_unconfirmed"]] == ["alone", "both"]
    text = server.run("archive", "status", "--data", str(server.data)).stdout
    assert "unconfirmed  2 bodies" in text and f"{BUCKET}/alone: 6 B" in text
    assert shown(s3) == {"both": b"first"}
    server.stop()
    shutil.rmtree(server.data / "catalog")
    done = server.run("recover", "--data", str(server.data))
    assert done.returncode == 0, done.stderr
    assert f'"both" in bucket "{BUCKET}"' in done.stdout, done.stdout
    server.start()
    assert shown(s3) == {"both": b"first"}
    assert server.status()["bodies_unconfirmed"] == 2
    for flags, both in (["--salvage"], b"second"), (["--salvage", "--earliest"], b"first"):
        server.stop()
        done = server.run("recover", "--data", str(server.data), *flags)
        assert done.returncode == 0, done.stderr
        server.start()
        assert shown(s3) == {"alone": b"second", "both": both}
        assert [body["key"] for body in server.status()["objects_unconfirmed"]] == ["both"]
    s3.delete_object(Bucket=BUCKET, Key="both")
    assert server.status()["bodies_unconfirmed"] == 0


def shown(s3: Any) -> dict[str, bytes]:
    """Every object with its bytes."""
    return {item["Key"]: read(s3, BUCKET, item["Key"]) for item in keys_of(s3, BUCKET)}
