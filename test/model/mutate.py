#!/usr/bin/env python3
"""Breaks the protocols one named point at a time and expects a model test to notice (docs/verification.md).

usage: mutate.py [--build-dir DIR] [--no-build] [--jobs N] [--timeout SECONDS] [--full] [NAME...]
NAME...: only points whose name begins with one of these.

A point is base::order<"name">, check<"name"> or step<"name"> in src/. First every program runs unbroken, with the bounds cut
down to 2 preemptions and 2 old reads, and says of each test how long it takes and which points it comes to. For a point only
those tests run, the shortest first, and the first failure counts as caught: first all of them with the bounds cut down to 1,
where most mutations show within milliseconds, then to 2, then as they are (a test that fails there must pass unbroken). A
point that no test comes to has survived. Survivors must be listed in survivors.txt with the reason why the mutation is
equivalent; these are tried with the bounds cut down only, unless --full is given. Exit status 1: fewer than 95 % caught, a
survivor without reason, or a listed survivor that is caught.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))


def build(directory):
    log = subprocess.run(
        ["sh", "-c", f"cd '{root}' && cmake --preset model && cmake --build --preset model -j2"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if log.returncode != 0:
        sys.exit(log.stdout + "\nmutate: the model build failed")


def points_in_source():
    """name -> kind"""
    points = {}
    for path in glob.glob(os.path.join(root, "src", "**", "*.[ch]pp"), recursive=True):
        if path.endswith(os.path.join("base", "mutation.hpp")):  # its examples
            continue
        with open(path, encoding="utf-8") as file:
            for kind, name in re.findall(r'\b(order|check|step)<"([^"]+)">', file.read()):
                points[name] = kind
    return points


def compiled_into(program):
    listing = subprocess.run([program, "--points"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {line.split()[0] for line in listing.splitlines()}


def unbroken(program, timeout):
    """(tests: name, seconds, points they come to; output if they fail)"""
    done = subprocess.run([program, "--reached", "--at-most=2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=4 * timeout, errors="replace", text=True)
    tests = []
    for line in re.findall(r"^reached (.*)$", done.stdout, re.M):
        name, seconds, *points = line.split()
        tests.append((name, float(seconds), set(points)))
    return tests, done.stdout if done.returncode != 0 else None


def survivors():
    """name -> reason, from lines `name: reason`; an indented line continues"""
    reasons, name = {}, None
    for line in open(os.path.join(here, "survivors.txt"), encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            reasons[name] += " " + line.strip()
        else:
            name, _, reason = line.partition(":")
            name = name.strip()
            reasons[name] = reason.strip()
    return reasons


def run(program, test, bounds, mutation, timeout):
    """None if it passes, else what failed"""
    environment = dict(os.environ, WEFT_MUTATION=mutation)
    try:
        done = subprocess.run([program, f"--test={test}"] + bounds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, timeout=timeout, errors="replace", text=True)
    except subprocess.TimeoutExpired:
        print(f"{mutation or 'unbroken'}: {test} did not finish in {timeout} s and counts as not caught", flush=True)
        return None
    if done.returncode == 0:
        return None
    what = re.search(r"^  (\S.*)$", done.stdout, re.M)
    if what and what.group(1).startswith("not finished"):
        print(f"{mutation or 'unbroken'}: {test} was {what.group(1)} and counts as not caught", flush=True)
        return None
    how = re.search(r"bounds \S+|random", done.stdout)
    return f"{test} ({how.group(0) if how else ''}: {what.group(1)[:90] if what else 'crashed'})"


def first_failure(name, tests, full, timeout):
    """(what noticed, or None; seconds). tests: (program, test), in the order in which they are tried"""
    start = time.monotonic()
    for bounds in [["--at-most=1"], ["--at-most=2"]] + ([[]] if full else []):
        for program, test in tests:
            failure = run(program, test, bounds, name, timeout)
            if failure is None:
                continue
            if not bounds and (unbroken_failure := run(program, test, bounds, "", timeout)) is not None:
                print(f"without a mutation: {unbroken_failure}", flush=True)
                continue
            return failure, time.monotonic() - start
    return None, time.monotonic() - start


def in_parallel(jobs, f, all_of_them):
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(f, all_of_them)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--build-dir", default=os.path.join(root, "build", "model"))
    arguments.add_argument("--no-build", action="store_true")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--timeout", type=int, default=200)
    arguments.add_argument("--full", action="store_true")
    arguments.add_argument("names", nargs="*")
    a = arguments.parse_args()
    if not a.no_build:
        build(a.build_dir)
    programs = [os.path.join(a.build_dir, "test", "model", "model_" + os.path.basename(source)[:-len(".cpp")])
                for source in sorted(glob.glob(os.path.join(here, "*_test.cpp")))]
    for p in programs:
        if not os.access(p, os.X_OK):
            sys.exit(f"mutate: {p} is missing; run ./dev build model")
    points = points_in_source()
    if a.names:
        points = {n: kind for n, kind in points.items() if n.startswith(tuple(a.names))}
        programs = [p for p in programs if points.keys() & compiled_into(p)]
    start = time.monotonic()
    baseline = dict(zip(programs, in_parallel(a.jobs, lambda p: unbroken(p, a.timeout), programs)))
    for program, (_, failure) in baseline.items():
        if failure is not None:
            sys.exit(f"mutate: fails without a mutation: {program}\n{failure}")
    tests_of = {}
    for name in points:
        tests = [(seconds, p, test) for p in programs for test, seconds, reached in baseline[p][0] if name in reached]
        tests_of[name] = [(p, test) for _, p, test in sorted(tests)]
    unbroken_time = time.monotonic() - start
    reasons = survivors()
    caught, unexplained, wrongly_listed = 0, [], []
    names = sorted(points)
    results = in_parallel(a.jobs, lambda n: first_failure(n, tests_of[n], a.full or n not in reasons, a.timeout), names)
    for name, (failure, seconds) in zip(names, results):
        kind = points[name]
        if failure is not None:
            caught += 1
            print(f"caught    {kind:5} {name:28} {seconds:6.1f} s  {failure}", flush=True)
            if name in reasons:
                wrongly_listed.append(name)
        else:
            reason = reasons.get(name)
            if reason is None:
                unexplained.append(name)
            print(f"SURVIVED  {kind:5} {name:28} {seconds:6.1f} s  {reason or 'no reason in survivors.txt'}", flush=True)
    print(f"{time.monotonic() - start:.0f} s, {unbroken_time:.0f} s of them unbroken")
    for name in wrongly_listed:
        print(f"{name} is caught, but survivors.txt calls it equivalent")
    if unexplained:
        print("without a reason:", ", ".join(unexplained))
    if not a.names:
        for name in sorted(set(reasons) - set(points)):
            print(f"survivors.txt names {name}, which does not exist")
    total = len(points)
    share = 100.0 * caught / total if total else 0.0
    print(f"caught {caught} of {total} ({share:.1f} %)")
    sys.exit(0 if share >= 95 and not unexplained and not wrongly_listed else 1)


if __name__ == "__main__":
    main()
