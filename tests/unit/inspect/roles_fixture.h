#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <optional>
#include <string>

#include "inspect/roles.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit::inspect {

class RolesTest : public testing::Test {
 protected:
  // A file's sample; it must be readable.
  const Sample& Read(const std::string& name, const std::string& text) {
    test::WriteFile(dir_ / name, text);
    auto sample = ReadSample({dir_ / name}, {});
    EXPECT_TRUE(sample) << sample.error().message;
    samples_.push_back(sample ? std::move(*sample) : Sample());
    return samples_.back();
  }
  static std::string NameOfColumn(const Sample& sample, const std::optional<size_t>& column) {
    return column ? sample.columns[*column].name : "(none)";
  }
  static const FeatureRole* FeatureOf(const Sample& sample, const Roles& roles,
                                      const std::string& name) {
    for (const FeatureRole& feature : roles.features)
      if (sample.columns[feature.column].name == name) return &feature;
    return nullptr;
  }
  static std::string ReasonLeftOut(const Sample& sample, const Roles& roles,
                                   const std::string& name) {
    for (const auto& [column, reason] : roles.left_out)
      if (sample.columns[column].name == name) return reason;
    return "";
  }

  test::TempDir dir_;
  std::list<Sample> samples_;
  const Sample* sample_ = nullptr;  // the one that a test looks at
};

// Lines of a shop whose column `name` has the text that `value` makes of a line's number.
inline std::string ShopWith(const std::string& name, const std::function<std::string(int)>& value) {
  std::string text = fmt::format("shelf,price,{}\n", name);
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("s{},{}.5,{}\n", i * 7 % 11, i * 31 % 97, value(i));
  return text;
}

}  // namespace tacit::inspect
