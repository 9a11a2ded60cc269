#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/crash_point.h"
#include "base/text.h"
#include "cli/parts/command.h"
#include "cli/parts/shell_words.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "event/item_catalogue.h"
#include "inspect/private_findings.h"
#include "inspect/proposal.h"
#include "inspect/report.h"
#include "inspect/topic_records.h"
#include "noise/noise.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/restore/inspection.h"

namespace tacit::cli {
namespace {

struct InspectOptions {
  std::vector<std::string> files;
  std::string format;
  uint64_t rows = 200'000;
  // The topic that is looked at in place of files.
  std::string topic, bootstrap, kafka, framing, registry;
  bool evenly = false;
  uint32_t wait_s = 10;
  bool json = false;
  inspect::Asked asked;
  // With --private.
  std::optional<double> private_epsilon;
  std::string store, witness, names;
  std::vector<std::string> fields, label_values;
  inspect::Named named;
  uint32_t user_records = 20;
  std::string given;  // all of these, as they were written

  bool of_topic() const { return !topic.empty(); }
  bool is_private() const { return private_epsilon.has_value(); }
};

// Puts a report before a configuration, so that what is printed is one that loads.
std::string AsComment(const std::string& text) {
  std::string comment;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    comment += line.empty() ? "#\n" : fmt::format("# {}\n", line);
  return comment;
}

std::optional<inspect::Format> FormatNamed(const std::string& name) {
  for (const auto format :
       {inspect::Format::kCriteoTsv, inspect::Format::kJson, inspect::Format::kCsv})
    if (NameOf(format) == name) return format;
  return std::nullopt;
}

// JSON is UTF-8, and a word of a file may not be.
std::string AsUtf8(std::string_view text) {
  std::string utf8;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    utf8 += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return utf8;
}

// The command that says what was guessed, and what it says; "" if nothing was. No file is written
// over: the guessed proposal is moved away.
std::pair<std::string, std::string> SayingCommand(const InspectOptions& options,
                                                  const inspect::Sample& sample,
                                                  const inspect::Roles& roles) {
  std::string guessed, words;
  for (const inspect::NamedPart& part : NamedParts(roles)) {
    if (!part.grounds->guessed) continue;
    guessed += fmt::format("{}the {}", guessed.empty() ? "" : ", ", part.name);
    words += OptionWords(fmt::format("--{}", part.name), sample.columns[part.column].place);
  }
  if (roles.are_meetings() && !roles.label_denied) {
    guessed += guessed.empty() ? "that there is no label" : ", and that there is no label";
    words += " --no-label";
  }
  if (guessed.empty()) return {};
  const std::string& output = options.asked.output;
  std::error_code ignored;
  const bool moves = !output.empty() && !std::filesystem::exists(output, ignored);
  return {guessed,
          fmt::format("{}tacit inspect{}{}",
                      moves ? fmt::format("mv -n {0} {0}.guessed && ", ShellWord(output)) : "",
                      options.given, words)};
}

void PrintFindings(const InspectOptions& options, const inspect::Sample& sample,
                   const inspect::Roles& roles, const std::optional<inspect::Trial>& trial,
                   const inspect::Proposal* proposal) {
  const bool to_file = !options.asked.output.empty();
  const bool label_is_open = roles.label && roles.label->values_open;
  const std::string few_labels = proposal != nullptr && trial
                                     ? FewLabelsInNoise(*proposal, sample, *trial, label_is_open)
                                     : "";
  const auto [guessed, command] = proposal != nullptr ? SayingCommand(options, sample, roles)
                                                      : std::pair<std::string, std::string>();
  if (options.json) {
    boost::json::object report = ReportJson(sample, roles, trial);
    if (!few_labels.empty()) report["warnings"].as_array().emplace_back(few_labels);
    if (proposal != nullptr) {
      boost::json::array open;
      for (const std::string& key : proposal->open_keys) open.push_back(boost::json::value(key));
      report["to_fill_in"] = std::move(open);
      if (!proposal->next_item.empty()) report["next_item"] = proposal->next_item;
      report["proposal"] = proposal->yaml;
      report["noise"] = proposal->noise;
      report["command"] = command;
    }
    fmt::print("{}\n", AsUtf8(boost::json::serialize(report)));
    return;
  }
  std::string text = ReportText(sample, roles, trial);
  if (proposal != nullptr) {
    if (!few_labels.empty()) text += fmt::format("WARNING: {}\n", few_labels);
    if (!proposal->noise.empty()) text += fmt::format("{:<11}{}\n", "noise", proposal->noise);
    if (to_file) text += fmt::format("\nproposed: {}\n", options.asked.output);
    if (!proposal->next_item.empty()) text += fmt::format("next items: {}\n", proposal->next_item);
    for (const std::string& key : proposal->open_keys)
      text += fmt::format("to be filled in by a person: {}\n", key);
  }
  if (!guessed.empty())
    text += fmt::format(
        "\nGUESSED: {}. Right? This says so{}; put another name in where one is wrong:\n{}\n",
        guessed, options.is_private() ? ", and is charged again" : "", command);
  fmt::print("{}", to_file || proposal == nullptr ? text : AsComment(text) + '\n' + proposal->yaml);
}

// Checks that records come from one place: files, or a topic.
Status CheckWhence(const InspectOptions& options) {
  if (!options.of_topic()) {
    if (options.files.empty()) return BadUsage("name log files, or a topic with --topic NAME");
    if (!options.bootstrap.empty() || !options.kafka.empty() || !options.framing.empty() ||
        !options.registry.empty() || options.evenly)
      return BadUsage(
          "--bootstrap, --kafka, --framing, --registry and --evenly are for --topic NAME");
    return {};
  }
  if (!options.files.empty())
    return BadUsage(fmt::format("{}: is a file, and --topic names a topic: look at them apart",
                                options.files.front()));
  if (options.rows > inspect::kTopicRowsMost)
    return BadUsage(fmt::format("--rows: at most {} of a topic, which are held in memory",
                                WithThousands(inspect::kTopicRowsMost)));
  if (!config::GoodTopic(options.topic))
    return BadUsage(fmt::format("--topic: '{}' is no topic's name", options.topic));
  return {};
}

double NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

Result<inspect::TopicAsked> TopicOf(const InspectOptions& options) {
  inspect::TopicAsked asked{
      .topic = options.topic,
      .rows_most = options.rows,
      .spread = options.evenly ? stream::KafkaSpread::kEvenly : stream::KafkaSpread::kFirst,
      .wait = std::chrono::seconds(options.wait_s)};
  asked.registry = options.registry;
  if (!options.framing.empty()) asked.framed = options.framing == "confluent";
  // A framing that nobody has named would have to be guessed from records.
  if (options.is_private()) asked.framed = asked.framed.value_or(false);
  TACIT_ASSIGN(asked.kafka, config::LoadKafka(options.kafka, options.bootstrap));
  const auto names_brokers = [](const config::Property& property) {
    return property.name == "bootstrap.servers" || property.name == "metadata.broker.list";
  };
  if (std::ranges::none_of(asked.kafka.properties, names_brokers))
    return BadUsage("--bootstrap HOST:PORT is missing: the brokers that have the topic");
  return asked;
}

tl::unexpected<Error> Missing(std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("--private: {}", what));
}

// Checks that some learner can promise the epsilon that the proposal is to have: a pair that no
// learner can have is refused before the inspection is paid for.
Status CheckPromise(const inspect::Asked& asked) {
  if (!asked.epsilon) return {};
  config::Learner learner;
  learner.id = "the proposed one";
  learner.model.kind = config::ModelKind::kLinear;
  learner.mechanism.kind = config::MechanismKind::kSums;
  learner.privacy = {.unit = asked.unit == "user" ? privacy::Unit::kUser : privacy::Unit::kEvent,
                     .epsilon = *asked.epsilon,
                     .delta = *asked.delta};
  TACIT_RETURN_IF_ERROR(wiring::StepNoise(learner, wiring::ExposureOf(learner, {})));
  return {};
}

// Checks that a person has said what may not follow from the records.
Status CheckPrivate(const InspectOptions& options) {
  if (!options.is_private()) {
    if (!options.store.empty() || !options.witness.empty() || !options.fields.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "--store, --witness and --fields are for --private EPSILON");
    return {};
  }
  if (options.store.empty())
    return Missing("--store PATH is missing: the store that will learn, which pays for it");
  if (!options.asked.unit) return Missing("--unit event or user is missing: whom it promises");
  if (!options.asked.delta) return Missing("--delta is missing: what epsilon is stated at");
  if (options.format.empty())
    return Missing("--format is missing: to guess it would be to look at records");
  TACIT_RETURN_IF_ERROR(CheckPromise(options.asked));
  const bool of_users = options.asked.unit == "user";
  if (!options.registry.empty()) return BadUsage("--registry: --private does not look at Avro");
  if (options.of_topic() && options.format == "csv")
    return Missing(
        "a topic's lines of values have no header that names them, and to name them by a record "
        "would be to look at it: write source.csv yourself, by config/reference.yaml");
  if (options.format == "csv" && options.fields.empty())
    return Missing(
        "--fields NAME,... is missing: the first line is taken to be a header, and only columns "
        "that you name are shown, in case it is a record");
  if (options.format == "criteo_tsv" && (of_users || !options.fields.empty()))
    return Missing("Criteo's lines name no user, and their fields are known");
  if (of_users && options.named.user.empty())
    return Missing("--user FIELD is missing: a user's records can only be bounded by it");
  const size_t named = 4;  // the label, the user, the item, the time
  if (options.fields.size() > inspect::kPrivateFieldsMost - named)
    return BadUsage(fmt::format("--fields: {} are too many, at most {} can be counted",
                                options.fields.size(), inspect::kPrivateFieldsMost - named));
  return {};
}

// Checks all that could stop a private look once it is paid for: its files are read to their ends.
Status CheckReadable(const InspectOptions& options, const inspect::PrivateLook& look) {
  TACIT_RETURN_IF_ERROR(inspect::CheckFiles(options.files));
  if (look.records->are_avro())
    return BadUsage(
        "--private does not look at Avro: write the configuration by docs/using/avro.md");
  TACIT_RETURN_IF_ERROR(ShapeAsSaid(look));
  for (size_t part = 0; part < look.records->parts().size(); ++part)
    TACIT_RETURN_IF_ERROR(look.records->ForEach(part, [](const inspect::Record&) { return true; }));
  return {};
}

// `format`: of the records. A place of JSON may be named without the slash that it begins with.
Status FillNamed(const InspectOptions& options, std::string_view format, inspect::Named* named) {
  *named = options.named;
  const auto point = [&](std::string* place) {
    if ((format == "json" || format == "avro") && !place->empty() && !place->starts_with('/'))
      *place = '/' + *place;
  };
  const std::pair<const char*, std::string*> places[] = {{"--label", &named->label},
                                                         {"--user", &named->user},
                                                         {"--item", &named->item},
                                                         {"--time", &named->time}};
  for (const auto& [option, place] : places) {
    point(place);
    for (const auto& [before, other] : places) {
      if (other == place) break;
      if (!place->empty() && *place == *other)
        return BadUsage(fmt::format("{} and {}: both name '{}'", before, option, *place));
    }
  }
  for (const std::string& value : options.label_values) {
    const size_t at = value.rfind('=');
    const std::string label = at == value.npos ? "" : value.substr(at + 1);
    if (label != "0" && label != "1")
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--label-values: '{}' is not WORD=0 or WORD=1", value));
    named->label_values.emplace_back(value.substr(0, at), label);
  }
  if (!named->label_values.empty() && named->label.empty())
    return Fail(ErrorCode::kInvalidArgument, "--label-values: of which field? --label names it");
  return {};
}

inspect::PrivateLook LookOf(const InspectOptions& options, const inspect::Named& named) {
  inspect::PrivateLook look{.records = inspect::RecordsOfFiles(options.files),
                            .format = *FormatNamed(options.format),
                            .fields = options.fields,
                            .rows_most = options.rows};
  for (std::string& field : look.fields)
    if (options.format == "json" && !field.starts_with('/')) field = '/' + field;
  for (const std::string& place : {named.label, named.user, named.item, named.time})
    if (!place.empty()) look.named.push_back(place);
  if (options.asked.unit == "user") {
    look.unit = privacy::Unit::kUser;
    look.user = named.user;
    look.user_records = options.user_records;
  }
  if (options.format == "csv")
    for (const std::string& place : look.named)
      if (std::ranges::find(look.fields, place) == look.fields.end()) look.fields.push_back(place);
  return look;
}

std::string PaidText(const InspectOptions& options, const inspect::PrivateLook& look,
                     const wiring::ChargedInspection& charged,
                     const inspect::PrivateFindings& findings) {
  std::string text = fmt::format(
      "Its counts are noised: epsilon {:g} at delta {:g} per {}{}, charged to {} before they were "
      "shown (account {}, epsilon {:.4g} with earlier inspections; {:.4g} at delta {:g} with all "
      "that was released). The noise on a field's counts has a deviation of {:.0f}.",
      *options.private_epsilon, *options.asked.delta, *options.asked.unit,
      look.unit == privacy::Unit::kUser
          ? fmt::format(", of whom the first {} count", Counted(look.user_records, "record"))
          : "",
      options.store, charged.account, charged.account_epsilon, charged.total_epsilon,
      charged.total_delta, findings.deviation());
  if (look.records->topic() != nullptr)
    text += fmt::format(
        " It counts the records at these offsets: {}. A second look at them is paid for again.",
        inspect::OffsetsText(look.records->topic()->looked_at));
  if (findings.name_threshold() > 0)
    text += fmt::format(
        " Fields that fewer than some {} records have are not shown, unless --fields names them.",
        WithThousands(static_cast<uint64_t>(findings.name_threshold())));
  return text;
}

Result<std::shared_ptr<const inspect::Records>> OpenRecords(const InspectOptions& options) {
  if (!options.of_topic()) return inspect::RecordsOfFiles(options.files);
  TACIT_ASSIGN(const inspect::TopicAsked asked, TopicOf(options));
  TACIT_ASSIGN(inspect::TopicFound found, inspect::FindTopic(asked));
  return inspect::ReadTopic(asked, std::move(found));
}

// A proposal is filled in by a person: it is not written over one that may have been.
Status CheckOutput(const std::string& path) {
  if (std::error_code ignored; std::filesystem::is_regular_file(path, ignored))
    return BadUsage(fmt::format(
        "--output {}: is there already, and may have been filled in: move it away, or name another",
        path));
  return console::CheckWritable("--output", path);
}

// The charge is on disk before a record is looked at, so that nothing is shown that is not paid
// for.
Result<int> InspectPrivately(const InspectOptions& options) {
  inspect::Named named;
  TACIT_RETURN_IF_ERROR(FillNamed(options, options.format, &named));
  inspect::PrivateLook look = LookOf(options, named);
  inspect::TopicAsked asked_topic;
  inspect::TopicFound found;
  std::vector<OffsetRange> ranges;
  if (options.of_topic()) {
    TACIT_ASSIGN(asked_topic, TopicOf(options));
    TACIT_ASSIGN(found, inspect::FindTopic(asked_topic));
    ranges = found.looked_at;
  } else {
    TACIT_RETURN_IF_ERROR(CheckReadable(options, look));
  }
  if (!options.asked.items.empty())
    TACIT_RETURN_IF_ERROR(event::ItemCatalogue::Read(options.asked.items));
  const double noise = wiring::InspectionNoise(*options.private_epsilon, *options.asked.delta);
  TACIT_ASSIGN(const wiring::ChargedInspection charged,
               wiring::ChargeInspection({.store = options.store,
                                         .witness = options.witness,
                                         .unit = look.unit,
                                         .epsilon = *options.private_epsilon,
                                         .delta = *options.asked.delta,
                                         .topic = options.topic,
                                         .ranges = std::move(ranges)}));
  CrashPoint("inspect.charged");
  if (options.of_topic()) {
    TACIT_ASSIGN(look.records, inspect::ReadTopic(asked_topic, std::move(found)));
  }
  const auto source = noise::MakeNoiseSource();
  TACIT_ASSIGN(const auto findings, inspect::PrivateFindings::Make(look, noise, *source));
  inspect::Sample sample = findings->sample();
  sample.noised = PaidText(options, look, charged, *findings);
  const inspect::Roles roles = FindRoles(sample, findings->profiles(), findings->evidence(), named);
  if (const std::string why = WhyNothingToLearn(roles); !why.empty()) {
    PrintFindings(options, sample, roles, std::nullopt, nullptr);
    std::fflush(stdout);
    fmt::print(stderr,
               "tacit: nothing is proposed: {}. Words of a label are not looked at: --label and "
               "--label-values say what they mean\n",
               why);
    return int{console::kExitFailed};
  }
  inspect::Asked asked = options.asked;
  asked.store = options.store;
  asked.witness = charged.witness;
  const auto proposal = Propose(sample, roles, findings->evidence(), asked);
  if (!proposal) {  // the findings are paid for
    PrintFindings(options, sample, roles, std::nullopt, nullptr);
    return Fail(proposal.error());
  }
  TACIT_ASSIGN(const inspect::Trial trial, findings->Try(proposal->config, roles));
  PrintFindings(options, sample, roles, trial, &*proposal);
  TACIT_RETURN_IF_ERROR(console::WriteFile(options.asked.output, proposal->yaml));
  return trial.bad() * 10 <= trial.good + trial.bad() ? int{console::kExitDone}
                                                      : int{console::kExitFailed};
}

// Records that cannot be read are the operator's to look at: where they are many, the status says
// so too.
Result<int> Inspect(const InspectOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckWhence(options));
  TACIT_RETURN_IF_ERROR(CheckPrivate(options));
  TACIT_RETURN_IF_ERROR(CheckOutput(options.asked.output));
  if (options.is_private() && !options.names.empty())
    return BadUsage("--names writes values of records, and --private tells none");
  TACIT_RETURN_IF_ERROR(console::CheckWritable("--names", options.names));
  if (options.is_private()) return InspectPrivately(options);
  TACIT_ASSIGN(auto records, OpenRecords(options));
  TACIT_ASSIGN(const inspect::Sample sample,
               inspect::ReadSample(std::move(records), {.format = FormatNamed(options.format),
                                                        .rows_most = options.rows,
                                                        .now_ms = NowMs()}));
  inspect::Named named;
  TACIT_RETURN_IF_ERROR(FillNamed(options, sample.format_name(), &named));
  for (const std::string& place : {named.label, named.user, named.item, named.time})
    if (!place.empty() &&
        std::ranges::find(sample.columns, place, &inspect::Column::place) == sample.columns.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("no field of these records is called '{}'", place));
  const inspect::Roles roles = FindRoles(sample, named);
  if (const std::string why = WhyNothingToLearn(roles); !why.empty()) {
    PrintFindings(options, sample, roles, std::nullopt, nullptr);
    std::fflush(stdout);
    fmt::print(stderr, "tacit: nothing is proposed: {}\n", why);
    return int{console::kExitFailed};
  }
  const auto proposal = Propose(sample, roles, options.asked);
  if (!proposal) {  // the findings say why
    PrintFindings(options, sample, roles, std::nullopt, nullptr);
    return Fail(proposal.error());
  }
  TACIT_ASSIGN(const inspect::Trial trial, TryOut(sample, proposal->config));
  PrintFindings(options, sample, roles, trial, &*proposal);
  TACIT_RETURN_IF_ERROR(console::WriteFile(options.asked.output, proposal->yaml));
  TACIT_RETURN_IF_ERROR(console::WriteFile(options.names, NamesText(sample, roles)));
  if (trial.bad() * 10 <= trial.good + trial.bad()) return int{console::kExitDone};
  std::fflush(stdout);
  const inspect::Complaint first = trial.complaints.List().front();
  fmt::print(stderr, "tacit: {} of {} could not be learnt from, the first at {}:{}: {}\n",
             WithThousands(trial.bad()), Counted(trial.good + trial.bad(), "record"), first.file,
             first.line, first.reason);
  return int{console::kExitFailed};
}

void AddTopicOptions(CLI::App& command, InspectOptions* options) {
  command.add_option("--topic", options->topic,
                     "A topic of Kafka in place of files; it is read alone: nothing is committed, "
                     "no group is joined");
  command.add_option("--bootstrap", options->bootstrap, "With --topic: a broker, HOST:PORT");
  command
      .add_option("--kafka", options->kafka,
                  "With --topic: a file with a section kafka, as a configuration has it, for "
                  "TLS and passwords")
      ->check(CLI::ExistingFile);
  command.add_flag("--evenly", options->evenly,
                   "With --topic: short stretches from its beginning to its end, in place of the "
                   "first records");
  command
      .add_option("--registry", options->registry,
                  "With --topic: the URL of a schema registry; the records are Avro by its schemas")
      ->type_name("URL");
  command
      .add_option("--framing", options->framing,
                  "With --topic: do not guess whether a schema's id is before each record")
      ->check(CLI::IsMember({"none", "confluent"}));
  command.add_option("--wait", options->wait_s, "With --topic: seconds that its brokers may take")
      ->default_val(10)
      ->check(WholeNumberFrom(1, 600));
}

}  // namespace

void AddInspect(CLI::App& cli, Action* chosen) {
  auto options = std::make_shared<InspectOptions>();
  auto* command = cli.add_subcommand(
      "inspect", "What log files or a topic hold, and a configuration that learns from them");
  command->add_option("files", options->files, "Log files, in the order of time");
  AddTopicOptions(*command, options.get());
  command->add_option("--format", options->format, "Do not guess how records are written")
      ->check(CLI::IsMember({"criteo_tsv", "json", "csv"}));
  command->add_option("--rows", options->rows, "Look at this many records, the first ones")
      ->default_val(200'000)
      ->check(WholeNumberFrom(1, 1'000'000'000));
  command->add_option("--unit", options->asked.unit, "privacy.unit: event or user")
      ->check(CLI::IsMember({"event", "user"}));
  command->add_option("--epsilon", options->asked.epsilon, "privacy.epsilon")
      ->check(NumberFrom(1e-6, 1e6));
  command->add_option("--delta", options->asked.delta, "privacy.delta")
      ->check(NumberFrom(1e-300, 0.999));
  command->add_option("--mode", options->asked.mode, "participation.mode")
      ->check(CLI::IsMember({"once", "poisson", "allocate"}));
  command->add_option("--label", options->named.label,
                      "The label's field, in place of finding it: a column, or a JSON pointer");
  command
      ->add_flag("--no-label", options->named.no_label,
                 "The records have no label: each says that a user has met an item")
      ->excludes("--label");
  command
      ->add_option("--label-values", options->label_values,
                   "The labels of the words of --label: buy=1,view=0")
      ->delimiter(',');
  command->add_option("--user", options->named.user, "The field that names the user");
  command->add_option("--item", options->named.item, "The field that names the item");
  command->add_option("--time", options->named.time, "The field that has the record's time");
  command
      ->add_option("--private", options->private_epsilon,
                   "Look by noised counts alone, of this epsilon at --delta per --unit, which "
                   "--store pays for")
      ->check(NumberFrom(1e-3, 1e3));
  command->add_option("--store", options->store,
                      "With --private: the store that will learn; it is made if it is not there");
  command->add_option(
      "--witness", options->witness,
      "With --private: its witness; default: beside it, FOLDER-witness/NAME.witness");
  command
      ->add_option("--fields", options->fields,
                   "With --private: the only fields to look at; JSON fields are found without it")
      ->delimiter(',');
  command
      ->add_option("--user-records", options->user_records,
                   "With --private and --unit user: look at this many records of a user, the "
                   "first ones; noise goes with it")
      ->default_val(20)
      ->check(WholeNumberFrom(1, inspect::kUserRecordsMost));
  command->add_option("--items", options->asked.items,
                      "The public list of items, for a model of the next item");
  command->add_option("--output", options->asked.output,
                      "Write the proposal to this file; default: print it, with the report before "
                      "it as a comment");
  command->add_option(
      "--names", options->names,
      "Also write the list by which tacit weights --names FILE shows values and not "
      "their numbers: a line FIELD<TAB>VALUE for up to 64 values of each field of "
      "words. They are of RAW records: keep the list where these are kept");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "It looks at raw records, and so is for their operator; with --private it tells noised "
      "counts "
      "alone,\nand no value of any record. Privacy keys that are not given stay "
      "empty,\nand tacitd does not start until a person has filled them in. Exit status 1: nothing "
      "can be\nproposed, or a tenth of the records could not be learnt from.\n"
      "Examples:\n  tacit inspect logs/day-*.jsonl.gz --output shop.yaml\n  tacit inspect "
      "clicks.csv "
      "--unit event --epsilon 8 --delta 1e-7 --mode once > clicks.yaml\n  tacit inspect --topic "
      "clicks --bootstrap localhost:9092 --output clicks.yaml\n  tacitd --config "
      "shop.yaml "
      "--check-config\n  tacit inspect clicks.csv --private 1 --store own/store --format csv \\\n"
      "      --fields label,user,shelf --unit event --delta 1e-7 --output own/clicks.yaml");
  command->callback([options, command, chosen] {
    options->given = GivenWords(*command);
    *chosen = [options] { return Inspect(*options); };
  });
}

}  // namespace tacit::cli
