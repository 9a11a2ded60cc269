#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/parts/ask_daemon.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kVersionsPath = "/v1/versions";

struct VersionOptions {
  std::string url, version;
  double share = 0;
  bool end = false;
};

Result<int> PrintVersions(const VersionOptions& options, const json::object& report) {
  try {
    const uint64_t serving = report.at("serving").to_number<uint64_t>();
    const json::value& canary = report.at("canary");
    for (const json::value& place : report.at("versions").as_array()) {
      const uint64_t version = place.at("version").to_number<uint64_t>();
      std::string what = place.at("open").as_bool() ? "open" : "closed";
      if (version == serving) what = report.at("held").as_bool() ? "served, held" : "served";
      if (!canary.is_null() && version == canary.at("version").to_number<uint64_t>())
        what = fmt::format("canary, share {:g}", canary.at("share").to_number<double>());
      fmt::print("{:>12}  {:<20}  {}\n", version, what,
                 std::string_view(place.at("folder").as_string()));
    }
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{console::kExitDone};
}

Result<int> ListVersions(const VersionOptions& options) {
  TACIT_ASSIGN(const http::Response response, AskDaemon(options.url, kVersionsPath, "GET", ""));
  TACIT_ASSIGN(const json::object report, ReadAnswer(options.url, response.status, response.body));
  return PrintVersions(options, report);
}

Result<int> SendOrder(const VersionOptions& options, const json::object& order) {
  TACIT_ASSIGN(const json::object report,
               AskDaemonForJson(options.url, kVersionsPath, json::serialize(order)));
  return PrintVersions(options, report);
}

// A commit's number as JSON; anything else goes as it is, and the daemon says what is wrong.
json::value VersionValue(const std::string& text) {
  json::error_code error;
  const json::value value = json::parse(text, error);
  return error || !value.is_int64() ? json::value(text) : value;
}

Result<int> ServeVersion(const VersionOptions& options) {
  return SendOrder(options, {{"serve", VersionValue(options.version)}});
}

Result<int> SetCanary(const VersionOptions& options) {
  if (options.end) return SendOrder(options, {{"canary", nullptr}});
  if (options.version.empty() || options.share == 0)
    return BadUsage("a canary needs a version and --share; --end ends it");
  return SendOrder(
      options,
      {{"canary", {{"version", VersionValue(options.version)}, {"share", options.share}}}});
}

}  // namespace

void AddVersions(CLI::App& cli, Action* chosen) {
  auto* command =
      cli.add_subcommand("versions", "The checkpoints that a server of them answers from");
  command->require_subcommand(1);
  const auto options = std::make_shared<VersionOptions>();
  const auto add = [&](const char* name, const char* about, const char* footer,
                       Result<int> (*run)(const VersionOptions&)) {
    auto* one = command->add_subcommand(name, about);
    one->add_option("--url", options->url,
                    "The server's operator listener: http://HOST:PORT or unix:/PATH")
        ->required();
    one->footer(footer);
    one->callback([options, chosen, run] { *chosen = [options, run] { return run(*options); }; });
    return one;
  };
  add("list", "Lists them, and which are open",
      "Example:\n  tacit versions list --url unix:/run/tacit/operator", ListVersions);
  auto* serve = add("serve", "Serves another one until told otherwise",
                    "An older one is served, also when newer ones come, until `newest` is\n"
                    "asked for. A canary ends.\n"
                    "Example:\n  tacit versions serve 41 --url unix:/run/tacit/operator",
                    ServeVersion);
  serve->add_option("version", options->version, "The number of its commit, or newest")->required();
  auto* canary = add("canary", "Has a version answer a share of the requests",
                     "What is served stays served beside it, until told otherwise.\n"
                     "Example:\n  tacit versions canary 42 --share 0.1 --url "
                     "unix:/run/tacit/operator",
                     SetCanary);
  canary->add_option("version", options->version, "The number of its commit");
  canary->add_option("--share", options->share, "The share, above 0, at most 1");
  canary->add_flag("--end", options->end, "Ends it");
}

}  // namespace tacit::cli
