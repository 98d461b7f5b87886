#include <weftgz/command_line.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include <weft/version.hpp>

namespace weftgz {
namespace {

constexpr const char* help = R"(usage: weftgz [OPTION]... [FILE]...
Compresses files to FILE.gz, or with -d decompresses them, on all processors. Without FILE, or with -, from stdin to
stdout. The files are those of gzip and pigz.

  -1 ... -9, --fast, --best  fast or small (6); -0 stores, -11 takes much longer for a little less
  -b, --blocksize N          N KiB of input at a time (512 to 1536; with --single 128)
  -c, --stdout               write to stdout, keep the files
  -d, --decompress           decompress
  -f, --force                overwrite, follow links, compress what is compressed, write to a terminal; with -dc copy
                             input that is not compressed
  -h, --help                 this text
  -i, --independent          with --single: blocks do not refer to each other (without it they never do)
  -k, --keep                 keep the files
  -l, --list                 list sizes and ratio; with -v also CRC and time
  -n, --no-name              neither store nor restore name and time
  -N, --name                 store name and time (usual when compressing), or restore them
  -p, --processes N          use N processors (all)
  -q, --quiet                no warnings and no progress bar
  -r, --recursive            everything in directories, many files at a time
  -S, --suffix .SUF          use .SUF instead of .gz
  -t, --test                 test the files
  -v, --verbose              say what was done
  -V, --version              print the version
      --single               one member with references between blocks, as pigz makes it. Without it, every block is a
                             member that can be decompressed beside the others
      --progress             the progress bar from the start, not after a second; only on a terminal
      --statistics           at the end: rate, ratio, and what the runtime did

Exit code: 0, or 1 after an error, or 2 after a warning.
)";

struct name_of_option {
  std::string_view name;
  char letter;  // capital X, Y and Z stand for options without a letter
};
constexpr name_of_option names[] = {
    {"fast", '1'},       {"best", '9'},       {"blocksize", 'b'}, {"stdout", 'c'},   {"to-stdout", 'c'},
    {"decompress", 'd'}, {"uncompress", 'd'}, {"force", 'f'},     {"help", 'h'},     {"independent", 'i'},
    {"keep", 'k'},       {"list", 'l'},       {"no-name", 'n'},   {"name", 'N'},     {"processes", 'p'},
    {"quiet", 'q'},      {"silent", 'q'},     {"recursive", 'r'}, {"suffix", 'S'},   {"test", 't'},
    {"verbose", 'v'},    {"version", 'V'},    {"single", 'X'},    {"progress", 'Y'}, {"statistics", 'Z'},
};

[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr, "weftgz: %s\nTry `weftgz --help' for more information.\n", what.c_str());
  std::exit(1);
}

bool takes_value(char letter) noexcept { return letter == 'b' || letter == 'p' || letter == 'S'; }

std::size_t number(std::string_view text, char letter, std::size_t least, std::size_t most) {
  std::size_t n = 0;
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (why != std::errc() || end != text.data() + text.size() || n < least || n > most)
    wrong("-" + std::string(1, letter) + " needs a number from " + std::to_string(least) + " to " +
          std::to_string(most) + ", not '" + std::string(text) + "'");
  return n;
}

void leave_after(const char* text) {
  std::fputs(text, stdout);
  std::exit(std::fflush(stdout) == 0 ? 0 : 1);
}

void apply(options& o, char letter, std::string_view value) {
  switch (letter) {
    case '1':
    case '9': o.level = letter - '0'; break;
    case 'b': o.block_size = number(value, letter, 32, std::size_t{1} << 20) << 10; break;
    case 'c': o.to_stdout = true; break;
    case 'd': o.mode = mode::decompress; break;
    case 'f': o.force = true; break;
    case 'h': leave_after(help); break;
    case 'i': o.independent = true; break;
    case 'k': o.keep = true; break;
    case 'l': o.mode = mode::list; break;
    case 'n': o.no_name = true, o.name = false; break;
    case 'N': o.name = true, o.no_name = false; break;
    case 'p': o.processors = number(value, letter, 1, 4096); break;
    case 'q': o.quiet = true, o.verbose = 0; break;
    case 'r': o.recursive = true; break;
    case 'S':
      if (value.empty() || value.find('/') != std::string_view::npos)
        wrong("invalid suffix '" + std::string(value) + "'");
      o.suffix = value;
      break;
    case 't': o.mode = mode::test; break;
    case 'v': ++o.verbose, o.quiet = false; break;
    case 'V': leave_after("weftgz " WEFT_VERSION "\n"); break;
    case 'X': o.single = true; break;
    case 'Y': o.progress = true; break;
    case 'Z': o.statistics = true; break;
    default: wrong("unknown option -" + std::string(1, letter));
  }
}

// The arguments behind the one that is looked at.
struct further {
  char** next;
  std::string_view value_of(const std::string& option) {
    if (*next == nullptr) wrong(option + " needs a value");
    return *next++;
  }
};

void apply_long(options& o, std::string_view text, further& rest) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  // An abbreviation that is the beginning of one option only will do, as gzip has it.
  const name_of_option* found = nullptr;
  for (const name_of_option& n : names) {
    if (n.name == name) {
      found = &n;
      break;
    }
    if (!n.name.starts_with(name)) continue;
    if (found != nullptr && found->letter != n.letter) wrong("ambiguous option --" + std::string(name));
    found = &n;
  }
  if (found == nullptr) wrong("unknown option --" + std::string(name));
  if (!takes_value(found->letter)) {
    if (equals != std::string_view::npos) wrong("--" + std::string(name) + " takes no value");
    return apply(o, found->letter, {});
  }
  apply(o, found->letter,
        equals != std::string_view::npos ? text.substr(equals + 1) : rest.value_of("--" + std::string(name)));
}

void apply_letters(options& o, std::string_view text, further& rest) {
  while (!text.empty()) {
    const char letter = text.front();
    if (letter >= '0' && letter <= '9') {
      const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
      const std::size_t level = number(text.substr(0, digits), '#', 0, 11);
      if (level == 10) wrong("there is no level 10");
      o.level = static_cast<int>(level);
      text.remove_prefix(digits);
      continue;
    }
    if (letter >= 'X' && letter <= 'Z') wrong("unknown option -" + std::string(1, letter));
    text.remove_prefix(1);
    if (!takes_value(letter)) {
      apply(o, letter, {});
      continue;
    }
    apply(o, letter, text.empty() ? rest.value_of(std::string("-") + letter) : text);
    return;
  }
}

}  // namespace

options parse_command_line(int argc, char** argv) {
  options o;
  further rest{argc > 0 ? argv + 1 : argv};
  bool only_names = false;
  while (*rest.next != nullptr) {
    const std::string_view a = *rest.next++;
    if (only_names || a == "-" || !a.starts_with('-'))
      o.files.emplace_back(only_names && a == "-" ? "./-" : a);  // behind -- it is a name, as for pigz
    else if (a == "--")
      only_names = true;
    else if (a.starts_with("--"))
      apply_long(o, a.substr(2), rest);
    else
      apply_letters(o, a.substr(1), rest);
  }
  return o;
}

}  // namespace weftgz
