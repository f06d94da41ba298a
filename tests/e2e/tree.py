"""A folder of files that archives get wrong: odd names and sizes, and the project's sources."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from harness import MIB, ROOT, sha256_file

# Every name here has broken some client or server: URL encoding, XML, quoting, Unicode forms.
ODD_NAMES = [
    "with space.txt",
    " leading and trailing ",
    "plus+plus.txt",
    "percent%20literal.txt",
    "percent%.txt",
    "100%25 sure%2Fnot a slash",
    "ampersand&semicolon;.txt",
    "equals=question?.txt",
    "hash#fragment.txt",
    "quote'single.txt",
    'quote"double.txt',
    "less<greater>.xml",
    "]]>cdata.xml",
    "back\\slash.txt",
    "colon:semicolon;comma,.txt",
    "star*bracket[a].txt",
    "curly{b}pipe|caret^tilde~.txt",
    "dollar$at@bang!.txt",
    "paren(1).txt",
    "dots...many...dots",
    ".hidden",
    "trailing.dot.",
    "-dash-first",
    "--help",
    "`backtick`",
    "caf\u00e9 composed.txt",
    "cafe\u0301 decomposed.txt",
    "\u65e5\u672c\u8a9e\u306e\u30d5\u30a1\u30a4\u30eb.txt",
    "\u0440\u0443\u0441\u0441\u043a\u0438\u0439.txt",
    "\u05e2\u05d1\u05e8\u05d9\u05ea.txt",
    "emoji \U0001f5ff\U0001f4be.bin",
    "null-like %00 literal",
    "con.aux",
    "0",
    "x" * 255,
    "%2B" * 80,
]
BIG_SIZES = [64 * MIB, 20 * MIB, 8 * MIB + 1, 8 * MIB, 8 * MIB - 1, 5 * MIB, MIB + 1]
# Around the boundaries of frames (64 KiB) and of sectors of the demo profile (8 KiB).
EDGE_SIZES = [0, 1, 15, 16, 17, 4095, 4096, 8191, 8192, 8193, 65535, 65536, 65537, 131072, 131073]
SOURCE_FOLDERS = ["crates", "docs", "xtask", "tests"]
SOURCE_SUFFIXES = {".rs", ".py", ".md", ".toml"}


def make(folder: Path, count: int, seed: int, is_large: bool) -> dict[str, str]:
    """Fill `folder` with `count` files; the digest of each by its path with slashes."""
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    for at, name in enumerate(ODD_NAMES):
        write(folder / "odd" / name, rng.randbytes(97 * at))
    for at, size in enumerate(EDGE_SIZES + (BIG_SIZES if is_large else BIG_SIZES[-1:])):
        write(folder / "sizes" / f"{at:02} {size}.bin", rng.randbytes(size))
    # As deep as a key may be long: 1,024 bytes with the slashes.
    deep = "/".join(["d" * 200] * 4)
    write(folder / deep / ("f" * (1024 - len(deep) - 1)), b"the longest key")
    copy_sources(folder / "sources", limit=count // 3)
    made = sum(1 for path in folder.rglob("*") if path.is_file())
    for at in range(count - made):
        name = f"files {at % 7}/{rng.choice(ODD_NAMES[:24])} {at:05}"
        write(folder / name, rng.randbytes(int(rng.expovariate(1 / 3000))))
    return digests(folder)


def write(path: Path, data: bytes) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def copy_sources(folder: Path, limit: int) -> None:
    """Copy the project's own files, at most `limit` of them."""
    found = [path for name in SOURCE_FOLDERS for path in sorted((ROOT / name).rglob("*"))]
    files = [path for path in found if path.suffix in SOURCE_SUFFIXES and path.is_file()]
    for path in files[:limit]:
        to = folder / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder`, by its path with slashes."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths}
