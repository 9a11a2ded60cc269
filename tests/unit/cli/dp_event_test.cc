// The export against events written by hand from dp_accounting's dp_event.py, and read back by a
// reader that knows nothing but that file's classes and their fields.
#include "cli/parts/dp_event.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace tacit::cli {
namespace {

namespace json = boost::json;
using privacy::Spending;

json::value Golden() {
  std::ifstream file(TACIT_SOURCE_DIR "/tests/golden/dp_events.json");
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

TEST(DpEvent, IsTheGoldenOfEveryKind) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::map<std::string, Spending> spendings = {
      {"nothing", {}},
      {"unbounded", {.mu_squared = infinity, .rho = 1}},
      {"once", {.mu_squared = 0.25}},
      {"poisson", {.sampled = {{1, 0.01, 300}}}},
      {"gumbel", {.rho = 0.125}},
      {"everything", {.mu_squared = 4, .rho = 0.125, .sampled = {{1, 0.01, 300}, {3, 0.5, 1}}}}};
  const json::value golden = Golden();
  ASSERT_EQ(golden.as_array().size(), spendings.size());
  for (const json::value& one : golden.as_array()) {
    const std::string name(one.at("name").as_string());
    const json::value found = DpEventJson(spendings.at(name));
    EXPECT_EQ(found, one.at("event")) << name << ": " << json::serialize(found);
  }
}

// The attrs classes of dp_event.py that may appear, with all their fields.
const std::map<std::string, std::vector<std::string>> kClasses = {
    {"NoOpDpEvent", {}},
    {"NonPrivateDpEvent", {}},
    {"GaussianDpEvent", {"noise_multiplier"}},
    {"PoissonSampledDpEvent", {"sampling_probability", "event"}},
    {"SelfComposedDpEvent", {"event", "count"}},
    {"ComposedDpEvent", {"events"}},
    {"ZCDpEvent", {"rho", "xi"}}};

// Does what from_named_tuple does: a class of this module, called with exactly its fields.
std::string ClassOf(const json::object& event) {
  EXPECT_EQ(event.at("module_name"), "dp_accounting.dp_event");
  const std::string name(event.at("class_name").as_string());
  const auto known = kClasses.find(name);
  EXPECT_NE(known, kClasses.end()) << name;
  EXPECT_EQ(event.size(), 2 + known->second.size()) << name;
  for (const std::string& field : known->second) EXPECT_TRUE(event.contains(field)) << field;
  return name;
}

double Number(const json::object& event, const char* field) {
  EXPECT_TRUE(event.at(field).is_double()) << field;
  return event.at(field).as_double();
}

Spending Read(const json::object& event) {
  const std::string name = ClassOf(event);
  Spending read;
  if (name == "GaussianDpEvent") {
    read.mu_squared = std::pow(Number(event, "noise_multiplier"), -2);
  } else if (name == "ZCDpEvent") {
    EXPECT_EQ(Number(event, "xi"), 0);
    read.rho = Number(event, "rho");
  } else if (name == "SelfComposedDpEvent") {
    const json::object& once = event.at("event").as_object();
    EXPECT_EQ(ClassOf(once), "PoissonSampledDpEvent");
    const json::object& inner = once.at("event").as_object();
    EXPECT_EQ(ClassOf(inner), "GaussianDpEvent");
    read.sampled.push_back({Number(inner, "noise_multiplier"), Number(once, "sampling_probability"),
                            event.at("count").to_number<uint64_t>()});
  } else if (name == "ComposedDpEvent") {
    for (const json::value& one : event.at("events").as_array()) read.Add(Read(one.as_object()));
  } else {
    EXPECT_EQ(name, "NoOpDpEvent");
  }
  return read;
}

TEST(DpEvent, ReadsBackAsTheSpending) {
  std::mt19937_64 random(20261120);
  const auto uniform = [&] { return std::uniform_real_distribution<>(0.01, 1)(random); };
  for (int i = 0; i < 200; ++i) {
    Spending spending;
    if (random() % 2 == 0) spending.mu_squared = uniform();
    if (random() % 2 == 0) spending.rho = uniform();
    for (uint64_t k = random() % 4; k > 0; --k) {
      Spending more;
      more.sampled.push_back({10 * uniform(), 0.9 * uniform(), 1 + random() % 1000});
      spending.Add(more);
    }
    // Through text, as a file; this parser may be off in the last place.
    const json::value event = json::parse(json::serialize(DpEventJson(spending)));
    const Spending read = Read(event.as_object());
    EXPECT_NEAR(read.mu_squared, spending.mu_squared, 1e-14 * spending.mu_squared);
    EXPECT_NEAR(read.rho, spending.rho, 1e-15);
    ASSERT_EQ(read.sampled.size(), spending.sampled.size());
    for (size_t k = 0; k < read.sampled.size(); ++k) {
      const Spending::Sampled &found = read.sampled[k], &expected = spending.sampled[k];
      EXPECT_NEAR(found.noise_multiplier, expected.noise_multiplier, 1e-14);
      EXPECT_NEAR(found.sampling_rate, expected.sampling_rate, 1e-15);
      EXPECT_EQ(found.count, expected.count);
    }
  }
}

}  // namespace
}  // namespace tacit::cli
