#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Streaming reads of request bodies. No tree is built: the parser passes on one value at a time,
// and anything that a request may not have is refused when it appears. So a request takes no more
// memory than the values kept from it. Failures are kInvalidArgument, except kNotFound for an
// unknown learner; they repeat at most 64 bytes of a body.
namespace tacit::http {

// The most bytes of one text in a body. Escaped texts are assembled in memory of this size.
inline constexpr size_t kTextBytesMost = 64 << 10;

tl::unexpected<Error> BadRequest(std::string message);

// A message with `name` in quotes, if it is short enough, and the nearest known name.
std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known);

// The most bytes of a body that a few keys make up: it is read as a tree, of which no pool counts
// the memory. A tree takes many times its text.
inline constexpr size_t kSmallBodyMost = 4 << 10;

// kInvalidArgument: the body is larger than kSmallBodyMost.
Status CheckSmallBody(std::string_view body);

// A learner of another kind than those that a route is for.
struct LearnerElsewhere {
  std::string name;
  std::string what;   // "a click model (linear)"
  std::string route;  // where it is asked
};

// The index of the learner with this name, or of the only learner if no name is given. The failure
// tells of one that is asked elsewhere which kind it is, and where.
Result<size_t> FindLearner(const std::optional<std::string>& name,
                           std::span<const std::string_view> learners,
                           std::span<const LearnerElsewhere> elsewhere = {});

struct JsonScalar {
  enum class Kind : uint8_t { kNull, kBool, kInt64, kUint64, kDouble, kString };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t int64 = 0;
  uint64_t uint64 = 0;
  double real = 0;
  std::string_view text;  // valid during the call

  // The value of any kind of number; may be infinite.
  std::optional<double> Number() const;
};

// Receives a document as it streams by. Each function returns false to end the reading, with the
// reason in failure().
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  virtual bool BeginObject() = 0;
  virtual bool EndObject() = 0;
  virtual bool BeginArray() = 0;
  virtual bool EndArray() = 0;
  virtual bool Key(std::string_view key) = 0;
  virtual bool Scalar(const JsonScalar& scalar) = 0;

  const std::optional<Error>& failure() const { return failure_; }

 protected:
  bool Refuse(Error error) {
    failure_ = std::move(error);
    return false;
  }
  bool Refuse(std::string message) {
    return Refuse(Error{ErrorCode::kInvalidArgument, std::move(message)});
  }

 private:
  std::optional<Error> failure_;
};

// Reads all of `text`. The failure is the sink's, or gives the position where `text` is not JSON.
Status ReadJson(std::string_view text, size_t max_depth, JsonSink* sink);

}  // namespace tacit::http
