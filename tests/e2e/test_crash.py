"""Over two hundred deaths: `kill -9` at random moments and at every step of an object's life.

After every restart all that was acknowledged is there, nothing else is, and at the end every byte
comes back from glass: a staged copy that went before its set was verified would be missed then.
The deaths are dealt to several archives, each a test of its own. FULGURITE_TEST_KILLS sets how many
there are; those at steps are always among them. Set FULGURITE_TEST_SEED to repeat a run's load; the
moments of random kills stay the clock's.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from pathlib import Path

import pytest
from conftest import Start
from crash_driver import BUCKET, DAYS_FOREVER, Driver
from harness import (
    RACK,
    ROOT,
    TINY_GEOMETRY,
    Server,
    read,
    restore,
    seed,
    wait_restored,
    wait_until,
)

KILLS = int(os.environ.get("FULGURITE_TEST_KILLS", "230"))
# Archives that the deaths are dealt to. With 1 a single data directory lives through all of them.
ARCHIVES = int(os.environ.get("FULGURITE_TEST_ARCHIVES", "24"))
THREADS = 4
# Passages let through before the death.
PASSAGES = [0, 1, 2]
# Failed restores back off for half a minute: four times as long counts as never.
FAIL_POINT_SECONDS = 120.0
LOAD_SECONDS_MAX = 0.5
START_SECONDS_MAX = 0.15
FULL_CHECK_EVERY = 50
CONFIG = {
    "geometry": TINY_GEOMETRY,
    # Seals run all the time, and restored copies expire within the test.
    "moves": {"bytes": "300KiB", "age": "1s"},
    "restore": {"day": "1s"},
    # Deleted names are forgotten all the time.
    "storage": {"forget_within": "4s"},
    # A fast machine writes a thousand small platters a minute; no slot becomes free again.
    "library": {"shape": {"slots_per_shelf": 1000}},
    # Bodies are brought to the rack as they come.
    "tiers": {
        "rack": RACK,
    },
}


# Steps of a rack that a load passes; those of repairs have tests of their own.
RACK_POINTS = [
    "rack-begun",
    "rack-half",
    "rack-synced",
    "rack-read-back",
    "rack-committed",
    "rack-swept-half",
    "rack-swept",
]


def fail_points(crate: str) -> list[str]:
    """Every named step of a crate, from the source that defines them."""
    source = (ROOT / f"crates/{crate}/src/fail_point.rs").read_text(encoding="utf-8")
    table = re.search(r"pub const FAIL_POINTS: \[&str; (\d+)\] = \[(.*?)\];", source, re.DOTALL)
    assert table
    names = re.findall(r'"([a-z-]+)"', table.group(2))
    assert len(names) == int(table.group(1))
    return names


# What only uploads to a shared bucket pass: test_shared.py kills there.
OF_SHARED = "shared-joined"
# What bodies of this load are too short to pass: a test of the archive's own panics there.
OF_LONG = "put-digested"

# Steps that only puts pass that are acknowledged at a tier.
BEFORE_ANSWER = ["put-named", "put-brought"]

# What classes may be changed to from one start to the next: each object keeps the home it had.
ON_GLASS = {"GLACIER": "glass"}
IN_OBJECTS = [{"STANDARD": "cold"} | ON_GLASS, {"STANDARD": "cold", "GLACIER": "cold"}]
ON_RACK = [{"GLACIER": "rack"}, {"GLACIER": "rack", "DEEP_ARCHIVE": "rack"}]


def stores(server: Server) -> dict[str, dict[str, str]]:
    """One for bodies, and one that is a far library."""
    url = f"file://{server.folder}"
    return {name: {"kind": "objects", "url": f"{url}/{name}"} for name in ("cold", "far")}


def change_classes(server: Server, rng: random.Random, point: str | None) -> None:
    """Start with other classes; with the tier whose steps are to be passed."""
    kind = point.split("-")[0] if point is not None else ""
    tiers = {"": [ON_GLASS, *IN_OBJECTS, *ON_RACK], "move": [*IN_OBJECTS, *ON_RACK]}
    # Where steps of glass are to be passed a class has to go there.
    on_glass = [ON_GLASS, *IN_OBJECTS, ON_RACK[0]]
    server.config["classes"] = rng.choice((tiers | {"rack": ON_RACK}).get(kind, on_glass))
    server.config["tiers"] = CONFIG["tiers"] | stores(server)
    server.config["far_libraries"] = ["far"]
    storage = dict(CONFIG["storage"])
    if point in BEFORE_ANSWER or rng.random() < 0.5:
        storage["acknowledged_at"] = "cold"
    server.config["storage"] = storage


def check_everything(server: Server, driver: Driver) -> None:
    """Seal, restore every archived object, and compare every byte."""
    server.seal()
    wait_until("nothing is staged", lambda: server.status()["objects_staged"] == 0)
    driver.check_standard()
    for key in driver.archived():
        wait_until(f"{key.name!r} takes a restore", lambda key=key: is_asked(driver, key.name))
    wait_restored(driver.client, BUCKET)
    for key in driver.archived():
        assert key.acknowledged is not None
        assert read(driver.client, BUCKET, key.name) == key.acknowledged.body(), key


def is_asked(driver: Driver, key: str) -> bool:
    """Ask for a copy that outlasts the test; a restore already under way may end too soon."""
    try:
        restore(driver.client, BUCKET, key, days=DAYS_FOREVER)
    except driver.client.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "RestoreAlreadyInProgress"
        return False
    return True


def kill_at_fail_point(server: Server, driver: Driver, point: str, passages: int) -> None:
    """Load until the archive kills itself at the point."""

    def dead() -> bool:
        assert not driver.findings, driver.findings
        return not server.is_running()

    def wait_for_death() -> None:
        before = driver.acknowledged
        try:
            wait_until(what, dead, FAIL_POINT_SECONDS)
        except AssertionError as error:
            done = driver.acknowledged - before
            raise AssertionError(
                f"{error}; {done} requests acknowledged, {server.status()}\n{server.tail()}"
            ) from error

    what = f"the archive dies at {point} after {passages} passages"
    driver.run(wait_for_death)
    assert server.process is not None
    assert server.process.returncode == -9, server.tail()


def kill_at_random(server: Server, driver: Driver, rng: random.Random) -> None:
    """Load for a moment, then kill."""
    moment = rng.uniform(0.0, LOAD_SECONDS_MAX)

    def wait_and_kill() -> None:
        # A moment of load, not a wait for something: there is nothing to ask for.
        time.sleep(moment)
        server.kill()

    driver.run(wait_and_kill)


def kill_while_starting(server: Server, rng: random.Random) -> None:
    """Kill a process that is still opening its data directory."""
    server.launch()
    time.sleep(rng.uniform(0.0, START_SECONDS_MAX))
    server.kill()


def plan(rng: random.Random) -> list[tuple[str, int] | None]:
    """Fail points with their passages, and None for kills at random; in random order."""
    assert set(RACK_POINTS) < set(fail_points("rack"))
    points = [*fail_points("archive"), *RACK_POINTS]
    points.remove(OF_SHARED)
    points.remove(OF_LONG)
    named = [(point, passages) for point in points for passages in PASSAGES]
    kills: list[tuple[str, int] | None] = [*named, *[None] * (KILLS - len(named))]
    rng.shuffle(kills)
    return kills


@pytest.mark.parametrize("archive", range(ARCHIVES))
def test_two_hundred_kills(start: Start, archive: int) -> None:
    """Kill, restart and check, over and over, on one data directory."""
    kills = plan(random.Random(seed()))[archive::ARCHIVES]
    rng = random.Random(f"{seed()} {archive}")
    server = start(dict(CONFIG))
    driver = Driver(server, rng.randrange(1 << 32), THREADS)
    driver.client.create_bucket(Bucket=BUCKET)
    server.kill()
    for done, kill in enumerate(kills):
        print(f"kill {done}: {kill or 'at random'}, {driver.acknowledged} acknowledged")
        change_classes(server, rng, kill[0] if kill else None)
        if kill is None and rng.random() < 0.2:
            kill_while_starting(server, rng)
        server.environment.pop("FULGURITE_FAIL_POINT", None)
        if kill is not None:
            server.environment["FULGURITE_FAIL_POINT"] = f"{kill[0]}:{kill[1]}"
        try:
            server.start()
        except AssertionError:
            # The step may come while interrupted work is finished at the start.
            if kill is None or server.is_running():
                raise
            continue
        check_after_restart(server, driver, is_armed=kill is not None)
        if kill is not None:
            kill_at_fail_point(server, driver, *kill)
        else:
            kill_at_random(server, driver, rng)
        assert not driver.findings, driver.findings
        if done % FULL_CHECK_EVERY == FULL_CHECK_EVERY - 1:
            server.environment.pop("FULGURITE_FAIL_POINT", None)
            server.start()
            driver.check_listing()
            check_everything(server, driver)
            server.kill()
    server.environment.pop("FULGURITE_FAIL_POINT", None)
    server.start()
    driver.check_listing()
    check_everything(server, driver)
    check_rebuilt_catalog(server, driver)
    print(f"{len(kills)} kills, {driver.acknowledged} requests acknowledged")


def check_after_restart(server: Server, driver: Driver, is_armed: bool) -> None:
    """Listing and some bodies; an armed archive may die of its own work meanwhile."""
    try:
        driver.check_listing()
        driver.check_standard(limit=5)
    except driver.connection_errors:
        assert is_armed, server.tail()


def check_rebuilt_catalog(server: Server, driver: Driver) -> None:
    """With the catalog gone, a recovery shows what the last start showed, and loses nothing.

    Uploads that a kill cut short lie whole in the logs and have their keys: they are unconfirmed,
    and stay so, unless their names were put or deleted since.
    """
    server.stop()
    shutil.rmtree(Path(server.data) / "catalog")
    # Its tiers stand in the configuration that it was last started with.
    config = str(server.folder / "config.toml")
    done = server.run("recover", "--data", str(server.data), "--config", config)
    # A kill may cut a platter file or a record short that is of nothing acknowledged, and leave the
    # key of an upload of which nothing was written.
    is_torn = done.returncode == 10 and "0 objects incomplete" in done.stderr
    assert done.returncode in (0, 12) or is_torn, done.stderr
    server.start()
    driver.check_listing()
    check_everything(server, driver)
