// SPDX-License-Identifier: Apache-2.0
//
// What `stowage profile` says about links: between device and host, beside updates on the host,
// from and to a disk, between ranks.
#ifndef STOWAGE_TOOLS_RUN_MEASURED_LINKS_H_
#define STOWAGE_TOOLS_RUN_MEASURED_LINKS_H_

#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>

#include "ir/schedule/target.h"

namespace stowage::tools {

struct MeasuredLinks {
  const ir::LinkModel& alone;
  const ir::LinkModel& inSteps;
  bool hasDisk = false;
  bool hasRanks = false;
};

void printLinks(const MeasuredLinks& links, llvm::raw_ostream& os);
nlohmann::ordered_json linksJson(const ir::LinkModel& links, bool hasDisk, bool hasRanks);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_MEASURED_LINKS_H_
