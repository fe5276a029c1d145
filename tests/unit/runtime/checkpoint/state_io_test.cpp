// SPDX-License-Identifier: Apache-2.0
//
// State in files: saved after some steps and loaded elsewhere, training goes on as if nothing had
// happened; files that do not fit are refused with everything that is wrong.
#include "runtime/checkpoint/state_io.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "ir/text/parser.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/fake/fake_device.h"
#include "runtime/fake/fake_kernels.h"
#include "tests/support/fake_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/scratch_folder.h"

namespace stowage::tests {
namespace {

using ir::StorageId;
using runtime::StateFiles;

constexpr const char* kText = R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  input %x : f32[4,8]
  parameter %w "fc.weight" : f32[8,8]
  parameter %k "conv.weight" : f32[2,3,4,4] strides=[48,1,12,3]
  state %m "m(fc.weight)" : bf16[8,8]
  rng %r "generator" : u8[24]
optimizer "":
  %l "loss" output output : f32[] = aten.sum.default(%x, none)
  aten.mul_.Tensor(inout %w, %l)
  aten.mul_.Tensor(inout %k, %w)
  aten.mul_.Tensor(inout %m, %w)
}
)IR";

ir::Graph parse(const std::string& text) {
  auto graph = ir::parseGraph(text);
  if (!graph) throw std::runtime_error(ir::describe(graph.takeError()));
  return std::move(*graph);
}

struct Process {
  ir::Graph graph;
  ir::Target target;
  ir::Schedule schedule;
  runtime::FakeDevice device;
  std::unique_ptr<runtime::Executor> executor;

  explicit Process(const std::string& text = kText)
      : graph(parse(text)),
        schedule(makeKeepAllSchedule(graph, target)),
        device(schedule.arenas),
        executor(std::move(
            *runtime::Executor::create(device, {graph, schedule, target, nullptr, nullptr}))) {}

  void fill(int64_t seed) {
    const auto read = [&](StorageId id, llvm::MutableArrayRef<uint8_t> bytes) {
      const auto made = runtime::makeFakeBytes(graph, id, seed);
      std::copy(made.begin(), made.end(), bytes.begin());
      return ir::success();
    };
    EXPECT_EQ(ir::describe(loadState(*executor, read)), "");
  }
  void step(int64_t number) {
    const auto bytes = runtime::makeFakeBytes(graph, StorageId(size_t{0}), number);
    EXPECT_TRUE(static_cast<bool>(executor->enqueueStep({{StorageId(size_t{0}), bytes}})));
  }
  std::vector<std::vector<uint8_t>> drain() {
    std::vector<std::vector<uint8_t>> all;
    const auto write = [&](StorageId, llvm::ArrayRef<uint8_t> bytes) {
      all.push_back(bytes.vec());
      return ir::success();
    };
    EXPECT_EQ(ir::describe(drainState(*executor, write)), "");
    return all;
  }
};

std::string path(const std::string& name) {
  static const ScratchFolder folder("stowage_state_io");
  return folder.at(name + ".safetensors");
}

TEST(StateIo, TrainingGoesOnFromAFile) {
  const std::string file = path("go_on");
  Process straight;
  straight.fill(-1);
  Process stopped;
  stopped.fill(-1);
  for (int i = 0; i < 2; ++i) straight.step(i), stopped.step(i);
  ASSERT_EQ(ir::describe(saveState(*stopped.executor, file, {{"step", "2"}},
                                   {{"generator.cpu", {1, 2, 3}}})),
            "");

  Process resumed;
  auto files = StateFiles::open({file});
  ASSERT_TRUE(static_cast<bool>(files)) << ir::describe(files.takeError());
  runtime::StateFileOptions options;
  options.allowExtra = true;
  ASSERT_EQ(ir::describe(files->check(resumed.graph, options)), "");
  const auto read = [&](StorageId id, llvm::MutableArrayRef<uint8_t> bytes) {
    return files->read(resumed.graph, id, options, bytes);
  };
  ASSERT_EQ(ir::describe(loadState(*resumed.executor, read)), "");
  EXPECT_EQ(files->metadata().at("step"), "2");
  std::vector<uint8_t> generator(3);
  ASSERT_EQ(ir::describe(files->readEntry(*files->find("generator.cpu"), generator)), "");
  EXPECT_EQ(generator, (std::vector<uint8_t>{1, 2, 3}));

  straight.step(2);
  resumed.step(2);
  EXPECT_EQ(straight.drain(), resumed.drain());
}

TEST(StateIo, FilesHoldRowMajorTensors) {
  const std::string file = path("order");
  Process run;
  run.fill(-1);
  ASSERT_EQ(ir::describe(saveState(*run.executor, file, {})), "");
  auto files = StateFiles::open({file});
  ASSERT_TRUE(static_cast<bool>(files));
  const auto* entry = files->find("conv.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->sizes, (std::vector<int64_t>{2, 3, 4, 4}));
  std::vector<uint8_t> stored(96 * 4);
  ASSERT_EQ(ir::describe(files->readEntry(*entry, stored)), "");
  const auto own = runtime::makeFakeBytes(run.graph, StorageId(size_t{2}), -1);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t i = 0; i < 16; ++i) {
        const auto at = static_cast<size_t>(n * 48 + c + i * 3) * 4;
        const auto there = static_cast<size_t>((n * 3 + c) * 16 + i) * 4;
        ASSERT_TRUE(std::equal(own.begin() + at, own.begin() + at + 4, stored.begin() + there));
      }
    }
  }
}

TEST(StateIo, SaysEverythingThatDoesNotFit) {
  const std::string file = path("mismatch");
  Process run(std::string(kText).replace(std::string(kText).find("fc.weight"), 9, "fc.kernel"));
  run.fill(-1);
  ASSERT_EQ(ir::describe(saveState(*run.executor, file, {})), "");
  std::string text = kText;
  text.replace(text.find("f32[2,3,4,4]"), 12, "f32[3,2,4,4]");
  text.replace(text.find("[48,1,12,3]"), 11, "[32,16,4,1]");
  text.replace(text.find("bf16[8,8]"), 9, "f16[8,8]");
  const ir::Graph graph = parse(text);
  auto files = StateFiles::open({file});
  ASSERT_TRUE(static_cast<bool>(files));
  const ir::PlanError error = ir::takePayload(files->check(graph, {}));
  EXPECT_EQ(error.code(), ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(error.notes(),
            (std::vector<std::string>{
                "missing: 'fc.weight'", "'conv.weight' is F32 [2,3,4,4], expected F32 [3,2,4,4]",
                "'m(fc.weight)' is BF16 [8,8], expected F16 [8,8]", "extra: 'fc.kernel'"}));
  runtime::StateFileOptions renamed;
  renamed.names = {{"fc.weight", "fc.kernel"}};
  renamed.wants = [](const ir::Storage& storage) { return storage.name == "fc.weight"; };
  renamed.allowExtra = true;
  EXPECT_EQ(ir::describe(files->check(graph, renamed)), "");
}

TEST(StateIo, TwoFilesMayNotHoldTheSameTensor) {
  const std::string file = path("twice");
  Process run;
  run.fill(-1);
  ASSERT_EQ(ir::describe(saveState(*run.executor, file, {})), "");
  auto files = StateFiles::open({file, file});
  ASSERT_FALSE(static_cast<bool>(files));
  EXPECT_NE(ir::describe(files.takeError()).find("is in"), std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
