#!/bin/sh
# check.sh COMPILER INCLUDE_DIR SOURCE: SOURCE compiles as it is, and with the mistake in it (-DMISTAKE) the compiler says what
# its first line expects, a regular expression, as the first error. Further flags for the mistake may stand in `// flags:`.
set -eu
expected=$(sed -n 's,^// expect: ,,p' "$3")
flags=$(sed -n 's,^// flags: ,,p' "$3")
strict="-std=c++20 -fsyntax-only -Wall -Wextra -Werror -I$2"
# shellcheck disable=SC2086  # flags are meant to be split
"$1" $strict "$3"
# shellcheck disable=SC2086
if said=$("$1" $strict -DMISTAKE $flags "$3" 2>&1); then
  echo "$3: compiles in spite of the mistake" >&2
  exit 1
fi
first=$(printf '%s\n' "$said" | grep -m1 'error:')
if ! printf '%s\n' "$first" | grep -qE "$expected"; then
  printf '%s: the first error should say "%s", but it is\n%s\n' "$3" "$expected" "$first" >&2
  exit 1
fi
