"""What an operator does with a set of tomes: one is lost and rebuilt, another is taken out.

The set has a single group of three, and two tomes beside it, whose disks are simulated and take no
time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from harness import KEYS, Server, binary, read, wait_until
from test_events import watching
from test_tomes import BUCKET, MOVED_WITHIN, SIZES, Make, ask, body, run_json, spin_ups
from test_tomes import make as make
from test_tomes_watched import TARGET, Model

# Exit codes of docs/operating.md.
USAGE, NOT_FOUND, UNAVAILABLE, CORRUPT, PARTIAL = 2, 4, 7, 8, 10
TOMES = 5
SHAPE = {"count": TOMES, "groups": "2+1", "segments": 2, "regions": 1, "spares": 512}


def begin(server: Server) -> Any:
    """Make the set, start, put all objects, and wait until the tomes have them."""
    made = {"type": "tome_init", "set": "any", "tomes": TOMES, "added": 0}
    assert run_json(server, "init") | {"set": "any"} == made
    s3 = server.start().s3()
    s3.create_bucket(Bucket=BUCKET)
    for name in SIZES:
        s3.put_object(Bucket=BUCKET, Key=name, Body=body(name), StorageClass="GLACIER_IR")
    wait_until("all is on tomes", lambda: server.status()["objects_staged"] == 0, MOVED_WITHIN)
    return s3


def done(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `fulgurite tier VERB --json` with what it acts on."""
    verb, *rest = arguments
    return ask(server, verb, *rest, "--json")


def report(run: subprocess.CompletedProcess[str]) -> Any:
    """Return the last object that was printed."""
    return json.loads(run.stdout.splitlines()[-1])


def all_there(s3: Any) -> None:
    """Read every object."""
    for name in SIZES:
        assert read(s3, BUCKET, name) == body(name), name


def watch_it_move(server: Server, lost: int) -> None:
    """Wait until the member slot of a lost tome has moved, and the set is healthy again."""
    with watching(server, TARGET) as seen:
        model = Model(seen)
        if model.snapshot["is_well"]:
            assert (model.snapshot["out"], model.snapshot["moves"]) == ([lost], []), model.snapshot
            return  # It was done before anybody looked.
        assert model.snapshot["leaving"] == [lost], model.snapshot
        model.until("it is out", lambda model: [one for one in model.of("leaving") if one["out"]])
        model.until("all is well again", lambda model: model.snapshot["is_well"])
        done = [one["done"] for one in model.of("slot-move") if "failure" not in one]
        assert done and done == sorted(done), done
        assert [one["from"] for one in model.of("slot-moved")] == [lost]
        assert any("rebuilt" in one["alarm"] for one in model.of("alarm")), model.of("alarm")
        assert any(why.startswith(f"tome {lost}: ") for why in model.cleared), model.cleared


def test_lost_tome_is_degraded_read_rebuilt_and_one_retired(make: Make, tmp_path: Path) -> None:
    """Lose the tome with most pieces; read, rebuild, compare, scrub, add, retire."""
    server = make(tmp_path, **SHAPE)
    s3 = begin(server)
    before = spin_ups(server)
    compared = report(done(server, "verify"))
    assert (compared["groups"], compared["agree"], compared["problems"]) == (1, 1, []), compared
    assert compared["signatures"] == 3
    assert spin_ups(server) == before, "a comparison spins up no disk"
    ledger = [json.loads(line) for line in done(server, "ledger").stdout.splitlines()]
    causes = [spin_up["cause"] for spin_up in ledger]
    named = {cause if isinstance(cause, str) else next(iter(cause)) for cause in causes}
    assert named >= {"init", "write"}, named
    assert [spin_up["at"] for spin_up in ledger] == sorted((w["at"] for w in ledger), reverse=True)
    pieces = {tome["tome"]: tome["pieces"] for tome in run_json(server, "status")["tomes"]}
    lost = max(pieces, key=lambda tome: pieces[tome])
    here = done(server, "rebuild", str(lost))
    assert here.returncode == USAGE and "retire" in here.stderr, here.stderr
    assert done(server, "rebuild", "77").returncode == NOT_FOUND
    assert done(server, "scrub", "77").returncode == NOT_FOUND

    server.stop()
    shutil.rmtree(server.data / "tiers" / "tomes" / "disks" / str(lost))
    shutil.rmtree(server.data / "tiers" / "tomes" / f"tome-{lost:04}")
    s3 = server.start().s3()
    all_there(s3)
    seen = run_json(server, "status")
    assert seen["read_without_lost"] >= pieces[lost] > 0 and not seen["is_well"], seen
    compared = done(server, "verify")
    assert compared.returncode == CORRUPT and "is lost or away" in compared.stdout, compared.stdout
    assert done(server, "scrub", str(lost)).returncode == UNAVAILABLE

    page = server.fetch("/metrics")[1].decode()
    assert 'fulgurite_tier_degraded_reads_total{tier="tomes",kind="tome",own="lost"}' in page
    command = [binary(), "tier", "rebuild", "tomes", str(lost), "--data", str(server.data)]
    rebuilding = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | KEYS)
    wait_until("its member slot moves", lambda: run_json(server, "status")["moves"] != [])
    assert run_json(server, "status")["leaving"] == [lost]
    shown = ask(server, "status").stdout
    assert f"slot of group 0: tome {lost} to " in shown, shown
    refused = done(server, "retire", str((lost + 1) % TOMES))
    assert refused.returncode == USAGE and "rebuilt before" in refused.stderr, refused.stderr
    # A leaving tome stops nothing, and planned moves continue after a restart.
    rebuilding.kill()
    rebuilding.wait()
    server.kill()
    s3 = server.start().s3()
    watch_it_move(server, lost)
    all_there(s3)
    rebuilt = done(server, "rebuild", str(lost))
    assert rebuilt.returncode == 0, f"{rebuilt.stdout}{rebuilt.stderr}"
    nothing = {"type": "tier_report", "tome": lost, "slots": 0, "of": 0, "problems": []}
    assert report(rebuilt) == nothing
    seen = run_json(server, "status")
    assert (seen["is_well"], seen["out"], seen["moves"]) == (True, [lost], []), seen
    all_there(s3)
    compared = report(done(server, "verify"))
    assert (compared["agree"], compared["problems"]) == (1, []), compared
    scrubbed = report(done(server, "scrub"))
    healthy = {"type": "tier_report", "tomes": TOMES - 1, "healed": 0, "problems": []}
    assert scrubbed == healthy, scrubbed

    server.stop()
    here = done(server, "rebuild", str((lost + 1) % TOMES))
    assert here.returncode == USAGE and "retire" in here.stderr, "as with a server"
    server.config["tiers"]["tomes"]["count"] = TOMES + 1
    added = report(done(server, "add"))
    assert (added["tomes"], added["added"]) == (TOMES + 1, 1), added
    server.start()
    assert len(run_json(server, "status")["tomes"]) == TOMES + 1


def test_lost_metadata_store_is_rebuilt_from_its_disk(make: Make, tmp_path: Path) -> None:
    """Lose a tome's metadata store but not its disk: once with a server, once without."""
    server = make(tmp_path, **SHAPE)
    begin(server)
    pieces = {tome["tome"]: tome["pieces"] for tome in run_json(server, "status")["tomes"]}
    lost = max(pieces, key=lambda tome: pieces[tome])
    here = done(server, "inventory", str(lost))
    assert here.returncode == USAGE and "is not lost" in here.stderr, here.stderr
    assert done(server, "inventory", "77").returncode == NOT_FOUND
    expected = {
        "type": "tier_report",
        "tome": lost,
        "is_rebuilt": True,
        "pieces": pieces[lost],
        "bad": 0,
        "problems": [],
    }

    server.stop()
    shutil.rmtree(server.data / "tiers" / "tomes" / f"tome-{lost:04}")
    s3 = server.start().s3()
    all_there(s3)
    inventoried = done(server, "inventory", str(lost))
    assert inventoried.returncode == 0, f"{inventoried.stdout}{inventoried.stderr}"
    assert report(inventoried) == expected | {"is_rebuilt": False, "pieces": 0}
    reasons = run_json(server, "status")["reasons"]
    assert any("was read whole" in why for why in reasons), reasons
    server.stop()
    s3 = server.start().s3()
    assert run_json(server, "status")["is_well"], run_json(server, "status")
    all_there(s3)
    compared = report(done(server, "verify"))
    assert (compared["agree"], compared["problems"]) == (1, []), compared

    server.stop()
    shutil.rmtree(server.data / "tiers" / "tomes" / f"tome-{lost:04}" / "awake")
    inventoried = done(server, "inventory", str(lost))
    assert inventoried.returncode == 0, f"{inventoried.stdout}{inventoried.stderr}"
    assert report(inventoried) == expected
    s3 = server.start().s3()
    assert run_json(server, "status")["is_well"], run_json(server, "status")
    all_there(s3)
