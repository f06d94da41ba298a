"""Glacier semantics: codes, headers, expiry and listings, as S3's API reference has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from conftest import Start
from harness import (
    Server,
    is_restored,
    read,
    refused,
    restore,
    wait_until,
)

DAY_SECONDS = 2
# One mechanical second takes a thousand: a restore that was accepted stays in progress.
SLOW_MECHANICS = {"library": {"time_scale": 1000.0}}

Put = Callable[..., None]


@pytest.fixture
def archived(server: Server, s3: Any, bucket: str) -> str:
    """A bucket with the sealed object `cold` (DEEP_ARCHIVE), `cool` (GLACIER) and `warm`."""
    s3.put_object(Bucket=bucket, Key="cold", Body=b"cold" * 1000, StorageClass="DEEP_ARCHIVE")
    s3.put_object(Bucket=bucket, Key="cool", Body=b"cool" * 1000, StorageClass="GLACIER")
    s3.put_object(Bucket=bucket, Key="warm", Body=b"warm" * 1000)
    server.seal()
    return bucket


def next_midnight(moment: datetime, days: int) -> datetime:
    """The end of a restore asked for at `moment`: rounded up to midnight UTC."""
    end = moment + timedelta(days=days)
    midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if midnight == end else midnight + timedelta(days=1)


def expiry_of(header: str) -> datetime:
    """The date of the second form of x-amz-restore, which must be exactly so."""
    found = re.fullmatch(r'ongoing-request="false", expiry-date="(.*)"', header)
    assert found, header
    return datetime.strptime(found.group(1), "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)


def test_get_of_archived_object_is_refused(s3: Any, archived: str) -> None:
    """GET is 403 InvalidObjectState with the class; HEAD works and names the class."""
    for key, storage_class in (("cold", "DEEP_ARCHIVE"), ("cool", "GLACIER")):
        with pytest.raises(s3.exceptions.InvalidObjectState) as caught:
            s3.get_object(Bucket=archived, Key=key)
        answer = caught.value.response
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 403
        assert answer["Error"]["Code"] == "InvalidObjectState"
        assert answer.get("StorageClass", answer["Error"].get("StorageClass")) == storage_class
        head = s3.head_object(Bucket=archived, Key=key)
        assert head["StorageClass"] == storage_class
        assert head["ContentLength"] == 4000
        assert "Restore" not in head


def test_staged_object_is_refused_like_a_sealed_one(s3: Any, bucket: str) -> None:
    """A client cannot see whether an archived object is still staged."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"staged", StorageClass="DEEP_ARCHIVE")
    assert refused(lambda: s3.get_object(Bucket=bucket, Key="k")) == (403, "InvalidObjectState")
    assert restore(s3, bucket, "k") == 202
    wait_until("the staged object is restored", lambda: is_restored(s3, bucket, "k"))
    assert read(s3, bucket, "k") == b"staged"


def test_restore_accepted_then_extended(s3: Any, archived: str) -> None:
    """202 first, 200 afterwards; the later request sets the expiry again, also to sooner."""
    before = datetime.now(UTC)
    assert restore(s3, archived, "cold", days=3) == 202
    wait_until("the object is restored", lambda: is_restored(s3, archived, "cold"))
    after = datetime.now(UTC)
    head = s3.head_object(Bucket=archived, Key="cold")
    assert expiry_of(head["Restore"]) in {next_midnight(before, 3), next_midnight(after, 3)}
    assert head["StorageClass"] == "DEEP_ARCHIVE"
    got = s3.get_object(Bucket=archived, Key="cold")
    assert got["Body"].read() == b"cold" * 1000
    assert got["Restore"] == head["Restore"]

    before = datetime.now(UTC)
    assert restore(s3, archived, "cold", days=1) == 200
    after = datetime.now(UTC)
    head = s3.head_object(Bucket=archived, Key="cold")
    assert expiry_of(head["Restore"]) in {next_midnight(before, 1), next_midnight(after, 1)}


def test_ranges_of_a_restored_copy(s3: Any, archived: str) -> None:
    """Ranges and conditions work on restored copies."""
    restore(s3, archived, "cool")
    wait_until("the object is restored", lambda: is_restored(s3, archived, "cool"))
    got = s3.get_object(Bucket=archived, Key="cool", Range="bytes=2-5")
    assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert got["Body"].read() == b"olco"
    past = refused(lambda: s3.get_object(Bucket=archived, Key="cool", Range="bytes=4000-"))
    assert past == (416, "InvalidRange")
    same = got["ETag"]
    answer = refused(lambda: s3.get_object(Bucket=archived, Key="cool", IfNoneMatch=same))
    assert answer[0] == 304


def test_restore_of_an_object_that_is_not_archived(s3: Any, archived: str) -> None:
    """STANDARD is 403 InvalidObjectState; a missing key is 404 NoSuchKey."""
    assert refused(lambda: restore(s3, archived, "warm")) == (403, "InvalidObjectState")
    assert refused(lambda: restore(s3, archived, "absent")) == (404, "NoSuchKey")
    missing = refused(lambda: restore(s3, "no-such-bucket-here", "cold"))
    assert missing == (404, "NoSuchBucket")


def test_days_are_required_and_bounded(s3: Any, archived: str) -> None:
    """Days are at least 1, and required."""
    tier = {"GlacierJobParameters": {"Tier": "Bulk"}}
    for days in ({"Days": 0}, {"Days": -1}, {}):
        request = {**tier, **days}
        status, code = refused(
            lambda request=request: s3.restore_object(
                Bucket=archived, Key="cold", RestoreRequest=request
            )
        )
        assert status == 400
        assert code in {"InvalidArgument", "MalformedXML"}, days


def test_tiers(server: Server, s3: Any, archived: str) -> None:
    """Bulk and Standard for both classes; Expedited for GLACIER only; others are malformed."""
    patient = server.s3(config=Config(retries={"mode": "standard", "total_max_attempts": 3}))
    with pytest.raises(ClientError, match="Retrieval option is not supported") as caught:
        restore(patient, archived, "cold", tier="Expedited")
    assert caught.value.response["Error"]["Code"] == "InvalidArgument"
    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0, "it is asked once"
    assert restore(s3, archived, "cool", tier="Expedited") == 202
    assert restore(s3, archived, "cold", tier="Bulk") == 202
    status, code = refused(lambda: restore(s3, archived, "cold", tier="Warp"))
    assert (status, code) in {(400, "MalformedXML"), (400, "InvalidArgument")}


def test_expedited_may_be_served_as_standard(start: Start) -> None:
    """Clients that hard-code Expedited can be let in by configuration."""
    server = start({"restore": {"expedited": "standard"}})
    s3 = server.s3()
    s3.create_bucket(Bucket="expedited")
    s3.put_object(Bucket="expedited", Key="k", Body=b"k", StorageClass="DEEP_ARCHIVE")
    assert restore(s3, "expedited", "k", tier="Expedited") == 202


def test_in_progress(start: Start) -> None:
    """While a restore runs: 409, a faster tier speeds it up, GET is refused, lists tell it."""
    server = start()
    s3 = server.s3()
    s3.create_bucket(Bucket="slow")
    s3.put_object(Bucket="slow", Key="k", Body=b"k" * 5000, StorageClass="GLACIER")
    server.seal()
    server.stop()
    server.config |= SLOW_MECHANICS
    server.start()

    assert restore(s3, "slow", "k", days=2, tier="Bulk") == 202
    head = s3.head_object(Bucket="slow", Key="k")
    assert head["Restore"] == 'ongoing-request="true"'
    get = refused(lambda: s3.get_object(Bucket="slow", Key="k"))
    assert get == (403, "InvalidObjectState")
    again = refused(lambda: restore(s3, "slow", "k", days=2, tier="Bulk"))
    assert again == (409, "RestoreAlreadyInProgress")
    assert restore(s3, "slow", "k", days=2, tier="Standard") == 202
    slower = refused(lambda: restore(s3, "slow", "k", days=2, tier="Bulk"))
    assert slower == (409, "RestoreAlreadyInProgress")
    listed = s3.list_objects_v2(Bucket="slow", OptionalObjectAttributes=["RestoreStatus"])
    assert listed["Contents"][0]["RestoreStatus"] == {"IsRestoreInProgress": True}

    # The request outlives the process.
    server.kill()
    server.config.pop("library")
    server.start()
    wait_until("the restore is finished after a crash", lambda: is_restored(s3, "slow", "k"))
    assert read(s3, "slow", "k") == b"k" * 5000


def test_restore_status_in_listings_only_on_request(s3: Any, archived: str) -> None:
    """Listings name every class, and the restored state when they are asked."""
    restore(s3, archived, "cold")
    wait_until("the object is restored", lambda: is_restored(s3, archived, "cold"))
    for call in (s3.list_objects, s3.list_objects_v2):
        plain = call(Bucket=archived)["Contents"]
        classes = {item["Key"]: item["StorageClass"] for item in plain}
        assert classes == {"cold": "DEEP_ARCHIVE", "cool": "GLACIER", "warm": "STANDARD"}
        assert all("RestoreStatus" not in item for item in plain)
        asked = call(Bucket=archived, OptionalObjectAttributes=["RestoreStatus"])["Contents"]
        states = {item["Key"]: item.get("RestoreStatus") for item in asked}
        assert states["warm"] is None
        assert states["cool"] is None
        assert states["cold"]["IsRestoreInProgress"] is False
        expiry = states["cold"]["RestoreExpiryDate"]
        header = s3.head_object(Bucket=archived, Key="cold")["Restore"]
        assert expiry == expiry_of(header)


def test_storage_class_headers(s3: Any, archived: str) -> None:
    """x-amz-storage-class is sent for every class but STANDARD."""
    assert "StorageClass" not in s3.head_object(Bucket=archived, Key="warm")
    assert "StorageClass" not in s3.get_object(Bucket=archived, Key="warm")
    attributes = s3.get_object_attributes(
        Bucket=archived, Key="cold", ObjectAttributes=["StorageClass", "ObjectSize", "ETag"]
    )
    assert attributes["StorageClass"] == "DEEP_ARCHIVE"
    assert attributes["ObjectSize"] == 4000


def test_copies_of_archived_objects(s3: Any, archived: str) -> None:
    """An unrestored source is refused; a restored one is copied into any class."""
    source = {"Bucket": archived, "Key": "cold"}
    copy = s3.copy_object
    status, code = refused(lambda: copy(Bucket=archived, Key="copy", CopySource=source))
    assert status == 403
    assert code in {"InvalidObjectState", "ObjectNotInActiveTierError"}
    upload = s3.create_multipart_upload(Bucket=archived, Key="parts")["UploadId"]
    status, _ = refused(
        lambda: s3.upload_part_copy(
            Bucket=archived, Key="parts", UploadId=upload, PartNumber=1, CopySource=source
        )
    )
    assert status == 403

    restore(s3, archived, "cold")
    wait_until("the object is restored", lambda: is_restored(s3, archived, "cold"))
    copy(Bucket=archived, Key="copy", CopySource=source, StorageClass="STANDARD")
    assert read(s3, archived, "copy") == b"cold" * 1000
    copy(Bucket=archived, Key="copy2", CopySource=source, StorageClass="DEEP_ARCHIVE")
    assert s3.head_object(Bucket=archived, Key="copy2")["StorageClass"] == "DEEP_ARCHIVE"


def test_overwrite_and_delete_of_a_restored_object(server: Server, s3: Any, archived: str) -> None:
    """A restored copy goes with its object."""
    restore(s3, archived, "cold")
    wait_until("the object is restored", lambda: is_restored(s3, archived, "cold"))
    s3.put_object(Bucket=archived, Key="cold", Body=b"new", StorageClass="DEEP_ARCHIVE")
    assert "Restore" not in s3.head_object(Bucket=archived, Key="cold")
    again = refused(lambda: s3.get_object(Bucket=archived, Key="cold"))
    assert again == (403, "InvalidObjectState")
    s3.delete_object(Bucket=archived, Key="cold")
    assert refused(lambda: s3.head_object(Bucket=archived, Key="cold"))[0] == 404
    server.seal()
    assert refused(lambda: restore(s3, archived, "cold")) == (404, "NoSuchKey")


def test_restored_copy_expires(start: Start) -> None:
    """The copy goes at the end of its last day; the object stays and can be restored again."""
    server = start({"restore": {"day": f"{DAY_SECONDS}s"}})
    s3 = server.s3()
    s3.create_bucket(Bucket="expiry")
    s3.put_object(Bucket="expiry", Key="k", Body=b"k" * 5000, StorageClass="DEEP_ARCHIVE")
    server.seal()
    assert restore(s3, "expiry", "k", days=1) == 202
    wait_until("the object is restored", lambda: is_restored(s3, "expiry", "k"))

    def is_expired() -> bool:
        return "Restore" not in s3.head_object(Bucket="expiry", Key="k")

    wait_until("the copy has expired", is_expired)
    get = refused(lambda: s3.get_object(Bucket="expiry", Key="k"))
    assert get == (403, "InvalidObjectState")
    listed = s3.list_objects_v2(Bucket="expiry", OptionalObjectAttributes=["RestoreStatus"])
    assert "RestoreStatus" not in listed["Contents"][0]
    wait_until("the copy is freed", lambda: server.status()["restored_objects"] == 0)
    assert restore(s3, "expiry", "k", days=30) == 202
    wait_until("the object is restored again", lambda: is_restored(s3, "expiry", "k"))
    assert read(s3, "expiry", "k") == b"k" * 5000
    assert server.status()["debug_day_seconds"] == DAY_SECONDS
