"""docs/damage.md, row by row: what a damaged file costs, what is seen, and what to do.

The table of the document is the list of these tests: a row that is not true fails. With
FULGURITE_TEST_DAMAGE_WRITE=1 the rows of which the start is "-" are measured and written, with =all
every row: to be looked at before they are kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import NewFolder
from damage_cases import (
    DAMAGES,
    LIBRARY_LOG,
    Example,
    KeyedServer,
    damage,
    lost_objects,
    make_example,
    place,
    start_or_code,
)
from harness import ROOT, Server

DOCUMENT = ROOT / "docs" / "damage.md"
WRITES = os.environ.get("FULGURITE_TEST_DAMAGE_WRITE", "")
HEADINGS = ["file", "damage", "a start", "what is seen", "lost", "what to do"]
NOTHING = "nothing"
RECOVER = "`fulgurite recover`"
MOVE_AND_RECOVER = "move `catalog` away, `fulgurite recover`"
# Everything was recovered; with 12, keys are left that may be of uploads that a kill cut short.
RECOVERED = (0, 12)
SALVAGE = "`fulgurite recover --salvage`"
BRING_BACK = "bring it back"
REMOVE = "remove it"
SEEN_CHARS_MAX = 64


@dataclass
class Row:
    """One row of the table, as its cells."""

    file: str
    damage: str
    start: str
    seen: str
    lost: str
    todo: str

    def __str__(self) -> str:
        """Write it as the document has it."""
        cells = [f"`{self.file}`", self.damage, self.start, self.seen, self.lost, self.todo]
        return f"| {' | '.join(cells)} |"

    @property
    def name(self) -> str:
        """Name the test of this row."""
        return f"{self.file}-{self.damage}".replace(" ", "-")


def rows() -> list[Row]:
    """Read the table; its grammar is the one of these tests."""
    found = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(HEADINGS) and cells[1] in DAMAGES:
            found.append(Row(cells[0].strip("`"), *cells[1:]))
    assert found, f"no rows in {DOCUMENT}"
    return found


@pytest.fixture(scope="module")
def example(new_folder: NewFolder) -> Example:
    """One archive of which every row damages a copy."""
    return make_example(new_folder("example") / "archive")


@dataclass
class Patient:
    """A copy of the example with one damage."""

    server: Server
    example: Example
    files: list[str]

    def damage(self, how: str) -> None:
        """Damage the file."""
        for file in self.files:
            damage(self.server.data / file, how, self.example.before / file)

    def bring_back(self) -> None:
        """Put the file back as it was, as from a copy that somebody kept."""
        self.server.kill()
        for file in self.files:
            good, bad = self.example.now / file, self.server.data / file
            shutil.rmtree(bad) if bad.is_dir() else bad.unlink(missing_ok=True)
            shutil.copytree(good, bad) if good.is_dir() else shutil.copy2(good, bad)

    def remove(self) -> None:
        """Take the file away, for another to be made."""
        self.server.kill()
        for file in self.files:
            (self.server.data / file).unlink(missing_ok=True)

    def recover(self, todo: str) -> int:
        """Run `recover` as the row says: its exit code."""
        catalog = self.server.data / "catalog"
        if MOVE_AND_RECOVER in todo and catalog.exists():
            catalog.rename(self.server.folder / "catalog.moved")
        flags = ["--salvage"] if SALVAGE in todo else []
        self.server.kill()
        config = str(self.server.folder / "config.toml")
        data = str(self.server.data)
        done = self.server.run("recover", "--data", data, "--config", config, *flags)
        return done.returncode

    def outcome(self) -> tuple[str, str]:
        """Start it: what the row says of the start, and what is lost if it serves."""
        code = start_or_code(self.server)
        if code:
            return f"ends with {code}", "everything"
        lost = lost_objects(self.server, self.example.objects)
        return "serves", ", ".join(lost) or NOTHING


@pytest.fixture
def patients(example: Example, tmp_path: Path) -> Iterator[object]:
    """Make copies of the example; their servers are killed at the end."""
    made: list[Patient] = []

    def make(name: str) -> Patient:
        folder = tmp_path / f"patient{len(made)}"
        shutil.copytree(example.now, folder / "data")
        files = [place(example.now, part) for part in name.split(" and ")]
        # What is in the way of TLS shows only with it.
        tls = "auto" if name.startswith("tls/") else None
        patient = Patient(KeyedServer(folder=folder, tls=tls), example, files)
        made.append(patient)
        return patient

    yield make
    for patient in made:
        patient.server.kill()
    shutil.rmtree(tmp_path)


def measure(make: object, file: str, how: str) -> Row:
    """Find out what a row should say."""
    patient = make(file)  # type: ignore[operator]
    patient.damage(how)
    start, lost = patient.outcome()
    seen = words_of(patient.server)
    if lost == NOTHING:
        return Row(file, how, start, seen, NOTHING, NOTHING)
    if file.startswith("tls/") or file == LIBRARY_LOG:
        patient.remove()
        if patient.outcome() == ("serves", NOTHING):
            return Row(file, how, start, seen, NOTHING, REMOVE)
    ways = (SALVAGE,) if start == "serves" else (RECOVER, SALVAGE, MOVE_AND_RECOVER)
    if file.startswith("catalog") or start != "serves":
        for todo in ways:
            other = make(file)  # type: ignore[operator]
            other.damage(how)
            start_or_code(other.server)
            if other.recover(todo) in RECOVERED:
                served, left = other.outcome()
                if left == NOTHING:
                    return Row(file, how, start, seen, NOTHING, todo)
                if served == "serves":
                    lost = left
                    break
        else:
            todo = ""
    else:
        todo = ""
    patient.bring_back()
    if patient.outcome() == ("serves", NOTHING):
        todo = f"{BRING_BACK}; else {todo}" if todo else BRING_BACK
    return Row(file, how, start, seen, lost, todo or "-")


def words_of(server: Server) -> str:
    """Find words of the log that do not change from run to run."""
    for line in server.log.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.search(r" (WARN|ERROR) |^fulgurite: ", line):
            plain = re.sub(
                r"^.*?(WARN|ERROR)\s+(request\{[^}]*\}: )?(\w|::)+: |^fulgurite: ", "", line
            )
            variable = r'"[^"]*"|[\w-]*=\S*|\S*\d\S*|/\S*|\x1b\[[\d;]*m'
            pieces = [piece.strip(" :,;") for piece in re.split(variable, plain)]
            return f"`{max(pieces, key=len)[:SEEN_CHARS_MAX].strip()}`"
    return "-"


@pytest.mark.skipif(bool(WRITES), reason="the table is being written")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_row(patients: object, row: Row) -> None:
    """Damage the file, start, do what the row says, and count what is left."""
    patient = patients(row.file)  # type: ignore[operator]
    patient.damage(row.damage)
    start, lost = patient.outcome()
    log = patient.server.log.read_text(encoding="utf-8", errors="replace")
    assert start == row.start, log
    if row.seen != "-":
        assert row.seen.strip("`") in log
    if start == "serves" and row.todo != REMOVE:
        assert lost == row.lost, log
    if row.todo.startswith(BRING_BACK):
        other = patients(row.file)  # type: ignore[operator]
        other.damage(row.damage)
        start_or_code(other.server)
        other.bring_back()
        assert other.outcome() == ("serves", NOTHING)
    if row.todo == REMOVE:
        patient.remove()
        assert patient.outcome() == ("serves", row.lost)
    if RECOVER in row.todo or SALVAGE in row.todo:
        assert patient.recover(row.todo) in RECOVERED
        assert patient.outcome() == ("serves", row.lost)


TABLES = "catalog/keyspaces/N/tables/N"


@pytest.mark.skipif(bool(WRITES), reason="the table is being written")
def test_one_bit_of_any_table(patients: object, example: Example) -> None:
    """Damage each table of the catalog in turn: what the row of the largest says is true of all."""
    row = next(row for row in rows() if (row.file, row.damage) == (TABLES, "one bit"))
    pattern = TABLES.replace("N", "*")
    tables = sorted(str(path.relative_to(example.now)) for path in example.now.glob(pattern))
    assert len(tables) > 1, tables
    for table in tables:
        patient = patients(table)  # type: ignore[operator]
        patient.damage(row.damage)
        code = start_or_code(patient.server)
        log = patient.server.log.read_text(encoding="utf-8", errors="replace")
        assert f"ends with {code}" == row.start, f"{table}: {log}"
        assert row.seen.strip("`") in log, table
        assert patient.recover(row.todo) in RECOVERED, table
        assert patient.outcome() == ("serves", row.lost), table
        patient.server.kill()
        shutil.rmtree(patient.server.folder)


def test_no_row_is_missing() -> None:
    """Each file has a row for each damage that can be done to it."""
    named = {(row.file, row.damage) for row in rows()}
    files = {row.file for row in rows()}
    every = {(file, how) for file in files for how in DAMAGES if is_possible(file, how)}
    assert named == every, named ^ every


def is_possible(file: str, how: str) -> bool:
    """A folder is there or not; segments are not written again; keys are made at random."""
    if file.endswith("/"):
        return how in ("missing", "older copy")
    if file == "lock":
        return how == "missing"
    if file.startswith("tls/"):
        return how != "one bit"
    return not (file.endswith((".seg", ".glass")) and how == "older copy")


@pytest.mark.skipif(not WRITES, reason="measures the table again")
def test_write_the_table(patients: object) -> None:
    """Measure each row that the table has, and write it."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for row in [row for row in rows() if WRITES == "all" or row.start == "-"]:
        print(now := measure(patients, row.file, row.damage), flush=True)
        text = text.replace(next(iter(lines_of(text, row))), str(now))
        DOCUMENT.write_text(text, encoding="utf-8")


def lines_of(text: str, row: Row) -> list[str]:
    """The line of the document that a row was read from."""
    begin = re.compile(
        rf"^\| `{re.escape(row.file)}` \| {re.escape(row.damage)} \|.*$", re.MULTILINE
    )
    return begin.findall(text)
