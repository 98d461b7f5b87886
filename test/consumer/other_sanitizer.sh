#!/bin/sh
# other_sanitizer.sh PKG_CONFIG LIBDIR COMPILER WORK_DIR: a program under AddressSanitizer does not link with this Weft, which is not,
# and learns why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export PKG_CONFIG_PATH="$2/pkgconfig"
mkdir -p "$4"
cd "$4"
# shellcheck disable=SC2046  # flags are meant to be split
if "$3" -std=c++20 -fsanitize=address "$here/main.cpp" "$here/other.cpp" -o consumer $("$1" --cflags --libs weft) 2>said; then
  echo "it links, and would give false reports" >&2
  exit 1
fi
grep -q this_weft_was_built_without_address_sanitizer said || { cat said >&2; exit 1; }
