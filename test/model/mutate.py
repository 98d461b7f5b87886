#!/usr/bin/env python3
"""Breaks the protocols one named point at a time and expects a model test to notice (docs/verification.md).

usage: mutate.py [--build-dir DIR] [--no-build] [--jobs N] [--timeout SECONDS] [NAME...]
NAME...: only points whose name begins with one of these.

A point is base::order<"name">, check<"name"> or step<"name"> in src/. First every program runs unbroken and lists the points
that its tests come to; only those programs run for a point, the fastest first, and the first failure counts as caught. A
point that no program comes to has survived. Survivors must be listed in
survivors.txt with the reason why the mutation is equivalent. Exit status 1: fewer than 95 % caught, a survivor without
reason, or a listed survivor that is caught.
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


def points_of(programs):
    """point -> (kind, programs)"""
    points = {}
    for p in programs:
        listing = subprocess.run([p, "--points"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        for line in listing:
            if line:
                name, kind = line.split()
                points.setdefault(name, (kind, []))[1].append(p)
    return points


def unbroken(program, timeout):
    """(seconds, points that the tests come to, output if they fail)"""
    start = time.monotonic()
    done = subprocess.run([program, "--reached"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * timeout,
                          errors="replace", text=True)
    reached = set(re.findall(r"^reached (\S+)", done.stdout, re.M))
    return time.monotonic() - start, reached, done.stdout if done.returncode != 0 else None


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


def first_failure(name, programs, timeout):
    environment = dict(os.environ, WEFT_MUTATION=name)
    for p in programs:
        short = os.path.basename(p)
        try:
            done = subprocess.run([p, "--stop-at-first"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=environment, timeout=timeout, errors="replace", text=True)
        except subprocess.TimeoutExpired:
            print(f"{name}: {short} did not finish in {timeout} s and counts as not caught", flush=True)
            continue
        if done.returncode != 0:
            test = re.search(r"^FAIL (\S+)", done.stdout, re.M)
            what = re.search(r"^  (\S.*)$", done.stdout, re.M)
            return (f"{short}: {test.group(1) if test else 'crashed'}"
                    + (f" ({what.group(1)[:90]})" if what else ""))
    return None


def in_parallel(jobs, f, all_of_them):
    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(f, all_of_them)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--build-dir", default=os.path.join(root, "build", "model"))
    arguments.add_argument("--no-build", action="store_true")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--timeout", type=int, default=200)
    arguments.add_argument("names", nargs="*")
    a = arguments.parse_args()
    if not a.no_build:
        build(a.build_dir)
    programs = sorted(p for p in glob.glob(os.path.join(a.build_dir, "test", "model", "model_*_test"))
                      if os.access(p, os.X_OK))
    if not programs:
        sys.exit(f"mutate: no model tests in {a.build_dir}; run ./dev build model")
    points = points_of(programs)
    if a.names:
        points = {n: v for n, v in points.items() if n.startswith(tuple(a.names))}
    needed = sorted({p for _, where in points.values() for p in where})
    baseline = dict(zip(needed, in_parallel(a.jobs, lambda p: unbroken(p, a.timeout), needed)))
    for program, (_, _, failure) in baseline.items():
        if failure is not None:
            sys.exit(f"mutate: fails without a mutation: {program}\n{failure}")
    # A point is tried first on the program that is named after it: ring.push -> model_ring_test.
    for name, (_, where) in points.items():
        where[:] = sorted((p for p in where if name in baseline[p][1]), key=lambda p: (
            not os.path.basename(p).startswith("model_" + name.split(".")[0]), baseline[p][0]))
    reasons = survivors()
    caught, unexplained, wrongly_listed = 0, [], []
    start = time.monotonic()
    names = sorted(points)
    for name, failure in zip(names, in_parallel(a.jobs, lambda n: first_failure(n, points[n][1], a.timeout), names)):
        kind = points[name][0]
        if failure is not None:
            caught += 1
            print(f"caught    {kind:5} {name:32} {failure}", flush=True)
            if name in reasons:
                wrongly_listed.append(name)
        else:
            reason = reasons.get(name)
            if reason is None:
                unexplained.append(name)
            print(f"SURVIVED  {kind:5} {name:32} {reason or 'no reason in survivors.txt'}", flush=True)
    print(f"{time.monotonic() - start:.0f} s")
    for name in wrongly_listed:
        print(f"{name} is caught, but survivors.txt calls it equivalent")
    if unexplained:
        print("without a reason:", ", ".join(unexplained))
    if not a.names:
        for name in sorted(set(reasons) - set(points)):
            print(f"survivors.txt names {name}, which is not compiled in")
    total = len(points)
    share = 100.0 * caught / total if total else 0.0
    print(f"caught {caught} of {total} ({share:.1f} %)")
    sys.exit(0 if share >= 95 and not unexplained and not wrongly_listed else 1)


if __name__ == "__main__":
    main()
