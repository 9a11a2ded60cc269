#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/batch.h"
#include "serve/inference/infer_request.h"
#include "serve/scoring/row_reader.h"

// Private to this room.
namespace tacit::serve {

// The inputs of a model that scores rows: its features by name, an element a row. A set is a row of
// texts, shape [rows, n], in which empty ones stand for nothing. Features that are not there are
// missing values. Tensors are read column by column, straight to their places in the batch. Owns
// its working memory; not thread-safe. The transform must outlive it.
class TensorRows final : public InputRules {
 public:
  TensorRows(std::string model, const event::FeatureTransform& transform);

  std::string_view model() const override { return model_; }
  Status Check(const Tensor& input) const override;
  // Fills `batch`, replacing what was in it, with the rows of inputs that Check and CheckData
  // accept. kInvalidArgument names input and row.
  Status Read(std::span<const Tensor> inputs, event::Batch* batch);

 private:
  // The input of a feature, if there is one. A set is read before its place is known.
  struct Source {
    const Tensor* tensor = nullptr;
    std::vector<uint64_t> row;  // of a set
    std::vector<uint32_t> end;  // of each row's part of it
  };
  bool IsSet(size_t slot) const { return transform_.schema().categorical[slot].multi_hot; }
  Status FindSources(std::span<const Tensor> inputs);
  Status ReadNumbers(size_t column, event::Batch* batch) const;
  void ReadSet(size_t slot, size_t rows);
  void PlaceSlots(size_t rows, event::Batch* batch) const;
  void ReadTexts(size_t slot, event::Batch* batch) const;

  const std::string model_;
  const event::FeatureTransform& transform_;
  RowReader names_;
  std::vector<Source> numbers_, texts_;  // by feature
};

}  // namespace tacit::serve
