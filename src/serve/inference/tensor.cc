#include "serve/inference/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol's bytes are this order's");

struct DatatypeRow {
  std::string_view name;
  size_t bytes;
};
constexpr DatatypeRow kDatatypes[] = {{"BOOL", 1},   {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4},
                                      {"UINT64", 8}, {"INT8", 1},  {"INT16", 2},  {"INT32", 4},
                                      {"INT64", 8},  {"FP16", 2},  {"FP32", 4},   {"FP64", 8},
                                      {"BYTES", 0}};
static_assert(std::size(kDatatypes) == static_cast<size_t>(Datatype::kBytes) + 1);

}  // namespace

std::string_view NameOf(Datatype datatype) {
  return kDatatypes[static_cast<size_t>(datatype)].name;
}

std::optional<Datatype> DatatypeOf(std::string_view name) {
  for (size_t i = 0; i < std::size(kDatatypes); ++i)
    if (kDatatypes[i].name == name) return static_cast<Datatype>(i);
  return std::nullopt;
}

size_t ElementBytes(Datatype datatype) { return kDatatypes[static_cast<size_t>(datatype)].bytes; }

std::optional<uint64_t> Tensor::elements() const {
  uint64_t product = 1;
  for (const uint64_t size : shape) {
    if (size > kTensorElementsMost) return std::nullopt;
    product *= size;
    if (product > kTensorElementsMost) return std::nullopt;
  }
  return product;
}

Status CheckData(const Tensor& tensor) {
  const uint64_t elements = *tensor.elements();
  const size_t bytes = ElementBytes(tensor.datatype);
  if (bytes > 0) {
    if (tensor.data.size() == elements * bytes) return {};
    return http::BadRequest(fmt::format("input '{}' has {} bytes; {} elements of {} take {}",
                                        tensor.name, tensor.data.size(), elements,
                                        NameOf(tensor.datatype), elements * bytes));
  }
  std::string_view rest = tensor.data;
  for (uint64_t i = 0; i < elements; ++i) {
    uint32_t length = 0;
    if (rest.size() < sizeof length)
      return http::BadRequest(fmt::format("input '{}' ends within the length of element {} of {}",
                                          tensor.name, i, elements));
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (length > http::kTextBytesMost)
      return http::BadRequest(
          fmt::format("input '{}': element {} has {} bytes, a text has at most {}", tensor.name, i,
                      length, http::kTextBytesMost));
    if (rest.size() < length)
      return http::BadRequest(fmt::format("input '{}': element {} has {} bytes, {} are left",
                                          tensor.name, i, length, rest.size()));
    rest.remove_prefix(length);
  }
  if (rest.empty()) return {};
  return http::BadRequest(fmt::format("input '{}' has {} bytes after its last element of {}",
                                      tensor.name, rest.size(), elements));
}

bool IsInteger(Datatype datatype) {
  return datatype >= Datatype::kUint8 && datatype <= Datatype::kInt64;
}

template <class T>
T TensorReader::Take() {
  T value;
  std::memcpy(&value, rest_.data(), sizeof value);
  rest_.remove_prefix(sizeof value);
  return value;
}

// Calls `use` with the next element as the integer that it is. REQUIRES IsInteger.
template <class Use>
auto TensorReader::WithInteger(Use use) {
  switch (datatype_) {
    case Datatype::kUint8:
      return use(Take<uint8_t>());
    case Datatype::kUint16:
      return use(Take<uint16_t>());
    case Datatype::kUint32:
      return use(Take<uint32_t>());
    case Datatype::kUint64:
      return use(Take<uint64_t>());
    case Datatype::kInt8:
      return use(Take<int8_t>());
    case Datatype::kInt16:
      return use(Take<int16_t>());
    case Datatype::kInt32:
      return use(Take<int32_t>());
    default:
      return use(Take<int64_t>());
  }
}

double TensorReader::Number() {
  if (datatype_ == Datatype::kFp32) return Take<float>();
  if (datatype_ == Datatype::kFp64) return Take<double>();
  if (datatype_ == Datatype::kBool) return Take<uint8_t>() != 0 ? 1 : 0;
  return WithInteger([](auto integer) { return static_cast<double>(integer); });
}

std::string_view TensorReader::Text() {
  if (datatype_ == Datatype::kBytes) {
    const auto length = Take<uint32_t>();
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }
  char* const begin = digits_.data();
  char* const end = begin + digits_.size();
  const char* const behind =
      WithInteger([&](auto integer) { return std::to_chars(begin, end, integer).ptr; });
  return {begin, static_cast<size_t>(behind - begin)};
}

}  // namespace tacit::serve
