"""Clients of an archive over sites at work on the same objects while sites go and come back.

Their responses are checked for linearizability (`linear`); timing does not matter.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Server, seed, wait_until
from linear import Call, NoOrderError, Recorder, check
from test_geo import BUCKET, TIMES, config, json_of, tier, wait_moved, write_map

CLIENTS = 4
# Few, so that clients meet; of each kind: in rows, and in fragments.
KEYS = ("one", "two", "three")
SIZES = (200, 40_000, 300_000)
# Calls of each client before the next thing happens.
CALLS = 12
SITES_AWAY = 300.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Serve an archive that acknowledges at sites, and kill it at the end."""
    text = write_map(tmp_path).read_text(encoding="utf-8")
    assert TIMES in text
    text = text.replace(TIMES, 'round = "500ms"\npatience = "2s"\nlease = "9s"\n')
    sites = tmp_path / "records.toml"
    sites.write_text(text, encoding="utf-8")
    json_of(tier(sites, "init"))
    made: dict[str, Any] = config(sites) | {"storage": {"acknowledged_at": "geo"}}
    server = Server(tmp_path / "archive", made)
    yield server.start()
    server.kill()


class Clients:
    """Threads that put, get and delete a few objects until they are stopped."""

    def __init__(self, recorder: Recorder) -> None:
        """Start them."""
        self.recorder = recorder
        self.stopping = threading.Event()
        self.failures: list[BaseException] = []
        self.threads = [threading.Thread(target=self.work, args=(it,)) for it in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def work(self, client: int) -> None:
        """Make a random call."""
        draw = random.Random(f"{seed()} {client}")
        try:
            while not self.stopping.is_set():
                self.call(client, draw)
        except BaseException as error:
            self.failures.append(error)
            raise

    def call(self, client: int, draw: random.Random) -> None:
        """Make one call."""
        key, chance = draw.choice(KEYS), draw.random()
        if chance < 0.55:
            self.recorder.get(key, client)
        elif chance < 0.65:
            self.recorder.delete(key, client)
        else:
            more = {"IfNoneMatch": "*"} if chance < 0.75 else {}
            self.recorder.put(key, draw.randbytes(draw.choice(SIZES)), client, **more)

    def go_on(self, what: str, *, known: bool = True) -> None:
        """Wait until each client has made some more calls."""

        def made() -> list[int]:
            return [self.recorder.count(it, known=known) for it in range(CLIENTS)]

        target = [count + CALLS for count in made()]

        def is_done() -> bool:
            assert not self.failures, self.failures
            return all(now >= then for now, then in zip(made(), target, strict=True))

        wait_until(f"clients go on {what}", is_done, SITES_AWAY)

    def stop(self) -> None:
        """Stop them."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures


def bring_back(away: Path, site: Path) -> None:
    """Bring a site back, in place of what was being written when it went; a mount would hide it."""

    def is_back() -> bool:
        try:
            away.rename(site)
        except OSError:
            shutil.rmtree(site, ignore_errors=True)
            return False
        return True

    wait_until(f"{site} is back", is_back)


def test_responses_are_linearizable(server: Server, tmp_path: Path) -> None:
    """Take one site away, then two, kill the server, and check that all calls are linearizable."""
    server.s3().create_bucket(Bucket=BUCKET)
    recorder = Recorder(server.s3, BUCKET)
    clients = Clients(recorder)
    try:
        clients.go_on("with all sites")
        for site in ("oslo", "turin"):
            shutil.move(tmp_path / site, tmp_path / "away")
            clients.go_on(f"without {site}")
            bring_back(tmp_path / "away", tmp_path / site)
            clients.go_on(f"with {site}")
        shutil.move(tmp_path / "lisbon", tmp_path / "away")
        shutil.move(tmp_path / "turin", tmp_path / "farther")
        clients.go_on("with one site", known=False)
        bring_back(tmp_path / "away", tmp_path / "lisbon")
        bring_back(tmp_path / "farther", tmp_path / "turin")
        clients.go_on("with all sites again")
        server.kill()
        server.start()
        clients.go_on("with a server that was killed")
    finally:
        clients.stop()
    # All that was put is at the sites, and read from there.
    wait_moved(server)
    for key in KEYS:
        recorder.get(key)
    calls = recorder.calls
    assert check(calls) > CLIENTS * CALLS
    assert any(not call.is_known for call in calls), "every outcome was known"
    refuses_what_is_not_so(calls)
    assert json_of(tier(tmp_path / "records.toml", "scrub"))["unsure"] == 0


def refuses_what_is_not_so(calls: list[Call]) -> None:
    """Have the last read of each object say something else: the checker notices."""
    for key in KEYS:
        mine = [call for call in calls if call.key == key and call.is_known]
        last = max((call for call in mine if call.asked == "get"), key=lambda call: call.began)
        others = [call for call in calls if call is not last]
        wrong = [Call(key, "get", "what nobody put", last.began, last.ended)]
        puts = [call for call in mine if call.asked == "put"]
        first, second = min(puts, key=lambda it: it.ended), max(puts, key=lambda it: it.began)
        if first.ended < second.began and second.ended < last.began:
            wrong.append(Call(key, "get", first.value, last.began, last.ended))
        for read in wrong:
            with pytest.raises(NoOrderError):
                check([*others, read])
