#include "http/request_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <utility>

#include "base/text.h"

namespace tacit::http {
namespace {

namespace json = boost::json;

constexpr size_t kNameEchoMax = 64;  // the longest name that a message repeats

// Turns the parser's events into the sink's, with whole texts.
class Events {
 public:
  // Boost.JSON requires these; the sinks have their own limits.
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = kTextBytesMost;
  static constexpr size_t max_string_size = kTextBytesMost;
  using View = json::string_view;
  using Code = json::error_code;

  explicit Events(JsonSink* sink) : sink_(sink) {}

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code& ec) { return Go(sink_->BeginObject(), ec); }
  bool on_object_end(size_t, Code& ec) { return Go(sink_->EndObject(), ec); }
  bool on_array_begin(Code& ec) { return Go(sink_->BeginArray(), ec); }
  bool on_array_end(size_t, Code& ec) { return Go(sink_->EndArray(), ec); }
  bool on_key_part(View part, size_t, Code&) { return Keep(part); }
  bool on_key(View last, size_t, Code& ec) {
    const bool going = sink_->Key(Whole(last));
    parts_.clear();
    return Go(going, ec);
  }
  bool on_string_part(View part, size_t, Code&) { return Keep(part); }
  bool on_string(View last, size_t, Code& ec) {
    const bool going = sink_->Scalar({.kind = JsonScalar::Kind::kString, .text = Whole(last)});
    parts_.clear();
    return Go(going, ec);
  }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(int64_t value, View, Code& ec) {
    return Go(sink_->Scalar({.kind = JsonScalar::Kind::kInt64, .int64 = value, .text = {}}), ec);
  }
  bool on_uint64(uint64_t value, View, Code& ec) {
    return Go(sink_->Scalar({.kind = JsonScalar::Kind::kUint64, .uint64 = value, .text = {}}), ec);
  }
  bool on_double(double value, View, Code& ec) {
    return Go(sink_->Scalar({.kind = JsonScalar::Kind::kDouble, .real = value, .text = {}}), ec);
  }
  bool on_bool(bool value, Code& ec) {
    return Go(sink_->Scalar({.kind = JsonScalar::Kind::kBool, .flag = value, .text = {}}), ec);
  }
  bool on_null(Code& ec) { return Go(sink_->Scalar({}), ec); }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

 private:
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

  JsonSink* const sink_;
  std::string parts_;  // the parts of an escaped text so far
};

}  // namespace

tl::unexpected<Error> BadRequest(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Status CheckSmallBody(std::string_view body) {
  if (body.size() <= kSmallBodyMost) return {};
  return BadRequest(
      fmt::format("the body has {} bytes, and at most {} here", body.size(), kSmallBodyMost));
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
  // Learners of another kind are asked elsewhere: whoever takes the wrong route sees who is here,
  // and which route is theirs.
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

std::optional<double> JsonScalar::Number() const {
  if (kind == Kind::kInt64) return static_cast<double>(int64);
  if (kind == Kind::kUint64) return static_cast<double>(uint64);
  if (kind == Kind::kDouble) return real;
  return std::nullopt;
}

Status ReadJson(std::string_view text, size_t max_depth, JsonSink* sink) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<Events> parser(options, sink);
  json::error_code error;
  const size_t parsed = parser.write_some(false, text.data(), text.size(), error);
  if (sink->failure()) return Fail(Error(*sink->failure()));
  if (!error && parsed < text.size()) error = json::error::extra_data;
  if (!error) return {};
  if (error == json::error::incomplete)
    return BadRequest(fmt::format("not JSON: it ends too early, at byte {}", text.size()));
  if (error == json::error::string_too_large || error == json::error::key_too_large)
    return BadRequest(
        fmt::format("a text has at most {} bytes, at byte {}", kTextBytesMost, parsed));
  return BadRequest(fmt::format("not JSON: {} at byte {}", error.message(), parsed));
}

}  // namespace tacit::http
