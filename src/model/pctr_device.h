#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/examples.h"

namespace tacit::model {

// A click model as of one version: its parameters, and a way to its rows.
struct PctrVersion {
  // The name of the version: two whose parameters or rows differ have different ones.
  std::string_view name;
  std::span<const float> dense;
  // Writes the embeddings of rows, which ascend, end to end to `out`.
  std::function<Status(std::span<const uint64_t> rows, std::span<float> out)> read;
};

// The forward pass of a click model (Pctr::Forward) on a device with memory of its own, for any
// version of the model. An answer is of the one version that it was asked for. Thread-safe: calls
// follow one another.
class PctrDevice {
 public:
  virtual ~PctrDevice() = default;

  // The most that one call takes: examples, entries of their slots, and distinct rows.
  virtual size_t examples_most() const = 0;
  virtual size_t entries_most() const = 0;
  virtual size_t rows_most() const = 0;

  // Computes the logits of examples, whose entries are places in `rows` (Activations::rows). An
  // error of version.read is returned as it is. REQUIRES sizes within those above, and parameters
  // of this model.
  virtual Status Forward(const PctrVersion& version, const Examples& examples,
                         std::span<const uint64_t> rows, std::span<float> logits) = 0;
};

}  // namespace tacit::model
