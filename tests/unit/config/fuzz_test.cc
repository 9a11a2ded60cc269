#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "config/config.h"
#include "sample.h"

// With any bytes in a file, reading it ends with a configuration that dumps and reads back, or with
// an error that says something. A failure prints its seed.
namespace tacit::config {
namespace {

constexpr std::string_view kPieces[] = {
    "\n",  "  ",   ": ",  "- ",     "[",    "]",   "{",    "}",    ",",       "\"",
    "'",   "#",    "&a ", "*a",     "!t ",  "|\n", ">\n",  "%",    "---\n",   "...\n",
    "? ",  "<<: ", "\t",  "\x01",   "\xff", "é",   ".inf", ".nan", "-1",      "0",
    "1e9", "1e-9", "~",   "999999", "id",   "\\",  "true", "@",    "epsilon", "[[[[[[[[[["};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Mutate(std::string text) {
    const size_t changes = 1 + Below(4);
    for (size_t i = 0; i < changes; ++i) Change(&text);
    return text;
  }

 private:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  void Change(std::string* text) {
    const size_t at = Below(text->size() + 1);
    const size_t length = std::min<size_t>(Below(12), text->size() - at);
    switch (Below(5)) {
      case 0:
        text->insert(at, kPieces[Below(std::size(kPieces))]);
        break;
      case 1:
        text->erase(at, length);
        break;
      case 2:
        text->replace(at, length, kPieces[Below(std::size(kPieces))]);
        break;
      case 3:
        if (at < text->size()) (*text)[at] = static_cast<char>(Below(256));
        break;
      case 4:
        text->insert(Below(text->size() + 1), text->substr(at, length));
        break;
    }
  }

  std::mt19937_64 random_;
};

TEST(ConfigFuzz, MutationsAreReadOrRefused) {
  size_t valid = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string text = Mutator(seed).Mutate(std::string(kSample));
    const Result<Config> config = Parse(text, "fuzz", {});
    if (!config) {
      ASSERT_FALSE(config.error().message.empty());
      ASSERT_TRUE(config.error().message.starts_with("fuzz:")) << config.error().message;
      ++refused;
      continue;
    }
    ++valid;
    const std::string dump = Dump(*config);
    const Result<Config> again = Parse(dump, "dump", {});
    ASSERT_TRUE(again) << again.error().message << "\n" << dump;
    ASSERT_EQ(Dump(*again), dump);
  }
  // Both ways out were taken often, or the mutations test nothing.
  EXPECT_GT(valid, 200u);
  EXPECT_GT(refused, 10000u);
}

TEST(ConfigFuzz, OverridesAreReadOrRefused) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const std::string text = Mutator(seed).Mutate("learners.0.model.hidden=[8, 4]");
    const Result<Config> config = Parse(kSample, "c.yaml", {text});
    if (!config) {
      ASSERT_TRUE(config.error().message.starts_with("override ")) << config.error().message;
    }
  }
}

TEST(ConfigFuzz, DeepNestingIsRefused) {
  for (const char* piece : {"[", "{a: ", "- ", "? "}) {
    std::string text = "store: ";
    for (int i = 0; i < 100000; ++i) text += piece;
    EXPECT_FALSE(Parse(text, "deep", {})) << piece;
  }
}

}  // namespace
}  // namespace tacit::config
