#include "cli/ledger/ledger_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>
#include <map>
#include <span>

#include "base/text.h"
#include "cli/ledger/ledger.h"
#include "cli/parts/ask_daemon.h"
#include "config/text_file.h"
#include "console/json_number.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

// The newest entries may change while a ledger is read page by page. When two pages do not join,
// this many entries are read again.
constexpr uint64_t kStepBack = 1024;
constexpr int kStepsBackMax = 100;

Result<std::vector<privacy::LedgerEntry>> DecodeEntries(const json::array& encoded) {
  std::vector<privacy::LedgerEntry> entries;
  std::string bytes;
  for (const json::value& value : encoded) {
    const std::string_view hex = value.as_string();
    bytes.resize(hex.size() / 2);
    if (hex.size() % 2 != 0 ||
        !FromHex(hex, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
      return Fail(ErrorCode::kCorruption, "a ledger entry is not hexadecimal");
    TACIT_ASSIGN(privacy::LedgerEntry entry, privacy::LedgerEntry::Decode(bytes));
    entries.push_back(std::move(entry));
  }
  return entries;
}

double NumberOrInfinity(const json::value& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.to_number<double>();
}

privacy::Ledger::Promises ReadPromises(const json::object& page) {
  privacy::Ledger::Promises promises;
  for (const json::value& one : page.at("promises").as_array()) {
    const bool of_user = one.at("unit").as_string() == privacy::Name(privacy::Unit::kUser);
    promises.learners.push_back({.learner = std::string(one.at("learner").as_string()),
                                 .unit = of_user ? privacy::Unit::kUser : privacy::Unit::kEvent,
                                 .epsilon = NumberOrInfinity(one.at("epsilon")),
                                 .delta = one.at("delta").to_number<double>()});
  }
  if (const json::value& total = page.at("total_budget"); total.is_object())
    promises.total = {.epsilon = total.at("epsilon").to_number<double>(),
                      .delta = total.at("delta").to_number<double>()};
  return promises;
}

json::object PromiseJson(const privacy::Promise& promise) {
  return {{"learner", promise.learner},
          {"unit", privacy::Name(promise.unit)},
          {"epsilon", console::FiniteOrNull(promise.epsilon)},
          {"delta", promise.delta}};
}

// Assembles a ledger page by page.
class PageReader {
 public:
  // Adds a page. Returns whether there is more to read, from next() on.
  Result<bool> Take(const json::object& page) {
    const std::string_view head = page.at("head").as_string();
    constexpr std::string_view kPrefix = "sha256:";
    if (!head.starts_with(kPrefix) || !FromHex(head.substr(kPrefix.size()), copy_.head))
      return Fail(ErrorCode::kIo, "a head that is no SHA-256");
    copy_.promises = ReadPromises(page);
    TACIT_RETURN_IF_ERROR(TakeIdentity(page));
    TACIT_ASSIGN(const std::vector<privacy::LedgerEntry> entries,
                 DecodeEntries(page.at("entries").as_array()));
    if (page.at("from").to_number<uint64_t>() != next())
      return Fail(ErrorCode::kIo, "another page than the one asked for");
    if (!entries.empty() && next() > 0 && entries[0].previous_head != copy_.entries.back().head)
      return StepBack();
    copy_.entries.insert(copy_.entries.end(), entries.begin(), entries.end());
    const auto length = page.at("length").to_number<uint64_t>();
    if (next() < length && entries.empty()) return Fail(ErrorCode::kIo, "a page without entries");
    if (next() < length) return true;
    TACIT_RETURN_IF_ERROR(CheckVersion());
    return false;
  }
  uint64_t next() const { return copy_.entries.size(); }
  LedgerCopy Finish() && { return std::move(copy_); }

 private:
  Status CheckVersion() const {
    for (const privacy::LedgerEntry& entry : copy_.entries)
      if (entry.last_commit > copy_.last->value)
        return Fail(ErrorCode::kCorruption,
                    fmt::format("its version is {}, and its entry {} is of commit {}",
                                copy_.last->value, entry.index, entry.last_commit));
    return {};
  }
  // No link of the chain holds lineage and version.
  Status TakeIdentity(const json::object& page) {
    const auto refuse = [&](const char* key, const json::value* value, const char* wanted) {
      return Fail(ErrorCode::kCorruption,
                  fmt::format("its {} is {}, and must be {}", key,
                              value == nullptr ? "missing" : json::serialize(*value).substr(0, 80),
                              wanted));
    };
    const json::value* lineage = page.if_contains("lineage");
    std::array<uint8_t, 16> drawn;
    if (lineage == nullptr || !lineage->is_string() || !FromHex(lineage->as_string(), drawn))
      return refuse("lineage", lineage, "32 hexadecimal digits");
    copy_.lineage = lineage->as_string();
    const json::value* version = page.if_contains("version");
    json::error_code error;
    if (version != nullptr) copy_.last = CommitSeq(version->to_number<uint64_t>(error));
    if (version == nullptr || error) return refuse("version", version, "the number of a commit");
    return {};
  }

  Result<bool> StepBack() {
    if (++steps_back_ > kStepsBackMax)
      return Fail(ErrorCode::kIo, "it changes faster than it can be read, or its chain is broken");
    copy_.entries.resize(next() - std::min(next(), kStepBack));
    return true;
  }

  LedgerCopy copy_;
  int steps_back_ = 0;
};

Result<json::object> FetchPage(const std::string& url, uint64_t from) {
  TACIT_ASSIGN(const http::Response response,
               AskDaemon(url, fmt::format("/v1/ledger?from={}", from), "GET", ""));
  json::error_code error;
  json::value value = json::parse(response.body, error);
  const json::value* refusal = error ? nullptr : value.find_pointer("/error/message", error);
  if (response.status != 200 && refusal != nullptr && refusal->is_string())
    return Fail(ErrorCode::kIo, fmt::format("{} answered {}: {}", url, response.status,
                                            std::string_view(refusal->get_string())));
  if (response.status != 200 || !value.is_object())
    return Fail(ErrorCode::kIo, fmt::format("{} answered {}: {}", url, response.status,
                                            response.body.substr(0, 200)));
  return std::move(value.get_object());
}

Result<LedgerCopy> CopyFromFile(const std::string& path) {
  constexpr size_t kMiBMost = 4096;
  TACIT_ASSIGN(const std::string text, config::ReadTextFile(path, kMiBMost));
  const std::string none =
      fmt::format("{} is no ledger that `tacit ledger export --raw` has written", path);
  json::error_code error;
  const json::value page = json::parse(text, error);
  if (error || !page.is_object()) return Fail(ErrorCode::kCorruption, none);
  PageReader reader;
  Result<bool> more = false;
  try {
    more = reader.Take(page.get_object());
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kCorruption, none);
  }
  if (!more) return Fail(std::move(more.error()).Context(path));
  if (*more)
    return Fail(ErrorCode::kCorruption, fmt::format("{} lacks the ledger's last entries", path));
  return std::move(reader).Finish();
}

Result<LedgerCopy> CopyFromDaemon(const std::string& url) {
  PageReader reader;
  while (true) {
    TACIT_ASSIGN(const json::object page, FetchPage(url, reader.next()));
    Result<bool> more = false;
    try {
      more = reader.Take(page);
    } catch (const std::exception&) {  // JSON of another shape
      return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", url));
    }
    if (!more) return Fail(std::move(more.error()).Context("the ledger of " + url));
    if (!*more) return std::move(reader).Finish();
  }
}

}  // namespace

std::vector<privacy::LedgerTotal> LedgerCopy::Learners() const {
  const privacy::LearnerNames names(entries);
  std::map<std::string_view, privacy::LedgerTotal> totals;
  for (const privacy::Promise& promise : promises.learners)
    totals[promise.learner] = {promise.learner, promise.unit, 0, promise.delta, 0};
  for (const privacy::LedgerEntry& entry : entries) {
    const std::string_view name = names.Now(entry.learner);
    privacy::LedgerTotal& total = totals[name];
    total = {std::string(name), entry.unit, entry.epsilon, entry.delta, total.steps + entry.steps};
  }
  std::vector<privacy::LedgerTotal> learners;
  for (auto& [name, total] : totals) learners.push_back(std::move(total));
  return learners;
}

double LedgerCopy::TotalDelta() const {
  if (promises.total) return promises.total->delta;
  double largest = 0;
  for (const privacy::LedgerTotal& total : Learners()) largest = std::max(largest, total.delta);
  return largest;
}

std::string ToPage(const LedgerCopy& ledger) {
  json::array entries, promises;
  for (const privacy::LedgerEntry& entry : ledger.entries) {
    const std::string bytes = entry.Encode();
    entries.push_back(
        json::value(ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()})));
  }
  for (const privacy::Promise& promise : ledger.promises.learners)
    promises.push_back(PromiseJson(promise));
  json::object page{{"from", 0},
                    {"length", ledger.entries.size()},
                    {"head", ledger.HeadName()},
                    {"lineage", ledger.lineage},
                    {"promises", std::move(promises)}};
  if (ledger.last) page["version"] = ledger.last->value;
  page["total_budget"] = nullptr;
  if (const auto& total = ledger.promises.total)
    page["total_budget"] = json::object{{"epsilon", total->epsilon}, {"delta", total->delta}};
  page["entries"] = std::move(entries);
  return json::serialize(page) + "\n";
}

privacy::AnchoredLedger LedgerCopy::ForAnchors() const {
  return {.entries = entries,
          .lineage = lineage,
          .last = last,
          .terms = terms ? &*terms : nullptr,
          .ancestors = ancestors};
}

std::string LedgerCopy::HeadName() const { return "sha256:" + ToHex(head); }

namespace {

Result<LedgerCopy> CopyFromStore(const LedgerOptions& options) {
  TACIT_ASSIGN(store::ReadOnlyStore store, OpenLedger(options));
  TACIT_ASSIGN(const std::string witness, WitnessOf(options));
  const auto ancestors = store.snapshot->ancestors();
  return LedgerCopy{.entries = std::move(store.entries),
                    .head = store.snapshot->head(),
                    .promises = std::move(store.promises),
                    .total = store.snapshot->total(),
                    .witnessed = !witness.empty(),
                    .count_users = std::move(store.count_users),
                    .lineage = store.snapshot->lineage(),
                    .last = store.snapshot->version(),
                    .term = store.snapshot->term(),
                    .terms = std::move(store.terms),
                    .ancestors = {ancestors.begin(), ancestors.end()}};
}

}  // namespace

Result<LedgerCopy> CopyLedger(const LedgerOptions& options) {
  TACIT_ASSIGN(LedgerCopy copy, !options.url.empty()    ? CopyFromDaemon(options.url)
                                : !options.file.empty() ? CopyFromFile(options.file)
                                                        : CopyFromStore(options));
  if ((copy.entries.empty() ? Digest{} : copy.entries.back().head) != copy.head)
    return Fail(ErrorCode::kCorruption,
                "the ledger's last entry does not have the head that was committed");
  return copy;
}

}  // namespace tacit::cli
