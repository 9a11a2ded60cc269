#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/cpu.h"
#include "event/codec.h"
#include "event/run_codec.h"
#include "event/tab_scan.h"
#include "event/wide_fields.h"

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

// Fields behind a tab each: field i lies between tabs[i] and tabs[i + 1], or the record's end.
struct TabFields {
  const char* record;
  const uint32_t* tabs;

  std::string_view operator[](size_t i) const {
    return {record + tabs[i] + 1, tabs[i + 1] - tabs[i] - 1};
  }
};

// As many as are read at once, from each `kFieldsAtOnce`-th on.
size_t AtOnce(size_t from, size_t all) { return std::min(kFieldsAtOnce, all - from); }

// True if wide_fields.h can be used here for these features.
bool IsWide(const FeatureTransform& transform) {
  const auto is_small = [](uint64_t count) { return count <= UINT32_MAX; };
  return ThisCpu().avx512 && std::ranges::all_of(transform.buckets().count, is_small);
}

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
            std::ranges::none_of(transform.schema().categorical, &CategoricalFeature::multi_hot)),
        wide_(IsWide(transform)) {}

  Scratch MakeScratch(const Batch& batch) const {
    TACIT_CHECK(batch.dense_width == dense_ && batch.slots == slots_, "the batch is not started");
    return {.ends = std::vector<uint32_t>(columns() + kTabsAtOnce), .values = {}};
  }
  MaybeBad DecodeRecord(const RawRecords& records, size_t place, Scratch* scratch,
                        Batch* batch) const;

 private:
  size_t columns() const { return 1 + dense_ + slots_; }
  std::optional<size_t> ReadNumbers(const TabFields& fields, const char* end, bool wide,
                                    float* inputs) const;
  void ReadRows(const TabFields& fields, bool wide, uint64_t* rows) const;
  void AppendSet(size_t feature, std::string_view field, Scratch* scratch, Batch* batch) const;

  const FeatureTransform& transform_;
  const LabelUse label_;
  const size_t dense_, slots_;
  const bool one_each_;  // no feature has sets
  const bool wide_;      // eight fields are read at once
};

MaybeBad CriteoTsvCodec::DecodeRecord(const RawRecords& records, size_t place, Scratch* scratch,
                                      Batch* batch) const {
  std::string_view record = records[place];
  if (record.ends_with('\r')) record.remove_suffix(1);
  const size_t found =
      (wide_ ? FindTabsWide(record, scratch->ends) : FindTabs(record, scratch->ends)) + 1;
  if (found != columns())
    return BadRecord(
        fmt::format("{} column{}, {} expected", found, found == 1 ? "" : "s", columns()),
        BadPart::kSyntax);
  scratch->ends[columns() - 1] = static_cast<uint32_t>(record.size());
  const char* const end = record.data() + record.size();
  // The last records have no 8 bytes behind them.
  const bool wide = wide_ && records.bytes.data() + records.bytes.size() - end >= 8;

  const std::string_view label = record.substr(0, scratch->ends[0]);
  const bool learnt = label_ == LabelUse::kLearnt;
  if (learnt && (label.size() != 1 || (label[0] != '0' && label[0] != '1')))
    return BadRecord("column 1 (label): is neither 0 nor 1", BadPart::kLabel);
  batch->label.push_back(learnt && label[0] == '1' ? 1.0f : 0.0f);
  batch->timestamp_ms.push_back(records.TimeOf(place));
  batch->dense.resize(batch->dense.size() + dense_, kMissingNumber);
  float* const dense = batch->dense.data() + batch->dense.size() - dense_;
  const TabFields numbers{record.data(), scratch->ends.data()};
  if (const auto bad = ReadNumbers(numbers, end, wide, dense)) [[unlikely]]
    return fmt::format("column {} ({}): is not an integer", *bad + 2,
                       transform_.schema().dense[*bad].name);
  const TabFields categories{record.data(), scratch->ends.data() + dense_};
  if (one_each_) {
    const size_t begin = batch->row.size(), ends = batch->slot_end.size();
    batch->row.resize(begin + slots_);
    batch->slot_end.resize(ends + slots_);
    ReadRows(categories, wide, batch->row.data() + begin);
    uint32_t* const slot_end = batch->slot_end.data() + ends;
    for (size_t i = 0; i < slots_; ++i) slot_end[i] = static_cast<uint32_t>(begin + i + 1);
    return std::nullopt;
  }
  for (size_t i = 0; i < slots_; ++i) {
    if (transform_.schema().categorical[i].multi_hot)
      AppendSet(i, categories[i], scratch, batch);
    else
      batch->row.push_back(transform_.Row(i, categories[i]));
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  }
  return std::nullopt;
}

// Returns the first number that is no integer. `inputs` has kMissingNumber where none is there.
std::optional<size_t> CriteoTsvCodec::ReadNumbers(const TabFields& fields, const char* end,
                                                  bool wide, float* inputs) const {
  for (size_t i = 0; i < dense_; i += kFieldsAtOnce) {
    const size_t count = AtOnce(i, dense_);
    int64_t values[kFieldsAtOnce] = {};
    const uint32_t left =
        wide ? ReadIntegersWide(fields.record, fields.tabs + i, count, values) : ~0u;
    for (size_t k = 0; k < count; ++k) {
      const std::string_view field = fields[i + k];
      if (field.empty()) continue;
      if ((left >> k & 1) != 0) {
        const std::optional<int64_t> value = ParseInteger(field, end);
        if (!value) [[unlikely]]
          return i + k;
        values[k] = *value;
      }
      inputs[i + k] = transform_.DenseInteger(i + k, values[k]);
    }
  }
  return std::nullopt;
}

void CriteoTsvCodec::ReadRows(const TabFields& fields, bool wide, uint64_t* rows) const {
  const FeatureTransform::Buckets& buckets = transform_.buckets();
  for (size_t i = 0; i < slots_; i += kFieldsAtOnce) {
    const size_t count = AtOnce(i, slots_);
    uint32_t left = (1u << count) - 1;
    if (wide)
      left = ReadRowsWide(
          fields.record, fields.tabs + i, count,
          {buckets.missing.data() + i, buckets.count.data() + i, buckets.seed.data() + i},
          rows + i);
    for (; left != 0; left &= left - 1) {
      const size_t feature = i + static_cast<size_t>(std::countr_zero(left));
      rows[feature] = transform_.Row(feature, fields[feature]);
    }
  }
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
