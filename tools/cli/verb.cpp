// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verb.h"

#include <llvm/Support/raw_ostream.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "ir/base/printable.h"
#include "ir/base/units.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/printable_stream.h"

namespace stowage::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kGroupsShown = 8;

Json toJson(const ir::Infeasible& infeasible) {
  Json holders = Json::array();
  for (const auto& holder : infeasible.holders) {
    holders.push_back({{"storage", holder.storage}, {"bytes", holder.bytes.value()}});
  }
  Json groups = Json::array();
  for (const auto& group : infeasible.groups) {
    groups.push_back({{"bytes", group.bytes.value()},
                      {"count", group.count},
                      {"type", group.type},
                      {"kinds", group.kinds},
                      {"storages", group.storages}});
  }
  Json ways = Json::array();
  for (const auto& way : infeasible.ways) {
    Json one = {{"change", way.change}, {"fits", way.fits}};
    if (!way.fits) one["smallest_budget_bytes"] = way.smallestBudget.value();
    if (!way.fits) one["at_least"] = way.isAtLeast;
    ways.push_back(std::move(one));
  }
  Json json = {{"space", infeasible.space},
               {"budget_bytes", infeasible.budget.value()},
               {"smallest_budget_bytes", infeasible.smallestBudget.value()},
               {"peak_node", infeasible.peakNode},
               {"holders", holders},
               {"groups", groups},
               {"ways", ways}};
  if (infeasible.outside > Bytes(0)) json["outside_bytes"] = infeasible.outside.value();
  return json;
}

Json toJson(const ir::PlanError& error) {
  Json json = {{"code", ir::errorCodeName(error.code())}, {"message", ir::shortened(error.text())}};
  const ir::SourceLocation& place = error.location();
  if (!place.file.empty()) json["file"] = place.file;
  if (place.line > 0) json["line"] = place.line;
  if (place.column > 0) json["column"] = place.column;
  for (size_t i = 0; i < error.notes().size() && i < ir::kMostShown; ++i) {
    json["notes"].push_back(ir::shortened(error.notes()[i]));
  }
  if (error.notes().size() > ir::kMostShown) {
    json["notes_left_out"] = error.notes().size() - ir::kMostShown;
  }
  if (error.infeasible()) json["infeasible"] = toJson(*error.infeasible());
  return {{"error", json}};
}

/// By groups where they are known, as at a peak of the device.
void printHolders(const ir::Infeasible& infeasible, llvm::raw_ostream& os) {
  if (!infeasible.holders.empty()) os << "  largest there:\n";
  if (infeasible.groups.empty()) {
    for (size_t i = 0; i < infeasible.holders.size() && i < kGroupsShown; ++i) {
      os << "    " << formatBytes(infeasible.holders[i].bytes) << "  "
         << ir::printable(infeasible.holders[i].storage) << '\n';
    }
    return;
  }
  for (size_t i = 0; i < infeasible.groups.size() && i < kGroupsShown; ++i) {
    const ir::Infeasible::Group& group = infeasible.groups[i];
    os << "    " << formatBytes(group.bytes) << "  " << ir::printable(ir::describeGroup(group));
    if (group.count > 1) {
      for (size_t k = 0; k < group.storages.size(); ++k) {
        os << (k == 0 ? " (" : ", ") << ir::printable(group.storages[k]);
      }
      os << (group.count > static_cast<int64_t>(group.storages.size()) ? ", ...)" : ")");
    }
    os << '\n';
  }
}

/// What else would do, after what the budget would have to be.
void printWays(const ir::Infeasible& infeasible, llvm::raw_ostream& os) {
  for (const ir::Infeasible::WayOut& way : infeasible.ways) {
    os << "  or " << way.change << ": ";
    if (way.fits) {
      os << "then it fits\n";
    } else {
      os << "then " << formatBytes(way.smallestBudget + infeasible.outside)
         << (way.isAtLeast ? " at least\n" : " are enough\n");
    }
  }
}

void printInfeasible(const ir::Infeasible& infeasible, llvm::raw_ostream& os) {
  printHolders(infeasible, os);
  if (infeasible.smallestBudget.value() > 0) {
    const bool holdsOutside = infeasible.outside > Bytes(0);
    const char* form = holdsOutside ? "device:" : "";
    const Bytes smallest = infeasible.smallestBudget + infeasible.outside;
    os << "  smallest " << infeasible.space << " budget that works: " << form << smallest.value()
       << "B (" << formatBytes(smallest);
    if (holdsOutside) {
      os << ", of which " << formatBytes(infeasible.outside)
         << " lie beside the arena: context, kernels, libraries";
    }
    os << ")";
    // Where the rounded sizes are equal, only exact ones say why it does not fit.
    if (formatBytes(infeasible.budget) == formatBytes(infeasible.smallestBudget))
      os << ", found " << form << (infeasible.budget + infeasible.outside).value() << "B";
    os << '\n';
  }
  printWays(infeasible, os);
}

}  // namespace

void addCommonFlags(CLI::App& command, CommonFlags& flags, bool writesFiles) {
  command.add_flag("--json", flags.json, "print the answer as JSON on standard output");
  command.add_flag("-q,--quiet", flags.quiet, "no progress and no remarks");
  if (writesFiles) command.add_flag("-f,--force", flags.replace, "replace an existing output file");
}

int reportError(ir::Error error, const CommonFlags& flags) {
  const ir::PlanError payload = ir::takePayload(std::move(error));
  if (flags.json) {
    printJson(toJson(payload));
    llvm::outs().flush();
  }
  llvm::raw_ostream& os = messages();
  os << "error: ";
  payload.log(os);
  os << '\n';
  if (payload.infeasible()) printInfeasible(*payload.infeasible(), os);
  if (payload.code() == ir::ErrorCode::kInternal) {
    os << "  this is a bug in stowage; please report it with the command and its input\n";
  }
  return exitCodeFor(payload.code());
}

void remark(const std::string& text, const CommonFlags& flags) {
  if (flags.quiet || text.empty()) return;
  messages() << "note: ";
  ir::writeLine(messages(), text);
  messages() << '\n';
}

}  // namespace stowage::tools
