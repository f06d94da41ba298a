"""An archive with data in every file, ways to damage a file, and the losses afterwards."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import (
    ACCESS_KEY,
    KEYS,
    POLL_SECONDS,
    READY_SECONDS,
    SECRET_KEY,
    TINY_GEOMETRY,
    Server,
    is_restored,
    keys_of,
    read,
    restore,
    to_toml,
    wait_until,
)

BUCKET = "damage"
PAGE_BYTES = 4096
# What does not come within this time does not come.
RESTORE_SECONDS = 30.0
CONFIG: dict[str, Any] = {
    "profile": "demo",
    "geometry": TINY_GEOMETRY,
    "moves": {"bytes": "1GiB", "age": "24h"},
}
LIBRARY_LOG = "library.log"
DAMAGES = ["missing", "empty", "truncated", "one bit", "one page", "older copy"]


def body(name: str) -> bytes:
    """Make the bytes of an object from its name."""
    return random.Random(name).randbytes(20_000)


@dataclass
class Example:
    """A stopped archive, and an earlier copy of it."""

    now: Path
    before: Path
    objects: dict[str, bytes] = field(default_factory=dict)


def put(s3: Any, name: str, storage_class: str) -> None:
    """Store one object."""
    s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass=storage_class)


class KeyedServer(Server):
    """A server whose credentials lie in its data directory, and nowhere else; its logs, too."""

    def command(self) -> list[str]:
        """Name the log of the library, which is asked for, and lies where this server is."""
        self.config = CONFIG | {"library": {"log": str(self.data / LIBRARY_LOG)}}
        return super().command()

    def process_environment(self) -> dict[str, str]:
        """Leave the credentials out."""
        return {k: v for k, v in super().process_environment().items() if k not in KEYS}


def make_example(folder: Path) -> Example:
    """Fill an archive in two steps and kill it: glass, staged, online, restored, deleted."""
    server = KeyedServer(folder=folder, tls="auto")
    server.data.mkdir(mode=0o700, parents=True)
    pair = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    (server.data / "credentials.toml").write_text(to_toml(pair), encoding="utf-8")
    (server.data / "credentials.toml").chmod(0o600)
    try:
        return fill(server)
    finally:
        # A life that ends by a kill leaves a journal with something in it.
        server.kill()


def fill(server: Server) -> Example:
    """Store, seal, restore and delete; what was there in between is kept as the older copy."""
    before = server.folder / "before"
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    for name in ("glass0", "glass1"):
        put(s3, name, "DEEP_ARCHIVE")
    server.seal()
    put(s3, "staged0", "DEEP_ARCHIVE")
    put(s3, "online0", "STANDARD")
    put(s3, "deleted", "STANDARD")
    server.stop()
    shutil.copytree(server.data, before)
    server.start()
    put(s3, "staged1", "DEEP_ARCHIVE")
    put(s3, "online1", "STANDARD")
    s3.delete_object(Bucket=BUCKET, Key="deleted")
    restore(s3, BUCKET, "glass1", days=30)
    wait_until("glass1 is restored", lambda: is_restored(s3, BUCKET, "glass1"))
    names = ["glass0", "glass1", "online0", "online1", "staged0", "staged1"]
    return Example(server.data, before, {name: body(name) for name in names})


def place(data: Path, name: str) -> str:
    """Find the file for a name of the table: the last segment, else the largest file."""
    pattern = re.sub(r"N\b|\bID\b", "*", name)
    found = [path for path in data.glob(pattern) if path.is_dir() == name.endswith("/")]
    assert found, f"no {name} in the example"
    by = (lambda path: path.name) if name.endswith(".seg") else order_by_size
    return str(max(found, key=by).relative_to(data))


def order_by_size(path: Path) -> tuple[int, str]:
    """Order files by size, then by name."""
    return path.stat().st_size, path.name


def damage(path: Path, how: str, older: Path) -> None:
    """Damage a file, or a folder as a whole."""
    # Those of before are read-only.
    path.chmod(path.stat().st_mode | 0o200)
    if how == "missing":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return
    if how == "older copy":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if older.is_dir():
            shutil.copytree(older, path)
        elif older.exists():
            shutil.copy2(older, path)
        return
    # Zeros at the end of a file are room that was set aside.
    used = max(len(path.read_bytes().rstrip(b"\0")), 1)
    with path.open("r+b") as file:
        if how == "empty":
            file.truncate(0)
        elif how == "truncated":
            file.truncate(used // 2)
        elif how == "one bit":
            file.seek(used // 2)
            byte = file.read(1)[0]
            file.seek(used // 2)
            file.write(bytes([byte ^ 0x10]))
        elif how == "one page":
            start = used // 2 // PAGE_BYTES * PAGE_BYTES
            file.seek(start)
            file.write(bytes(min(PAGE_BYTES, used - start)))
        else:
            raise AssertionError(how)


def start_or_code(server: Server) -> int:
    """Start an archive: 0 when it serves, else its exit code."""
    server.launch()

    def is_decided() -> bool:
        return not server.is_running() or server.is_answering("/readyz")

    wait_until("the archive serves or ends", is_decided, READY_SECONDS)
    assert server.process is not None
    if not server.is_running():
        return int(server.process.returncode)
    wait_until("the archive can be found", lambda: (server.data / "server.json").exists())
    return 0


def lost_objects(server: Server, objects: dict[str, bytes]) -> list[str]:
    """Name the objects that do not come back as they were, and those that should be gone."""
    s3 = server.s3()
    listed = {item["Key"]: item["StorageClass"] for item in listing(s3)}
    server.run("archive", "seal", "--data", str(server.data))
    archived = {name for name, kind in listed.items() if kind != "STANDARD"} & objects.keys()
    lost = set(objects) - archived
    # A restored copy that is found damaged goes, and the object is restored again.
    for _ in range(2):
        wait_for_copies(server, archived & (lost or archived))
        lost = {name for name in objects if not is_whole(s3, name)}
    return sorted(lost) + sorted(f"{name} is back" for name in listed.keys() - objects.keys())


def wait_for_copies(server: Server, names: set[str]) -> None:
    """Ask for restored copies, and wait until each is there or has failed."""
    s3 = server.s3()
    for name in names:
        attempt(lambda name=name: restore(s3, BUCKET, name, days=30))
    deadline = time.monotonic() + RESTORE_SECONDS
    while names and time.monotonic() < deadline:
        failed = {row["key"] for row in server.status()["failed_restores"]}
        names = {name for name in names if not is_restored(s3, BUCKET, name)} - failed
        time.sleep(POLL_SECONDS)


def is_whole(s3: Any, name: str) -> bool:
    """Whether an object gives its bytes; other bytes are never acceptable."""
    found = attempt(lambda: read(s3, BUCKET, name))
    assert found in (None, body(name)), f"{name} gives other bytes than were put"
    return found is not None


def listing(s3: Any) -> list[dict[str, Any]]:
    """List the bucket; nothing when it is gone."""
    return attempt(lambda: list(keys_of(s3, BUCKET))) or []


def attempt(call: Callable[[], Any]) -> Any:
    """Make a call of boto3; None when it is refused or breaks off."""
    try:
        return call()
    except Exception:
        return None
