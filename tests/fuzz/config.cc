// Fuzzes configurations: the text of one, or one that ships with some of its keys changed. It is
// read or refused with a message that names a place, and what it asks for is planned or refused.
#include "config/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "child.h"
#include "daemon/plan_text.h"
#include "fuzz.h"
#include "wiring/assembly.h"

namespace tacit {
namespace {

std::vector<std::string> Shipped() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TACIT_CONFIGS))
    if (entry.path().extension() == ".yaml" && entry.path().filename() != "alerts.yaml")
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream in(path);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// Makes a folder with the items that a shipped configuration names, and stays there.
void Settle() {
  const auto folder = std::filesystem::temp_directory_path() / "tacit-fuzz-config";
  std::filesystem::create_directories(folder / "shop");
  std::filesystem::current_path(folder);
  std::ofstream("shop/items.dat") << "1::One (1995)::Drama|War\n2::Two (1996)::Drama\n3\n4\n5\n";
}

// Each line of the input changes a key.
std::vector<std::string> OverridesOf(std::string_view bytes) {
  std::vector<std::string> overrides;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    overrides.emplace_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return overrides;
}

void Plan(config::Config config) {
  fuzz::Demand(fuzz::EndsWell([&] {
                 const auto assembly = wiring::Assemble(std::move(config));
                 fuzz::DemandGoodError(assembly);
                 if (assembly) (void)daemon::PlanText(*assembly);
                 return 0;
               }),
               "a configuration is planned or refused");
}

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tacit::Settle();
  return 0;
}

// The first byte chooses: a text, or the configuration that is changed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  static const std::vector<std::string> shipped = Shipped();
  std::string_view bytes = fuzz::TextOf(data, size);
  const size_t choice = fuzz::TakeChoice(&bytes) % (shipped.size() + 1);
  auto config = choice == 0 ? config::Parse(bytes, "fuzz.yaml", {}, config::LogFiles::kUnread)
                            : config::Parse(shipped[choice - 1], "fuzz.yaml", OverridesOf(bytes),
                                            config::LogFiles::kUnread);
  fuzz::DemandGoodError(config);
  if (config) Plan(*std::move(config));
  return 0;
}
