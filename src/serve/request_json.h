#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

// Private to this room: what the bodies of requests have in common. Failures are kInvalidArgument
// but for a learner that is not there, kNotFound; they repeat no more of a body than 64 bytes.
namespace tacit::serve {

inline std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

tl::unexpected<Error> BadRequest(std::string message);

// `name` in quotes, where it is short enough, and the nearest of those known.
std::string UnknownName(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known);

// A body that is an object. `memory` must outlive it.
Result<boost::json::object> ParseBody(std::string_view text, size_t max_depth,
                                      boost::json::memory_resource* memory);
// Every key is one of these.
Status CheckKeys(const boost::json::object& request, std::span<const std::string_view> known);
// The place of the learner that the request names; it need not where there is one alone.
Result<size_t> FindLearner(const boost::json::object& request,
                           std::span<const std::string_view> learners);

}  // namespace tacit::serve
