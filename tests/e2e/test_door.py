"""Who is let in, and how much strangers can take: descriptors, operators' calls, regions."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from harness import (
    ACCESS_KEY,
    MIB,
    READY_SECONDS,
    ROOT,
    RUN_SECONDS,
    SECRET_KEY,
    Server,
    read,
    run,
    tool,
    wait_until,
)

FEW = 64
SIGNED_CHUNK = 16 * MIB
HELD_CONNECTIONS = 24
CHUNK_SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
GROWTH_MAX = 160 * MIB


@dataclass
class FewDescriptors(Server):
    """An archive whose process may open no more than `FEW` files, by both bounds."""

    def command(self) -> list[str]:
        """The same program under a bound."""
        return ["bash", "-c", f'ulimit -n {FEW}; exec "$@"', "bash", *super().command()]


def test_archive_works_with_few_descriptors(tmp_path: Path) -> None:
    """More idle connections than there are descriptors: writes, seals and reads go on."""
    server = FewDescriptors(folder=tmp_path, config={"profile": "demo"}).start()
    try:
        s3 = server.s3()
        s3.create_bucket(Bucket="few")
        idle = [
            socket.create_connection(("127.0.0.1", server.port), READY_SECONDS) for _ in range(FEW)
        ]
        for index in range(8):
            body = os.urandom(200_000)
            s3.put_object(Bucket="few", Key=f"a{index}", Body=body, StorageClass="DEEP_ARCHIVE")
            s3.put_object(Bucket="few", Key=f"b{index}", Body=body)
            assert read(s3, "few", f"b{index}") == body
        assert server.seal()["objects"] == 8
        status = server.status()["server"]
        assert status["connections_max"] == FEW // 4
        assert status["connections_ended_idle"] > 0, status
        assert server.fetch("/readyz")[0] == 200
        for connection in idle:
            connection.close()
    finally:
        server.kill()
    log = server.log.read_text(encoding="utf-8")
    assert "Too many open files" not in log, log


def test_too_few_descriptors_are_refused(tmp_path: Path) -> None:
    """An archive that could not open its files does not start, and says why."""
    command = Server(folder=tmp_path).command()
    limited = ["bash", "-c", 'ulimit -n 40; exec "$@"', "bash", *command]
    done = run(limited, environment={"FULGURITE_ACCESS_KEY": "", "FULGURITE_SECRET_KEY": ""})
    assert done.returncode == 3, done
    assert "ulimit -Hn" in done.stderr, done.stderr


def test_soft_limit_is_raised(tmp_path: Path) -> None:
    """A shell's 256 are not what an archive has to live with."""

    class Soft(Server):
        def command(self) -> list[str]:
            return ["bash", "-c", 'ulimit -Sn 256; exec "$@"', "bash", *super().command()]

    server = Soft(folder=tmp_path, config={"profile": "demo"}).start()
    try:
        assert server.process is not None
        limits = Path(f"/proc/{server.process.pid}/limits").read_text(encoding="utf-8")
        row = re.search(r"Max open files +(\S+) +(\S+)", limits)
        assert row is not None
        assert row[1] == row[2], limits
    finally:
        server.kill()


def resident(server: Server) -> int:
    """Bytes of memory that the server's process has."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def test_signed_chunks_are_not_buffered(server: Server, s3: Any, bucket: str) -> None:
    """Clients that stop before the end of large signed chunks cost their streams, no more."""
    before = resident(server)
    connections = []
    for index in range(HELD_CONNECTIONS):
        url = f"{server.endpoint}/{bucket}/held{index}"
        request = AWSRequest("PUT", url)
        request.headers["x-amz-decoded-content-length"] = str(SIGNED_CHUNK)
        signer = botocore.auth.S3SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "s3", "US")
        request.context["payload_signing_enabled"] = True
        request.headers["X-Amz-Content-SHA256"] = CHUNK_SIGNED
        signer.payload = lambda _: CHUNK_SIGNED  # type: ignore[method-assign]
        signer.add_auth(request)
        head = f"PUT /{bucket}/held{index} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        head += f"content-length: {SIGNED_CHUNK + 500}\r\n\r\n"
        line = f"{SIGNED_CHUNK:x};chunk-signature={'0' * 64}\r\n"
        connection = socket.create_connection(("127.0.0.1", server.port), READY_SECONDS)
        connection.settimeout(60)
        connection.sendall(head.encode() + line.encode())
        # All but the last MiB: a signature that is still to come.
        for _ in range(SIGNED_CHUNK // MIB - 1):
            connection.sendall(bytes(MIB))
        connections.append(connection)
    wanted = HELD_CONNECTIONS * (SIGNED_CHUNK - MIB)
    received = re.compile(rb"fulgurite_requests_in_progress (\d+)")

    def are_held() -> bool:
        found = received.search(server.fetch("/metrics")[1])
        return found is not None and int(found[1]) >= HELD_CONNECTIONS

    wait_until("every request is in progress", are_held)
    grown = resident(server) - before
    assert wanted > 2 * GROWTH_MAX, "the bound would hold nothing"
    assert grown < GROWTH_MAX, f"{grown / MIB:.0f} MiB"
    for connection in connections:
        # A reset, as of a client that is gone.
        linger = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def documented_script() -> str:
    """The shell function of docs/operating.md."""
    text = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    found = re.search(r"^    call\(\) \{.*?^    \}$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, "the documented script is gone"
    return "\n".join(line.removeprefix("    ") for line in found[0].splitlines())


def test_the_documented_admin_call_works(server: Server) -> None:
    """Curl and openssl can do what `fulgurite archive` does, as the page says."""
    environment = {"ACCESS": ACCESS_KEY, "SECRET": SECRET_KEY, "ENDPOINT": server.endpoint}
    script = documented_script()

    def call(target: str, **other: str) -> Any:
        command = ["bash", "-c", f"{script}\ncall GET '{target}'"]
        done = run(command, environment=environment | other)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert call("/-/admin/status")["pipeline"]
    located = call("/-/admin/locate?bucket=none&key=none")
    assert located["error"]["code"] == "NotFound", located
    refused = call("/-/admin/status", SECRET="another-secret")
    assert refused["error"]["code"] == "AccessDenied", refused


@pytest.mark.parametrize("region", ["US", "EU", "eu-west-3"])
def test_any_signing_region_is_accepted(server: Server, region: str) -> None:
    """Boto3 with a region of any name: buckets, bodies, presigned URLs."""
    s3 = server.s3()
    other = server.s3(region_name=region)
    bucket = f"region-{region.lower()}"
    other.create_bucket(Bucket=bucket)
    other.put_object(Bucket=bucket, Key="a", Body=region.encode())
    assert read(s3, bucket, "a") == region.encode()
    assert not other.get_bucket_location(Bucket=bucket).get("LocationConstraint")
    head = other.head_bucket(Bucket=bucket)
    assert head["BucketRegion"] == "us-east-1"


def test_s3cmd_with_its_defaults(server: Server, tmp_path: Path) -> None:
    """S3cmd signs for the region `US` by default."""
    config = tmp_path / "s3cfg"
    config.write_text("[default]\n", encoding="utf-8")
    host = f"127.0.0.1:{server.port}"

    def s3cmd(*arguments: str) -> str:
        command = [tool("s3cmd"), "--config", str(config), "--no-ssl", "--no-progress"]
        command += ["--host", host, "--host-bucket", host]
        command += ["--access_key", ACCESS_KEY, "--secret_key", SECRET_KEY, *arguments]
        done = run(command, cwd=tmp_path)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    body = os.urandom(20 * MIB)
    (tmp_path / "large").write_bytes(body)
    s3cmd("mb", "s3://s3cmd")
    s3cmd("put", "large", "s3://s3cmd/dir/large name.bin")
    assert "s3://s3cmd/dir/large name.bin" in s3cmd("ls", "--recursive", "s3://s3cmd")
    shown = s3cmd("info", "s3://s3cmd")
    for expected in (
        "us-east-1",
        "Payer:     BucketOwner",
        "BucketOwnerEnforced",
        "BlockPublicPolicy",
        "Expiration rule: none",
        "Policy:    none",
        "CORS:      none",
        "fulgurite: FULL_CONTROL",
    ):
        assert expected in shown, shown
    shown = s3cmd("info", "s3://s3cmd/dir/large name.bin")
    assert "AES256" in shown and "fulgurite: FULL_CONTROL" in shown, shown
    s3cmd("get", "s3://s3cmd/dir/large name.bin", "back")
    assert (tmp_path / "back").read_bytes() == body
    s3cmd("cp", "s3://s3cmd/dir/large name.bin", "s3://s3cmd/copy")
    s3cmd("del", "--recursive", "--force", "s3://s3cmd")
    s3cmd("rb", "s3://s3cmd")


def test_browser_gets_a_page_about_the_server(server: Server) -> None:
    """Curl that says it is a browser."""
    command = ["curl", "--silent", "--include", "--header", "Accept: text/html", server.endpoint]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=True)
    assert "Content-Security-Policy".lower() in done.stdout.lower()
    assert "<h1>Fulgurite" in done.stdout
