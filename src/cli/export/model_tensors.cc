#include "cli/export/model_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "serve/items/item_model.h"
#include "serve/scoring/row_scorer.h"

namespace tacit::cli {
namespace {

constexpr size_t kRowsAtOnce = 4096;

// Writes these rows of the learner's space, in their order.
Status WriteRows(const ExportedModel& model, const RowSpace::Table& table,
                 std::span<const uint64_t> rows, TensorSink& sink) {
  std::vector<float> numbers;
  for (; !rows.empty(); rows = rows.subspan(std::min(kRowsAtOnce, rows.size()))) {
    const auto some = rows.first(std::min(kRowsAtOnce, rows.size()));
    numbers.resize(some.size() * table.dim);
    TACIT_RETURN_IF_ERROR(model.snapshot.Rows(model.plan.index, some, numbers));
    TACIT_RETURN_IF_ERROR(sink.Write(numbers));
  }
  return {};
}

Status WriteTable(const ExportedModel& model, const RowSpace::Table& table, TensorSink& sink) {
  std::vector<uint64_t> rows;
  for (uint64_t begin = 0; begin < table.rows; begin += kRowsAtOnce) {
    rows.clear();
    for (uint64_t row = begin; row < std::min(begin + kRowsAtOnce, table.rows); ++row)
      rows.push_back(table.first + row);
    TACIT_RETURN_IF_ERROR(WriteRows(model, table, rows, sink));
  }
  return {};
}

// The dense tensors, in the order of the parameters; one flat tensor if the kind names none.
std::vector<wiring::DenseTensor> DenseOf(const wiring::LearnerPlan& plan, size_t parameters) {
  auto tensors = plan.model->DenseTensors();
  uint64_t named = 0;
  for (const wiring::DenseTensor& tensor : tensors) named += tensor.size();
  if (tensors.empty() || named != parameters) tensors = {{.name = "dense", .shape = {parameters}}};
  if (parameters == 0) tensors.clear();
  return tensors;
}

std::vector<std::string> ItemNames(const event::ItemCatalogue& items) {
  std::vector<std::string> names;
  for (uint32_t item = 0; item < items.items(); ++item) names.emplace_back(items.Name(item));
  return names;
}

std::string NameIn(const ExportedModel& model, std::string_view part) {
  return fmt::format("{}/{}", model.plan.id, part);
}

// Scores all items after each one.
Status WriteScores(const serve::ItemModel& of, const serve::ItemState& state, TensorSink& sink) {
  const auto scorer = of.MakeScorer();
  std::vector<float> scores(of.items());
  for (uint32_t item = 0; item < of.items(); ++item) {
    TACIT_RETURN_IF_ERROR(scorer->Score(state, {&item, 1}, scores));
    TACIT_RETURN_IF_ERROR(sink.Write(scores));
  }
  return {};
}

}  // namespace

std::vector<ModelTensor> ParametersOf(const ExportedModel& model) {
  std::vector<ModelTensor> tensors;
  for (const RowSpace::Table& table : model.layout.rows.space.tables())
    tensors.push_back(
        {.tensor = {NameIn(model, table.name), {table.rows, table.dim}},
         .write = [model, &table](TensorSink& sink) { return WriteTable(model, table, sink); }});
  const std::span<const float> dense = model.snapshot.ServedDense(model.plan.index);
  size_t at = 0;
  for (wiring::DenseTensor& part : DenseOf(model.plan, dense.size())) {
    Tensor tensor{NameIn(model, part.name), std::move(part.shape)};
    if (part.of_items && model.items != nullptr) tensor.rows = ItemNames(*model.items);
    const std::span<const float> numbers = dense.subspan(at, tensor.size());
    at += numbers.size();
    tensors.push_back({.tensor = std::move(tensor),
                       .write = [numbers](TensorSink& sink) { return sink.Write(numbers); }});
  }
  return tensors;
}

Result<std::vector<ModelTensor>> BiasOf(const ExportedModel& model) {
  TACIT_ASSIGN(const auto form, model.plan.model->Probability(model.snapshot));
  std::vector<ModelTensor> tensors;
  if (form && !form->network)
    tensors.push_back({.tensor = {NameIn(model, "bias"), {1}},
                       .write = [bias = static_cast<float>(form->bias)](TensorSink& sink) {
                         return sink.Write({&bias, 1});
                       }});
  return tensors;
}

std::vector<ModelTensor> ValuesOf(const ExportedModel& model,
                                  const std::vector<wiring::NamedValue>& values) {
  std::vector<ModelTensor> tensors;
  const auto tables = model.layout.rows.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    std::vector<uint64_t> rows;
    std::vector<std::string> names;
    std::set<std::string_view> seen;
    for (const wiring::NamedValue& value : values) {
      if (value.table != t || !seen.insert(value.value).second) continue;
      rows.push_back(tables[t].first + value.bucket);
      names.push_back(value.value);
    }
    if (rows.empty()) continue;
    Tensor tensor{NameIn(model, tables[t].name + ".by_value"), {rows.size(), tables[t].dim}};
    tensor.rows = std::move(names);
    tensors.push_back(
        {.tensor = std::move(tensor), .write = [model, &table = tables[t], rows](TensorSink& sink) {
           return WriteRows(model, table, rows, sink);
         }});
  }
  return tensors;
}

Result<std::vector<ModelTensor>> ScoresOf(const ExportedModel& model) {
  std::vector<ModelTensor> tensors;
  const auto of = model.plan.model->Recommends();
  if (of == nullptr || model.items == nullptr) return tensors;
  TACIT_ASSIGN(const auto state, of->Build(model.snapshot, nullptr));
  if (state == nullptr) return Fail(serve::NotYetCommitted(model.plan.id));
  tensors.push_back(
      {.tensor = {NameIn(model, "next.cold_start"), {of->items()}, ItemNames(*model.items)},
       .write = [state](TensorSink& sink) { return sink.Write(state->cold_start()); }});
  if (of->items() > kScoredItemsMost) return tensors;
  tensors.push_back(
      {.tensor = {NameIn(model, "next.scores"),
                  {of->items(), of->items()},
                  ItemNames(*model.items),
                  ItemNames(*model.items)},
       .write = [of, state](TensorSink& sink) { return WriteScores(*of, *state, sink); }});
  return tensors;
}

}  // namespace tacit::cli
