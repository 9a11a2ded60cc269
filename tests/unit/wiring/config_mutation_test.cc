// `tacitd --check-config` on mutations of whole configurations: each value of config/reference.yaml
// and config/recommend.yaml becomes each of many others, each line goes, each key is misspelt. What
// comes of it is a plan or a refusal that names a key; never an abort.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"
#include "wiring/assembly.h"
#include "wiring/budget_check.h"
#include "wiring/privacy_forecast.h"

namespace tacit::wiring {
namespace {

const std::vector<std::string> kValues = {"",
                                          "~",
                                          "0",
                                          "-1",
                                          "1",
                                          "2",
                                          "0.5",
                                          "-0.5",
                                          "1.5",
                                          "100",
                                          "1e-300",
                                          "1e-9",
                                          "1e6",
                                          "1e19",
                                          "1e38",
                                          "1e300",
                                          "1e400",
                                          ".inf",
                                          "-.inf",
                                          ".nan",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "-9223372036854775808",
                                          "0x10",
                                          "1_000",
                                          "true",
                                          "none",
                                          "poisson",
                                          "user",
                                          "[]",
                                          "{}",
                                          "[1, 2]",
                                          "{a: 1}",
                                          "'x'",
                                          "\"\"",
                                          "*a",
                                          "&a 1",
                                          "!t 1",
                                          std::string(10000, 'a')};

// The last mutation, for a developer who has to find out what ended the program.
char last_mutation[512];
void TellOnAbort(int) {
  const auto unused = write(STDERR_FILENO, last_mutation, strlen(last_mutation));
  (void)unused;
  signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
}

struct Place {
  size_t begin = 0, end = 0;  // of the value in the text
  std::string key;
};

// Every value that follows a key, on a line or in braces.
std::vector<Place> PlacesOf(const std::string& text) {
  static const std::regex kLine(
      R"((?:^|\n) *(?:- )?([a-z_][a-z0-9_.]*): *([^ #\n{][^#\n]*[^ #\n]|[^ #\n{]))");
  static const std::regex kInBraces(R"(([{,] *)([a-z_]+): ([^,{}\[\]]+)(?=[,}]))");
  std::vector<Place> places;
  const auto find = [&](const std::regex& regex, size_t key, size_t value) {
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
      const auto begin = static_cast<size_t>(at->position(value));
      const size_t line = text.rfind('\n', begin) + 1;
      if (text.substr(line, begin - line).find('#') != std::string::npos) continue;
      places.push_back({begin, begin + static_cast<size_t>(at->length(value)), (*at)[key]});
    }
  };
  find(kLine, 1, 2);
  find(kInBraces, 2, 3);
  return places;
}

// The reference with its keys of other kinds too, which are checked and not used. The three that
// are left out would make their section one that is used.
std::string WithUnusedKeys(const std::string& reference) {
  static const std::regex kSection(
      R"(\n( *)#(avro|csv|json|registry|dedupe|generator|history|vocabulary|quantile):(?=\n))");
  static const std::regex kKey(R"(\n( *)#(?!window|bins|on_exhausted)([a-z_0-9]+: [^\n]+))");
  return std::regex_replace(std::regex_replace(reference, kSection, "\n$1$2:"), kKey, "\n$1$2");
}

void Replace(const std::string& from, const std::string& to, std::string* text) {
  const size_t at = text->find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text->replace(at, from.size(), to);
}

class ConfigMutation : public ::testing::Test {
 protected:
  ConfigMutation() {
    signal(SIGABRT, TellOnAbort);
    test::WriteFile(dir_ / "log", "");
    test::WriteFile(dir_ / "items.dat", "1\n2\n3\n");
  }
  ~ConfigMutation() override { signal(SIGABRT, SIG_DFL); }

  // Does what --check-config does. Returns the refusal, or "".
  std::string Check(const std::string& text) {
    auto config = config::Parse(text, "c.yaml", {});
    if (!config) return config.error().message;
    auto assembly = Assemble(std::move(*config));
    if (!assembly) return assembly.error().message;
    (void)config::Dump(assembly->config);
    for (const LearnerPlan& plan : assembly->learners) (void)plan.model->RowsText();
    (void)FirstStepsRefused(*assembly);
    (void)WeakPromises(*assembly);
    return "";
  }

  void Mutated(const std::string& what, const std::string& text, const std::string& key,
               size_t line) {
    snprintf(last_mutation, sizeof(last_mutation), "\nthe last mutation: %.400s\n", what.c_str());
    const std::string refusal = Check(text);
    ++(refusal.empty() ? taken_ : refused_);
    if (refusal.empty() || NamesAKey(refusal, key)) return;
    // Text that is no YAML has no key to name, but a line.
    if (refusal.starts_with(fmt::format("c.yaml:{}: ", line))) return;
    ADD_FAILURE() << what.substr(0, 400) << " is refused without a key: "
                  << refusal.substr(refusal.size() - std::min<size_t>(refusal.size(), 400));
  }

  // The key itself, or one that it makes necessary or takes the place of.
  bool NamesAKey(const std::string& refusal, const std::string& key) const {
    if (refusal.find(key) != std::string::npos) return true;
    return std::ranges::any_of(keys_, [&](const std::string& other) {
      return refusal.find(other + ":") != std::string::npos ||
             refusal.find("." + other) != std::string::npos;
    });
  }

  // Every `stride`-th value at each place, beginning with another one each time.
  void MutateAll(const std::string& text, size_t stride) {
    ASSERT_EQ(Check(text), "") << "what is mutated must be right";
    const std::vector<Place> places = PlacesOf(text);
    for (const Place& place : places) keys_.insert(place.key);
    size_t turn = 0;
    for (const Place& place : places) {
      const auto lines =
          1 + static_cast<size_t>(std::count(
                  text.begin(), text.begin() + static_cast<ptrdiff_t>(place.begin), '\n'));
      const auto with = [&](size_t begin, size_t end, const std::string& value) {
        return text.substr(0, begin) + value + text.substr(end);
      };
      for (size_t v = turn++ % stride; v < kValues.size(); v += stride)
        Mutated(place.key + ": " + kValues[v], with(place.begin, place.end, kValues[v]), place.key,
                lines);
      const size_t key = text.rfind(place.key, place.begin);
      Mutated(place.key + " misspelt", with(key, key + place.key.size(), place.key + "x"),
              place.key, lines);
      Mutated(place.key + " left out", with(key, place.end, ""), place.key, lines);
    }
  }

  test::TempDir dir_;
  std::set<std::string> keys_ = {
      "topic",  "bootstrap.servers", "file", "sampling_rate", "vocabulary", "store", "source",
      "schema", "learners"};
  size_t taken_ = 0, refused_ = 0;
};

TEST_F(ConfigMutation, OfTheReferenceIsPlannedOrRefusedByName) {
  std::string text = WithUnusedKeys(test::ReadFile(TACIT_SOURCE_DIR "/config/reference.yaml"));
  Replace("[/var/log/clicks/day-*.tsv.gz]", dir_ / "log", &text);
  MutateAll(text, 1);
  // As many as were tried when four of them aborted.
  EXPECT_GT(taken_ + refused_, 2700u);
  EXPECT_GT(taken_, 200u);
  EXPECT_GT(refused_, 1500u);
}

TEST_F(ConfigMutation, OfModelsOfTheNextItemIsPlannedOrRefusedByName) {
  std::string text = test::ReadFile(TACIT_SOURCE_DIR "/config/recommend.yaml");
  Replace("shop/day-*.jsonl.gz", dir_ / "log", &text);
  Replace("shop/items.dat", dir_ / "items.dat", &text);
  MutateAll(text, 7);
  EXPECT_GT(taken_, 20u);
  EXPECT_GT(refused_, 150u);
}

// This aborted: noise so small that no grid holds it.
TEST_F(ConfigMutation, AnEpsilonBeyondAllNoiseIsRefusedByKeyAndLine) {
  std::string text = test::ReadFile(TACIT_SOURCE_DIR "/config/reference.yaml");
  Replace("[/var/log/clicks/day-*.tsv.gz]", dir_ / "log", &text);
  for (const char* epsilon : {"1e19", "1e38", "1e300", "1000001"}) {
    std::string mutated = text;
    Replace("epsilon: 8\n", std::string("epsilon: ") + epsilon + "\n", &mutated);
    EXPECT_THAT(Check(mutated),
                ::testing::MatchesRegex("c.yaml:[0-9]+: learners.0..privacy.epsilon: "
                                        "must be above 0 and at most 1000000, is.*"));
  }
  // Within the range, and still less noise than there is: by what it comes to.
  Replace("epsilon: 8\n", "epsilon: 1e6\n", &text);
  EXPECT_THAT(Check(text),
              ::testing::HasSubstr("learner 'ctr': privacy.epsilon: 1000000 at delta"));
}

}  // namespace
}  // namespace tacit::wiring
