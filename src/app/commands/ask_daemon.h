#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "serve/client.h"

namespace tacit::app {

// One request to a running daemon, path as in "/v1/score". kIo where none answers: exit status 3 is
// for stores that refuse.
Result<serve::Response> AskDaemon(const std::string& url, std::string_view path,
                                  const std::string& method, std::string_view body);

// The object of an answer in JSON. What is said against the request is the failure,
// kInvalidArgument where the request is at fault; `who` answered.
Result<boost::json::object> ReadAnswer(const std::string& who, uint32_t status,
                                       const std::string& body);
// Both, by POST.
Result<boost::json::object> AskDaemonForJson(const std::string& url, std::string_view path,
                                             std::string_view body);

// "from learner ... at version ..., epsilon ...": the last line of an answer on a terminal. Throws
// as boost::json does where the answer is of another form.
void PrintModel(const boost::json::object& answer);

}  // namespace tacit::app
