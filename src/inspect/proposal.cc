#include "inspect/proposal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "inspect/proposed_learner.h"
#include "inspect/source_yaml.h"
#include "inspect/topic_report.h"
#include "wiring/assembly.h"
#include "wiring/signal.h"

namespace tacit::inspect {
namespace {

constexpr uint64_t kMemoryDefault = uint64_t{2} << 30, kMemoryMost = uint64_t{1} << 50;

tl::unexpected<Error> CannotPropose(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

class Proposer {
 public:
  Proposer(const Sample& sample, const Roles& roles, const Evidence& evidence, const Asked& asked)
      : sample_(sample), roles_(roles), evidence_(evidence), asked_(asked) {}

  Result<Proposal> Make() {
    TACIT_RETURN_IF_ERROR(CheckAsked());
    Choose();
    uint64_t memory = kMemoryDefault;
    while (true) {
      auto loaded = Load(memory);
      if (loaded) return loaded;
      const bool too_small = loaded.error().message.find("memory.total_bytes") != std::string::npos;
      if (!too_small || memory >= kMemoryMost)
        return Fail(std::move(loaded.error()).Context("the proposal does not load"));
      memory *= 2;
    }
  }

 private:
  Status CheckAsked() const {
    if (asked_.of_users() && !roles_.user)
      return CannotPropose("--unit user: no field of these records names a user");
    if (!roles_.are_meetings()) return {};
    const std::string why =
        fmt::format("{}, so that counts of what follows what learn from these records",
                    roles_.label_denied ? "there is no label" : "no label is found");
    if (asked_.unit == "event")
      return CannotPropose(fmt::format("--unit event: {}: their unit is the user", why));
    if (asked_.held())
      return CannotPropose(fmt::format("--mode {}: {}: their mode is once", *asked_.mode, why));
    return {};
  }

  // The item is a feature too, so that a click model has one where there is nothing else.
  bool HasOwnFeatures() const {
    return std::ranges::any_of(roles_.features,
                               [&](const FeatureRole& f) { return f.column != roles_.item; });
  }

  // A linear model needs a column of one value for each event that is released whole.
  bool HasSingleColumn() const {
    return std::ranges::any_of(roles_.features, [&](const FeatureRole& f) {
      return f.kind != config::Feature::Kind::kMultiHot &&
             RowsOf(sample_, roles_, f) <= config::Mechanism().whole_columns;
    });
  }

  LearnerChoice ChooseFirst() const {
    if (roles_.are_meetings()) return LearnerChoice::kNextItem;
    if (asked_.held() || !HasSingleColumn()) return LearnerChoice::kNetwork;
    const bool next = roles_.user && roles_.item && !HasOwnFeatures() && asked_.unit != "event";
    return next ? LearnerChoice::kNextItem : LearnerChoice::kLinear;
  }

  void Choose() {
    const auto add = [&](LearnerChoice choice) {
      learners_.emplace_back(sample_, roles_, evidence_, asked_, choice, !learners_.empty());
    };
    add(ChooseFirst());
    if (HasNextItem()) return;
    if (!roles_.user || !roles_.item) {
      if (!asked_.items.empty())
        next_item_ = fmt::format(
            "--items is not used: no field of these records names {}; --user and --item name them",
            roles_.user ? "an item" : "a user");
    } else if (asked_.held()) {
      next_item_ =
          fmt::format("no model of the next item is proposed: its mode is once, and --mode is {}",
                      *asked_.mode);
    } else if (asked_.unit == "event") {
      next_item_ =
          "no model of the next item is proposed: its unit is the user, and --unit is event";
    } else if (asked_.items.empty()) {
      next_item_ =
          "no model of the next item is proposed: it needs the public list of items, --items FILE";
    } else {
      next_item_ = "a model of the next item is proposed beside the model of labels";
      add(LearnerChoice::kNextItem);
    }
  }
  bool HasNextItem() const {
    return std::ranges::any_of(learners_, &ProposedLearner::is_next_item);
  }

  Result<Proposal> Load(uint64_t memory) {
    Proposal proposal;
    proposal.yaml = Yaml(memory);
    proposal.next_item = next_item_;
    const auto open = [&](const std::string& key, const std::string& value) {
      proposal.open_keys.push_back(key);
      proposal.filled.push_back(key + '=' + value);
    };
    if (roles_.label && roles_.label->values_open) {
      std::string values;
      for (const auto& [value, number] : roles_.label->values)
        values +=
            fmt::format("{}{}: {}", values.empty() ? "" : ", ", config::QuotedYaml(value), number);
      open(fmt::format("source.{}.label_values", sample_.format_name()), '{' + values + '}');
    }
    for (size_t i = 0; i < learners_.size(); ++i) {
      const std::string learner = fmt::format("learners.{}.", i);
      if (!asked_.unit)
        open(learner + "privacy.unit", learners_[i].is_next_item() ? "user" : "event");
      if (!asked_.epsilon) open(learner + "privacy.epsilon", "1");
      if (!asked_.delta) open(learner + "privacy.delta", fmt::format("{}", kDeltaForPrices));
      if (!asked_.mode) open(learner + "participation.mode", "once");
    }
    if (sample_.topic() != nullptr)
      for (const auto& [key, value] : TopicOpenKeys(sample_)) open(key, value);
    const bool without_items = HasNextItem() && asked_.items.empty();
    // Any name will do: a catalogue is not read before a learner is planned.
    if (without_items) open("catalogue.file", "items");
    TACIT_ASSIGN(proposal.config, config::Parse(proposal.yaml, "the proposal", proposal.filled));
    if (!without_items) {
      TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(proposal.config));
      const config::Learner& learner = proposal.config.learners[0];
      const wiring::LearnerPlan& plan = assembly.learners[0];
      proposal.noise = fmt::format("at epsilon {}, {}", learner.privacy.epsilon,
                                   wiring::SignalText(learner, plan, FileRecords(sample_)));
      proposal.noise_in_units = plan.model->NoiseInUnits();
    }
    return proposal;
  }

  std::string Yaml(uint64_t memory) {
    std::string yaml =
        CommentLines(
            0,
            fmt::format("Proposed by `tacit inspect` out of {} of {}. {} Keys without a value are "
                        "for a person to fill in; until then tacitd does not start. "
                        "config/reference.yaml explains every key.",
                        Counted(sample_.lines, "record"), sample_.records->Whence(),
                        sample_.noised.empty() ? "The sample is raw: what was chosen by it is "
                                                 "not charged to any budget."
                                               : sample_.noised)) +
        '\n' + SourceYaml(sample_, roles_);
    if (HasNextItem()) yaml += CatalogueYaml();
    yaml += SchemaYaml(sample_, roles_);
    if (!next_item_.empty()) yaml += CommentLines(0, fmt::format("Next items: {}.", next_item_));
    yaml += "learners:\n";
    for (const ProposedLearner& learner : learners_) yaml += learner.Yaml();
    yaml += StoreYaml() + "memory:\n";
    yaml += CommentLines(2, memory == kMemoryDefault
                                ? "The default, in which these learners have room."
                                : "The least power of two in which these learners have room.");
    return yaml + fmt::format("  total_bytes: {}GiB\n", memory >> 30);
  }

  std::string CatalogueYaml() const {
    return CommentLines(0,
                        "The list of what may be recommended. It has to be public: ids taken from "
                        "these records would reveal them. A line `id`, or "
                        "`id::title::genre|genre`, for each item.") +
           fmt::format("catalogue:\n  file:{}\n\n",
                       asked_.items.empty() ? "  # to be filled in: a file of the publisher's"
                                            : ' ' + config::QuotedYaml(asked_.items));
  }

  std::string StoreYaml() const {
    if (!asked_.store.empty())
      return "store:\n" + CommentLines(2, "The store that the inspection is charged to.") +
             fmt::format("  path: {}\n  witness: {}\n\n", config::QuotedYaml(asked_.store),
                         config::QuotedYaml(asked_.witness));
    std::string base = asked_.output.empty() ? "tacit" : asked_.output;
    for (const std::string_view ending : {".yaml", ".yml"})
      if (base.size() > ending.size() && base.ends_with(ending))
        base.resize(base.size() - ending.size());
    return fmt::format("store:\n  path: {}\n", config::QuotedYaml(base + "-data/store")) +
           CommentLines(2,
                        "Better on another disk, in a folder that no backup puts back together "
                        "with the store.") +
           fmt::format("  witness: {}\n\n",
                       config::QuotedYaml(base + "-data-witness/store.witness"));
  }

  const Sample& sample_;
  const Roles& roles_;
  const Evidence& evidence_;
  const Asked& asked_;
  std::vector<ProposedLearner> learners_;
  std::string next_item_;
};

}  // namespace

std::string WhyNothingToLearn(const Roles& roles) {
  if (!roles.refused.empty()) return roles.refused;
  if (roles.are_meetings()) return "";
  if (roles.label_denied)
    return "these records have no label, as you say, so that a user and an item are needed";
  if (!roles.label)
    return "no field can be the label: a label is 0 or 1, one of a few words, or a number on a "
           "scale; it has two values at least and is there in nine records of ten. --label names "
           "it. Without one, a user and an item are needed";
  if (roles.features.empty() && std::ranges::any_of(roles.profiles, &Profile::hidden))
    return "the noise hides the fields: more records or a larger epsilon";
  if (roles.features.empty()) return "there is a label, and no field to foretell it by";
  return "";
}

Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Evidence& evidence,
                         const Asked& asked) {
  return Proposer(sample, roles, evidence, asked).Make();
}

Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Asked& asked) {
  return Propose(sample, roles, *RawEvidence(sample), asked);
}

}  // namespace tacit::inspect
