#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "event/codec.h"
#include "event/run_codec.h"
#include "event/tab_scan.h"

namespace tacit::event {
namespace {

constexpr uint64_t InEachByte(uint64_t byte) { return byte * 0x0101010101010101u; }

// The number that the first `digits` bytes of a text of 8 stand for; nullopt if one is no digit.
// All at once, since the end of a loop would be guessed wrong. REQUIRES 0 < digits <= 8.
std::optional<uint64_t> ParseEight(const char* text, size_t digits) {
  uint64_t number = 0;
  std::memcpy(&number, text, sizeof number);
  number = (number ^ InEachByte('0')) << (64 - 8 * digits);  // zeros lead
  if (((number | (number + InEachByte(0x76))) & InEachByte(0x80)) != 0) return std::nullopt;
  // The sum of each two neighbours, the first of them times 10, 100 and 10,000.
  number = (number * 10 + (number >> 8)) & 0x00ff00ff00ff00ffu;
  number = (number * 100 + (number >> 16)) & 0x0000ffff0000ffffu;
  return (number * 10'000 + (number >> 32)) & 0xffffffffu;
}

// Parses decimal digits with an optional minus; returns nullopt for another text or beyond 64 bits.
// `end`: of the record that the field is in.
std::optional<int64_t> ParseInteger(std::string_view field, const char* end) {
  const bool negative = !field.empty() && field[0] == '-';
  if (negative) field.remove_prefix(1);
  if (field.empty() || field.size() > 19) return std::nullopt;
  uint64_t magnitude = 0;  // 19 digits cannot overflow it
  if (field.size() <= 8 && end - field.data() >= 8) {
    const std::optional<uint64_t> parsed = ParseEight(field.data(), field.size());
    if (!parsed) return std::nullopt;
    magnitude = *parsed;
  } else {
    for (const char c : field) {
      const auto digit = static_cast<unsigned>(c) - '0';
      if (digit > 9) return std::nullopt;
      magnitude = magnitude * 10 + digit;
    }
  }
  constexpr auto kMax = static_cast<uint64_t>(INT64_MAX);
  if (magnitude > kMax) return std::nullopt;
  const auto value = static_cast<int64_t>(magnitude);
  return negative ? -value : value;
}

// The fields of a record, left to right. REQUIRES that each has its end.
class Columns {
 public:
  Columns(const char* record, const uint32_t* ends) : record_(record), end_(ends) {}

  std::string_view Next() {
    const std::string_view field(record_ + begin_, *end_ - begin_);
    begin_ = *end_++ + 1;
    return field;
  }

 private:
  const char* const record_;
  const uint32_t* end_;
  uint32_t begin_ = 0;
};

class CriteoTsvCodec final : public RunCodec<CriteoTsvCodec> {
 public:
  struct Scratch {
    std::vector<uint32_t> ends;  // of the columns; kTabsAtOnce further places
    std::vector<std::string_view> values;
  };

  CriteoTsvCodec(const FeatureTransform& transform, LabelUse label)
      : transform_(transform),
        label_(label),
        dense_(transform.schema().dense.size()),
        slots_(transform.schema().categorical.size()),
        one_each_(
            std::ranges::none_of(transform.schema().categorical, &CategoricalFeature::multi_hot)) {}

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == dense_ && batch.slots == slots_, "the batch is not started");
    return {.ends = std::vector<uint32_t>(columns() + kTabsAtOnce), .values = {}};
  }
  MaybeBad DecodeRecord(const RawRecords& records, size_t place, Scratch* scratch,
                        Batch* batch) const;

 private:
  size_t columns() const { return 1 + dense_ + slots_; }
  void AppendSet(size_t feature, std::string_view field, Scratch* scratch, Batch* batch) const;

  const FeatureTransform& transform_;
  const LabelUse label_;
  const size_t dense_, slots_;
  const bool one_each_;  // no feature has sets
};

MaybeBad CriteoTsvCodec::DecodeRecord(const RawRecords& records, size_t place, Scratch* scratch,
                                      Batch* batch) const {
  std::string_view record = records[place];
  if (record.ends_with('\r')) record.remove_suffix(1);
  const size_t found = FindTabs(record, scratch->ends) + 1;
  if (found != columns())
    return BadRecord(
        fmt::format("{} column{}, {} expected", found, found == 1 ? "" : "s", columns()),
        BadPart::kSyntax);
  scratch->ends[columns() - 1] = static_cast<uint32_t>(record.size());
  Columns fields(record.data(), scratch->ends.data());

  const std::string_view label = fields.Next();
  const bool learnt = label_ == LabelUse::kLearnt;
  if (learnt && (label.size() != 1 || (label[0] != '0' && label[0] != '1')))
    return BadRecord("column 1 (label): is neither 0 nor 1", BadPart::kLabel);
  batch->label.push_back(learnt && label[0] == '1' ? 1.0f : 0.0f);
  batch->timestamp_ms.push_back(records.TimeOf(place));
  batch->dense.resize(batch->dense.size() + dense_, kMissingNumber);
  float* const dense = batch->dense.data() + batch->dense.size() - dense_;
  for (size_t i = 0; i < dense_; ++i) {
    const std::string_view field = fields.Next();
    if (field.empty()) continue;
    const std::optional<int64_t> value = ParseInteger(field, record.data() + record.size());
    if (!value) [[unlikely]]
      return fmt::format("column {} ({}): is not an integer", i + 2,
                         transform_.schema().dense[i].name);
    dense[i] = transform_.DenseInteger(i, *value);
  }
  if (one_each_) {
    const size_t begin = batch->row.size(), ends = batch->slot_end.size();
    batch->row.resize(begin + slots_);
    batch->slot_end.resize(ends + slots_);
    uint64_t* const row = batch->row.data() + begin;
    uint32_t* const end = batch->slot_end.data() + ends;
    for (size_t i = 0; i < slots_; ++i) {
      row[i] = transform_.Row(i, fields.Next());
      end[i] = static_cast<uint32_t>(begin + i + 1);
    }
    return std::nullopt;
  }
  for (size_t i = 0; i < slots_; ++i) {
    if (transform_.schema().categorical[i].multi_hot)
      AppendSet(i, fields.Next(), scratch, batch);
    else
      batch->row.push_back(transform_.Row(i, fields.Next()));
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  }
  return std::nullopt;
}

// Appends the rows of a set, whose values are separated by commas.
void CriteoTsvCodec::AppendSet(size_t feature, std::string_view field, Scratch* scratch,
                               Batch* batch) const {
  scratch->values.clear();
  for (size_t comma; (comma = field.find(',')) != std::string_view::npos;) {
    scratch->values.push_back(field.substr(0, comma));
    field.remove_prefix(comma + 1);
  }
  scratch->values.push_back(field);
  transform_.AppendRows(feature, scratch->values, &batch->row);
}

}  // namespace

std::unique_ptr<Codec> MakeCriteoTsvCodec(const FeatureTransform& transform, LabelUse label) {
  return std::make_unique<CriteoTsvCodec>(transform, label);
}

}  // namespace tacit::event
