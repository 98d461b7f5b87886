#!/usr/bin/python3
"""Feeds the finder of mutants a small project and compares what it finds and what it writes (run by ctest)."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

try:
    import rewrite
    import sites
except ModuleNotFoundError:
    print("python3-clang-19 is not installed")
    sys.exit(77)  # ctest: skipped

# A body, and the mutants expected in it: what stands there -> what the mutant reads.
CASES = [
    ("if (a < b) f();", ["f() -> (dropped)", "a < b -> !(a < b)", "a < b -> a <= b"]),
    ("if (a == b) return;", ["a == b -> !(a == b)", "return -> (dropped)"]),
    ("while (!done()) f();", ["!done() -> !(!done())", "f() -> (dropped)"]),
    ("for (int i = 0; i != b; ++i) f();", ["0 -> (0 + 1)", "i != b -> !(i != b)", "++i -> --i", "f() -> (dropped)"]),
    ("f(); g();", ["f() -> (dropped)", "g() -> (dropped)", "f(); g() -> g(); f()"]),
    ("if (int n = a) (void)n;", []),
    ("if constexpr (sizeof(int) == 4) f();", ["f() -> (dropped)"]),
    ("constexpr int n = 3; (void)n;", []),
    ("static_assert(1 < 2);", []),
    ("const bool both = a && b; (void)both;", ["a && b -> a || b"]),
    ("const shade s = shade::dark; (void)s;", ["shade::dark -> shade::light"]),
    ("int n = 7; a += n;", ["7 -> (7 + 1)", "a += n -> a -= n", "a += n -> (dropped)"]),
    ("auto later = [] { return true; }; (void)later;", ["true -> false"]),
    ("invariant(a < b, 1);", []),
    ('// f(); "\n  f();', ["f() -> (dropped)"]),
    ("int some[2] = {}; for (int n : some) a += n;", ["a += n -> a -= n", "a += n -> (dropped)"]),
    ("a = fixed<2>() + b;", ["a = fixed<2>() + b -> (dropped)", "fixed<2>() + b -> fixed<2>() - b"]),
    ("switch (a) { case 3: f(); break; default: g(); }",
     ["f() -> (dropped)", "break -> (dropped)", "g() -> (dropped)"]),
]
HEAD = """
template <int N> int fixed();
enum class shade { light, dark };
bool done(); void f(); void g(); void invariant(bool, int);
void body(int& a, int b) {
  @
}
"""
HEADER = pathlib.Path(__file__).resolve().parent / "chosen.hpp"


def project(directory, text):
    root = pathlib.Path(directory)
    (root / "src" / "task").mkdir(parents=True)
    (root / "include").mkdir()
    (root / "src" / "task" / "a.cpp").write_text(text)
    return root


def found_in(body):
    with tempfile.TemporaryDirectory() as directory:
        found = sites.find(project(directory, HEAD.replace("@", body)))
        compiles(directory, found)
        return [s for s in found if s.kind != "early return"]


def compiles(directory, found):
    """Every site alone makes a file that the compiler takes."""
    path = pathlib.Path(directory) / "src" / "task" / "a.cpp"
    text = path.read_text(encoding="latin-1")
    for number, site in enumerate(found, 1):
        site.number = number
        new, _ = rewrite.rewritten(text, [site])
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", "-include", str(HEADER), "-xc++", "-"], input=new,
                              text=True, capture_output=True)
        if done.returncode != 0:
            print(f"{site.change()} does not compile:\n{done.stderr}")
            sys.exit(1)


def early_returns():
    """Only where there is nothing to return."""
    with tempfile.TemporaryDirectory() as directory:
        root = project(directory, "void g(); int f() { g(); return 1; } void h() { g(); }")
        return [s.change() for s in sites.find(root) if s.kind == "early return"]


def main():
    failed = 0
    for body, expected in CASES:
        got = sorted(s.change() for s in found_in(body))
        if got != sorted(expected):
            failed += 1
            print(f"{body}\n  missing: {sorted(set(expected) - set(got))}\n  not expected: {sorted(set(got) - set(expected))}")
    if early_returns() != ["g() -> return; g()"]:
        failed += 1
        print(f"early returns: {early_returns()}")
    print(f"{len(CASES) - failed} of {len(CASES)} cases as expected")
    sys.exit(1 if failed else 0)


main()
