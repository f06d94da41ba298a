"""Decoding on other machines: jobs by a real NATS server, workers that come late and are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import NewFolder, Start
from harness import (
    STOP_SECONDS,
    Server,
    binary,
    free_port,
    is_restored,
    read,
    restore,
    seed,
    wait_until,
)

BUCKET = "workers"
PASSWORD = "e2e-queue-password"
CREDENTIALS = {"FULGURITE_QUEUE_CREDENTIALS": f"archive:{PASSWORD}"}


@dataclass
class Queue:
    """A NATS server of this module alone."""

    process: subprocess.Popen[bytes]
    address: str


@pytest.fixture(scope="module")
def queue(new_folder: NewFolder) -> Iterator[Queue]:
    """Start a server that wants a password; skip where there is none to start."""
    program = shutil.which("nats-server")
    if program is None:
        if "FULGURITE_TEST_SERVERS" in os.environ:
            pytest.fail("nats-server is not installed")
        pytest.skip("nats-server is not installed")
    port = free_port()
    store = new_folder("queue")
    command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(store)]
    command += ["--user", "archive", "--pass", PASSWORD]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield Queue(process, f"nats://127.0.0.1:{port}")
    process.kill()
    process.wait(timeout=STOP_SECONDS)


@dataclass
class Worker:
    """A decode worker, and what it printed."""

    process: subprocess.Popen[bytes]
    output: Path

    def stop(self) -> dict[str, Any]:
        """Ask it to end; what it says it did."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=STOP_SECONDS) == 0, self.output.read_text()
        totals: dict[str, Any] = json.loads(self.output.read_text().splitlines()[-1])
        return totals


def worker(queue: Queue, folder: Path, number: int) -> Worker:
    """Start a worker with one thread."""
    output = folder / f"worker-{number}.log"
    command = [str(binary()), "decode-worker", "--json", "--queue", queue.address]
    with output.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--threads", "1"], stdout=out, stderr=out, env=os.environ | CREDENTIALS
        )
    return Worker(process, output)


def decode(server: Server) -> dict[str, Any]:
    """What the archive says of its decode service."""
    status: dict[str, Any] = server.status()["decode"]
    return status


def test_killed_decode_worker_loses_nothing(start: Start, queue: Queue, tmp_path: Path) -> None:
    """Verified and restored by workers that come when work waits, one of which is killed."""
    rng = random.Random(seed())
    bodies = {f"{at}": rng.randbytes(3000 + 4000 * at) for at in range(4)}
    medium = {"fidelity": "analog", "channel": "easy", "decode_queue": queue.address}
    server = start({"profile": "sliver", "medium": medium}, environment=CREDENTIALS)
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    for key, body in bodies.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body, StorageClass="DEEP_ARCHIVE")
    sealing = threading.Thread(target=server.seal)
    sealing.start()
    wait_until("jobs wait for a worker", lambda: decode(server)["in_flight"] > 0)
    assert decode(server)["workers"] == 0
    killed, other = (worker(queue, tmp_path, number) for number in range(2))
    wait_until("both workers answered", lambda: decode(server)["workers"] == 2)
    killed.process.kill()
    sealing.join()
    for key in bodies:
        assert restore(s3, BUCKET, key) == 202
    for key, body in bodies.items():
        wait_until(f"{key} is restored", lambda key=key: is_restored(s3, BUCKET, key))
        assert read(s3, BUCKET, key) == body
    status = decode(server)
    read_by = sum(count for _, count in status["sectors"])
    assert status["deaths"] == 0 and status["lost"] < read_by / 50, status
    assert status["queued"] == [0, 0] and status["in_flight"] == 0, status
    assert status["joules"] > 0 and status["price"] == pytest.approx(1.0), status
    totals = other.stop()
    assert totals["jobs"] > 0 and totals["refused"] == 0, totals
    assert server.stop() == 0
    for log in [server.log, killed.output, other.output]:
        assert PASSWORD not in log.read_text()
