"""Buckets that two archives share: a change at one is visible at the other at once.

Both are real servers over one namespace of three directories; clients know nothing of that.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from harness import MIB, Server, keys_of, read, refused, seed, wait_until
from linear import Recorder, check
from test_geo import CONFIG, config, json_of, tier, write_map

SHARED, OWN = "films", "of-one"
KEY_BYTES_MAX = 390
PART = 5 * MIB
RACES = 12
CLIENTS_OF_EACH = 2
CALLS = 25
SITES_AWAY = 90.0
DIED_WITHIN = 60.0


class Pair:
    """Two archives, at two sites of one namespace."""

    def __init__(self, folder: Path) -> None:
        """Begin the namespace; the archives are not started."""
        self.folder = folder
        self.sites = write_map(folder)
        json_of(tier(self.sites, "init"))
        self.key = folder / "shared.key"
        self.write_key("a1" * 32)
        self.servers = [
            Server(folder / name, self.config(name, near))
            for name, near in (("first", "lisbon"), ("second", "turin"))
        ]

    def write_key(self, digits: str) -> None:
        """Write the key of shared buckets."""
        self.key.write_text(digits, encoding="utf-8")
        self.key.chmod(0o600)

    def config(self, name: str, near: str) -> dict[str, Any]:
        """Return the configuration of one archive; each has a map of its own, as elsewhere."""
        sites = self.folder / f"{name}.toml"
        shutil.copy(self.sites, sites)
        made = config(sites, near=near, folder=name)
        made["tiers"]["geo"] |= {"shared": [SHARED], "shared_key": str(self.key)}
        return made

    def start(self) -> Pair:
        """Start both."""
        for server in self.servers:
            server.start()
        return self

    def clients(self) -> list[Any]:
        """Return a client of each."""
        return [server.s3() for server in self.servers]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Make two archives, and kill them at the end."""
    made = Pair(tmp_path)
    yield made
    for server in made.servers:
        server.kill()


def random_bytes(name: str, size: int) -> bytes:
    """Return bytes that only this name has."""
    return random.Random(f"{seed()} {name}").randbytes(size)


def test_puts_are_visible_at_the_other_archive_at_once(pair: Pair) -> None:
    """Put, overwrite, delete at one; read, list and head at the other, with nothing between."""
    here, there = pair.start().clients()
    names = [bucket["Name"] for bucket in there.list_buckets()["Buckets"]]
    assert names == [SHARED], "nobody made it at either"
    assert (
        here.list_buckets()["Buckets"][0]["CreationDate"]
        == there.list_buckets()["Buckets"][0]["CreationDate"]
    )
    for size in (0, 1, 3_000, 65_536, 65_537, 700_000, 13 * MIB + 5):
        body = random_bytes(f"of {size}", size)
        put = here.put_object(
            Bucket=SHARED,
            Key=f"a/{size}",
            Body=body,
            Metadata={"shelf": "zw\u00f6lf".encode().hex()},
            ContentType="video/mp4",
            ChecksumAlgorithm="SHA256",
            StorageClass="GLACIER_IR" if size % 2 else "STANDARD",
        )
        found = there.get_object(Bucket=SHARED, Key=f"a/{size}", ChecksumMode="ENABLED")
        assert found["Body"].read() == body, size
        assert found["ETag"] == put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
        assert found["ChecksumSHA256"] == put["ChecksumSHA256"]
        assert (found["ContentType"], found["Metadata"]["shelf"]) == ("video/mp4", "7a77c3b66c66")
        assert found.get("StorageClass", "STANDARD") == ("GLACIER_IR" if size % 2 else "STANDARD")
        for first, last in ((0, 0), (size // 2, size // 2 + 9), (size - 1, size + 5)):
            if 0 <= first < size:
                asked = {"Bucket": SHARED, "Key": f"a/{size}", "Range": f"bytes={first}-{last}"}
                part = there.get_object(**asked)
                assert part["Body"].read() == body[first : last + 1], (size, first)
                last = min(last, size - 1)
                assert part["ContentRange"] == f"bytes {first}-{last}/{size}"
        if size:
            tail = there.get_object(Bucket=SHARED, Key=f"a/{size}", Range="bytes=-70000")
            assert tail["Body"].read() == body[-70_000:]
        over = partial(there.get_object, Bucket=SHARED, Key=f"a/{size}", Range=f"bytes={size}-")
        assert refused(over) == (416, "InvalidRange")
    listed = {item["Key"]: item for item in keys_of(there, SHARED)}
    assert listed == {item["Key"]: item for item in keys_of(here, SHARED)}
    head = there.head_object(Bucket=SHARED, Key="a/700000")
    assert listed["a/700000"]["Size"] == head["ContentLength"] == 700_000
    assert listed["a/700000"]["ETag"] == head["ETag"]
    assert listed["a/700000"]["LastModified"] == head["LastModified"]

    there.put_object(Bucket=SHARED, Key="a/1", Body=b"again")
    assert read(here, SHARED, "a/1") == b"again"
    there.delete_objects(Bucket=SHARED, Delete={"Objects": [{"Key": "a/0"}, {"Key": "never"}]})
    assert refused(lambda: here.head_object(Bucket=SHARED, Key="a/0"))[0] == 404
    assert refused(lambda: read(here, SHARED, "a/0")) == (404, "NoSuchKey")
    # Nothing of it is staged, or waits for glass, at either.
    for server in pair.servers:
        assert server.status()["objects_staged"] == 0
    json_of(tier(pair.sites, "verify"))


def test_listings_are_ordered_with_all_parameters(pair: Pair) -> None:
    """Compare pages of a shared bucket with those of a bucket of one archive, call by call."""
    here, there = pair.start().clients()
    here.create_bucket(Bucket=OWN)
    keys = [
        "a",
        "a/",
        "a/b",
        "a//b",
        "/lead",
        "a/b/c",
        "A",
        "z",
        "zz",
        "\u00fc",
        "\u65e5\u672c/\u8a9e",
        "~",
        "a b",
    ]
    keys += [
        ".",
        "a/..",
        "a/./b",
        "a/../b",
        "%41",
        "_",
        "-",
        "9",
        "0",
        "\U0001f600",
        "\u00e9/\u00e9",
        "\u00e9/\u00ea",
    ]
    keys += [f"many/{number:03}/x" for number in range(30)] + [f"many/{n:03}" for n in range(9)]
    keys += ["k" * KEY_BYTES_MAX, "k" * (KEY_BYTES_MAX - 1), "\u00fc" * (KEY_BYTES_MAX // 2)]
    for key in keys:
        for bucket, client in ((OWN, here), (SHARED, there)):
            client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    asked: list[dict[str, Any]] = [{}, {"Prefix": "a"}, {"Prefix": "many/0"}, {"Prefix": "none"}]
    asked += [{"Delimiter": "/"}, {"Delimiter": "/", "Prefix": "many/"}, {"Prefix": "\U0001f600"}]
    asked += [
        {"StartAfter": "a/b"},
        {"StartAfter": "many/015", "Delimiter": "/"},
        {"Prefix": "\u00e9"},
    ]
    asked += [{"Delimiter": "/", "Prefix": "a/"}, {"Delimiter": "many", "StartAfter": "k"}]
    asked += [{"StartAfter": "k" * 1000}, {"Prefix": "k" * 1000}, {"StartAfter": "\u00fc" * 300}]
    asked += [{"StartAfter": "a", "Prefix": "many"}, {"StartAfter": "zzz"}]
    asked += [{"Delimiter": "\u00e9"}]
    for question in asked:
        for size in (1, 2, 7, 1000):
            options = question | {"MaxKeys": size}
            assert pages(here, SHARED, options) == pages(here, OWN, options), options
    for key in keys:
        assert read(here, SHARED, key) == key.encode(), key


def pages(s3: Any, bucket: str, options: dict[str, Any]) -> list[tuple[list[str], list[str]]]:
    """List a bucket page by page: keys and common prefixes of each."""
    found = []
    more = dict(options)
    while True:
        page = s3.list_objects_v2(Bucket=bucket, **more)
        keys = [item["Key"] for item in page.get("Contents", [])]
        found.append((keys, [item["Prefix"] for item in page.get("CommonPrefixes", [])]))
        if not page["IsTruncated"]:
            return found
        more = options | {"ContinuationToken": page["NextContinuationToken"]}
        more.pop("StartAfter", None)


def test_conditional_put_has_one_winner_across_archives(pair: Pair) -> None:
    """Race creations and updates of one object at both: one of each race wins, and is read."""
    clients = pair.start().clients()
    for race in range(RACES):
        key = f"race/{race}"
        assert len(winners(clients, key, {"IfNoneMatch": "*"})) == 1
        etag = clients[0].head_object(Bucket=SHARED, Key=key)["ETag"]
        won = winners(clients, key, {"IfMatch": etag})
        assert len(won) == 1
        assert {read(client, SHARED, key) for client in clients} == set(won)
        stale = partial(clients[1].put_object, Bucket=SHARED, Key=key, Body=b"stale", IfMatch=etag)
        assert refused(stale) == (412, "PreconditionFailed")
    gone = partial(clients[0].put_object, Bucket=SHARED, Key="not there", Body=b"", IfMatch='"0"')
    assert refused(gone) == (404, "NoSuchKey")


def winners(clients: list[Any], key: str, condition: dict[str, str]) -> list[bytes]:
    """Put at all archives concurrently with a condition; return the bodies whose put succeeded."""
    won: list[bytes] = []
    ready = threading.Barrier(2 * len(clients))

    def put(number: int, client: Any) -> None:
        body = random_bytes(f"{key} {condition} {number}", 40_000)
        ready.wait()
        try:
            client.put_object(Bucket=SHARED, Key=key, Body=body, **condition)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed", error
            return
        won.append(body)

    threads = [
        threading.Thread(target=put, args=(2 * index + turn, client))
        for index, client in enumerate(clients)
        for turn in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_multipart_uploads_and_copies_work_across_archives(pair: Pair) -> None:
    """Upload in parts at one archive, copy in and out of the shared bucket, read at the other."""
    here, there = pair.start().clients()
    parts = [random_bytes("part 1", PART), random_bytes("part 2", PART + 1), b"the end"]
    upload = here.create_multipart_upload(
        Bucket=SHARED,
        Key="reel",
        Metadata={"of": "parts"},
        ChecksumAlgorithm="CRC32",
        ChecksumType="FULL_OBJECT",
    )["UploadId"]
    asked = {"Bucket": SHARED, "Key": "reel", "UploadId": upload}
    sent = [here.upload_part(PartNumber=n, Body=part, **asked) for n, part in enumerate(parts, 1)]
    assert not there.list_multipart_uploads(Bucket=SHARED).get("Uploads"), "it is of one archive"
    assert len(here.list_multipart_uploads(Bucket=SHARED)["Uploads"]) == 1
    assert refused(lambda: read(there, SHARED, "reel")) == (404, "NoSuchKey")
    named = [{"PartNumber": n, "ETag": part["ETag"]} for n, part in enumerate(sent, 1)]
    wrong = partial(here.complete_multipart_upload, MultipartUpload={"Parts": named[::-1]}, **asked)
    assert refused(wrong) == (400, "InvalidPartOrder")
    done = here.complete_multipart_upload(MultipartUpload={"Parts": named}, **asked)
    found = there.get_object(Bucket=SHARED, Key="reel", ChecksumMode="ENABLED")
    assert found["Body"].read() == b"".join(parts)
    assert (found["ETag"], found["Metadata"]) == (done["ETag"], {"of": "parts"})
    assert found["ChecksumCRC32"] == done["ChecksumCRC32"]
    assert found["ETag"].endswith('-3"')
    second = there.get_object(Bucket=SHARED, Key="reel", PartNumber=2)
    assert (second["PartsCount"], second["ContentLength"]) == (3, PART + 1)
    assert second["Body"].read() == parts[1]
    beyond = partial(there.get_object, Bucket=SHARED, Key="reel", PartNumber=4)
    assert refused(beyond) == (416, "InvalidPartNumber")
    again = here.complete_multipart_upload(MultipartUpload={"Parts": named}, **asked)
    assert again["ETag"] == done["ETag"], "asked again it answers the same"
    assert not here.list_multipart_uploads(Bucket=SHARED).get("Uploads")
    assert not pair.servers[0].status()["objects_staged"]

    for client in (here, there):
        client.create_bucket(Bucket=OWN)
    source = {"Bucket": SHARED, "Key": "reel"}
    there.copy_object(Bucket=OWN, Key="glass", CopySource=source, StorageClass="DEEP_ARCHIVE")
    assert pair.servers[1].status()["objects_staged"] == 1
    copied = here.copy_object(Bucket=SHARED, Key="twice", CopySource=source)
    assert read(there, SHARED, "twice") == b"".join(parts)
    head = there.head_object(Bucket=SHARED, Key="twice")
    assert (head["LastModified"], head["Metadata"]) == (
        copied["CopyObjectResult"]["LastModified"],
        {"of": "parts"},
    )
    here.put_object(Bucket=OWN, Key="own", Body=b"of one archive")
    here.copy_object(Bucket=SHARED, Key="given", CopySource={"Bucket": OWN, "Key": "own"})
    assert read(there, SHARED, "given") == b"of one archive"
    upload = there.create_multipart_upload(Bucket=SHARED, Key="of a copy")["UploadId"]
    asked = {"Bucket": SHARED, "Key": "of a copy", "UploadId": upload}
    part = there.upload_part_copy(
        PartNumber=1, CopySource=source, CopySourceRange=f"bytes=7-{PART + 6}", **asked
    )
    named = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
    there.complete_multipart_upload(MultipartUpload={"Parts": named}, **asked)
    assert read(here, SHARED, "of a copy") == b"".join(parts)[7 : PART + 7]


def test_unsupported_shared_bucket_calls_are_refused(pair: Pair) -> None:
    """Glass, long keys, removal of the bucket, a wrong digest: nothing is stored of it."""
    here, there = pair.start().clients()
    for storage in ("DEEP_ARCHIVE", "GLACIER"):
        glass = {"Bucket": SHARED, "Key": "glass", "StorageClass": storage}
        assert refused(partial(here.put_object, **glass, Body=b"x")) == (400, "InvalidRequest")
        assert refused(partial(here.create_multipart_upload, **glass)) == (400, "InvalidRequest")
    long = {"Bucket": SHARED, "Key": "k" * (KEY_BYTES_MAX + 1)}
    assert refused(lambda: here.put_object(**long, Body=b"x")) == (400, "KeyTooLongError")
    assert refused(lambda: here.create_multipart_upload(**long)) == (400, "KeyTooLongError")
    assert refused(lambda: here.delete_bucket(Bucket=SHARED)) == (400, "InvalidRequest")
    assert refused(lambda: here.create_bucket(Bucket=SHARED)) == (409, "BucketAlreadyOwnedByYou")
    digest = {"ContentMD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    for size in (10, 5 * MIB):
        wrong = partial(
            here.put_object, Bucket=SHARED, Key="wrong", Body=random_bytes("wrong", size), **digest
        )
        assert refused(wrong) == (400, "BadDigest")
    here.put_object(Bucket=SHARED, Key="right", Body=b"right")
    restored = partial(there.restore_object, Bucket=SHARED, Key="right", RestoreRequest={"Days": 1})
    assert refused(restored) == (403, "InvalidObjectState")
    assert [item["Key"] for item in keys_of(there, SHARED)] == ["right"]


def test_other_archive_continues_after_a_kill(pair: Pair) -> None:
    """Kill one archive between an object and its upload's end; lose its whole data directory."""
    first = pair.start().servers[0]
    here, there = pair.clients()
    here.put_object(Bucket=SHARED, Key="before", Body=b"before")
    upload = here.create_multipart_upload(Bucket=SHARED, Key="reel")["UploadId"]
    asked = {"Bucket": SHARED, "Key": "reel", "UploadId": upload}
    part = here.upload_part(PartNumber=1, Body=b"the only part", **asked)
    first.stop()
    first.environment["FULGURITE_FAIL_POINT"] = "shared-joined:0"
    here = first.start().s3()
    named = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    with pytest.raises(BotoCoreError):
        here.complete_multipart_upload(MultipartUpload=named, **asked)
    wait_until("it is dead", lambda: not first.is_running(), DIED_WITHIN)
    assert read(there, SHARED, "reel") == b"the only part", "it was joined, and not acknowledged"
    version = there.head_object(Bucket=SHARED, Key="reel")["LastModified"]
    first.environment.pop("FULGURITE_FAIL_POINT")
    here = first.start().s3()
    here.complete_multipart_upload(MultipartUpload=named, **asked)
    assert not here.list_multipart_uploads(Bucket=SHARED).get("Uploads")
    assert there.head_object(Bucket=SHARED, Key="reel")["LastModified"] == version, "not put twice"
    first.kill()
    shutil.rmtree(first.folder)
    assert read(there, SHARED, "before") == b"before"
    # An archive that knows nothing has the bucket whole.
    here = first.start().s3()
    assert sorted(item["Key"] for item in keys_of(here, SHARED)) == ["before", "reel"]
    assert read(here, SHARED, "reel") == b"the only part"


def test_server_refuses_an_inconsistent_shared_bucket(pair: Pair) -> None:
    """Give it another key, none, objects of its own, or no word of the bucket."""
    first, second = pair.servers
    here = first.start().s3()
    here.put_object(Bucket=SHARED, Key="film", Body=b"film")
    pair.write_key("b2" * 32)
    fails_to_start(second, "the key of shared buckets is wrong")
    pair.key.write_text("not a key", encoding="utf-8")
    fails_to_start(second, "64 hexadecimal digits")
    pair.key.chmod(0o644)
    fails_to_start(second, "every user of this machine may use this key")
    pair.key.unlink()
    fails_to_start(second, "there is no key of shared buckets")
    del second.config["tiers"]["geo"]["shared_key"]
    fails_to_start(second, "geo.shared_key")
    pair.write_key("a1" * 32)

    # A bucket of its own under that name, with an object in it.
    del second.config["tiers"]["geo"]["shared"]
    there = second.start().s3()
    there.create_bucket(Bucket=SHARED)
    there.put_object(Bucket=SHARED, Key="mine", Body=b"mine")
    second.stop()
    second.config["tiers"]["geo"] |= {"shared": [SHARED], "shared_key": str(pair.key)}
    fails_to_start(second, "has objects of this archive alone")
    named = (
        second.config["tiers"]["geo"].pop("shared"),
        second.config["tiers"]["geo"].pop("shared_key"),
    )
    there = second.start().s3()
    there.delete_object(Bucket=SHARED, Key="mine")
    second.stop()
    second.config["tiers"]["geo"] |= {"shared": named[0], "shared_key": named[1]}
    there = second.start().s3()
    assert read(there, SHARED, "film") == b"film"

    # Not named any more: nothing is taken for an object of this archive alone.
    second.stop()
    del second.config["tiers"]["geo"]["shared"], second.config["tiers"]["geo"]["shared_key"]
    there = second.start().s3()
    calls = (
        lambda: there.put_object(Bucket=SHARED, Key="lost", Body=b""),
        lambda: there.get_object(Bucket=SHARED, Key="film"),
        lambda: there.list_objects_v2(Bucket=SHARED),
        lambda: there.delete_object(Bucket=SHARED, Key="film"),
        lambda: there.copy_object(
            Bucket=SHARED, Key="copy", CopySource={"Bucket": SHARED, "Key": "film"}
        ),
    )
    for call in calls:
        assert refused(call) == (503, "ServiceUnavailable")
    there.delete_bucket(Bucket=SHARED)
    there.create_bucket(Bucket=SHARED)
    assert not list(keys_of(there, SHARED))
    assert read(here, SHARED, "film") == b"film", "the other has it all"


def fails_to_start(server: Server, words: str) -> None:
    """Check that a server ends with the exit code of a wrong configuration, and says why."""
    server.launch()
    assert server.process is not None
    assert server.process.wait(DIED_WITHIN) == CONFIG, server.tail()
    assert words in server.tail(), server.tail()


def test_both_archives_give_one_linearizable_history(pair: Pair, tmp_path: Path) -> None:
    """Work on the same objects through both archives while a site is away and one is killed."""
    pair.start()
    recorders = [Recorder(server.s3, SHARED) for server in pair.servers]
    stopping = threading.Event()
    failures: list[BaseException] = []

    def work(recorder: Recorder, client: int) -> None:
        draw = random.Random(f"{seed()} {client}")
        try:
            while not stopping.is_set():
                key, chance = draw.choice(("one", "two")), draw.random()
                if chance < 0.5:
                    recorder.get(key, client)
                elif chance < 0.6:
                    recorder.delete(key, client)
                else:
                    more = {"IfNoneMatch": "*"} if chance < 0.75 else {}
                    recorder.put(key, draw.randbytes(draw.choice((300, 50_000))), client, **more)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [
        threading.Thread(target=work, args=(recorder, 10 * at + number))
        for at, recorder in enumerate(recorders)
        for number in range(CLIENTS_OF_EACH)
    ]

    def go_on(what: str, working: list[Recorder]) -> None:
        target = [recorder.count() + CALLS for recorder in working]

        def is_done() -> bool:
            assert not failures, failures
            return all(it.count() >= then for it, then in zip(working, target, strict=True))

        wait_until(f"clients go on {what}", is_done, SITES_AWAY)

    for thread in threads:
        thread.start()
    try:
        go_on("with all sites", recorders)
        shutil.move(tmp_path / "oslo", tmp_path / "away")
        go_on("without oslo", recorders)
        shutil.rmtree(tmp_path / "oslo", ignore_errors=True)
        shutil.move(tmp_path / "away", tmp_path / "oslo")
        go_on("with oslo", recorders)
        pair.servers[0].kill()
        go_on("while one archive is away", recorders[1:])
        pair.servers[0].start()
        go_on("with both again", recorders)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert not failures, failures
    for recorder in recorders:
        for key in ("one", "two"):
            recorder.get(key)
    assert check(recorders[0].calls + recorders[1].calls) > 8 * CALLS
