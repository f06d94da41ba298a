"""The program around the archive: endpoints, stopping, restarting, and the demonstration."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

from conftest import Start
from harness import KEYS, RUN_SECONDS, TINY_GEOMETRY, Server, binary, read, run


def test_health_and_metrics(server: Server) -> None:
    """The endpoints for machines answer without credentials."""
    for path in ("/livez", "/readyz"):
        assert server.fetch(path)[0] == 200
    assert json.loads(server.fetch("/version")[1])
    status, text = server.fetch("/metrics")
    assert status == 200
    assert b"# TYPE " in text


def test_endpoint_and_client_lines_are_printed(server: Server) -> None:
    """Starting prints the endpoint and lines to copy for three clients."""
    text = server.log.read_text(encoding="utf-8")
    assert server.endpoint in text
    for word in ("aws", "boto3", "rclone"):
        assert word in text, text


def test_stops_in_order(start: Start) -> None:
    """SIGTERM ends the process with code 0 and loses nothing."""
    server = start()
    s3 = server.s3()
    s3.create_bucket(Bucket="stop")
    s3.put_object(Bucket="stop", Key="k", Body=b"kept")
    assert server.stop() == 0
    server.start()
    assert read(s3, "stop", "k") == b"kept"


def test_demo(tmp_path: Path) -> None:
    """`fulgurite demo FOLDER` archives, damages, restores and compares a folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for at in range(40):
        (folder / f"file {at}.txt").write_text("glass " * at * 50, encoding="utf-8")
    done = run([str(binary()), "demo", str(folder)])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "file" in done.stdout


def on_terminal(command: list[str]) -> str:
    """Run a program whose standard error is a terminal: what it shows there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, **KEYS, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            # The end of a terminal that nobody writes to any more.
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=RUN_SECONDS) == 0, shown
    return shown.decode(errors="replace")


def test_seal_and_verify_show_bytes_and_the_time_left(start: Start) -> None:
    """On a terminal both show bytes done of bytes in all; elsewhere they are silent."""
    # A platter is under way for about a second, so that several lines of progress come.
    slow = {"geometry": TINY_GEOMETRY, "library": {"time_scale": 0.02}}
    server = start(slow)
    s3 = server.s3()
    s3.create_bucket(Bucket="slow")
    body = os.urandom(1_500_000)
    s3.put_object(Bucket="slow", Key="k", Body=body, StorageClass="DEEP_ARCHIVE")
    for verb in ("seal", "verify"):
        shown = on_terminal([str(binary()), "archive", verb, "--data", str(server.data)])
        found = re.findall(r"([0-9.]+ (?:B|KiB|MiB)) of ([0-9.]+ MiB)", shown)
        assert len({done for done, _ in found}) > 2, f"{verb}: {shown}"
        assert len({total for _, total in found}) == 1, f"{verb}: {shown}"
        assert re.search(r"[0-9] s left", shown), f"{verb}: {shown}"
    silent = server.run("archive", "verify", "--data", str(server.data))
    assert (silent.returncode, silent.stderr) == (0, "")
