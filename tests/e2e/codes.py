"""The erasure codes of docs/formats/platter.md, as the equations given there.

Written from the document, not from the program. Slow next to it, fast enough for small platters: a
shard is multiplied by `bytes.translate` and added as one long integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

BASIS = [
    (0x01, 0), (0xD6, 0), (0x98, 0), (0x92, 0), (0x56, 0), (0xC8, 0), (0x58, 0), (0xE6, 0),
    (0x9E, 0x01), (0x72, 0xD6), (0x88, 0x98), (0xA2, 0x92), (0x56, 0x56), (0xDA, 0xC8),
    (0xEE, 0x58), (0x4C, 0xE6),
]  # fmt: skip

Element = tuple[int, int]
"""a + b u."""

Factor = Callable[[int, int], Element]
"""a(i, j): what information shard j counts in redundancy shard i."""

Shards = Sequence[bytes | None]
"""Shards of a code word, information first; None is lost."""

ZERO: Element = (0, 0)
HALF = 64


class TooManyLostError(Exception):
    """More shards of a word are lost than redundancy is left."""


def times8(a: int, b: int) -> int:
    """Multiply bytes modulo x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    for bit in range(7, -1, -1):
        product <<= 1
        if product & 0x100:
            product ^= 0x11D
        if b >> bit & 1:
            product ^= a
    return product


PRODUCTS = [bytes(times8(a, b) for b in range(256)) for a in range(256)]


def times(x: Element, y: Element) -> Element:
    """Multiply elements: u * u = u + 0x22."""
    high = PRODUCTS[x[1]][y[1]]
    low = PRODUCTS[x[0]][y[0]] ^ PRODUCTS[0x22][high]
    return low, PRODUCTS[x[0]][y[1]] ^ PRODUCTS[x[1]][y[0]] ^ high


def plus(x: Element, y: Element) -> Element:
    """Add elements."""
    return x[0] ^ y[0], x[1] ^ y[1]


def inverse(x: Element) -> Element:
    """Return x to the power of 2^16 - 2."""
    result, power = (1, 0), x
    for _ in range(15):
        power = times(power, power)
        result = times(result, power)
    return result


def element(number: int) -> Element:
    """Return e(number)."""
    result = ZERO
    for bit, of in enumerate(BASIS):
        if number >> bit & 1:
            result = plus(result, of)
    return result


def add(a: bytes, b: bytes) -> bytes:
    """Add shards."""
    total = int.from_bytes(a, "little") ^ int.from_bytes(b, "little")
    return total.to_bytes(len(a), "little")


def scaled_bytes(shard: bytes, by: Element) -> bytes:
    """Multiply a shard whose symbols are bytes."""
    assert by[1] == 0, "a byte"
    return shard.translate(PRODUCTS[by[0]])


def scaled_blocks(shard: bytes, by: Element) -> bytes:
    """Multiply a shard of blocks: 64 bytes a, then 64 bytes b."""
    starts = range(0, len(shard), 2 * HALF)
    a = b"".join(shard[at : at + HALF] for at in starts)
    b = b"".join(shard[at + HALF : at + 2 * HALF] for at in starts)
    high = b.translate(PRODUCTS[by[1]])
    low = add(a.translate(PRODUCTS[by[0]]), high.translate(PRODUCTS[0x22]))
    cross = add(a.translate(PRODUCTS[by[1]]), b.translate(PRODUCTS[by[0]]))
    high = add(cross, high)
    halves = range(0, len(low), HALF)
    return b"".join(low[at : at + HALF] + high[at : at + HALF] for at in halves)


def small(information: int, shards: Shards) -> list[bytes]:
    """Return the information of a word of the code of tracks and sets."""

    def factor(i: int, j: int) -> Element:
        x = element(255 - j)
        return times(x, inverse(plus(x, element(i))))

    return solve(information, shards, factor, scaled_bytes)


def large(information: int, shards: Shards) -> list[bytes]:
    """Return the information of a word of the code of large groups."""
    m = 1
    while m < len(shards) - information:
        m *= 2

    def factor(i: int, j: int) -> Element:
        g = element((m + j) // m)
        return times(g, inverse(plus(element(m + j), element(i))))

    return solve(information, shards, factor, scaled_blocks)


def solve(
    information: int,
    shards: Shards,
    factor: Factor,
    scaled: Callable[[bytes, Element], bytes],
) -> list[bytes]:
    """Return the information shards, lost ones from as many equations of redundancy."""
    lost = [at for at in range(information) if shards[at] is None]
    left = [at for at in range(information, len(shards)) if shards[at] is not None]
    if len(left) < len(lost):
        raise TooManyLostError(f"{len(lost)} information shards lost, {len(left)} redundancy left")
    rows, sums = [], []
    for at in left[: len(lost)]:
        i, total = at - information, shards[at]
        assert total is not None
        for j in range(information):
            shard = shards[j]
            # What is all zeros adds nothing.
            if shard is not None and shard.count(0) != len(shard):
                total = add(total, scaled(shard, factor(i, j)))
        rows.append([factor(i, j) for j in lost])
        sums.append(total)
    eliminate(rows, sums, scaled)
    found = dict(zip(lost, sums, strict=True))
    return [found.get(at) or shards[at] or b"" for at in range(information)]


def eliminate(
    rows: list[list[Element]],
    sums: list[bytes],
    scaled: Callable[[bytes, Element], bytes],
) -> None:
    """Solve by Gauss and Jordan: `sums` become the unknowns."""
    for column in range(len(rows)):
        pivot = next(at for at in range(column, len(rows)) if rows[at][column] != ZERO)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        sums[column], sums[pivot] = sums[pivot], sums[column]
        by = inverse(rows[column][column])
        rows[column] = [times(value, by) for value in rows[column]]
        sums[column] = scaled(sums[column], by)
        for row in range(len(rows)):
            by = rows[row][column]
            if row != column and by != ZERO:
                pairs = zip(rows[row], rows[column], strict=True)
                rows[row] = [plus(value, times(other, by)) for value, other in pairs]
                sums[row] = add(sums[row], scaled(sums[column], by))
