// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/launched_rank.h"

#include <llvm/ADT/StringRef.h>

#include <cstdlib>

namespace stowage::runtime {

namespace {

ir::Error wrong(const std::string& name, const std::optional<std::string>& found,
                const std::string& expected) {
  const std::string text = found ? "found '" + *found + "'" : "is not set";
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "the variable " + name + ": " + text + ", expected " + expected +
                           " ('torchrun' sets it; without RANK and WORLD_SIZE a process is alone)");
}

class Reader {
 public:
  explicit Reader(ReadVariable readVariable) : readVariable_(readVariable) {}

  /// In [least, most]. `most` < 0: no limit.
  ir::Error read(const std::string& name, int32_t least, int32_t most, int32_t& into) const {
    const std::optional<std::string> text = readVariable_(name);
    const bool isNumber = text && !llvm::StringRef(*text).getAsInteger(10, into);
    if (isNumber && into >= least && (most < 0 || into <= most)) return ir::success();
    const std::string range = most < 0 ? std::to_string(least) + " or more"
                                       : std::to_string(least) + " to " + std::to_string(most);
    return wrong(name, text, range);
  }

  ir::Error readStore(LaunchedRank& launched) const {
    const std::optional<std::string> host = readVariable_("MASTER_ADDR");
    if (!host || host->empty()) return wrong("MASTER_ADDR", host, "a host");
    int32_t port = 0;
    if (ir::Error error = read("MASTER_PORT", 1, UINT16_MAX, port)) return error;
    launched.store = {.host = *host, .port = static_cast<uint16_t>(port)};
    launched.isStoreServed = readVariable_("TORCHELASTIC_USE_AGENT_STORE") == "True";
    launched.keys = "stowage/" + readVariable_("TORCHELASTIC_RUN_ID").value_or("none") + "/" +
                    readVariable_("TORCHELASTIC_RESTART_COUNT").value_or("0") + "/";
    return ir::success();
  }

 private:
  ReadVariable readVariable_;
};

}  // namespace

std::vector<std::string> variablesOf(int32_t rank, int32_t count, uint16_t storePort) {
  const std::string own = std::to_string(rank);
  const std::string all = std::to_string(count);
  return {"RANK=" + own,
          "WORLD_SIZE=" + all,
          "LOCAL_RANK=" + own,
          "LOCAL_WORLD_SIZE=" + all,
          "MASTER_ADDR=127.0.0.1",
          "MASTER_PORT=" + std::to_string(storePort),
          "TORCHELASTIC_USE_AGENT_STORE=True"};
}

bool isLaunchVariable(const std::string& name) {
  const llvm::StringRef text(name);
  return text == "RANK" || text == "WORLD_SIZE" || text == "LOCAL_RANK" ||
         text == "LOCAL_WORLD_SIZE" || text == "MASTER_ADDR" || text == "MASTER_PORT" ||
         text.find("TORCHELASTIC_") == 0;
}

ir::Expected<std::optional<LaunchedRank>> readLaunchedRank(ReadVariable readVariable) {
  if (!readVariable("RANK") && !readVariable("WORLD_SIZE")) return std::optional<LaunchedRank>();
  // Some clusters say so, and nothing else.
  if (readVariable("WORLD_SIZE") == "1") return std::optional<LaunchedRank>();
  const Reader reader(readVariable);
  LaunchedRank launched;
  if (ir::Error error = reader.read("WORLD_SIZE", 1, -1, launched.count)) return error;
  if (ir::Error error = reader.read("RANK", 0, launched.count - 1, launched.rank)) return error;
  if (ir::Error error = reader.read("LOCAL_WORLD_SIZE", 1, launched.count, launched.localCount)) {
    return error;
  }
  if (ir::Error error = reader.read("LOCAL_RANK", 0, launched.localCount - 1, launched.localRank)) {
    return error;
  }
  if (ir::Error error = reader.readStore(launched)) return error;
  return std::optional(launched);
}

ir::Expected<std::optional<LaunchedRank>> launchedRank() {
  return readLaunchedRank([](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace stowage::runtime
