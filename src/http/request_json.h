#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

// Streaming reads of request bodies. A table of keys says what a request may have and where each
// value goes. No tree is built: values go there one at a time, and what the table does not have is
// refused when it appears. So a request takes no more memory than the values kept from it. Failures
// are kInvalidArgument, except kNotFound for an unknown learner; they repeat at most 64 bytes of a
// body.
namespace tacit::http {

// The most bytes of one text in a body. Escaped texts are assembled in memory of this size.
inline constexpr size_t kTextBytesMost = 64 << 10;

tl::unexpected<Error> BadRequest(std::string message);

// A message with `name` in quotes, if it is short enough, and the nearest known name.
std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known);

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

// A value of a body: a scalar, or the beginning of an array or an object.
struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kInt64, kUint64, kDouble, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool flag = false;
  int64_t int64 = 0;
  uint64_t uint64 = 0;
  double real = 0;
  std::string_view text = {};  // valid during the call

  // The value of any kind of number; may be infinite.
  std::optional<double> Number() const {
    if (kind == Kind::kInt64) return static_cast<double>(int64);
    if (kind == Kind::kUint64) return static_cast<double>(uint64);
    if (kind == Kind::kDouble) return real;
    return std::nullopt;
  }
  bool IsId() const {
    return kind == Kind::kString || kind == Kind::kInt64 || kind == Kind::kUint64;
  }
  // The text of a string, or the digits of an integer, as records have them: held by `digits` then.
  // REQUIRES IsId().
  std::string_view Id(std::string* digits) const;
};

// Takes a value that stands where it may. A function that returns false refuses it in the reader's
// words; one that returns a Status has words of its own.
class JsonTake {
 public:
  JsonTake() = default;
  template <class F>
  requires std::invocable<F&, const JsonValue&> JsonTake(F take)
      : take_([take](const JsonValue& value, std::optional<Error>* own_words) {
          if constexpr (std::is_same_v<std::invoke_result_t<F&, const JsonValue&>, bool>) {
            return take(value);
          } else {
            Status taken = take(value);
            if (!taken) *own_words = std::move(taken.error());
            return taken.has_value();
          }
        }) {}

  bool operator()(const JsonValue& value, std::optional<Error>* own_words) const {
    return !take_ || take_(value, own_words);
  }

 private:
  std::function<bool(const JsonValue&, std::optional<Error>*)> take_;
};

struct JsonParts;

// A place for a value: what may stand there, and where it goes. The reader refuses another value
// in words of its own, with the key: "\"k\" must be a whole number from 1 to 1000". A failure of a
// function ends the reading, and is told as it is.
struct JsonPlace {
  // kParts: only an array or an object, as is set below. kAny: also each value that `take`
  // accepts; an array or object that it accepts is skipped.
  enum class Kind : uint8_t { kParts, kText, kId, kFlag, kWhole, kAny };
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  Kind kind = Kind::kParts;
  std::string_view must = {};          // other words than the reader's, after the key
  int64_t least = 0, most = kNoLimit;  // of a whole number
  JsonTake take = {};
  const JsonParts* array = nullptr;
  const JsonParts* object = nullptr;
};

struct JsonKey {
  std::string_view name;
  JsonPlace value;
  bool required = false;
};

// The parts of an array (elements) or of an object (keys). A key that is there twice is refused.
struct JsonParts {
  std::span<const JsonKey> keys = {};
  std::string_view key_word = "key";  // "unknown key"
  // Receives each key, in place of `keys`; the values go to `element`.
  std::function<Status(std::string_view key)> key = {};
  JsonPlace element = {};
  size_t elements_most = std::numeric_limits<size_t>::max();
  std::string_view too_many = {};  // "more than {} rows", with elements_most
  // Called before and after the parts; where `begin` returns false they are skipped.
  std::function<Result<bool>()> begin = {};
  std::function<Status()> end = {};
  // The words that begin the reader's messages about the parts: "row 3".
  std::function<std::string()> where = {};
};

// A place for one value, which goes to `to`: a text, a flag or a whole number, or an optional one.
template <class T>
JsonPlace PlaceFor(T* to, int64_t least = 0, int64_t most = JsonPlace::kNoLimit) {
  using Kind = JsonPlace::Kind;
  constexpr bool is_text = std::is_assignable_v<T&, std::string_view>;
  constexpr bool is_flag = std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>;
  return {.kind = is_text   ? Kind::kText
                  : is_flag ? Kind::kFlag
                            : Kind::kWhole,
          .least = least,
          .most = most,
          .take = [to](const JsonValue& value) {
            if constexpr (is_text)
              *to = value.text;
            else if constexpr (is_flag)
              *to = value.flag;
            else
              *to = static_cast<T>(value.int64);
            return true;
          }};
}

// Reads all of `text`, an object with these keys. The failure is a function's, names key and place,
// or gives the position where `text` is not JSON.
Status ReadJson(std::string_view text, size_t max_depth, std::span<const JsonKey> keys);

// Does the same for a body that a few keys make up; a larger one than 4 KiB is refused.
Status ReadSmallJson(std::string_view body, std::span<const JsonKey> keys);

}  // namespace tacit::http
