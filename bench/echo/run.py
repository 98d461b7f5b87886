#!/usr/bin/env python3
"""Echo servers side by side: Weft, bare epoll, Go, Tokio, Asio, all driven by the same client (bench/echo/README.md).

    run.py [--reps 5] [--weft PROGRAM] [--peers DIR] [MODE...]

Servers take turns; each figure is a median, each ratio the median of the repetitions' ratios. CPU is that of all threads of the
server, per request, warm-up included. After each mode it says which of its goals are met.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IDLE_CONNECTIONS = 10_000
IDLE_SECONDS = 10
SETTLE_SECONDS = 2  # from the last request until a server is looked at as an idle one


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class Server:
    """A server in a process of its own, and what it has used when it is gone."""

    def __init__(self, program, workers, bench="tcp_echo", before=()):
        self.port = free_port()
        self.process = subprocess.Popen([*before, program, "--workers", str(workers), bench, self.port],
                                        stdout=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        _, _, self.usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0


# ---- servers at work -------------------------------------------------------------------------------------------------------

def run_client(client, port, arguments, requests):
    out = subprocess.run([client, port, *arguments, "--requests", str(requests)], capture_output=True, text=True, timeout=120)
    if out.returncode != 0:
        sys.exit(f"the client failed: {out.stderr}")
    return json.loads(out.stdout.splitlines()[-1])


def requests_of(mode, program, workers, client):
    """Requests per second, latencies, and CPU per request."""
    with Server(program, workers, mode.bench) as s:
        figures = run_client(client, s.port, mode.arguments, mode.requests)
    warm_up = 1.0 if "--reconnect" in mode.arguments else 1.1
    for key, seconds in (("cpu_ns", s.usage.ru_utime + s.usage.ru_stime), ("user_ns", s.usage.ru_utime)):
        figures[key] = seconds * 1e9 / (warm_up * mode.requests)
    return {k: v for k, v in figures.items() if k not in ("mode", "n")}


# ---- idle servers ----------------------------------------------------------------------------------------------------------

def memory(pid):
    """Bytes in memory and bytes of page tables."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return 1024 * sum(int(re.search(rf"{field}:\s+(\d+)", status)[1]) for field in ("VmRSS", "VmPTE"))


def processor_time(pid):
    """Of all threads, in seconds."""
    return sum(int(t.joinpath("schedstat").read_text().split()[0]) for t in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


@contextlib.contextmanager
def idle_connections(client, server):
    """So many connections, each of which was used once."""
    many = [client, server.port, "--connections", str(IDLE_CONNECTIONS), "--idle", "3600"]
    with subprocess.Popen(many, stdout=subprocess.PIPE, text=True) as clients:
        try:
            if not clients.stdout.readline():
                sys.exit("the client failed")
            time.sleep(SETTLE_SECONDS)
            yield
        finally:
            clients.kill()


def idle_price_of(mode, program, workers, client):
    """System calls of an idle server, and its CPU. strace wakes every thread once, so it comes last, and its first second is
    left out."""
    log = f"/tmp/idle_calls.{os.getpid()}"
    with Server(program, workers, mode.bench) as s, idle_connections(client, s):
        used = processor_time(s.process.pid)
        time.sleep(IDLE_SECONDS)
        used = processor_time(s.process.pid) - used
        tracer = subprocess.Popen(["strace", "-f", "-ttt", "-o", log, "-p", str(s.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(1)
        start = time.time()
        time.sleep(IDLE_SECONDS)
        end = time.time()
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
    times = [float(line.split()[1]) for line in pathlib.Path(log).read_text().splitlines() if "resumed>" not in line]
    os.unlink(log)
    return {"calls": sum(start <= t <= end for t in times), "cpu_percent": 100 * used / IDLE_SECONDS}


def connection_memory_of(mode, program, workers, client):
    """Memory and page tables of the server for each idle connection."""
    with Server(program, workers, mode.bench) as s:
        run_client(client, s.port, ["--connections", "1"], 10)
        empty = memory(s.process.pid)
        with idle_connections(client, s):
            return {"bytes": (memory(s.process.pid) - empty) / IDLE_CONNECTIONS}


# ---- what is measured, and what Weft should reach --------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Goal:
    """The figure of a server of Weft's, absolute or as a multiple of the best of others."""
    server: tuple
    metric: str
    limit: float
    versus: tuple = ()


@dataclasses.dataclass(frozen=True)
class Mode:
    servers: list
    arguments: list = dataclasses.field(default_factory=list)
    requests: int = 0
    bench: str = "tcp_echo"
    goals: tuple = ()
    measure: object = requests_of


WEFT1, WEFT2, EPOLL = ("weft", 1), ("weft", 2), ("epoll", 1)
GO1, GO2, TOKIO1, TOKIO2, ASIO = ("go", 1), ("go", 2), ("tokio", 1), ("tokio", 2), ("asio", 1)
EVERYBODY = [WEFT1, WEFT2, EPOLL, GO1, GO2, TOKIO1, TOKIO2, ASIO]

CLOSED = (Goal(WEFT1, "cpu_ns", 1.05, (EPOLL,)), Goal(WEFT1, "cpu_ns", 0.8, (GO1,)), Goal(WEFT2, "cpu_ns", 1.05, (WEFT1,)),
          Goal(WEFT2, "cpu_ns", 0.95, (TOKIO2,)), Goal(WEFT2, "cpu_ns", 0.7, (GO2,)))
RATE = (Goal(WEFT2, "p99_us", 1.1, (EPOLL,)), Goal(WEFT2, "p99_us", 0.8, (TOKIO2,)), Goal(WEFT2, "p99_us", 0.6, (GO2,)))
AS_EPOLL = (Goal(WEFT1, "cpu_ns", 1.05, (EPOLL,)),)

MODES = {
    "closed": Mode(EVERYBODY, ["--connections", "64"], 200_000, goals=CLOSED),
    "closed_1": Mode(EVERYBODY, ["--connections", "1"], 40_000, goals=CLOSED),
    "closed_16": Mode(EVERYBODY, ["--connections", "16"], 200_000, goals=CLOSED),
    "closed_256": Mode(EVERYBODY, ["--connections", "256"], 200_000, goals=CLOSED),
    "closed_1000": Mode(EVERYBODY, ["--connections", "1000"], 200_000, goals=CLOSED),
    "burst": Mode(EVERYBODY, ["--burst"], 200_000, goals=(Goal(WEFT1, "cpu_ns", 0.9, (EPOLL,)),)),
    "rate_10k": Mode(EVERYBODY, ["--rate", "10000"], 30_000, goals=RATE),  # what `stuck` has to be compared with
    "rate_20k": Mode(EVERYBODY, ["--rate", "20000"], 60_000, goals=(*RATE, Goal(WEFT1, "cpu_ns", 1.15, (EPOLL,)))),
    "rate_60k": Mode(EVERYBODY, ["--rate", "60000"], 120_000, goals=RATE),
    "rate_120k": Mode(EVERYBODY, ["--rate", "120000"], 240_000, goals=RATE),
    "mixed": Mode(EVERYBODY, ["--rate", "5000", "--compute", "20"], 15_000, "tcp_echo_mixed",
                  goals=(Goal(WEFT2, "p99_us", 0.8, (EPOLL, GO2, TOKIO2, ASIO)),)),
    "stuck": Mode([WEFT2], ["--stick", "--rate", "10000"], 30_000, "tcp_echo_stuck",
                  goals=(Goal(WEFT2, "p99_us", 3_000),)),
    "reconnect": Mode(EVERYBODY, ["--reconnect"], 10_000,
                      goals=(Goal(WEFT1, "cpu_ns", 1.1, (EPOLL,)), Goal(WEFT1, "cpu_ns", 0.85, (GO1,)))),
    "unix_echo": Mode([WEFT1, WEFT2, EPOLL], ["--unix"], 200_000, "unix_echo", goals=AS_EPOLL),
    "udp_echo": Mode([WEFT1, WEFT2, EPOLL], ["--udp"], 200_000, "udp_echo", goals=AS_EPOLL),
    "idle_conns": Mode([WEFT2, EPOLL, GO2, TOKIO2, ASIO], measure=idle_price_of,
                       goals=(Goal(WEFT2, "calls", 0), Goal(WEFT2, "cpu_percent", 0.1))),
    "conn_memory": Mode([WEFT2, EPOLL, GO2, TOKIO2, ASIO], measure=connection_memory_of),
    "conn_memory_512": Mode([WEFT2], bench="tcp_echo_512", measure=connection_memory_of, goals=(Goal(WEFT2, "bytes", 5 * 1024),)),
}


def ratio(runs, server, others, metric):
    """Of a server's figure and that of the best of others: the median over repetitions."""
    best = min(others, key=lambda o: statistics.median(f[metric] for f in runs[o]))
    return statistics.median(w[metric] / o[metric] for w, o in zip(runs[server], runs[best])), best


def judge(goal, runs):
    """A line that says whether a goal is met; None if not everybody who belongs to it has run."""
    name = f"{goal.metric} of {goal.server[0]}/{goal.server[1]}"
    others = [o for o in goal.versus if o in runs]
    if goal.server not in runs or (goal.versus and not others):
        return None
    if others:
        measured, best = ratio(runs, goal.server, others, goal.metric)
        name += f" over {best[0]}/{best[1]}"
    else:
        measured = statistics.median(f[goal.metric] for f in runs[goal.server])
    return f"  goal: {name} at most {goal.limit:g}: {measured:.2f}, {'met' if measured <= goal.limit else 'MISSED'}"


# ---- system calls per request ----------------------------------------------------------------------------------------------

def system_calls(program, client, requests=20_000):
    """With 64 connections: the difference of two runs, so that the start does not count."""
    totals = []
    for n in (requests, 3 * requests):
        log = f"/tmp/echo_calls.{os.getpid()}"
        with Server(program, 1, before=["strace", "-f", "-c", "-o", log]) as s:
            run_client(client, s.port, ["--connections", "64"], n)
            subprocess.run(["pkill", "-INT", "-P", str(s.process.pid)], check=False)
            time.sleep(1)
        lines = pathlib.Path(log).read_text().splitlines()
        totals.append(next(int(re.split(r"\s+", line.strip())[3 if len(line.split()) > 5 else 2]) for line in reversed(lines)
                           if line.endswith("total")))
        os.unlink(log)
    return (totals[1] - totals[0]) / (1.1 * 2 * requests)


def run_mode(name, mode, programs, client, reps):
    """Runs it, and prints a line for each server and each goal."""
    runs = {s: [] for s in mode.servers if s[0] in programs}
    for rep in range(reps):
        for s in list(runs) if rep % 2 else list(runs)[::-1]:
            runs[s].append(mode.measure(mode, programs[s[0]], s[1], client))
    print(f"{name}:")
    for s, figures in runs.items():
        shown = {k: statistics.median(f[k] for f in figures) for k in figures[0]}
        others = [o for o in runs if o != s] if s[0] == "weft" and "cpu_ns" in shown else []
        ratios = [f"{ratio(runs, s, [o], 'cpu_ns')[0]:.2f} x {o[0]}/{o[1]}" for o in others]
        print(f"  {s[0]:6}/{s[1]} " + "  ".join(f"{k} {v:.1f}" for k, v in shown.items()) +
              ("   CPU: " + ", ".join(ratios) if ratios else ""), flush=True)
    for line in filter(None, (judge(g, runs) for g in mode.goals)):
        print(line, flush=True)


def make_quick():
    """Counts that are enough to see that everything runs."""
    global IDLE_CONNECTIONS, IDLE_SECONDS, SETTLE_SECONDS
    IDLE_CONNECTIONS, IDLE_SECONDS, SETTLE_SECONDS = 200, 1, 0.5
    for name, mode in MODES.items():
        MODES[name] = dataclasses.replace(mode, requests=mode.requests // 100, goals=())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--reps", type=int, default=5)
    ap.add_argument("--weft", default=str(ROOT / "build/release/bench/weft_bench"))
    ap.add_argument("--client", default=str(ROOT / "build/release/bench/echo_client"))
    ap.add_argument("--peers", default=str(ROOT / "build/peers"))
    ap.add_argument("--servers", default="weft,epoll,go,tokio,asio", help="only these, e.g. weft,epoll")
    ap.add_argument("--calls", action="store_true", help="also count system calls per request (strace)")
    ap.add_argument("--quick", action="store_true", help="small counts, to see that everything runs; the figures say nothing")
    ap.add_argument("mode", nargs="*", help=f"of {' '.join(MODES)}; default: all")
    a = ap.parse_args()
    if unknown := set(a.mode) - set(MODES):
        sys.exit(f"no mode {' '.join(unknown)}; there are: {' '.join(MODES)}")
    programs = {p: a.weft if p == "weft" else f"{a.peers}/{p}" for p in a.servers.split(",")}
    if missing := [p for p in programs.values() if not os.path.exists(p)]:
        sys.exit(f"not there: {' '.join(missing)}; bench/peers/build makes the peers, --servers leaves some out")
    if a.quick:
        make_quick()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # servers and clients inherit it
    if most < IDLE_CONNECTIONS + 100:
        sys.exit(f"{most} descriptors are too few for {IDLE_CONNECTIONS} connections (ulimit -Hn)")
    for name in a.mode or MODES:
        run_mode(name, MODES[name], programs, a.client, a.reps)
    if a.calls:
        for server in ("weft", "epoll"):
            print(f"system calls per request, {server}/1: {system_calls(programs[server], a.client):.3f}", flush=True)


if __name__ == "__main__":
    main()
