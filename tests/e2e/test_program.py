"""The program around the archive: endpoints, stopping, restarting, and the demonstration."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Start
from harness import Server, binary, read, run


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
