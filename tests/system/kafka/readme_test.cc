// "Next to your Kafka" of docs/using/kafka.md, as it stands there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "support/process.h"
#include "system/kafka/broker.h"

namespace tacit::test {
namespace {

// The commands under a heading, except for those that start, fill or stop a broker.
std::string CommandsUnder(const std::string& heading) {
  std::istringstream page(ReadFile(std::string(TACIT_SOURCE_DIR) + "/docs/using/kafka.md"));
  std::string commands;
  bool here = false, shell = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) here = line == heading;
    if (line.starts_with("```")) shell = line == "```sh";
    const bool command = here && shell && !line.starts_with("```");
    if (command && !line.starts_with("tools/kafka ")) commands += line + "\n";
  }
  return commands;
}

TEST(ReadmeTest, TheLinesNextToYourKafkaRun) {
  TACIT_NEED_BROKER(kDefaultVersion);
  const std::string commands = CommandsUnder("## Next to your Kafka");
  ASSERT_THAT(commands, testing::HasSubstr("tacit replay --config config/kafka.yaml"));
  SharedBroker().CreateTopic("clicks", 4);
  TempDir dir;
  const std::string programs = std::filesystem::path(TACITD).parent_path();
  const Ended ended = test::Run(
      {"/bin/bash", "-euc",
       fmt::format("cd '{}'\nln -s '{}/config' config\nPATH='{}':$PATH\n{}", dir / "",
                   TACIT_SOURCE_DIR, programs, commands)},
      {"TACIT_KAFKA_BOOTSTRAP_SERVERS=" + SharedBroker().bootstrap(),
       // A busy machine would starve a trainer that takes only what is left.
       "TACIT_TRAINING_IDLE_PRIORITY=false", "TACIT_SERVE_LISTEN=unix:" + (dir / "socket")},
      std::chrono::seconds(400));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, testing::HasSubstr("100,000 of 100,000 lines sent"));
}

}  // namespace
}  // namespace tacit::test
