"""The event stream of a set of tomes; nothing waits for its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness import wait_until
from test_events import watching
from test_tomes import BUCKET, MOVED_WITHIN, SIZES, Make, body, run_json
from test_tomes import make as make

TARGET = "/-/admin/tiers/tomes/events"
# One group of three, and nobody else. Disks turn as long as by default: a disk that was put down
# sooner could be spun_up again between what is asked of the status and what is read of the stream.
SHAPE = {
    "count": 3,
    "groups": "2+1",
    "segments": 2,
    "regions": 1,
    "spares": 512,
    "idle": "60s",
}


class Model:
    """The state of the set as the events describe it, and the steps so far."""

    def __init__(self, seen: Iterator[tuple[str, Any]]) -> None:
        """Begin with the snapshot, which is the first event."""
        self.seen = seen
        name, snapshot = next(seen)
        assert (name, snapshot["step"]) == ("snapshot", 0), snapshot
        self.snapshot = snapshot["tomes"]
        self.last, self.happened, self.missed = 0, [], 0
        self.raised: list[str] = []
        self.cleared: list[str] = []

    def take(self) -> str:
        """Take one more event; check that gaps are reported. Returns its name."""
        name, data = next(self.seen)
        if name == "step":
            assert data["step"] == self.last + 1, data
            self.last = data["step"]
            self.happened.append(data["happened"])
        elif name == "poll":
            self.raised += data["poll"]["raised"]
            self.cleared += data["poll"]["cleared"]
            known = {tome["tome"]: tome for tome in self.snapshot["tomes"]}
            known |= {tome["tome"]: tome for tome in data["poll"]["tomes"]["tomes"]}
            self.snapshot = data["poll"]["tomes"] | {
                "tomes": [known[tome] for tome in sorted(known)]
            }
        elif name == "missed":
            assert data["step"] == self.last + data["missed"], data
            self.last, self.missed = data["step"], self.missed + data["missed"]
            name, snapshot = next(self.seen)
            assert (name, snapshot["step"]) == ("snapshot", self.last), snapshot
            self.snapshot = snapshot["tomes"]
        return name

    def of(self, kind: str) -> list[Any]:
        """Return the steps of one kind."""
        return [what[kind] for what in self.happened if kind in what]

    def until(self, what: str, is_so: Callable[[Model], Any]) -> None:
        """Take events until a condition holds; the stream has a deadline for each event."""
        while not is_so(self):
            assert self.take() != "end", f"it ended before: {what}"


def is_protected(model: Model) -> bool:
    """Whether all objects are on tomes, and in every parity, as far as the steps say."""
    left = {one["tome"]: one["bytes"] for one in model.of("unprotected")}
    local = sum(one["bytes"] for one in model.of("local"))
    return local >= sum(SIZES.values()) and bool(left) and not any(left.values())


def test_put_events_stream_and_slow_reader_blocks_nobody(make: Make, tmp_path: Path) -> None:
    """Watch puts; a slow reader gets the same events later, or the number it missed."""
    server = make(tmp_path, **SHAPE)
    assert run_json(server, "init")["tomes"] == SHAPE["count"]
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    with watching(server, TARGET) as slow, watching(server, TARGET) as seen:
        model = Model(seen)
        assert model.snapshot["is_well"] and len(model.snapshot["tomes"]) == SHAPE["count"]
        for name in SIZES:
            s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER_IR")
        wait_until("all is on tomes", lambda: server.status()["objects_staged"] == 0, MOVED_WITHIN)
        model.until("all is protected", is_protected)
        causes = [one["cause"] for one in model.of("power") if "cause" in one]
        # The archive reads the mark of its tier as well.
        assert {kind for cause in causes for kind in cause} >= {"write"}, causes
        holders = [one["tome"] for one in model.of("token")]
        assert any(tome is not None for tome in holders) and None in holders, holders
        # One token: nobody has it before it came back.
        assert all(a is None or b is None for a, b in pairwise(holders)), holders

        def as_status(model: Model) -> bool:
            powers = {one["tome"]: one["power"] for one in model.of("power")}
            now = {tome["tome"]: tome["power"] for tome in run_json(server, "status")["tomes"]}
            return all(now[tome] == power == "standby" for tome, power in powers.items())

        model.until("the events lead to what status says", as_status)
        before = {tome["tome"]: tome["spin_ups"] for tome in model.snapshot["tomes"]}
        spin_ups = {tome["tome"]: tome["spin_ups"] for tome in run_json(server, "status")["tomes"]}
        for tome, count in spin_ups.items():
            spun_up = [one for one in model.of("power") if one["tome"] == tome and "cause" in one]
            # Those of before, and those that were seen; the snapshot may have the first of them.
            assert before[tome] <= count <= before[tome] + len(spun_up), (tome, count, spun_up)
        # The slow reader gets the same events, or the number it missed.
        late = Model(slow)
        late.until("it has caught up", lambda late: late.last >= model.last)
        assert late.missed or late.happened[: len(model.happened)] == model.happened
        assert server.stop() == 0
        while model.take() != "end":
            pass
