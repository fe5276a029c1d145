// SPDX-License-Identifier: Apache-2.0
//
// A verb's answer as JSON on standard output. It is pure ASCII: any reader accepts it, and it holds
// no terminal control codes. Bytes of files that are not UTF-8 become U+FFFD.
#ifndef STOWAGE_TOOLS_CLI_JSON_ANSWER_H_
#define STOWAGE_TOOLS_CLI_JSON_ANSWER_H_

#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>

namespace stowage::tools {

inline void printJson(const nlohmann::ordered_json& answer) {
  llvm::outs() << answer.dump(2, ' ', /*ensure_ascii=*/true,
                              nlohmann::ordered_json::error_handler_t::replace)
               << '\n';
}

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_JSON_ANSWER_H_
