"""An archive over several sites: directories, and a bucket of a real S3 server, on this machine.

Sites are lost by removing all that they have.
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
from botocore.exceptions import ClientError
from harness import (
    ACCESS_KEY,
    KEYS,
    MIB,
    REGION,
    SECRET_KEY,
    Server,
    binary,
    read,
    restore,
    run,
    wait_until,
)
from lying_store import lying_store

CREATED = {"type": "geo_init", "name": "records", "epoch": 1, "sites": 3}
BUCKET = "library"
SITES = ("lisbon", "oslo", "turin")
SIZES = {"small": 10, "middle": 100_000, "large": 9 * MIB}
CLASSES = {"small": "STANDARD", "middle": "GLACIER_IR", "large": "STANDARD"}
LATER = {"later": 70_000}
# Short, so that a site is replaced soon.
TIMES = 'round = "1s"\npatience = "4s"\nlease = "5s"\n'
USAGE, CONFIG, NOT_FOUND, UNAVAILABLE, CORRUPT, PARTIAL = 2, 3, 4, 7, 8, 10
STORE_KEYS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
MOVED_WITHIN = 300.0
Make = Callable[..., Server]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make servers that are started when their test likes; all are killed when it ends."""
    servers: list[Server] = []

    def made(*arguments: Any, **options: Any) -> Server:
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield made
    for server in servers:
        server.kill()


def write_map(
    folder: Path, name: str = "records", names: tuple[str, ...] = SITES, **places: str
) -> Path:
    """Write a map of sites, in directories of `folder` unless other places are given."""
    text = f'name = "{name}"\ndata = 2\nparity = 1\n{TIMES}'
    for site in names:
        place = places.get(site, f"dir://{folder}/{site}")
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def tier(sites: Path, verb: str, *arguments: str, data: Path | None = None) -> Any:
    """Run `fulgurite tier VERB geo --json`: by the server of the data directory, if one runs."""
    data = data or sites.parent / "archive" / "data"
    command = [str(binary()), "tier", verb, "geo", *arguments]
    command += ["--tier", f"geo=geo:{sites}", "--data", str(data), "--json"]
    return run(command, 300, KEYS | STORE_KEYS)


def doctor(sites: Path) -> Any:
    """Run `fulgurite geo doctor --map SITES --json`."""
    command = [str(binary()), "geo", "doctor", "--map", str(sites), "--json"]
    return run(command, 300, KEYS | STORE_KEYS)


def is_well(status: Any) -> bool:
    """Return whether all sites answered lately, and none is being rebuilt."""
    return all(site["up"] and not site["rebuilding"] for site in status["sites"])


def json_of(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    """Return the last object that a command printed; it ends with `code`."""
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def refused(done: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    """Check that a command was refused, and how it says so."""
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert words in done.stderr, done.stderr


def config(sites: Path, **more: str) -> dict[str, Any]:
    """Return the configuration of an archive over sites."""
    classes = {"STANDARD": "geo", "GLACIER_IR": "geo"}
    geo = {"kind": "geo", "map": str(sites), "near": "lisbon"}
    geo |= {"heal_every": "1s", "collect_every": "2s"} | more
    return {"profile": "demo", "tiers": {"geo": geo}, "classes": classes}


def body(name: str) -> bytes:
    """Return bytes that only this object has."""
    return random.Random(name).randbytes((SIZES | LATER)[name])


def put(server: Server, names: dict[str, int]) -> None:
    """Put objects, and wait until the sites have them."""
    s3 = server.s3()
    for name in names:
        s3.put_object(
            Bucket=BUCKET, Key=name, Body=body(name), StorageClass=CLASSES.get(name, "STANDARD")
        )
    wait_moved(server)


def wait_moved(server: Server) -> None:
    """Wait until nothing is staged."""
    wait_until("all is at the sites", lambda: server.status()["objects_staged"] == 0, MOVED_WITHIN)


def all_there(server: Server, names: dict[str, int]) -> None:
    """Read every object."""
    for name in names:
        assert read(server.s3(), BUCKET, name) == body(name), name


def metric(server: Server, name: str) -> float:
    """Read a metric."""
    page = server.fetch("/metrics")[1].decode()
    found = [line.split(" ")[1] for line in page.splitlines() if line.startswith(f"{name} ")]
    assert len(found) == 1, f"{name}: {page}"
    return float(found[0])


def test_lost_site_is_replaced_then_another_may_be_lost(make: Make, tmp_path: Path) -> None:
    """Begin, put, lose a site, read, put more, replace it, lose another, read all."""
    sites = write_map(tmp_path)
    reports = doctor(sites).stdout.splitlines()
    assert len(reports) == 2 * len(SITES)
    for report in map(json.loads, reports):
        assert {check["outcome"] for check in report["checks"]} <= {"passed", "unsupported"}, report
    here = sorted(path.name for path in tmp_path.iterdir())
    assert here == ["records.toml"], "the doctor makes no site, and leaves nothing"
    refused(tier(sites, "status"), UNAVAILABLE, "too few sites answer")
    assert json_of(tier(sites, "init")) == CREATED
    refused(tier(sites, "init"), CONFIG, "has rows")

    server = make(tmp_path / "archive", config(sites)).start()
    server.s3().create_bucket(Bucket=BUCKET)
    put(server, SIZES)
    all_there(server, SIZES)
    assert server.status()["tiers"] == {"geo": "geo", "glass": "glass"}
    assert metric(server, 'fulgurite_tier_healthy{tier="geo",kind="geo"}') == 1
    assert server.fetch("/readyz")[1] == b"ready\n"
    assert is_well(json_of(tier(sites, "status")))
    verified = json_of(tier(sites, "verify"))
    assert verified["objects"] >= 2 * len(SIZES) and verified["bytes"] > sum(SIZES.values())
    assert (verified["damaged"], verified["problems"]) == ([], [])
    assert verified["undecided"]["versions"] == 0, verified
    scrubbed = json_of(tier(sites, "scrub"))
    counts = (scrubbed["whole"], scrubbed["rebuilt"], scrubbed["missing"])
    assert counts == (scrubbed["objects"], 0, 0)
    collected = json_of(tier(sites, "collect"))
    assert (collected["swept"], collected["problems"]) == (0, []), collected

    shutil.rmtree(tmp_path / "oslo")
    all_there(server, SIZES)
    put(server, LATER)
    all_there(server, SIZES | LATER)
    wait_until("it is noticed", lambda: not is_well(json_of(tier(sites, "status"))))
    assert [site["up"] for site in json_of(tier(sites, "status"))["sites"]] == [True, False, True]
    assert json_of(tier(sites, "scrub"), PARTIAL)["missing"] > 0
    assert not (tmp_path / "oslo").exists(), "nothing starts again where a site was lost"

    place = f"dir://{tmp_path}/oslo-2"
    refused(tier(sites, "replace", "porto", "--table", place), NOT_FOUND, "turin")
    refused(tier(sites, "replace", "oslo"), USAGE, "--table")
    replaced = json_of(tier(sites, "replace", "oslo", "--table", place, "--blobs", place))
    assert (replaced["problems"], replaced["lost"], replaced["missing"]) == ([], [], 0), replaced
    assert replaced["restored"] == replaced["objects"] > len(SIZES)
    assert replaced["replaced"] == json_of(tier(sites, "status"))["epoch"] == 3
    wait_until("all is well", lambda: is_well(json_of(tier(sites, "status"))))
    assert place in sites.read_text(encoding="utf-8")
    wait_until(
        "the server has the map",
        lambda: metric(server, 'fulgurite_tier_epoch{tier="geo",kind="geo"}') == 3,
    )

    shutil.rmtree(tmp_path / "turin")
    all_there(server, SIZES | LATER)
    verified = json_of(tier(sites, "verify"))
    assert (verified["damaged"], verified["problems"]) == ([], []), verified
    server.restart()
    all_there(server, SIZES | LATER)

    # The catalog is lost: what the sites have comes back.
    server.stop()
    shutil.rmtree(server.data / "catalog")
    command = [str(binary()), "recover", "--data", str(server.data)]
    command += ["--config", str(server.folder / "config.toml")]
    recovered = run(command, environment=server.process_environment())
    assert recovered.returncode == 0, f"{recovered.stdout}{recovered.stderr}"
    server.start()
    all_there(server, SIZES | LATER)

    # Two of three: what is asked of the sites fails, and comes back with them.
    server.stop()
    shutil.move(tmp_path / "lisbon", tmp_path / "away")
    refused(tier(sites, "status"), UNAVAILABLE, "too few sites answer")
    server.launch()
    assert server.process is not None and server.process.wait(timeout=120) == UNAVAILABLE
    shutil.move(tmp_path / "away", tmp_path / "lisbon")
    server.start()
    all_there(server, SIZES | LATER)


def test_site_stays_rebuilding_until_it_is_complete(make: Make, tmp_path: Path) -> None:
    """Replace a site while another is away, and once more when that is back."""
    sites = write_map(tmp_path, names=(*SITES, "porto", "riga"))
    json_of(tier(sites, "init"))
    server = make(tmp_path / "archive", config(sites)).start()
    server.s3().create_bucket(Bucket=BUCKET)
    # Each has its fragments at three of five sites: some at both.
    for number in range(30):
        content = random.Random(number).randbytes(50_000)
        server.s3().put_object(Bucket=BUCKET, Key=str(number), Body=content)
    wait_moved(server)
    server.stop()

    shutil.move(tmp_path / "oslo", tmp_path / "away")
    place = f"dir://{tmp_path}/turin-2"
    replace = ("replace", "turin", "--table", place, "--blobs", place)
    replaced = json_of(tier(sites, *replace), PARTIAL)
    assert replaced["missing"] > 0 and replaced["lost"] == [], replaced
    assert 'site "turin" is not rebuilt' in replaced["problems"][-1], replaced
    assert json_of(tier(sites, "status"))["sites"][2]["rebuilding"]
    shutil.move(tmp_path / "away", tmp_path / "oslo")
    replaced = json_of(tier(sites, *replace))
    assert (replaced["problems"], replaced["missing"]) == ([], 0), replaced
    assert is_well(json_of(tier(sites, "status")))

    # As any site may be lost then, that one may, too.
    shutil.rmtree(tmp_path / "oslo")
    verified = json_of(tier(sites, "verify"))
    assert (verified["damaged"], verified["problems"]) == ([], []), verified


def test_invalid_namespaces_are_refused(make: Make, tmp_path: Path) -> None:
    """Say something impossible in a map, and mix two namespaces."""
    bare = run([str(binary()), "geo", "doctor"], environment=KEYS)
    refused(bare, USAGE, "--map")
    refused(tier(tmp_path / "none.toml", "status"), CONFIG, "none.toml")
    twice = write_map(tmp_path, "twice")
    text = twice.read_text(encoding="utf-8")
    twice.write_text(text.replace('name = "oslo"', 'name = "turin"'), encoding="utf-8")
    refused(tier(twice, "init"), CONFIG, "is empty or used twice")
    one_place = write_map(tmp_path, "place", oslo=f"dir://{tmp_path}/lisbon")
    refused(tier(one_place, "init"), CONFIG, "one failure would lose both")
    wrong = write_map(tmp_path, "wrong", oslo="ftp://oslo/rows")
    refused(tier(wrong, "init"), CONFIG, "oslo")

    sites = write_map(tmp_path)
    json_of(tier(sites, "init"))
    foreign = write_map(tmp_path, "foreign")
    refused(tier(foreign, "init"), CONFIG, "has rows")
    refused(tier(foreign, "status"), CONFIG, "two namespaces cannot share a place")
    for number, (made, words) in enumerate(
        [
            (config(foreign), "two namespaces"),
            (config(sites, near="porto"), "porto"),
            (config(sites, orphan_age="1s"), "orphan_age of a tier of kind geo must be at least"),
        ]
    ):
        server = make(tmp_path / f"archive-{number}", made)
        server.launch()
        assert server.process is not None and server.process.wait(timeout=120) == CONFIG
        assert words in server.tail()
    assert is_well(json_of(tier(sites, "status")))


def test_doctor_detects_a_store_that_lies() -> None:
    """Have a store take conditions and not obey them."""
    with lying_store() as (endpoint, _):
        place = f"s3://bucket/rows?endpoint={endpoint}&region={REGION}"
        done = run(
            [str(binary()), "geo", "doctor", place], environment=KEYS | STORE_KEYS, timeout=300
        )
        assert done.returncode == CONFIG, f"{done.stdout}{done.stderr}"
        failed = [line for line in done.stdout.splitlines() if " FAILED " in line]
        assert any("create-race" in line for line in failed), done.stdout
        assert any("stale-tag" in line for line in failed), done.stdout
        assert "is refused" in done.stderr


def test_init_refuses_a_store_that_lies(tmp_path: Path) -> None:
    """Have one of three sites at such a store."""
    with lying_store() as (endpoint, held):
        place = f"s3://bucket/rows?endpoint={endpoint}&region={REGION}"
        sites = write_map(tmp_path, oslo=place)
        refused(tier(sites, "init"), CONFIG, 'table of site "oslo" is refused')
        assert not [key for key in held if key.endswith("/map")], held.keys()
        assert not (tmp_path / "lisbon").exists(), "no site was begun"


def test_site_in_a_bucket_and_several_archives_per_namespace(make: Make, tmp_path: Path) -> None:
    """Have a site on an S3 server, and two archives with folders of their own."""
    store = make(tmp_path / "store").start()
    store.s3().create_bucket(Bucket="lisbon")
    place = f"s3://lisbon/below?endpoint={store.endpoint}&region={REGION}"
    sites = write_map(tmp_path, lisbon=place)
    json_of(tier(sites, "init"))
    (tmp_path / "elsewhere").mkdir()
    there = tmp_path / "elsewhere" / "records.toml"
    shutil.copy(sites, there)
    one = make(tmp_path / "one", config(sites, folder="one"), environment=STORE_KEYS).start()
    two = make(tmp_path / "two", config(there, folder="two"), environment=STORE_KEYS).start()
    for server in (one, two):
        server.s3().create_bucket(Bucket=BUCKET)
        put(server, SIZES)
    for server in (one, two):
        all_there(server, SIZES)
    assert json_of(tier(sites, "verify"))["objects"] == 2 * (2 * len(SIZES) + 1)
    listed = store.s3().list_objects_v2(Bucket="lisbon", Prefix="below/blobs/")
    assert listed["KeyCount"] > 0

    # A folder belongs to one archive: what another puts there stays staged, and is read from there.
    third = make(tmp_path / "third", config(there, folder="one"), environment=STORE_KEYS).start()
    third.s3().create_bucket(Bucket=BUCKET)
    third.s3().put_object(Bucket=BUCKET, Key="later", Body=body("later"))
    wait_until("it says whose the folder is", lambda: "it is tier" in third.tail())
    assert third.status()["objects_staged"] == 1
    all_there(third, LATER)
    all_there(one, SIZES)


def test_acknowledged_put_survives_its_machine_and_a_site(make: Make, tmp_path: Path) -> None:
    """Put, and lose the machine and a site at once: a copy of the keys and two sites are left."""
    sites = write_map(tmp_path)
    json_of(tier(sites, "init"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    tables = [str(tmp_path / "one" / "table"), str(elsewhere / "table")]
    made = config(sites)
    made["classes"]["DEEP_ARCHIVE"] = "glass"
    made["storage"] = {"acknowledged_at": "geo"}
    made["keys"] = {"master_key": str(elsewhere / "master.key"), "tables": tables}
    server = make(tmp_path / "one", made).start()
    s3 = server.s3()
    s3.create_bucket(Bucket=BUCKET)
    sizes = SIZES | {"deep": 70_000}
    bodies = {name: random.Random(name).randbytes(size) for name, size in sizes.items()}
    for name, value in bodies.items():
        kind = {"deep": "DEEP_ARCHIVE"}.get(name, CLASSES.get(name, "STANDARD"))
        s3.put_object(Bucket=BUCKET, Key=name, Body=b"of before", StorageClass=kind)
        s3.put_object(Bucket=BUCKET, Key=name, Body=value, StorageClass=kind)
    server.kill()
    for lost in [tmp_path / "one", tmp_path / "oslo"]:
        shutil.rmtree(lost)

    (tmp_path / "two" / "data" / "platters").mkdir(parents=True)
    made["keys"]["tables"] = [str(elsewhere / "table")]
    server = make(tmp_path / "two", made)
    server.command()  # Writes the configuration.
    command = [str(binary()), "recover", "--data", str(server.data)]
    command += ["--config", str(server.folder / "config.toml")]
    done = run(command, 300, server.process_environment())
    assert done.returncode == 0, done.stderr
    server.start()
    s3 = server.s3()
    restore(s3, BUCKET, "deep")

    def is_restored() -> bool:
        return "expiry-date" in s3.head_object(Bucket=BUCKET, Key="deep").get("Restore", "")

    wait_until("it is restored", is_restored)
    for name, value in bodies.items():
        assert read(s3, BUCKET, name) == value, name

    # With one site of three nothing can be acknowledged: puts are refused, and none is half done.
    shutil.move(tmp_path / "turin", tmp_path / "away")
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        s3.put_object(Bucket=BUCKET, Key="small", Body=b"other")
    shutil.move(tmp_path / "away", tmp_path / "turin")
    assert read(s3, BUCKET, "small") == bodies["small"]
    s3.put_object(Bucket=BUCKET, Key="small", Body=b"other")
    assert read(s3, BUCKET, "small") == b"other"
