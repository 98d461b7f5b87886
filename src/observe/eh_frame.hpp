// Finding what .eh_frame says about a pc: which object holds it, and the entry of its table.
//
// The tables are in every program, stripped or not, because exceptions need them. .eh_frame_hdr is a sorted index into
// .eh_frame. An entry (FDE) describes one function; what many functions have in common is in an entry of its own (CIE).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "observe/byte_reader.hpp"

namespace weft::inline v1::observe {

// The part of a loaded object that holds its tables: the segment, in place, or a copy of it (tests).
struct image {
  std::uintptr_t address = 0;  // of the bytes, in the program
  std::span<const std::byte> bytes;
  std::uintptr_t header = 0;  // address of .eh_frame_hdr

  // From this address to the end. Failed if it is outside.
  [[nodiscard]] byte_reader from(std::uintptr_t at) const noexcept;
};

// The object that holds a pc, as the dynamic linker knows it.
struct object {
  const void* link_map = nullptr;  // null: there is none
  std::uintptr_t begin = 0, end = 0;
  std::uintptr_t header = 0;  // 0: it has no .eh_frame_hdr

  friend bool operator==(const object&, const object&) = default;
};

// Takes no lock: it works while a thread hangs in dlopen or dlclose, where dl_iterate_phdr would wait.
[[nodiscard]] object object_at(std::uintptr_t pc) noexcept;
// Its tables, in place. There are no bytes if it has none.
[[nodiscard]] image tables_of(const object& o) noexcept;

// What the FDE of a function and its CIE say.
struct function_entry {
  std::uintptr_t begin = 0, end = 0;  // of the code
  byte_reader common, own;  // the instructions of the CIE, then those of the FDE
  std::uint64_t code_alignment = 0;
  std::int64_t data_alignment = 0;
  std::uint64_t return_column = 0;
  std::uint8_t pointer_encoding = 0;
  bool is_signal_frame = false;
};

// Returns false if the tables say nothing about this pc, or nothing that makes sense.
[[nodiscard]] bool find_entry(const image& in, std::uintptr_t pc, function_entry& found) noexcept;

// A pointer in one of DWARF's encodings (DW_EH_PE_*). `data` is what data-relative ones are relative to. Fails for encodings
// that no compiler uses in these tables.
[[nodiscard]] std::uintptr_t encoded_pointer(byte_reader& r, std::uint8_t encoding, std::uintptr_t data) noexcept;

}  // namespace weft::inline v1::observe
