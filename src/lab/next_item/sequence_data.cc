#include "lab/next_item/sequence_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "event/item_catalogue.h"
#include "stream/log/input_file.h"
#include "stream/log/line_reader.h"
#include "wiring/plans/item_texts.h"

namespace tacit::lab {
namespace {

constexpr size_t kLineBytesMost = 1 << 16;
constexpr size_t kLinesAtOnce = 4096, kBytesAtOnce = 1 << 20;

// Calls take(line) for every nonempty line; an error names the file and the line.
Status ForLines(const std::string& path, const std::function<Status(std::string_view)>& take) {
  TACIT_ASSIGN(auto file, stream::InputFile::Open(path));
  stream::LineReader reader(std::move(file), kLineBytesMost);
  event::RawRecords lines;
  uint64_t before = 0;
  while (true) {
    lines.Clear();
    TACIT_RETURN_IF_ERROR(reader.Read(kLinesAtOnce, kBytesAtOnce, &lines));
    if (lines.size() == 0) return {};
    const auto at = [&](size_t i) { return fmt::format("{}:{}", path, before + i + 1); };
    if (!lines.faults.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {}", at(lines.faults[0].index), lines.faults[0].reason));
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string_view line = lines[i];
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.empty()) continue;
      Status taken = take(line);
      if (!taken) return Fail(std::move(taken.error()).Context(at(i)));
    }
    before += lines.size();
  }
}

constexpr std::string_view kBlanks = " \t", kBlanksAndCommas = " \t,";

// Splits a line into words; fails unless there are `number` of them.
Result<std::vector<std::string_view>> Words(std::string_view line, size_t number,
                                            std::string_view form,
                                            std::string_view between = kBlanks) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(between, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(between, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  if (words.size() == number) return words;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} words where `{}` is expected", words.size(), form));
}

// Numbers names in order of first appearance.
class Numbers {
 public:
  uint32_t Of(std::string_view name) {
    const auto [at, fresh] = number_.try_emplace(std::string(name), names_.size());
    if (fresh) names_.emplace_back(name);
    return static_cast<uint32_t>(at->second);
  }
  size_t size() const { return names_.size(); }
  std::vector<std::string> Take() && { return std::move(names_); }

 private:
  std::unordered_map<std::string, size_t> number_;
  std::vector<std::string> names_;
};

// The indices of the names, ordered by SHA-256 of the name.
std::vector<uint32_t> ByDigest(std::span<const std::string> names) {
  std::vector<Digest> digests;
  for (const std::string& name : names) digests.push_back(Sha256().Update(name).Finish());
  std::vector<uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return digests[i]; });
  return order;
}

// The id of a user: the first 8 bytes of SHA-256 of his name in the file.
uint64_t IdOf(std::string_view name) {
  const Digest digest = Sha256().Update(name).Finish();
  uint64_t id = 0;
  for (size_t i = 0; i < sizeof(id); ++i) id = id << 8 | digest[i];
  return id;
}

// Renumbers the items independently of any history. The order of first appearance depends on users'
// histories, and an item's number breaks ties.
void Renumber(std::vector<std::string>* items, std::vector<std::vector<uint32_t>>* histories) {
  const std::vector<uint32_t> order = ByDigest(*items);
  std::vector<uint32_t> number(order.size());
  std::vector<std::string> names;
  for (uint32_t place = 0; place < order.size(); ++place) {
    number[order[place]] = place;
    names.push_back(std::move((*items)[order[place]]));
  }
  *items = std::move(names);
  for (auto& history : *histories)
    for (uint32_t& item : history) item = number[item];
}

using HistoryOfUser = std::vector<std::vector<uint32_t>>;

SequenceData MakeData(const std::string& path, Numbers users, Numbers items,
                      HistoryOfUser of_user) {
  SequenceData data{.path = path, .histories = {}, .items = {}, .identity = {}};
  data.histories.catalogue = static_cast<uint32_t>(items.size());
  data.items = std::move(items).Take();
  Renumber(&data.items, &of_user);
  for (const std::string& name : std::move(users).Take()) data.histories.id.push_back(IdOf(name));
  Sha256 digest;
  for (const auto& history : of_user) {
    data.histories.items.insert(data.histories.items.end(), history.begin(), history.end());
    data.histories.end.push_back(data.histories.items.size());
    digest.Update(fmt::format("{}\n", fmt::join(history, " ")));
  }
  for (const std::string& item : data.items) digest.Update(item + "\n");
  data.identity = ToHex(digest.Finish());
  return data;
}

// The number that the whole word spells; nothing if it does not.
std::optional<double> NumberOf(std::string_view word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

}  // namespace

Result<SequenceData> ReadSequences(const std::string& path) {
  Numbers users, items;
  HistoryOfUser of_user;
  TACIT_RETURN_IF_ERROR(ForLines(path, [&](std::string_view line) -> Status {
    TACIT_ASSIGN(const auto words, Words(line, 2, "user item"));
    const uint32_t user = users.Of(words[0]);
    if (user == of_user.size()) of_user.emplace_back();
    of_user[user].push_back(items.Of(words[1]));
    return {};
  }));
  if (of_user.empty())
    return Fail(ErrorCode::kInvalidArgument, path + ": no line `user item` is in it");
  return MakeData(path, std::move(users), std::move(items), std::move(of_user));
}

Result<SequenceStream> ReadSequenceStream(const std::string& path) {
  Numbers users, items;
  HistoryOfUser of_user;
  SequenceStream stream;
  bool first = true;
  double before = -std::numeric_limits<double>::infinity();
  TACIT_RETURN_IF_ERROR(ForLines(path, [&](std::string_view line) -> Status {
    TACIT_ASSIGN(const auto words, Words(line, 4, "user item rating timestamp", kBlanksAndCommas));
    const auto time = NumberOf(words[3]);
    if (std::exchange(first, false) && !time) return {};
    if (!time)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("timestamp {}: no number", words[3]));
    if (*time < before)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("timestamp {}: the line before it is later; a stream is in order of "
                              "time",
                              words[3]));
    before = *time;
    const uint32_t user = users.Of(words[0]);
    if (user == of_user.size()) of_user.emplace_back();
    of_user[user].push_back(items.Of(words[1]));
    stream.user.push_back(user);
    return {};
  }));
  if (stream.user.empty())
    return Fail(ErrorCode::kInvalidArgument,
                path + ": no line `user item rating timestamp` is in it");
  stream.data = MakeData(path, std::move(users), std::move(items), std::move(of_user));
  // The same histories with events in a different order are a different stream.
  Sha256 digest;
  digest.Update(stream.data.identity).Update(fmt::format("{}", fmt::join(stream.user, " ")));
  stream.data.identity = ToHex(digest.Finish());
  return stream;
}

Result<model::transitions::PublicItems> ReadCatalogue(const SequenceData& data,
                                                      const std::string& items_path,
                                                      const std::string& ids_path) {
  TACIT_ASSIGN(const event::ItemCatalogue described, event::ItemCatalogue::Read(items_path));
  std::unordered_map<std::string, std::string> id_of;
  if (!ids_path.empty())
    TACIT_RETURN_IF_ERROR(ForLines(ids_path, [&](std::string_view line) -> Status {
      TACIT_ASSIGN(const auto words, Words(line, 2, "item id"));
      if (!id_of.emplace(words[0], words[1]).second)
        return Fail(ErrorCode::kInvalidArgument, fmt::format("item {} is there twice", words[0]));
      return {};
    }));
  std::vector<uint32_t> items;
  for (const std::string& name : data.items) {
    std::string id = name;
    if (!ids_path.empty()) {
      const auto at = id_of.find(name);
      if (at == id_of.end())
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: no line for item {} of the data", ids_path, name));
      id = at->second;
    }
    items.push_back(described.Find(id));
    if (items.back() == event::kNoItem)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: item {} of the data (id {}) is not described", items_path, name, id));
  }
  return wiring::ItemTexts(described, items);
}

SequenceSplit LeaveLastOut(const model::Histories& histories, bool validate) {
  constexpr size_t kItemsLeast = 3;
  SequenceSplit split;
  split.train.catalogue = histories.catalogue;
  split.train.id = histories.id;
  for (uint32_t user = 0; user < histories.units(); ++user) {
    std::span<const uint32_t> items = histories.Of(user);
    if (items.size() >= kItemsLeast) {
      if (validate) items = items.first(items.size() - 1);
      split.user.push_back(user);
      split.answer.push_back(items.back());
      items = items.first(items.size() - 1);
    }
    split.train.items.insert(split.train.items.end(), items.begin(), items.end());
    split.train.end.push_back(split.train.items.size());
  }
  return split;
}

}  // namespace tacit::lab
