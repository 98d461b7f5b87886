#!/bin/sh
# check.sh SOURCE COMPILER FLAG...: SOURCE compiles as it is, and with the mistake in it (-DMISTAKE) the compiler says what its
# first line expects, a regular expression, as the first error. Further flags for the mistake may stand in `// flags:`.
set -eu
source=$1
shift
expected=$(sed -n 's,^// expect: ,,p' "$source")
flags=$(sed -n 's,^// flags: ,,p' "$source")
"$@" "$source"
# shellcheck disable=SC2086  # flags are meant to be split
if said=$("$@" -DMISTAKE $flags "$source" 2>&1); then
  echo "$source: compiles in spite of the mistake" >&2
  exit 1
fi
first=$(printf '%s\n' "$said" | grep -m1 'error:')
if ! printf '%s\n' "$first" | grep -qE "$expected"; then
  printf '%s: the first error should say "%s", but it is\n%s\n' "$source" "$expected" "$first" >&2
  exit 1
fi
