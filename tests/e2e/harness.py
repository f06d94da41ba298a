"""What every end-to-end test needs: a running archive, clients for it, and deadlines.

The archive is the real program on a free loopback port with its own data directory. Nothing here
sleeps for a fixed time to wait for something: `wait_until` asks again until a deadline.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

# Where the CRT is installed, botocore signs with it. It is a client of its own in these tests, and
# boto3 and the AWS CLI are tested as most have them.
os.environ.setdefault("BOTO_DISABLE_CRT", "true")

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
ACCESS_KEY = "E2EACCESSKEY00000001"
SECRET_KEY = "e2e-secret-of-forty-characters-abcdefghij"
REGION = "us-east-1"
KEYS = {"FULGURITE_ACCESS_KEY": ACCESS_KEY, "FULGURITE_SECRET_KEY": SECRET_KEY}
READY_SECONDS = 60.0
STOP_SECONDS = 60.0
RUN_SECONDS = 300.0
# What did not come after so long does not come at all, however busy the machine is.
WAIT_SECONDS = 300.0
POLL_SECONDS = 0.02
POLL_SHARE = 0.05
POLL_SECONDS_MAX = 0.5
KIB = 1024
MIB = 1024 * KIB


def binary() -> Path:
    """Find the program under test."""
    return Path(os.environ.get("FULGURITE_BINARY", ROOT / "target" / "debug" / "fulgurite"))


@functools.cache
def seed() -> int:
    """Pick the seed of every random test of this run; the header of the run shows it."""
    text = os.environ.get("FULGURITE_TEST_SEED")
    return int(text) if text else random.SystemRandom().randrange(1 << 32)


def wait_until(what: str, probe: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Ask `probe` until it answers something true; fail with `what` after `seconds`.

    The longer it takes, the more seldom it is asked: many probes start a program.
    """
    began = time.monotonic()
    while True:
        found = probe()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(min(max(POLL_SECONDS, waited * POLL_SHARE), POLL_SECONDS_MAX))


def sha256(data: bytes) -> str:
    """Digest bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Digest a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Ports of this process, below those that the kernel gives to clients and to servers on port 0 (from
# 32768 on Linux): a port that a test has chosen is taken by nobody else until its server listens.
PORTS_FIRST = 10_000
PORTS_PER_WORKER = 1_000
WORKERS_MAX = 20


@functools.cache
def ports() -> Iterator[int]:
    """Ports of this worker of pytest-xdist, over and over, from a random one on."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    assert worker < WORKERS_MAX, f"there are ports for {WORKERS_MAX} workers"
    first = PORTS_FIRST + worker * PORTS_PER_WORKER
    skipped = random.SystemRandom().randrange(PORTS_PER_WORKER)
    return itertools.islice(itertools.cycle(range(first, first + PORTS_PER_WORKER)), skipped, None)


def free_port() -> int:
    """Find a free loopback port that no other worker uses."""
    for port in itertools.islice(ports(), PORTS_PER_WORKER):
        with socket.socket() as probe:
            # As servers do: what an ended connection left behind does not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port of this worker is free")


# A platter-set that a few hundred small objects fill: 4 information platters of 512 KiB and 3 of
# redundancy, each track of 8+2 sectors of 4 KiB, each group of 8+2 tracks.
# Settings of the glass tier, which tests write beside the others.
GLASS = ("profile", "geometry", "medium", "library", "moves", "far_libraries", "far_redundancy")

TINY_GEOMETRY: dict[str, Any] = {
    "profile": "tiny",
    "sector_payload_bytes": 4096,
    "track_information_sectors": 8,
    "track_redundancy_sectors": 2,
    "group_information_tracks": 8,
    "group_redundancy_tracks": 2,
    "group_span_sectors": 8,
    "groups": 2,
    "set_information_platters": 4,
    "set_redundancy_platters": 3,
    "set_span_sectors": 8,
}
# A rack to which bodies are moved as they come.
RACK: dict[str, Any] = {
    "kind": "rack",
    "shape": "laptop",
    "make": True,
    "idle": "1s",
    "moves": {"calm_age": "0s", "age": "1s"},
}
# A small set of tomes; how many, and how large, is up to the test.
TOMES: dict[str, Any] = {
    "kind": "tome",
    "groups": "2+1",
    "block": "8KiB",
    "segment": "14+2",
    "make": True,
    "idle": "100ms",
}


def in_file(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a configuration as it is in a file: with the settings of glass in its table."""
    glass = {"kind": "glass"} | {name: config[name] for name in GLASS if name in config}
    rest = {name: value for name, value in config.items() if name not in GLASS}
    return rest | {"tiers": {"glass": glass} | config.get("tiers", {})}


def to_toml(table: dict[str, Any]) -> str:
    """Write a table of plain values and of tables."""

    def value(item: object) -> str:
        # JSON's strings, numbers and booleans are TOML's as well.
        return json.dumps(item)

    def lines(path: str, inner: dict[str, Any]) -> list[str]:
        plain = [f"{k} = {value(v)}" for k, v in inner.items() if not isinstance(v, dict)]
        tables = [(f"{path}{k}", v) for k, v in inner.items() if isinstance(v, dict)]
        return plain + [line for k, v in tables for line in [f"\n[{k}]", *lines(f"{k}.", v)]]

    return "\n".join(lines("", table)) + "\n"


@dataclass
class Server:
    """One archive: its data directory, and the process that serves it while it runs."""

    folder: Path
    config: dict[str, Any] = field(default_factory=dict)
    tls: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def platters(self) -> Path:
        """The folder of platter files."""
        return self.data / "platters"

    @property
    def log(self) -> Path:
        """Everything the process printed, over all its lives."""
        return self.folder / "serve.log"

    @property
    def endpoint(self) -> str:
        """The URL clients use."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """The command line that serves the data directory."""
        command = [str(binary()), "serve", "--data", str(self.data)]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        if self.config:
            path = self.folder / "config.toml"
            path.write_text(to_toml(in_file(self.config)), encoding="utf-8")
            command += ["--config", str(path)]
        if self.tls:
            command += ["--tls", self.tls]
        return command

    def process_environment(self) -> dict[str, str]:
        """Ours, with the credentials, without the variables of these tests."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("FULGURITE_")}
        return clean | KEYS | self.environment

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.process_environment(),
            )

    def start(self) -> Server:
        """Start the process and wait until it is ready."""
        self.launch()
        wait_until(f"{self.endpoint}/readyz answers", self._is_ready, READY_SECONDS)
        return self

    def _is_ready(self) -> bool:
        assert self.process is not None
        code = self.process.poll()
        assert code is None, f"serve ended with {code}:\n{self.tail()}"
        # The file by which admin finds the server comes just after the server itself.
        return self.is_answering("/readyz") and self._is_found()

    def _is_found(self) -> bool:
        assert self.process is not None
        try:
            text = (self.data / "server.json").read_text(encoding="utf-8")
            return json.loads(text)["pid"] == self.process.pid
        except (FileNotFoundError, json.JSONDecodeError):
            return False

    def is_answering(self, path: str) -> bool:
        """Whether a GET of `path` answers 200 now."""
        try:
            return self.fetch(path)[0] == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def fetch(self, path: str) -> tuple[int, bytes]:
        """GET a path without credentials: status and body."""
        context = ssl._create_unverified_context() if self.tls else None
        try:
            with urllib.request.urlopen(
                self.endpoint + path, timeout=READY_SECONDS, context=context
            ) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """Ask the process to stop, and wait for it: its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_SECONDS)

    def kill(self) -> None:
        """End the process as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=STOP_SECONDS)

    def restart(self) -> Server:
        """Stop in order and start again."""
        self.stop()
        return self.start()

    def tail(self, lines: int = 40) -> str:
        """The end of what the process printed."""
        if not self.log.exists():
            return ""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def s3(self, secret: str = SECRET_KEY, **options: Any) -> Any:
        """Make a boto3 client that never retries, so that a test sees the first answer."""
        settings = Config(
            retries={"total_max_attempts": 1},
            # Presigned URLs would be signed with version 2 unless this is said.
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=READY_SECONDS,
            read_timeout=120,
            max_pool_connections=32,
        )
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=secret,
            region_name=options.pop("region_name", REGION),
            verify=self.certificate(),
            config=settings.merge(options.pop("config", Config())),
            **options,
        )

    def certificate(self) -> str | None:
        """The certificate that clients of this server trust, if it speaks TLS."""
        if not self.tls:
            return None
        text = (self.data / "server.json").read_text(encoding="utf-8")
        return str(json.loads(text)["certificate"])

    def run(
        self, *arguments: str, timeout: float = RUN_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return run([str(binary()), *arguments], timeout, KEYS)

    def admin(self, verb: str, *arguments: str) -> Any:
        """Run `fulgurite archive VERB --json`: the last object it prints. It must succeed."""
        done = self.run("archive", verb, "--data", str(self.data), "--json", *arguments)
        assert done.returncode == 0, f"{done.stderr}\n{self.tail()}"
        return json.loads(done.stdout.splitlines()[-1])

    def seal(self) -> Any:
        """Seal everything staged: the report."""
        return self.admin("seal")

    def status(self) -> Any:
        """Read the state of the archive."""
        return self.admin("status")


def run(
    command: list[str],
    timeout: float = RUN_SECONDS,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it printed."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def tool(name: str) -> str:
    """Find a client installed beside this interpreter."""
    path = Path(sys.executable).parent / name
    assert path.exists(), f"{path} is missing; install tests/e2e/requirements.txt"
    return str(path)


def aws_environment(folder: Path) -> dict[str, str]:
    """Settings that keep the AWS CLI to its arguments."""
    config = folder / "aws-config"
    config.write_text("[default]\ns3 =\n  addressing_style = path\n", encoding="utf-8")
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": str(config),
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_PAGER": "",
    }


def rclone_environment(server: Server) -> dict[str, str]:
    """Settings that make `archive:` a remote of rclone that stores into DEEP_ARCHIVE."""
    return {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CONFIG_ARCHIVE_TYPE": "s3",
        "RCLONE_CONFIG_ARCHIVE_PROVIDER": "Other",
        "RCLONE_CONFIG_ARCHIVE_ACCESS_KEY_ID": ACCESS_KEY,
        "RCLONE_CONFIG_ARCHIVE_SECRET_ACCESS_KEY": SECRET_KEY,
        "RCLONE_CONFIG_ARCHIVE_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_ARCHIVE_REGION": REGION,
        "RCLONE_CONFIG_ARCHIVE_STORAGE_CLASS": "DEEP_ARCHIVE",
        "RCLONE_RETRIES": "1",
        "RCLONE_LOW_LEVEL_RETRIES": "1",
    }


def code_of(error: ClientError) -> tuple[int, str]:
    """Return HTTP status and S3 code of a refused request."""
    return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]


def refused(call: Callable[[], object]) -> tuple[int, str]:
    """Return how the archive refuses a call; a call that succeeds fails the test."""
    try:
        call()
    except ClientError as error:
        return code_of(error)
    raise AssertionError("the request was accepted")


def restore(s3: Any, bucket: str, key: str, days: int = 1, tier: str = "Standard") -> int:
    """Ask for a restored copy: the HTTP status."""
    answer = s3.restore_object(
        Bucket=bucket,
        Key=key,
        RestoreRequest={"Days": days, "GlacierJobParameters": {"Tier": tier}},
    )
    return int(answer["ResponseMetadata"]["HTTPStatusCode"])


def is_restored(s3: Any, bucket: str, key: str) -> bool:
    """Whether a restored copy can be read now."""
    return 'ongoing-request="false"' in s3.head_object(Bucket=bucket, Key=key).get("Restore", "")


def parts_count(s3: Any, bucket: str, item: dict[str, Any]) -> int | None:
    """Ask how many parts an object of a listing was uploaded in: S3 reports it with a part."""
    if "-" not in item["ETag"]:
        return None
    head = s3.head_object(Bucket=bucket, Key=item["Key"], PartNumber=1)
    return int(head["PartsCount"])


def keys_of(s3: Any, bucket: str, **options: Any) -> Iterator[dict[str, Any]]:
    """List a bucket over all its pages."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, **options):
        yield from page.get("Contents", [])


def wait_restored(
    s3: Any,
    bucket: str,
    seconds: float = WAIT_SECONDS,
    prefix: str = "",
) -> None:
    """Wait until every archived object of a bucket has a restored copy, by listing it."""

    def is_done() -> bool:
        listed = keys_of(s3, bucket, Prefix=prefix, OptionalObjectAttributes=["RestoreStatus"])
        archived = [item for item in listed if item["StorageClass"] != "STANDARD"]
        states = [item.get("RestoreStatus", {}) for item in archived]
        return all("RestoreExpiryDate" in state for state in states)

    wait_until(f"every object of {bucket}/{prefix} is restored", is_done, seconds)


def read(s3: Any, bucket: str, key: str) -> bytes:
    """GET a whole object."""
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()
