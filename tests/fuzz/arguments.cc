// Fuzzes the command lines of `tacit`: a command, and values at the edges of what its options
// allow. A line is read here, where the fuzzer sees which branches are taken. Its action runs in a
// child, in a copy of a folder with logs, a configuration and a trained store, and for a bounded
// time. It may fail, and must not abort.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "child.h"
#include "cli/command_line.h"
#include "console/exit_code.h"
#include "daemon/daemon.h"
#include "fuzz.h"
#include "stream/generator/criteo_generator.h"
#include "unit/store/script.h"

namespace tacit::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOptionsMost = 12;

// Values that fit some options, values that fit none, and names of the folder.
constexpr std::string_view kValues[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "7",
                                        "20",
                                        "255",
                                        "256",
                                        "1000",
                                        "4096",
                                        "65536",
                                        "0.5",
                                        "-0.0",
                                        "1e-300",
                                        "1e300",
                                        "1e-3",
                                        "nan",
                                        "inf",
                                        "0x10",
                                        "18446744073709551615",
                                        "9223372036854775808",
                                        "event",
                                        "user",
                                        "once",
                                        "poisson",
                                        "allocate",
                                        "json",
                                        "csv",
                                        "criteo_tsv",
                                        "ctr",
                                        "next",
                                        "item",
                                        "label",
                                        "/click",
                                        "u1",
                                        "a=1",
                                        "a=0,b=1",
                                        "I1",
                                        "C1",
                                        "C1,C2",
                                        "c.yaml",
                                        "log.tsv",
                                        "log.jsonl",
                                        "log.csv",
                                        "store",
                                        "store-witness/store.witness",
                                        "none",
                                        "out",
                                        "out.yaml",
                                        "events.json",
                                        "items",
                                        "missing",
                                        ".",
                                        "unix:/missing",
                                        "http://127.0.0.1:1",
                                        "127.0.0.1:1",
                                        "day",
                                        "x",
                                        "\xff",
                                        "\x1b[2J"};

// Values without which few lines of a command come far.
const std::map<std::string, std::string, std::less<>>& UsualValues() {
  static const std::map<std::string, std::string, std::less<>> kUsual = {
      {"--store", "store"},
      {"--config", "c.yaml"},
      {"--path", "store"},
      {"--output", "out"},
      {"--learner", "ctr"},
      {"--checkpoint", "store"},
      {"--witness", "store-witness/store.witness"},
      {"--events", "events.json"},
      {"--format", "csv"},
      {"--unit", "event"},
      {"--delta", "1e-6"},
      {"--epsilon", "1"},
      {"--user", "user"},
      {"--label", "label"},
      {"--fields", "label,user"},
      {"--private", "1"},
      {"files", "log.csv"},
      {"--data", "log.tsv"},
      {"--items", "items"},
      {"--url", "unix:/missing"}};
  return kUsual;
}

constexpr std::string_view kConfig = R"(
source: {kind: log, files: [log.tsv]}
store: {path: store, witness: store-witness/store.witness}
serve: {listen: ""}
log: {level: warning}
training: {idle_priority: false}
memory: {total_bytes: 400MiB}
learners:
  - id: ctr
    model: {kind: pctr, hidden: [4]}
    mechanism: {kind: adafest, threshold: 1.0}
    participation: {mode: once, batch: 64}
    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}
    optimizer: {kind: adam, learning_rate: 0.002}
  - id: sums
    model: {kind: linear}
    mechanism: {kind: sums}
    participation: {mode: once, batch: 128}
    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}
schema:
  features:
)";

void Write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Learns in a child, so that no thread of it stays here.
void Train() {
  const bool ends = fuzz::EndsWell([] {
    const auto read = [] { return config::Load("c.yaml", {}); };
    auto config = read();
    if (!config) return console::Report("fuzz", config.error());
    auto assembly = wiring::Assemble(*std::move(config));
    if (!assembly) return console::Report("fuzz", assembly.error());
    const daemon::Start start{.config = "c.yaml", .read = read};
    const auto code = daemon::RunDaemon(*std::move(assembly), start, {.until_end = true});
    return code ? *code : console::Report("fuzz", code.error());
  });
  fuzz::Demand(ends && fs::exists("store"), "a store is trained");
}

// A folder that each line gets a copy of.
class Fixture {
 public:
  Fixture() {
    fs::create_directories(path());
    fs::current_path(path());
    std::string config(kConfig), lines, jsonl, csv = "label,user,item,price\n";
    for (int i = 1; i <= 13; ++i) config += fmt::format("    - {{name: I{}, kind: dense}}\n", i);
    for (int i = 1; i <= 26; ++i)
      config += fmt::format("    - {{name: C{}, kind: categorical, buckets: 16}}\n", i);
    Write("c.yaml", config);
    stream::CriteoGenerator({.days = 1, .rows_per_day = 300, .seed = 1})
        .Generate(0, 0, 300, &lines, nullptr);
    Write("log.tsv", lines);
    for (int i = 0; i < 300; ++i) {
      jsonl += fmt::format("{{\"click\":{},\"user\":\"u{}\",\"item\":{}}}\n", i % 2, i % 40, i % 7);
      csv += fmt::format("{},u{},{},{}.5\n", i % 2, i % 40, i % 7, i % 90);
    }
    Write("log.jsonl", jsonl);
    Write("log.csv", csv);
    Write("items", "0\n1\n2\n3\n4\n5\n6\n");
    Write("events.json",
          R"([{"type":"gaussian","sigma":2.0,"count":9},{"type":"laplace","scale":3}])");
    Train();
  }
  // Copies it to a folder that is made anew.
  fs::path Copy() const {
    const fs::path copy = Beside("copy");
    fs::remove_all(copy);
    fs::copy(path(), copy, fs::copy_options::recursive);
    return copy;
  }
  fs::path Beside(const char* name) const { return fs::path(folder_.root()) / name; }

 private:
  fs::path path() const { return Beside("fixture"); }

  const store::TestFolder folder_;
};

// All that is printed goes to a file for the life of this object.
class PrintedTo {
 public:
  explicit PrintedTo(const char* path) {
    std::fflush(nullptr);
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int i = 0; i < 2; ++i) {
      before_[i] = dup(i + 1);
      dup2(file, i + 1);
    }
    close(file);
  }
  ~PrintedTo() {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      dup2(before_[i], i + 1);
      close(before_[i]);
    }
  }
  PrintedTo(const PrintedTo&) = delete;
  PrintedTo& operator=(const PrintedTo&) = delete;

 private:
  int before_[2];
};

// A command of words, and its options, those of its groups among them.
struct Command {
  std::vector<std::string> words;
  std::vector<const CLI::Option*> options = {};
};
void AddOptions(const CLI::App& app, Command* command) {
  for (const CLI::Option* option : app.get_options())
    if (option->get_name() != "--help") command->options.push_back(option);
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty()) AddOptions(*group, command);
}
void AddCommandsOf(const CLI::App& app, const std::vector<std::string>& words,
                   std::vector<Command>* commands) {
  bool is_leaf = true;
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->get_name().empty()) continue;
    is_leaf = false;
    std::vector<std::string> longer = words;
    longer.push_back(below->get_name());
    AddCommandsOf(*below, longer, commands);
  }
  if (!is_leaf && app.get_options().size() < 2) return;
  Command command{.words = words};
  AddOptions(app, &command);
  commands->push_back(std::move(command));
}

// The values that an option's own check names: "TEXT:{event,user}", "UINT:in [1 - 4096]".
std::vector<std::string> NamedValues(const CLI::Option& option) {
  std::string type = option.get_type_name();
  const size_t begin = type.find_first_of("{["), end = type.find_last_of("}]");
  if (begin == type.npos || end == type.npos || end < begin) return {};
  const std::string between = type[begin] == '{' ? "," : " - ";
  type = type.substr(begin + 1, end - begin - 1);
  std::vector<std::string> values;
  for (size_t at = 0; at <= type.size();) {
    const size_t stop = std::min(type.find(between, at), type.size());
    values.push_back(type.substr(at, stop - at));
    at = stop + between.size();
  }
  return values;
}

std::string TakeValue(const CLI::Option& option, std::string_view* bytes) {
  const uint8_t choice = fuzz::TakeChoice(bytes);
  const auto usual = UsualValues().find(option.get_name());
  if (choice < 64 && usual != UsualValues().end()) return usual->second;
  if (choice < 144) {
    const std::vector<std::string> named = NamedValues(option);
    if (!named.empty()) return named[choice % named.size()];
  }
  if (choice < 240) return std::string(kValues[fuzz::TakeChoice(bytes) % std::size(kValues)]);
  const size_t size = std::min<size_t>(fuzz::TakeChoice(bytes) % 64, bytes->size());
  std::string value(bytes->substr(0, size));
  bytes->remove_prefix(size);
  // An argument ends with a zero byte, and a slash would leave the folder.
  std::ranges::replace(value, '\0', '0');
  std::ranges::replace(value, '/', '_');
  return value == ".." ? "" : value;
}

void AddWords(const CLI::Option& option, std::string_view* bytes, std::vector<std::string>* words) {
  const bool is_flag = option.get_items_expected_max() == 0;
  if (!option.get_positional() || option.get_name().starts_with("-"))
    words->push_back(option.get_name());
  if (!is_flag) words->push_back(TakeValue(option, bytes));
}

std::vector<std::string> TakeLine(const CLI::App& app, std::string_view bytes) {
  std::vector<Command> commands;
  AddCommandsOf(app, {}, &commands);
  const Command& command = commands[fuzz::TakeChoice(&bytes) % commands.size()];
  std::vector<std::string> line = command.words;
  line.insert(line.begin(), "tacit");
  const bool complete = fuzz::TakeChoice(&bytes) % 8 != 0;
  for (const CLI::Option* option : command.options)
    if (complete && (option->get_required() || option->get_positional()))
      AddWords(*option, &bytes, &line);
  for (size_t i = 0; i < kOptionsMost && !bytes.empty() && !command.options.empty(); ++i)
    AddWords(*command.options[fuzz::TakeChoice(&bytes) % command.options.size()], &bytes, &line);
  return line;
}

const Fixture& TheFixture() {
  static const Fixture fixture;
  return fixture;
}

// Reads a line and does what it says. False: that ended in no way that a program may end in.
bool Do(std::string_view bytes, const char* printed) {
  const PrintedTo file(printed);
  CLI::App app("tacit");
  app.require_subcommand(1);
  Action action;
  AddCommands(app, {}, &action);
  const std::vector<std::string> line = TakeLine(app, bytes);
  fmt::print("{}\n", fmt::join(line, " "));
  std::vector<const char*> argv;
  for (const std::string& word : line) argv.push_back(word.c_str());
  if (ReadWords(app, static_cast<int>(argv.size()), argv.data())) return true;
  if (line[1] == "bench") return true;  // it takes no values, and minutes
  const fs::path folder = TheFixture().Copy();
  return fuzz::EndsWell([&] {
    fs::current_path(folder);
    const auto code = action();
    return code ? *code : console::Report("tacit", code.error());
  });
}

}  // namespace
}  // namespace tacit::cli

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  (void)tacit::cli::TheFixture();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto printed = tacit::cli::TheFixture().Beside("printed");
  std::filesystem::remove(printed);
  if (tacit::cli::Do(tacit::fuzz::TextOf(data, size), printed.c_str())) return 0;
  std::cerr << std::ifstream(printed).rdbuf();
  tacit::fuzz::Demand(false, "a command aborts");
  return 0;
}
