// SPDX-License-Identifier: Apache-2.0
#include "planner/flow/round_flow.h"

#include <algorithm>
#include <cmath>

namespace stowage::planner {

namespace {

using ir::GapAction;

constexpr double kWhole = 1e-6;  // what is nearer to a whole number is one

// How many of at most `most` gaps of `bytes` each; `carried` bytes are left over from others.
int64_t take(double value, int64_t most, double bytes, double& carried) {
  const double whole = std::round(value);
  if (std::abs(value - whole) < kWhole) {
    return std::clamp<int64_t>(static_cast<int64_t>(whole), 0, most);
  }
  const double wanted = std::round(value + carried / bytes);
  const auto taken = std::clamp<int64_t>(static_cast<int64_t>(wanted), 0, most);
  carried += (value - static_cast<double>(taken)) * bytes;
  return taken;
}

// Is the one at `index` among `taken` that are spread evenly over `count`?
bool isTaken(int64_t index, int64_t taken, int64_t count) {
  return (index + 1) * taken / count > index * taken / count;
}

}  // namespace

Actions roundFlow(const GapTable& table, const std::vector<GapClass>& classes,
                  const std::vector<double>& values, Actions actions) {
  std::vector<const GapClass*> order;
  for (const GapClass& one : classes) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [&](const GapClass* a, const GapClass* b) {
    return table.gaps()[a->members.front()].begin < table.gaps()[b->members.front()].begin;
  });
  const auto valueOf = [&](int32_t column) {
    return column < 0 ? 0.0 : values[static_cast<size_t>(column)];
  };
  double carriedHost = 0;
  double carriedRecompute = 0;
  for (const GapClass* one : order) {
    const auto bytes = static_cast<double>(table.bytes(table.gaps()[one->members.front()].storage));
    const auto count = static_cast<int64_t>(one->members.size());
    const int64_t host = take(valueOf(one->host), count, bytes, carriedHost);
    const int64_t rest = count - host;
    const int64_t recompute = take(valueOf(one->recompute), rest, bytes, carriedRecompute);
    for (int64_t i = 0, others = 0; i < count; ++i) {
      const size_t g = one->members[static_cast<size_t>(i)];
      if (isTaken(i, host, count)) {
        actions[g] = GapAction::kHost;
      } else if (isTaken(others++, recompute, rest)) {
        actions[g] = GapAction::kRecompute;
      }
    }
  }
  return actions;
}

}  // namespace stowage::planner
