#include "serve/scoring/row_reader.h"

#include <fmt/format.h>

#include <cmath>

namespace tacit::serve {

RowReader::RowReader(const event::FeatureTransform& transform) : transform_(transform) {
  const auto& schema = transform.schema();
  for (size_t i = 0; i < schema.dense.size(); ++i) {
    columns_[names_.emplace_back(schema.dense[i].name)] = {true, i};
    missing_.push_back(transform.Dense(i, std::nullopt));
  }
  for (size_t i = 0; i < schema.categorical.size(); ++i)
    columns_[names_.emplace_back(schema.categorical[i].name)] = {false, i};
}

void RowReader::Begin() {
  dense_ = missing_;
  rows_.clear();
  slots_.assign(transform_.schema().categorical.size(), {0, 0});
  has_dense_.assign(missing_.size(), false);
  has_slot_.assign(slots_.size(), false);
}

void RowReader::End(event::Batch* batch) {
  batch->dense.insert(batch->dense.end(), dense_.begin(), dense_.end());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto [begin, end] = slots_[i];
    if (begin == end)
      batch->row.push_back(transform_.Row(i, {}));
    else
      batch->row.insert(batch->row.end(), rows_.begin() + static_cast<ptrdiff_t>(begin),
                        rows_.begin() + static_cast<ptrdiff_t>(end));
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
  }
  batch->offset.push_back(batch->label.size());
  batch->timestamp_ms.push_back(0);
  batch->label.push_back(0);
}

size_t RowReader::width(bool is_dense) const {
  return is_dense ? missing_.size() : transform_.schema().categorical.size();
}

const std::string& RowReader::Name(Column column) const {
  const auto& schema = transform_.schema();
  return column.is_dense ? schema.dense[column.index].name : schema.categorical[column.index].name;
}

Result<RowReader::Column> RowReader::ColumnOf(std::string_view feature) const {
  const auto at = columns_.find(feature);
  if (at == columns_.end()) return http::BadRequest(http::UnknownName("feature", feature, names_));
  return at->second;
}

Result<RowReader::Column> RowReader::Find(std::string_view feature) {
  TACIT_ASSIGN(const Column column, ColumnOf(feature));
  std::vector<bool>& has = column.is_dense ? has_dense_ : has_slot_;
  if (has[column.index])
    return http::BadRequest(fmt::format("feature '{}' is there twice", feature));
  has[column.index] = true;
  return column;
}

Status RowReader::Set(Column column, const http::JsonValue& value) {
  const bool is_null = value.kind == http::JsonValue::Kind::kNull;
  if (column.is_dense) {
    const std::optional<double> number = value.Number();
    if (!number && !is_null)
      return http::BadRequest(fmt::format("{} must be a number or null", Name(column)));
    if (number) return SetNumber(column, *number);
    dense_[column.index] = missing_[column.index];
    return {};
  }
  if (!is_null && !value.IsId())
    return http::BadRequest(
        fmt::format("{} must be a string, a whole number or null", Name(column)));
  std::string digits;
  SetText(column, is_null ? "" : value.Id(&digits));
  return {};
}

Status RowReader::SetNumber(Column column, double number) {
  if (!std::isfinite(number))
    return http::BadRequest(fmt::format("{} is out of range", Name(column)));
  dense_[column.index] = transform_.Dense(column.index, number);
  return {};
}

void RowReader::SetText(Column column, std::string_view text) {
  if (text.empty()) return;
  slots_[column.index] = {rows_.size(), rows_.size() + 1};
  rows_.push_back(transform_.Row(column.index, text));
}

Status RowReader::BeginList(Column column) {
  if (column.is_dense)
    return http::BadRequest(fmt::format("{} must be a number or null", Name(column)));
  if (!transform_.schema().categorical[column.index].multi_hot)
    return http::BadRequest(fmt::format("{} takes one value, not a list", Name(column)));
  list_feature_ = column.index;
  slots_[list_feature_] = {rows_.size(), rows_.size()};
  distinct_.Begin(rows_.size(), transform_.schema().categorical[list_feature_].max_values);
  return {};
}

Status RowReader::AddToList(const http::JsonValue& value) {
  const event::CategoricalFeature& schema = transform_.schema().categorical[list_feature_];
  if (!value.IsId())
    return http::BadRequest(
        fmt::format("{} must hold strings and whole numbers only", schema.name));
  std::string digits;
  AddText(value.Id(&digits));
  return {};
}

void RowReader::AddText(std::string_view text) {
  if (text.empty() || distinct_.IsFull(rows_)) return;
  distinct_.Add(transform_.Row(list_feature_, text), &rows_);
}

void RowReader::EndList() { slots_[list_feature_].second = rows_.size(); }

}  // namespace tacit::serve
