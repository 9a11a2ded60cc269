#include "cli/ledger/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "privacy/tradeoff.h"

namespace tacit::cli {
namespace {

std::string RegistryText(const std::string& words) {
  const std::string text = Printable(words);
  if (text.find('\n') == text.npos) return config::QuotedYaml(text);
  std::string block = "|2-";
  for (size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    block += fmt::format("\n{}{}", end > begin ? "      " : "", text.substr(begin, end - begin));
  }
  return block;
}

// YAML 1.1 reads 1e-07 as a text, and 1.0e-07 as a number.
std::string RegistryNumber(double number) {
  std::string text = fmt::format("{}", number);
  const size_t exponent = text.find('e');
  if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

// Three tiers of records need some fields; this stands for a field that none needs.
constexpr int kNoTier = 4;

// The part "deployment" of the record, section by section.
class RegistryWriter {
 public:
  void Section(std::string_view name) {
    section_ = name;
    yaml_ += fmt::format("  {}:\n", name);
  }
  void Plain(std::string_view key, std::string_view value) {
    yaml_ += fmt::format("    {}: {}\n", key, value);
  }
  void Text(std::string_view key, const std::string& text) { Plain(key, RegistryText(text)); }
  void Texts(std::string_view key, const std::vector<std::string>& texts) {
    yaml_ += fmt::format("    {}:\n", key);
    for (const std::string& text : texts)
      yaml_ += "      - " + config::QuotedYaml(Printable(text)) + "\n";
  }
  // A record of this tier has the field.
  void LeaveOut(int tier, std::string_view key, std::string_view why) {
    Lack(tier, fmt::format("deployment.{}.{}: left out: {}", section_, key, why));
  }
  // The operator's words, or where they are missing a text that is no answer.
  std::string Required(std::string_view key, std::string_view about, const std::string& words) {
    if (!words.empty()) return words;
    Lack(2, fmt::format("about.{}: not written: deployment.{}.{} says so", about, section_, key));
    return fmt::format("NOT WRITTEN YET: the operator has to say this (about.{})", about);
  }
  void Optional(int tier, std::string_view key, std::string_view about, const std::string& words) {
    if (!words.empty()) return Text(key, words);
    Lack(tier,
         fmt::format("about.{}: not written: deployment.{}.{} is left out", about, section_, key));
  }
  // The operator's words behind ours, or the empty text.
  std::string Behind(std::string_view about, const std::string& words) {
    if (!words.empty()) return "\n" + words;
    Lack(kNoTier, fmt::format("about.{}: not written: the record does not say it", about));
    return "";
  }

  RegistryRecord Finish(const std::string& name) && {
    std::string slug;
    for (const char c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (!slug.empty() && slug.back() != '_')
        slug += '_';
    return {fmt::format("url_slug: \"{}\"\nstatus: Draft\ntier: {}\ndeployment:\n{}",
                        slug.empty() ? "not_written_yet" : slug, tier_, yaml_),
            std::move(unwritten_)};
  }

 private:
  void Lack(int tier, std::string line) {
    tier_ = std::min(tier_, std::max(1, tier - 1));
    unwritten_.push_back(std::move(line));
  }

  std::string section_, yaml_;
  std::vector<std::string> unwritten_;
  int tier_ = 3;
};

// A configuration of another service would tell of other callers, brokers and workers.
Status CheckSameService(const Statement& statement, const config::Config& config) {
  for (const config::Learner& learner : config.learners) {
    const auto stated = std::ranges::find(statement.learners, learner.id, &StatedLearner::name);
    const bool known = stated != statement.learners.end();
    if (known && stated->total.unit == learner.privacy.unit &&
        stated->total.delta == learner.privacy.delta)
      continue;
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--config: learner '{}' has unit {} and delta {}, and {}: is this the "
                    "configuration of {}?",
                    learner.id, privacy::Name(learner.privacy.unit), learner.privacy.delta,
                    known ? fmt::format("in the ledger unit {} and delta {}",
                                        privacy::Name(stated->total.unit), stated->total.delta)
                          : "the ledger has no learner of this name",
                    statement.place));
  }
  return {};
}

// The last steps or release of a learner; null before the first.
const privacy::LedgerEntry* LastChargeOf(const StatedLearner& learner) {
  const auto last = std::find_if(learner.runs.rbegin(), learner.runs.rend(),
                                 [](const auto& run) { return !run.is_growth; });
  return last == learner.runs.rend() ? nullptr : &*last;
}

bool IsInspection(const privacy::LedgerEntry& run) {
  return run.charge.mechanism == privacy::MechanismKind::kInspection;
}

// A line for each learner that was charged.
std::string EachLearner(const Statement& statement, const auto& words_of) {
  std::string text;
  for (const StatedLearner& learner : statement.learners)
    if (const privacy::LedgerEntry* last = LastChargeOf(learner))
      text += fmt::format("\n- {}: {}.", learner.name, words_of(learner, *last));
  return text;
}

bool AnyCharge(const Statement& statement, const auto& has) {
  return std::ranges::any_of(statement.learners, [&](const StatedLearner& learner) {
    return std::ranges::any_of(learner.runs,
                               [&](const auto& run) { return !run.is_growth && has(run); });
  });
}

// The reason why no epsilon of all learners together is stated; empty if one is.
std::string NoEpsilonOfAll(const Statement& statement) {
  for (const StatedLearner& learner : statement.learners) {
    if (learner.worst.empty()) continue;
    if (!learner.worst.bounded()) return fmt::format("learner {} promises nothing", learner.name);
    if (learner.total.unit != statement.together.total.unit)
      return "learners have different units, and no epsilon is of both";
  }
  return std::isfinite(statement.together.total.epsilon)
             ? ""
             : "only a store or checkpoint knows which records the learners share";
}

void AddBasic(const config::About& about, int64_t published_ms, RegistryWriter* record) {
  record->Section("basic");
  const auto required = [&](std::string_view key, std::string_view name, const std::string& words) {
    record->Text(key, record->Required(key, name, words));
  };
  required("name", "name", about.name);
  if (about.curators.empty())
    record->Texts("data_curators", {record->Required("data_curators", "curators", "")});
  else
    record->Texts("data_curators", about.curators);
  required("intended_use", "intended_use", about.intended_use);
  record->Plain("data_product_type", "Machine learning model");
  required("data_product_region", "region", about.region);
  required("description", "description", about.description);
  record->Text("publication_date", MinuteOf(published_ms).substr(0, 10));
  record->Optional(kNoTier, "data_product_sector", "sector",
                   about.sector == "none" ? "" : about.sector);
}

void AddVariant(const Statement& statement, const config::Config* config, RegistryWriter* record) {
  record->Section("dp_variant");
  bool unbounded = false, covered = true;
  std::string open;
  for (const StatedLearner& learner : statement.learners) {
    unbounded |= !learner.worst.bounded();
    covered &= learner.total.not_covered.empty();
    if (!learner.total.not_covered.empty())
      open += fmt::format("- {}: {}.\n", learner.name, learner.total.not_covered);
  }
  if (unbounded)
    record->LeaveOut(2, "variant_name", "a learner promises nothing");
  else
    record->Plain("variant_name", covered ? "Approximate DP" : "Custom");
  std::string domain =
      "Streams of records, in files or in the partitions of topics. They have the same number of "
      "records, at the same places; the content of each record is any that its format allows.";
  if (config != nullptr) {
    size_t dense = 0;
    for (const config::Feature& feature : config->features)
      dense += feature.kind == config::Feature::Kind::kDense ? 1 : 0;
    domain +=
        fmt::format(" Records have the format {}; features: {} dense, {} categorical.",
                    config->source.format_traits().name, dense, config->features.size() - dense);
    if (!config->catalogue.file.empty()) open += "- The list of items is public.\n";
  }
  record->Text("data_domain", domain);
  for (const std::string& sentence : NotPromised()) open += "- " + sentence + "\n";
  record->Text("unprotected_quantities", open.substr(0, open.size() - 1));
}

void AddPrivacyLoss(const Statement& statement, RegistryWriter* record) {
  const std::string none = NoEpsilonOfAll(statement);
  record->Section("privacy_loss");
  const bool user = statement.together.total.unit == privacy::Unit::kUser;
  const bool mixed = std::ranges::any_of(statement.learners, [&](const StatedLearner& learner) {
    return learner.total.unit != statement.together.total.unit;
  });
  record->Text("privacy_unit", mixed  ? "event, or user (all records of one id), by learner"
                               : user ? "user (all records of one id)"
                                      : "event (one record)");
  record->Text("privacy_unit_details",
               "Neighbouring data, by learner:" +
                   EachLearner(statement, [](const auto& learner, const auto&) {
                     return NeighboursInWords(learner);
                   }));
  std::string details =
      fmt::format("Bounds on what all releases from {} to {} (UTC) tell of one unit. ",
                  MinuteOf(statement.first_ms), MinuteOf(statement.last_ms));
  if (none.empty()) {
    record->Plain("privacy_parameters",
                  fmt::format("\n      epsilon: {}\n      delta: {}",
                              RegistryNumber(statement.together.total.epsilon),
                              RegistryNumber(statement.together.total.delta)));
    details += fmt::format(
        "epsilon and delta are what has been spent up to then, of all learners together: {}. ",
        privacy::PlainWords(statement.together.total.AdvantageAtMost()));
  } else {
    record->LeaveOut(2, "privacy_parameters", none);
    details += fmt::format("No epsilon of all learners together is stated: {}. ", none);
  }
  details += statement.together.budget
                 ? fmt::format("All together may spend epsilon {} at delta {}. ",
                               *statement.together.budget, statement.together.total.delta)
                 : "There is no budget of all learners together. ";
  record->Text(
      "privacy_parameters_details",
      details + "Each learner:" + EachLearner(statement, [](const auto& learner, const auto&) {
        return fmt::format("epsilon {} spent of {}, at delta {}, for each {}; {}",
                           learner.epsilons.empty() ? "unbounded" : StatedText(learner.epsilons[0]),
                           learner.budget && std::isfinite(*learner.budget)
                               ? fmt::format("the promised {}", *learner.budget)
                               : "no budget",
                           learner.total.delta, privacy::Name(learner.total.unit),
                           privacy::PlainWords(learner.total.AdvantageAtMost()));
      }));
}

std::string ActorsInWords(const Statement& statement, const config::Config* config) {
  std::string actors = "- The operator is trusted. " + NotPromised()[kOfTheOperator] +
                       "\n- Those who get a release of the models, and adversaries who get all "
                       "that was released and know every other record: not trusted; epsilon "
                       "bounds what they learn.";
  if (!statement.together.worst.bounded())
    actors += " Of a learner without noise they learn all that it was taught.";
  if (config == nullptr) return actors;
  const config::Serve& serve = config->serve;
  if (!serve.listen.empty() && serve.callers.empty())
    actors +=
        "\n- Callers, without tokens: not trusted; they get answers of released models, "
        "however often they ask.";
  if (!serve.listen.empty() && !serve.callers.empty())
    actors +=
        "\n- Callers with a token of role query: not trusted; they get answers of released "
        "models, however often they ask. Role user: gets records and answers of one user alone. "
        "Role operator: as the operator, at the operator's listener.";
  if (!serve.operator_listen.empty() && serve.callers.empty())
    actors += "\n- All who reach the operator's listener: trusted, as the operator.";
  if (!config->feed.topic.empty())
    actors +=
        "\n- Readers of the feed, which publishes each version: not trusted; they get what a "
        "release has.\n- Writers of the feed: trusted to serve what was learnt.";
  if (config->source.kind == config::SourceKind::kKafka)
    actors +=
        "\n- The brokers of the stream, and all who may read its topic: trusted; they have "
        "the records as they are.";
  if (!config->kafka.dead_letter_topic.empty())
    actors += "\n- Readers of the topic of dead letters: trusted; they have records as they are.";
  if (!config->workers.topic.empty())
    actors +=
        "\n- Workers, which sum records for the trainer, and all who have their key: trusted; "
        "they have records and sums as they are. Brokers carry these sums sealed.";
  return actors;
}

// A budget's end, by the configuration where there is one.
std::string ReleasesInWords(const config::Config* config) {
  std::string text =
      "Each commit releases a version. No budget is ever reset, and what was charged is never "
      "given back: a ledger, which is a hash chain, keeps it. A learner's epsilon is that of its "
      "worst unit. The step that would bring a learner over its budget, or all over theirs, is not "
      "taken: the learner stops, and what it has released may be served on.";
  if (config == nullptr) return text;
  bool ends = config->budget.on_exhausted == config::Privacy::OnExhausted::kExit;
  for (const config::Learner& learner : config->learners)
    ends |= learner.privacy.on_exhausted == config::Privacy::OnExhausted::kExit;
  if (ends) text += " Once no learner may learn any more, the service may end too.";
  return text;
}

void AddDeploymentModel(const Statement& statement, const config::Config* config,
                        const config::About& about, RegistryWriter* record) {
  record->Section("deployment_model");
  record->Plain("model_name", "Central");
  record->Text("model_name_details",
               config != nullptr && !config->workers.topic.empty()
                   ? "The operator's trainer and workers have the records as they are. Workers sum "
                     "them; the trainer adds noise before anything is released."
                   : "The operator's process has the records as they are, and adds noise before "
                     "anything is released.");
  record->Text("actors", ActorsInWords(statement, config));
  if (config == nullptr)
    record->LeaveOut(3, "actors",
                     "callers, brokers, workers and readers of the feed, whom --config names");
  record->Plain("release_type", "Many releases");
  record->Text("release_type_details",
               ReleasesInWords(config) + record->Behind("retention", about.retention));
  const bool topic = config != nullptr && config->source.kind == config::SourceKind::kKafka;
  if (topic)
    record->Plain("data_source_type", "Dynamic");
  else
    record->LeaveOut(
        2, "data_source_type",
        config == nullptr ? "--config was not given" : "the operator knows whether new files come");
  if (config != nullptr)
    record->Text(
        "data_source_type_details",
        topic ? "Records come in the partitions of one topic."
              : fmt::format("Records come from source.kind {}, and are read {}.",
                            config->source.traits().name, Counted(config->source.passes, "time")));
  record->Plain("access_type", "Non-interactive");
  record->Text("access_type_details",
               "Only the operator, and users about themselves, may ask for records. All other "
               "requests are answered out of released models and the request itself: answers cost "
               "no privacy, no budget is apportioned to callers, and callers may collude.");
}

std::string CompositionInWords(const Statement& statement) {
  std::string text =
      "Adaptive composition of all steps that a unit is in; of disjoint parts of the stream the "
      "worst counts (parallel composition). Learners add up as if one unit were the worst of each, "
      "or record by record where that bound is smaller. Gaussian queries in full are composed "
      "exactly, as one Gaussian (Balle and Wang 2018).";
  using Mode = privacy::ParticipationMode;
  const auto any = [&](Mode mode) {
    return AnyCharge(statement, [&](const auto& run) { return run.participation == mode; });
  };
  if (any(Mode::kPoisson) || any(Mode::kAllocate))
    text +=
        " Sampled steps, and steps in blocks, are composed by an accountant of privacy loss "
        "distributions that certifies its bounds from both sides.";
  if (any(Mode::kOnce)) text += " No amplification is claimed for participation once.";
  if (AnyCharge(statement, [](const auto& run) { return run.charge.zcdp_rho > 0; }))
    text += " Selections that are not Gaussian are charged in zCDP, in full.";
  return text;
}

void AddImplementation(const Statement& statement, const config::About& about,
                       RegistryWriter* record) {
  record->Section("implementation");
  std::string before =
      "The reading of a record follows from the configuration alone, which counts as known. " +
      NotPromised()[kOfTuning];
  if (AnyCharge(statement, IsInspection))
    before += " An inspection of the data was made with noise, and is charged with the rest.";
  record->Text("preprocessing_and_hyperparameter_tuning", before);
  record->Text(
      "mechanisms",
      "By learner, the last run of equal steps:" +
          EachLearner(statement, [](const auto&, const auto& last) { return RunInWords(last); }) +
          "\nGaussian noise is a rounded Gaussian of integers, added to sums on a grid of "
          "integers, so that no Gaussian noise is added to a float. It comes from AES-256 in "
          "counter mode, under keys of the operating system that are not kept; a draw for sums "
          "does constant work." +
          (AnyCharge(statement, [](const auto& run) { return run.charge.zcdp_rho > 0; })
               ? " Gumbel noise of selections is drawn in double precision."
               : "") +
          fmt::format("\nLearnt by {}.", fmt::join(statement.code_versions, ", ")));
  record->Optional(3, "justification", "epsilon_reason", about.epsilon_reason);
}

void AddAdministrative(const Statement& statement, const config::About& about,
                       RegistryWriter* record) {
  record->Section("administrative");
  const std::string contact =
      record->Behind("contact", about.contact.empty() ? "" : "Contact: " + about.contact);
  record->Text(
      "notes",
      fmt::format("publication_date is the day (UTC) of the first commit of a learner. Every "
                  "link, head and epsilon of the ledger (entries: {}) was recomputed: all are "
                  "right. Its head is {}. {}{}",
                  statement.entries, statement.head,
                  statement.witnessed ? "It agrees with its witness." : "No witness was at hand.",
                  contact));
  record->Texts("registry_authors", {statement.program + " (tacit privacy report)"});
}

}  // namespace

Result<RegistryRecord> MakeRegistryRecord(const Statement& statement,
                                          const config::Config* config) {
  std::optional<int64_t> published_ms;
  for (const StatedLearner& learner : statement.learners)
    for (const privacy::LedgerEntry& run : learner.runs)
      if (!run.is_growth && !IsInspection(run))
        published_ms = std::min(published_ms.value_or(run.first_time_ms), run.first_time_ms);
  if (!published_ms)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: nothing has been learnt yet: there is nothing to register",
                            statement.place));
  if (config != nullptr) TACIT_RETURN_IF_ERROR(CheckSameService(statement, *config));
  const config::About about = config == nullptr ? config::About() : config->about;
  RegistryWriter record;
  AddBasic(about, *published_ms, &record);
  AddVariant(statement, config, &record);
  AddPrivacyLoss(statement, &record);
  AddDeploymentModel(statement, config, about, &record);
  record.Section("accounting");
  record.Text("post_processing",
              "All that is made of what was noised: the parameters of models and their updates, "
              "answers, exports, and figures of quality that were charged.");
  record.Text("composition", CompositionInWords(statement));
  AddImplementation(statement, about, &record);
  AddAdministrative(statement, about, &record);
  return std::move(record).Finish(about.name);
}

}  // namespace tacit::cli
