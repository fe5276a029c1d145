// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/arranged_costs.h"

#include <llvm/ADT/StringExtras.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/targets/roofline.h"

namespace stowage::planner {

namespace {

/// A signature without the first size of each tensor, and that of the first tensor.
struct Form {
  std::string text;
  int64_t rows = 0;
};

Form formOf(llvm::StringRef signature) {
  Form form;
  for (size_t i = 0; i < signature.size(); ++i) {
    form.text += signature[i];
    // "f32[" is a tensor's type; lists and strides have no letter before the bracket.
    const bool isType = signature[i] == '[' && i > 0 && llvm::isAlnum(signature[i - 1]);
    if (!isType) continue;
    const llvm::StringRef digits = signature.drop_front(i + 1).take_while(llvm::isDigit);
    int64_t rows = 0;
    if (form.rows == 0 && !digits.getAsInteger(10, rows)) form.rows = rows;
    i += digits.size();
    form.text += '*';
  }
  return form;
}

struct Whole {
  int64_t rows = 0;
  const ir::OpCost* cost = nullptr;
};

/// By form, the row of most rows.
std::map<std::string, Whole> findWholes(const ir::CostTable& table) {
  std::map<std::string, Whole> wholes;
  for (const auto& [signature, cost] : table.bySignature) {
    Form form = formOf(signature);
    Whole& whole = wholes[std::move(form.text)];
    if (form.rows > whole.rows) whole = {form.rows, &cost};
  }
  return wholes;
}

Nanoseconds medianLaunch(const ir::CostTable& table) {
  std::vector<Nanoseconds> launches;
  for (const auto& [signature, cost] : table.bySignature) launches.push_back(cost.launch);
  if (launches.empty()) return Nanoseconds(0);
  const auto middle = launches.begin() + static_cast<ptrdiff_t>(launches.size() / 2);
  std::nth_element(launches.begin(), middle, launches.end());
  return *middle;
}

/// Of a node on the host, that of the same node on the device.
llvm::StringRef withoutHost(llvm::StringRef signature) {
  signature.consume_front("host ");
  return signature;
}

/// Updates on the host as fast as was measured, where it was.
ir::Target withMeasuredHost(ir::Target target, const ir::LinkModel& measured) {
  if (measured.hostUpdates > BytesPerSecond(0)) target.links.hostUpdates = measured.hostUpdates;
  return target;
}

/// `rows` of `of`, rounded up; both positive, so that no product overflows.
int64_t shareOf(int64_t amount, int64_t rows, int64_t of) {
  return amount / of * rows + (amount % of * rows + of - 1) / of;
}

}  // namespace

ArrangedCosts findArrangedCosts(const ir::Graph& graph, const ir::Target& target,
                                const ir::CostTable& table) {
  ArrangedCosts found{.table = table};
  found.table.bySignature.clear();
  const ir::CostTable estimate = rooflineCosts(graph, withMeasuredHost(target, table.links));
  const bool isEstimate = table.source == ir::CostSource::kRoofline;
  const std::map<std::string, Whole> wholes =
      isEstimate ? std::map<std::string, Whole>() : findWholes(table);
  const Nanoseconds launch = isEstimate ? Nanoseconds(0) : medianLaunch(table);
  for (const auto& [signature, estimated] : estimate.bySignature) {
    const auto known = table.bySignature.find(signature);
    if (known != table.bySignature.end()) {
      found.table.bySignature.emplace(signature, known->second);
      continue;
    }
    const llvm::StringRef onDevice = withoutHost(signature);
    const auto twin = table.bySignature.find(onDevice.str());
    const bool isCpu = target.device == ir::DeviceKind::kCpu;
    if (isCpu && onDevice.size() < signature.size() && twin != table.bySignature.end()) {
      found.table.bySignature.emplace(signature, twin->second);
      continue;
    }
    ++found.estimated;
    ir::OpCost cost = estimated;
    cost.launch = launch;
    const Form form = formOf(signature);
    const auto whole = wholes.find(form.text);
    if (whole != wholes.end() && form.rows > 0 && whole->second.rows > form.rows) {
      const auto& [rows, row] = whole->second;
      // A kernel of fewer rows has its overhead too.
      cost.work = Nanoseconds(shareOf(row->work.value(), form.rows, rows)) + target.kernelOverhead;
      cost.launch = row->launch;
      cost.temporary =
          roundUp(Bytes(shareOf(row->temporary.value(), form.rows, rows)), target.alignBytes);
    }
    found.table.bySignature.emplace(signature, std::move(cost));
  }
  return found;
}

}  // namespace stowage::planner
