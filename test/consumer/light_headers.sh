#!/bin/sh
# light_headers.sh COMPILER INCLUDE_DIR: the headers of those locks that are no arms of a select do not bring in select and the
# containers and ranges it needs, and they do bring in the guards of std that their comments promise.
set -eu
compiler=$1
include=$2

# The last parts of the names of all files that a program with these lines includes, one to a line.
files_of() {
  printf '%s\n' "$1" | "$compiler" -std=c++20 -I"$include" -M -x c++ - | tr -s ' \\' '\n\n' | sed 's,.*/,,' | sort -u
}

status=0
# What the standard library's own headers bring in is not to be held against ours.
unavoidable=$(files_of '#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <source_location>')
for header in mutex shared_mutex condition_variable; do
  files=$(files_of "#include <weft/$header.hpp>")
  for heavy in select.hpp ranges vector algorithm; do
    if printf '%s\n' "$files" | grep -qx "$heavy" && ! printf '%s\n' "$unavoidable" | grep -qx "$heavy"; then
      echo "weft/$header.hpp includes $heavy" >&2
      status=1
    fi
  done
done

printf '%s\n' '#include <weft/mutex.hpp>
void f(weft::mutex& a, weft::mutex& b) {
  { std::lock_guard held(a); }
  { std::unique_lock held(a); }
  { std::scoped_lock held(a, b); }
}' | "$compiler" -std=c++20 -I"$include" -fsyntax-only -x c++ - || status=1
printf '%s\n' '#include <weft/shared_mutex.hpp>
void f(weft::shared_mutex& a) {
  { std::lock_guard held(a); }
  { std::shared_lock held(a); }
}' | "$compiler" -std=c++20 -I"$include" -fsyntax-only -x c++ - || status=1
exit $status
