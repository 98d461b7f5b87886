#!/bin/sh
# pkg_config.sh PKG_CONFIG LIBDIR COMPILER WORK_DIR BOOST: builds and runs the consumer with what weft.pc says. BOOST is `no` if
# weft.pc must not ask for it.
# req: W-10
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export PKG_CONFIG_PATH="$2/pkgconfig"
if [ "$5" = no ] && "$1" --libs --static weft | grep -q boost; then
  echo "weft.pc asks for Boost, which this Weft does not use" >&2
  exit 1
fi
mkdir -p "$4"
cd "$4"
# shellcheck disable=SC2046  # flags are meant to be split
"$3" -std=c++20 -O2 "$here/main.cpp" "$here/other.cpp" -o consumer $("$1" --cflags --libs weft)
LD_LIBRARY_PATH="$2" ./consumer
