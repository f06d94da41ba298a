"""An older copy of one file or folder beside newer others: what is served, and what helps.

Each case has an archive do something, keeps a copy of what is named, has it do more, and puts the
copy back. The archive then serves all that was acknowledged, or says what is older and what to do:
a command is taken out of the message and run as it stands there.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import NewFolder
from damage_cases import (
    BUCKET,
    CONFIG,
    Example,
    body,
    damage,
    lost_objects,
    put,
    start_or_code,
)
from harness import KEYS, RUN_SECONDS, Server, binary, is_restored, read, restore, run, wait_until

ENDS = ["stopped", "killed"]
# Short, so that a site is replaced soon.
TIMES = 'round = "1s"\npatience = "4s"\nlease = "5s"\n'
SITES = ("lisbon", "oslo", "turin")


@dataclass
class Case:
    """What comes back as an older copy, and what nothing but the newer copy has."""

    files: str
    # Lost until the newer copy is brought back, and what says so.
    lost: tuple[str, ...] = ()
    report: str = ""


# Single files are in test_damage_table.py.
CASES = [
    Case("catalog/ and catalog.mark"),
    Case("platters/", ("staged0", "staged1"), "platters of the catalog are missing"),
    Case("restored/"),
    Case("staging/", ("staged2",), "a segment that holds objects is lost"),
    Case("online/", ("online1",), "a segment that holds objects is lost"),
]


def replace(new: Path, old: Path) -> None:
    """Put a file or folder in the place of another."""
    if new.exists():
        damage(new, "older copy", old)
    elif old.exists():
        (shutil.copytree if old.is_dir() else shutil.copy2)(old, new)


def commands(text: str) -> list[list[str]]:
    """Find the commands that a message names, as they stand in it."""
    return [shlex.split(command)[1:] for command in re.findall(r"`(fulgurite [^`]*)`", text)]


def run_remedy(text: str, named: dict[str, str], *more: str) -> str:
    """Run the command that a message names, with what it leaves to say: what it printed."""
    (arguments, *_) = commands(text)
    arguments = [named.get(word, word) for word in arguments] + list(more)
    done = run([str(binary()), *arguments], RUN_SECONDS, KEYS)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def line_with(server: Server, words: str) -> str:
    """Wait for a line of the log."""

    def found() -> str:
        log = server.log.read_text(encoding="utf-8", errors="replace")
        return next((line for line in log.splitlines() if words in line), "")

    return wait_until(f"the log says {words!r}", found)


def is_ready(server: Server) -> bool:
    """Whether nothing is degraded."""
    return server.fetch("/readyz") == (200, b"ready\n")


@pytest.fixture(scope="module", params=ENDS)
def example(request: pytest.FixtureRequest, new_folder: NewFolder) -> Example:
    """One archive with an older copy, of which every case has its own."""
    server = Server(new_folder("example") / "archive", CONFIG)
    before = server.folder / "before"
    try:
        s3 = server.start().s3()
        s3.create_bucket(Bucket=BUCKET)
        for name in ("glass0", "glass1", "doomed"):
            put(s3, name, "DEEP_ARCHIVE")
        server.seal()
        put(s3, "staged0", "DEEP_ARCHIVE")
        put(s3, "online0", "STANDARD")
        put(s3, "deleted", "STANDARD")
        server.stop()
        shutil.copytree(server.data, before)
        server.start()
        put(s3, "staged1", "DEEP_ARCHIVE")
        server.seal()
        put(s3, "staged2", "DEEP_ARCHIVE")
        put(s3, "online1", "STANDARD")
        for name in ("deleted", "doomed"):
            s3.delete_object(Bucket=BUCKET, Key=name)
        restore(s3, BUCKET, "glass1", days=30)
        wait_until("glass1 is restored", lambda: is_restored(s3, BUCKET, "glass1"))
        if request.param == "stopped":
            assert server.stop() == 0
    finally:
        server.kill()
    names = ["glass0", "glass1", "online0", "online1", "staged0", "staged1", "staged2"]
    return Example(server.data, before, {name: body(name) for name in names})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that is killed at the end."""
    server = Server(tmp_path)
    yield server
    server.kill()
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.files.replace(" ", "-"))
def test_older_copies_of_the_archive(server: Server, example: Example, case: Case) -> None:
    """Nothing that was acknowledged is lost, and nothing that was deleted is back."""
    server.config = CONFIG
    files = case.files.split(" and ")
    shutil.copytree(example.now, server.data)
    for file in files:
        replace(server.data / file, example.before / file)
    if start_or_code(server):
        # What it says is what to run.
        run_remedy(server.tail(3), {}, "--config", str(server.folder / "config.toml"))
        assert start_or_code(server) == 0, server.tail(5)
    assert lost_objects(server, example.objects) == sorted(case.lost), server.tail()
    if not case.report:
        return
    assert "bring" in line_with(server, case.report)
    # The newer copy helps, and what was done without it is no hindrance.
    server.kill()
    for file in files:
        replace(server.data / file, example.now / file)
    assert start_or_code(server) == 0, server.tail(5)
    assert lost_objects(server, example.objects) == [], server.tail()


def end(server: Server, how: str) -> None:
    """End a run."""
    if how == "stopped":
        assert server.stop() == 0
    server.kill()


def wait_moved(server: Server) -> None:
    """Wait until nothing is staged."""
    wait_until("all is moved", lambda: server.status()["objects_staged"] == 0)


def put_moved(server: Server, storage_class: str, *names: str) -> Any:
    """Put objects that go to a tier, and wait until they are there."""
    s3 = server.s3()
    for name in names:
        put(s3, name, storage_class)
    wait_moved(server)
    return s3


def read_all(server: Server, *names: str) -> None:
    """Restore what has to be, and read all."""
    s3 = server.s3()
    for name in names:
        if s3.head_object(Bucket=BUCKET, Key=name)["StorageClass"] == "GLACIER":
            restore(s3, BUCKET, name)
            wait_until(f"{name} is restored", lambda name=name: is_restored(s3, BUCKET, name))
        assert read(s3, BUCKET, name) == body(name), name


@pytest.mark.parametrize(("older", "how"), [("index", "stopped"), ("index and ledger", "killed")])
def test_older_copies_of_a_rack(server: Server, older: str, how: str) -> None:
    """The index is named, and `tier recover`, as it stands in the message, makes it whole."""
    rack = {"kind": "rack", "shape": "laptop", "idle": "1s", "make": True}
    rack |= {"moves": {"calm_age": "0s"}}
    server.config = {"profile": "demo", "tiers": {"rack": rack}}
    server.start().s3().create_bucket(Bucket=BUCKET)
    put_moved(server, "GLACIER", "one", "two")
    assert server.stop() == 0
    files = [f"tiers/rack/{name}" for name in older.split(" and ")]
    kept = server.folder / "kept"
    kept.mkdir()
    for file in files:
        replace(kept / Path(file).name, server.data / file)
    s3 = server.start().s3()
    s3.delete_object(Bucket=BUCKET, Key="two")
    put_moved(server, "GLACIER", "three")
    end(server, how)
    for file in files:
        replace(server.data / file, kept / Path(file).name)
    server.start()
    # The first disk that comes up tells, if the ledger cannot.
    put_moved(server, "GLACIER", "four")
    message = line_with(server, "the index of the rack is an older copy")
    assert b"rack: its index is an older copy" in server.fetch("/readyz")[1]
    options = ["--data", str(server.data), "--config", str(server.folder / "config.toml")]
    run_remedy(message, {"NAME": "rack"}, *options)
    wait_until("the rack is well", lambda: is_ready(server))
    read_all(server, "one", "three", "four")
    verified = server.run("tier", "scrub", "rack", *options)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize(("older", "how"), [("table", "killed"), ("blobs", "stopped")])
def test_older_copies_of_a_site(server: Server, older: str, how: str) -> None:
    """A table does not vote before another place is behind its site; blobs are healed."""
    folder = server.folder
    text = f'name = "records"\ndata = 2\nparity = 1\n{TIMES}'
    for site in SITES:
        place = f"dir://{folder}/{site}"
        text += f'\n[[sites]]\nname = "{site}"\ntable = "{place}"\nblobs = "{place}"\n'
    sites = folder / "records.toml"
    sites.write_text(text, encoding="utf-8")
    tier = ["--tier", f"geo=geo:{sites}", "--data", str(server.data)]
    done = server.run("tier", "init", "geo", *tier)
    assert done.returncode == 0, done.stderr
    geo = {"kind": "geo", "map": str(sites), "near": "lisbon"}
    geo |= {"heal_every": "1s", "collect_every": "2s"}
    server.config = {
        "profile": "demo",
        "tiers": {"geo": geo},
        "classes": {"GLACIER_IR": "geo"},
    }
    server.start().s3().create_bucket(Bucket=BUCKET)
    put_moved(server, "GLACIER_IR", "one", "two")
    assert server.stop() == 0
    kept, site = folder / "kept", folder / "turin" / older
    shutil.copytree(site, kept)
    server.start().s3().delete_object(Bucket=BUCKET, Key="two")
    put_moved(server, "GLACIER_IR", "three")
    end(server, how)
    replace(site, kept)
    server.start()
    message = line_with(server, f"the {older} of site turin")
    read_all(server, "one", "three")
    if older == "table":
        assert b"1 of 3 sites did not respond" in server.fetch("/readyz")[1]
        # The place is the operator's to say; one and the same will do for the table and the blobs.
        named = {"NAME": "geo", "URL": f"dir://{folder}/elsewhere"}
        run_remedy(message, named, *tier)
    wait_until("all sites are well", lambda: is_ready(server))
    # Any one of the others may be lost.
    for lost in ("lisbon", "oslo"):
        (folder / lost).rename(folder / "away")
        read_all(server, "one", "three")
        (folder / "away").rename(folder / lost)


@pytest.mark.parametrize("how", ENDS)
def test_older_copies_of_a_directory(server: Server, how: str) -> None:
    """What is lost is named by the command of the message; the newer copy has it."""
    tier, kept, newer = (server.folder / name for name in ("tier", "kept", "newer"))
    server.config = {
        "profile": "demo",
        "tiers": {"cold": {"kind": "objects", "url": f"file://{tier}"}},
        "classes": {"GLACIER_IR": "cold"},
    }
    server.start().s3().create_bucket(Bucket=BUCKET)
    put_moved(server, "GLACIER_IR", "one", "two")
    assert server.stop() == 0
    shutil.copytree(tier, kept)
    server.start().s3().delete_object(Bucket=BUCKET, Key="two")
    put_moved(server, "GLACIER_IR", "three")
    end(server, how)
    shutil.copytree(tier, newer)
    replace(tier, kept)
    server.start()
    message = line_with(server, 'tier "cold" is an older copy')
    assert b"tiers: one is an older copy" in server.fetch("/readyz")[1]
    read_all(server, "one")
    ((*command,),) = commands(message)
    done = server.run(*command, "--data", str(server.data))
    assert f"{BUCKET}/three" in done.stdout, done.stdout
    assert f"{BUCKET}/one" not in done.stdout, done.stdout
    end(server, how)
    replace(tier, newer)
    server.start()
    wait_until("the tier is well", lambda: is_ready(server))
    read_all(server, "one", "three")
