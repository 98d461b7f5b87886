#!/usr/bin/env python3
"""weftgz beside pigz: rates, sizes and peaks of memory (docs/weftgz.md).

    weftgz.py [--weftgz PROGRAM] [--size MB] [--reps N] [--processes 1 2 8] [--levels 6] [--corpus text mixed]

The corpora are made of what every Debian with a compiler has: text is headers, scripts and documents, mixed is a half of
it, programs and random bytes. The programs take turns, and the order changes with each repetition. A figure is a median,
a ratio the median of the repetitions' ratios. Input and output are in the page cache and /dev/null: what is measured is
the program, not a disk.
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def gather(size, patterns, roots):
    """The beginning of what these directories hold, repeated if it is not enough."""
    data = bytearray()
    for root in roots:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if len(data) >= size:
                return bytes(data[:size])
            if path.suffix in patterns and path.is_file() and not path.is_symlink():
                data += path.read_bytes()
    if not data:
        sys.exit(f"weftgz.py: there is nothing to compress in {', '.join(roots)}")
    while len(data) < size:
        data += data[:size - len(data)]
    return bytes(data[:size])


def corpora(size):
    text = gather(size, {".h", ".hpp", ".py", ".pm", ".pl", ".md", ".txt"},
                  ["/usr/include", "/usr/share/perl", "/usr/lib/python3", "/usr/share/doc", str(ROOT)])
    programs = gather(size * 2 // 5, {"", ".so", ".a"}, ["/usr/bin", "/usr/lib/gcc", str(ROOT / "build")])
    noise = random.Random(1).randbytes(size - size // 2 - len(programs))
    return {"text": text, "mixed": text[:size // 2] + programs + noise}


def measure(command, stdin):
    """Seconds, peak of memory in KiB. By time(1), because a child begins with the peak of its parent: Python's."""
    with open(stdin, "rb") as source, tempfile.NamedTemporaryFile() as peak:
        start = time.perf_counter()
        p = subprocess.run([shutil.which("time"), "-f", "%M", "-o", peak.name, *command], stdin=source,
                           stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        if p.returncode != 0:
            sys.exit(f"weftgz.py: {' '.join(command)} failed")
        return seconds, int(peak.read())


def in_turns(commands, reps):
    """commands: name -> (command, input). Returns name -> [(seconds, peak)]."""
    results = {name: [] for name in commands}
    for rep in range(reps + 1):  # the first warms the cache and does not count
        order = list(commands) if rep % 2 == 0 else list(reversed(commands))
        for name in order:
            result = measure(*commands[name])
            if rep > 0:
                results[name].append(result)
    return results


def report(title, results, base, size, goal):
    for name, runs in results.items():
        seconds = statistics.median(s for s, _ in runs)
        line = f"  {title:34} {name:16} {size / seconds / 1e6:8.0f} MB/s {max(m for _, m in runs) / 1024:7.1f} MB peak"
        if name != base:
            ratio = statistics.median(b[0] / r[0] for b, r in zip(results[base], runs))
            wanted = goal.get(name)
            line += f"  {ratio:5.2f} x {base}"
            if wanted:
                line += f" (goal {wanted:.2f}: {'met' if ratio >= wanted else 'MISSED'})"
        print(line, flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--weftgz", default=str(ROOT / "build/release/apps/weftgz"))
    a.add_argument("--size", type=float, default=50, help="of each corpus, in MB")
    a.add_argument("--reps", type=int, default=7)
    a.add_argument("--processes", type=int, nargs="+", default=[1, 2, 8])
    a.add_argument("--levels", type=int, nargs="+", default=[6])
    a.add_argument("--corpus", nargs="+", default=["text", "mixed"], choices=["text", "mixed"])
    o = a.parse_args()
    weftgz = os.path.abspath(o.weftgz)
    for needed in ("pigz", "time", weftgz):
        if not shutil.which(needed):
            sys.exit(f"weftgz.py: there is no {needed}")
    with tempfile.TemporaryDirectory(prefix="weftgz-bench-") as directory:
        made = corpora(int(o.size * 1e6))
        for corpus in o.corpus:
            data = made[corpus]
            plain = os.path.join(directory, corpus)
            pathlib.Path(plain).write_bytes(data)
            for level in o.levels:
                one_level(o, weftgz, corpus, plain, len(data), level)


def one_level(o, weftgz, corpus, plain, size, level):
    packed = {}
    for name, command in (("pigz", ["pigz"]), ("weftgz", [weftgz]), ("weftgz --single", [weftgz, "--single"])):
        packed[name] = f"{plain}.{name.replace(' ', '')}.gz"
        with open(plain, "rb") as source, open(packed[name], "wb") as result:
            subprocess.run([*command, f"-{level}c"], stdin=source, stdout=result, check=True)
    sizes = {name: os.path.getsize(path) for name, path in packed.items()}
    print(f"{corpus}, level {level}")
    for name, n in sizes.items():
        ratio = n / sizes["pigz"]
        verdict = "" if name == "pigz" else f"  {ratio:.4f} x pigz (goal 1.005: {'met' if ratio <= 1.005 else 'MISSED'})"
        print(f"  size {'':29} {name:16} {n:12} bytes{verdict}")
    for p in o.processes:
        many = [f"-p{p}"]
        report(f"compress, -p {p}", in_turns({
            "pigz": (["pigz", f"-{level}c", *many], plain),
            "weftgz": ([weftgz, f"-{level}c", *many], plain),
            "weftgz --single": ([weftgz, "--single", f"-{level}c", *many], plain),
        }, o.reps), "pigz", size, {"weftgz": 1.3 if level == 6 else 1.0, "weftgz --single": 1.0})
        report(f"decompress, -p {p}", in_turns({
            "pigz": (["pigz", "-dc", *many], packed["pigz"]),
            "weftgz, pigz's": ([weftgz, "-dc", *many], packed["pigz"]),
            "weftgz, own": ([weftgz, "-dc", *many], packed["weftgz"]),
        }, o.reps), "pigz", size, {"weftgz, pigz's": 1.15, "weftgz, own": 2.5 if p == 2 else None})


if __name__ == "__main__":
    main()
