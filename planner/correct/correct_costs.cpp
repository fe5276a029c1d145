// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/correct_costs.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "ir/graph/collectives.h"
#include "planner/evaluate/timeline.h"
#include "planner/evaluate/timing.h"

namespace stowage::planner {

namespace {

/// Few bytes in a step change nothing.
void setBandwidth(ir::LinkRate& rate, int64_t bytes, int64_t time) {
  constexpr int64_t kEnough = int64_t{16} << 20;
  if (bytes < kEnough || time <= 0) return;
  const double seconds = static_cast<double>(time) / 1e9;
  rate.bandwidth =
      BytesPerSecond(std::max<int64_t>(1, std::llround(static_cast<double>(bytes) / seconds)));
}

/// Sets the rate that copies on `stream` had, from their mean durations. Small copies do not count.
void correctRate(ir::LinkRate& rate, ir::Stream stream, const ir::Graph& graph,
                 const ir::Schedule& schedule, llvm::ArrayRef<std::optional<Nanoseconds>> means) {
  constexpr int64_t kLarge = int64_t{256} << 10;
  int64_t bytes = 0;
  int64_t time = 0;
  for (size_t i = 0; i < means.size(); ++i) {
    const ir::Command& command = schedule.commands[i];
    if (command.kind != ir::CommandKind::kCopy || command.stream != stream || !means[i]) continue;
    const Bytes own = graph.storage(schedule.residency(command.from).storage).bytes;
    if (own.value() < kLarge) continue;
    bytes += own.value();
    time += means[i]->value() - rate.latency.value();
  }
  setBandwidth(rate, bytes, time);
}

/// The same for collectives, where the rate is known.
void correctRanksRate(ir::CostTable& table, const ir::Graph& graph, const ir::Schedule& schedule,
                      llvm::ArrayRef<std::optional<Nanoseconds>> means) {
  ir::LinkRate& rate = table.links.betweenRanks;
  int64_t bytes = 0;
  int64_t time = 0;
  for (size_t i = 0; i < means.size(); ++i) {
    const ir::Command& command = schedule.commands[i];
    if (command.stream != ir::Stream::kCollective || !means[i]) continue;
    bytes += ir::receivedBytes(graph, graph.node(command.node)).value();
    time += means[i]->value() - rate.latency.value();
  }
  setBandwidth(rate, bytes, time);
}

struct Sum {
  int64_t time = 0;
  int64_t count = 0;
  void add(const std::optional<Nanoseconds>& own) {
    if (!own) return;
    time += own->value();
    ++count;
  }
  double mean() const { return static_cast<double>(time) / static_cast<double>(count); }
};

/// Of a signature's launches.
struct Sums {
  Sum work;
  Sum launch;
  bool isCollective = false;
};

// In a step. The few copies that every step has, of inputs and losses, stand where the thread has
// just waited; a few launches may be its first, which have what lies between steps.
constexpr int64_t kEnoughSeen = 16;

/// Launch overhead inside steps. Where it was never seen, the overhead alone is scaled like that of
/// the launches that were seen.
class LaunchInSteps {
 public:
  LaunchInSteps(const ir::CostTable& alone, const std::map<std::string, Sums>& seen, double share)
      : share_(share) {
    int64_t launches = 0;
    double inSteps = 0;
    double before = 0;
    for (const auto& [signature, sums] : seen) {
      const auto row = alone.bySignature.find(signature);
      if (row == alone.bySignature.end() || row->second.launch == Nanoseconds(0)) continue;
      launches += sums.launch.count;
      inSteps += static_cast<double>(sums.launch.time);
      before +=
          static_cast<double>(sums.launch.count) * static_cast<double>(row->second.launch.value());
    }
    if (launches >= kEnoughSeen && inSteps > 0) slowdown_ = inSteps / before;
  }

  Nanoseconds of(Nanoseconds alone, const Sum& seen) const {
    const double whole =
        seen.count > 0 ? seen.mean() : slowdown_ * static_cast<double>(alone.value());
    return Nanoseconds(std::llround(whole * share_));
  }

 private:
  double share_;
  double slowdown_ = 1;
};

constexpr int kHalvings = 12;  // of a share between 0 and 1

ir::Expected<Nanoseconds> predictStep(const StepsOfPlan& plan, const ir::CostTable& costs) {
  ir::Expected<ir::NodeCosts> nodes = ir::resolveCosts(plan.graph, costs, plan.schedule.graphMode);
  if (!nodes) return nodes.takeError();
  return computeTimeline(plan.graph, plan.schedule, *nodes, plan.target.alignBytes).stepTime;
}

/// The largest share with which the step is predicted to take no longer than `stepTime`, or than
/// without any. Prediction rises with the share.
ir::Expected<double> largestShareWithin(
    Nanoseconds stepTime, llvm::function_ref<ir::Expected<Nanoseconds>(double share)> predict) {
  ir::Expected<Nanoseconds> least = predict(0);
  if (!least) return least.takeError();
  const Nanoseconds limit = std::max(stepTime, *least);
  ir::Expected<Nanoseconds> most = predict(1);
  if (!most) return most.takeError();
  if (*most <= limit) return 1.0;
  double within = 0;
  double step = 1;
  for (int i = 0; i < kHalvings; ++i) {
    step /= 2;
    ir::Expected<Nanoseconds> time = predict(within + step);
    if (!time) return time.takeError();
    if (*time <= limit) within += step;
  }
  return within;
}

}  // namespace

ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule, const TypicalTimes& times,
                           double launchShare) {
  std::map<std::string, Sums> bySignature;
  Sum copies;  // their launch overhead
  for (size_t i = 0; i < times.work.size(); ++i) {
    if (schedule.commands[i].kind != ir::CommandKind::kRun) {
      copies.add(times.launch[i]);
      continue;
    }
    Sums& sums = bySignature[ir::nodeSignature(graph, schedule.commands[i].node)];
    sums.isCollective = schedule.commands[i].stream == ir::Stream::kCollective;
    // Its row has what a rank does by itself.
    if (!sums.isCollective) sums.work.add(times.work[i]);
    sums.launch.add(times.launch[i]);
  }
  const LaunchInSteps launch(table, bySignature, launchShare);
  for (const auto& [signature, sums] : bySignature) {
    const auto row = table.bySignature.find(signature);
    if (row == table.bySignature.end()) continue;
    if (sums.work.count > 0) row->second.work = Nanoseconds(std::llround(sums.work.mean()));
    // A command that was never timed launched nothing: the thread's time for it is in that of the
    // command after it.
    const bool isTimed = sums.work.count > 0 || sums.isCollective;
    row->second.launch = isTimed ? launch.of(row->second.launch, sums.launch) : Nanoseconds(0);
  }
  if (copies.count < kEnoughSeen) copies = {};
  table.links.launch = launch.of(table.links.launch, copies);
  correctRate(table.links.deviceToHost, ir::Stream::kDeviceToHost, graph, schedule, times.work);
  correctRanksRate(table, graph, schedule, times.work);
  correctRate(table.links.hostToDevice, ir::Stream::kHostToDevice, graph, schedule, times.work);
  return table;
}

ir::Expected<ir::CostTable> correctCosts(const ir::CostTable& alone, const StepsOfPlan& measured) {
  ir::CostTable known = alone;
  known.scalars = Nanoseconds(0);
  ir::Expected<ir::NodeCosts> work = ir::resolveCosts(measured.graph, known, ir::GraphMode::kWhole);
  if (!work) return work.takeError();
  const size_t firstUpdate = findUpdate(measured.graph, measured.schedule.commands);
  const TypicalTimes times = typicalTimes(measured.schedule, measured.steps, *work, firstUpdate);
  const auto tableWith = [&](double share) {
    return correctTimes(known, measured.graph, measured.schedule, times, share);
  };
  known.scalars = measured.pace.scalars.value_or(alone.scalars);
  if (!measured.pace.untimed) return tableWith(1);
  ir::Expected<double> share = largestShareWithin(
      *measured.pace.untimed, [&](double part) { return predictStep(measured, tableWith(part)); });
  if (!share) return share.takeError();
  return tableWith(*share);
}

}  // namespace stowage::planner
