"""Bad input, each with the S3 code a client expects, and the archive untouched afterwards."""

from __future__ import annotations

import base64
import hashlib
import os
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import pytest
import raw
from conftest import Start
from harness import (
    MIB,
    READY_SECONDS,
    STOP_SECONDS,
    Server,
    keys_of,
    read,
    refused,
    restore,
    wait_until,
)


def check_nothing_stored(s3: Any, bucket: str) -> None:
    """No key, and no bytes that anybody could still see."""
    assert list(keys_of(s3, bucket)) == []


def host_of(server: Server) -> str:
    """The Host header of path-style requests."""
    return f"127.0.0.1:{server.port}"


def put_raw(server: Server, path: str, body: bytes, length: int, **headers: str) -> raw.Answer:
    """PUT `body` while `length` bytes are declared, and stop sending."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    head = raw.signed("PUT", path, host=host_of(server), headers=named, length=length)
    return raw.exchange(server, head, body, then_close=True)


# Who asks.


def test_wrong_secret(server: Server, bucket: str) -> None:
    """A wrong secret is 403 SignatureDoesNotMatch, and nothing is stored."""
    wrong = server.s3(secret="w" * 40)
    answer = refused(lambda: wrong.put_object(Bucket=bucket, Key="k", Body=b"x"))
    assert answer == (403, "SignatureDoesNotMatch")
    check_nothing_stored(server.s3(), bucket)


def test_unknown_access_key(server: Server, s3: Any, bucket: str) -> None:
    """An unknown access key is 403 InvalidAccessKeyId; no key at all is 403 AccessDenied."""
    head = raw.signed("GET", f"/{bucket}", host=host_of(server))
    unknown = head.replace(b"Credential=E2E", b"Credential=XYZ")
    answer = raw.exchange(server, unknown)
    assert (answer.status, answer.code) == (403, "InvalidAccessKeyId")
    anonymous = f"GET /{bucket} HTTP/1.1\r\nHost: {host_of(server)}\r\n\r\n".encode()
    answer = raw.exchange(server, anonymous)
    assert (answer.status, answer.code) == (403, "AccessDenied")


def test_expired_presigned_url(s3: Any, bucket: str) -> None:
    """A presigned URL works until it expires, then is 403 AccessDenied."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    parameters = {"Bucket": bucket, "Key": "k"}
    url = s3.generate_presigned_url("get_object", Params=parameters, ExpiresIn=1)
    assert urllib.request.urlopen(url, timeout=READY_SECONDS).read() == b"x"

    def error_of() -> urllib.error.HTTPError | None:
        try:
            urllib.request.urlopen(url, timeout=READY_SECONDS).read()
        except urllib.error.HTTPError as error:
            return error
        return None

    error = wait_until("the URL has expired", error_of, 10)
    assert error.code == 403
    assert b"<Code>AccessDenied</Code>" in error.read()


def test_tampered_presigned_url(s3: Any, bucket: str) -> None:
    """A presigned URL for one key does not open another."""
    s3.put_object(Bucket=bucket, Key="secret", Body=b"x")
    parameters = {"Bucket": bucket, "Key": "public"}
    url = s3.generate_presigned_url("get_object", Params=parameters)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url.replace("public", "secret"), timeout=READY_SECONDS)
    assert caught.value.code == 403
    assert b"<Code>SignatureDoesNotMatch</Code>" in caught.value.read()


def test_old_signature_version_is_refused(server: Server, bucket: str) -> None:
    """Signature version 2 is not spoken."""
    head = (
        f"GET /{bucket} HTTP/1.1\r\nHost: {host_of(server)}\r\n"
        "Date: Tue, 27 Mar 2007 19:36:42 +0000\r\n"
        "Authorization: AWS E2EACCESSKEY00000001:bWq2s1WEIj+Ydj0vQ697zp+IXMU=\r\n\r\n"
    )
    answer = raw.exchange(server, head.encode())
    assert answer.status in {400, 403}
    assert answer.code in {"InvalidRequest", "AccessDenied", "SignatureDoesNotMatch"}


# What is sent.


@pytest.mark.parametrize("storage_class", ["STANDARD", "DEEP_ARCHIVE"])
def test_wrong_content_md5(s3: Any, bucket: str, storage_class: str) -> None:
    """A wrong Content-MD5 is 400 BadDigest, and nothing is stored."""
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    answer = refused(
        lambda: s3.put_object(
            Bucket=bucket, Key="k", Body=b"body", ContentMD5=wrong, StorageClass=storage_class
        )
    )
    assert answer == (400, "BadDigest")
    malformed = refused(
        lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"body", ContentMD5="short")
    )
    assert malformed == (400, "InvalidDigest")
    check_nothing_stored(s3, bucket)


def test_wrong_checksums(s3: Any, bucket: str) -> None:
    """Every wrong x-amz-checksum is refused, right ones are kept and shown."""
    crc = base64.b64encode(zlib.crc32(b"body").to_bytes(4, "big")).decode()
    right = {
        "ChecksumCRC32": crc,
        "ChecksumSHA1": base64.b64encode(hashlib.sha1(b"body").digest()).decode(),
        "ChecksumSHA256": base64.b64encode(hashlib.sha256(b"body").digest()).decode(),
    }
    wrong = {
        "ChecksumCRC32": base64.b64encode(bytes(4)).decode(),
        "ChecksumCRC32C": base64.b64encode(bytes(4)).decode(),
        "ChecksumCRC64NVME": base64.b64encode(bytes(8)).decode(),
        "ChecksumSHA1": base64.b64encode(bytes(20)).decode(),
        "ChecksumSHA256": base64.b64encode(bytes(32)).decode(),
    }
    for name, value in wrong.items():
        answer = refused(
            lambda name=name, value=value: s3.put_object(
                Bucket=bucket, Key="k", Body=b"body", **{name: value}
            )
        )
        assert answer == (400, "BadDigest"), name
    check_nothing_stored(s3, bucket)
    for name, value in right.items():
        s3.put_object(Bucket=bucket, Key=name, Body=b"body", **{name: value})
        head = s3.head_object(Bucket=bucket, Key=name, ChecksumMode="ENABLED")
        assert head[name] == value


def test_signed_payload_hash(server: Server, s3: Any, bucket: str) -> None:
    """A body that is not the one that was signed is refused."""
    wrong = hashlib.sha256(b"other").hexdigest()
    head = raw.signed("PUT", f"/{bucket}/k", host=host_of(server), length=4, payload=wrong)
    answer = raw.exchange(server, head, b"body")
    assert (answer.status, answer.code) == (400, "XAmzContentSHA256Mismatch")
    check_nothing_stored(s3, bucket)


@pytest.mark.parametrize("size", [10, 3 * MIB])
def test_body_shorter_than_declared(server: Server, s3: Any, bucket: str, size: int) -> None:
    """A connection that ends before the declared length stores nothing."""
    answer = put_raw(server, f"/{bucket}/k", b"x" * (size - 1), size)
    assert answer.status in {0, 400}
    if answer.status:
        assert answer.code == "IncompleteBody"
    check_nothing_stored(s3, bucket)


def test_body_longer_than_declared(server: Server, s3: Any, bucket: str) -> None:
    """Bytes after the declared length are not part of the object."""
    answer = put_raw(server, f"/{bucket}/k", b"body and more", 4)
    assert answer.status in {200, 400}
    if answer.status == 200:
        assert read(s3, bucket, "k") == b"body"


def chunked(pieces: list[bytes]) -> bytes:
    """The aws-chunked form of unsigned pieces, without a trailer."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


@pytest.mark.parametrize("declared", [9, 11])
def test_decoded_length_differs(server: Server, s3: Any, bucket: str, declared: int) -> None:
    """In streaming uploads the decoded length has to be the declared one."""
    body = chunked([b"01234", b"56789"])
    headers = {
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(declared),
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    head = raw.signed(
        "PUT",
        f"/{bucket}/k",
        host=host_of(server),
        headers=headers,
        length=len(body),
        payload="STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    )
    answer = raw.exchange(server, head, body, then_close=True)
    assert answer.status in {0, 400}, answer
    check_nothing_stored(s3, bucket)


@pytest.mark.parametrize("storage_class", ["STANDARD", "DEEP_ARCHIVE"])
def test_disconnect_in_mid_body(server: Server, s3: Any, bucket: str, storage_class: str) -> None:
    """A client that goes away stores nothing and leaves the old object as it was."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    headers = {"x-amz-storage-class": storage_class}
    length = 8 * MIB
    head = raw.signed("PUT", f"/{bucket}/k", host=host_of(server), headers=headers, length=length)
    with raw.connect(server) as connection:
        connection.sendall(head + os.urandom(length // 2))
    assert read(s3, bucket, "k") == b"old"
    assert server.is_running()


def test_garbage_instead_of_http(server: Server) -> None:
    """Whatever arrives, the server answers or closes, and lives."""
    for garbage in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost", os.urandom(1000)):
        assert raw.exchange(server, garbage, then_close=True).status in {0, 400}
    too_long = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"a" * 200_000 + b"\r\n\r\n"
    assert raw.exchange(server, too_long, then_close=True).status < 500
    assert server.is_answering("/readyz")


# Names.


@pytest.mark.parametrize(
    "name", ["ab", "Upper", "under_score", "-dash", "dash-", "two..dots", "192.168.0.1", "x" * 64]
)
def test_bad_bucket_names(server: Server, name: str) -> None:
    """Names outside S3's rules are 400 InvalidBucketName."""
    head = raw.signed("PUT", f"/{name}", host=host_of(server))
    answer = raw.exchange(server, head)
    assert (answer.status, answer.code) == (400, "InvalidBucketName")


def test_key_length(s3: Any, bucket: str) -> None:
    """A key of 1,024 bytes is fine, of 1,025 it is 400 KeyTooLongError."""
    s3.put_object(Bucket=bucket, Key="k" * 1024, Body=b"x")
    long = refused(lambda: s3.put_object(Bucket=bucket, Key="k" * 1025, Body=b"x"))
    assert long == (400, "KeyTooLongError")
    two_bytes = "\u00e9" * 513
    long = refused(lambda: s3.put_object(Bucket=bucket, Key=two_bytes, Body=b"x"))
    assert long == (400, "KeyTooLongError")


def test_unknown_storage_class(s3: Any, bucket: str) -> None:
    """A class the archive does not keep is 400 InvalidStorageClass, never another class."""
    for name in ("GLASS", "INTELLIGENT_TIERING", "deep_archive"):
        answer = refused(
            lambda name=name: s3.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass=name)
        )
        assert answer == (400, "InvalidStorageClass"), name
    check_nothing_stored(s3, bucket)


def test_too_much_metadata(s3: Any, bucket: str) -> None:
    """User metadata over 2 KiB is 400 MetadataTooLarge."""
    fits = {"m": "v" * 2047}
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata=fits)
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == fits
    large = {"m": "v" * 2048}
    answer = refused(lambda: s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata=large))
    assert answer == (400, "MetadataTooLarge")


def test_buckets(s3: Any, bucket: str) -> None:
    """Buckets that are full, absent or there already."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert refused(lambda: s3.delete_bucket(Bucket=bucket)) == (409, "BucketNotEmpty")
    again = refused(lambda: s3.create_bucket(Bucket=bucket))
    assert again == (409, "BucketAlreadyOwnedByYou")
    absent = refused(lambda: s3.put_object(Bucket="absent-bucket", Key="k", Body=b"x"))
    assert absent == (404, "NoSuchBucket")
    assert refused(lambda: read(s3, bucket, "absent")) == (404, "NoSuchKey")
    assert refused(lambda: s3.delete_bucket(Bucket="absent-bucket")) == (404, "NoSuchBucket")


# Parts.


def test_parts(s3: Any, bucket: str) -> None:
    """Wrong order, wrong tags, too small parts, wrong numbers and unknown uploads."""
    target = {"Bucket": bucket, "Key": "k"}
    upload = s3.create_multipart_upload(**target, StorageClass="DEEP_ARCHIVE")["UploadId"]

    def part(number: int, body: bytes) -> str:
        answer = s3.upload_part(**target, UploadId=upload, PartNumber=number, Body=body)
        return str(answer["ETag"])

    def complete(*parts: tuple[int, str], upload: str = upload) -> dict[str, Any]:
        rows = [{"PartNumber": number, "ETag": tag} for number, tag in parts]
        return s3.complete_multipart_upload(
            **target, UploadId=upload, MultipartUpload={"Parts": rows}
        )

    large, small = b"l" * (5 * MIB), b"s" * 100
    # Any order of uploading is fine.
    second, first, third = part(2, small), part(1, large), part(3, large)
    order = refused(lambda: complete((3, third), (1, first)))
    assert order == (400, "InvalidPartOrder")
    assert refused(lambda: complete((1, first), (2, second), (3, third))) == (
        400,
        "EntityTooSmall",
    )
    assert refused(lambda: complete((1, first), (4, third))) == (400, "InvalidPart")
    assert refused(lambda: complete((1, '"0123456789abcdef"'))) == (400, "InvalidPart")
    unknown = refused(lambda: complete((1, first), upload="0" * 32))
    assert unknown == (404, "NoSuchUpload")
    for number in (0, 10_001):
        answer = refused(lambda number=number: part(number, small))
        assert answer == (400, "InvalidArgument")
    check_nothing_stored(s3, bucket)
    done = complete((1, first), (3, third))
    assert done["ETag"].endswith('-2"')
    head = s3.head_object(**target)
    assert head["ContentLength"] == 10 * MIB
    assert head["StorageClass"] == "DEEP_ARCHIVE"


def test_aborted_upload(s3: Any, bucket: str) -> None:
    """An aborted upload is gone."""
    target = {"Bucket": bucket, "Key": "k"}
    upload = s3.create_multipart_upload(**target)["UploadId"]
    s3.upload_part(**target, UploadId=upload, PartNumber=1, Body=b"x")
    listed = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [item["UploadId"] for item in listed] == [upload]
    s3.abort_multipart_upload(**target, UploadId=upload)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    answer = refused(lambda: s3.list_parts(**target, UploadId=upload))
    assert answer == (404, "NoSuchUpload")
    s3.delete_bucket(Bucket=bucket)


def test_conditions(s3: Any, bucket: str) -> None:
    """If-None-Match: * and If-Match guard a PUT."""
    target = {"Bucket": bucket, "Key": "k"}
    tag = s3.put_object(**target, Body=b"1", IfNoneMatch="*")["ETag"]
    there = refused(lambda: s3.put_object(**target, Body=b"2", IfNoneMatch="*"))
    assert there == (412, "PreconditionFailed")
    s3.put_object(**target, Body=b"3", IfMatch=tag)
    stale = refused(lambda: s3.put_object(**target, Body=b"4", IfMatch=tag))
    assert stale == (412, "PreconditionFailed")
    assert read(s3, bucket, "k") == b"3"


# Failures of the machine.


def test_full_staging(start: Start) -> None:
    """A full log refuses puts at once with 507; what is stored stays readable."""
    server = start({"storage": {"log_capacity": "32MiB"}, "moves": {"bytes": "32MiB"}})
    s3 = server.s3()
    s3.create_bucket(Bucket="full")
    s3.put_object(Bucket="full", Key="first", Body=b"first")
    body = os.urandom(5 * MIB)
    answer = None
    stored = []
    for at in range(20):
        began = time.monotonic()
        try:
            s3.put_object(Bucket="full", Key=f"{at:02}", Body=body, StorageClass="DEEP_ARCHIVE")
            stored.append(f"{at:02}")
        except s3.exceptions.ClientError as error:
            metadata = error.response["ResponseMetadata"]
            answer = metadata["HTTPStatusCode"], error.response["Error"]["Code"]
            assert time.monotonic() - began < STOP_SECONDS
            break
    assert answer == (507, "InsufficientStorage")
    assert 1 <= len(stored) <= 6
    assert read(s3, "full", "first") == b"first"
    assert [item["Key"] for item in keys_of(s3, "full")] == [*stored, "first"]

    server.seal()
    s3.put_object(Bucket="full", Key="after", Body=body)
    assert read(s3, "full", "after") == body


# Damaged data directories.


def check_refuses_to_start(server: Server, *words: str) -> None:
    """`serve` exits with an error that describes the failure."""
    server.launch()
    assert server.process is not None
    code = server.process.wait(timeout=STOP_SECONDS)
    assert code not in {0, 101}, server.tail()
    text = server.tail().lower()
    for word in words:
        assert word in text, text


def test_damaged_config(tmp_path: Path) -> None:
    """Broken TOML, unknown keys and wrong units are refused with the name of the place."""
    for text, word in (
        ("profile = [", "config.toml"),
        ('profle = "demo"\n', "profle"),
        ('[restore]\nday = "5 fortnights"\n', "fortnights"),
        ('[tiers.glass]\nkind = "glass"\nprofile = "papyrus"\n', "papyrus"),
        ("[medium]\nseed = 1\n", "write [tiers.glass.medium] in its place"),
    ):
        server = Server(folder=tmp_path, config={"profile": "demo"})
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        command = server.command()
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        server.command = lambda command=command: command
        check_refuses_to_start(server, word)
        (tmp_path / "serve.log").unlink()


def test_second_process_on_the_same_directory(start: Start) -> None:
    """A second server on a data directory is refused; the first is not disturbed."""
    first = start()
    second = Server(folder=first.folder, config=first.config)
    check_refuses_to_start(second, "in use")
    assert first.is_answering("/readyz")


def test_wrong_master_key(start: Start) -> None:
    """With another master key, or none, the archive refuses to start."""
    server = start()
    s3 = server.s3()
    s3.create_bucket(Bucket="locked")
    s3.put_object(Bucket="locked", Key="k", Body=b"x")
    server.stop()
    key = server.data / "keys" / "master.key"
    right = key.read_bytes()
    key.chmod(0o600)
    key.write_text("0123456789abcdef" * 4 + "\n", encoding="ascii")
    check_refuses_to_start(server, "master key")
    key.write_text("not hex", encoding="ascii")
    check_refuses_to_start(server, "master")
    key.unlink()
    check_refuses_to_start(server, "master")
    key.write_bytes(right)
    key.chmod(0o600)
    server.start()
    assert read(s3, "locked", "k") == b"x"


@pytest.mark.parametrize("fault", ["truncated", "swapped", "foreign"])
def test_mislabeled_platter_files(start: Start, fault: str) -> None:
    """A platter file cut off, exchanged or from another archive is named and never trusted."""
    server, other = start(), start()
    body = os.urandom(3 * MIB)
    for each in (server, other):
        s3 = each.s3()
        s3.create_bucket(Bucket="bad")
        s3.put_object(Bucket="bad", Key="k", Body=body, StorageClass="DEEP_ARCHIVE")
        each.seal()
    server.stop()
    platters = sorted(server.platters.glob("*.glass"))
    assert len(platters) == 4  # one of information, three of redundancy
    if fault == "truncated":
        platters[0].chmod(0o644)
        os.truncate(platters[0], platters[0].stat().st_size // 2)
        named = platters[:1]
    elif fault == "swapped":
        spare = platters[0].with_suffix(".tmp")
        platters[0].rename(spare)
        platters[1].rename(platters[0])
        spare.rename(platters[1])
        named = platters[:2]
    else:
        stranger = sorted(other.platters.glob("*.glass"))[0]
        platters[0].unlink()
        platters[0].write_bytes(stranger.read_bytes())
        named = platters[:1]
    server.start()
    done = server.run("archive", "verify", "--data", str(server.data), "--json")
    text = done.stdout + done.stderr
    for path in named:
        assert path.stem in text, text
    assert done.returncode != 0, text
    # The set's redundancy gives the object back all the same.
    s3 = server.s3()
    restore(s3, "bad", "k")
    wait_until(
        "the object is restored",
        lambda: "false" in s3.head_object(Bucket="bad", Key="k").get("Restore", ""),
    )
    assert read(s3, "bad", "k") == body
