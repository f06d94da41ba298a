"""The checker of histories: what is right passes, and what is wrong on purpose does not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from harness import seed
from linear import UNKNOWN, Call, NoOrderError, Value, check

RUNS = 60
KEYS = ("a", "b")


def right(run: int) -> list[Call]:
    """Draw a history of some clients: each call is done at a moment between its ends."""
    draw = random.Random(f"{seed()} {run}")
    calls: list[tuple[float, Call]] = []
    for client in range(3):
        now = draw.random()
        for number in range(20):
            asked = draw.choices(("put", "create", "delete", "get"), (4, 2, 2, 6))[0]
            began, done = now, now + draw.random()
            ended = done + draw.random()
            now = ended + draw.random()
            value = f"{client}/{number}" if asked in ("put", "create") else None
            calls.append((done, Call(draw.choice(KEYS), asked, value, began, ended, client=client)))
    objects: dict[str, Value] = dict.fromkeys(KEYS)
    history = []
    for _, call in sorted(calls, key=lambda one: one[0]):
        answered = draw.random() > 0.15
        is_done = answered or draw.random() > 0.5
        there = objects[call.key]
        if call.asked == "get":
            call = replace(call, value=there)
        elif call.asked == "create" and there is not None:
            call = replace(call, was_met=False)
        elif is_done:
            objects[call.key] = call.value
        if not answered:
            # Who waits no longer does not know whether a condition was met, either.
            call = replace(call, ended=UNKNOWN, was_met=True)
        history.append(call)
    return history


def before(call: Call, then: Call) -> bool:
    """Whether a call was over before another began."""
    return call.key == then.key and call.ended < then.began


def sets(call: Call) -> bool:
    """Whether a call is known to have set a value."""
    return call.asked in ("put", "create") and call.is_known and call.was_met


def reads(history: list[Call]) -> Iterator[tuple[int, Call]]:
    """Reads that were answered."""
    return ((at, it) for at, it in enumerate(history) if it.asked == "get" and it.is_known)


def swap(history: list[Call], at: int, value: Value) -> list[Call]:
    """Have one read say something else."""
    return [*history[:at], replace(history[at], value=value), *history[at + 1 :]]


def stale(history: list[Call]) -> Iterator[list[Call]]:
    """Read what another put had replaced."""
    for at, read in reads(history):
        for new in filter(sets, history):
            for old in filter(sets, history):
                if before(new, read) and before(old, new):
                    yield swap(history, at, old.value)


def resurrected(history: list[Call]) -> Iterator[list[Call]]:
    """Read what had been deleted."""
    for at, read in reads(history):
        for gone in history:
            for old in filter(sets, history):
                if gone.asked == "delete" and before(gone, read) and before(old, gone):
                    yield swap(history, at, old.value)


def lost(history: list[Call]) -> Iterator[list[Call]]:
    """Read nothing where something was put and nobody deletes."""
    for at, read in reads(history):
        deletes = [it for it in history if it.asked == "delete" and it.key == read.key]
        for put in filter(sets, history):
            may = (it.began < read.ended and it.ended > put.began for it in deletes)
            if before(put, read) and not any(may):
                yield swap(history, at, None)


def never_put(history: list[Call]) -> Iterator[list[Call]]:
    """Read what nobody put."""
    for at, _ in reads(history):
        yield swap(history, at, "nobody's")


def early(history: list[Call]) -> Iterator[list[Call]]:
    """Read what is put later."""
    for at, read in reads(history):
        for put in history:
            if put.asked == "put" and put.key == read.key and put.began > read.ended:
                yield swap(history, at, put.value)


def twice(history: list[Call]) -> Iterator[list[Call]]:
    """Have a create be done where something is."""
    for at, create in enumerate(history):
        if create.asked != "create" or create.was_met or not create.is_known:
            continue
        deletes = [it for it in history if it.asked == "delete" and it.key == create.key]
        for put in filter(sets, history):
            may = (it.began < create.ended and it.ended > put.began for it in deletes)
            if before(put, create) and not any(may):
                yield [*history[:at], replace(create, was_met=True), *history[at + 1 :]]


def test_linearizable_histories_pass() -> None:
    """Find an order of histories that have one."""
    for run in range(RUNS):
        history = right(run)
        assert check(history) > 0
        assert any(not call.is_known for call in history)


@pytest.mark.parametrize("fault", [stale, resurrected, lost, never_put, early, twice])
def test_non_linearizable_histories_are_rejected(
    fault: Callable[[list[Call]], Iterator[list[Call]]],
) -> None:
    """Plant one fault in a right history, in several places."""
    count = 0
    for run in range(RUNS):
        planted = list(fault(right(run)))
        for wrong in random.Random(run).sample(planted, min(5, len(planted))):
            count += 1
            with pytest.raises(NoOrderError, match="nothing explains"):
                check(wrong)
    assert count > RUNS / 4, "it was planted too rarely to show anything"


def test_unknown_outcomes_may_apply_late_or_never() -> None:
    """Take a call without an answer for done, for not done, and for done late, but not for both."""
    put = Call("a", "put", "1", 0, 1)
    maybe = Call("a", "put", "2", 2, UNKNOWN)
    gone = Call("a", "delete", None, 2, UNKNOWN)

    def got(value: Value, at: float) -> Call:
        return Call("a", "get", value, at, at + 0.5)

    for seen in (["1", "1"], ["1", "2"], ["2", "2"]):
        check([put, maybe, *(got(value, 3 + at) for at, value in enumerate(seen))])
    check([put, gone, got("1", 3), got(None, 4)])
    for call, seen in ((maybe, ["2", "1"]), (gone, [None, "1"])):
        with pytest.raises(NoOrderError):
            check([put, call, *(got(value, 3 + at) for at, value in enumerate(seen))])
