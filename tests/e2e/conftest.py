"""Fixtures: archives that are killed when their test ends."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, binary, seed

Start = Callable[..., Server]
NewFolder = Callable[[str], Path]
# Cases of one test that share what their module makes.
CASES_TOGETHER = 10


# The files that take longest begin first, so that no worker is left alone with one at the end.
LONGEST = (
    "test_failing_storage",
    "test_tomes_network",
    "test_tomes",
    "test_tomes_operated",
    "test_tomes_watched",
    "test_geo",
    "test_power_cut_tiers",
    "test_power_cut",
    "test_damage_table",
    "test_clients",
    "test_transfers",
    "test_crash",
    "test_kills_in_repair",
)


def pytest_configure() -> None:
    """Give every worker of pytest-xdist the same seed; workers have the environment of this."""
    os.environ["FULGURITE_TEST_SEED"] = str(seed())


def pytest_report_header() -> str:
    """Show how to repeat this run."""
    return f"FULGURITE_TEST_SEED={seed()}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together that share something of their module; all others may run anywhere.

    Of a test with many cases some are kept together, so that not one worker has all of them; and
    those that a fixture with a parameter made one thing for.
    """
    cases: Counter[str] = Counter()
    for item in items:
        assert isinstance(item, pytest.Function)
        known = item._fixtureinfo.name2fixturedefs
        shared = [name for name, found in known.items() if found[-1].scope == "module"]
        if set(shared) - {"start"}:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            made_for = [str(params[fixture]) for fixture in shared if fixture in params]
            name = "::".join([item.module.__name__, item.originalname, *made_for])
            part = cases[name] // CASES_TOGETHER
            cases[name] += 1
            group = f"{name}-{part}" if part or made_for else item.module.__name__
            item.add_marker(pytest.mark.xdist_group(group))
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.module.__name__, len(LONGEST)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop where pytest-xdist keeps no groups: each worker would repeat shared setups."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if any("@" not in item.nodeid for item in grouped):
        message = "this pytest and this pytest-xdist keep no groups of tests together"
        raise pytest.UsageError(message)


@pytest.fixture(scope="session", autouse=True)
def program() -> Path:
    """The program under test is built before the tests run."""
    path = binary()
    assert path.exists(), f"{path} is missing; run: cargo build --package fulgurite"
    return path


@pytest.fixture(scope="module")
def new_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewFolder]:
    """Make folders that are removed after the tests of the module, unless one has failed.

    Those of all modules together take 9 GB.
    """
    folders: list[Path] = []
    failed_before = request.session.testsfailed

    def make(name: str) -> Path:
        folders.append(tmp_path_factory.mktemp(name))
        return folders[-1]

    yield make
    if request.session.testsfailed == failed_before:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def start(new_folder: NewFolder) -> Iterator[Start]:
    """Start archives, each in a new folder unless one is given; all are killed at the end."""
    servers: list[Server] = []

    def make(config: dict[str, Any] | None = None, **options: Any) -> Server:
        folder = options.pop("folder", None) or new_folder("archive")
        server = Server(folder=folder, config={"profile": "demo"} | (config or {}), **options)
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.kill()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    """One archive with the default configuration, shared by the tests of a module."""
    return start()


@pytest.fixture(scope="module")
def s3(server: Server) -> Any:
    """A boto3 client of the module's archive."""
    return server.s3()


@pytest.fixture
def bucket(s3: Any, request: pytest.FixtureRequest) -> str:
    """A new bucket of the module's archive, named after the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower()).strip("-")[:60]
    s3.create_bucket(Bucket=name)
    return name
