#include "http/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <utility>

#include "base/text.h"

namespace tacit::http {
namespace {

namespace json = boost::json;

constexpr size_t kSmallBodyMost = 4 << 10, kSmallDepthMost = 4;
constexpr size_t kNameEchoMax = 64;  // the longest name that a message repeats

bool Fits(const JsonPlace& place, const JsonValue& value) {
  if (place.kind == JsonPlace::Kind::kAny) return true;
  const bool is_text = value.kind == JsonValue::Kind::kString;
  const bool is_int64 = value.kind == JsonValue::Kind::kInt64;
  switch (place.kind) {
    case JsonPlace::Kind::kText:
      return is_text;
    case JsonPlace::Kind::kId:
      return is_text || is_int64 || value.kind == JsonValue::Kind::kUint64;
    case JsonPlace::Kind::kFlag:
      return value.kind == JsonValue::Kind::kBool;
    case JsonPlace::Kind::kWhole:
      return is_int64 && value.int64 >= place.least && value.int64 <= place.most;
    default:
      return false;
  }
}

// Follows a table through a body, as the parser's handler.
class Reading {
 public:
  // Boost.JSON requires these; the tables have their own limits.
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = kTextBytesMost;
  static constexpr size_t max_string_size = kTextBytesMost;
  using View = json::string_view;
  using Code = json::error_code;
  using Kind = JsonValue::Kind;

  explicit Reading(std::span<const JsonKey> keys) : request_{.keys = keys} {
    open_.reserve(8);  // deeper than any table
    open_.push_back({.value = &whole_});
  }

  const std::optional<Error>& failure() const { return failure_; }
  // Checks the whole, once it has been read.
  Status Check() const;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code& ec) { return Go(Begin(Kind::kObject), ec); }
  bool on_object_end(size_t, Code& ec) { return Go(End(), ec); }
  bool on_array_begin(Code& ec) { return Go(Begin(Kind::kArray), ec); }
  bool on_array_end(size_t, Code& ec) { return Go(End(), ec); }
  bool on_key_part(View part, size_t, Code&) { return Keep(part); }
  bool on_key(View last, size_t, Code& ec) {
    const bool going = Key(Whole(last));
    parts_.clear();
    return Go(going, ec);
  }
  bool on_string_part(View part, size_t, Code&) { return Keep(part); }
  bool on_string(View last, size_t, Code& ec) {
    const bool going = Scalar({.kind = Kind::kString, .text = Whole(last)});
    parts_.clear();
    return Go(going, ec);
  }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(int64_t value, View, Code& ec) {
    return Go(Scalar({.kind = Kind::kInt64, .int64 = value}), ec);
  }
  bool on_uint64(uint64_t value, View, Code& ec) {
    return Go(Scalar({.kind = Kind::kUint64, .uint64 = value}), ec);
  }
  bool on_double(double value, View, Code& ec) {
    return Go(Scalar({.kind = Kind::kDouble, .real = value}), ec);
  }
  bool on_bool(bool value, Code& ec) {
    return Go(Scalar({.kind = Kind::kBool, .flag = value}), ec);
  }
  bool on_null(Code& ec) { return Go(Scalar({}), ec); }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

 private:
  // An array or object that has begun; the outermost one stands around the whole.
  struct Frame {
    const JsonParts* parts = nullptr;
    const JsonPlace* value = nullptr;  // the place of the next value
    std::string_view key = {};         // that it stands under
    bool is_array = false;
    size_t elements = 0;
    uint64_t seen = 0;  // a bit for each key
  };

  bool Begin(Kind kind);
  bool End();
  bool Key(std::string_view key);
  bool Scalar(const JsonValue& value) { return skipped_ > 0 || (CountElement() && Take(value)); }
  bool CountElement() {
    Frame& at = At();
    return !at.is_array || at.elements++ < at.parts->elements_most || RefuseMore();
  }
  bool Take(const JsonValue& value) {
    const JsonPlace& place = *At().value;
    return (Fits(place, value) && place.take(value, &failure_)) || RefuseValue(place);
  }
  [[gnu::noinline]] bool RefuseMore();
  [[gnu::noinline]] bool RefuseValue(const JsonPlace& place);
  static const JsonKey* MissingKey(const Frame& frame);
  Frame& At() { return open_.back(); }
  bool Pass(Status&& status) {
    if (!status) failure_ = std::move(status.error());
    return status.has_value();
  }
  std::string Where() const;
  // Refuses with words about the place that is read.
  bool Refuse(std::string what) {
    Error error{ErrorCode::kInvalidArgument, std::move(what)};
    const std::string where = Where();
    failure_ = where.empty() ? std::move(error) : std::move(error).Context(where);
    return false;
  }

  bool Keep(View part) {
    parts_.append(part.data(), part.size());
    return true;
  }
  std::string_view Whole(View last) {
    if (parts_.empty()) return {last.data(), last.size()};
    parts_.append(last.data(), last.size());
    return parts_;
  }
  static bool Go(bool going, Code& ec) {
    if (!going) ec = boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
    return going;
  }

  const JsonParts request_;
  const JsonPlace whole_{.object = &request_};
  std::vector<Frame> open_;  // the whole, and the arrays and objects that are open in it
  size_t skipped_ = 0;       // the depth within an array or object that is skipped
  bool is_object_ = true;
  std::optional<Error> failure_;
  std::string parts_;  // the parts of an escaped text so far
};

std::string KindWords(const JsonPlace& place) {
  if (!place.must.empty()) return std::string(place.must);
  if (place.kind == JsonPlace::Kind::kText) return "must be a string";
  if (place.kind == JsonPlace::Kind::kId) return "must be a string or an integer";
  if (place.kind == JsonPlace::Kind::kFlag) return "must be true or false";
  if (place.kind != JsonPlace::Kind::kWhole)
    return place.array != nullptr ? "must be an array" : "must be an object";
  return place.most == JsonPlace::kNoLimit
             ? "must be a whole number"
             : fmt::format("must be a whole number from {} to {}", place.least, place.most);
}

bool Reading::Begin(Kind kind) {
  if (skipped_ > 0) {
    ++skipped_;
    return true;
  }
  if (!CountElement()) return false;
  const bool is_array = kind == Kind::kArray;
  const JsonParts* const parts = is_array ? At().value->array : At().value->object;
  if (parts == nullptr) {
    skipped_ = 1;
    return Take({.kind = kind});
  }
  if (parts->begin) {
    const Result<bool> reads = parts->begin();
    if (!reads) return Pass(Fail(Error(reads.error())));
    if (!*reads) {
      skipped_ = 1;
      return true;
    }
  }
  open_.push_back({parts, &parts->element, At().key, is_array});
  return true;
}

bool Reading::End() {
  if (skipped_ > 0) {
    --skipped_;
    return true;
  }
  const bool is_whole = open_.size() == 2;  // Check comes later
  if (const JsonKey* const missing = is_whole ? nullptr : MissingKey(At()))
    return Pass(BadRequest(fmt::format("{} has no \"{}\"", Where(), missing->name)));
  if (is_whole) open_.front().seen = At().seen;
  const JsonParts& parts = *At().parts;
  open_.pop_back();
  return !parts.end || Pass(parts.end());
}

const JsonKey* Reading::MissingKey(const Frame& frame) {
  const std::span<const JsonKey> keys = frame.parts->keys;
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i].required && (frame.seen >> i & 1) == 0) return &keys[i];
  return nullptr;
}

bool Reading::Key(std::string_view key) {
  if (skipped_ > 0) return true;
  Frame& at = At();
  if (at.parts->key) return Pass(at.parts->key(key));
  const std::span<const JsonKey> keys = at.parts->keys;
  const auto found = std::ranges::find(keys, key, &JsonKey::name);
  if (found == keys.end()) {
    std::vector<std::string_view> names;
    for (const JsonKey& known : keys) names.push_back(known.name);
    return Refuse(UnknownName(at.parts->key_word, key, names));
  }
  const uint64_t bit = uint64_t{1} << (found - keys.begin());
  if ((at.seen & bit) != 0) return Refuse(fmt::format("\"{}\" is there twice", key));
  at.seen |= bit;
  at.key = found->name;
  at.value = &found->value;
  return true;
}

bool Reading::RefuseMore() {
  const JsonParts& parts = *At().parts;
  open_.pop_back();  // the words are about the whole array
  return Refuse(fmt::format(fmt::runtime(parts.too_many), parts.elements_most));
}

bool Reading::RefuseValue(const JsonPlace& place) {
  if (failure_) return false;
  if (open_.size() == 1) {  // the rest is read first: it may not be JSON
    is_object_ = false;
    return true;
  }
  const bool has_words = At().is_array && At().parts->where;
  return Refuse(has_words ? KindWords(place)
                          : fmt::format("\"{}\" {}", At().key, KindWords(place)));
}

std::string Reading::Where() const {
  for (size_t i = open_.size(); i-- > 1;)
    if (open_[i].parts->where) return open_[i].parts->where();
  return "";
}

Status Reading::Check() const {
  if (!is_object_) return BadRequest("the request must be a JSON object");
  if (const JsonKey* const missing = MissingKey({.parts = &request_, .seen = open_.front().seen}))
    return BadRequest(fmt::format("\"{}\" is missing", missing->name));
  return {};
}

}  // namespace

tl::unexpected<Error> BadRequest(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known) {
  if (name.size() > kNameEchoMax)
    return fmt::format("unknown {}, {} bytes long", what, name.size());
  return fmt::format("unknown {} '{}'{}", what, name, DidYouMean(name, known));
}

Result<size_t> FindLearner(const std::optional<std::string>& name,
                           std::span<const std::string_view> learners,
                           std::span<const LearnerElsewhere> elsewhere) {
  if (!name && learners.size() == 1) return size_t{0};
  const auto other =
      name ? std::ranges::find(elsewhere, *name, &LearnerElsewhere::name) : elsewhere.end();
  if (other != elsewhere.end())
    return Fail(ErrorCode::kNotFound,
                fmt::format("'{}' is {}; ask {}", other->name, other->what, other->route));
  // Learners of another kind are asked elsewhere: a caller at the wrong route is told who is here,
  // and which route is right.
  constexpr std::string_view kRoutes =
      "click models are asked at /v1/score, models of the next item at /v1/recommend";
  const std::string here = learners.empty()
                               ? fmt::format("; no learner answers this: {}", kRoutes)
                               : fmt::format("; this route has '{}'", fmt::join(learners, "', '"));
  if (!name) return BadRequest("\"learner\" is missing" + here);
  const auto at = std::ranges::find(learners, std::string_view(*name));
  if (at == learners.end())
    return Fail(ErrorCode::kNotFound,
                UnknownName("learner", *name, learners) + here +
                    (learners.empty() ? "" : fmt::format(", and {}", kRoutes)));
  return static_cast<size_t>(at - learners.begin());
}

std::string_view JsonValue::Id(std::string* digits) const {
  if (kind == Kind::kString) return text;
  return *digits = kind == Kind::kInt64 ? std::to_string(int64) : std::to_string(uint64);
}

Status ReadJson(std::string_view text, size_t max_depth, std::span<const JsonKey> keys) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<Reading> parser(options, keys);
  json::error_code error;
  const size_t parsed = parser.write_some(false, text.data(), text.size(), error);
  if (parser.handler().failure()) return Fail(Error(*parser.handler().failure()));
  if (!error && parsed < text.size()) error = json::error::extra_data;
  if (!error) return parser.handler().Check();
  if (error == json::error::incomplete)
    return BadRequest(fmt::format("not JSON: it ends too early, at byte {}", text.size()));
  if (error == json::error::string_too_large || error == json::error::key_too_large)
    return BadRequest(
        fmt::format("a text has at most {} bytes, at byte {}", kTextBytesMost, parsed));
  return BadRequest(fmt::format("not JSON: {} at byte {}", error.message(), parsed));
}

Status ReadSmallJson(std::string_view body, std::span<const JsonKey> keys) {
  if (body.size() <= kSmallBodyMost) return ReadJson(body, kSmallDepthMost, keys);
  return BadRequest(
      fmt::format("the body has {} bytes, and at most {} here", body.size(), kSmallBodyMost));
}

}  // namespace tacit::http
