#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "workers/seal.h"

namespace tacit::cli {

void AddWorkers(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("workers", "Workers that sum for a trainer");
  command->require_subcommand(1);
  const auto path = std::make_shared<std::string>();
  auto* key = command->add_subcommand("key", "Makes the key that a trainer and workers share");
  key->add_option("file", *path, "A new file for the key, with mode 0600")->required();
  key->footer(
      "workers.key_file names it, in the trainer's configuration and in each worker's. A file\n"
      "that is there stays as it is.\n"
      "Example:\n  tacit workers key workers.key");
  key->callback([path, chosen] {
    *chosen = [path]() -> Result<int> {
      TACIT_RETURN_IF_ERROR(console::WriteNewSecret(*path, workers::NewKeyText()));
      return int{console::kExitDone};
    };
  });
}

}  // namespace tacit::cli
