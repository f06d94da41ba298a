"""Tomes in processes of their own behind the archive, with certificates that openssl made.

The disks are directories that take no time to turn.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from harness import Server, binary, free_port, in_file, read, to_toml, wait_until

BUCKET = "vault"
SIZES = {"small": 1000, "large": 3_000_000}
# Tome 0 is in the process of the set.
ELSEWHERE = range(1, 6)
# A tome that was killed has its token until its lease is over; all others wait for that.
LEASE = 315
UNAVAILABLE = 7


@pytest.fixture
def openssl() -> str:
    """Find openssl; CI has it."""
    found = shutil.which("openssl")
    if found is None:
        if "FULGURITE_TEST_SERVERS" in os.environ:
            pytest.fail("openssl is not installed")
        pytest.skip("openssl is not installed")
    return found


class Network:
    """Processes of tomes, and their configuration."""

    def __init__(self, folder: Path, openssl: str) -> None:
        """Make an authority, a certificate for each process, and a file for each."""
        self.folder, self.openssl = folder, openssl
        self.set = str(uuid.uuid4())
        self.ports = {tome: free_port() for tome in ELSEWHERE}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True)
        (folder / "here").mkdir()
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
        self.make(
            "req", "-x509", *curve, "-days", "10", "-keyout", "ca.key", "-out", "ca.pem",
            "-subj", "/CN=tomes", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
        for name in ["keeper", *(f"tome-{tome}" for tome in ELSEWHERE)]:
            self.make(
                "req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}",
            )  # fmt: skip
            says = [
                f"subjectAltName=DNS:{name}.{self.set}",
                "basicConstraints=CA:FALSE",
                "extendedKeyUsage=serverAuth,clientAuth",
            ]
            (folder / f"{name}.ext").write_text("\n".join(says) + "\n", encoding="utf-8")
            self.make(
                "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "10", "-extfile", f"{name}.ext", "-out", f"{name}.pem",
            )  # fmt: skip
            self.file(name).write_text(self.text(name), encoding="utf-8")

    def make(self, *arguments: str) -> None:
        """Run openssl in the folder."""
        done = subprocess.run(
            [self.openssl, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def file(self, name: str) -> Path:
        """Return the configuration file of a process."""
        return self.folder / f"{name}.toml"

    def text(self, name: str) -> str:
        """Return what it says."""
        tls = {"ca": "ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}
        places = ['0 = { root = "here" }']
        places += [
            f'{tome} = {{ address = "127.0.0.1:{port}" }}' for tome, port in self.ports.items()
        ]
        return to_toml({"set": self.set, "tls": tls}) + "\n[tomes]\n" + "\n".join(places) + "\n"

    def serve(self, tome: int) -> None:
        """Start the process of a tome."""
        data = self.folder / f"data-{tome}"
        data.mkdir(exist_ok=True)
        command = [str(binary()), "tome", "serve", "--config", str(self.file(f"tome-{tome}"))]
        command += ["--tome", str(tome), "--data", str(data)]
        with (self.folder / f"tome-{tome}.log").open("ab") as log:
            self.processes[tome] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, tome: int) -> None:
        """End it as a power cut would."""
        self.processes[tome].send_signal(signal.SIGKILL)
        self.processes[tome].wait()

    def stop(self) -> None:
        """End all."""
        for tome in list(self.processes):
            self.kill(tome)


@pytest.fixture
def network(tmp_path: Path, openssl: str) -> Iterator[Network]:
    """Make certificates and start all tomes; all are killed when the test ends."""
    made = Network(tmp_path / "tomes", openssl)
    yield made
    made.stop()


def ask(server: Server, verb: str) -> subprocess.CompletedProcess[str]:
    """Run `fulgurite tier`, by the configuration of a server that may run or not."""
    path = server.folder / "config.toml"
    path.write_text(to_toml(in_file(server.config)), encoding="utf-8")
    place = ["--data", str(server.data), "--config", str(path), "--json"]
    return server.run("tier", verb, "tomes", *place, timeout=200)


def run_json(server: Server, verb: str) -> Any:
    """Return the last object that it prints. It must succeed."""
    done = ask(server, verb)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{server.tail()}"
    return json.loads(done.stdout.splitlines()[-1])


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes(SIZES[name])


def read_or_none(s3: Any, name: str) -> bytes | None:
    """Read an object; nothing while its tome is asked in vain."""
    try:
        return read(s3, BUCKET, name)
    except (ClientError, HTTPClientError):
        return None


def test_archive_uses_tomes_on_other_machines(network: Network, tmp_path: Path) -> None:
    """Make a set of six processes, put, read, kill one that has the objects, read again."""
    tomes = {"kind": "tome", "network": str(network.file("keeper")), "promise": "local"}
    server = Server(tmp_path, {"profile": "demo", "tiers": {"tomes": tomes}})
    try:
        for tome in list(ELSEWHERE)[1:]:
            network.serve(tome)
        early = ask(server, "init")
        assert early.returncode == UNAVAILABLE, early.stderr
        assert "tier init tomes" in early.stderr and f":{network.ports[1]}" in early.stderr, (
            early.stderr
        )
        network.serve(1)
        made = {"type": "tome_init", "set": network.set, "tomes": 6, "added": 0}
        assert run_json(server, "init") == made

        s3 = server.start().s3()
        s3.create_bucket(Bucket=BUCKET)
        for name in SIZES:
            s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER_IR")
        moved = "all is on tomes"
        wait_until(moved, lambda: server.status()["objects_staged"] == 0, LEASE)
        for name in SIZES:
            assert read(s3, BUCKET, name) == body(name), name
        seen = run_json(server, "status")
        assert seen["is_well"], seen["reasons"]
        owner = max(seen["tomes"], key=lambda tome: tome["pieces"])["tome"]
        killed = owner if owner in ELSEWHERE else 1

        network.kill(killed)

        def is_missed() -> bool:
            tomes = {tome["tome"]: tome for tome in run_json(server, "status")["tomes"]}
            return "away" in tomes[killed]

        wait_until("who is gone is missed", is_missed)
        network.serve(killed)
        wait_until("it is back", lambda: run_json(server, "status")["is_well"])
        for name in SIZES:
            found = wait_until(f"{name} is read", lambda name=name: read_or_none(s3, name), LEASE)
            assert found == body(name), name
    finally:
        server.kill()
