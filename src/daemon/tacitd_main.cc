// tacitd: the daemon. Options and wiring only; the work is in daemon.cc.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include "base/files/log.h"
#include "base/files/standard_input.h"
#include "console/empty_word.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "console/output_file.h"
#include "console/parse_failure.h"
#include "console/shortage.h"
#include "console/standard_streams.h"
#include "console/stop_signals.h"
#include "console/version_text.h"
#include "cuda/learn/gpu.h"
#include "daemon/daemon.h"
#include "daemon/describe.h"
#include "daemon/plan_text.h"
#include "store/store.h"
#include "wiring/assembly.h"
#include "wiring/budget_check.h"
#include "wiring/plans/code_version.h"
#include "wiring/source_check.h"

namespace {

constexpr char kExamples[] = R"(
Examples:
  tacitd --config config/demo.yaml --check-config     what would run, and what it promises
  tacitd --config config/demo.yaml                    train and serve until SIGTERM
  tacitd --config config/demo.yaml --until-end        train to the end of the log, print a table
  tacitd --config config/demo.yaml --standby          wait until the daemon on this store has ended
  tacitd --config config/demo.yaml --serve-only --checkpoint demo-data/store
  tacitd --config config/demo.yaml --replica --set store.path=/tmp/replica
  tacitd --config config/demo.yaml --worker           sum up slices for the trainer of this file
  tacitd --config config/demo.yaml --set store.path=/tmp/other
  tacitd --describe config                            every key of the configuration
Exit codes: 0 done (stopped by SIGTERM too), 1 failed (stopped before the end that --until-end asked
for too), 2 bad usage or config (a model that stops being numbers too, and a stream that a first start
cannot read), 3 store refused, 4 budget exhausted, 5 halted by source.halt_above before the end that
--until-end asked for)";

struct CommandLine {
  std::string config, checkpoint;
  std::vector<std::string> overrides;
  bool check = false, until_end = false, standby = false, serve_only = false, replica = false;
  bool worker = false;
  bool accept_older_copy = false, take_over_feed = false;
  uint64_t past_halt = 0;
  std::string past_cut;
  std::string page;
  tacit::daemon::PageForm form = tacit::daemon::PageForm::kMarkdown;
};

tacit::Result<tacit::wiring::Assembly> AssembleFrom(const CommandLine& line,
                                                    tacit::config::Config config) {
  auto assembled = tacit::wiring::Assemble(std::move(config));
  if (!assembled) return tacit::Fail(std::move(assembled.error()).Context(line.config));
  return assembled;
}

// Reads the configuration as it is written, without looking for files of the log.
tacit::Result<tacit::config::Config> Read(const CommandLine& line) {
  return tacit::config::Load(line.config, line.overrides, tacit::config::LogFiles::kUnread);
}

tacit::Result<tacit::wiring::Assembly> Reload(const CommandLine& line) {
  TACIT_ASSIGN(tacit::config::Config config, tacit::config::Load(line.config, line.overrides));
  return AssembleFrom(line, std::move(config));
}

// Says what a start refuses while there is no commit: a budget without room for a step, or a stream
// that cannot be read.
tacit::Status CheckFirstStart(const tacit::wiring::Assembly& assembly,
                              const tacit::Status& of_source) {
  const std::vector<std::string> budgets = tacit::wiring::FirstStepsRefused(assembly);
  if (budgets.empty() && of_source) return {};
  const tacit::config::Store& store = assembly.config.store;
  const auto open =
      tacit::store::OpenReadOnly(store.path, store.witness == "none" ? "" : store.witness, {});
  const bool is_new = open ? open->snapshot->version() == tacit::CommitSeq(0)
                           : open.error().code == tacit::ErrorCode::kNotFound;
  if (!is_new) return {};
  if (budgets.empty()) return of_source;
  return tacit::Fail(tacit::ErrorCode::kInvalidArgument, budgets.front());
}

tacit::Result<int> Run(const CommandLine& line) {
  if (!line.page.empty()) {
    TACIT_ASSIGN(const std::string text, tacit::daemon::DescribePage(line.page, line.form));
    fmt::print("{}", text);
    return int{tacit::console::kExitDone};
  }
  if (!line.check) tacit::console::HoldHangups();
  const bool reads_no_log = line.serve_only || line.replica || line.worker;
  const auto files =
      reads_no_log ? tacit::config::LogFiles::kUnread : tacit::config::LogFiles::kFound;
  TACIT_ASSIGN(tacit::config::Config config,
               tacit::config::Load(line.config, line.overrides, files));
  tacit::InitLogging(
      config.log.format == "json" ? tacit::LogFormat::kJson : tacit::LogFormat::kText,
      config.log.level);
  TACIT_ASSIGN(tacit::wiring::Assembly assembly, AssembleFrom(line, std::move(config)));
  if (line.check) {
    fmt::print("{}", tacit::daemon::PlanText(assembly));
    std::fflush(stdout);
    const tacit::wiring::SourceLook look = tacit::wiring::LookAtSource(assembly);
    fmt::print("{}", look.text);
    std::fflush(stdout);
    if (!reads_no_log) TACIT_RETURN_IF_ERROR(CheckFirstStart(assembly, look.first_start));
    return int{tacit::console::kExitDone};
  }
  if (line.take_over_feed && assembly.config.feed.topic.empty())
    return tacit::Fail(tacit::ErrorCode::kInvalidArgument,
                       "--take-over-feed: the configuration has no feed.topic");
  if (!line.past_cut.empty() && assembly.config.source.kind != tacit::config::SourceKind::kLog)
    return tacit::Fail(
        tacit::ErrorCode::kInvalidArgument,
        fmt::format("--past-cut {}: the configuration's source has no files", line.past_cut));
  if (line.replica && assembly.config.feed.topic.empty())
    return tacit::Fail(tacit::ErrorCode::kInvalidArgument,
                       "--replica: the configuration has no feed.topic to follow");
  if (line.worker && assembly.config.workers.topic.empty())
    return tacit::Fail(tacit::ErrorCode::kInvalidArgument,
                       "--worker: the configuration has no workers.topic");
  const tacit::daemon::Start start{.config = line.config,
                                   .sources = tacit::console::ThisBuild().sources,
                                   .read = [line] { return Read(line); },
                                   .open_gpu = tacit::cuda::OpenGpu};
  if (line.worker) return tacit::daemon::RunWorker(assembly, start);
  if (line.replica) return tacit::daemon::RunReplica(assembly, start, line.checkpoint);
  if (line.serve_only) return tacit::daemon::ServeCheckpoint(assembly, start, line.checkpoint);
  const bool ends = line.until_end || tacit::IsStandardInput(assembly.config.source.files);
  return tacit::daemon::RunDaemon(std::move(assembly), start,
                                  {.until_end = ends,
                                   .standby = line.standby,
                                   .reload = [line] { return Reload(line); },
                                   .accept_older_copy = line.accept_older_copy,
                                   .take_over_feed = line.take_over_feed,
                                   .past_halt = line.past_halt,
                                   .past_cut = line.past_cut});
}

// A core would hold histories, keys and tokens, and so would what another process of the user reads
// out of this one's memory.
void LeaveNoCore() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)prctl(PR_SET_DUMPABLE, 0);
}

// Adds --describe and the forms of its pages. A page needs no configuration.
void AddDescribe(CLI::App& cli, CLI::Option* config, CommandLine* line) {
  auto* describe = cli.add_option_function<std::string>(
                          "--describe",
                          [config, line](const std::string& page) {
                            line->page = page;
                            config->required(false);
                          },
                          "Print a page about this program, then exit")
                       ->check(CLI::IsMember(tacit::daemon::PageNames()))
                       ->trigger_on_parse();
  using enum tacit::daemon::PageForm;
  std::vector<CLI::Option*> flags;
  for (const auto& [flag, form, text] :
       {std::tuple("--markdown", kMarkdown, "With --describe: in Markdown, the default"),
        std::tuple("--yaml", kYaml, "With --describe: as a YAML file"),
        std::tuple("--json", kJson, "With --describe: for programs")}) {
    auto* added = cli.add_flag_callback(
        flag, [line, form] { line->form = form; }, text);
    added->needs(describe);
    for (CLI::Option* other : flags) added->excludes(other);
    flags.push_back(added);
  }
}

int Main(int argc, char** argv) {
  tacit::console::KeepOthersOut();  // from histories, keys and dead letters
  LeaveNoCore();
  CLI::App cli("tacitd learns from an interaction stream with differential privacy and serves it.");
  cli.footer(kExamples);
  CommandLine line;
  auto* config = cli.add_option("--config", line.config, "Configuration file (YAML)")->required();
  cli.add_option("--set", line.overrides, "Override a key: store.path=/x (repeatable)")
      ->allow_extra_args(false);
  cli.add_flag("--check-config", line.check,
               "Print the configuration and its plan, what brokers that answer say of its topic, "
               "and how many of the first records can be learnt from, then exit: with status 2 "
               "where a first start would refuse them");
  auto* until_end =
      cli.add_flag("--until-end", line.until_end,
                   "Exit when the source has ended (a topic: all that is there has been "
                   "read) and all is committed");
  auto* standby = cli.add_flag("--standby", line.standby,
                               "While another daemon has the store, wait; then take over");
  cli.add_flag("--accept-older-copy", line.accept_older_copy,
               "Go on with an older copy of the store whose newest one is lost: all that the "
               "witness has seen since is charged first, and is not learnt from again");
  cli.add_flag("--take-over-feed", line.take_over_feed,
               "Publish to feed.topic although another store has, once; only if nothing else "
               "publishes there any more");
  cli.add_option("--past-halt", line.past_halt,
                 "Go on behind the window N at which source.halt_above halted training; no other "
                 "halt is passed")
      ->check(tacit::console::WholeFrom(1), "POSITIVE");
  cli.add_option("--past-cut", line.past_cut,
                 "Go on behind this file of source.files, a packed one that is cut, as if no more "
                 "of it existed; no other cut is passed");
  auto* directory = cli.add_option(
      "--checkpoint", line.checkpoint,
      "Store, checkpoint or folder of checkpoints to serve from (SIGHUP moves to a newer one); "
      "with --replica a release checkpoint to begin with");
  auto* serve_only =
      cli.add_flag("--serve-only", line.serve_only, "Serve a checkpoint, train nothing")
          ->needs(directory)
          ->excludes(until_end)
          ->excludes(standby);
  auto* replica =
      cli.add_flag(
             "--replica", line.replica,
             "Follow feed.topic into a store of its own at store.path and serve it, train nothing")
          ->excludes(until_end)
          ->excludes(standby)
          ->excludes(serve_only);
  cli.add_flag("--worker", line.worker,
               "Sum up slices of periods for the trainer of this configuration, over workers.topic")
      ->excludes(until_end)
      ->excludes(standby)
      ->excludes(serve_only)
      ->excludes(replica);
  AddDescribe(cli, config, &line);
  cli.set_version_flag("--version", [] {
    return tacit::console::VersionText(tacit::wiring::CodeVersion(), tacit::console::ThisBuild());
  });
  const std::string empty =
      tacit::console::WhyWordIsEmpty(argc, argv, [&](const std::string& name) {
        const CLI::Option* option = cli.get_option_no_throw(name);
        return option != nullptr && option->get_items_expected_max() > 0;
      });
  if (!empty.empty()) {
    fmt::print(stderr, "tacitd: {}\n", empty);
    return tacit::console::kExitUsage;
  }
  try {
    cli.parse(argc, argv);
    // Alone it would be ignored, and training would start.
    if (!line.checkpoint.empty() && !line.serve_only && !line.replica)
      throw CLI::RequiresError("--checkpoint", "--serve-only or --replica");
  } catch (const CLI::ParseError& error) {
    return tacit::console::EndParse(cli, error, "tacitd");
  }
  const auto code = Run(line);
  return code ? *code : tacit::console::Report("tacitd", code.error());
}

}  // namespace

int main(int argc, char** argv) {
  tacit::console::EndOnShortage();
  tacit::console::HoldStandardStreams();
  return tacit::console::RunWithOutput("tacitd", [&] { return Main(argc, argv); });
}
