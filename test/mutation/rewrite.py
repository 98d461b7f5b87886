"""Chooses sites at random and writes a copy of the project in which all of them are switched by WEFT_MUTANT."""
import collections
import fnmatch
import os
import pathlib
import random

import sites

AS_THEY_ARE = ["CMakeLists.txt", "cmake", "test", "README.md", "LICENSE", "tools"]  # links to the project's


def in_random_order(found, seed, files=()):
    """At most one site of a line, lines in random order: code that offers many mutations is not broken more often."""
    lines = collections.defaultdict(list)
    for site in found:
        if not files or any(fnmatch.fnmatch(site.file, pattern) for pattern in files):
            lines[site.file, site.line].append(site)
    choice = random.Random(seed)
    order = sorted(lines)
    choice.shuffle(order)
    return [choice.choice(lines[place]) for place in order]


def overlaps(a, b):
    return a.file == b.file and a.start < max(b.end, b.start + 1) and b.start < max(a.end, a.start + 1)


def take(candidates, wanted, taken, first_number=1):
    """Takes from the front of `candidates` until there are `wanted` in `taken`; ranges do not overlap."""
    while candidates and len(taken) < wanted:
        site = candidates.pop(0)
        if not any(overlaps(site, other) for other in taken):
            site.number = max([first_number - 1, *(t.number for t in taken)]) + 1
            taken.append(site)


def rewritten(text, of_this_file):
    """The text with its sites switched, and for each site its lines (first, last) in the new text."""
    parts, at, line, places = [], 0, 1, {}

    def put(part):
        nonlocal line
        parts.append(part)
        line += part.count("\n")
    for site in sorted(of_this_file, key=lambda s: s.start):
        put(text[at:site.start])
        first = line
        put(site.switched.replace("WEFT_MUTANT({})", f"WEFT_MUTANT({site.number})").format())
        places[site.number] = (first, line)
        at = site.end
    put(text[at:])
    return "".join(parts), places


def write_if_new(path, text):
    if not path.exists() or path.read_text(encoding="latin-1") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1")


def write_tree(root, tree, taken):
    """file -> {number: (first line, last line)} of the sites in the copy"""
    root, tree = pathlib.Path(root), pathlib.Path(tree)
    tree.mkdir(parents=True, exist_ok=True)
    for name in AS_THEY_ARE:
        if not os.path.lexists(tree / name):
            (tree / name).symlink_to(root / name)
    by_file = collections.defaultdict(list)
    for site in taken:
        by_file[site.file].append(site)
    places, kept = {}, set()
    for directory in ("src", "include"):
        for path in (root / directory).rglob("*"):
            if path.is_file():
                file = str(path.relative_to(root))
                text, places[file] = rewritten(path.read_text(encoding="latin-1"), by_file[file])
                write_if_new(tree / file, text)
                kept.add(file)
        for path in (tree / directory).rglob("*"):
            if path.is_file() and str(path.relative_to(tree)) not in kept:
                path.unlink()
    return places


def blamed(places, file, line):
    """The numbers of the mutants that stand on a line of the copy."""
    return {n for n, (first, last) in places.get(file, {}).items() if first <= line <= last}


def drop_what_clang_refuses(tree, places, header):
    """Numbers of mutants in which clang finds an error."""
    bad = set()
    for unit in sites.parse(tree, ["-include", str(header)]):
        for error in sites.errors(unit):
            found = set()
            for d in [error, *error.children]:
                if d.location.file is not None and d.location.file.name.startswith(str(tree)):
                    found |= blamed(places, os.path.relpath(d.location.file.name, tree), d.location.line)
            if not found:
                raise SystemExit(f"mutate: {error.location.file}:{error.location.line}: {error.spelling}")
            bad |= found
    return bad
