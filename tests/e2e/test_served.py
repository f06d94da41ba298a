"""A served archive beside its twin: what clients asked, asked of simulated machines.

Both controllers decide the same once more on what their logs say they were told; then the twin is
asked for the restores by the log of those, and for the reads alone by that of the library.

`FULGURITE_TEST_SERVED=2000` restores so many objects, which takes minutes, and holds the tails
against each other; without it a few are restored, and only their ends are compared: how long a few
take on a busy machine says nothing.
"""

from __future__ import annotations

import json
import os
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness import KIB, TINY_GEOMETRY, Server, run, seed, wait_until
from harness import binary as program

BUCKET = "served"
TIERS = ["Expedited", "Standard", "Bulk"]
# By how many percent the twin's 99.9th percentile may be another one.
WITHIN = 5
SEEDS = "7"
TRACK_BYTES = 8 * 4096


def serve(folder: Path, time_scale: float) -> Server:
    """Start an archive whose library takes its time and writes its log."""
    library = {"time_scale": time_scale, "log": str(folder / "library.log")}
    server = Server(folder, {"geometry": TINY_GEOMETRY, "library": library})
    server.config["seal"] = {"staged_bytes": "64GiB"}
    server.config["restore"] = {"log": str(folder / "restore.log")}
    return server


def put(server: Server, names: list[str]) -> None:
    """Put objects of less than a track to a track and a half each, all different."""
    s3 = server.s3()

    def one(name: str) -> None:
        body = random.Random(name).randbytes(random.Random(name).randrange(20, 50) * KIB)
        s3.put_object(Bucket=BUCKET, Key=name, Body=body, StorageClass="GLACIER")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, names))


def restore_all(server: Server, names: list[str], seconds: float) -> None:
    """Ask for all, each tier in turn, and wait until all can be read."""
    s3 = server.s3()

    def ask(numbered: tuple[int, str]) -> None:
        job = {"Tier": TIERS[numbered[0] % len(TIERS)]}
        request = {"Days": 1, "GlacierJobParameters": job}
        s3.restore_object(Bucket=BUCKET, Key=numbered[1], RestoreRequest=request)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, enumerate(names)))
    restored = f"fulgurite_restored_objects {len(names)}\n".encode()
    wait_until("all are restored", lambda: restored in server.fetch("/metrics")[1], seconds)


def test_the_twin_serves_what_a_served_archive_was_asked(tmp_path: Path) -> None:
    """Restores in three tiers, lost platters and verification, then the log in the twin."""
    count = int(os.environ.get("FULGURITE_TEST_SERVED", "0"))
    is_measured = count > 0
    count = count or 45
    time_scale = 0.05 if is_measured else 0.001
    server = serve(tmp_path, 0.0).start()
    server.s3().create_bucket(Bucket=BUCKET)
    names = [f"object {number}" for number in range(count)]
    random.Random(seed()).shuffle(names)
    put(server, names)
    server.seal()
    # Some platters are lost: what lies on them comes from the others of their sets.
    lost = {server.admin("locate", f"s3://{BUCKET}/{name}")["platter"] for name in names[::100]}
    server.stop()
    for platter in lost:
        (server.platters / f"{platter}.glass").write_bytes(b"broken")

    server = serve(tmp_path, time_scale).start()
    # Meanwhile new platters come out and are verified.
    put(server, [f"new {number}" for number in range(count // 10)])
    with ThreadPoolExecutor(1) as beside:
        seal = ["admin", "seal", "--data", str(server.data)]
        sealing = beside.submit(server.run, *seal, timeout=3600)
        restore_all(server, names, 3600 if is_measured else 120)
        assert sealing.result().returncode == 0
    assert server.status()["repaired_by_set"] > 0
    server.stop()

    logs = [tmp_path / "library.log", tmp_path / "restore.log"]
    for log in logs:
        said = run([str(program()), "twin", "replay", str(log)], 600)
        assert said.returncode == 0, said.stderr
        assert "all the same" in said.stdout, said.stdout

    command = [str(program()), "--json", "twin", "served", str(logs[0]), "--seeds", SEEDS]
    command += ["--time-scale", str(time_scale), "--track-size", f"{TRACK_BYTES}B"]
    of_reads = [served for served in compared(command) if "restores" not in served]
    assert all(served["ended_otherwise"] == 0 for served in of_reads), of_reads
    of_clients = compared([*command, "--restores", str(logs[1])])
    for served in of_clients:
        restores = served["restores"]
        assert restores["all"]["served"]["count"] == count, restores
        assert restores["unended_twin"] == 0, restores
        # What was lost was found in the logs, and another order is explained by timing alone.
        assert 0 < restores["platters_of_no_use"] <= len(lost), restores
        assert restores["order"]["unexplained"] == 0, restores
        assert served["verifications"]["served"]["count"] > 0, served
    tails = {
        "reads, asked for reads": tail(of_reads, lambda served: served["reads"]),
        "reads, asked for restores": tail(of_clients, lambda served: served["reads"]),
        "restores": tail(of_clients, lambda served: served["restores"]["all"]),
    }
    for name, differs in tails.items():
        print(f"{name}: the middle twin's 99.9th percentile differs by {differs:+.1f} %")
    if is_measured:
        assert abs(tails["restores"]) <= WITHIN, tails


def compared(command: list[str]) -> list[Any]:
    """Run `twin served`: what it found with each seed."""
    said = run(command, 600)
    assert said.returncode == 0, said.stderr
    print(said.stdout)
    return [json.loads(line)["served"] for line in said.stdout.splitlines()]


def tail(runs: list[Any], of: Callable[[Any], Any]) -> float:
    """By how many percent the middle twin's tail is longer than the archive's."""
    served = of(runs[0])["served"]["p999"]
    return (statistics.median(of(one)["twin"]["p999"] for one in runs) / served - 1) * 100
