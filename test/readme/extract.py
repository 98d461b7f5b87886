#!/usr/bin/env python3
"""extract.py README.md OUT.cpp N: writes the N-th ```cpp block, from 0, with #line so that errors point into the README."""
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:3])
which = int(sys.argv[3])
text = source.read_text()
blocks = list(re.finditer(r"^```cpp[^\n]*\n(.*?)^```", text, re.M | re.S))
if len(blocks) <= which:
    sys.exit(f"{source}: there are {len(blocks)} ```cpp blocks, so no number {which}")
block = blocks[which]
line = text.count("\n", 0, block.start(1)) + 1
target.write_text(f'#line {line} "{source.resolve()}"\n{block[1]}')
