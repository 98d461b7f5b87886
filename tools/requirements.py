#!/usr/bin/env python3
"""Keeps docs/requirements.md and the tests together: which test shows which requirement.

    requirements.py --check [ROOT]   every requirement has the tests that the document names, and no others
    requirements.py --write [ROOT]   writes the tests into the document
    requirements.py ID…              prints the tests that show these requirements, one by one
    requirements.py --self-test      feeds itself wrong trees and expects complaints

A requirement is an item of the document, `- **LS-F4** What holds.`, and ends with a line `Tests: …` that names test
programs. A test says which requirements it shows by a comment above it: `// req: LS-F4 CSP-7`. The items of the section
"Not yet" have no test. Sources and documents may name requirements by id; those have to be in the document, too.
"""
import pathlib
import re
import sys
import tempfile
import textwrap

DOCUMENT = "docs/requirements.md"
FAMILIES = "LS|CC|KC|BZ|CSP|W|IO|OB|FJ|CO|SIM|UX"
ID = rf"(?:{FAMILIES})-(?:[A-Z]?\d+|S)"
ITEM = re.compile(rf"- \*\*({ID})\*\* ")
TAG = re.compile(r"\s*(?://|#)\s*req:(.*)")
TEST = re.compile(r"\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|MODEL_TEST)\(\s*(\w+)\s*(?:,\s*(\w+))?")
TAGGED = {".cpp", ".hpp", ".sh", ".py"}
MENTIONING = {".cpp", ".hpp", ".S", ".md", ".py"}


class project:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.shown = {}  # requirement -> test program -> [(line, name of the test)]
        self.items = {}  # requirement -> (line, names in the document, it is "not yet")
        self.read_tests()
        self.read_document()

    def read_tests(self):
        for path in sorted((self.root / "test").rglob("*")):
            if path.suffix not in TAGGED:
                continue
            program = str(path.relative_to(self.root / "test").with_suffix("" if path.suffix == ".cpp" else path.suffix))
            lines = path.read_text().split("\n")
            for number, line in enumerate(lines, 1):
                tag = TAG.match(line)
                if not tag:
                    continue
                if not re.fullmatch(rf"(?: {ID})+", tag[1]):
                    self.problems.append(f"{path.relative_to(self.root)}:{number}: not of the form `req: ID ID…`: {line.strip()}")
                below = next((t for t in map(TEST.match, lines[number:number + 12]) if t), None)
                name = ".".join(filter(None, below.groups())) if below else ""
                for found in re.findall(ID, tag[1]):
                    self.shown.setdefault(found, {}).setdefault(program, []).append((number, name))

    def read_document(self):
        path = self.root / DOCUMENT
        self.lines = path.read_text().split("\n") if path.exists() else []
        later = False
        current = None
        for number, line in enumerate(self.lines, 1):
            if line.startswith("## "):
                later = line == "## Not yet"
            item = ITEM.match(line)
            if item:
                current = item[1]
                if current in self.items:
                    self.problems.append(f"{DOCUMENT}:{number}: {current} is there twice")
                self.items[current] = (number, [], later)
            elif not line.startswith("  "):
                current = None
            if current and (line.startswith("  Tests:") or self.in_tests(number)):
                self.items[current][1].extend(re.findall(r"`([^`]+)`", line))

    def in_tests(self, number):
        """Line `number` goes on with the tests of an item."""
        while number > 0 and self.lines[number - 1].startswith("  "):
            if self.lines[number - 1].startswith("  Tests:"):
                return True
            number -= 1
        return False

    def check(self):
        for name, (line, programs, later) in self.items.items():
            place = f"{DOCUMENT}:{line}: {name}"
            shown = self.shown.get(name, {})
            if later:
                if shown:
                    self.problems.append(f"{place}: has a test now ({', '.join(shown)}): it belongs to its section")
                continue
            if not shown:
                self.problems.append(f"{place}: no test says `req: {name}`; what has none stands under \"Not yet\"")
            for missing in sorted(set(shown) - set(programs)):
                self.problems.append(f"{place}: `{missing}` shows it, too (requirements.py --write)")
            for gone in sorted(set(programs) - set(shown)):
                self.problems.append(f"{place}: `{gone}` does not say `req: {name}` (requirements.py --write)")
        for name, programs in self.shown.items():
            if name not in self.items:
                self.problems.append(f"test/{next(iter(programs))}: {name} is not in {DOCUMENT}")
        self.check_mentions()
        return self.problems

    def check_mentions(self):
        for tree in ("src", "include", "test", "bench", "examples", "docs", "tools"):
            for path in sorted((self.root / tree).rglob("*")):
                if path.suffix not in MENTIONING or path == self.root / DOCUMENT or path.name == pathlib.Path(__file__).name:
                    continue
                for number, line in enumerate(path.read_text().split("\n"), 1):
                    if TAG.match(line):
                        continue
                    place = f"{path.relative_to(self.root)}:{number}"
                    for name in re.findall(rf"(?<![\w-]){ID}(?!\w)", line):
                        if name not in self.items:
                            self.problems.append(f"{place}: {name} is not in {DOCUMENT}")
                    if "§" in line:
                        self.problems.append(f"{place}: a section sign: name a section of a document by its title")

    def write(self):
        out = []
        current = None
        for number, line in enumerate(self.lines, 1):
            item = ITEM.match(line)
            if (item or not line.startswith("  ")) and current:
                out += self.tests_of(current)
                current = None
            if item and not self.items[item[1]][2]:
                current = item[1]
            if current and (line.startswith("  Tests:") or self.in_tests(number)):
                continue
            out.append(line)
        (self.root / DOCUMENT).write_text("\n".join(out))

    def tests_of(self, name):
        programs = ", ".join(f"`{program}`" for program in sorted(self.shown.get(name, {})))
        return textwrap.wrap(f"Tests: {programs}.", 120, initial_indent="  ", subsequent_indent="  ",
                             break_long_words=False, break_on_hyphens=False) if programs else []


def self_test():
    test = "// req: LS-F4 CSP-7\nTEST(Wake, is_queued_once) {}\n"
    good = "# R\n\n## LS\n- **LS-F4** Once.\n  Tests: `wait/a_test`.\n- **CSP-7** Saved.\n  Tests: `wait/a_test`.\n\n## Not yet\n- **IO-1** Sockets.\n"
    cases = [  # (document, test, another file, its content, expected part of the one complaint or None)
        (good, test, "src/wait/a.hpp", "// LS-F4 says so\n", None),
        (good, test, "test/model/b_test.cpp", "// req: LS-F4\nMODEL_TEST(b) {}\n", "`model/b_test` shows it, too"),
        (good, "// req: CSP-7\nTEST(A, b) {}\n", "", "", ["no test says `req: LS-F4`", "`wait/a_test` does not say"]),
        (good.replace("  Tests: `wait/a_test`.\n- **C", "  Tests: `wait/a_test`,\n  `wait/b_test`.\n- **C"), test, "", "",
         "`wait/b_test` does not say `req: LS-F4`"),
        (good, test + "// req" + ": IO-1\nTEST(A, c) {}\n", "", "", "IO-1: has a test now"),
        (good, test.replace("LS-F4 ", "LS-F4, "), "", "", "not of the form"),
        (good, test + "// req: CC-1\nTEST(A, c) {}\n", "", "", "test/wait/a_test: CC-1 is not in"),
        (good, test, "src/wait/a.hpp", "// by CC-9\n", "src/wait/a.hpp:1: CC-9 is not in"),
        (good, test, "include/weft/a.hpp", "// see §4.2\n", "section sign"),
        (good + "- **IO-1** Again.\n", test, "", "", "IO-1 is there twice"),
    ]
    failed = 0
    for document, content, other, text, expected in cases:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, what in ((DOCUMENT, document), ("test/wait/a_test.cpp", content), (other, text)):
                if name:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(what)
            got = project(root).check()
            wanted = [] if expected is None else [expected] if isinstance(expected, str) else expected
            as_expected = len(got) == len(wanted) and all(any(w in g for g in got) for w in wanted)
            if other.startswith("test/"):  # what is missing there is written
                project(root).write()
                as_expected &= not project(root).check()
            if not as_expected:
                failed += 1
                print(f"{content!r}, {other}: expected {expected}, got {got}")
    print(f"{len(cases) - failed} of {len(cases)} cases as expected")
    return failed


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    if not arguments:
        sys.exit(__doc__)
    command = arguments[0] if arguments[0].startswith("--") else None
    rest = arguments[1:] if command else arguments
    here = pathlib.Path(__file__).resolve().parent.parent
    all_of_it = project(pathlib.Path(rest[0]) if command and rest else here)
    if command == "--write":
        all_of_it.write()
    elif command == "--check":
        found = all_of_it.check()
        later = sum(1 for item in all_of_it.items.values() if item[2])
        print("\n".join(found) if found else
              f"requirements: {len(all_of_it.items) - later} have the tests that the document names, {later} are to come")
        sys.exit(1 if found else 0)
    else:
        for name in rest:
            print(name)
            for program, tests in sorted(all_of_it.shown.get(name, {}).items()):
                for line, test in tests:
                    print(f"  {program}:{line} {test}")


main()
