"""An archive over sites with a node beside the stores of each, and certificates made by openssl.

The sites are directories of this machine, and nobody but the nodes opens them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import KEYS, MIB, STOP_SECONDS, Server, binary, free_port, read, run, wait_until

CREATED = {"type": "geo_init", "name": "records", "epoch": 1, "sites": 3}
BUCKET = "library"
SITES = ("lisbon", "oslo", "turin")
SIZES = {"small": 10, "middle": 100_000, "large": 9 * MIB}
LATER = {"later": 70_000, "last": 3 * MIB}
# Short, so that a node that is back is seen soon.
TIMES = 'round = "2s"\npatience = "8s"\nlease = "9s"\n'
CONFIG, UNAVAILABLE = 3, 7
MOVED_WITHIN = 300.0


@pytest.fixture
def openssl() -> str:
    """Find openssl; CI has it."""
    found = shutil.which("openssl")
    if found is None:
        if "FULGURITE_TEST_SERVERS" in os.environ:
            pytest.fail("openssl is not installed")
        pytest.skip("openssl is not installed")
    return found


class Nodes:
    """Nodes of three sites, and the map that names them."""

    def __init__(self, folder: Path, openssl: str) -> None:
        """Make an authority, a certificate for each node, and one for their clients."""
        self.folder, self.openssl = folder, openssl
        self.ports = {site: free_port() for site in SITES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True)
        self.authority("ca")
        for site in SITES:
            self.issue(site, f"{site}.records", "serverAuth")
        self.issue("archive", "archive", "clientAuth")
        self.map = folder / "records.toml"
        text = f'name = "records"\ndata = 2\nparity = 1\n{TIMES}'
        for site in SITES:
            place = self.place(site)
            text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
        self.map.write_text(text, encoding="utf-8")

    def authority(self, name: str) -> None:
        """Make an authority."""
        self.make(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
            "-days", "10", "-keyout", f"{name}.key", "-out", f"{name}.pem",
            "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip

    def issue(self, name: str, dns: str, usage: str, authority: str = "ca") -> None:
        """Make a certificate."""
        self.make(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
            "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
        )  # fmt: skip
        extensions = [f"subjectAltName=DNS:{dns}", "basicConstraints=CA:FALSE"]
        extensions.append(f"extendedKeyUsage={usage}")
        (self.folder / f"{name}.ext").write_text("\n".join(extensions) + "\n", encoding="utf-8")
        self.make(
            "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
            "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "10",
            "-extfile", f"{name}.ext", "-out", f"{name}.pem",
        )  # fmt: skip

    def make(self, *arguments: str) -> None:
        """Run openssl in the folder."""
        done = subprocess.run(
            [self.openssl, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def place(self, site: str, name: str | None = None, client: str = "archive") -> str:
        """Return the address of a node, as this client asks it."""
        files = f"ca={self.folder}/ca.pem"
        files += f"&cert={self.folder}/{client}.pem&key={self.folder}/{client}.key"
        return f"node://127.0.0.1:{self.ports[site]}/{name or site + '.records'}?{files}"

    def command(self, site: str, *arguments: str) -> list[str]:
        """Return what starts a node."""
        place = f"dir://{self.folder}/{site}"
        command = [str(binary()), "geo", "node", "--listen", f"127.0.0.1:{self.ports[site]}"]
        command += ["--ca", str(self.folder / "ca.pem"), "--cert", str(self.folder / f"{site}.pem")]
        command += ["--key", str(self.folder / f"{site}.key"), "--table", place, "--blobs", place]
        return [*command, *arguments]

    def serve(self, site: str) -> None:
        """Start a node, and wait until it listens."""
        path = self.folder / f"{site}.out"
        with path.open("wb") as out, (self.folder / f"{site}.log").open("ab") as log:
            command = self.command(site, "--json")
            self.processes[site] = subprocess.Popen(command, stdout=out, stderr=log)
        serving = json.loads(wait_until(f"the node of {site} listens", path.read_text))
        assert serving["listening"] == f"127.0.0.1:{self.ports[site]}", serving
        assert serving["names"] == [f"{site}.records"], serving
        assert serving["table"] == serving["blobs"] == f"dir://{self.folder}/{site}", serving

    def kill(self, site: str) -> None:
        """End it as a power cut would."""
        process = self.processes.pop(site)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, site: str) -> int:
        """Tell it to stop; its exit code."""
        process = self.processes.pop(site)
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout=STOP_SECONDS)

    def doctor(self) -> Any:
        """Run `fulgurite geo doctor --map MAP --json`."""
        command = [str(binary()), "geo", "doctor", "--map", str(self.map), "--json"]
        return run(command, 300, KEYS)

    def tier(self, verb: str, data: Path | None = None) -> Any:
        """Run `fulgurite tier VERB geo --json`, without a server unless `data` has one."""
        command = [str(binary()), "tier", verb, "geo", "--tier", f"geo=geo:{self.map}", "--json"]
        return run([*command, "--data", str(data or self.folder / "none")], 300, KEYS)

    def up(self, server: Server) -> list[bool]:
        """Return which sites answered a server lately."""
        return [site["up"] for site in json_of(self.tier("status", server.data))["sites"]]


@pytest.fixture
def nodes(tmp_path: Path, openssl: str) -> Iterator[Nodes]:
    """Make certificates and start the nodes; all are killed when the test ends."""
    made = Nodes(tmp_path / "nodes", openssl)
    try:
        for site in SITES:
            made.serve(site)
        yield made
    finally:
        for site in list(made.processes):
            made.kill(site)


@pytest.fixture
def server(tmp_path: Path, nodes: Nodes) -> Iterator[Server]:
    """Make an archive over the nodes, not started yet."""
    geo = {"kind": "geo", "map": str(nodes.map), "near": "lisbon"}
    geo |= {"heal_every": "1s", "collect_every": "2s"}
    config = {"profile": "demo", "tiers": {"geo": geo}, "classes": {"STANDARD": "geo"}}
    made = Server(tmp_path / "archive", config)
    yield made
    made.kill()


def json_of(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    """Return the last object that a command printed; it ends with `code`."""
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes((SIZES | LATER)[name])


def put(server: Server, names: dict[str, int]) -> None:
    """Put objects, and wait until the sites have them."""
    for name in names:
        server.s3().put_object(Bucket=BUCKET, Key=name, Body=body(name))
    wait_until("all is at the sites", lambda: server.status()["objects_staged"] == 0, MOVED_WITHIN)


def all_there(server: Server, names: dict[str, int]) -> None:
    """Read every object."""
    for name in names:
        assert read(server.s3(), BUCKET, name) == body(name), name


def test_objects_stay_available_while_a_node_is_killed(nodes: Nodes, server: Server) -> None:
    """Begin over nodes, put, kill a node, put and get, have it back, and lose another."""
    missing = nodes.doctor()
    assert missing.returncode == UNAVAILABLE, f"{missing.stdout}{missing.stderr}"
    assert "begin the namespace" in missing.stdout, missing.stdout
    assert not (nodes.folder / "oslo").exists(), "the doctor makes no site"
    assert json_of(nodes.tier("init")) == CREATED
    reports = [json.loads(line) for line in nodes.doctor().stdout.splitlines()]
    assert len(reports) == 2 * len(SITES)
    for report in reports:
        assert {check["outcome"] for check in report["checks"]} == {"passed"}, report
    assert json_of(nodes.tier("status"))["epoch"] == 1

    server.start()
    assert nodes.up(server) == [True, True, True]
    server.s3().create_bucket(Bucket=BUCKET)
    put(server, SIZES)
    all_there(server, SIZES)
    nodes.kill("oslo")
    all_there(server, SIZES)
    put(server, LATER)
    all_there(server, SIZES | LATER)
    wait_until("it is noticed", lambda: nodes.up(server) == [True, False, True])
    missing = nodes.doctor()
    assert missing.returncode == UNAVAILABLE, f"{missing.stdout}{missing.stderr}"
    assert "127.0.0.1" in missing.stdout, missing.stdout

    # It keeps nothing: the same again serves what is in the stores.
    nodes.serve("oslo")
    wait_until("all sites answer", lambda: nodes.up(server) == [True, True, True])
    scrubbed = json_of(nodes.tier("scrub"))
    assert (scrubbed["missing"], scrubbed["problems"]) == (0, []), scrubbed
    verified = json_of(nodes.tier("verify"))
    assert (verified["damaged"], verified["problems"]) == ([], []), verified

    nodes.kill("turin")
    all_there(server, SIZES | LATER)
    server.restart()
    all_there(server, SIZES | LATER)
    nodes.serve("turin")
    assert nodes.stop("lisbon") == 0, "a stopped node exits with 0"
    all_there(server, SIZES | LATER)


def test_rejected_client_learns_the_reason(nodes: Nodes) -> None:
    """Ask with certificates of others, ask another site, and begin nodes that cannot be."""
    json_of(nodes.tier("init"))
    doctor = [str(binary()), "geo", "doctor"]
    one = run([*doctor, nodes.place("oslo")], 300, KEYS)
    assert one.returncode == 0, f"{one.stdout}{one.stderr}"

    nodes.authority("other")
    nodes.issue("stranger", "archive", "clientAuth", authority="other")
    for place, words in [
        (nodes.place("oslo", client="stranger"), "rejects our certificate"),
        (nodes.place("oslo", name="lisbon.records"), 'is not "lisbon.records"'),
        (nodes.place("oslo", client="none"), "none.pem"),
    ]:
        done = run([*doctor, place], 300, KEYS)
        assert done.returncode == UNAVAILABLE, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert words in done.stdout, f"{words}: {done.stdout}"
    done = run([*doctor, "node://127.0.0.1:1/oslo.records"], 300, KEYS)
    assert "cert=FILE" in done.stdout + done.stderr, f"{done.stdout}{done.stderr}"

    taken = run(nodes.command("oslo"), 300, KEYS)
    assert taken.returncode == 1 and "cannot listen" in taken.stderr, taken.stderr
    wrong = run([*nodes.command("oslo"), "--table", nodes.place("turin")], 60, KEYS)
    assert wrong.returncode == 2, wrong.stderr
    command = [word if word != f"dir://{nodes.folder}/oslo" else nodes.place("turin")
               for word in nodes.command("oslo")]  # fmt: skip
    wrong = run(command, 60, KEYS)
    assert wrong.returncode == CONFIG and "not a node" in wrong.stderr, wrong.stderr
    (nodes.folder / "oslo.pem").write_text("nothing\n", encoding="utf-8")
    wrong = run(nodes.command("oslo"), 300, KEYS)
    assert wrong.returncode == CONFIG and "no certificate" in wrong.stderr, wrong.stderr
