// Included in front of every file of a mutated build (see run.py): is this mutant the one that the environment chose?
//
// WEFT_MUTANT=17 makes mutant 17 the broken one. WEFT_MUTANTS_REACHED=FILE names a file of one byte per mutant, which becomes 1
// when its place is reached; children that a test forks write to the same file.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft_mutation {

inline constexpr int most = 8192;
inline unsigned char nobody_asked[most] = {};
inline unsigned char* reached = nobody_asked;
inline int mutant = 0;

// Before the constructors of the program, whose code may be mutated as well. Every file that is compiled brings one; all but
// the first find that it is done.
[[gnu::constructor(101), gnu::used]] static void read_environment() {
  if (const char* number = getenv("WEFT_MUTANT")) mutant = atoi(number);
  const char* path = getenv("WEFT_MUTANTS_REACHED");
  if (path == nullptr || reached != nobody_asked) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) abort();
  void* bytes = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) abort();
  close(file);
  reached = static_cast<unsigned char*>(bytes);
}

// What the compiler evaluates is never broken, so constants stay what they are.
[[gnu::always_inline]] constexpr inline bool chosen(int number) noexcept {
  if (__builtin_is_constant_evaluated()) return false;
  if (__builtin_expect(reached[number] == 0, 0)) reached[number] = 1;
  return __builtin_expect(mutant == number, 0);
}

}  // namespace weft_mutation

#define WEFT_MUTANT(number) ::weft_mutation::chosen(number)
