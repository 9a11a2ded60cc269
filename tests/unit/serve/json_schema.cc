#include "json_schema.h"

#include <fmt/format.h>

#include <regex>
#include <stdexcept>

namespace tacit::serve {
namespace {

namespace json = boost::json;

bool IsOfType(const json::value& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "number") return value.is_number();
  throw std::runtime_error(fmt::format("unknown type {}", type));
}

}  // namespace

const json::value& JsonSchema::Resolve(const json::value& schema) const {
  const json::value* at = &schema;
  while (const json::value* to = at->as_object().if_contains("$ref")) {
    const std::string path(to->as_string());
    if (!path.starts_with("#/")) throw std::runtime_error("a reference elsewhere: " + path);
    at = &document_;
    for (size_t begin = 2; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      at = &at->at(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return *at;
}

std::string JsonSchema::Check(const json::value& schema, const json::value& value,
                              const std::string& where) const {
  const json::value& is = Resolve(schema);
  for (const auto& [keyword, wanted] : is.as_object()) {
    const std::string wrong = CheckKeyword(std::string(keyword), wanted, is, value, where);
    if (!wrong.empty()) return wrong;
  }
  return value.is_object() ? CheckFields(is.as_object(), value.get_object(), where) : "";
}

std::string JsonSchema::CheckKeyword(const std::string& keyword, const json::value& wanted,
                                     const json::value& schema, const json::value& value,
                                     const std::string& where) const {
  const auto wrong = [&](std::string_view what) {
    return fmt::format("{}: {} {}: {}", where, what, json::serialize(wanted),
                       json::serialize(value));
  };
  if (keyword == "type") {
    if (wanted.is_string())
      return IsOfType(value, wanted.get_string()) ? "" : wrong("is not of type");
    for (const json::value& one : wanted.as_array())
      if (IsOfType(value, one.as_string())) return "";
    return wrong("is of none of the types");
  }
  if (keyword == "enum") {
    for (const json::value& one : wanted.as_array())
      if (one == value) return "";
    return wrong("is none of");
  }
  if (keyword == "anyOf") {
    for (const json::value& one : wanted.as_array())
      if (Check(one, value, where).empty()) return "";
    return wrong("is of none of the schemas");
  }
  if (keyword == "minimum" || keyword == "maximum") {
    if (!value.is_number()) return "";
    const double number = value.to_number<double>(), bound = wanted.to_number<double>();
    return (keyword == "minimum" ? number >= bound : number <= bound) ? "" : wrong(keyword);
  }
  if (keyword == "minItems" || keyword == "maxItems") {
    if (!value.is_array()) return "";
    const auto size = static_cast<double>(value.get_array().size());
    const double bound = wanted.to_number<double>();
    return (keyword == "minItems" ? size >= bound : size <= bound) ? "" : wrong(keyword);
  }
  if (keyword == "pattern") {
    if (!value.is_string()) return "";
    const bool fits = std::regex_search(std::string(value.get_string()),
                                        std::regex(std::string(wanted.as_string())));
    return fits ? "" : wrong("is not of the pattern");
  }
  if (keyword == "items") {
    if (!value.is_array()) return "";
    size_t place = 0;
    for (const json::value& one : value.get_array()) {
      const std::string inner = Check(wanted, one, fmt::format("{}[{}]", where, place++));
      if (!inner.empty()) return inner;
    }
    return "";
  }
  if (keyword == "required") {
    if (!value.is_object()) return "";
    for (const json::value& name : wanted.as_array())
      if (!value.get_object().contains(name.as_string()))
        return fmt::format("{}: lacks {}", where, json::serialize(name));
    return "";
  }
  const bool is_known = keyword == "properties" || keyword == "additionalProperties" ||
                        keyword == "description" || keyword == "contentMediaType";
  return is_known ? "" : fmt::format("unknown keyword {} in {}", keyword, json::serialize(schema));
}

std::string JsonSchema::CheckFields(const json::object& schema, const json::object& value,
                                    const std::string& where) const {
  // An object that is only said to be one may hold anything.
  const json::value* const known = schema.if_contains("properties");
  const json::value* const others = schema.if_contains("additionalProperties");
  if (known == nullptr && others == nullptr) return "";
  for (const auto& [name, inner] : value) {
    const std::string place = fmt::format("{}.{}", where, std::string_view(name));
    const json::value* is = known == nullptr ? nullptr : known->as_object().if_contains(name);
    if (is == nullptr) is = others;
    if (is == nullptr) return place + " is not in the schema";
    const std::string wrong = Check(*is, inner, place);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace tacit::serve
