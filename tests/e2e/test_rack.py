"""A rack of cold disks behind the archive: directories whose disks are simulated.

They take no time here, so nothing waits for a motor. The ledger shows which spins up, and why.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection
from harness import (
    STOP_SECONDS,
    Server,
    in_file,
    is_restored,
    read,
    refused,
    restore,
    to_toml,
    wait_until,
)

BUCKET = "vault"
# What programs end with that find damage.
CORRUPT = 8
# What a command ends with that does not say which tier is meant.
USAGE, NOT_FOUND = 2, 4
SIZES = {"small": 1000, "middle": 300_000, "large": 9_000_000}
Make = Callable[..., Server]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make servers that are started when their test likes; all are killed when it ends."""
    servers: list[Server] = []

    def made(folder: Path, **rack: Any) -> Server:
        usual = {"kind": "rack", "shape": "laptop", "idle": "1s", "moves": {"calm_age": "0s"}}
        config = {"profile": "demo", "tiers": {"rack": usual | rack}}
        servers.append(Server(folder, config))
        return servers[-1]

    yield made
    for server in servers:
        server.kill()


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes(SIZES[name])


def ask(
    server: Server, verb: str, *arguments: str, tier: str = "rack"
) -> subprocess.CompletedProcess[str]:
    """Run `fulgurite tier`, by the configuration of a server that may run or not."""
    path = server.folder / "config.toml"
    server.folder.mkdir(parents=True, exist_ok=True)
    path.write_text(to_toml(in_file(server.config)), encoding="utf-8")
    place = ["--data", str(server.data), "--config", str(path)]
    return server.run("tier", verb, tier, *arguments, *place)


def run_json(server: Server, verb: str, *arguments: str, tier: str = "rack") -> Any:
    """Return the last object that `fulgurite tier --json` prints. It must succeed."""
    done = ask(server, verb, *arguments, "--json", tier=tier)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{server.tail()}"
    return json.loads(done.stdout.splitlines()[-1])


def begin(server: Server) -> Any:
    """Make the rack, start, and have a bucket."""
    assert run_json(server, "init")["disks"] == 48
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    return s3


def put_all(server: Server, s3: Any) -> None:
    """Put all objects, and wait until the rack has them."""
    for name in SIZES:
        s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER")
    wait_moved(server)


def wait_moved(server: Server) -> None:
    """Wait until nothing is staged."""
    wait_until("all is on the rack", lambda: server.status()["objects_staged"] == 0)


def read_all(s3: Any) -> None:
    """Restore and read all objects."""
    for name in SIZES:
        restore(s3, BUCKET, name)
    for name in SIZES:
        wait_until(f"{name} is restored", lambda name=name: is_restored(s3, BUCKET, name))
        assert read(s3, BUCKET, name) == body(name), name


def stacks(server: Server) -> dict[int, int]:
    """Count the stacks on the disk of each place."""
    disks = server.data / "tiers" / "rack" / "disks"
    counts = {int(disk.name): len(list((disk / "stacks").glob("*"))) for disk in disks.iterdir()}
    return {place: count for place, count in counts.items() if count}


def test_glacier_objects_are_moved_to_the_rack_and_restored(make: Make, tmp_path: Path) -> None:
    """Put, move, query status without spin-ups, restore, read; served and not."""
    server = make(tmp_path)
    s3 = begin(server)
    put_all(server, s3)
    assert server.status()["objects_in_tiers"] == len(SIZES)
    assert stacks(server), "bytes are on disks"
    located = server.admin("locate", f"s3://{BUCKET}/large")
    assert (located["residence"], located["tier"]) == ("tier", "rack")

    def asleep() -> bool:
        return all(group["state"] == "asleep" for group in run_json(server, "status")["groups"])

    wait_until("all groups are asleep", asleep)
    before = run_json(server, "status")
    assert before["simulated"] is True
    for _ in range(3):
        listed = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        assert {item["Key"] for item in listed} == set(SIZES)
        for name in SIZES:
            assert s3.head_object(Bucket=BUCKET, Key=name)["StorageClass"] == "GLACIER"
        assert refused(lambda: read(s3, BUCKET, "large")) == (403, "InvalidObjectState")
    after = run_json(server, "status")
    spun_up = [[group["spin_ups"] for group in seen["groups"]] for seen in (before, after)]
    assert spun_up[0] == spun_up[1], "status spins up no disk"

    read_all(s3)
    spin_ups = [json.loads(line) for line in ask(server, "ledger", "--json").stdout.splitlines()]
    causes = {
        spin_up["cause"] if isinstance(spin_up["cause"], str) else next(iter(spin_up["cause"]))
        for spin_up in spin_ups
    }
    assert {"init", "write", "request"} <= causes, causes
    page = server.fetch("/metrics")[1].decode()
    assert 'fulgurite_tier_spinups_total{tier="rack",kind="rack",group="0",cause="request"}' in page

    shown = ask(server, "status")
    assert shown.returncode == 0, shown.stderr
    assert "simulated disks: directories" in shown.stdout
    assert "asleep" in shown.stdout
    server.stop()
    not_served = run_json(server, "status")
    assert len(not_served["groups"]) == 6
    assert run_json(server, "scrub")["lost"] == 0
    s3 = server.start().s3()
    assert read(s3, BUCKET, "large") == body("large")


def test_read_spins_up_only_the_disks_it_needs(make: Make, tmp_path: Path) -> None:
    """Five of eight disks spin up for a restore; all when one of the five is damaged."""
    needed = {"spin_ups": {"needed": {"spare": 0}}}
    server = make(tmp_path, policy=needed, rated_spinups=2)
    s3 = begin(server)
    put_all(server, s3)

    def asleep() -> bool:
        return all(group["state"] == "asleep" for group in run_json(server, "status")["groups"])

    def spun_up() -> list[list[int]]:
        lines = ask(server, "ledger", "--json").stdout.splitlines()
        spin_ups = [json.loads(line) for line in lines]
        return [spin_up["places"] for spin_up in spin_ups if "request" in spin_up["cause"]]

    def get(name: str) -> None:
        restore(s3, BUCKET, name)
        wait_until("it is restored", lambda: is_restored(s3, BUCKET, name))
        assert read(s3, BUCKET, name) == body(name)

    wait_until("all groups are asleep", asleep)
    get("large")
    assert [len(places) for places in spun_up()] == [5]
    wait_until("all groups are asleep again", asleep)
    for path in (server.data / "tiers" / "rack" / "disks" / str(spun_up()[0][0]) / "stacks").glob(
        "*"
    ):
        damaged = bytearray(path.read_bytes())
        damaged[4100] ^= 1
        path.write_bytes(damaged)
    get("middle")
    get("small")
    report = run_json(server, "scrub")
    assert report["problems"] == [], report
    page = server.fetch("/metrics")[1].decode()
    assert 'fulgurite_tier_disks_worn{tier="rack",kind="rack",group="0"} 8' in page, page
    assert "is rated for" in ask(server, "status").stdout


def test_a_kill_loses_nothing(make: Make, tmp_path: Path) -> None:
    """Die at each step of a write to the rack, start again, and find all that was acknowledged."""
    server = make(tmp_path)
    begin(server)
    for point in ["rack-begun", "rack-half", "rack-synced", "rack-read-back", "rack-committed"]:
        server.kill()
        server.environment["FULGURITE_FAIL_POINT"] = f"{point}:0"
        s3 = server.start().s3()
        for name in SIZES:
            try:
                s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER")
            except (ClientError, HTTPClientError, NoConnection):
                break
        wait_until("it is dead", lambda: not server.is_running())
        assert server.process is not None
        assert server.process.returncode == -9, server.tail()
        server.environment.pop("FULGURITE_FAIL_POINT")
        server.start()
        wait_moved(server)
    s3 = server.s3()
    put_all(server, s3)
    read_all(s3)
    report = run_json(server, "scrub")
    assert report["problems"] == [], report


def test_lost_disk_is_reported_and_its_stacks_are_rebuilt(make: Make, tmp_path: Path) -> None:
    """A directory goes: status names it, objects are read, a rebuild and a new disk mend it."""
    server = make(tmp_path)
    s3 = begin(server)
    put_all(server, s3)
    server.stop()
    place = min(stacks(server))
    shutil.rmtree(server.data / "tiers" / "rack" / "disks" / str(place))
    s3 = server.start().s3()
    read_all(s3)
    status = run_json(server, "status")
    disks = [disk for group in status["groups"] for disk in group["disks"]]
    assert [disk["place"] for disk in disks if "failure" in disk] == [place], status
    shown = ask(server, "status").stdout
    assert "has lost redundancy" in shown, shown
    assert f"disk {place}: " in shown, shown

    report = run_json(server, "rebuild", str(place))
    assert report["problems"] == [], report
    # Somebody puts a new, empty disk there.
    (server.data / "tiers" / "rack" / "disks" / str(place)).mkdir(exist_ok=True)
    report = run_json(server, "replace", str(place))
    assert report["problems"] == [], report
    disks = [disk for group in run_json(server, "status")["groups"] for disk in group["disks"]]
    assert not [disk for disk in disks if "failure" in disk], disks
    assert run_json(server, "scrub")["lost"] == 0
    assert ask(server, "replace", "99").returncode == 2


def blobs(server: Server) -> dict[str, list[Path]]:
    """Return the stacks of each blob."""
    found: dict[str, list[Path]] = {}
    for path in sorted((server.data / "tiers" / "rack" / "disks").glob("*/stacks/*.stack")):
        found.setdefault(path.name.split(".")[0], []).append(path)
    return found


def verified(server: Server, code: int = 0) -> Any:
    """Return what a verification found, which ends with this code."""
    done = ask(server, "scrub", "--json")
    assert done.returncode == code, f"{done.stdout}{done.stderr}\n{server.tail()}"
    return json.loads(done.stdout.splitlines()[-1])


def spoil(path: Path, how: str, other: Path) -> None:
    """Damage a stack."""
    whole = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "bit":
        at = len(whole) * 2 // 3
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    else:
        path.write_bytes(other.read_bytes())


def test_damage_up_to_the_redundancy_loses_nothing(make: Make, tmp_path: Path) -> None:
    """Two of seven stacks of every blob spoiled in every way; then three of one."""
    rng = random.Random(1)
    server = make(tmp_path)
    s3 = begin(server)
    put_all(server, s3)
    server.stop()
    kinds = ["gone", "empty", "cut", "bit", "swapped"]
    every = blobs(server)
    assert len(every) == len(SIZES)
    for blob, paths in every.items():
        other = next(paths for name, paths in every.items() if name != blob)[0]
        for path in rng.sample(paths, 2):
            spoil(path, rng.choice(kinds), other)
    server.start()
    read_all(server.s3())
    assert verified(server)["problems"] == []
    assert verified(server)["lost"] == 0, "it was mended"

    server.stop()
    blob, paths = next(iter(blobs(server).items()))
    kept = {path: path.read_bytes() for path in rng.sample(paths, 3)}
    for path in kept:
        path.unlink()
    [problem] = verified(server, CORRUPT)["problems"]
    assert blob in problem, problem
    disks = [f"disk {path.parent.parent.name}" for path in kept]
    assert all(disk in problem for disk in disks), problem
    assert "group" in problem, problem
    # One of them is found again.
    path, whole = kept.popitem()
    path.write_bytes(whole)
    assert verified(server)["problems"] == []
    assert verified(server)["lost"] == 0


def test_lost_index_is_recovered_from_the_disks(make: Make, tmp_path: Path) -> None:
    """Nobody makes another rack over the disks; `tier recover` rebuilds the index."""
    server = make(tmp_path)
    s3 = begin(server)
    put_all(server, s3)
    server.stop()
    shutil.rmtree(server.data / "tiers" / "rack" / "index")
    server.launch()
    assert server.process is not None
    assert server.process.wait(timeout=STOP_SECONDS) == 3, server.tail()
    assert "tier recover rack" in server.tail()
    again = ask(server, "init")
    assert again.returncode == 3, again.stdout
    assert "its index is lost" in again.stderr
    found = run_json(server, "recover")
    assert found["blobs"] == len(SIZES), found
    assert found["problems"] == [], found
    s3 = server.start().s3()
    read_all(s3)
    # The rack is known for the archive's own by what its bodies say, so more comes there.
    s3.put_object(Bucket=BUCKET, Key="more", Body=b"more", StorageClass="GLACIER")
    wait_moved(server)
    verified = run_json(server, "scrub")
    assert (verified["blobs"], verified["problems"]) == (len(SIZES) + 1, []), verified


@pytest.mark.parametrize(
    ("rack", "words"),
    [
        ({"shape": "barn"}, ["tiers.rack.shape", "barn", "laptop"]),
        ({"disks": "/mnt/one"}, ["rack.disks", "{place}", "/mnt/one"]),
        ({"idle": "soon"}, ["config.toml", "idle", "soon", "never"]),
        ({"time_scale": 2.0}, ["config.toml", "time_scale", "2 is not a ratio"]),
        ({"places": {"48": "/mnt/x"}}, ["rack.places", "48", "0 to 47"]),
        ({"backend": "linux"}, ["rack.disks", "/mnt/rack/{place}"]),
        (
            {"backend": "linux", "disks": "/mnt/{place}"},
            ["rack.device", "place 0", "simulated"],
        ),
        (
            {"backend": "linux", "disks": "/m/{place}", "device": "/dev/none-{place}"},
            ["rack.device", "there is no device", "/dev/none-0", "simulated"],
        ),
        ({"device": "/dev/x{place}"}, ["rack.device", "linux"]),
        ({"policy": {"idle": "1m"}}, ["tiers.rack.policy.idle", "as idle"]),
        ({"policy": {"haste": 1}}, ["config.toml", "haste"]),
        (
            {"policy": {"spin_ups": {"needed": {"spare": 0}}}, "scrub": "never"},
            ["rack.scrub", "needed", "scrubs"],
        ),
        ({"rated_spinups": 0}, ["rack.rated_spinups", "300000"]),
        ({}, ["there is no rack in", "tier init rack"]),
    ],
)
def test_invalid_rack_configuration_is_refused(
    tmp_path: Path, rack: dict[str, Any], words: list[str]
) -> None:
    """Each with the name of what is wrong and what to do, before anything is made."""
    server = Server(tmp_path, {"profile": "demo", "tiers": {"rack": {"kind": "rack"} | rack}})
    folder = server.data / "tiers" / "rack"
    folder.mkdir(parents=True)
    if rack.get("device"):
        # A linux rack is refused for its devices, which are looked for when it is opened.
        (folder / "index").mkdir()
    check_refused(server, words)


RACK = {"kind": "rack"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"classes": {"GLACIER": "cold"}}, ["GLACIER", "cold", "[tiers]"]),
        ({"rack": {}}, ["[rack]", "[tiers.NAME]", 'kind = "rack"']),
        ({"tiers": {"cold": {"kind": "tape"}}}, ["tape", "glass, rack, tome, geo, objects"]),
        ({"tiers": {"glass": RACK}}, ["glass"]),
        ({"tiers": {"cold": RACK, "colder": RACK}}, ["GLACIER", '"cold"', '"colder"']),
        (
            {
                "classes": {"GLACIER": "b"},
                "tiers": {name: RACK | {"directory": "/tmp/one"} for name in ("a", "b")},
            },
            ["tiers.b.directory", "/tmp/one", '"a"'],
        ),
    ],
)
def test_invalid_tiers_are_refused(
    tmp_path: Path, config: dict[str, Any], words: list[str]
) -> None:
    """Each by its name, before anything is made."""
    server = Server(tmp_path, {"profile": "demo"} | config)
    check_refused(server, words)
    assert not (server.data / "tiers").exists()


def check_refused(server: Server, words: list[str]) -> None:
    """Start it, and hold what it says against words."""
    server.launch()
    assert server.process is not None
    assert server.process.wait(timeout=STOP_SECONDS) == 3, server.tail()
    for word in words:
        assert word in server.tail(), server.tail()


def test_two_racks_are_used_and_operated_by_name(make: Make, tmp_path: Path) -> None:
    """Each has its classes; commands say which is meant."""
    server = make(tmp_path)
    rack = server.config["tiers"].pop("rack") | {"make": True}
    server.config["tiers"] = {"cold": rack, "colder": rack}
    server.config["classes"] = {"GLACIER": "cold", "DEEP_ARCHIVE": "colder"}
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    for name, kind in [("small", "GLACIER"), ("middle", "DEEP_ARCHIVE")]:
        s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass=kind)
    wait_moved(server)
    for name, tier in [("small", "cold"), ("middle", "colder")]:
        assert server.admin("locate", f"s3://{BUCKET}/{name}")["tier"] == tier
    assert server.status()["tiers"] == {"cold": "rack", "colder": "rack", "glass": "glass"}
    assert ask(server, "scrub").returncode == NOT_FOUND
    assert ask(server, "retire", "1", tier="cold").returncode == USAGE
    for tier in ("cold", "colder"):
        verified = run_json(server, "scrub", tier=tier)
        assert (verified["blobs"], verified["problems"]) == (1, []), verified
    server.stop()
    assert ask(server, "scrub").returncode == NOT_FOUND
    assert ask(server, "retire", "1", tier="cold").returncode == USAGE
    assert run_json(server, "scrub", tier="colder")["blobs"] == 1
    # Without one of them its objects could not be read.
    del server.config["tiers"]["colder"], server.config["classes"]["DEEP_ARCHIVE"]
    check_refused(server, ['tier "colder"'])


def test_rack_flag_creates_the_rack_at_the_first_start(tmp_path: Path) -> None:
    """As in `cargo xtask serve --profile demo`; without it the server says what is missing."""

    class Flagged(Server):
        rack = ("--tier", "rack=rack:laptop")

        def command(self) -> list[str]:
            return [*super().command(), *self.rack]

    server = Flagged(tmp_path, {"profile": "demo"})
    try:
        s3 = server.start().s3()
        assert "48 simulated disks" in server.tail(), server.tail()
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="small", Body=body("small"), StorageClass="GLACIER")
        wait_moved(server)
        server.stop()
        server.rack = ()
        check_refused(server, ['objects are in tier "rack"'])
        server.rack = ("--tier", "rack=rack:laptop")
        s3 = server.start().s3()
        restore(s3, BUCKET, "small")
        wait_until("it is restored", lambda: is_restored(s3, BUCKET, "small"))
        assert read(s3, BUCKET, "small") == body("small")
    finally:
        server.kill()
