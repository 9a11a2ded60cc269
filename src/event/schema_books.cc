#include "event/schema_books.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace tacit::event {
namespace {

class PinnedSchemas final : public SchemaBook {
 public:
  PinnedSchemas(std::map<SchemaKey, bool> schemas, std::unique_ptr<SchemaBook> next)
      : schemas_(std::move(schemas)), next_(std::move(next)) {}

  SchemaVerdict Look(const SchemaKey& schema) override {
    if (const auto pinned = schemas_.find(schema); pinned != schemas_.end())
      return pinned->second
                 ? SchemaVerdict{SchemaVerdict::Kind::kAccept}
                 : SchemaVerdict{SchemaVerdict::Kind::kReject, "rejected by the configuration"};
    if (next_ != nullptr) return next_->Look(schema);
    return {SchemaVerdict::Kind::kReject,
            "not among the configured ones; accept or reject it in source.registry.schemas"};
  }
  bool LookAhead(const SchemaKey& schema) override {
    return schemas_.contains(schema) || (next_ != nullptr && next_->LookAhead(schema));
  }
  void Await(const SchemaKey& schema, std::chrono::milliseconds patience) override {
    if (next_ != nullptr) next_->Await(schema, patience);
  }
  std::string Trouble() override { return next_ == nullptr ? "" : next_->Trouble(); }

 private:
  const std::map<SchemaKey, bool> schemas_;
  const std::unique_ptr<SchemaBook> next_;
};

class EverySchema final : public SchemaBook {
 public:
  SchemaVerdict Look(const SchemaKey&) override { return {SchemaVerdict::Kind::kAccept}; }
};

}  // namespace

Result<SchemaKey> ParseSchemaKey(std::string_view text) {
  int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc() && end == text.data() + text.size()) return SchemaKey(id);
  std::string digits(text);
  constexpr size_t kDashes[] = {23, 18, 13, 8};
  bool shaped = text.size() == 36;
  for (const size_t dash : kDashes) {
    shaped = shaped && digits[dash] == '-';
    if (shaped) digits.erase(dash, 1);
  }
  SchemaGuid guid{};
  if (!shaped || !FromHex(digits, guid))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is neither a schema's id nor its GUID", text));
  return SchemaKey(guid);
}

std::unique_ptr<SchemaBook> MakePinnedSchemas(std::map<SchemaKey, bool> schemas,
                                              std::unique_ptr<SchemaBook> next) {
  return std::make_unique<PinnedSchemas>(std::move(schemas), std::move(next));
}

std::unique_ptr<SchemaBook> MakeEverySchema() { return std::make_unique<EverySchema>(); }

}  // namespace tacit::event
