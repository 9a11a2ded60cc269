#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "serve/inference/infer_request.h"
#include "serve/row_reader.h"

// Private to this room.
namespace tacit::serve {

// The inputs of a model that scores rows: its features by name, an element a row. A set is a row of
// texts, shape [rows, n], in which empty ones stand for nothing. Features that are not there are
// missing values. Owns its working memory; not thread-safe. The transform must outlive it.
class TensorRows final : public InputRules {
 public:
  TensorRows(std::string model, const event::FeatureTransform& transform);

  std::string_view model() const override { return model_; }
  Status Check(const Tensor& input) const override;
  // Fills `batch`, replacing what was in it, with the rows of inputs that Check and CheckData
  // accept. kInvalidArgument names input and row.
  Status Read(std::span<const Tensor> inputs, event::Batch* batch);

 private:
  struct Source {
    RowReader::Column column;
    uint64_t in_row = 1;  // elements
    bool is_set = false;
    TensorReader reader;
  };
  Status SetFrom(Source* source);

  const std::string model_;
  const event::FeatureTransform& transform_;
  RowReader rows_;
  std::vector<Source> sources_;
};

}  // namespace tacit::serve
