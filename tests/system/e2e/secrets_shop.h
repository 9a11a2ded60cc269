#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "service.h"
#include "store/disk/rocks.h"
#include "store/view/load.h"
#include "support/planted_secrets.h"
#include "unit/http/test_authority.h"

// A shop whose users, records, tokens and keys are planted secrets, and what asks its daemons
// everything.
namespace tacit::planted {

namespace fs = std::filesystem;
using test::Ended;
using test::kPatience;
using test::PlantedSecrets;

inline constexpr int kUsers = 40, kItems = 12;

inline std::string UserName(int user) { return fmt::format("planted-user-{:03}-5f1c", user); }

// The routes of the server's own description, with each {placeholder} filled in.
inline std::vector<std::pair<std::string, std::string>> Routes() {
  std::ifstream file(std::string(TACIT_SOURCE_DIR) + "/schemas/openapi.yaml");
  std::vector<std::pair<std::string, std::string>> routes;
  std::string path;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("  /")) path = line.substr(2, line.rfind(':') - 2);
    for (const char* method : {"get", "post", "delete"}) {
      if (path.empty() || !line.starts_with(fmt::format("    {}:", method))) continue;
      std::string filled = path, name = method;
      for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
               {"{id}", UserName(1)}, {"{name}", "counts"}, {"{version}", "1"}})
        if (const size_t at = filled.find(from); at != filled.npos)
          filled.replace(at, from.size(), to);
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      routes.emplace_back(name, filled);
    }
  }
  return routes;
}

// A private key of TLS or of Ed25519, and the bytes of its secret number.
inline void AddPrivateKey(const std::string& name, const std::string& path,
                          PlantedSecrets* secrets) {
  const std::string pem = test::ReadFile(path);
  std::istringstream lines(pem);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("-----") && line.size() > 20) secrets->Add("a line of " + name, line);
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  ASSERT_NE(key, nullptr);
  std::string bytes(32, '\0');
  size_t size = bytes.size();
  auto* const raw = reinterpret_cast<unsigned char*>(bytes.data());
  if (EVP_PKEY_id(key) == EVP_PKEY_ED25519) {
    ASSERT_EQ(EVP_PKEY_get_raw_private_key(key, raw, &size), 1);
  } else {
    BIGNUM* number = nullptr;
    ASSERT_EQ(EVP_PKEY_get_bn_param(key, "priv", &number), 1);
    BN_bn2binpad(number, raw, static_cast<int>(size));
    BN_clear_free(number);
  }
  secrets->Add("the number of " + name, bytes);
  EVP_PKEY_free(key);
}

// Salt and key of users, as the store's own reader finds them.
inline void AddStoresKeys(const std::string& folder, std::vector<PlantedSecrets*> to) {
  const auto rocks = store::Rocks::OpenReadOnly(folder);
  ASSERT_TRUE(rocks) << rocks.error().message;
  const auto loaded = store::Load(**rocks);
  ASSERT_TRUE(loaded);
  const auto bytes = [](const auto& of) {
    return std::string(reinterpret_cast<const char*>(&of), sizeof(of));
  };
  for (PlantedSecrets* secrets : to) {
    secrets->Add("the store's salt", bytes(loaded->salt));
    secrets->Add("the key of users", bytes(loaded->user_key));
  }
}

// All bytes of the files below a folder.
inline std::string BytesBelow(const std::string& folder) {
  std::string bytes;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += test::ReadFile(entry.path());
  return bytes;
}

class SecretsShop : public testing::Test {
 protected:
  SecretsShop() {
    test::WriteFile(dir_ / "callers", "");
    ::chmod((dir_ / "callers").c_str(), 0600);
    NewToken("query", {"--role", "query"});
    NewToken("user", {"--role", "user", "--user", UserName(1), "--name", "phone"});
    NewToken("operator", {"--role", "operator"});
    sent_.Add("a token that is nobody's", kStray);
    authority_.Write(dir_ / "ca.pem");
    authority_.Sign(dir_, {.name = "server"});
    for (PlantedSecrets* secrets : {&own_, &kept_, &sent_})
      AddPrivateKey("the TLS key", dir_ / "server.key", secrets);
    WriteRecords();
    WriteConfig();
  }

  void NewToken(const std::string& name, std::vector<std::string> words) {
    std::vector<std::string> command = {TACIT, "token", "new", "--output", dir_ / name};
    command.insert(command.end(), words.begin(), words.end());
    const Ended made = test::Run(command);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    std::ofstream(dir_ / "callers", std::ios::app) << made.out;
    std::string token = test::ReadFile(dir_ / name);
    token.pop_back();
    tokens_[name] = token;
    for (PlantedSecrets* secrets : {&own_, &kept_, &sent_})
      secrets->Add("the token of the " + name, token);
  }

  // Records of users who go round a circle of items; a few have something wrong in each part.
  void WriteRecords() {
    std::string items, text;
    for (int i = 0; i < kItems; ++i) items += fmt::format("item-{}\n", i);
    test::WriteFile(dir_ / "items.dat", items);
    for (int click = 0; click < 10; ++click)
      for (int user = 0; user < kUsers; ++user)
        text += fmt::format(
            R"({{"label":1,"user":"{}","item":"item-{}","timestamp_ms":{},"features":{{"x":{},"c":"{}"}}}})"
            "\n",
            UserName(user), (3 * user + click) % kItems, 1000 + click, click, kCategory);
    for (const char* record :
         {R"({"label":"PLANT","user":"planted-user-900-5f1c","item":"item-1","features":{}})",
          R"({"label":1,"user":"planted-user-900-5f1c","item":"PLANT","features":{}})",
          R"({"label":1,"user":"planted-user-900-5f1c","item":"item-1","timestamp_ms":"PLANT"})",
          R"({"label":1,"user":["PLANT"],"item":"item-1","features":{}})",
          R"({"label":1,"user":"planted-user-900-5f1c","features":{"x":"PLANT"}})",
          R"({"label":1,"user":"planted-user-900-5f1c","features":{"PLANT":1}})",
          R"({"label":1,"PLANT)"}) {
      std::string bad = record;
      bad.replace(bad.find("PLANT"), 5, kValue);
      text += bad + "\n";
    }
    test::WriteFile(dir_ / "day-0.jsonl", text);
    for (PlantedSecrets* secrets : {&kept_, &sent_}) {
      secrets->Add("a value of a record", kValue);
      secrets->Add("a category of records", kCategory);
      for (const int user : {0, 7, kUsers - 1, 900}) secrets->Add("a user", UserName(user));
    }
    sent_.Add("a user", UserName(1));
  }

  void WriteConfig() {
    test::WriteFile(
        dir_ / "shop.yaml",
        fmt::format(
            "source: {{kind: log, files: {0}/day-*.jsonl, format: json}}\n"
            "catalogue: {{file: {0}/items.dat}}\n"
            "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, "
            "buckets: 16}}]}}\n"
            "store: {{path: {0}/store, commit_interval_ms: 10}}\n"
            "serve: {{listen: \"127.0.0.1:0\", operator_listen: \"unix:{0}/operators\", "
            "access_log: true, callers: {0}/callers, tls: {{certificate: {0}/server.pem, key: "
            "{0}/server.key}}}}\n"
            "training: {{idle_priority: false}}\n"
            "log: {{level: trace}}\n"
            "learners:\n"
            "  - id: counts\n    model: {{kind: transitions}}\n    mechanism: {{kind: counts}}\n"
            "    participation: {{mode: once, batch: 400, max_participations: 3}}\n"
            "    history: {{items: 50, serve_users: true}}\n"
            "    privacy: {{unit: user, epsilon: 4, delta: 1.0e-6}}\n"
            "  - id: ctr\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {{kind: dp-sgd}}\n"
            "    participation: {{mode: once, batch: 100, max_participations: 9}}\n"
            "    privacy: {{unit: user, epsilon: 4, delta: 1.0e-6}}\n",
            dir_.path()));
  }

  // The address at which a daemon listens for the public, once it does.
  std::string PublicUrl(const test::Process& daemon) {
    const std::string serving = "serving on 127.0.0.1:";
    EXPECT_TRUE(test::Eventually("it serves", [&] {
      return daemon.Err().find(serving) != std::string::npos;
    })) << daemon.Err();
    const std::string told = daemon.Err() + serving;
    const size_t at = told.find(serving) + serving.size();
    return "https://localhost:" + told.substr(at, told.find_first_not_of("0123456789", at) - at);
  }

  Result<http::Response> Ask(const std::string& url, const std::string& method,
                             const std::string& body, const std::string& token) {
    http::FieldList fields;
    if (!token.empty()) fields.push_back({"Authorization", "Bearer " + token});
    return http::Fetch(url, method, body, kPatience, fields,
                       {.ca_file = dir_ / "ca.pem", .certificate = "", .key = ""});
  }

  // Each route, with each token, with bodies that are right and wrong. What the public is told is
  // searched for what it has not sent; metrics are searched for all.
  void AskEverything(const std::string& open, const std::string& operators) {
    const std::vector<std::string> bodies = {
        "",
        "{\"" + kValue,
        R"({"learner":"ctr","rows":[{"features":{"x":1,"c":")" + kCategory + R"("}}]})",
        R"({"learner":"ctr","rows":[{"features":{"x":")" + kValue + R"("}}]})",
        R"({"learner":")" + kValue + R"(","rows":[]})",
        R"({"learner":"counts","user":")" + UserName(1) + R"("})",
        R"({"learner":"counts","sequence":["item-1",")" + kValue + R"("]})",
        R"({"inputs":[{"name":")" + kValue + R"(","shape":[1],"datatype":"BYTES","data":[1]}]})",
        "\xff\xfe" + kValue};
    int answered = 0;
    for (const auto& [method, path] : Routes())
      for (const std::string& token :
           {std::string(), kStray, tokens_["query"], tokens_["user"], tokens_["operator"]})
        for (const std::string& body : bodies) {
          if (method != "POST" && &body != &bodies.front()) continue;
          const bool stops = path.find("unload") != path.npos || method == "DELETE";
          const auto answer = Ask(open + path, method, body, token);
          ASSERT_TRUE(answer) << path << ": " << answer.error().message;
          ++answered;
          told_public_ += answer->body;
          EXPECT_EQ(own_.FoundIn(answer->body), "") << method << " " << path << answer->body;
          if (body.find(kValue) == body.npos && body.find(kCategory) == body.npos) {
            EXPECT_EQ(kept_.FoundIn(answer->body), "") << method << " " << path << answer->body;
          }
          if (stops) continue;
          const auto told = Ask(operators + path, method, body, token);
          if (told && body.find(kValue) == body.npos && body.find(kCategory) == body.npos)
            told_operators_ += told->body;
        }
    EXPECT_GT(answered, 500);
    (void)Ask(operators + "/v1/users/" + UserName(1), "DELETE", "", tokens_["operator"]);
    for (const std::string& from : {open + "/metrics", operators + "/metrics"}) {
      const auto metrics = Ask(from, "GET", "", tokens_["operator"]);
      ASSERT_TRUE(metrics);
      EXPECT_EQ(metrics->status, 200u);
      EXPECT_EQ(sent_.FoundIn(metrics->body), "");
    }
  }

  static inline const std::string kStray = "tacit_planted-token-that-nobody-has-0001";
  static inline const std::string kValue = "planted-value-93ab77";
  static inline const std::string kCategory = "planted-category-c41d";

  const test::TempDir dir_;
  const http::TestAuthority authority_{"authority"};
  std::map<std::string, std::string> tokens_;
  std::string told_public_, told_operators_;  // answers; not to what asked for something planted
  PlantedSecrets own_;   // the daemon's and its store's: nobody is told of them
  PlantedSecrets kept_;  // these, and what records say of others than who asks
  PlantedSecrets sent_;  // these, and what requests say
};

}  // namespace tacit::planted
