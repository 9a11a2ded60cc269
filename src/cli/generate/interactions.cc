#include "cli/generate/interactions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>

#include "base/auc.h"
#include "base/text.h"
#include "cli/generate/interaction_generator.h"
#include "cli/generate/log_writer.h"
#include "console/atomic_file.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "wiring/plans/ground_truth.h"

namespace tacit::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kCatalogueFile[] = "items.dat";
constexpr char kItemIdsFile[] = "item-ids.txt";

struct FormName {
  std::string_view name;  // of --form
  InteractionForm form;
  std::string_view extension;
};
constexpr std::array<FormName, 3> kForms = {{{"json", InteractionForm::kJson, ".jsonl"},
                                             {"user-item", InteractionForm::kUserItem, ".txt"},
                                             {"ratings", InteractionForm::kRatings, ".tsv"}}};

const FormName& NameOf(InteractionForm form) {
  return *std::ranges::find(kForms, form, &FormName::form);
}

struct GenerateInteractionsOptions {
  InteractionGeneratorOptions stream;
  std::string out;
  bool plain = false, json = false;
};

// Writes one file for all days if the name is a file's, else a folder with one file a day.
class Files {
 public:
  explicit Files(const GenerateInteractionsOptions& options)
      : out_(options.out),
        extension_(NameOf(options.stream.form).extension),
        plain_(options.plain || out_.extension() == extension_),
        one_(out_.extension() == extension_ ||
             (out_.extension() == ".gz" && out_.stem().extension() == extension_)) {}

  bool one() const { return one_; }
  bool plain() const { return plain_; }
  fs::path folder() const { return one_ ? out_.parent_path() : out_; }
  std::string Name(uint32_t day) const {
    return one_ ? out_.filename().string()
                : fmt::format("day-{:02}{}{}", day, extension_, plain_ ? "" : ".gz");
  }
  std::string Path(const std::string& name) const { return (folder() / name).string(); }

 private:
  const fs::path out_;
  const std::string extension_;
  const bool plain_, one_;
};

// The items of `--item-ids`: each is itself.
std::string ItemIdsText(uint32_t items) {
  std::string text;
  for (uint32_t i = 0; i < items; ++i)
    fmt::format_to(std::back_inserter(text), "{0} {0}\n", InteractionWorld::Name(i));
  return text;
}

Status MakeFolder(const Files& files) {
  std::error_code error;
  if (!files.folder().empty()) fs::create_directories(files.folder(), error);
  if (!error) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("cannot create {}: {}", files.folder().string(), error.message()));
}

// The AUC of a model that knows the truth, over the rows added since `first`; null if all of them
// have one label.
boost::json::value BestAuc(const InteractionTruth& truth, size_t first) {
  const auto labels = std::span(truth.label).subspan(first);
  const auto ones = std::ranges::count(labels, 1.0f);
  if (ones == 0 || static_cast<size_t>(ones) == labels.size()) return nullptr;
  return ExactAuc(std::span(truth.probability).subspan(first), labels);
}

// Writes every day; shows progress on standard error.
Result<boost::json::object> WriteDays(const GenerateInteractionsOptions& options,
                                      const Files& files, InteractionGenerator* generator) {
  boost::json::object best;
  std::unique_ptr<LogWriter> file;
  std::string lines;
  uint64_t done = 0;
  const InteractionGeneratorOptions& stream = options.stream;
  for (uint32_t day = 0; day < stream.days; ++day) {
    const size_t first = files.one() ? 0 : generator->truth().label.size();
    if (file == nullptr) {
      TACIT_ASSIGN(file, LogWriter::Create(files.Path(files.Name(day)), files.plain()));
    }
    while (generator->day() == day) {
      lines.clear();
      done += generator->Generate(kChunkRows, &lines);
      TACIT_RETURN_IF_ERROR(file->Write(lines));
    }
    if (!files.one() || day + 1 == stream.days) {
      TACIT_RETURN_IF_ERROR(file->Close());
      file = nullptr;
      best[files.Name(day)] = BestAuc(generator->truth(), first);
    }
    std::fprintf(stderr, "wrote %s; %s of all %s rows are done\n", files.Name(day).c_str(),
                 WithThousands(done).c_str(),
                 WithThousands(stream.days * stream.rows_per_day).c_str());
  }
  return best;
}

boost::json::value Share(uint64_t part, uint64_t all) {
  if (all == 0) return nullptr;
  return static_cast<double>(part) / static_cast<double>(all);
}

std::string Shown(const boost::json::value& number) {
  return number.is_double() ? fmt::format("{:.4f}", number.get_double()) : "(not measured)";
}

Result<int> Generate(const GenerateInteractionsOptions& options) {
  const Files files(options);
  TACIT_RETURN_IF_ERROR(MakeFolder(files));
  InteractionGenerator generator(options.stream);
  const std::string catalogue = files.Path(kCatalogueFile);
  TACIT_RETURN_IF_ERROR(console::WriteAtomically(catalogue, generator.world().CatalogueText()));
  if (options.stream.form == InteractionForm::kUserItem)
    TACIT_RETURN_IF_ERROR(
        console::WriteAtomically(files.Path(kItemIdsFile), ItemIdsText(generator.world().items())));
  TACIT_ASSIGN(boost::json::object best_auc, WriteDays(options, files, &generator));
  const InteractionTruth& truth = generator.truth();
  const boost::json::value auc = BestAuc(truth, 0);
  const boost::json::object summary{{"seed", options.stream.seed},
                                    {"days", options.stream.days},
                                    {"rows_per_day", options.stream.rows_per_day},
                                    {"users", options.stream.users},
                                    {"items", options.stream.items},
                                    {"catalogue", catalogue},
                                    {"best_auc", std::move(best_auc)},
                                    {"best_auc_all", auc},
                                    {"asked", truth.asked},
                                    {"best_hit10", Share(truth.best_hits, truth.asked)},
                                    {"popular_hit10", Share(truth.popular_hits, truth.asked)}};
  TACIT_RETURN_IF_ERROR(console::WriteAtomically(files.Path(wiring::kGroundTruthFile),
                                                 boost::json::serialize(summary) + "\n"));
  if (options.json) {
    fmt::print("{}\n", boost::json::serialize(summary));
    return int{console::kExitDone};
  }
  fmt::print("{} days of {} interactions in {}; {} items in {}\n", options.stream.days,
             WithThousands(options.stream.rows_per_day), options.out,
             WithThousands(options.stream.items), catalogue);
  fmt::print(
      "who knows the truth ranks them with AUC {}, and has the next item among his first ten with "
      "{}; the day's most popular items with {} ({} rows looked at)\n",
      Shown(auc), Shown(summary.at("best_hit10")), Shown(summary.at("popular_hit10")),
      WithThousands(truth.label.size()));
  return int{console::kExitDone};
}

}  // namespace

void AddGenerateInteractions(CLI::App& generate, Action* chosen) {
  auto options = std::make_shared<GenerateInteractionsOptions>();
  auto* command = generate.add_subcommand(
      "interactions",
      "Users, items and what was taken, as JSON lines or ratings, with a catalogue of items");
  InteractionGeneratorOptions& stream = options->stream;
  command->add_option("--days", stream.days, "Days, one file each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--rows", stream.rows_per_day, "Interactions a day")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  command->add_option("--users", stream.users, "Users there are")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--items", stream.items, "Items there are, one in five of them later")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  command->add_option("--seed", stream.seed, "The same seed gives the same bytes")
      ->capture_default_str()
      ->check(console::WholeFrom(0));
  command
      ->add_option_function<std::string>(
          "--form",
          [options](const std::string& name) {
            options->stream.form = std::ranges::find(kForms, name, &FormName::name)->form;
          },
          "Of a row: json (schemas/interaction.schema.json); user-item (`user item`, of what was "
          "taken, as ml-1m.txt.gz has it, with item-ids.txt); ratings (`user item rating "
          "timestamp`, 4 or 5 for what was taken, as MovieLens has it)")
      ->default_str("json")
      ->check(CLI::IsMember({"json", "user-item", "ratings"}));
  command
      ->add_option("--out,--output", options->out,
                   "Folder for day-00.jsonl.gz, ..., or one file NAME.jsonl[.gz], of the other "
                   "forms .txt and .tsv; items.dat and ground-truth.json lie beside it")
      ->required();
  command->add_flag("--plain", options->plain, "Do not compress");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n  tacit generate interactions --days 14 --users 5000 --items 1000 --rows 50000 "
      "--seed 1 --out shop\n  tacit generate interactions --days 2 --out shop.jsonl\n  tacit "
      "generate interactions --form user-item --out movies/ml-1m.txt.gz");
  command->callback([options, chosen] { *chosen = [options] { return Generate(*options); }; });
}

}  // namespace tacit::cli
