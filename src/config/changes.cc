#include "config/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/check.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

using enum AtReload;

constexpr std::string_view kPlaces = "places in the stream are counted by it",
                           kPromise = "a start holds it against the store and its ledger",
                           kDoors = "listeners are made at the start",
                           kRooms = "memory and threads are divided at the start",
                           kFiles = "the files are open";

constexpr std::array kRows = std::to_array<ReloadRow>({
    {"source", kStays, kPlaces},
    {"catalogue", kStays, kPromise},
    {"schema", kStays, kPromise},
    {"learners", kStays, kPromise},
    {"budget", kStays, kPromise},
    {"store", kStays, kFiles},
    {"store.on_failure", kTaken, ""},
    {"store.checkpoints.every", kTaken, ""},
    {"store.checkpoints.keep", kTaken, ""},
    {"store.checkpoints.kinds", kTaken, ""},
    {"serve", kStays, kDoors},
    {"serve.access_log", kTaken, ""},
    {"serve.callers", kTaken, ""},
    {"serve.rates", kTaken, ""},
    {"serve.tls", kTaken, ""},
    {"memory", kStays, kRooms},
    {"training", kStays, kRooms},
    {"gpu", kStays, kRooms},
    {"log", kStays, "lines of two forms would follow each other"},
    {"log.level", kTaken, ""},
    {"feed", kStays, "the feed's thread has it"},
    {"kafka", kStays, "connections to the brokers are made with it"},
    {"dead_letters", kStays, kFiles},
});

struct Value {
  std::string text;   // to compare
  std::string shown;  // to show
};

// Visits the description of a configuration and lists each key with its value.
class Lister : public Fields {
 public:
  Lister(std::string prefix, std::vector<std::string>* order, std::map<std::string, Value>* values)
      : prefix_(std::move(prefix)), order_(order), values_(values) {}

  void Text(std::string_view key, std::string* value, Use) override { Add(key, *value); }
  void OneOf(std::string_view key, std::string* value, std::span<const std::string_view>,
             Use) override {
    Add(key, *value);
  }
  void Number(std::string_view key, std::optional<double>* value, const Range&, Use) override {
    if (*value) Add(key, fmt::format("{}", **value));
  }
  void Integer(std::string_view key, uint64_t* value, uint64_t, uint64_t, Use) override {
    Add(key, fmt::format("{}", *value));
  }
  void Flag(std::string_view key, bool* value, Use) override {
    Add(key, *value ? "true" : "false");
  }
  void Bytes(std::string_view key, uint64_t* value, uint64_t, uint64_t) override {
    Add(key, fmt::format("{}", *value));
  }
  void Integers(std::string_view key, std::vector<uint32_t>* values, uint32_t, uint32_t,
                Use) override {
    Add(key, fmt::format("{}", *values));
  }
  void Texts(std::string_view key, std::vector<std::string>* values, Use) override {
    Add(key, fmt::format("{}", *values));
  }
  void Hidden(std::string_view key, Secret* value, Use) override {
    // The place of a text that is kept elsewhere is no secret, but two kinds may have one text.
    Add(key, fmt::format("{} {}", static_cast<int>(value->kind), value->text), "(redacted)");
  }
  void Verbatim(std::string_view key, std::vector<Property>* properties, Use) override {
    Section(key, [properties](Fields& below) {
      for (Property& property : *properties) below.Hidden(property.name, &property.value);
    });
  }
  void OwnNames(std::string_view key, Words* words, Use) override {
    Section(key, [words](Fields& below) {
      for (auto& [name, text] : *words) below.Text(name, &text);
    });
  }
  void Section(std::string_view key, const std::function<void(Fields&)>& describe) override {
    Lister below(fmt::format("{}{}.", prefix_, key), order_, values_);
    describe(below);
  }

 protected:
  void List(std::string_view key, const std::function<void(size_t)>&, size_t size,
            const std::function<void(size_t, Fields&)>& describe, bool) override {
    for (size_t i = 0; i < size; ++i) {
      Lister item(fmt::format("{}{}.{}.", prefix_, key, i), order_, values_);
      describe(i, item);
    }
  }

 private:
  void Add(std::string_view key, std::string text, std::string shown = "") {
    std::string path = prefix_ + std::string(key);
    if (IsSecret(key)) shown = "(redacted)";
    if (shown.empty()) shown = text.empty() ? "empty" : text;
    if (values_->emplace(path, Value{std::move(text), std::move(shown)}).second)
      order_->push_back(std::move(path));
  }

  const std::string prefix_;
  std::vector<std::string>* const order_;
  std::map<std::string, Value>* const values_;
};

std::map<std::string, Value> ValuesOf(Config config, std::vector<std::string>* order) {
  std::map<std::string, Value> values;
  Lister lister("", order, &values);
  DescribeConfig(lister, config);
  return values;
}

}  // namespace

std::span<const ReloadRow> ReloadTable() { return kRows; }

const ReloadRow* ReloadRowOf(std::string_view key) {
  const ReloadRow* found = nullptr;
  for (const ReloadRow& row : kRows) {
    const bool covers = key == row.key || (key.starts_with(row.key) && key[row.key.size()] == '.');
    if (covers && (found == nullptr || row.key.size() > found->key.size())) found = &row;
  }
  return found;
}

std::vector<Change> ChangesOf(const Config& before, const Config& now) {
  std::vector<std::string> order, more;
  const auto old_values = ValuesOf(before, &order), new_values = ValuesOf(now, &more);
  for (std::string& path : more)
    if (!old_values.contains(path)) order.push_back(std::move(path));
  std::vector<Change> changes;
  for (const std::string& path : order) {
    const auto was = old_values.find(path), is = new_values.find(path);
    const bool gone = is == new_values.end(), fresh = was == old_values.end();
    if (!gone && !fresh && was->second.text == is->second.text) continue;
    changes.push_back(
        {path, fresh ? "nothing" : was->second.shown, gone ? "nothing" : is->second.shown});
  }
  return changes;
}

void TakeReloaded(const Config& from, Config* to) {
  // Listeners are made with TLS or without, and ask for tokens or not.
  if (from.serve.callers.empty() == to->serve.callers.empty())
    to->serve.callers = from.serve.callers;
  if (from.serve.tls.certificate.empty() == to->serve.tls.certificate.empty())
    to->serve.tls = from.serve.tls;
  to->store.on_failure = from.store.on_failure;
  to->store.checkpoints.every = from.store.checkpoints.every;
  to->store.checkpoints.every_s = from.store.checkpoints.every_s;
  to->store.checkpoints.keep = from.store.checkpoints.keep;
  to->store.checkpoints.kinds = from.store.checkpoints.kinds;
  to->serve.access_log = from.serve.access_log;
  to->serve.rates = from.serve.rates;
  to->log.level = from.log.level;
}

}  // namespace tacit::config
