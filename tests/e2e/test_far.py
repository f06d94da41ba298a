"""Redundancy platters at another site bring everything back when this one is lost."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

from harness import TINY_GEOMETRY, Server, read, restore, wait_restored, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Start

BUCKET = "vault"
# As many platters away as there is information: the loss of this site is survived.
GEOMETRY = TINY_GEOMETRY | {"set_information_platters": 3, "set_redundancy_platters": 3}


def configured(other: Path, keys: Path) -> dict[str, object]:
    """Keys are kept elsewhere, as they have to be."""
    return {
        "geometry": GEOMETRY,
        "tiers": {"oslo": {"kind": "objects", "url": f"file://{other}"}},
        "far_libraries": ["oslo"],
        "far_redundancy": 3,
        "keys": {"master_key": str(keys / "master.key"), "tables": [str(keys / "table")]},
    }


def platters_away(server: Server) -> tuple[int, int]:
    """Platters that are at the other site, and those that are to go there."""
    (far,) = server.status()["far_libraries"]
    return far["platters"], far["waiting"]


def test_objects_survive_the_loss_of_this_site(start: Start, tmp_path: Path) -> None:
    """Data directory gone; an empty one, the keys and the other site make it again."""
    (keys := tmp_path / "keys").mkdir()
    server = start(configured(tmp_path / "oslo", keys))
    client = server.s3()
    client.create_bucket(Bucket=BUCKET)
    rng = random.Random(7)
    bodies = {f"shelf {at % 3}/{at}": rng.randbytes(40_000) for at in range(12)}
    for key, body in bodies.items():
        client.put_object(Bucket=BUCKET, Key=key, Body=body, StorageClass="DEEP_ARCHIVE")
    server.seal()
    wait_until("platters are away", lambda: platters_away(server) == (3, 0))
    status, page = server.fetch("/metrics")
    assert status == 200
    assert b'fulgurite_tier_far_platters{tier="glass",kind="glass",library="oslo"} 3' in page
    shown = server.run("archive", "status", "--data", str(server.data)).stdout
    assert "far        3 platters at oslo" in shown, shown
    server.kill()

    shutil.rmtree(server.data)
    server.platters.mkdir(parents=True)
    config = str(server.folder / "config.toml")
    said = server.run("recover", "--data", str(server.data), "--config", config)
    assert said.returncode == 0, said.stderr
    server.start()
    client = server.s3()
    listed = client.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert {found["Key"] for found in listed} == set(bodies)
    for key in bodies:
        restore(client, BUCKET, key)
    wait_restored(client, BUCKET)
    for key, body in bodies.items():
        assert read(client, BUCKET, key) == body, key
    wait_until("it is known where they are", lambda: platters_away(server) == (3, 0))
