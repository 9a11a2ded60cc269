#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Files that other programs read tensors from. All numbers are f32, little-endian.
namespace tacit::cli {

struct Tensor {
  std::string name;  // letters, digits, '_', '-', '.' and '/'
  std::vector<uint64_t> shape;
  // Names of the rows, for tensors whose rows are chosen; if empty, they are all, by number.
  std::vector<std::string> rows = {};
  std::vector<std::string> columns = {};  // of the last dimension; empty: by number

  uint64_t size() const {
    uint64_t product = 1;
    for (const uint64_t length : shape) product *= length;
    return product;
  }
};

// Takes tensors one after another, each in pieces, in the order in which they were announced.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  virtual Status Begin(const Tensor& tensor) = 0;
  virtual Status Write(std::span<const float> numbers) = 0;
  // Ends the last tensor. On disk when it returns.
  virtual Status Finish() = 0;
};

enum class TensorFormat { kSafetensors, kNpy, kCsv };
Result<TensorFormat> TensorFormatOf(std::string_view name);

// Safetensors: one file, `model.safetensors`, by the published format: the header's length as u64,
// a JSON header, the numbers end to end. Npy: one file a tensor, by NEP 1 (version 1.0). Csv: one
// file a tensor: a line with the names of the columns, then a line a row, each beginning with the
// row's number or name. Slashes in names are
// folders. The first two have the names of rows in a file of their own, NAME.rows.json, a list.
// `folder` must not exist. `facts` go into the header, where the format has one.
Result<std::unique_ptr<TensorSink>> MakeTensorSink(TensorFormat format, const std::string& folder,
                                                   const std::vector<Tensor>& tensors,
                                                   const std::map<std::string, std::string>& facts);

// The numbers of all tensors in one file, without a header. Each tensor begins at a multiple of
// 4,096 bytes, so that it can be mapped into memory.
Result<std::unique_ptr<TensorSink>> MakeBlobSink(const std::string& path);
std::vector<uint64_t> BlobOffsets(const std::vector<Tensor>& tensors);

// kInvalidArgument: there is something of this name already.
Status CheckNew(const std::string& folder);
// Writes a whole file, and its folder where there is none.
Status WriteWhole(const std::string& path, std::string_view bytes);

}  // namespace tacit::cli
