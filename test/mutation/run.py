#!/usr/bin/python3
"""Breaks ordinary code of src/ and include/ at random and expects a test to notice (docs/verification.md).

    run.py [N] [--seed S] [--files GLOB...] [--only NUMBER...] [--no-build | --build-only]

N places (default 40) are chosen, at most one of a line: a condition is turned round, a statement dropped or swapped with the next
one, an operator or a constant replaced, a number is one more, a function returns early. All of them are compiled into one set of
test programs, those of `dev` and of `model`; WEFT_MUTANT=17 makes number 17 the broken one, so nothing is rebuilt per mutant.

First every test runs unbroken and says which places it reaches and how long it takes. A mutant is then tried with the tests that
reach it, the shortest first, model tests and stress tests last, until one fails, ends with a signal or takes too long; the same
test must then pass unbroken. A mutant that all of them pass, or nobody reaches, has survived. Survivors that no test could notice
stand in equivalent.txt with the reason. Exit status 1: less than 95 % of the others were noticed.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
sys.path.insert(0, str(here))

import rewrite  # noqa: E402
import sites  # noqa: E402

work = root / "build" / "mutate"
tree = work / "tree"
header = here / "chosen.hpp"
asked_for = 95.0


# ---- building


def make_mutants(wanted, seed, files):
    """(sites that clang accepts, where they stand in the copy)"""
    candidates = rewrite.in_random_order(sites.find(root), seed, files)
    print(f"{len(candidates)} lines can be broken", flush=True)
    taken, refused = [], set()
    while True:
        rewrite.take(candidates, wanted, taken)
        places = rewrite.write_tree(root, tree, taken)
        bad = rewrite.drop_what_clang_refuses(tree, places, header)
        if not bad:
            return taken, places
        refused |= bad
        taken = [s for s in taken if s.number not in bad]


def configure(name, options):
    command = ["cmake", "-G", "Ninja", "-S", str(tree), "-B", str(work / name), "-DCMAKE_CXX_COMPILER=g++",
               "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_CXX_FLAGS=-include {header} -w", "-DWEFT_WERROR=OFF",
               "-DWEFT_BUILD_BENCH=OFF", "-DWEFT_BUILD_EXAMPLES=OFF", "-DWEFT_INSTALL=OFF", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + f"\nmutate: cannot configure {name}")


def build(taken, places, jobs):
    """Builds both sets of programs; mutants that g++ refuses are left out."""
    configure("dev", ["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", "-DWEFT_CHECKED=ON"])
    configure("model", ["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2", "-DWEFT_MODEL=ON"])
    for name, programs in (("dev", ordinary_programs()), ("model", model_programs())):
        while True:
            done = subprocess.run(["cmake", "--build", str(work / name), "-j", str(jobs), "--target", *programs, "--", "-k", "0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if done.returncode == 0:
                break
            bad = set()
            for file, line in re.findall(rf"{re.escape(str(tree))}/([\w/.]+):(\d+):", done.stdout):
                bad |= rewrite.blamed(places, file, int(line))
            if not bad:
                raise SystemExit(done.stdout[-8000:] + f"\nmutate: the build of {name} failed")
            print(f"g++ refuses {len(bad)} of them", flush=True)
            taken = [s for s in taken if s.number not in bad]
            places = rewrite.write_tree(root, tree, taken)
    return taken


# ---- tests


def ordinary_programs():
    """As test/CMakeLists.txt names them."""
    elsewhere = {"model", "support", "consumer", "readme", "migration"}
    return [f"{source.parent.name}_{source.stem}" for source in sorted((root / "test").glob("*/*_test.cpp"))
            if source.parent.name not in elsewhere]


def model_programs():
    return [f"model_{source.stem}" for source in sorted((root / "test" / "model").glob("*_test.cpp"))]


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: dict
    last: bool  # stress and model tests: after all others
    seconds: float = 0.0
    reached: frozenset = frozenset()


def ordinary_tests():
    listing = subprocess.run(["ctest", "--test-dir", str(work / "dev"), "--show-only=json-v1"], stdout=subprocess.PIPE,
                             check=True, text=True).stdout
    programs = set(ordinary_programs())
    for test in json.loads(listing)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = " ".join(properties.get("LABELS", []))
        command = test.get("command", [""])
        if properties.get("DISABLED") or pathlib.Path(command[0]).name not in programs:
            continue
        environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        yield Test(test["name"], command, environment, "stress" in labels)


def model_tests():
    for name in model_programs():
        program = str(work / "model" / "test" / "model" / name)
        listing = subprocess.run([program, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout
        for test in re.findall(r"^\s*(\w+)", listing, re.M):
            yield Test(f"model.{test}", [program, f"--test={test}", "--at-most=2"], {}, True)


def run(test, mutant, limit, reached=None):
    """(None or how it failed, seconds)"""
    environment = dict(os.environ, **test.environment, WEFT_MUTANT=str(mutant))
    if reached is not None:
        environment["WEFT_MUTANTS_REACHED"] = reached
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=work) as directory:
        process = subprocess.Popen(test.command, env=environment, cwd=directory, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        how = watch(process, limit)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also what it has started and left behind
        except ProcessLookupError:
            pass
        process.wait()
    return how, time.monotonic() - start


def watch(process, limit):
    """Waits for the process; a hang and a growth without end are failures, too."""
    end, nap = time.monotonic() + limit, 0.001
    while True:
        try:
            status = process.wait(timeout=nap)
            return None if status == 0 else f"signal {-status}" if status < 0 else "failed"
        except subprocess.TimeoutExpired:
            nap = min(2 * nap, 0.1)
        if time.monotonic() > end:
            return "hangs"
        if resident(process.pid) > 6 << 30:
            return "grows"


def resident(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def learn(test, count):
    """Runs it unbroken; what it reaches. None: it does not pass."""
    with tempfile.NamedTemporaryFile(dir=work) as file:
        file.truncate(8192)
        how, test.seconds = run(test, 0, 300, file.name)
        reached = pathlib.Path(file.name).read_bytes()
    test.reached = frozenset(i for i in range(1, count + 1) if reached[i])
    if how is not None:
        print(f"{test.name} {how} without a mutation and is left out", flush=True)
    return how is None


def learn_all(tests, count, jobs, known):
    """Only those whose program has changed since it was `known`."""
    def one(test):
        stamp = os.stat(test.command[0]).st_mtime_ns
        if known.get(test.name, {}).get("stamp") != stamp:
            passes = learn(test, count)
            known[test.name] = dict(stamp=stamp, passes=passes, seconds=test.seconds, reached=sorted(test.reached))
        test.seconds, test.reached = known[test.name]["seconds"], frozenset(known[test.name]["reached"])
        return known[test.name]["passes"]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [t for t, passes in zip(tests, pool.map(one, tests)) if passes]


# ---- mutants


def noticed(site, tests, patience):
    """(test that noticed and how or None, how many tests were tried, seconds)"""
    layer = site.file.split("/")[1]
    reaching = sorted((t for t in tests if site.number in t.reached),
                      key=lambda t: (t.last, not t.name.startswith(layer) and t.seconds > 0.2, t.seconds))
    start, spent = time.monotonic(), 0.0
    for tried, test in enumerate(reaching, 1):
        limit = 10 + 10 * test.seconds
        how, seconds = run(test, site.number, limit)
        spent += seconds
        if how is not None and run(test, 0, limit)[0] is None:
            return f"{test.name} {how}", tried, time.monotonic() - start
        if spent > patience:
            break
    return None, len(reaching), time.monotonic() - start


def equivalents():
    """key -> reason, from lines as Site.key() has them and indented lines with the reason"""
    reasons, key = {}, None
    for line in (here / "equivalent.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            reasons[key] = f"{reasons[key]} {line.strip()}".strip()
        else:
            key = line.strip()
            reasons[key] = ""
    return reasons


def report(results, tests):
    results.sort(key=lambda r: r[0].number)
    reasons = equivalents()
    survivors = [s for s, (by, _, _) in results if by is None]
    excused = [s for s in survivors if s.key() in reasons]
    for title, chosen in (("equivalent or about speed only", excused),
                          ("SURVIVED", [s for s in survivors if s not in excused])):
        if chosen:
            print(f"\n{title}:")
        for s in chosen:
            by = [t.name for t in sorted(tests, key=lambda t: (t.last, t.seconds)) if s.number in t.reached]
            print(f"#{s.number} {s.file}:{s.line} in {s.function}, {s.kind}")
            print(f"    - {sites.one_line(s.original)}\n    + {sites.one_line(s.mutated)}")
            print(f"    reached by {len(by)} tests: {', '.join(by[:4])}" if by else "    not reached by any test")
            print(f"    {reasons[s.key()]}" if s.key() in reasons else f"    key: {s.key()}")
    for s, (by, _, _) in results:
        if by is not None and s.key() in reasons:
            print(f"#{s.number} stands in equivalent.txt, but was noticed by {by}")
    count = collections.Counter(s.kind for s in survivors if s not in excused)
    total = len(results) - len(excused)
    share = 100.0 * (len(results) - len(survivors)) / total if total else 100.0
    if count:
        print("\nsurvivors by kind: " + ", ".join(f"{k} {n}" for k, n in count.most_common()))
    print(f"noticed {len(results) - len(survivors)} of {total} ({share:.1f} %), "
          f"{len(excused)} equivalent or about speed only")
    return share >= asked_for


def main():
    a = arguments()
    start = time.monotonic()
    work.mkdir(parents=True, exist_ok=True)
    memory = work / "sites.json"
    if not a.no_build:
        taken, places = make_mutants(a.n, a.seed, a.files)
        taken = build(taken, places, a.jobs)
        memory.write_text(json.dumps([dataclasses.asdict(s) for s in taken]))
        print(f"{len(taken)} mutants in one set of programs, built in {time.monotonic() - start:.0f} s", flush=True)
        if a.build_only:
            return True
    taken = [sites.Site(**s) for s in json.loads(memory.read_text())]
    known_file = work / "reached.json"
    known = json.loads(known_file.read_text()) if known_file.exists() else {}
    tests = [*ordinary_tests(), *model_tests()]
    start = time.monotonic()
    tests = learn_all(tests, max(s.number for s in taken), a.jobs, known)
    known_file.write_text(json.dumps(known))
    print(f"{len(tests)} tests unbroken in {time.monotonic() - start:.0f} s", flush=True)
    chosen = [s for s in taken if not a.only or s.number in a.only]
    start = time.monotonic()
    results = []
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        running = {pool.submit(noticed, s, tests, a.patience): s for s in chosen}
        for done in concurrent.futures.as_completed(running):
            site, result = running[done], done.result()
            results.append((site, result))
            by, tried, seconds = result
            print(f"{'noticed ' if by else 'SURVIVED'} #{site.number:<4} {seconds:6.1f} s {site.file}:{site.line} "
                  f"{site.change()}: {by or f'{tried} tests pass'}", flush=True)
    print(f"mutants tried in {time.monotonic() - start:.0f} s")
    return report(results, tests)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("n", nargs="?", type=int, default=40, help="how many mutants (40)")
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86400, help="another choice (default: the day's)")
    parser.add_argument("--files", nargs="+", default=[], help="only of these, e.g. 'src/chan/*' include/weft/channel.hpp")
    parser.add_argument("--only", nargs="+", type=int, default=[], help="try only the mutants of these numbers")
    parser.add_argument("--no-build", action="store_true", help="the mutants and programs of the last run")
    parser.add_argument("--build-only", action="store_true", help="build, but try none")
    parser.add_argument("--patience", type=float, default=120, help="seconds of tests per mutant, after which it has survived")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
