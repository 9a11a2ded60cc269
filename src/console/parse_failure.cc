#include "console/parse_failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "console/exit_code.h"

namespace tacit::console {
namespace {

// The command that a line names, as far as its words are commands, with its path: "tacit query".
struct Named {
  const CLI::App* command;
  std::string path;
};

// It ends at a command that was given a word which it does not know.
Named NamedBy(const CLI::App& app, std::string_view program) {
  Named named{.command = &app, .path = std::string(program)};
  while (named.command->remaining().empty()) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : named.command->get_subcommands())
      if (!sub->get_name().empty()) next = sub;
    if (next == nullptr) break;
    named.command = next;
    named.path += " " + next->get_name();
  }
  return named;
}

// The commands below one; groups of options have no name.
std::vector<std::string> CommandsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands(nullptr))
    if (!sub->get_name().empty() && !sub->get_group().empty()) names.push_back(sub->get_name());
  return names;
}

// The options of a command as they are written, also of its groups.
void AddOptions(const CLI::App& command, std::vector<std::string>* names) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back("--" + name);
    for (const std::string& name : option->get_snames()) names->push_back("-" + name);
  }
  for (const CLI::App* group : command.get_subcommands(nullptr))
    if (group->get_name().empty()) AddOptions(*group, names);
}

std::string Nearest(std::string_view word, const std::vector<std::string>& names) {
  return DidYouMean(word, std::vector<std::string_view>(names.begin(), names.end()));
}

// A word that the command does not know.
std::string WhyUnknown(const Named& named, const std::string& word) {
  const std::vector<std::string> commands = CommandsOf(*named.command);
  if (word.starts_with("-")) {
    const std::string option = word.substr(0, word.find('='));
    std::vector<std::string> options;
    AddOptions(*named.command, &options);
    return fmt::format("{} has no option {}{}; {} --help lists {}", named.path, Printable(option),
                       Nearest(option, options), named.path,
                       commands.empty() ? "its options" : "its commands and options");
  }
  if (!commands.empty())
    return fmt::format("'{}' is no command of {}{}; {} --help lists them", Printable(word),
                       named.path, Nearest(word, commands), named.path);
  return fmt::format("'{}' is one word too many; {} --help shows what goes with it",
                     Printable(word), named.path);
}

// The part of `text` between two others, or nothing.
std::optional<std::string> Between(const std::string& text, std::string_view before,
                                   std::string_view after) {
  const size_t begin = text.find(before);
  if (begin == text.npos) return std::nullopt;
  const size_t from = begin + before.size();
  const size_t end = after.empty() ? text.size() : text.find(after, from);
  if (end == text.npos) return std::nullopt;
  return text.substr(from, end - from);
}

// "[--path,--url]" as "--path and --url".
std::string Choices(std::string list) {
  for (size_t comma = 0; (comma = list.find(',', comma)) != list.npos; comma += 2)
    list.replace(comma, 1, ", ");
  const size_t last = list.rfind(", ");
  return last == list.npos ? list : list.replace(last, 2, " and ");
}

std::string WhyMissing(const Named& named, const std::string& said) {
  if (const auto group = Between(said, "[", "]")) {
    const bool too_many = said.find("were given") != said.npos || said.find("most") != said.npos;
    return fmt::format("{} takes {} of {}; {} --help tells of them", named.path,
                       too_many                             ? "only one"
                       : said.find("At least") != said.npos ? "at least one"
                                                            : "one",
                       Choices(*group), named.path);
  }
  const std::vector<std::string> commands = CommandsOf(*named.command);
  const std::string missing = *Between(said + " ", "", " is required");
  if (missing == "A subcommand")
    return fmt::format("{} needs one of its commands: {}", named.path, fmt::join(commands, ", "));
  const CLI::Option* option = named.command->get_option_no_throw(missing);
  const std::string words = option == nullptr ? "" : option->get_description();
  return fmt::format("{} needs {}{}; {} --help shows an example", named.path, missing,
                     words.empty() ? "" : fmt::format(" ({})", words), named.path);
}

// The numbers or values that an option takes are too few or too many.
std::string WhyMismatched(const Named& named, const std::string& said) {
  if (const auto name = Between(said, "", ": At Most"))
    return name->starts_with("-")
               ? fmt::format("{} is there more than once, and takes one value", *name)
               : fmt::format("{} takes one {}, and more are there", named.path, *name);
  if (const auto name = Between(said, "", " was given a disallowed flag override"))
    return fmt::format("{} takes no value", *name);
  if (const auto name = Between(said, " arguments to ", ", got "))
    return fmt::format("{} is there with {} values, and takes another number of them", *name,
                       *Between(said, ", got ", ""));
  if (const auto name = Between(said, "", ": ")) return fmt::format("{} needs a value", *name);
  return said;
}

std::string WhyNotConverted(const Named& named, const std::string& said) {
  const auto name = Between(said, "Could not convert: ", " = ");
  if (!name) return said;
  const CLI::Option* option = named.command->get_option_no_throw(*name);
  if (option != nullptr && option->get_items_expected_max() == 0)
    return fmt::format("{} takes no value", *name);
  return fmt::format("{}: '{}' is not a value that it takes", *name,
                     Printable(*Between(said, " = ", "")));
}

// CLI11's words about a value that is none of those in a set: "--kind: x not in {full,release}".
std::string WhyInvalid(const std::string& said) {
  const auto allowed = Between(said, " not in {", "}");
  const auto name = Between(said, "", ": ");
  if (allowed && name)
    return fmt::format("{}: '{}' is none of {}", *name,
                       Printable(*Between(said, ": ", " not in {")), Choices(*allowed));
  if (const auto file = Between(said, "File does not exist: ", ""); file && name)
    return fmt::format("{}: there is no file {}", *name, Printable(*file));
  return said;
}

}  // namespace

std::string WhyNotParsed(const CLI::App& app, const CLI::ParseError& error,
                         std::string_view program) {
  const Named named = NamedBy(app, program);
  std::string said = error.what();
  const std::vector<std::string> unknown = named.command->remaining();
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  // A misspelt option is often one that is missing, too: the word tells more.
  if (!unknown.empty()) return WhyUnknown(named, unknown.front());
  using enum CLI::ExitCodes;
  switch (code) {
    case RequiredError:
      return WhyMissing(named, said);
    case ArgumentMismatch:
      return WhyMismatched(named, said);
    case ConversionError:
      return WhyNotConverted(named, said);
    case ValidationError:
      return WhyInvalid(said);
    case RequiresError:
      return fmt::format("{} goes only with {}", *Between(said, "", " requires "),
                         *Between(said, " requires ", ""));
    case ExcludesError:
      return fmt::format("{} and {} do not go together", *Between(said, "", " excludes "),
                         *Between(said, " excludes ", ""));
    default:
      return said;
  }
}

int EndParse(const CLI::App& app, const CLI::ParseError& error, std::string_view program) {
  if (error.get_exit_code() == 0) return app.exit(error) == 0 ? kExitDone : kExitUsage;
  fmt::print(stderr, "{}: {}\n", program, WhyNotParsed(app, error, program));
  return kExitUsage;
}

}  // namespace tacit::console
