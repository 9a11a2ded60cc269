#include "cli/export/onnx_click.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "cli/export/onnx_graph.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;
using Column = wiring::ProbabilityForm::Column;
using Kind = Column::Kind;

constexpr const char *kNumbers = "numbers", *kProbability = "probability", *kExamples = "N";
// The number that stands behind the last value of a shorter set.
constexpr int64_t kNoRow = -1;

std::string InputOf(std::string_view column) { return fmt::format("rows.{}", column); }

// Builds the graph of one model.
class ClickGraph {
 public:
  ClickGraph(const ClickModel& model, const std::string& data_file)
      : model_(model), graph_(data_file) {}

  std::string Encode(const std::map<std::string, std::string>& facts) {
    const std::vector<uint64_t> offsets = BlobOffsets(model_.tensors);
    for (size_t i = 0; i < offsets.size(); ++i) graph_.Stored(model_.tensors[i], offsets[i]);
    for (size_t j = 0; j < model_.form.columns.size(); ++j)
      if (model_.form.columns[j].kind != Kind::kCross) AddInput(j);
    const std::string logit = model_.form.network ? Layers() : Sum();
    const std::string score = graph_.Node("Sigmoid", {logit});
    graph_.Node("Squeeze", {score, graph_.Axis(1)}, {}, kProbability);
    graph_.Output(kProbability, OnnxGraph::Type::kFloat, {{0, kExamples}});
    return graph_.Encode(model_.name, facts);
  }

 private:
  const std::string& Table(size_t column) const { return model_.tensors[column].name; }
  const std::string& NameOf(size_t column) const { return model_.space.tables()[column].name; }

  void AddInput(size_t column) {
    std::vector<OnnxGraph::Side> shape = {{0, kExamples}};
    if (model_.form.columns[column].kind == Kind::kSet) shape.push_back({0, NameOf(column)});
    graph_.Input(InputOf(NameOf(column)), OnnxGraph::Type::kInt64, shape);
  }

  // Examples by the table's dimension.
  std::string ValuesOf(size_t column) {
    const Column& of = model_.form.columns[column];
    if (of.kind == Kind::kSet) return SetOf(column);
    std::string row = InputOf(NameOf(column));
    if (of.kind == Kind::kCross) {
      const std::string first = graph_.Node(
          "Mul", {InputOf(NameOf(of.first)), graph_.Integer(static_cast<int64_t>(of.second_rows))});
      row = graph_.Node("Add", {first, InputOf(NameOf(of.second))});
    }
    return graph_.Node("Gather", {Table(column), row}, {{"axis", 0}});
  }

  // Adds up the rows of a set; what stands behind its last value counts 0 times.
  std::string SetOf(size_t column) {
    const std::string row = InputOf(NameOf(column)), zero = graph_.Integer(0);
    const std::string there = graph_.Node("GreaterOrEqual", {row, zero});
    const std::string rows =
        graph_.Node("Gather", {Table(column), graph_.Node("Max", {row, zero})}, {{"axis", 0}});
    const std::string times = graph_.Node(
        "Unsqueeze",
        {graph_.Node("Cast", {there}, {{"to", static_cast<int64_t>(OnnxGraph::Type::kFloat)}}),
         graph_.Axis(-1)});
    const auto sum = [&](const std::string& of) {
      return graph_.Node("ReduceSum", {of, graph_.Axis(1)}, {{"keepdims", 0}});
    };
    std::string all = sum(graph_.Node("Mul", {rows, times}));
    if (model_.form.network) return all;
    const std::string many = graph_.Node("Max", {sum(times), graph_.Number(1)});
    return graph_.Node("Div", {all, graph_.Node("Sqrt", {many})});
  }

  std::string Layers() {
    std::vector<std::string> parts;
    for (size_t j = 0; j < model_.form.columns.size(); ++j) parts.push_back(ValuesOf(j));
    if (const size_t width = model_.form.numbers.size(); width > 0) {
      graph_.Input(kNumbers, OnnxGraph::Type::kFloat, {{0, kExamples}, {width}});
      parts.emplace_back(kNumbers);
    }
    std::string x = parts.size() == 1 ? parts[0] : graph_.Node("Concat", parts, {{"axis", 1}});
    if (model_.form.input_clip > 0) x = Clipped(x);
    const size_t tables = model_.form.columns.size();
    for (size_t i = tables; i < model_.tensors.size(); i += 2) {
      if (i > tables) x = graph_.Node("Relu", {x});
      x = graph_.Node("Gemm", {x, model_.tensors[i].name, model_.tensors[i + 1].name});
    }
    return x;
  }

  // model/pctr.cc, ClipInput: to a little less than the length. An input of length 0 has factor 1.
  std::string Clipped(const std::string& x) {
    const auto most = static_cast<float>(model_.form.input_clip * (1 - 0x1p-20));
    const std::string squared =
        graph_.Node("ReduceSum", {graph_.Node("Mul", {x, x}), graph_.Axis(1)});
    const std::string factor =
        graph_.Node("Div", {graph_.Number(most), graph_.Node("Sqrt", {squared})});
    return graph_.Node("Mul", {x, graph_.Node("Min", {factor, graph_.Number(1)})});
  }

  std::string Sum() {
    std::vector<std::string> parts;
    for (size_t j = 0; j < model_.form.columns.size(); ++j) parts.push_back(ValuesOf(j));
    parts.push_back(graph_.Number(static_cast<float>(model_.form.bias)));
    return graph_.Node("Sum", parts);
  }

  const ClickModel& model_;
  OnnxGraph graph_;
};

std::string_view FunctionOf(const event::DenseFeature& number) {
  return number.transform == event::DenseTransform::kSignedLog1p ? "sign(x) * log(1 + abs(x))"
                                                                 : "x";
}

// A column of categories: the hash that turns a value into a row.
json::object CategoryInput(const RowSpace::Table& table, const event::CategoricalFeature& feature) {
  const bool set = feature.multi_hot;
  json::object input{{"input", InputOf(table.name)},
                     {"feature", table.name},
                     {"kind", set ? "set" : "category"},
                     {"dtype", "int64"},
                     {"rows", table.rows},
                     {"missing", 0},
                     {"seed", std::to_string(BucketHash(table.name, 0))},
                     {"row", "1 + floor(XXH64(bytes of the value, seed) * (rows - 1) / 2^64)"}};
  if (set) {
    input["padding"] = kNoRow;
    input["most"] = feature.max_values;
    input["set"] = "the first rows, each once; the missing row alone where there is no value";
  }
  return input;
}

json::object BinInput(const RowSpace::Table& table, const event::DenseFeature& number,
                      const model::linear::Bins& bins) {
  return {{"input", InputOf(table.name)},
          {"feature", table.name},
          {"kind", "bin"},
          {"dtype", "int64"},
          {"rows", table.rows},
          {"missing", 0},
          {"function", "sign(x) * log(1 + abs(x)), rounded to float32"},
          // An identity is rounded before the logarithm, a logarithm after it.
          {"rounded_first", number.transform == event::DenseTransform::kIdentity},
          {"width", bins.width},
          {"lowest", bins.lowest},
          {"highest", bins.highest},
          {"row", "1 + clamp(floor(function / width), lowest, highest) - lowest"}};
}

// The tables of pairs, each with the inputs that its rows are made of.
json::array CrossesOf(const ClickModel& model) {
  const auto tables = model.space.tables();
  json::array crosses;
  for (size_t j = 0; j < model.form.columns.size(); ++j) {
    const Column& cross = model.form.columns[j];
    if (cross.kind != Kind::kCross) continue;
    crosses.push_back(
        json::object{{"table", tables[j].name},
                     {"of", json::array{tables[cross.first].name, tables[cross.second].name}},
                     {"row", "row of the first * rows of the second + row of the second"}});
  }
  return crosses;
}

}  // namespace

std::string DescribeInputs(const ClickModel& model,
                           const std::map<std::string, std::string>& facts) {
  json::object about;
  for (const auto& [key, value] : facts) about[key] = value;
  json::array inputs;
  size_t number = 0;
  for (size_t j = 0; j < model.form.columns.size(); ++j) {
    const RowSpace::Table& table = model.space.tables()[j];
    const Kind kind = model.form.columns[j].kind;
    if (kind == Kind::kBin)
      inputs.push_back(BinInput(table, model.form.numbers[number++], model.form.bins));
    if (kind == Kind::kValue || kind == Kind::kSet)
      inputs.push_back(CategoryInput(table, model.schema.categorical[j]));
  }
  if (model.form.network && !model.form.numbers.empty()) {
    json::array of;
    for (const event::DenseFeature& each : model.form.numbers)
      of.push_back(json::object{{"feature", each.name}, {"function", FunctionOf(each)}});
    inputs.push_back(json::object{{"input", kNumbers},
                                  {"kind", "numbers"},
                                  {"dtype", "float32"},
                                  {"missing", 0},
                                  {"of", std::move(of)}});
  }
  json::object described{{"learner", model.name},
                         {"model", std::move(about)},
                         {"output", kProbability},
                         {"computed_in", model.form.rounds ? "bf16" : "f32"},
                         {"inputs", std::move(inputs)}};
  if (model.form.network) {
    described["form"] = "network";
    described["input_clip"] = model.form.input_clip;
    described["layers"] = (model.tensors.size() - model.form.columns.size()) / 2;
  } else {
    described["form"] = "sum";
    described["crosses"] = CrossesOf(model);
  }
  return json::serialize(described);
}

std::string EncodeOnnx(const ClickModel& model, const std::string& data_file,
                       const std::map<std::string, std::string>& facts) {
  TACIT_CHECK(model.form.columns.size() == model.space.tables().size(), "a form of other tables");
  return ClickGraph(model, data_file).Encode(facts);
}

}  // namespace tacit::cli
