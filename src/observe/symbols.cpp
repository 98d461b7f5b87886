#include "observe/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "base/lock.hpp"
#include "observe/eh_frame.hpp"
#include "observe/source_lookup.hpp"

namespace weft::inline v1::observe {
namespace {

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// What is left in a stripped program: an exported name, else where it is, as addr2line understands it.
std::string name_without_tables(std::uintptr_t address, const object& in) {
  // dladdr waits for a thread that is in dlopen. No other part of a dump asks it, and this one asks it last.
  Dl_info info{};
  if (in.link_map != nullptr && dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr) {
    return info.dli_sname;
  }
  std::string_view module;
  std::uintptr_t offset = address;
  if (in.link_map != nullptr) {
    const auto& loaded = *static_cast<const link_map*>(in.link_map);
    module = loaded.l_name;
    if (module.empty()) module = program_invocation_name;  // of the program itself
    offset -= loaded.l_addr;
  }
  module.remove_prefix(module.rfind('/') + 1);  // npos + 1 is 0
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  do {
    hex.insert(hex.begin(), digits[offset % 16]);
    offset /= 16;
  } while (offset != 0);
  return (module.empty() ? std::string() : std::string(module) + "+") + "0x" + hex;
}

std::vector<symbol> look_up(std::uintptr_t address, const object& in) {
  std::vector<symbol> found = lines_at(address);
  if (found.empty()) found.emplace_back();
  // Debug information of level 1 has names without their namespaces. For the outermost function the symbol table knows.
  symbol& outermost = found.back();
  if (!outermost.function.starts_with("_Z")) {
    if (std::string name = symbol_at(address); !name.empty()) outermost.function = std::move(name);
  }
  if (outermost.function.empty()) outermost.function = name_without_tables(address, in);
  for (symbol& s : found) s.function = s.function.empty() ? "?" : demangled(s.function);
  return found;
}

struct known_symbols {
  object in;  // another object may be loaded at the same place later
  std::vector<symbol> symbols;
};
constinit base::lock symbols_lock;
constexpr std::size_t most_known = 1 << 16;

// Under symbols_lock. Never destroyed: dumps are made until the process ends.
constinit std::unordered_map<std::uintptr_t, known_symbols>* all_known = nullptr;

}  // namespace

std::vector<symbol> symbols_of(std::uintptr_t pc, bool is_exact) {
  const std::uintptr_t address = is_exact ? pc : pc - 1;
  const object in = object_at(address);
  const base::lock_guard held(symbols_lock);
  if (all_known == nullptr) all_known = new std::unordered_map<std::uintptr_t, known_symbols>;
  auto& cache = *all_known;
  if (const auto found = cache.find(address); found != cache.end() && found->second.in == in) {
    return found->second.symbols;
  }
  if (cache.size() >= most_known) cache.clear();
  // If this throws, nothing is known of the address, rather than that it has no symbols.
  known_symbols entry{in, look_up(address, in)};
  return cache.insert_or_assign(address, std::move(entry)).first->second.symbols;
}

std::vector<symbol> symbols_of(std::span<const frame> frames) {
  std::vector<symbol> all;
  for (const frame& f : frames) {
    for (symbol& s : symbols_of(f)) all.push_back(std::move(s));
  }
  return all;
}

}  // namespace weft::inline v1::observe
