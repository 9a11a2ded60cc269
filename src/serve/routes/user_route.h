#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http.h"

namespace tacit::serve {

// All that a daemon holds of one user, to hand out to that user.
struct UserReport {
  struct Item {
    std::string id;
    int64_t timestamp_ms = 0;
  };
  struct History {
    std::string learner;
    std::vector<Item> items;  // oldest first
  };
  struct Allowance {
    std::string learner;
    uint32_t used = 0, most = 0;  // steps that the user was in or eligible for; the most allowed
  };
  std::vector<History> histories = {};
  std::vector<Allowance> allowances = {};
  std::optional<int64_t> forgotten_before_ms = {};  // the time of the last request, if any
  bool erased = true;                               // no file holds bytes of what was forgotten
  bool opted_out = false;
};

// The operator's questions about one user. Server threads call both at once.
struct UserCommands {
  std::function<Result<UserReport>(std::string_view id)> show;
  // Forgets the user and returns what is held from then on.
  std::function<Result<UserReport>(std::string_view id)> forget;
};

// The beginning of a user's route; the id follows, percent-encoded.
inline constexpr std::string_view kUsersPath = "/v1/users/";

// A user as a part of a path, percent-encoded. Refuses, and returns nothing, unless the request may
// be answered about this user: a user's token answers for that user alone, known here or not.
std::optional<std::string> UserAskedFor(const http::Request& request, std::string_view part,
                                        http::Reply* reply);

// Answers GET and DELETE /v1/users/{id} with the report as JSON.
void AnswerUser(const std::function<Result<UserReport>(std::string_view id)>& command,
                const http::Request& request, http::Reply* reply);

}  // namespace tacit::serve
