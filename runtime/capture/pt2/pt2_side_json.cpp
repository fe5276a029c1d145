// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "runtime/capture/pt2/pt2_json.h"
#include "runtime/capture/pt2/pt2_json_fields.h"

namespace stowage::runtime {
namespace {

// The order of the groups is that of the inputs.
using Json = nlohmann::ordered_json;

class SideFileReader {
 public:
  explicit SideFileReader(const std::string& file) : fields_(file) {}

  ir::Expected<Pt2SideFile> read(const Json& document) {
    Pt2SideFile side;
    if (fields_.find(document, "name") != nullptr) side.name = fields_.text(document, "name");
    const Json* names = fields_.find(document, "names");
    for (const auto& [name, count] : fields_.object(document, "input_groups").items()) {
      fields_.setPlace("group '" + name + "'");
      Pt2SideFile::Group group{.name = name, .count = fields_.asInteger(count, name.c_str())};
      if (group.count < 0) fields_.fail("found a negative number of inputs");
      const Json* list = names == nullptr ? nullptr : fields_.find(*names, name.c_str());
      if (list != nullptr) readNames(*list, group);
      side.groups.push_back(std::move(group));
    }
    if (ir::Error error = fields_.takeError()) return error;
    return side;
  }

 private:
  void readNames(const Json& list, Pt2SideFile::Group& group) {
    if (!list.is_array() || static_cast<int64_t>(list.size()) != group.count) {
      return fields_.fail("found names for " + std::to_string(list.size()) +
                          " inputs, expected a list for " + std::to_string(group.count));
    }
    for (const Json& name : list) group.names.push_back(fields_.asText(name, "names"));
  }

  JsonFields<Json> fields_;
};

}  // namespace

ir::Expected<Pt2SideFile> readPt2SideFile(llvm::StringRef text, const std::string& file) {
  ir::Expected<Json> document = parseJson<Json>(text, file);
  if (!document) return document.takeError();
  return SideFileReader(file).read(*document);
}

}  // namespace stowage::runtime
