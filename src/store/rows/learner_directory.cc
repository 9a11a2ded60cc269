// A learner's record, in `meta` under `learner/`, sealed. The notation is base/bytes.h's.
//     learner := name:string fingerprint:digest row_seed:u64 tables:u32 table*tables decay:f64
//                [place*tables]
//     table   := name:string rows:u64 dim:u32 optimizer_floats:u32 initial_scale:f32
//     place   := number:u16 initial:u64 spread:u32
// `decay` is that of the weights' moving average; 0: they have none. Places (TablePlace) are there
// in a model that has grown.
#include "store/rows/learner_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/check.h"

namespace tacit::store {
namespace {

Status Refuse(std::string_view learner, std::string difference) {
  return Fail(ErrorCode::kRefused,
              fmt::format("learner '{}' differs from the store's model of that name: {}; train it "
                          "under another id or in another store, or let tacitd take it over if "
                          "its features or its catalogue have grown",
                          learner, difference));
}

// Places are of all tables or of none, and numbers are distinct.
bool PlacesAreRight(const RowLayout& layout) {
  if (layout.places.empty()) return true;
  std::set<uint16_t> numbers;
  for (const TablePlace& place : layout.places)
    if (place.spread == 0 || !numbers.insert(place.number).second) return false;
  return layout.places.size() == layout.space.tables().size();
}

LearnerRecord MakeRecord(uint16_t key, const LearnerLayout& configured) {
  return {key, configured.name, configured.promise.model_fingerprint, configured.rows};
}

}  // namespace

std::string_view FormOf(std::span<const std::string> forms, uint16_t key) {
  return key < forms.size() ? std::string_view(forms[key]) : std::string_view();
}

std::string EncodeLearner(const LearnerRecord& record) {
  ByteWriter writer;
  writer.PutString(record.name);
  writer.PutArray(std::span<const uint8_t>(record.model_fingerprint));
  writer.Put(record.layout.seed);
  const auto tables = record.layout.space.tables();
  writer.Put(static_cast<uint32_t>(tables.size()));
  for (size_t t = 0; t < tables.size(); ++t)
    writer.PutString(tables[t].name)
        .Put(tables[t].rows)
        .Put(tables[t].dim)
        .Put(record.layout.state_floats[t])
        .Put(record.layout.initial_scale[t]);
  writer.Put(record.layout.average.decay());
  for (const TablePlace& place : record.layout.places)
    writer.Put(place.number).Put(place.initial).Put(place.spread);
  return std::move(writer).Take();
}

Result<LearnerRecord> DecodeLearner(uint16_t key, std::string_view bytes) {
  ByteReader reader(bytes);
  LearnerRecord record;
  record.key = key;
  record.name = reader.GetString();
  reader.GetArray(std::span<uint8_t>(record.model_fingerprint));
  record.layout.seed = reader.Get<uint64_t>();
  const auto tables = reader.Get<uint32_t>();
  for (uint32_t t = 0; t < tables && reader.ok(); ++t) {
    const std::string name(reader.GetString());
    const auto rows = reader.Get<uint64_t>();
    const auto dim = reader.Get<uint32_t>();
    record.layout.state_floats.push_back(reader.Get<uint32_t>());
    record.layout.initial_scale.push_back(reader.Get<float>());
    if (rows == 0 || dim == 0) break;
    record.layout.space.AddTable(name, rows, dim);
  }
  const auto decay = reader.Get<double>();
  for (uint32_t t = 0; t < tables && reader.ok() && !reader.at_end(); ++t) {
    TablePlace& place = record.layout.places.emplace_back();
    place.number = reader.Get<uint16_t>();
    place.initial = reader.Get<uint64_t>();
    place.spread = reader.Get<uint32_t>();
  }
  if (!reader.at_end() || !PlacesAreRight(record.layout) ||
      record.layout.space.tables().size() != tables || !(decay >= 0 && decay < 1))
    return Fail(ErrorCode::kCorruption, fmt::format("the record of learner {} is damaged", key));
  record.layout.average = MovingAverage(decay);
  return record;
}

Status CheckSameModel(const LearnerRecord& stored, const LearnerLayout& configured,
                      std::string_view form) {
  const auto old_tables = stored.layout.space.tables();
  const auto new_tables = configured.rows.space.tables();
  if (old_tables.size() != new_tables.size())
    return Refuse(stored.name, fmt::format("{} tables in the store, {} in the configuration",
                                           old_tables.size(), new_tables.size()));
  for (size_t t = 0; t < old_tables.size(); ++t) {
    if (old_tables[t].name != new_tables[t].name)
      return Refuse(stored.name,
                    fmt::format("its table {} is '{}' in the store, '{}' in the configuration", t,
                                old_tables[t].name, new_tables[t].name));
    const auto differ = [&](std::string_view what, auto before, auto now) {
      return Refuse(stored.name,
                    fmt::format("table '{}' has {} {} in the store, {} in the configuration",
                                old_tables[t].name, before, what, now));
    };
    if (old_tables[t].rows != new_tables[t].rows)
      return differ("rows", old_tables[t].rows, new_tables[t].rows);
    if (old_tables[t].dim != new_tables[t].dim)
      return differ("floats in a row", old_tables[t].dim, new_tables[t].dim);
    if (stored.layout.state_floats[t] != configured.rows.state_floats[t])
      return differ("optimiser floats", stored.layout.state_floats[t],
                    configured.rows.state_floats[t]);
    if (stored.layout.places.empty() &&
        stored.layout.initial_scale[t] != configured.rows.initial_scale[t])
      return differ("as initial scale", stored.layout.initial_scale[t],
                    configured.rows.initial_scale[t]);
  }
  if (stored.layout.average.decay() != configured.rows.average.decay())
    return Refuse(stored.name,
                  fmt::format("its weights' average decays by {} in the store, by {} in the "
                              "configuration (0: no average)",
                              stored.layout.average.decay(), configured.rows.average.decay()));
  if (stored.layout.seed != configured.rows.seed)
    return Refuse(stored.name, fmt::format("row seed {} in the store, {} in the configuration",
                                           stored.layout.seed, configured.rows.seed));
  if (stored.model_fingerprint != configured.promise.model_fingerprint)
    return Refuse(stored.name, "the model fingerprint differs");
  if (!form.empty() && form != configured.form)
    return Refuse(stored.name, "its inputs are other ones, or in another order");
  return {};
}

Result<LearnerDirectory::Matched> LearnerDirectory::Match(
    std::span<const LearnerLayout> configured, std::span<const uint8_t> trained,
    std::span<const std::string> forms, const std::map<std::string, std::string>& renames) {
  Matched matched;
  std::vector<uint16_t>& changed = matched.changed;
  for (size_t i = 0; i < configured.size(); ++i) {
    const LearnerLayout& layout = configured[i];
    TACIT_CHECK(layout.rows.state_floats.size() == layout.rows.space.tables().size() &&
                    layout.rows.initial_scale.size() == layout.rows.space.tables().size(),
                "a layout needs optimiser floats and a scale for every table");
    auto record = std::ranges::find(records_, layout.name, &LearnerRecord::name);
    const auto rename = renames.find(layout.name);
    const bool renamed = record == records_.end() && rename != renames.end();
    if (renamed) record = std::ranges::find(records_, rename->second, &LearnerRecord::name);
    if (record == records_.end()) {
      TACIT_CHECK(records_.size() < UINT16_MAX, "too many learners");
      changed.push_back(static_cast<uint16_t>(records_.size()));
      records_.push_back(MakeRecord(changed.back(), layout));
      record = records_.end() - 1;
    } else if (const Status same = CheckSameModel(*record, layout, FormOf(forms, record->key));
               !same || renamed) {
      if (!trained[record->key]) {
        *record = MakeRecord(record->key, layout);
        changed.push_back(record->key);
      } else if ((layout.grow || same) && !forms.empty()) {
        matched.others.push_back(i);
      } else {
        return Fail(same.error());
      }
    }
    TACIT_CHECK(std::find(keys_.begin(), keys_.end(), record->key) == keys_.end(),
                "two learners of one name");
    record->layout.bf16 = layout.rows.bf16;
    keys_.push_back(record->key);
  }
  return matched;
}

void LearnerDirectory::Replace(LearnerRecord record) {
  const uint16_t key = record.key;
  records_[key] = std::move(record);
}

uint16_t LearnerDirectory::KeyOf(LearnerIndex learner) const {
  TACIT_CHECK(learner.value < keys_.size(), "no such learner in the configuration");
  return keys_[learner.value];
}

}  // namespace tacit::store
