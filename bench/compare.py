#!/usr/bin/env python3
"""Measures weft_bench beside the programs of bench/peers and prints tables.

usage: compare.py [--build DIR] [--weft PROGRAM] [--out DIR] [--reps 5] [--peers go,tokio,...]
                  [--extra NAME=PROGRAM] [--goals FILE] [bench ...]

Every repetition runs weft and each peer once, in turns, so that drift of the machine falls on all. A ratio is weft over
peer (the other way round where more is better): smaller is better for weft. It is the median of the ratios of single
repetitions. Goals are read from goals.json: "versus" names peers, of which the one with the best median counts; "best"
means all; null makes the limit an absolute one. Writes results.json (every run) and chart.svg into --out.
"""
import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time
import types

import chart

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
FURTHER = {"timers": ["cpu_ns_per_sleep"], "wake_latency": ["p99"], "steal_latency": ["p95", "p99"],
           "trivial_tasks": ["p95", "p99"], "skynet": ["maxrss_kb"], "fib": ["maxrss_kb"],
           "tcp_echo": ["p99", "server_cpu_ns_per_req"],
           **{f"accept_backlog{k}": ["backlog_percent"] for k in ("", "_4", "_16", "_64")}}  # metrics with a line of their own in the table
MORE_IS_BETTER = ("MB/s", "req/s")
PR_SET_CHILD_SUBREAPER = 36


def load_peers_run():
    """peers/run as a module. It is a script without a main guard, taken over as it is: leave out its last line."""
    path = HERE / "peers" / "run"
    source = path.read_text()
    assert source.endswith("\nmain()\n"), f"{path} no longer ends in main()"
    module = types.ModuleType("peers_run")
    module.__file__ = str(path)
    exec(compile(source[:-len("main()\n")], str(path), "exec"), module.__dict__)
    module.run_process = run_process  # ours also knows the peak RSS
    return module


def run_process(argv, timeout=60):
    """The JSON line a process prints, with "cpus" (CPU time over wall time) and "maxrss_kb". None if it failed.

    A child's ru_maxrss starts at the RSS of whoever forked it, and this interpreter is larger than some of the peers. So
    a shell of a megabyte forks it and leaves it to us (we are its subreaper).
    """
    with tempfile.NamedTemporaryFile("r") as output:
        start = time.monotonic()
        launcher = ["sh", "-c", 'out=$1; shift; "$@" >"$out" & echo $!', "sh", output.name, *map(str, argv)]
        pid = int(subprocess.run(launcher, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
        pidfd = os.pidfd_open(pid)
        finished = False
        try:
            finished = bool(select.select([pidfd], [], [], timeout)[0])
        finally:
            os.close(pidfd)
            if not finished:
                os.kill(pid, 9)
            _, status, usage = os.wait4(pid, 0)
        wall = time.monotonic() - start
        text = output.read()
    if status != 0 or not text:
        return None
    return json.loads(text) | {"cpus": (usage.ru_utime + usage.ru_stime) / wall, "maxrss_kb": usage.ru_maxrss}


class Progress:
    """One line per bench; on a terminal it also counts while the bench runs."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()

    def show(self, text, end):
        elapsed = time.monotonic() - self.start
        line = f"[{elapsed:5.0f}s] {self.done + 1}/{self.total} {text}"
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end=end, file=sys.stderr, flush=True)
        elif end:
            print(line, file=sys.stderr, flush=True)


def measure(peers_run, bench, jobs, build, reps, lock, progress):
    """[{bench, peer, workers, unit, n, runs}] for every job; runs is None for one that failed."""
    runs = [[] for _ in jobs]
    with open(lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for rep in range(reps):
            line = run_process([build / "raw", "raw_cacheline_round_trip", "100000"])
            for k in range(len(jobs)):
                j = (k + rep) % len(jobs)  # starts one further along each time
                peer, workers, once = jobs[j]
                progress.show(f"{bench}: repetition {rep + 1} of {reps}, {peer} with {workers}", end="")
                if None not in runs[j]:  # a peer that failed once is not asked again
                    r = once()
                    runs[j].append(r and r | {"cacheline_ns": line["value"] if line else None})
    failed = [f"{peer}/{workers}" for (peer, workers, _), r in zip(jobs, runs) if None in r]
    progress.show(f"{bench}: {len(jobs)} programs, {reps} repetitions" +
                  (f", FAILED: {' '.join(failed)}" if failed else ""), end="\n")
    progress.done += 1
    return [{"bench": bench, "peer": peer, "workers": workers} |
            ({"runs": None} if None in r else {"unit": r[0]["unit"], "n": r[0]["n"], "runs": r})
            for (peer, workers, _), r in zip(jobs, runs)]


class Results:
    def __init__(self, entries, rivals):
        self.entries, self.rivals = entries, rivals  # rivals: the peers that count for "best"
        self.index = {(e["bench"], e["workers"], e["peer"]): e for e in entries}

    def rows(self):
        return list(dict.fromkeys((e["bench"], e["workers"]) for e in self.entries))

    def peers(self, row=None):
        names = dict.fromkeys(e["peer"] for e in self.entries if row is None or (e["bench"], e["workers"]) == row)
        return [p for p in names if p != "weft"]

    def values(self, row, peer, metric):
        e = self.index.get((*row, peer))
        if not e or not e["runs"] or any(r.get(metric) is None for r in e["runs"]):
            return None
        return [r[metric] for r in e["runs"]]

    def median(self, row, peer, metric="value"):
        values = self.values(row, peer, metric)
        return None if values is None else statistics.median(values)

    def unit(self, row):
        return next((e["unit"] for e in self.entries if (e["bench"], e["workers"]) == row and e["runs"]), "")

    def more_is_better(self, row, metric):
        return metric == "value" and self.unit(row) in MORE_IS_BETTER

    def best(self, row, metric="value", among=None):
        known = [p for p in (among or self.rivals) if self.median(row, p, metric) is not None]
        pick = max if self.more_is_better(row, metric) else min
        return pick(known, key=lambda p: self.median(row, p, metric), default=None)

    def ratio(self, row, peer, metric="value"):
        ours, theirs = self.values(row, "weft", metric), self.values(row, peer, metric)
        if not ours or not theirs:
            return None
        if self.more_is_better(row, metric):
            ours, theirs = theirs, ours
        ratios = [a / b for a, b in zip(ours, theirs) if b]
        return statistics.median(ratios) if ratios else None


def number(x, digits=3):
    if x is None:
        return "-"
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    return f"{x:.{digits}g}" if abs(x) < 100 else f"{x:.0f}"


def print_table(head, rows):
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for r in [head, ["-" * w for w in widths], *rows]:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip())


def comparison(results):
    peers = results.peers()
    head = ["bench", "workers", "unit", "weft", "best peer", "weft / best", *peers]
    rows = []
    for row in results.rows():
        for metric in ["value", *FURTHER.get(row[0], [])]:
            best = results.best(row, metric)
            name = row[0] if metric == "value" else f"  {metric}"
            rows.append([name, str(row[1]), results.unit(row) if metric == "value" else "",
                         number(results.median(row, "weft", metric)), best or "-",
                         number(results.ratio(row, best, metric)) if best else "-",
                         *(number(results.median(row, p, metric)) for p in peers)])
    return head, rows


def judge(results, goals):
    """The goals whose bench was run, each with what was measured."""
    for goal in goals:
        row, metric = (goal["bench"], goal["workers"]), goal["metric"]
        if row not in results.rows():
            continue
        verdict = goal | {"weft": results.median(row, "weft", metric), "peer": None, "theirs": None, "measured": None}
        if goal["versus"] is None:
            verdict["measured"] = verdict["weft"]
        else:
            among = None if goal["versus"] == "best" else goal["versus"]
            if peer := results.best(row, metric, among):
                verdict |= {"peer": peer, "theirs": results.median(row, peer, metric),
                            "measured": results.ratio(row, peer, metric)}
        measured = verdict["measured"]
        verdict["verdict"] = "no figure" if measured is None else "met" if measured <= goal["limit"] else "MISSED"
        yield verdict


def goal_table(verdicts):
    head = ["goal", "workers", "metric", "weft", "peer", "its figure", "measured", "limit", ""]
    return head, [[v["bench"], str(v["workers"]), v["metric"], number(v["weft"]), v["peer"] or "-", number(v["theirs"]),
                   number(v["measured"]), number(v["limit"]), v["verdict"]] for v in verdicts]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", type=pathlib.Path, default=ROOT / "build/peers", help="where bench/peers/build put the peers")
    ap.add_argument("--weft", type=pathlib.Path, default=ROOT / "build/release/bench/weft_bench")
    ap.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench")
    ap.add_argument("--reps", type=int, default=5)
    ap.add_argument("--peers", type=lambda s: [p for p in s.split(",") if p], help="only these (default: all)")
    ap.add_argument("--extra", action="append", default=[], metavar="NAME=PROGRAM", help="one more, e.g. an older weft_bench")
    ap.add_argument("--goals", type=pathlib.Path, default=HERE / "goals.json")
    ap.add_argument("--lock", default=os.path.join(tempfile.gettempdir(), "bench.lock"))
    ap.add_argument("bench", nargs="*", help="default: all that weft_bench lists")
    a = ap.parse_args()
    a.build = a.build.resolve()
    for program in (a.weft, a.build / "raw"):
        if not program.exists():
            sys.exit(f"{program} is not there; ./dev bench builds it")
    if a.reps < 1:
        sys.exit("--reps must be at least 1")
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")

    peers_run = load_peers_run()
    peers_run.WORKERS["steal_latency"] = (2,)  # weft's own; a thief needs a victim
    if unknown := set(a.peers or []) - set(peers_run.PEERS):
        sys.exit(f"no peer {' '.join(unknown)}; there are: {' '.join(peers_run.PEERS)}")
    peers = {p: peers_run.PEERS[p] for p in a.peers or peers_run.PEERS}
    for name, program in [("weft", str(a.weft)), *(e.split("=", 1) for e in a.extra)]:
        peers[name] = (os.path.abspath(program), [], (1, 2))
        peers_run.MILLION_PARKED.add(name)
    listed = peers_run.benches_of(a.build, peers["weft"][0])
    listed = listed + [alias for alias, (name, *_) in peers_run.ALIASES.items() if name in listed and alias not in listed]
    if unknown := [b for b in a.bench if b not in listed]:
        sys.exit(f"weft_bench has no {' '.join(unknown)}; it has: {' '.join(listed)}")

    entries, benches = [], a.bench or listed
    progress = Progress(len(benches))
    for bench in benches:
        jobs = peers_run.jobs_of(bench, a.build, peers)
        entries += measure(peers_run, bench, jobs, a.build, a.reps, a.lock, progress)

    results = Results(entries, rivals=set(peers_run.PEERS) | {"pigz"})
    verdicts = list(judge(results, json.loads(a.goals.read_text())))
    print()
    print_table(*comparison(results))
    if verdicts:
        print()
        print_table(*goal_table(verdicts))
        met = sum(v["verdict"] == "met" for v in verdicts)
        print(f"\n{met} of {len(verdicts)} goals met (measured: median over {a.reps} repetitions of weft / peer)")
    a.out.mkdir(parents=True, exist_ok=True)
    medians = [{"bench": row[0], "workers": row[1], "unit": results.unit(row),
                "median": {p: results.median(row, p) for p in ["weft", *results.peers(row)]},
                "best_peer": (best := results.best(row)), "ratio": results.ratio(row, best) if best else None}
               for row in results.rows()]
    (a.out / "results.json").write_text(
        json.dumps({"reps": a.reps, "medians": medians, "goals": verdicts, "runs": entries}, indent=1) + "\n")
    (a.out / "chart.svg").write_text(chart.draw(medians))
    print(f"written: {os.path.relpath(a.out / 'results.json')} {os.path.relpath(a.out / 'chart.svg')}")


if __name__ == "__main__":
    main()
