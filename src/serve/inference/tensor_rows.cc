#include "serve/inference/tensor_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "serve/request_json.h"
#include "serve/score_request.h"

namespace tacit::serve {
namespace {

const uint64_t kRowsMost = ScoreRequestParser::Limits().max_rows;

std::string ShapeText(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ","));
}

bool IsNumber(Datatype datatype) {
  return datatype == Datatype::kFp32 || datatype == Datatype::kFp64 ||
         datatype == Datatype::kInt32 || datatype == Datatype::kInt64;
}

bool IsText(Datatype datatype) {
  return datatype == Datatype::kBytes || datatype == Datatype::kInt32 ||
         datatype == Datatype::kInt64;
}

}  // namespace

TensorRows::TensorRows(std::string model, const event::FeatureTransform& transform)
    : model_(std::move(model)), transform_(transform), rows_(transform) {}

Status TensorRows::Check(const Tensor& input) const {
  const auto column = rows_.ColumnOf(input.name);
  if (!column) return Fail(Error(column.error()).Context("input"));
  const auto refuse = [&](std::string_view what) {
    return BadRequest(fmt::format("input '{}' of {}: {}", input.name, model_, what));
  };
  const bool is_set = !column->is_dense && transform_.schema().categorical[column->index].multi_hot;
  if (column->is_dense && !IsNumber(input.datatype))
    return refuse(
        fmt::format("datatype must be FP32, FP64, INT32 or INT64, not {}", NameOf(input.datatype)));
  if (!column->is_dense && !IsText(input.datatype))
    return refuse(
        fmt::format("datatype must be BYTES, INT32 or INT64, not {}", NameOf(input.datatype)));
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
  batch->Clear();
  sources_.clear();
  const uint64_t rows = inputs[0].shape[0];
  for (const Tensor& input : inputs) {
    TACIT_ASSIGN(const RowReader::Column column, rows_.ColumnOf(input.name));
    if (input.shape[0] != rows)
      return BadRequest(fmt::format("input '{}' has {} rows, input '{}' has {}", input.name,
                                    input.shape[0], inputs[0].name, rows));
    const bool is_set = !column.is_dense && transform_.schema().categorical[column.index].multi_hot;
    sources_.push_back(
        {column, input.shape.size() == 2 ? input.shape[1] : 1, is_set, TensorReader(input)});
  }
  for (uint64_t row = 0; row < rows; ++row) {
    rows_.Begin();
    for (Source& source : sources_) {
      Status set = SetFrom(&source);
      if (!set)
        return Fail(
            std::move(set.error())
                .Context(fmt::format("input '{}', row {}", rows_.Name(source.column), row)));
    }
    rows_.End(batch);
  }
  batch->dense_width = transform_.schema().dense.size();
  batch->slots = transform_.schema().categorical.size();
  return {};
}

Status TensorRows::SetFrom(Source* source) {
  if (source->column.is_dense) {
    const double number = source->reader.Number();
    if (std::isnan(number)) return {};  // missing
    return rows_.SetNumber(source->column, number);
  }
  if (!source->is_set) {
    rows_.SetText(source->column, source->reader.Text());
    return {};
  }
  TACIT_RETURN_IF_ERROR(rows_.BeginList(source->column));
  for (uint64_t i = 0; i < source->in_row; ++i) rows_.AddText(source->reader.Text());
  rows_.EndList();
  return {};
}

}  // namespace tacit::serve
