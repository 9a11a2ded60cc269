#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tacit::test {

// Secrets that a test has planted, and what they look like wherever they come out: as they are, in
// hexadecimal, and in both alphabets of base64, with any text before and behind them.
class PlantedSecrets {
 public:
  // REQUIRES at least eight bytes, so that nothing is found by chance.
  void Add(const std::string& name, std::string_view bytes) {
    forms_.push_back({name, std::string(bytes)});
    std::string lower, upper;
    for (const char c : bytes) {
      lower += fmt::format("{:02x}", static_cast<unsigned char>(c));
      upper += fmt::format("{:02X}", static_cast<unsigned char>(c));
    }
    forms_.push_back({name + " in hexadecimal", lower});
    forms_.push_back({name + " in hexadecimal", upper});
    for (size_t before = 0; before < 3; ++before) {
      std::string base64 = Base64Inside(bytes, before);
      forms_.push_back({name + " in base64", base64});
      for (char& c : base64) c = c == '+' ? '-' : c == '/' ? '_' : c;
      forms_.push_back({name + " in base64", base64});
    }
  }

  // The name of a secret that the text has in some form; "" where it has none.
  std::string FoundIn(std::string_view text) const {
    for (const Form& form : forms_)
      if (text.find(form.bytes) != std::string_view::npos) return form.name;
    return "";
  }

 private:
  struct Form {
    std::string name, bytes;
  };

  // The characters that stand for these bytes alone, where `before` others precede them.
  static std::string Base64Inside(std::string_view bytes, size_t before) {
    static constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::string whole = std::string(before, '\0') + std::string(bytes);
    std::string text;
    for (size_t bit = 0; bit + 6 <= 8 * whole.size(); bit += 6) {
      unsigned digit = 0;
      for (size_t i = bit; i < bit + 6; ++i)
        digit = 2 * digit + ((static_cast<unsigned char>(whole[i / 8]) >> (7 - i % 8)) & 1);
      text += kDigits[digit];
    }
    return text.substr((8 * before + 5) / 6);
  }

  std::vector<Form> forms_;
};

}  // namespace tacit::test
