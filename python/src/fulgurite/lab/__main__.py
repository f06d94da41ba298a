"""The command line of the lab: `python -m fulgurite.lab`.

Progress goes to standard error, results to files and standard output. Exit code 1 is an error of
the user's making, with one line that names it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fulgurite.lab import config
from fulgurite.lab.errors import LabError


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fulgurite.lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a network")
    train.add_argument("config", type=Path, metavar="CONFIG.toml")
    train.add_argument("--out", type=Path, metavar="FOLDER", help="default: runs/NAME")
    train.set_defaults(run=_train)
    return parser


def _train(options: argparse.Namespace) -> None:
    from fulgurite.lab import train

    wanted = config.load(options.config)
    folder = options.out or Path("runs") / wanted.name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.ndjson").open("w", encoding="utf-8") as log:
        train.train(wanted, _teller(log.write)).save(folder / "model.pt")
    print(folder / "model.pt")


def _teller(write: Callable[[str], object]) -> Callable[[dict[str, Any]], None]:
    def say(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        write(text + "\n")
        print(text, file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
