#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"

namespace tacit::cli {

// The fields of a request to a daemon whose callers are known by tokens (serve.callers): the first
// line of the file that $TACIT_TOKEN_FILE names. kInvalidArgument: it cannot be read.
Result<http::FieldList> TokenFields();

// The files of TLS that $TACIT_CA_FILE, $TACIT_CLIENT_CERTIFICATE and $TACIT_CLIENT_KEY name.
http::ClientTls TlsOfEnvironment();

// Sends one request to a running daemon, with both of these; path as in "/v1/score". kIo if no
// daemon answers, since exit status 3 is for stores that refuse.
Result<http::Response> AskDaemon(const std::string& url, std::string_view path,
                                 const std::string& method, std::string_view body);

// The JSON object of an answer from `who`. An answer other than 200 becomes a failure with the
// daemon's message: kInvalidArgument where the request is at fault, else kIo.
Result<boost::json::object> ReadAnswer(const std::string& who, uint32_t status,
                                       const std::string& body);
// The message of an answer that is an error's; "status N" where it has none.
std::string MessageOf(const http::Response& response);
// The line, from 1 on, that the message of /v1/score/lines names as bad, and what is wrong with it.
struct RefusedLine {
  size_t number = 0;
  std::string reason;
};
std::optional<RefusedLine> FindRefusedLine(std::string_view message);
// Sends a POST with AskDaemon and reads the answer with ReadAnswer.
Result<boost::json::object> AskDaemonForJson(const std::string& url, std::string_view path,
                                             std::string_view body);

// Prints "from learner ... at version ..., epsilon ...", the last line of an answer on a terminal.
// Throws as boost::json does where the answer has another form.
void PrintModel(const boost::json::object& answer);

}  // namespace tacit::cli
