#!/usr/bin/env bash
# Shows weftgz at work: makes a corpus of what every Debian with a compiler has, compresses it, has gzip check the result,
# and decompresses it. On a terminal there is a progress bar.
set -euo pipefail
weftgz=$(realpath "$1")
megabytes=${2:-96}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

size=$((megabytes * 1000 * 1000))
find /usr/include /usr/share/perl "$(dirname "$0")/../.." -name .git -prune -o -type f \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.pm' \) -print0 2>/dev/null | sort -z |
  xargs -0 cat 2>/dev/null | head -c "$size" >"$work/corpus" || true
[[ -s $work/corpus ]] || head -c "$size" /dev/zero >"$work/corpus"
while (($(stat -c %s "$work/corpus") * 2 <= size)); do
  cat "$work/corpus" "$work/corpus" >"$work/twice"
  mv "$work/twice" "$work/corpus"
done

printf '  compress:\n'
"$weftgz" --keep --progress --statistics "$work/corpus"
gzip -dc "$work/corpus.gz" | cmp - "$work/corpus"
printf '  gzip reads it, and finds what was compressed\n  decompress:\n'
"$weftgz" --progress --statistics -dc "$work/corpus.gz" >"$work/again"
cmp "$work/again" "$work/corpus"
