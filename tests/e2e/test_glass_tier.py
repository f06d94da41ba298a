"""Glass as a tier: the same commands as for any other, with a server and without."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from harness import TINY_GEOMETRY, Server
from platter import Platter

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Start


def lines(server: Server, *args: str, code: int = 0) -> list[dict[str, Any]]:
    """Run `tier` with `--json`, and return what it prints."""
    config = str(server.folder / "config.toml")
    done = server.run("tier", *args, "--data", str(server.data), "--config", config, "--json")
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_glass_is_a_tier_with_and_without_a_server(start: Start) -> None:
    """State, list and verification are the same; a damaged platter is found."""
    server = start({"geometry": TINY_GEOMETRY})
    s3 = server.s3()
    s3.create_bucket(Bucket="deep")
    s3.put_object(Bucket="deep", Key="k", Body=os.urandom(300_000), StorageClass="DEEP_ARCHIVE")
    server.seal()

    def seen() -> tuple[Any, ...]:
        (listed,) = lines(server, "list")
        (status,) = lines(server, "status", "glass")
        assert status["library"]["library"]["drives"], status
        verified = lines(server, "verify", "glass")
        return listed["kind"], listed["reasons"], status["sets"], status["platters"], verified

    served = seen()
    assert served[0] == "glass"
    assert served[2][0]["state"] == "released"
    refused = server.run("tier", "scrub", "glass", "--data", str(server.data))
    assert refused.returncode == 2, refused.stderr
    assert "a tier of kind glass has no operation scrub; it has: verify" in refused.stderr
    assert server.stop() == 0
    assert seen() == served

    platter = Platter(sorted(server.platters.glob("*.glass"))[0])
    platter.spoil_tracks(1000, random.Random(1))
    platter.save()
    lines(server, "verify", "glass", code=8)


@pytest.mark.parametrize("command", ["status", "verify"])
def test_without_an_archive_nothing_is_made(command: str, tmp_path: Path) -> None:
    """A command of glass on a directory without an archive makes none."""
    server = Server(tmp_path)
    done = server.run("tier", command, "glass", "--data", str(server.data))
    assert done.returncode == 4, done.stderr
    assert "there is no archive in" in done.stderr
    assert not server.data.exists()
