// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_json_fields.h"

namespace stowage::runtime {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;

/// Goes through the text without keeping anything, for the place of the first mistake.
class JsonChecker final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonChecker(llvm::StringRef text) : text_(text) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*count*/) override { return enter(); }
  bool start_array(std::size_t /*count*/) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& /*what*/) override {
    complaint_ = "found '" + token + "', which is no JSON here";
    const llvm::StringRef before = text_.take_front(position == 0 ? 0 : position - 1);
    line_ = static_cast<int>(before.count('\n')) + 1;
    column_ = static_cast<int>(before.size() - (before.rfind('\n') + 1)) + 1;
    return false;
  }

  ir::Error takeError(const std::string& file) const {
    return ir::makeError(ir::PlanError(ir::ErrorCode::kParse, complaint_)
                             .at({.file = file, .line = line_, .column = column_}));
  }

 private:
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    complaint_ = "found lists and objects nested deeper than " + std::to_string(kMaxDepth);
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

  llvm::StringRef text_;
  int depth_ = 0;
  std::string complaint_;
  int line_ = 0;
  int column_ = 0;
};

}  // namespace

ir::Error checkJson(llvm::StringRef text, const std::string& file) {
  JsonChecker checker(text);
  if (Json::sax_parse(text.begin(), text.end(), &checker)) return ir::success();
  return checker.takeError(file);
}

}  // namespace stowage::runtime
