#include <array>
#include <utility>

#include "base/text.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

constexpr std::array<std::string_view, 7> kSectors = {
    "none", "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"};

// YAML has no place for other characters, and the statement is YAML.
bool IsPlainText(std::string_view text) {
  if (Printable(text) != text) return false;
  for (const std::string_view none : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    if (text.find(none) != text.npos) return false;
  for (size_t at = 0; (at = text.find('\xc2', at)) != text.npos; ++at)
    if (static_cast<unsigned char>(text[at + 1]) < 0xa0) return false;
  return true;
}

}  // namespace

void DescribeAbout(Fields& fields, About& about) {
  const auto text = [&fields](std::string_view name, std::string_view says, std::string* value) {
    fields.Text({name, says, AtReload::kTaken}, value);
  };
  text("name", "The name of what is published.", &about.name);
  fields.Texts({"curators", "The agencies or companies that publish it.", AtReload::kTaken},
               &about.curators);
  text("description", "A brief description of what is published.", &about.description);
  text("intended_use", "Its intended uses.", &about.intended_use);
  text("region", "The region that the data describe, or whose laws apply.", &about.region);
  fields.OneOf({"sector",
                "The sector that the data describe, by the registry's names. `none`: the statement "
                "names no sector.",
                AtReload::kTaken},
               &about.sector, kSectors);
  text("contact", "An address or a page for questions about it.", &about.contact);
  text("epsilon_reason", "The reasons for these epsilons and units, and who decided.",
       &about.epsilon_reason);
  text("retention", "The time that records are kept, and what happens when a budget is used up.",
       &about.retention);
}

Status CheckAbout(const Place& place, const About& about) {
  std::vector<std::pair<Place, std::string_view>> texts = {
      {place.Key("name"), about.name},
      {place.Key("description"), about.description},
      {place.Key("intended_use"), about.intended_use},
      {place.Key("region"), about.region},
      {place.Key("contact"), about.contact},
      {place.Key("epsilon_reason"), about.epsilon_reason},
      {place.Key("retention"), about.retention}};
  for (const std::string& curator : about.curators)
    texts.emplace_back(place.Key("curators"), curator);
  for (const auto& [where, text] : texts)
    if (!IsPlainText(text))
      return where.Fail("holds a control character, or bytes that are not UTF-8");
  return {};
}

}  // namespace tacit::config
