"""Records the calls and responses of clients, and checks that the history is linearizable.

Every object is a register: a put sets it, a delete empties it, a get reads it. A history is right
when its calls can be put in an order that agrees with time (what had ended before another began
comes first) and in which every answer is what the register would have said (Herlihy and Wing). The
search is that of Wing and Gong with Lowe's shortcut: events are taken as they come, and of what may
have happened so far only the outcomes are kept, so that nothing is searched twice where nothing is
under way. It trusts no number that the archive gives, but the bytes alone.

A call without an answer may have been done at any time since it began, or never.
"""

from __future__ import annotations

import bisect
import hashlib
import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

# Which bytes an object has, by their digest; none when there is no object.
Value = str | None
UNKNOWN = math.inf
OUTCOMES_MAX = 100_000
NOT_FOUND, CONFLICT, NOT_MET = 404, 409, 412


@dataclass(frozen=True)
class Call:
    """A call and its response."""

    key: str
    # "put", "create" (a put where there is nothing), "delete" or "get".
    asked: str
    # What is put, or was read.
    value: Value
    began: float
    # Never, when nobody knows whether it was done.
    ended: float
    # Whether its condition was met.
    was_met: bool = True
    client: int = 0

    @property
    def is_known(self) -> bool:
        """Whether it is known to have been done."""
        return self.ended != UNKNOWN

    def after(self, now: Value) -> list[Value]:
        """What the object may be after it, when it was that before; nothing when it cannot be."""
        if self.asked == "put":
            return [self.value]
        if self.asked == "create":
            return (
                ([self.value] if self.was_met else [now]) if (now is None) is self.was_met else []
            )
        if self.asked == "delete":
            return [None]
        return [now] if now == self.value else []


class NoOrderError(AssertionError):
    """The history is not linearizable."""


# What an object may be, which of the calls that are under way were done for that, and how many of
# those that may be done at any time: deletes, and puts of what nobody read. These are all alike.
Outcome = tuple[Value, frozenset[int], int, int]
UNREAD = "what nobody read"


def check(history: Iterable[Call]) -> int:
    """Find an order of each object's calls; raise `NoOrderError` when there is none.

    Every value was put once at most. How many calls were placed is returned.
    """
    keys: dict[str, list[Call]] = {}
    for call in history:
        keys.setdefault(call.key, []).append(call)
    return sum(_check_key(calls) for calls in keys.values())


def _check_key(history: list[Call]) -> int:
    calls, deletes, puts = _sorted_out(history)
    events = [(call.began, 0, index) for index, call in enumerate(calls)]
    events += [(call.ended, 1, index) for index, call in enumerate(calls)]
    under_way: list[int] = []
    outcomes: list[Outcome] = [(None, frozenset(), 0, 0)]
    # What ended in the moment in which another began is taken for earlier by nobody.
    for now, ends, index in sorted(events):
        if not ends:
            under_way.append(index)
            continue
        begun = bisect.bisect_right(deletes, now), bisect.bisect_right(puts, now)
        outcomes = _until(index, [(it, calls[it]) for it in under_way], begun, outcomes)
        if not outcomes:
            last = calls[index]
            beside = [calls[other] for other in under_way if other != index]
            before = [call for call in calls if call.ended < last.began][-5:]
            raise NoOrderError(f"nothing explains {last}\nbeside {beside}\nafter {before}")
        under_way.remove(index)
    return len(calls)


def _sorted_out(history: list[Call]) -> tuple[list[Call], list[float], list[float]]:
    """Tell calls that end from those that may be done at any time, and when these began.

    What somebody read was done by then.
    """
    read: dict[Value, float] = {}
    for call in history:
        if call.asked == "get" and call.is_known:
            read[call.value] = min(call.ended, read.get(call.value, UNKNOWN))
    calls, deletes, puts = [], [], []
    for call in history:
        if call.is_known:
            calls.append(call)
        elif call.asked == "delete":
            deletes.append(call.began)
        elif call.asked != "get" and call.value in read:
            calls.append(replace(call, ended=read[call.value]))
        elif call.asked != "get":
            puts.append(call.began)
    return calls, sorted(deletes), sorted(puts)


def _until(
    index: int, under_way: list[tuple[int, Call]], begun: tuple[int, int], outcomes: list[Outcome]
) -> list[Outcome]:
    """What may be when a call has ended: it was done, and any of the others before it.

    Of outcomes that differ only in how much was done of what may be done at any time, those with
    the least are enough.
    """
    least: dict[tuple[Value, frozenset[int]], list[tuple[int, int]]] = {}
    ended: list[Outcome] = []
    order = itertools.count()
    todo = [(deletes + puts, next(order), one) for one in outcomes for deletes, puts in [one[2:]]]
    heapq.heapify(todo)
    while todo:
        value, done, deletes, puts = heapq.heappop(todo)[2]
        others = least.setdefault((value, done), [])
        if any(fewer <= deletes and less <= puts for fewer, less in others):
            continue
        others.append((deletes, puts))
        assert len(least) <= OUTCOMES_MAX, "too much was under way at once to look for an order"
        if index in done:
            ended.append((value, done - {index}, deletes, puts))
            continue
        then: list[Outcome] = [
            (after, done | {other}, deletes, puts)
            for other, call in under_way
            if other not in done
            for after in call.after(value)
        ]
        if deletes < begun[0]:
            then.append((None, done, deletes + 1, puts))
        if puts < begun[1]:
            then.append((UNREAD, done, deletes, puts + 1))
        for one in then:
            heapq.heappush(todo, (one[2] + one[3], next(order), one))
    return ended


def digest(data: bytes) -> str:
    """Name bytes as the ETag of a simple put does."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@dataclass
class Recorder:
    """A client of one bucket that records its calls and responses. Several threads may share it."""

    s3: Callable[[], Any]
    bucket: str
    calls: list[Call] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _own: threading.local = field(default_factory=threading.local)

    def put(self, key: str, body: bytes, client: int = 0, **more: Any) -> None:
        """Put an object; with `IfNoneMatch` only where there is none."""
        asked = "create" if "IfNoneMatch" in more else "put"

        def call(s3: Any) -> Value:
            done = s3.put_object(Bucket=self.bucket, Key=key, Body=body, **more)
            assert done["ETag"] == f'"{digest(body)}"', done
            return digest(body)

        self._note(Call(key, asked, digest(body), 0, UNKNOWN, client=client), call)

    def delete(self, key: str, client: int = 0) -> None:
        """Delete an object, whether it is there or not."""

        def call(s3: Any) -> Value:
            s3.delete_object(Bucket=self.bucket, Key=key)
            return None

        self._note(Call(key, "delete", None, 0, UNKNOWN, client=client), call)

    def get(self, key: str, client: int = 0) -> None:
        """Read an object whole, and check its metadata against its bytes."""

        def call(s3: Any) -> Value:
            got = s3.get_object(Bucket=self.bucket, Key=key)
            body = got["Body"].read()
            assert got["ETag"] == f'"{digest(body)}"', (key, got)
            return digest(body)

        self._note(Call(key, "get", None, 0, UNKNOWN, client=client), call)

    def _note(self, call: Call, do: Callable[[Any], Value]) -> None:
        if not hasattr(self._own, "s3"):
            self._own.s3 = self.s3()
        call = replace(call, began=time.monotonic())
        try:
            value = do(self._own.s3)
            call = replace(call, value=value, ended=time.monotonic())
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status == NOT_FOUND and call.asked == "get":
                call = replace(call, ended=time.monotonic())
            elif status == NOT_MET and call.asked == "create":
                call = replace(call, ended=time.monotonic(), was_met=False)
            elif status == CONFLICT and call.asked == "create":
                # Another was at it: nothing was done.
                return
            else:
                assert status >= 500, error
        except (BotoCoreError, OSError):
            # No answer came, or not all of it.
            pass
        with self._lock:
            self.calls.append(call)

    def count(self, client: int | None = None, *, known: bool = True) -> int:
        """Count calls that were answered."""
        with self._lock:
            return sum(
                client in (None, call.client) and (call.is_known or not known)
                for call in self.calls
            )
