#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/row_space.h"
#include "cli/export/tensor_file.h"
#include "event/schema.h"
#include "wiring/plans/model_plan.h"

// A click model as an ONNX graph, with the way from raw values to its inputs in words that a
// program can follow.
namespace tacit::cli {

struct ClickModel {
  std::string name;
  RowSpace space;               // its tables: names are those of columns
  std::vector<Tensor> tensors;  // the tables, then the layers' weights and biases in turn
  wiring::ProbabilityForm form;
  event::FeatureSchema schema;
};

// The JSON text that describes each input: `rows.COLUMN` has rows of a table, `numbers` what the
// numbers become; and the form in which tables and layers give a probability. docs/internals/cli.md
// has the grammar.
std::string DescribeInputs(const ClickModel& model,
                           const std::map<std::string, std::string>& facts);

// The bytes of a model whose tensors lie, one after another as BlobOffsets says, in `data_file`.
std::string EncodeOnnx(const ClickModel& model, const std::string& data_file,
                       const std::map<std::string, std::string>& facts);

}  // namespace tacit::cli
