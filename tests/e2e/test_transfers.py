"""Every client over HTTP and TLS: parts up and down, archive, refuse, restore, read, delete."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Start
from harness import (
    ACCESS_KEY,
    KIB,
    MIB,
    RUN_SECONDS,
    SECRET_KEY,
    Server,
    keys_of,
    restore,
    run,
    sha256_file,
    wait_restored,
    wait_until,
)
from transfers import BUCKET, CLIENTS, PART_BYTES, Crt, Program

# What an object that has to be restored first is refused with; rclone has its own words.
REFUSED = ("InvalidObjectState", "restore first")
SCHEMES = ("http", "https")


def serve(start: Start, scheme: str) -> Server:
    """An archive with the bucket."""
    server = start(tls="auto" if scheme == "https" else None)
    server.s3().create_bucket(Bucket=BUCKET)
    return server


def random_file(folder: Path, name: str, size: int) -> Path:
    """A file that nothing can shorten."""
    path = folder / name
    path.write_bytes(os.urandom(size))
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", CLIENTS)
def test_transfers(start: Start, tmp_path: Path, name: str, scheme: str) -> None:
    """Each client in turn moves an object of three parts."""
    server = serve(start, scheme)
    s3 = server.s3()
    client = CLIENTS[name](server, tmp_path)
    body, back = random_file(tmp_path, "body", 2 * PART_BYTES + 12_345), tmp_path / "back"
    try:
        client.upload(body, "online", "STANDARD")
        assert s3.head_object(Bucket=BUCKET, Key="online")["ETag"].endswith('-3"')
        assert client.download("online", back) == "ok"
        assert sha256_file(back) == sha256_file(body)
        back.unlink()

        client.upload(body, "archived", "DEEP_ARCHIVE")
        server.seal()
        answer = client.download("archived", back)
        assert any(words in answer for words in REFUSED), answer
        client.restore("archived")
        wait_restored(s3, BUCKET)
        assert client.download("archived", back) == "ok"
        assert sha256_file(back) == sha256_file(body)

        client.delete("online")
        client.delete("archived")
        assert list(keys_of(s3, BUCKET)) == []
    finally:
        if isinstance(client, Program):
            client.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_crt_moves_bodies_of_every_size(start: Start, tmp_path: Path, scheme: str) -> None:
    """The CRT asks for a range or a part first: an empty object has neither."""
    server = serve(start, scheme)
    client, back = Crt(server, tmp_path), tmp_path / "back"
    bodies = [random_file(tmp_path, f"{size}", size) for size in (0, 1, 8 * MIB, 64 * MIB)]
    for body in bodies:
        client.upload(body, body.name, "STANDARD")
        assert client.download(body.name, back) == "ok", body.name
        assert sha256_file(back) == sha256_file(body), body.name


def restic_refused(command: list[str], environment: dict[str, str]) -> str:
    """What restic prints of an archived file; it would ask again for a quarter of an hour."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        return next((line for line in process.stdout if "not restored" in line), "")
    finally:
        process.kill()
        process.wait(RUN_SECONDS)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_restic(start: Start, tmp_path: Path, scheme: str) -> None:
    """Restic keeps what it needs to open a repository online, and what it saves in the archive.

    It asks for no restored copies itself before version 0.17: its owner does.
    """
    if run(["sh", "-c", "command -v restic"]).returncode != 0:
        if "FULGURITE_TEST_SERVERS" in os.environ:
            pytest.fail("restic is not installed")
        pytest.skip("restic is not installed")
    server = serve(start, scheme)
    s3 = server.s3()
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "RESTIC_PASSWORD": "of a test",
    }
    command = ["restic", "--no-cache", "--repo", f"s3:{server.endpoint}/{BUCKET}/repository"]
    if server.tls:
        command += ["--cacert", str(server.certificate())]

    def restic(*arguments: str) -> str:
        done = run([*command, *arguments], environment=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (tmp_path / "tree").mkdir()
    files = [random_file(tmp_path / "tree", f"{n}", n * 700 * KIB) for n in range(1, 8)]
    restic("init")
    restic("backup", "tree", "-o", "s3.storage-class=DEEP_ARCHIVE")
    server.seal()
    line = restic_refused([*command, "restore", "latest", "--target", "early"], environment)
    assert "not restored" in line
    archived = [row["Key"] for row in keys_of(s3, BUCKET) if row["StorageClass"] != "STANDARD"]
    assert {restore(s3, BUCKET, key) for key in archived} == {202}
    wait_restored(s3, BUCKET)
    restic("unlock", "--remove-all")
    restic("restore", "latest", "--target", "back")
    for file in files:
        assert sha256_file(tmp_path / "back" / "tree" / file.name) == sha256_file(file)
    restic("forget", "latest", "--prune")
    wait_until(
        "restic has deleted its data",
        lambda: not list(keys_of(s3, BUCKET, Prefix="repository/data/")),
    )
