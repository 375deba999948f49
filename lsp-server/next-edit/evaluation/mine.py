#!/usr/bin/env python3
"""Mines cases for the evaluation of next edits from git histories.

    mine.py HALF HISTORIES > cases.jsonl
    mine.py HALF HISTORIES first > first.jsonl

HISTORIES is a folder with one bare repository for each line of `repositories.csv` that has this
half, as `owner+name/repo`. Commits are typed as a person would: file by file and from the top to
the bottom, a hunk with as many old as new lines line by line, another hunk at once.

A case is a moment of a commit. In one that expects an edit, the last step is the second or a later
one of its kind, and at least one more of that kind is still to come. In one that expects silence,
nothing that was done so far comes again; in half of these, as far as there are any, a kind has just
been repeated for the last time. In a `single` one, the next step has no twin: nobody has done one
of its kind yet, and a person types it in one go. Such steps are what a model is for; rules are
mostly silent there, and what they show is held to all that is to come.
What is "of one kind" is told here, apart from the program that is measured: the same tokens of a
line became the same others, or the same lines were deleted. A step of no kind has a twin where
the same lines became the same ones.

With `first`, cases of one more sort are mined alone: the last step changed a line as no step before
it did, and something is still to come. What one edit says of the next one is measured by them.

These cases hold code of others. They are made where they are scored, and are not committed. The
half `own` is this project's history: its cases are committed as `cases.jsonl`, cut down to the
lines that they need.
"""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys

SINCE = "2024-10-01"
COMMITS_MAX = 800
FILES_MAX = 20
STEPS_MAX = 200
BYTES_MAX = 512 * 1024
CASES_OF_A_KIND = {"own": 160}
CASES_OF_A_KIND_ELSE = 12
FIRST_CASES = 300
SINGLE_CASES = {"own": 34}
# Moments of one commit and sort, each with another kind of step just done. Of single ones, a
# commit gives one: there are enough commits.
MOMENTS = {"own": 6}
# The old and the new lines of a step that is typed in one go.
LINES_AT_ONCE = 5
# Of a case that is committed: the latest steps that stay, the lines around each, and the characters
# of its texts.
STEPS_KEPT = 10
LINES_AROUND = 2
CHARACTERS_MAX = 16 * 1024
EXTENSIONS = set(
    "bash c cc cpp cs css cxx dart ex exs go h hpp hs java jl js jsx kt lua mjs ml php pl py rb rs "
    "scala sh swift ts tsx zig".split()
)
FOREIGN = {"node_modules", "vendor", "third_party", "external", "dist", "target", "generated",
           "snapshots", "__snapshots__"}
TOKEN = re.compile(r"\w+|[^\w\s]")
WORD = re.compile(r"\w+")
# A line that imports, or an item of a list of imports that names a module.
IMPORT = re.compile(r"\s*(" + "|".join([
    r"(pub(\(.*?\))?\s+)?use\s", r"import\b", r"from\s+\S+\s+import\b", r"#\s*include\b",
    r"using\s+(namespace\s+|static\s+)?[\w.:]+;", r"(export\b.*|\}\s*)from\s+['\"]",
    r"((local|const|let|var)\s.*=\s*)?(@import|require\w*)\s*\(?['\"][^'\"]*['\"]\)?;?$",
    r"([\w.]+\s+(?=.*/))?\"[\w./-]+\"$", r"[\w:]+::\{[^}]*\},$",
]) + ")")
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def git(repository, *arguments):
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def draw(*words):
    """A number that only the words decide."""
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()


def is_typed(path):
    folders = path.split("/")[:-1]
    return path.rsplit(".", 1)[-1] in EXTENSIONS and not FOREIGN & set(folders)


def hunks(repository, commit):
    """The hunks of each file that the commit changes: (old line, old lines, new lines), from 0."""
    diff = git(repository, "show", "--format=", "--unified=0", "--no-renames", "--diff-filter=M",
               "--no-color", "--no-ext-diff", commit).decode("utf-8", "surrogateescape")
    files, path, left = {}, None, (0, 0)
    for line in diff.split("\n"):
        found = HUNK.match(line) if left == (0, 0) else None
        if found:
            start, old, _, new = (int(n) if n is not None else 1 for n in found.groups())
            left = (old, new)
            files.setdefault(path, []).append((start - 1 if old else start, [], []))
        elif left != (0, 0) and line[:1] == "-":
            files[path][-1][1].append(line[1:])
            left = (left[0] - 1, left[1])
        elif left != (0, 0) and line[:1] == "+":
            files[path][-1][2].append(line[1:])
            left = (left[0], left[1] - 1)
        elif left == (0, 0) and line.startswith("+++ "):
            path = line[4:].strip('"\t')[2:]
    return files


def kind(old, new):
    """What kind of edit a step is, or None."""
    if old and not new:
        lines = tuple(tuple(TOKEN.findall(line)) for line in old if line.strip())
        return ("deleted", lines) if any(re.search(r"\w", line) for line in old) else None
    if len(old) != 1 or len(new) != 1:
        return None
    old, new = TOKEN.findall(old[0]), TOKEN.findall(new[0])
    prefix = 0
    while prefix < min(len(old), len(new)) and old[prefix] == new[prefix]:
        prefix += 1
    suffix = 0
    while suffix < min(len(old), len(new)) - prefix and old[-1 - suffix] == new[-1 - suffix]:
        suffix += 1
    before, after = old[prefix:len(old) - suffix], new[prefix:len(new) - suffix]
    if not before and not after:
        return None
    left = None if before and after else old[prefix - 1] if prefix else ""
    return ("rewritten", left, tuple(before), tuple(after))


def steps(files):
    """(file, line in the old text, old lines, new lines, kind), in the order of typing."""
    for path, changes in files.items():
        for start, old, new in changes:
            if len(old) == len(new):
                for at, (a, b) in enumerate(zip(old, new)):
                    yield path, start + at, [a], [b], kind([a], [b])
            else:
                yield path, start, old, new, kind(old, new)


def is_typed_at_once(old, new):
    """Whether a step is short and changes more than blanks and imports."""
    return (max(len(old), len(new)) <= LINES_AT_ONCE
            and TOKEN.findall("\n".join(old)) != TOKEN.findall("\n".join(new))
            and not all(IMPORT.match(line) for line in old + new if line.strip()))


def moments(all_steps):
    """How many steps are done at moments of each sort."""
    kinds = [step[4] for step in all_steps]
    wanted, hard, easy, single, first = [], [], [], [], []
    for done in range(1, len(kinds) + 1):
        so_far, left = kinds[:done], set(kinds[done:]) - {None}
        last = kinds[done - 1]
        if last and last[0] == "rewritten" and so_far.count(last) == 1 and done < len(kinds):
            first.append(done)
        if done < len(kinds):
            lines, kind_of_next = all_steps[done][2:4], kinds[done]
            was_done = any(step[2:4] == lines for step in all_steps[:done])
            has_twin = was_done or (kind_of_next is not None and kind_of_next in so_far)
            if not has_twin and is_typed_at_once(*lines):
                single.append(done)
        if done < 2:
            continue
        repeats = last is not None and so_far.count(last) >= 2
        if repeats and last in left:
            wanted.append(done)
        elif not set(so_far) & left:
            (hard if repeats else easy).append(done)
    return {"edit": wanted, "hard": hard, "easy": easy, "single": single, "first": first}


def case(repository, commit, all_steps, done, sort):
    names = list(dict.fromkeys(step[0] for step in all_steps))
    files = []
    for name in names:
        text = git(repository, "show", f"{commit}^:{name}")
        if len(text) > BYTES_MAX:
            return None
        try:
            files.append({"name": name, "text": text.decode("utf-8")})
        except UnicodeDecodeError:
            return None
    shown = [[names.index(path), line, old, new] for path, line, old, new, _ in all_steps]
    return {"commit": commit, "sort": sort, "files": files, "done": shown[:done],
            "left": shown[done:]}


def cut_down(made, kinds):
    """The case with the latest steps, those of their kinds, and the lines that a rule could touch.
    A single one keeps the next step's lines as well. None if it is still long."""
    done, last = made["done"], len(made["done"]) - STEPS_KEPT
    recent = set(kinds[max(last, 0):len(done)]) - {None}
    is_kept = [at >= last or kinds[at] in recent for at in range(len(done))]
    words = {word for one in recent for word in changed_words(one)}
    to_come = made["left"][:1] if made["sort"] == "single" else []
    files, moved = [], []
    for number, file in enumerate(made["files"]):
        lines = file["text"].split("\n")
        near = {len(lines) - 1}
        replaced = {}
        for (of, at, old, new), kept in zip(done + to_come, is_kept + [True]):
            if of == number and kept:
                near.update(range(at - LINES_AROUND, at + len(old) + LINES_AROUND))
            elif of == number:
                replaced[at] = (len(old), new)
        kept, place, at = [], {}, 0
        while at < len(lines):
            if at in replaced:
                old, new = replaced[at]
                kept += [line for line in new if words & set(WORD.findall(line))]
                at += old
                if old:
                    continue
            if at in near or words & set(WORD.findall(lines[at])):
                place[at] = len(kept)
                kept.append(lines[at])
            at += 1
        files.append({"name": file["name"], "text": "\n".join(kept)})
        moved.append(place)
    if sum(len(file["text"]) for file in files) > CHARACTERS_MAX:
        return None
    stays = lambda step: all(step[1] + at in moved[step[0]] for at in range(max(len(step[2]), 1)))
    place = lambda step: [step[0], moved[step[0]][step[1]], step[2], step[3]]
    shown = [place(step) for step, kept in zip(done, is_kept) if kept]
    return {**made, "files": files, "done": shown,
            "left": [place(step) for step in made["left"] if stays(step)]}


def changed_words(one):
    lines = one[2:] if one[0] == "rewritten" else one[1]
    return [word for line in lines for word in line if WORD.fullmatch(word)]


def cases(name, repository, half, only_first):
    most = FIRST_CASES if only_first else CASES_OF_A_KIND.get(half, CASES_OF_A_KIND_ELSE)
    log = git(repository, "log", "--no-merges", f"--since={SINCE}", "--format=%H %P", "HEAD")
    commits = [line.split()[0] for line in log.decode().split("\n") if len(line.split()) == 2]
    commits.sort(key=lambda commit: draw(name, commit))
    found = {"first": []} if only_first else {"edit": [], "hard": [], "easy": [], "single": []}
    for commit in commits[:COMMITS_MAX]:
        files = {path: of for path, of in hunks(repository, commit).items() if is_typed(path)}
        all_steps = list(steps(files))
        if not 0 < len(files) <= FILES_MAX or len(all_steps) > STEPS_MAX:
            continue
        for sort, at in moments(all_steps).items():
            if sort not in found:
                continue
            by_kind = {}
            for done in sorted(at, key=lambda done: draw(commit, sort, done)):
                by_kind.setdefault(all_steps[done - 1][4], done)
            moments_most = 1 if sort == "single" else MOMENTS.get(half, 1)
            for done in list(by_kind.values())[:moments_most]:
                made = case(repository, commit, all_steps, done, sort)
                if made and half == "own" and not only_first:
                    made = cut_down(made, [step[4] for step in all_steps])
                if made and len(found[sort]) < most:
                    found[sort].append({"repository": name, **made})
        if all(len(of) == most for of in found.values()):
            break
    if only_first:
        return found["first"]
    count = len(found["edit"])
    hard = found["hard"][:count // 2]
    single = found["single"][:SINGLE_CASES.get(half, count)]
    return found["edit"] + hard + found["easy"][:count - len(hard)] + single


def main():
    half, histories, *sorts = sys.argv[1:]
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "repositories.csv")
    with open(table, encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["half"] == half:
                path = os.path.join(histories, row["repository"].replace("/", "+"), "repo")
                if not os.path.isdir(path):
                    print(row["repository"], "is not there", file=sys.stderr)
                    continue
                of_it = cases(row["repository"], path, half, sorts == ["first"])
                print(row["repository"], len(of_it), file=sys.stderr)
                for one in of_it:
                    print(json.dumps(one))


if __name__ == "__main__":
    main()
