#!/usr/bin/env python3
"""Checks that every numbered invariant has an id of its own and a guard that exists, and that every id named anywhere exists.

    check_guards.py [ROOT]          ROOT defaults to the project this script is in
    check_guards.py --list [ROOT]   prints every invariant with its place and its guards
    check_guards.py --self-test     feeds itself wrong trees and expects complaints

An invariant is a paragraph of a comment (or an item of a layer's README) that begins with its id and a full stop:

    // sched.R1. A task pushed is popped or stolen exactly once.     model/ring, test sched/ring_*

The id is the layer, a letter or two for the file, a number. The guards stand somewhere in the paragraph:

    model/NAME              the program test/model/NAME_test.cpp, or explored tests of that name
    test LAYER/NAME, …      the program test/LAYER/NAME_test.cpp, or tests of that name in test/LAYER
    checked build: NAME()   a function of src/ that checks it in checked builds
    tools/NAME.py           a script
    follows from ID, …      other invariants
    by code: REASON         nothing tests it, and why it holds nevertheless

A * in NAME stands for anything. Names are compared without underscores and case: a_wake_is_lost finds AWakeIsLost.
"""
import fnmatch
import pathlib
import re
import sys
import tempfile

LAYERS = ["base", "context", "task", "sched", "wait", "chan", "sync", "time", "scope", "io", "stream", "observe",
          "explore"]  # explore: the model checker itself, test/model/explore
LAYER = "|".join(LAYERS)
ID = re.compile(rf"(?<![\w./-])({LAYER})\.([A-Z]{{1,2}})(\d{{1,2}})(?:[–-]\2?(\d{{1,2}}))?(?!\w)")
BARE = re.compile(r"(?<![\w./+#-])[A-Z]{1,2}\d{1,2}(?![\w%])")
DEFINITION = re.compile(rf"\s*(?://|-)\s+(?=(?:(?:{LAYER})\.)?[A-Z]{{1,2}}\d{{1,2}}\. )")
TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|MODEL_TEST)\(\s*(\w+)\s*(?:,\s*(\w+))?", re.M)
SOURCES = {".cpp", ".hpp", ".h", ".S", ".inc"}
NO_GUARDS = "names no guard (model/…, test …/…, checked build: …(), tools/…, follows from …, by code: …)"


def plain(name):
    return name.replace("_", "").lower()


def comment_of(line):
    """The comment at the end of a line of C++, or nothing. String literals are passed over."""
    found = re.match(r'(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/)|")*?(//.*)', line)
    return found[1] if found else ""


class project:
    def __init__(self, root):
        self.root = root
        self.programs = {}  # (layer of tests, program) -> names of its tests
        for path in sorted((root / "test").glob("*/*.cpp")):
            tests = [second or first for first, second in TEST.findall(path.read_text())]
            if tests or path.stem.endswith("_test"):
                self.programs[path.parent.name, path.stem.removesuffix("_test")] = tests
        code = "\n".join(p.read_text() for p in sorted((root / "src").rglob("*")) if p.suffix in SOURCES)
        self.code = re.sub(r"//.*", "", code)
        self.invariants = {}  # id -> (place, text)
        self.problems = []
        self.read()

    def defines(self, path):
        return path.parts[0] in ("src", "include") or path.parts[:3] == ("test", "model", "explore")

    def layer_of(self, path):
        if path.parts[0] == "src" and len(path.parts) > 2:
            return path.parts[1]
        return "explore" if path.parts[0] == "test" else None  # a public header may belong to any layer

    def read(self):
        """Finds the invariants first, then everything that names one."""
        texts = []
        for tree in ("src", "include", "test", "bench", "examples"):
            for path in sorted((self.root / tree).rglob("*")):
                if path.suffix in SOURCES:
                    texts.append((path.relative_to(self.root), [comment_of(l) for l in path.read_text().split("\n")]))
                elif path.suffix == ".md":
                    texts.append((path.relative_to(self.root), path.read_text().split("\n")))
        for path in sorted([*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]):
            texts.append((path.relative_to(self.root), path.read_text().split("\n")))
        for path, lines in texts:
            if self.defines(path):
                self.collect(path, lines)
        for path, lines in texts:
            self.references(path, lines)
        for name, (place, text) in self.invariants.items():
            if not self.guards_of(place, name, text):
                self.problems.append(f"{place}: {name} {NO_GUARDS}")

    def collect(self, path, lines):
        markdown = path.suffix == ".md"
        for number, line in enumerate(lines):
            start = DEFINITION.match(line)
            if not start or (markdown != line.lstrip().startswith("-")):
                continue
            name = line[start.end():].split(". ")[0]
            text = [line]
            for later in lines[number + 1:]:
                if not later.strip().lstrip("/").strip() or DEFINITION.match(later) or re.match(r"\s*//\s*Rejected:", later):
                    break
                text.append(later.strip().lstrip("/").strip())
            place = f"{path}:{number + 1}"
            layer = self.layer_of(path)
            if "." not in name:
                continue  # named as a bare id below
            if layer is not None and name.split(".")[0] != layer:
                self.problems.append(f"{place}: {name}: an invariant of this file begins with '{layer}.'")
            if name in self.invariants:
                self.problems.append(f"{place}: {name} stands for something else in {self.invariants[name][0]}")
            else:
                self.invariants[name] = (place, " ".join(text))

    def references(self, path, lines):
        fenced = False
        for number, line in enumerate(lines, 1):
            fenced ^= path.suffix == ".md" and line.startswith("```")
            if fenced:
                continue
            for found in ID.finditer(line):
                first, last = int(found[3]), int(found[4] or found[3])
                for n in range(first, last + 1):
                    name = f"{found[1]}.{found[2]}{n}"
                    if name not in self.invariants:
                        self.problems.append(f"{path}:{number}: there is no invariant {name}")
                if last < first:
                    self.problems.append(f"{path}:{number}: {found[0]} runs backwards")
            for found in BARE.finditer(re.sub(r'"[^"]*"', "", ID.sub("", line))):
                self.problems.append(f"{path}:{number}: '{found[0]}': ids of invariants begin with their layer, as sched.R1")

    def guards_of(self, place, name, text):
        """Every guard in the text of an invariant, each looked up."""
        guards = []
        tests = []
        for found in re.finditer(r"\btests? ((?:\w+/[\w*]+)(?:, (?:\w+/[\w*]+))*)", text):
            tests += [item for item in found[1].split(", ") if not item.startswith("model/")]
        tests += re.findall(r"(?<![\w/])model/[\w*]+", text)
        for item in tests:
            if not self.has_test(*item.split("/")):
                self.problems.append(f"{place}: {name}: no test is called {item}")
            guards.append(item)
        for function in re.findall(r"\bchecked builds?: ([\w:]+)\(\)", text):
            if not re.search(rf"\b{function.split('::')[-1]}\(", self.code):
                self.problems.append(f"{place}: {name}: no function is called {function}()")
            guards.append(f"{function}()")
        for script in re.findall(r"\btools/\w+\.py\b", text):
            if not (self.root / script).exists():
                self.problems.append(f"{place}: {name}: there is no {script}")
            guards.append(script)
        guards += re.findall(rf"\bfollows from (?:{LAYER})\.[A-Z]{{1,2}}\d{{1,2}}", text)  # that they exist: references()
        guards += ["by code" for _ in re.findall(r"\bby code: \w+ \w+", text, re.I)]
        return guards

    def has_test(self, layer, name):
        name = plain(name)
        for (where, program), tests in self.programs.items():
            if where != layer:
                continue
            if name == plain(program) or fnmatch.fnmatchcase(plain(program) + "test", name):
                return True
            if any(fnmatch.fnmatchcase(plain(test), name) for test in tests):
                return True
        return False


def self_test():
    def tree(**files):
        return {"test/model/ring_test.cpp": "MODEL_TEST(ring_owner_and_thief, .preemptions = 3) {}\n",
                "test/sched/ring_test.cpp": "TEST(Ring, NothingIsLost) {}\n",
                "src/sched/worker.cpp": "void verify() {}\n", "tools/check_layers.py": "",
                **{name.replace("__", ".").replace("_S_", "/"): text for name, text in files.items()}}

    def head(text):
        return tree(src_S_sched_S_a__hpp="// What it is.\n//\n" + text + "\n#pragma once\n")

    cases = [  # (tree, expected part of the one complaint, or None)
        (head("// sched.R1. It holds.   model/ring"), None),
        (head("// sched.R1. It holds.   model/ring_owner_*, test sched/ring_*"), None),
        (head("// sched.R1. It holds.   test sched/nothing_is_lost, sched/ring"), None),
        (head("// sched.R1. It\n//     holds for long.\n//     test sched/ring_*\n// sched.R2. Too.  follows from sched.R1"), None),
        (head("// sched.R1. It holds. By code: one store."), None),
        (head("// sched.R1. It holds.   checked build: worker::verify()"), None),
        (head("// sched.R1. It holds.   tools/check_layers.py"), None),
        (head("// sched.R1. It holds."), "a.hpp:3: sched.R1 names no guard"),
        (head("// sched.R1. It holds.\n//\n// model/ring is another paragraph"), "names no guard"),
        (head("// sched.R1. It holds.\n// Rejected: what model/ring shows"), "names no guard"),
        (head("// sched.R1. By code: yes"), "names no guard"),
        (head("// sched.R1. It holds.   model/rings"), "no test is called model/rings"),
        (head("// sched.R1. It holds.   test wait/ring_*"), "no test is called wait/ring_*"),
        (head("// sched.R1. It holds.   test sched/ring, sched/none_*"), "no test is called sched/none_*"),
        (head("// sched.R1. It holds.   checked build: worker::verified()"), "no function is called"),
        (head("// sched.R1. It holds.   tools/none.py"), "there is no tools/none.py"),
        (head("// sched.R1. It holds.   follows from sched.R9"), "no invariant sched.R9"),
        (head("// sched.R1. It holds.   model/ring\n// sched.R1. This too.   model/ring"), "stands for something else in"),
        (head("// wait.R1. It holds.   model/ring"), "begins with 'sched.'"),
        (head("// R1. It holds.   model/ring"), "a.hpp:3: 'R1': ids of invariants begin with their layer"),
        (head("// sched.R1. It holds.   model/ring\nint x;  // sched.R2 says so"), "no invariant sched.R2"),
        (head("// sched.R1. It holds.   model/ring\nint x;  // (R1)"), "'R1'"),
        (head('// sched.R1. It holds.   model/ring\nauto s = "// R2"; template <class A1> int x;  // -O2, LS-F1, C++20'), None),
        (tree(include_S_weft_S_a__hpp="// wait.A1. It holds.   model/ring\n"), None),
        (tree(src_S_base_S_README__md="# base\n\n- base.B1. It holds. Guard: `tools/check_layers.py`.\n"), None),
        (tree(src_S_base_S_README__md="# base\n\n- base.B1. It holds.\n"), "README.md:3: base.B1 names no guard"),
        (tree(test_S_model_S_explore_S_a__hpp="// explore.M1. It holds.   model/ring\n",
              docs_S_a__md="explore.M1 does\n\n```cpp\n// B2 is code\n```\n"), None),
        (tree(test_S_sched_S_b_test__cpp="// sched.R1. It is only told again here.\n"), "no invariant sched.R1"),
        (tree(src_S_sched_S_a__hpp="// sched.R1. One.  model/ring\n// sched.R2. Two.  model/ring\n",
              docs_S_a__md="(sched.R1–R2)\n"), None),
        (tree(src_S_sched_S_a__hpp="// sched.R1. One.  model/ring\n", docs_S_a__md="(sched.R1–R2)\n"),
         "docs/a.md:1: there is no invariant sched.R2"),
    ]
    failed = 0
    for files, expected in cases:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, content in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            got = project(root).problems
            if (expected is None and got) or (expected is not None and (len(got) != 1 or expected not in got[0])):
                failed += 1
                print(f"{list(files.items())[4:]}: expected {expected}, got {got}")
    print(f"{len(cases) - failed} of {len(cases)} cases as expected")
    return failed


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    listing = arguments[:1] == ["--list"]
    roots = arguments[1:] if listing else arguments
    found = project(pathlib.Path(roots[0]) if roots else pathlib.Path(__file__).resolve().parent.parent)
    if listing:
        for name, (place, text) in found.invariants.items():
            print(f"{name:10} {place:36} {', '.join(found.guards_of(place, name, text))}")
        return
    print("\n".join(found.problems) if found.problems else
          f"guards: {len(found.invariants)} invariants, each with a guard that exists")
    sys.exit(1 if found.problems else 0)


main()
