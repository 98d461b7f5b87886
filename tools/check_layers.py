#!/usr/bin/env python3
"""Checks #includes against the layer table, that only src/base says std::atomic, std::mutex, futex, or reads a clock, and
that only a few files know where the frames of a fiber are.

    check_layers.py [ROOT]          ROOT defaults to the project this script is in
    check_layers.py --self-test     feeds itself wrong trees and expects complaints

A file of src/<layer>/ writes internal includes as "layer/file.hpp" and public ones as <weft/...>. It may include its own
layer and those on an earlier line of LAYERS. A public header
never includes a private one: those are not installed.
"""
import pathlib
import re
import sys
import tempfile

# Lines of the table: a layer sees all lines above its own. Layers of one line are siblings and do not see each other.
LAYERS = [["base"], ["context"], ["task"], ["sched"], ["wait"], ["chan", "sync", "time", "scope"], ["io"], ["stream"],
          ["observe"]]
RANK = {layer: rank for rank, line in enumerate(LAYERS) for layer in line}
ONLY_IN_BASE = re.compile(
    r"std\s*::\s*(?:atomic|mutex|condition_variable)\w*|\bfutex\s*\(|<(?:atomic|mutex|condition_variable)>")
READS_CLOCK = re.compile(r"clock\s*::\s*now\b|\bclock_gettime\s*\(\s*CLOCK|\bgettimeofday\b")  # not a thread's processor time
# A task need not have a stack. Who asks one for it knows that it is a fiber, and these do.
ASKS_FOR_STACK = re.compile(r"(?:->|\.)\s*(?:sp|set_sp|sp_address|stack)\b|\b(?:is_started|resume_point)\b")
KNOW_FIBERS = re.compile(r"src/(?:context/.*|observe/.*|task/(?:record|fiber\w*)\.hpp|sched/(?:fiber_switch|stack_supply)\.hpp)")
HAS_GUARDS = "<mutex>"  # public headers include it: they promise std::lock_guard and its like
SUFFIXES = {".cpp", ".hpp", ".h", ".S", ".inc"}


def without_comments(text, keep_strings):
    """Comments (and, unless kept, the inside of string literals) blanked, line numbers unchanged."""
    def blank(match):
        token = match[0]
        if token[0] == "/":
            return " " + "\n" * token.count("\n")
        return token if keep_strings else '""'
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def complaints(root):
    for tree in ("src", "include"):
        for path in sorted((root / tree).rglob("*")):
            if path.suffix in SUFFIXES:
                yield from complaints_about(root, path)


def complaints_about(root, path):
    place = path.relative_to(root)
    private = place.parts[0] == "src"
    layer = place.parts[1] if private else None
    if private and layer not in RANK:
        yield f"{place}:1: there is no layer '{layer}'; there are: {' '.join(RANK)}"
        return
    text = path.read_text()
    for number, line in enumerate(without_comments(text, keep_strings=True).split("\n"), 1):
        include = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if include:
            quoted, name = include[1] == '"', include[2]
            for problem in include_problems(root, layer, quoted, name):
                yield f"{place}:{number}: {problem}"
    if layer == "base":
        return
    for number, line in enumerate(without_comments(text, keep_strings=False).split("\n"), 1):
        for found in ONLY_IN_BASE.finditer(line):
            if not private and found[0] == HAS_GUARDS:
                continue
            yield f"{place}:{number}: '{found[0]}' outside src/base: use base/atomic.hpp (the model build replaces it)"
        for found in READS_CLOCK.finditer(line):
            yield f"{place}:{number}: '{found[0]}' outside src/base: use weft/detail/clock.hpp (virtual time replaces it)"
        if not KNOW_FIBERS.fullmatch(place.as_posix()):
            for found in ASKS_FOR_STACK.finditer(line):
                yield (f"{place}:{number}: '{found[0]}' asks a task for its stack, and not every task has one: "
                       "ask the record (task/record.hpp), or let sched/stack_supply.hpp do it")


def include_problems(root, layer, quoted, name):
    first = name.split("/")[0]
    if not quoted:
        if first in RANK and (root / "src" / name).exists():
            yield f'<{name}>: internal headers are included as "{name}"'
        elif first == "weft" and not (root / "include" / name).exists():
            yield f"<{name}>: no such public header"
        return
    if first == "explore" and layer == "base" and (root / "test" / "model" / name).exists():
        return  # the model build's twins of what base defines
    if first == "weft":
        yield f'"{name}": public headers are included as <{name}>'
    elif first not in RANK or "/" not in name:
        yield f'"{name}": internal includes are written "layer/file.hpp"'
    elif layer is None:
        yield f'"{name}": a public header cannot include a private one'
    elif not (root / "src" / name).exists():
        yield f'"{name}": no such file in src/'
    elif first != layer and RANK[first] >= RANK[layer]:
        what = "is a sibling of" if RANK[first] == RANK[layer] else "stands above"
        yield f'"{name}": layer {first} {what} {layer}, which must not know it'


def self_test():
    cases = [  # (file, content, expected part of the complaint or None)
        ("src/sched/a.cpp", '#include "task/task.hpp"\n', None),
        ("src/task/a.cpp", '#include <weft/weft.hpp>\n#include <vector>\n', None),
        ("src/task/a.cpp", '// #include "sched/pool.hpp"\n/*\n#include "sched/pool.hpp"\n*/\n', None),
        ("src/base/a.cpp", "std::atomic<int> a;\n", None),
        ("src/task/a.cpp", '// std::atomic\nconst char* s = "std::mutex";\n', None),
        ("src/task/a.cpp", '\n#include "sched/pool.hpp"\n', "a.cpp:2: \"sched/pool.hpp\": layer sched stands above task"),
        ("src/chan/a.cpp", '#include "sync/lock.hpp"\n', "sibling"),
        ("src/task/a.cpp", '#include "task.hpp"\n', "written \"layer/file.hpp\""),
        ("src/task/a.cpp", '#include "task/none.hpp"\n', "no such file"),
        ("src/task/a.cpp", "#include <task/task.hpp>\n", "included as \"task/task.hpp\""),
        ("src/task/a.cpp", '#include "weft/weft.hpp"\n', "included as <weft/weft.hpp>"),
        ("include/weft/a.hpp", '#include "task/task.hpp"\n', "public header"),
        ("src/base/a.hpp", '#include "explore/atomic.hpp"\n', None),
        ("src/task/a.hpp", '#include "explore/atomic.hpp"\n', "written \"layer/file.hpp\""),
        ("src/util/a.cpp", "", "no layer 'util'"),
        ("src/task/a.cpp", "/* x\n*/ std::atomic_ref<int> a;\n", "a.cpp:2: 'std::atomic_ref'"),
        ("include/weft/a.hpp", "std::mutex m;\n", "'std::mutex'"),
        ("include/weft/a.hpp", "#include <mutex>\n", None),
        ("src/task/a.cpp", "#include <mutex>\n", "'<mutex>'"),
        ("src/task/a.cpp", "#include <condition_variable>\n", "'<condition_variable>'"),
        ("src/io/a.cpp", "futex (&word);\n", "'futex ('"),
        ("src/base/a.cpp", "clock_gettime(CLOCK_MONOTONIC, &t);\n", None),
        ("include/weft/a.hpp", "auto t = std::chrono::steady_clock::now();\n", "'clock::now'"),
        ("src/time/a.cpp", "auto t = clock::now();\n", "'clock::now'"),
        ("src/sched/a.cpp", "t->sp.load(relaxed);\n", "'->sp' asks a task for its stack"),
        ("src/sched/a.cpp", "\nvoid* p = f.sp();\n", "a.cpp:2: '.sp'"),
        ("src/wait/a.cpp", "size(t->stack->size);\n", "'->stack'"),
        ("src/task/a.hpp", "left = f.stack;\n", "'.stack'"),
        ("src/sched/a.cpp", "if (t->is_started()) queue(t);\n", "'is_started'"),
        ("src/sched/a.hpp", "auto p = t.resume_point;\n", "'resume_point'"),
        ("include/weft/a.hpp", "f . stack = nullptr;\n", "'. stack'"),
        ("src/sched/a.cpp", 't->stack_size = 0; o.stacks(); // t->stack\nlog("x.stack");\n', None),
        ("src/context/a.cpp", "f.sp = s->stack;\n", None),
        ("src/task/fiber.hpp", "void* sp() { return f.sp; }\n", None),
        ("src/sched/fiber_switch.hpp", "jump(from.sp_address(), to.sp());\n", None),
        ("src/sched/stack_supply.hpp", "t->stack = s;\n", None),
        ("src/observe/a.cpp", "auto p = r.sp();\n", None),
        ("src/sched/stack_supply.cpp", "t->stack = s;\n", "'->stack'"),
    ]
    failed = 0
    for name, content, expected in cases:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for file in ("src/task/task.hpp", "src/sched/pool.hpp", "src/sync/lock.hpp", "include/weft/weft.hpp",
                         "test/model/explore/atomic.hpp", name):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content if file == name else "")
            got = list(complaints(root))
            if (expected is None and got) or (expected is not None and (len(got) != 1 or expected not in got[0])):
                failed += 1
                print(f"{name}: {content!r}: expected {expected}, got {got}")
    print(f"{len(cases) - failed} of {len(cases)} cases as expected")
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parent.parent
    found = list(complaints(root))
    print("\n".join(found) if found else "layers: every include points downwards")
    sys.exit(1 if found else 0)


main()
