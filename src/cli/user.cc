#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/parts/ask_daemon.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "serve/routes/user_route.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

constexpr auto kBetweenLooksAtUser = std::chrono::milliseconds(100);

struct UserOptions {
  std::string url, id;
  bool wait = false;
};

// The id may hold any bytes, and none of them may end the path.
std::string PathOf(const std::string& id) {
  std::string path(serve::kUsersPath);
  for (const char c : id) path += fmt::format("%{:02x}", static_cast<uint8_t>(c));
  return path;
}

Result<json::object> AskAboutUser(const UserOptions& options, const std::string& method) {
  if (options.id.empty()) return BadUsage("the user's id is empty");
  TACIT_ASSIGN(const http::Response response,
               AskDaemon(options.url, PathOf(options.id), method, ""));
  return ReadAnswer(options.url, response.status, response.body);
}

Result<int> ShowUser(const UserOptions& options) {
  TACIT_ASSIGN(const json::object report, AskAboutUser(options, "GET"));
  fmt::print("{}\n", json::serialize(report));
  return int{console::kExitDone};
}

bool IsErased(const json::object& report) {
  const json::value* erased = report.if_contains("erased");
  return erased != nullptr && erased->is_bool() && erased->get_bool();
}

Result<int> ForgetUser(const UserOptions& options) {
  TACIT_ASSIGN(json::object report, AskAboutUser(options, "DELETE"));
  while (options.wait && !IsErased(report)) {
    std::this_thread::sleep_for(kBetweenLooksAtUser);
    TACIT_ASSIGN(report, AskAboutUser(options, "GET"));
  }
  fmt::print("{}\n", json::serialize(report));
  return int{console::kExitDone};
}

void AddWhom(CLI::App* command, const std::shared_ptr<UserOptions>& options) {
  command->add_option("id", options->id, "The user's id, as records have it")->required();
  command
      ->add_option("--url", options->url,
                   "The daemon's operator listener: http://HOST:PORT or unix:/PATH")
      ->required();
}

}  // namespace

void AddUser(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("user", "What a running daemon holds of one user");
  command->require_subcommand(1);
  const auto options = std::make_shared<UserOptions>();

  auto* show = command->add_subcommand("show", "Prints all that is held of a user, as JSON");
  AddWhom(show, options);
  show->footer(
      "Histories, used allowances, and when the user last asked to be forgotten. It is raw:\n"
      "hand it to that user alone.\n"
      "Example:\n  tacit user show anna --url unix:/run/tacit/operator");
  show->callback([options, chosen] { *chosen = [options] { return ShowUser(*options); }; });

  auto* forget = command->add_subcommand("forget", "Deletes a user's histories");
  AddWhom(forget, options);
  forget->add_flag("--wait", options->wait,
                   "Waits until no file of the store holds anything of the user");
  forget->footer(
      "What the user did until now is not remembered again, even if it is read again. Full\n"
      "checkpoints list the user, and a restore forgets again. The used allowance stays. What\n"
      "was learnt stays too: epsilon bounds what anybody can tell from it. Users who are never\n"
      "to be learnt from stand in the file of source.opt_out.\n"
      "Example:\n  tacit user forget anna --url unix:/run/tacit/operator --wait");
  forget->callback([options, chosen] { *chosen = [options] { return ForgetUser(*options); }; });
}

}  // namespace tacit::cli
