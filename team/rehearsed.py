"""What a rehearsal of a team came to: characters completed in one arm and in another."""

import json
import random
from pathlib import Path

DRAWINGS = 2000
# From fewer commits there is no interval, as in `hone rehearse`.
COMMITS_MIN = 8

# The characters that two arms completed of a commit. The second is compared with the first.
Commit = tuple[int, int]


def commits(report: Path, arms: tuple[str, str], from_share: float = 0.0) -> list[Commit]:
    """What two arms of a report completed of each commit that all arms came to, from a share of the
    commits on, such as 0.5 for the last half."""
    typed = []
    for rehearsal in json.loads(report.read_text())["rehearsals"]:
        names = [arm["name"] for arm in rehearsal["arms"]]
        places = [names.index(arm) for arm in arms]
        typed += [
            tuple(commit["arms"][place]["completed_chars"] for place in places)
            for commit in rehearsal["commits"]
            if len(commit["arms"]) == len(names)
        ]
    return typed[int(len(typed) * from_share):]


def change(drawn: list[Commit]) -> float | None:
    """The relative change of the characters; None if the first arm completed nothing."""
    before, after = (sum(each) for each in zip(*drawn))
    return after / before - 1 if before else None


def interval(all_commits: list[Commit]) -> tuple[float, float] | None:
    """The 95 % interval of `change`, by a bootstrap that draws whole commits."""
    if len(all_commits) < COMMITS_MIN:
        return None
    source = random.Random(1)
    drawings = (source.choices(all_commits, k=len(all_commits)) for _ in range(DRAWINGS))
    changes = sorted(found for found in map(change, drawings) if found is not None)
    if not changes:
        return None
    return tuple(changes[round(share * (len(changes) - 1))] for share in (0.025, 0.975))


def row(name: str, all_commits: list[Commit]) -> str:
    before, after = (sum(each) for each in zip(*all_commits)) if all_commits else (0, 0)
    relative = change(all_commits) if all_commits else None
    told = "" if relative is None else f"{relative:+.1%}"
    between = interval(all_commits)
    if between:
        told += f" ({between[0]:+.1%} … {between[1]:+.1%})"
    return f"| {name} | {len(all_commits)} | {before:,} | {after:,} | {told} |"


def table(columns: tuple[str, str], groups: dict[str, dict[str, list[Commit]]]) -> str:
    """A table in Markdown: a row for each person, and one for each group together. The columns are
    what the two arms are called."""
    lines = [f"| | commits | {columns[0]} | {columns[1]} | |", "|---|---|---|---|---|"]
    for group, people in groups.items():
        lines += [row(name, typed) for name, typed in people.items()]
        together = [commit for typed in people.values() for commit in typed]
        lines.append(row(f"**{group} together**", together))
    return "\n".join(lines)
