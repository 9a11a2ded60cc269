#include "serve/inference/tensor_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/distinct_rows.h"
#include "http/request_json.h"
#include "serve/scoring/score_request.h"

namespace tacit::serve {
namespace {

const uint64_t kRowsMost = ScoreRequestParser::Limits().max_rows;

std::string ShapeText(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ","));
}

bool IsNumber(Datatype datatype) {
  return datatype == Datatype::kFp32 || datatype == Datatype::kFp64 ||
         datatype == Datatype::kBool || IsInteger(datatype);
}

bool IsText(Datatype datatype) { return datatype == Datatype::kBytes || IsInteger(datatype); }

}  // namespace

TensorRows::TensorRows(std::string model, const event::FeatureTransform& transform)
    : model_(std::move(model)),
      transform_(transform),
      names_(transform),
      numbers_(transform.schema().dense.size()),
      texts_(transform.schema().categorical.size()) {}

Status TensorRows::Check(const Tensor& input) const {
  const auto column = names_.ColumnOf(input.name);
  if (!column) return Fail(Error(column.error()).Context("input"));
  const auto refuse = [&](std::string_view what) {
    return http::BadRequest(fmt::format("input '{}' of {}: {}", input.name, model_, what));
  };
  const bool is_set = !column->is_dense && transform_.schema().categorical[column->index].multi_hot;
  if (column->is_dense && !IsNumber(input.datatype))
    return refuse(fmt::format("datatype must be FP32, FP64, BOOL or an integer's, not {}",
                              NameOf(input.datatype)));
  if (!column->is_dense && !IsText(input.datatype))
    return refuse(
        fmt::format("datatype must be BYTES or an integer's, not {}", NameOf(input.datatype)));
  const size_t rank = input.shape.size();
  if (is_set ? rank != 1 && rank != 2 : rank != 1 && !(rank == 2 && input.shape[1] == 1))
    return refuse(fmt::format("shape must be {}, not {}",
                              is_set ? "[rows,n] or [rows]" : "[rows] or [rows,1]",
                              ShapeText(input)));
  if (input.shape[0] > kRowsMost)
    return refuse(fmt::format("more than {} rows in one request", kRowsMost));
  return {};
}

Status TensorRows::Read(std::span<const Tensor> inputs, event::Batch* batch) {
  transform_.StartBatch(batch);
  TACIT_RETURN_IF_ERROR(FindSources(inputs));
  const size_t rows = inputs[0].shape[0];
  batch->dense.resize(rows * numbers_.size());
  for (size_t column = 0; column < numbers_.size(); ++column)
    TACIT_RETURN_IF_ERROR(ReadNumbers(column, batch));
  for (size_t slot = 0; slot < texts_.size(); ++slot)
    if (IsSet(slot)) ReadSet(slot, rows);
  PlaceSlots(rows, batch);
  for (size_t slot = 0; slot < texts_.size(); ++slot) ReadTexts(slot, batch);
  batch->offset.resize(rows);
  std::iota(batch->offset.begin(), batch->offset.end(), 0);
  batch->timestamp_ms.resize(rows);
  batch->label.resize(rows);
  return {};
}

Status TensorRows::FindSources(std::span<const Tensor> inputs) {
  for (Source& source : numbers_) source.tensor = nullptr;
  for (Source& source : texts_) source.tensor = nullptr;
  for (const Tensor& input : inputs) {
    TACIT_ASSIGN(const RowReader::Column column, names_.ColumnOf(input.name));
    if (input.shape[0] != inputs[0].shape[0])
      return http::BadRequest(fmt::format("input '{}' has {} rows, input '{}' has {}", input.name,
                                          input.shape[0], inputs[0].name, inputs[0].shape[0]));
    (column.is_dense ? numbers_ : texts_)[column.index].tensor = &input;
  }
  return {};
}

Status TensorRows::ReadNumbers(size_t column, event::Batch* batch) const {
  const size_t width = numbers_.size(), rows = batch->dense.size() / width;
  float* const to = batch->dense.data() + column;
  const Tensor* const tensor = numbers_[column].tensor;
  if (tensor == nullptr) {
    const float missing = transform_.Dense(column, std::nullopt);
    for (size_t row = 0; row < rows; ++row) to[row * width] = missing;
    return {};
  }
  TensorReader reader(*tensor);
  for (size_t row = 0; row < rows; ++row) {
    const double number = reader.Number();
    if (std::isinf(number))
      return http::BadRequest(
          fmt::format("input '{0}', row {1}: {0} is out of range", tensor->name, row));
    // NaN stands for a missing number.
    to[row * width] = transform_.Dense(column, number);
  }
  return {};
}

// Keeps the first distinct texts of each row, up to the schema's maximum; the missing value where
// there are none.
void TensorRows::ReadSet(size_t slot, size_t rows) {
  Source& source = texts_[slot];
  source.row.clear();
  source.end.clear();
  if (source.tensor == nullptr) return;
  const size_t most = transform_.schema().categorical[slot].max_values;
  const std::vector<uint64_t>& shape = source.tensor->shape;
  const uint64_t in_row = shape.size() == 2 ? shape[1] : 1;
  TensorReader reader(*source.tensor);
  DistinctRows distinct;
  for (size_t row = 0; row < rows; ++row) {
    const size_t begin = source.row.size();
    distinct.Begin(begin, most);
    for (uint64_t i = 0; i < in_row; ++i) {
      const std::string_view text = reader.Text();
      if (text.empty() || distinct.IsFull(source.row)) continue;
      distinct.Add(transform_.Row(slot, text), &source.row);
    }
    if (source.row.size() == begin) source.row.push_back(transform_.Row(slot, {}));
    source.end.push_back(static_cast<uint32_t>(source.row.size()));
  }
}

// Sets where each slot of each row ends, and makes room for the values.
void TensorRows::PlaceSlots(size_t rows, event::Batch* batch) const {
  batch->slot_end.resize(rows * texts_.size());
  uint32_t end = 0;
  uint32_t* to = batch->slot_end.data();
  for (size_t row = 0; row < rows; ++row) {
    for (const Source& source : texts_) {
      end += source.end.empty() ? 1 : source.end[row] - (row == 0 ? 0 : source.end[row - 1]);
      *to++ = end;
    }
  }
  batch->row.resize(end);
}

void TensorRows::ReadTexts(size_t slot, event::Batch* batch) const {
  const Source& source = texts_[slot];
  const size_t slots = texts_.size(), rows = batch->slot_end.size() / slots;
  const uint32_t* const end = batch->slot_end.data() + slot;
  uint64_t* const to = batch->row.data();
  if (!source.end.empty()) {
    const uint64_t* from = source.row.data();
    for (size_t row = 0; row < rows; ++row) {
      const uint32_t count = source.end[row] - (row == 0 ? 0 : source.end[row - 1]);
      std::copy_n(from, count, to + end[row * slots] - count);
      from += count;
    }
  } else if (source.tensor == nullptr) {
    const uint64_t missing = transform_.Row(slot, {});
    for (size_t row = 0; row < rows; ++row) to[end[row * slots] - 1] = missing;
  } else {
    TensorReader reader(*source.tensor);
    for (size_t row = 0; row < rows; ++row)
      to[end[row * slots] - 1] = transform_.Row(slot, reader.Text());
  }
}

}  // namespace tacit::serve
