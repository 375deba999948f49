"""What a rehearsal of a team came to: characters completed with the team's adapter and without."""

import json
import random
from pathlib import Path

DRAWINGS = 2000
# From fewer commits there is no interval, as in `hone rehearse`.
COMMITS_MIN = 8

# The characters that the base model completed of a commit, and those of the team's adapter.
Commit = tuple[int, int]


def commits(report: Path, from_share: float = 0.0) -> list[Commit]:
    """The commits of a report from a share of them on, such as 0.5 for the last half."""
    typed = [
        tuple(arm["completed_chars"] for arm in commit["arms"])
        for rehearsal in json.loads(report.read_text())["rehearsals"]
        for commit in rehearsal["commits"]
        if len(commit["arms"]) == 2
    ]
    return typed[int(len(typed) * from_share):]


def change(drawn: list[Commit]) -> float | None:
    """The relative change of the characters; None if the base model completed nothing."""
    base, team = (sum(each) for each in zip(*drawn))
    return team / base - 1 if base else None


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
    base, team = (sum(each) for each in zip(*all_commits)) if all_commits else (0, 0)
    relative = change(all_commits) if all_commits else None
    told = "" if relative is None else f"{relative:+.1%}"
    between = interval(all_commits)
    if between:
        told += f" ({between[0]:+.1%} … {between[1]:+.1%})"
    return f"| {name} | {len(all_commits)} | {base:,} | {team:,} | {told} |"


def table(groups: dict[str, dict[str, list[Commit]]]) -> str:
    """A table in Markdown: a row for each person, and one for each group together."""
    lines = ["| | commits | base model | team's adapter | |", "|---|---|---|---|---|"]
    for group, people in groups.items():
        lines += [row(name, typed) for name, typed in people.items()]
        together = [commit for typed in people.values() for commit in typed]
        lines.append(row(f"**{group} together**", together))
    return "\n".join(lines)
