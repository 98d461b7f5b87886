// Which object holds a pc: asked of glibc, 2.35 or later.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "observe/eh_frame.hpp"

namespace weft::inline v1::observe {
namespace {

std::uintptr_t number(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

object object_at([[maybe_unused]] std::uintptr_t pc) noexcept {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)  // <dlfcn.h> has _dl_find_object
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &found) == 0) {
    return {found.dlfo_link_map, number(found.dlfo_map_start), number(found.dlfo_map_end), number(found.dlfo_eh_frame)};
  }
#endif
  return {};
}

// Between two segments there may be nothing, so the bounds are those of the segment with the header. The linkers put
// .eh_frame next to it.
image tables_of(const object& o) noexcept {
  if (o.header < o.begin || o.header >= o.end) return {};
  const auto bytes_of = [](std::uintptr_t from, std::uintptr_t to) {
    return std::span(reinterpret_cast<const std::byte*>(from), to - from);
  };
  const image whole{o.begin, bytes_of(o.begin, o.end), o.header};
  byte_reader r = whole.from(o.begin);
  const auto elf = r.fixed<ElfW(Ehdr)>();
  if (r.has_failed() || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return {};
  const std::uintptr_t moved = static_cast<const link_map*>(o.link_map)->l_addr;
  r = whole.from(o.begin + elf.e_phoff);
  for (unsigned i = 0; i < elf.e_phnum && !r.has_failed(); ++i) {
    const auto segment = r.fixed<ElfW(Phdr)>();
    const std::uintptr_t begin = moved + segment.p_vaddr;
    const bool is_mapped = begin >= o.begin && begin <= o.end && o.end - begin >= segment.p_filesz;
    if (segment.p_type == PT_LOAD && is_mapped && o.header >= begin && o.header - begin < segment.p_filesz) {
      return {begin, bytes_of(begin, begin + segment.p_filesz), o.header};
    }
  }
  return {};
}

}  // namespace weft::inline v1::observe
