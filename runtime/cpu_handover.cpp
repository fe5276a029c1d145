// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu_handover.h"

#include <ATen/Context.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "ir/parser.h"
#include "runtime/calibrate.h"
#include "runtime/cpu_device.h"
#include "runtime/deterministic_mode.h"
#include "runtime/op_measurement.h"

namespace stowage::runtime {

namespace {

using Clock = std::chrono::steady_clock;
using ir::Stream;

constexpr int kOps = 256;   // of the chain
constexpr int kRounds = 9;  // the best counts
constexpr int64_t kUnit = 512;

// Events of the program.
constexpr int32_t kOpen = 0;  // compute may begin
constexpr int32_t kRan = 1, kOut = 2, kIn = 3;

/// Each op makes its result from the one before's.
std::string chainText() {
  std::string text =
      "graph @chain version=1 device=\"cpu\" {\n  parameter %y0 : f32[1]\nforward \"\":\n";
  for (int i = 1; i <= kOps; ++i) {
    text += "  %y" + std::to_string(i) + " : f32[1] = aten.relu.default(%y" +
            std::to_string(i - 1) + ")\n";
  }
  return text + "}\n";
}

/// Commands 0 to kOps - 1 are the ops; then the first value is copied to the host, and from it.
ir::Schedule chainSchedule(const ir::Graph& graph) {
  ir::Schedule schedule;
  schedule.level = ir::Level::kSynced;
  const auto values = static_cast<int64_t>(graph.storages().size());
  for (int64_t i = 0; i < values; ++i) {
    schedule.residencies.push_back(
        {ir::StorageId(static_cast<size_t>(i)), ir::Space::kDevice, i * kUnit});
  }
  schedule.residencies.push_back({ir::StorageId(size_t{0}), ir::Space::kHost, 0});
  schedule.arenas = {{ir::Space::kDevice, Bytes(values * kUnit)}, {ir::Space::kHost, Bytes(kUnit)}};
  for (size_t i = 0; i < kOps; ++i) {
    ir::Command run;
    run.node = ir::NodeId(i);
    run.in = {ir::ResidencyId(i)};
    run.out = {ir::ResidencyId(i + 1)};
    schedule.commands.push_back(run);
  }
  const ir::ResidencyId device(size_t{0}), host(schedule.residencies.size() - 1);
  for (const bool isOut : {true, false}) {
    ir::Command copy;
    copy.kind = ir::CommandKind::kCopy;
    copy.stream = isOut ? Stream::kDeviceToHost : Stream::kHostToDevice;
    copy.from = isOut ? device : host;
    copy.to = isOut ? host : device;
    schedule.commands.push_back(copy);
  }
  return schedule;
}

class HandoverBench {
 public:
  static ir::Expected<HandoverBench> make(int intraOpThreads) {
    HandoverBench bench;
    ir::Expected<ir::Graph> graph = ir::parseGraph(chainText());
    if (!graph) return graph.takeError();
    bench.graph_ = std::make_unique<ir::Graph>(std::move(*graph));
    bench.schedule_ = std::make_unique<ir::Schedule>(chainSchedule(*bench.graph_));
    bench.target_->intraOpThreads = intraOpThreads;
    bench.target_->alignBytes = kUnit;
    bench.target_->deterministic = at::globalContext().deterministicAlgorithms();
    ir::Expected<std::unique_ptr<CpuDevice>> device =
        CpuDevice::open({.deviceBytes = bench.schedule_->arenaBytes(ir::Space::kDevice),
                         .hostBytes = bench.schedule_->arenaBytes(ir::Space::kHost),
                         .intraOpThreads = intraOpThreads,
                         .links = {}});
    if (!device) return device.takeError();
    bench.device_ = std::move(*device);
    ir::Expected<std::unique_ptr<Program>> program =
        bench.device_->load({.graph = *bench.graph_,
                             .schedule = *bench.schedule_,
                             .target = *bench.target_,
                             .eventCount = kIn + 1});
    if (!program) return program.takeError();
    bench.program_ = std::move(*program);
    return bench;
  }

  /// All ops, one after the other.
  ir::Error runOps() {
    return takeTime(ops_, kOps, [&](int64_t) -> ir::Error { return ir::success(); });
  }

  /// The same with a copy out and one in after each op, for which the next op waits.
  ir::Error runWithCopies() {
    return takeTime(copies_, kOps, [&](int64_t moment) -> ir::Error {
      const auto chain = [&](Stream first, int32_t event, Stream then) -> ir::Error {
        if (ir::Error error = program_->record(first, {event, moment})) return error;
        return program_->wait(then, {event, moment});
      };
      if (ir::Error error = chain(Stream::kCompute, kRan, Stream::kDeviceToHost)) return error;
      if (ir::Error error = program_->copy(ir::CommandId(size_t{kOps}))) return error;
      if (ir::Error error = chain(Stream::kDeviceToHost, kOut, Stream::kHostToDevice)) return error;
      if (ir::Error error = program_->copy(ir::CommandId(size_t{kOps + 1}))) return error;
      return chain(Stream::kHostToDevice, kIn, Stream::kCompute);
    });
  }

  CpuHandover find(Nanoseconds opAlone) const {
    const auto atLeastNothing = [](Nanoseconds time) { return std::max(time, Nanoseconds(0)); };
    return {.launch = atLeastNothing(ops_.work - opAlone),
            .copy = Nanoseconds(atLeastNothing(copies_.work - ops_.work).value() / 2),
            .issueOfRun = ops_.issue,
            .issueOfCopy = Nanoseconds(atLeastNothing(copies_.issue - ops_.issue).value() / 2)};
  }

  const ir::Graph& graph() const { return *graph_; }

 private:
  /// Of one op, with what comes after it.
  struct Best {
    Nanoseconds work{INT64_MAX};
    Nanoseconds issue{INT64_MAX};
  };

  // All is pushed before compute may begin, so that it never waits for the issuing thread.
  template <typename After>
  ir::Error takeTime(Best& best, int count, After after) {
    const int64_t step = step_++;
    if (ir::Error error = program_->beginStep(step)) return error;
    const auto begin = Clock::now();
    if (ir::Error error = program_->wait(Stream::kCompute, {kOpen, step})) return error;
    for (int i = 0; i < count; ++i) {
      if (ir::Error error = program_->run(ir::CommandId(static_cast<size_t>(i)), {})) return error;
      if (ir::Error error = after(moment_++)) return error;
    }
    const Nanoseconds issued = since(begin);
    const auto opened = Clock::now();
    // On a thread that nothing else runs on.
    if (ir::Error error = program_->record(Stream::kHostCompute, {kOpen, step})) return error;
    if (ir::Error error = device_->synchronize()) return error;
    best.work = std::min(best.work, Nanoseconds(since(opened).value() / count));
    best.issue = std::min(best.issue, Nanoseconds(issued.value() / count));
    return ir::success();
  }

  std::unique_ptr<ir::Graph> graph_;
  std::unique_ptr<ir::Schedule> schedule_;
  std::unique_ptr<ir::Target> target_ = std::make_unique<ir::Target>();
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Program> program_;
  Best ops_, copies_;
  int64_t step_ = 0;
  int64_t moment_ = 0;  // events rise
};

}  // namespace

ir::Expected<CpuHandover> measureCpuHandover(int intraOpThreads) {
  const DeterministicMode mode(at::globalContext().deterministicAlgorithms());
  ir::Expected<HandoverBench> bench = HandoverBench::make(intraOpThreads);
  if (!bench) return bench.takeError();
  for (int round = 0; round < kRounds; ++round) {
    if (ir::Error error = bench->runOps()) return error;
    if (ir::Error error = bench->runWithCopies()) return error;
  }
  // All ops of the chain are one signature.
  ir::Expected<ir::CostTable> alone = measureCpuOpsAlone(
      bench->graph(), {.intraOpThreads = intraOpThreads,
                       .deterministic = at::globalContext().deterministicAlgorithms(),
                       .known = {},
                       .report = {}});
  if (!alone) return alone.takeError();
  return bench->find(alone->bySignature.begin()->second.time);
}

}  // namespace stowage::runtime
