// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <ATen/Parallel.h>

#include <atomic>

#include "passes/arrange_graph.h"
#include "passes/manage/pass_manager.h"
#include "passes/pipeline.h"
#include "planner/targets/roofline.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/launch/launched_training.h"
#include "runtime/session_impl.h"
#include "runtime/torch/torch_version.h"

namespace stowage {

namespace {

ir::Expected<ir::Graph> normalise(const ir::Graph& graph) {
  passes::PassState state;
  state.graph = graph;
  const passes::PassManager manager(passes::makeNormalisingPasses({.reorder = false}));
  ir::Expected<std::vector<passes::PassRecord>> records = manager.run(state);
  if (!records) return records.takeError();
  return std::move(state.graph);
}

/// The profile that this machine's GPU goes by.
ir::Expected<ir::Target> targetOfGpu() {
  ir::Expected<runtime::GpuLibrary*> library = runtime::loadGpuLibrary();
  if (!library) {
    ir::PlanError error(ir::ErrorCode::kEnvironment,
                        "no CUDA device to capture for: run it where there is a GPU, in a program "
                        "linked with libtorch's CUDA libraries, or capture for the device cpu. "
                        "Without a GPU, the program `stowage` plans steps for cuda");
    const ir::PlanError why = ir::takePayload(library.takeError());
    error.note(why.text());
    error.notesOf(why);
    return ir::makeError(std::move(error));
  }
  ir::Expected<runtime::GpuFacts> facts = (*library)->describe();
  if (!facts) return facts.takeError();
  ir::Expected<ir::Target> target =
      planner::findProfileOfGpu(facts->name, facts->computeCapability, runtime::torchVersion());
  if (target) target->memory = facts->memory;
  return target;
}

ir::Expected<ir::Target> targetOf(const std::string& device) {
  if (ir::Error error = runtime::checkLoadedTorch(runtime::loadedTorchVersion())) return error;
  ir::Expected<ir::Target> target =
      device == "cuda" ? targetOfGpu()
                       : planner::findTargetProfile(device, runtime::torchVersion());
  if (target && target->device == ir::DeviceKind::kCpu) {
    target->intraOpThreads = at::get_num_threads();
  }
  return target;
}

void checkDiskFolder(const ir::Schedule& schedule, const std::string& folder) {
  const Bytes disk = schedule.arenaBytes(ir::Space::kDisk);
  if (disk == Bytes(0) || !folder.empty()) return;
  throw Failure(ir::ErrorCode::kInvalidArgument,
                "the plan keeps " + formatBytes(disk) +
                    " on disk: expected RunOptions::diskFolder, a folder on a disk with so much "
                    "room");
}

}  // namespace

void orThrow(ir::Error error) {
  if (!error) return;
  const ir::PlanError payload = ir::takePayload(std::move(error));
  throw Failure(payload.code(), ir::describe(ir::makeError(payload)));
}

ir::Expected<Ranks> Ranks::tryJoin() {
  ir::Expected<std::optional<runtime::LaunchedRank>> rank = runtime::launchedRank();
  if (!rank) return rank.takeError();
  Ranks ranks;
  if (!*rank || (*rank)->count == 1) return ranks;
  // All ranks begin their trainings in the same order.
  static std::atomic<int64_t> trainings = 0;
  (*rank)->keys += "training" + std::to_string(trainings++) + "/";
  auto joined = runtime::LaunchedTraining::join(**rank);
  if (!joined) return joined.takeError();
  ranks.joined_ = std::move(*joined);
  return ranks;
}

Ranks Ranks::join() { return orThrow(tryJoin()); }

int64_t Ranks::rank() const { return joined_ ? joined_->ranks().rank() : 0; }
int64_t Ranks::count() const { return joined_ ? joined_->ranks().count() : 1; }
const runtime::TrainingRanks* Ranks::internals() const {
  return joined_ ? &joined_->ranks() : nullptr;
}

const ir::Graph& Step::graph() const { return impl_->graph; }
const ir::Target& Step::target() const { return impl_->target; }

Step detail::capture(AnyStep step, const std::vector<at::Tensor>& examples) {
  return orThrow(tryCapture(std::move(step), examples));
}

ir::Expected<Step> detail::tryCapture(AnyStep step, const std::vector<at::Tensor>& examples) {
  auto impl = std::make_shared<Step::Impl>();
  ir::Expected<ir::Target> target = targetOf(step.device);
  if (!target) return target.takeError();
  impl->target = std::move(*target);
  if (step.deterministic) impl->target.deterministic = *step.deterministic;
  impl->module = step.functions.module;
  std::vector<runtime::InputSpec> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string name =
        i < step.inputNames.size() ? step.inputNames[i] : "input" + std::to_string(i);
    inputs.push_back({.name = name,
                      .sizes = examples[i].sizes().vec(),
                      .dtype = examples[i].scalar_type(),
                      .strides = examples[i].strides().vec()});
  }
  ir::Expected<std::unique_ptr<runtime::CapturedStep>> captured = runtime::captureStep(
      std::move(step.functions), std::move(inputs), {.target = impl->target, .recipe = {}});
  if (!captured) return captured.takeError();
  impl->captured = std::move(*captured);
  ir::Expected<ir::Graph> graph = normalise(impl->captured->graph());
  if (!graph) return graph.takeError();
  ir::Expected<ir::Graph> ofRank = passes::graphForRanks(*graph, step.ranks);
  if (!ofRank) return ofRank.takeError();
  impl->graph = std::move(*ofRank);
  return Step(std::move(impl));
}

Runner Runner::create(const Plan& plan, const Step& step, const RunOptions& options) {
  step.internals().planner.reset();
  const runtime::TrainingRanks* ranks =
      options.ranks == nullptr ? nullptr : options.ranks->internals();
  if (ranks != nullptr && plan.graph().ranks() > 1) {
    const Plan first = orThrow(takeFirstRanksPlan(plan, step, *ranks));
    return createAlike(first, step, options);
  }
  return createAlike(plan, step, options);
}

/// With ranks, all have this plan.
Runner Runner::createAlike(const Plan& plan, const Step& step, const RunOptions& options) {
  const Plan::Impl& from = plan.internals();
  runtime::RunnerOptions forRunner;
  forRunner.checkEvery = options.checkEvery;
  forRunner.diskFolder = options.diskFolder.empty() ? from.diskFolder : options.diskFolder;
  forRunner.verifyDisk = options.verifyDisk;
  if (options.ranks != nullptr) forRunner.ranks = options.ranks->internals();
  checkDiskFolder(from.file.schedule, forRunner.diskFolder);
  return Runner(plan, step,
                orThrow(runtime::Runner::create(*step.internals().captured,
                                                {.graph = from.graph,
                                                 .schedule = from.file.schedule,
                                                 .target = from.file.target,
                                                 .costs = &from.costs},
                                                std::move(forRunner))));
}

Runner Runner::create(ir::Expected<Plan>& plan, const Step& step, const RunOptions& options) {
  if (plan) return create(*plan, step, options);
  orThrow(plan.takeError());
  throw Failure(ir::ErrorCode::kInternal, "a plan that is neither a plan nor an error");
}

at::Tensor Runner::step(const std::vector<at::Tensor>& inputs) {
  return orThrow(runner_->step(inputs)).front();
}

int64_t Runner::enqueueStep(const std::vector<at::Tensor>& inputs) {
  return orThrow(runner_->enqueue(inputs));
}

at::Tensor Runner::loss(int64_t step) { return orThrow(runner_->reports(step)).front(); }

void Runner::finish() { orThrow(runner_->finish()); }

runtime::ArenaCopy Runner::release() { return orThrow(runner_->release()); }

runtime::ArenaCopy Runner::restore() { return orThrow(runner_->restore()); }

int64_t Runner::stepsDone() const { return runner_->stepsDone(); }

void Runner::readState(const std::function<void()>& look) { orThrow(runner_->read(look)); }

void Runner::save(const std::string& folder) { orThrow(runner_->save(folder)); }

runtime::ResumePoint Runner::load(const std::string& folder) {
  return orThrow(runner_->load(folder));
}

void Runner::storeTo(const ModulePointer& module) {
  if (module.get() != step_.internals().module) {
    throw Failure(ir::ErrorCode::kInvalidArgument,
                  "storeTo was given another module than the one that was captured");
  }
  orThrow(runner_->storeTo());
}

}  // namespace stowage
