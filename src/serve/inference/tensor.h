#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Private to this room: tensors of the Open Inference Protocol.
namespace tacit::serve {

enum class Datatype : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBytes
};

// The protocol's name: "FP32".
std::string_view NameOf(Datatype datatype);
std::optional<Datatype> DatatypeOf(std::string_view name);
// The bytes of an element in binary form; 0 for BYTES, whose elements have a length of their own.
size_t ElementBytes(Datatype datatype);

// True for the types of whole numbers, with a sign or without; BOOL is none of them.
bool IsInteger(Datatype datatype);

// The most elements of a tensor that is read here.
inline constexpr uint64_t kTensorElementsMost = uint64_t{1} << 18;

// An input. Elements that came as JSON are kept in the binary form, so that one reader reads both.
struct Tensor {
  std::string name;
  Datatype datatype = Datatype::kFp32;
  std::vector<uint64_t> shape;
  // Little-endian, row major; an element of BYTES is its length in four bytes and its text. A
  // number that is missing is NaN.
  std::string_view data;

  // The product of the shape, or nothing if it is above kTensorElementsMost.
  std::optional<uint64_t> elements() const;
};

// Checks that `data` has exactly the elements of shape and datatype; kInvalidArgument names the
// tensor. REQUIRES that elements() is a number.
Status CheckData(const Tensor& tensor);

// Reads the elements of a tensor one by one. REQUIRES CheckData, and no more reads than elements.
class TensorReader {
 public:
  explicit TensorReader(const Tensor& tensor) : datatype_(tensor.datatype), rest_(tensor.data) {}

  // REQUIRES FP32, FP64, BOOL, which is 0 or 1, or an integer's type.
  double Number();
  // REQUIRES BYTES, or an integer's type, which are its digits. Valid until the next call.
  std::string_view Text();

 private:
  template <class T>
  T Take();
  template <class Use>
  auto WithInteger(Use use);

  Datatype datatype_;
  std::string_view rest_;
  std::array<char, 24> digits_{};
};

}  // namespace tacit::serve
