#include "observe/channel_holders.hpp"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "observe/memory.hpp"
#include "observe/stack_reader.hpp"

namespace weft::inline v1::observe {
namespace {

using machine_word = std::uintptr_t;

// What a search of some memory has found.
struct hits {
  std::size_t words = 0;
  bool pair = false;  // two words side by side
};

void search(std::span<const std::byte> bytes, machine_word address, hits& found) noexcept {
  bool before = false;
  for (std::size_t at = 0; at + sizeof(machine_word) <= bytes.size(); at += sizeof(machine_word)) {
    machine_word w = 0;
    std::memcpy(&w, bytes.data() + at, sizeof w);
    if (w == address) {
      ++found.words;
      found.pair = found.pair || before;
    }
    before = w == address;
  }
}

// Memory that is read by copies of it, because sanitizers would complain of reading it in place.
void search_in_place(machine_word begin, machine_word end, machine_word address, hits& found) {
  constexpr std::size_t piece = std::size_t{64} << 10;
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(piece);
  for (machine_word at = (begin + sizeof(machine_word) - 1) & ~(sizeof(machine_word) - 1); at < end; at += piece) {
    const std::size_t n = std::min<std::size_t>(piece, end - at);
    if (try_copy(copy.get(), reinterpret_cast<const void*>(at), n)) search({copy.get(), n}, address, found);
  }
}

// The variables of the program and of its libraries. The libraries of Weft's own keep no channels.
bool is_in_variables(machine_word address) {
  struct {
    machine_word address;
    hits found;
  } with{address, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* argument) {
        auto& [wanted, found] = *static_cast<decltype(with)*>(argument);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& part = object->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
          const machine_word begin = object->dlpi_addr + part.p_vaddr;
          search_in_place(begin, begin + part.p_memsz, wanted, found);
        }
        return found.words != 0 ? 1 : 0;
      },
      &with);
  return with.found.words != 0;
}

}  // namespace

channel_holders find_holders(const wait_graph& in, const object_view& channel) {
  const machine_word address = reinterpret_cast<machine_word>(channel.address);
  channel_holders all;
  stack_reader reader;
  bool pair = false;
  for (std::size_t i = 0; i < in.nodes().size(); ++i) {
    const task_view& t = *in.nodes()[i].task;
    hits found;
    if (reader.copy(*t.record, t.memory)) search(reader.last_copy().bytes, address, found);
    pair = pair || found.pair;
    // Most closures lie inside the record. Those on the heap count as not searched.
    const auto record = reinterpret_cast<machine_word>(t.record);
    if (const auto body = reinterpret_cast<machine_word>(look_unguarded(*t.record).body);
        body > record && body < record + task::fiber_size)
      search_in_place(body, body + task::fiber::inline_capacity, address, found);
    if (found.words != 0) all.tasks.push_back(i);
  }
  all.in_variables = is_in_variables(address);
  all.is_certain = pair && channel.writers == 1 && channel.readers == 1 && !all.in_variables && all.tasks.size() == 1;
  return all;
}

}  // namespace weft::inline v1::observe
