#include "config/changes.h"

#include <map>

#include "config/lister.h"

namespace tacit::config {
namespace {

constexpr std::string_view kPromise = "a start holds it against the store and its ledger",
                           kRooms = "memory and threads are divided at the start",
                           kFiles = "the files are open";

struct SectionThatStays {
  std::string_view section;
  std::string_view why;
};
constexpr SectionThatStays kSections[] = {
    {"source", "places in the stream are counted by it"},
    {"catalogue", kPromise},
    {"schema", kPromise},
    {"learners", kPromise},
    {"budget", kPromise},
    {"store", kFiles},
    {"serve", "listeners are made at the start"},
    {"memory", kRooms},
    {"training", kRooms},
    {"gpu", kRooms},
    {"log", "lines of two forms would follow each other"},
    {"feed", "the feed's thread has it"},
    {"workers", "the thread that deals periods out has it"},
    {"kafka", "connections to the brokers are made with it"},
    {"dead_letters", kFiles},
};

// A value as it is shown. The place of a text that is kept elsewhere is no secret, but it is hidden
// too.
std::string Shown(const Row& row) {
  if (row.type == Row::Type::kSecret || IsSecret(row.name())) return "(redacted)";
  return row.value == "\"\"" ? "empty" : row.value;
}

using Values = std::map<std::string_view, const Row*>;

// The keys that have a value.
Values ValuesOf(const std::vector<Row>& rows) {
  Values values;
  for (const Row& row : rows)
    if (row.is_key() && !row.value.empty()) values.emplace(row.path, &row);
  return values;
}

}  // namespace

std::string_view WhyItStays(std::string_view path) {
  for (const SectionThatStays& row : kSections)
    if (path.substr(0, path.find('.')) == row.section) return row.why;
  return {};
}

std::vector<Change> ChangesOf(const Config& before, const Config& now) {
  const std::vector<Row> old_rows = RowsOf(before), new_rows = RowsOf(now);
  const Values old_values = ValuesOf(old_rows), new_values = ValuesOf(new_rows);
  std::vector<Change> changes;
  const auto compare = [&](const Row& row) {
    const auto was = old_values.find(row.path), is = new_values.find(row.path);
    const bool gone = is == new_values.end(), fresh = was == old_values.end();
    if (gone && fresh) return;
    if (!gone && !fresh && was->second->value == is->second->value) return;
    changes.push_back({row.path, fresh ? "nothing" : Shown(*was->second),
                       gone ? "nothing" : Shown(*is->second), row.reload});
  };
  for (const Row& row : old_rows)
    if (old_values.contains(row.path)) compare(row);
  for (const Row& row : new_rows)
    if (!old_values.contains(row.path)) compare(row);
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
  to->serve.drain_ms = from.serve.drain_ms;
  to->serve.access_log = from.serve.access_log;
  to->serve.rates = from.serve.rates;
  to->log.level = from.log.level;
  to->about = from.about;
}

}  // namespace tacit::config
