"""A set of tomes behind the archive: directories whose disks are simulated, and take no time.

Objects of class GLACIER_IR lie there, and are read at once.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from harness import Server, in_file, read, to_toml, wait_until

BUCKET = "vault"
# Exit code of programs whose arguments or configuration lack something.
CONFIG = 3
# Parts of 8 MiB, each a piece, and what the object is.
LARGE_PIECES = 3
SIZES = {"small": 1000, "middle": 300_000, "large": 14_000_000}
# Parities turn one after the other, and each lets go of the token some seconds after the last.
MOVED_WITHIN = 300
Make = Callable[..., Server]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make servers that are started when their test likes; all are killed when it ends."""
    servers: list[Server] = []

    def made(folder: Path, **tomes: Any) -> Server:
        usual = {"kind": "tome", "count": 8, "idle": "300ms"}
        config = {"profile": "demo", "tiers": {"tomes": usual | tomes}}
        servers.append(Server(folder, config))
        return servers[-1]

    yield made
    for server in servers:
        server.kill()


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes(SIZES[name])


def ask(server: Server, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `fulgurite tier` for the tomes, by the configuration of a server that may run or not."""
    path = server.folder / "config.toml"
    server.folder.mkdir(parents=True, exist_ok=True)
    path.write_text(to_toml(in_file(server.config)), encoding="utf-8")
    place = ["--data", str(server.data), "--config", str(path)]
    return server.run("tier", verb, "tomes", *arguments, *place)


def run_json(server: Server, verb: str) -> Any:
    """Return the last object that `fulgurite tier --json` prints. It must succeed."""
    done = ask(server, verb, "--json")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{server.tail()}"
    return json.loads(done.stdout.splitlines()[-1])


def begin(server: Server) -> Any:
    """Make the set, start, put all objects, and wait until the tomes have them."""
    assert run_json(server, "init")["tomes"] == 8
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    for name in SIZES:
        s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER_IR")
        assert read(s3, BUCKET, name) == body(name), "it is read while it is staged"
    wait_until("all is on tomes", lambda: server.status()["objects_staged"] == 0, MOVED_WITHIN)
    return s3


def spin_ups(server: Server) -> list[int]:
    """Return the number of spin-ups of each disk."""
    return [tome["spin_ups"] for tome in run_json(server, "status")["tomes"]]


def pieces(server: Server) -> dict[int, int]:
    """Return how many pieces of objects each tome has."""
    return {tome["tome"]: tome["pieces"] for tome in run_json(server, "status")["tomes"]}


def test_glacier_ir_is_stored_on_tomes_and_read_at_once(make: Make, tmp_path: Path) -> None:
    """Put, move, look without waking, read, a range, delete; killed and started again."""
    server = make(tmp_path)
    s3 = begin(server)
    assert server.status()["objects_in_tiers"] == len(SIZES)
    located = server.admin("locate", f"s3://{BUCKET}/large")
    assert (located["residence"], located["tier"]) == ("tier", "tomes")
    seen = run_json(server, "status")
    assert (seen["is_well"], seen["unprotected_bytes"]) == (True, 0), seen

    def asleep() -> bool:
        return all(tome["power"] == "standby" for tome in run_json(server, "status")["tomes"])

    wait_until("all disks are asleep", asleep)
    before = spin_ups(server)
    for _ in range(3):
        listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        assert {item["Key"] for item in listed} == set(SIZES)
        for name in SIZES:
            assert s3.head_object(Bucket=BUCKET, Key=name)["StorageClass"] == "GLACIER_IR"
    assert spin_ups(server) == before, "a status spins up no disk"
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name
    assert sum(spin_ups(server)) > sum(before)
    part = s3.get_object(Bucket=BUCKET, Key="large", Range="bytes=12345678-12355678")
    assert part["Body"].read() == body("large")[12345678:12355679]
    page = server.fetch("/metrics")[1].decode()
    assert 'fulgurite_tier_healthy{tier="tomes",kind="tome"} 1' in page
    assert 'fulgurite_tier_unprotected_bytes{tier="tomes",kind="tome",tome="0"} 0' in page

    server.kill()
    s3 = server.start().s3()
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name
    there = sum(pieces(server).values())
    s3.delete_object(Bucket=BUCKET, Key="large")

    def are_gone() -> bool:
        return sum(pieces(server).values()) <= there - LARGE_PIECES

    wait_until("its pieces are gone", are_gone)
    with pytest.raises(ClientError):
        read(s3, BUCKET, "large")
    shown = ask(server, "status")
    assert shown.returncode == 0 and "health       well" in shown.stdout, shown.stdout


def test_missing_tome_is_reported_and_affects_no_others(make: Make, tmp_path: Path) -> None:
    """Remove a tome without data: all objects are read, and the missing tome is reported."""
    server = make(tmp_path, promise="local")
    begin(server)
    lost = next(tome for tome, count in pieces(server).items() if count == 0)
    server.stop()
    folder = server.data / "tiers" / "tomes"
    shutil.rmtree(folder / "disks" / str(lost))
    shutil.rmtree(folder / f"tome-{lost:04}")
    s3 = server.start().s3()
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name
    seen = run_json(server, "status")
    assert not seen["is_well"]
    assert any(reason.startswith(f"tome {lost}: ") for reason in seen["reasons"]), seen["reasons"]
    assert b"the set of tomes is not well" in server.fetch("/readyz")[1]
    assert (
        'fulgurite_tier_healthy{tier="tomes",kind="tome"} 0' in server.fetch("/metrics")[1].decode()
    )


def test_lost_index_is_rebuilt_and_unnamed_set_reported(make: Make, tmp_path: Path) -> None:
    """Remove the index of the store: `tier recover` finds every object."""
    server = make(tmp_path, promise="local")
    begin(server)
    server.stop()
    shutil.rmtree(server.data / "tiers" / "tomes" / "index")
    found = run_json(server, "recover")
    # The objects, and the mark of the archive whose tier it is.
    assert (found["known"], found["problems"]) == (0, []) and found["objects"] >= len(SIZES), found
    s3 = server.start().s3()
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name
    server.stop()
    refused = server.run("tier", "status", "tomes", "--data", str(server.data))
    assert refused.returncode == CONFIG and "--tier tomes=KIND:VALUE" in refused.stderr, (
        refused.stderr
    )
