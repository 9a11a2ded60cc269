#pragma once

#include <boost/json.hpp>
#include <string>

namespace tacit::serve {

// Holds values against the schemas of an OpenAPI document. Objects have no other fields than those
// listed, unless additionalProperties says of which schema others are. Knows the keywords that
// schemas/openapi.yaml uses; one that it does not know is a failure, so that none is passed over.
class JsonSchema {
 public:
  explicit JsonSchema(const boost::json::value& document) : document_(document) {}

  // Returns the fault of the value, with the place where; empty if there is none.
  std::string Check(const boost::json::value& schema, const boost::json::value& value,
                    const std::string& where = "$") const;
  // Follows {"$ref":"#/..."}, if it is one.
  const boost::json::value& Resolve(const boost::json::value& schema) const;

 private:
  std::string CheckKeyword(const std::string& keyword, const boost::json::value& wanted,
                           const boost::json::value& schema, const boost::json::value& value,
                           const std::string& where) const;
  std::string CheckFields(const boost::json::object& schema, const boost::json::object& value,
                          const std::string& where) const;

  const boost::json::value& document_;
};

}  // namespace tacit::serve
