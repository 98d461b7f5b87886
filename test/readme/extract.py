#!/usr/bin/env python3
"""extract.py README.md OUT.cpp: writes the first ```cpp block, with #line so that errors point into the README."""
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:])
text = source.read_text()
block = re.search(r"^```cpp[^\n]*\n(.*?)^```", text, re.M | re.S)
if not block:
    sys.exit(f"{source}: no ```cpp block")
line = text.count("\n", 0, block.start(1)) + 1
target.write_text(f'#line {line} "{source.resolve()}"\n{block[1]}')
