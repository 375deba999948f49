"""`hone-team`: a member's node, and what an administrator does in addition to `flwr run`."""

import argparse
import sys
from pathlib import Path

from hone_team import core, node, privacy
from hone_team.versions import Versions, WrongRound


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["node"]:
        # Its options are those of Flower's SuperNode.
        return node.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="hone-team", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "node", help="a member's SuperNode, with the options of flower-supernode"
    )
    noise = commands.add_parser("noise", help="the team.noise for an epsilon")
    noise.add_argument("--epsilon", type=float, required=True)
    noise.add_argument("--rounds", type=int, required=True)
    noise.add_argument("--delta", type=float, default=1e-5)
    show = commands.add_parser("show", help="the versions in a folder")
    drop = commands.add_parser("drop", help="make a version without what one round added")
    drop.add_argument("--version", type=int, required=True)
    for each in (show, drop):
        each.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args(arguments)
    if given.command == "noise":
        print(f"team.noise = {privacy.noise_for(given.epsilon, given.rounds, given.delta):.4f}")
        return 0
    versions = Versions.known(given.folder)
    if versions is None:
        print(f"{given.folder}: holds no versions", file=sys.stderr)
        return 1
    try:
        if given.command == "drop":
            versions.drop(given.version)
            print(f"version {versions.version} is without what made version {given.version}")
        else:
            _show(versions)
    except WrongRound as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _show(versions: Versions) -> None:
    for number, made in enumerate(versions.rounds, start=1):
        dropped = ", dropped since" if made.get("dropped") else ""
        norm = core.norm(versions.core(number))
        print(f"version {number}: {_origin(made)}{dropped}, norm {norm:.3f}")


def _origin(made: dict) -> str:
    """What a version was made of."""
    if "without" in made:
        return f"without {made['without']}"
    if made["members"] == 0:
        return "like the one before, as its round failed"
    return f"{made['members']} members"


if __name__ == "__main__":
    sys.exit(main())
