// A pipeline: words are cleaned, measured by four tasks at a time but kept in order, and counted by length.
#include <weft/weft.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace st = weft::stream;

namespace {

const std::vector<std::string> text{"The",   "warp",    "is", "held,", "the", "weft",  "is",
                                    "drawn", "through", "--", "over",  "and", "under."};

std::string clean(std::string word) {
  std::erase_if(word, [](unsigned char c) { return !std::isalpha(c); });
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::size_t measure(const std::string& word) {
  weft::sleep_for(std::chrono::milliseconds(2));  // slow, so four words are measured at a time
  return word.size();
}

}  // namespace

int main() {
  return weft::run([] {
    // A stage is a value. It runs when it gets an end.
    const auto cleaned = st::map(clean) | st::where([](const std::string& word) { return !word.empty(); });

    std::map<std::size_t, int> lengths;
    st::enumerate(text) | cleaned | st::parallel_map(4, measure) | st::sink([&](std::size_t n) { ++lengths[n]; });
    for (const auto& [length, words] : lengths) std::printf("%d words of %zu letters\n", words, length);

    // An endless source ends when nobody reads it. An exception arrives where the stream is read.
    auto numbers = st::count_forever(1) | st::map([](int i) {
                     if (i == 4) throw std::runtime_error("four is too many");
                     return i;
                   });
    try {
      for (int i : numbers) std::printf("%d\n", i);
    } catch (const std::exception& e) {
      std::printf("%s\n", e.what());
    }
  });
}
