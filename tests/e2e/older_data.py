"""Data directories as older releases wrote them: how one is made, and how it is opened again.

    FULGURITE_BINARY=... python tests/e2e/older_data.py NAME [planned]

makes `tests/fixtures/NAME.tar.xz` with that program: a small data directory that a kill left with
something of every kind that rows and media can hold, and `held.json`, which says what it holds. It
is made once, by the program whose format it keeps, and never again. With `planned` the kill comes
when a set is planned and nothing of it is written.
"""

from __future__ import annotations

import io
import json
import lzma
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError
from harness import (
    KEYS,
    ROOT,
    Server,
    binary,
    is_restored,
    keys_of,
    parts_count,
    read,
    restore,
    sha256,
    wait_until,
)

FIXTURES = ROOT / "tests" / "fixtures"
BUCKET = "vault"
# Copies that are still there when this is read in some decades.
DAYS = 36_500
# Platters of 48 KiB, about as small as they come, and mostly empty.
CONFIG: dict[str, Any] = {
    "profile": "demo",
    "geometry": {
        "profile": "older",
        "sector_payload_bytes": 4096,
        "track_information_sectors": 6,
        "track_redundancy_sectors": 1,
        "group_information_tracks": 2,
        "group_redundancy_tracks": 1,
        "group_span_sectors": 5,
        "groups": 1,
        "set_information_platters": 4,
        "set_redundancy_platters": 2,
        "set_span_sectors": 5,
    },
    "seal": {"shard_size": "4KiB"},
    "storage": {"reserve": "0B"},
}
# Nothing that is asked of the library comes to its end.
STANDING = {"library": {"time_scale": 1e6}}
# Deleted, and not to the end.
LATE = "deleted at the end"
METADATA = {"origin": "e2e", "title": "Silica"}
HEADERS = {
    "ContentType": "application/x-test",
    "CacheControl": "no-store",
    "ContentDisposition": "attachment",
    "ContentEncoding": "identity",
    "ContentLanguage": "la",
    "Metadata": METADATA,
    "ChecksumAlgorithm": "SHA256",
}
# What an entry, a row and a listing say of an object.
TOLD = ["ContentType", "CacheControl", "ContentDisposition", "ContentLanguage", "Metadata"]
# What belongs to the process and not to the data.
LEFT_OUT = {"lock", "server.json"}


def listing(s3: Any) -> list[dict[str, Any]]:
    """Everything a listing and a HEAD report of every object, except restores."""
    rows = []
    for item in keys_of(s3, BUCKET):
        head = s3.head_object(Bucket=BUCKET, Key=item["Key"], ChecksumMode="ENABLED")
        row = {name: item[name] for name in ("Key", "Size", "ETag", "StorageClass")}
        row |= {name: head.get(name) for name in [*TOLD, "ChecksumSHA256"]}
        row["PartsCount"] = parts_count(s3, BUCKET, item)
        rows.append(row | {"LastModified": item["LastModified"].isoformat()})
    return rows


def cut_short(server: Server, point: str, call: Any) -> None:
    """Call an archive that dies at a fail point."""
    server.environment["FULGURITE_FAIL_POINT"] = f"{point}:0"
    server.start()
    try:
        call(server.s3())
    except (NoConnection, HTTPClientError):
        pass
    else:
        raise AssertionError(f"nothing passed {point}")
    wait_until("the archive dies", lambda: not server.is_running())
    del server.environment["FULGURITE_FAIL_POINT"]


class Maker:
    """Fills a data directory, and knows what it holds."""

    def __init__(self, folder: Path) -> None:
        """Start with nothing; the bytes are the same each time."""
        self.rng = random.Random(18)
        self.server = Server(folder=folder, config=CONFIG)
        self.bodies: dict[str, bytes] = {}

    def put(self, s3: Any, key: str, size: int, storage_class: str, **options: Any) -> None:
        """Put an object and remember it."""
        body = self.rng.randbytes(size)
        s3.put_object(Bucket=BUCKET, Key=key, Body=body, StorageClass=storage_class, **options)
        self.bodies[key] = body

    def fill_glass(self, s3: Any) -> None:
        """A set on glass, with dead bytes and a restored copy."""
        s3.create_bucket(Bucket=BUCKET)
        s3.create_bucket(Bucket="empty-bucket")
        # On two platters, and in two shards.
        self.put(s3, "glass/deep", 26_000, "DEEP_ARCHIVE", **HEADERS)
        self.put(s3, "glass/empty", 0, "GLACIER")
        self.put(s3, "glass/copied", 3000, "GLACIER", **HEADERS)
        for key in ("glass/deleted", "glass/overwritten", "glass/queued", "glass/\u00e9+% 1"):
            self.put(s3, key, 500, "GLACIER")
        self.complete(s3)
        self.server.seal()
        restore(s3, BUCKET, "glass/copied", days=DAYS)
        wait_until("a copy comes", lambda: is_restored(s3, BUCKET, "glass/copied"))
        s3.delete_object(Bucket=BUCKET, Key="glass/deleted")
        del self.bodies["glass/deleted"]
        self.put(s3, "glass/overwritten", 300, "STANDARD")

    def complete(self, s3: Any) -> None:
        """An object of one part, which may be short."""
        target = {"Bucket": BUCKET, "Key": "glass/parts"}
        upload = s3.create_multipart_upload(**target, StorageClass="GLACIER", Metadata=METADATA)
        target["UploadId"] = upload["UploadId"]
        body = self.rng.randbytes(700)
        tag = s3.upload_part(**target, PartNumber=7, Body=body)["ETag"]
        parts = {"Parts": [{"PartNumber": 7, "ETag": tag}]}
        s3.complete_multipart_upload(**target, MultipartUpload=parts)
        self.bodies["glass/parts"] = body

    def begin_upload(self, s3: Any) -> dict[str, str]:
        """An upload that is not completed yet, with one part."""
        target = {"Bucket": BUCKET, "Key": "upload"}
        upload = s3.create_multipart_upload(**target, StorageClass="GLACIER", **HEADERS)
        body = self.rng.randbytes(900)
        part = s3.upload_part(
            **target,
            UploadId=upload["UploadId"],
            PartNumber=3,
            Body=body,
            ChecksumAlgorithm="SHA256",
        )
        return {
            "UploadId": upload["UploadId"],
            "ETag": part["ETag"],
            "ChecksumSHA256": part["ChecksumSHA256"],
            "sha256": sha256(body),
        }

    def begin_sealing(self) -> subprocess.Popen[bytes]:
        """Ask for a set, and do not wait for it."""
        command = [str(binary()), "admin", "seal", "--data", str(self.server.data)]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=KEYS
        )

    def stop_on_the_way(self, s3: Any) -> None:
        """A set is written and waits for its verification; more is staged; a restore waits."""
        self.put(s3, "staged/planned", 3000, "GLACIER", **HEADERS)
        sealing = self.begin_sealing()

        def is_written() -> bool:
            return any(row["state"] == "written" for row in self.server.status()["sets"])

        wait_until("a set is written", is_written)
        sealing.kill()
        sealing.wait()
        self.put(s3, "staged/queued", 400, "DEEP_ARCHIVE")
        restore(s3, BUCKET, "glass/queued", days=DAYS, tier="Bulk")

    def stop_when_planned(self) -> list[dict[str, Any]]:
        """A set is planned, and nothing of it is written: the listing before."""
        server = self.server
        server.environment["FULGURITE_FAIL_POINT"] = "seal-planned:0"
        s3 = server.start().s3()
        self.put(s3, "staged/planned", 3000, "GLACIER", **HEADERS)
        restore(s3, BUCKET, "glass/queued", days=DAYS, tier="Bulk")
        held = listing(s3)
        sealing = self.begin_sealing()
        wait_until("the archive dies", lambda: not server.is_running())
        sealing.wait()
        return held

    def stop_in_a_deletion(self) -> list[dict[str, Any]]:
        """A set is on its way, and a deletion is committed and not finished: the listing before."""
        server = self.server
        s3 = server.start().s3()
        self.stop_on_the_way(s3)
        self.put(s3, LATE, 100, "STANDARD")
        held = listing(s3)
        server.kill()
        cut_short(server, "delete-committed", lambda s3: s3.delete_object(Bucket=BUCKET, Key=LATE))
        del self.bodies[LATE]
        return held

    def make(self, is_planned: bool) -> dict[str, Any]:
        """Everything, from the first start to the kill: what is held then."""
        server = self.server
        server.start()
        s3 = server.s3()
        self.fill_glass(s3)
        self.put(s3, "online", 2000, "STANDARD", **HEADERS)
        self.put(s3, "online empty", 0, "STANDARD")
        upload = self.begin_upload(s3)
        server.stop()
        options = {"Bucket": BUCKET, "Body": b"cut short", "StorageClass": "STANDARD"}
        for key in ("online", "doubted"):
            cut_short(server, "put-staged", lambda s3, key=key: s3.put_object(Key=key, **options))
        server.config = CONFIG | STANDING
        held = self.stop_when_planned() if is_planned else self.stop_in_a_deletion()
        return {
            "program": server.run("--version").stdout.strip(),
            "objects": [row for row in held if row["Key"] in self.bodies],
            "sha256": {key: sha256(body) for key, body in self.bodies.items()},
            "restored": "glass/copied",
            "queued": "glass/queued",
            "in_doubt": ["doubted", "online"],
            "shredded_late": LATE,
            "upload": upload,
            "metadata": METADATA,
        }


def pack(folder: Path, held: dict[str, Any], path: Path) -> None:
    """Write a data directory and what it holds, the same way each time."""
    with (
        lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        text = json.dumps(held, indent=1, sort_keys=True).encode()
        row = tarfile.TarInfo("held.json")
        row.size = len(text)
        tar.addfile(row, io.BytesIO(text))
        for file in sorted(folder.rglob("*")):
            if file.name in LEFT_OUT:
                continue
            row = tar.gettarinfo(str(file), f"data/{file.relative_to(folder)}")
            row.uid = row.gid = row.mtime = 0
            row.uname = row.gname = ""
            with file.open("rb") if file.is_file() else io.BytesIO() as content:
                tar.addfile(row, content)


def unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Lay a data directory out below `folder`: what it holds."""
    with tarfile.open(path, mode="r:xz") as tar:
        tar.extractall(folder, filter="data")
    held: dict[str, Any] = json.loads((folder / "held.json").read_text(encoding="utf-8"))
    return held


def digest_of(s3: Any, key: str) -> str:
    """Digest the bytes of an object that can be read."""
    return sha256(read(s3, BUCKET, key))


def main() -> None:
    """Make the fixture that is named."""
    name, *kind = sys.argv[1:]
    assert kind in ([], ["planned"]), kind
    path = FIXTURES / f"{name}.tar.xz"
    assert not path.exists(), f"{path} is there, and what older programs wrote does not change"
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(Path(folder))
        try:
            held = maker.make(is_planned=bool(kind))
        finally:
            maker.server.kill()
        path.parent.mkdir(parents=True, exist_ok=True)
        pack(maker.server.data, held, path)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
