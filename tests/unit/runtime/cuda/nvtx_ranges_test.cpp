// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a profiler sees, heard by a listener that NVTX finds in this program.
#include "runtime/cuda/nvtx_ranges.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/support/sample_plan.h"

namespace {

/// What was said, in order.
std::vector<std::string>& heard() {
  static std::vector<std::string> words;
  return words;
}

nvtxDomainHandle_t NVTX_API createDomain(const char* name) {
  heard().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&heard());
}
void NVTX_API destroyDomain(nvtxDomainHandle_t /*domain*/) { heard().emplace_back("over"); }
nvtxStringHandle_t NVTX_API registerString(nvtxDomainHandle_t /*domain*/, const char* text) {
  static std::deque<std::string> strings;
  strings.emplace_back(text);
  return reinterpret_cast<nvtxStringHandle_t>(&strings.back());
}
int NVTX_API push(nvtxDomainHandle_t /*domain*/, const nvtxEventAttributes_t* attributes) {
  const bool isRegistered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  heard().push_back("push " + (isRegistered ? *reinterpret_cast<const std::string*>(
                                                  attributes->message.registered)
                                            : std::string(attributes->message.ascii)));
  return 0;
}
int NVTX_API pop(nvtxDomainHandle_t /*domain*/) {
  heard().emplace_back("pop");
  return 0;
}
nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t /*domain*/,
                             const nvtxEventAttributes_t* attributes) {
  static nvtxRangeId_t last = 0;
  heard().push_back("start " + std::to_string(++last) + " " + attributes->message.ascii);
  return last;
}
void NVTX_API end(nvtxDomainHandle_t /*domain*/, nvtxRangeId_t range) {
  heard().push_back("end " + std::to_string(range));
}

int NVTX_API listen(NvtxGetExportTableFunc_t exportTable) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(exportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  const auto set = [&](int id, auto* function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, createDomain);
  set(NVTX_CBID_CORE2_DomainDestroy, destroyDomain);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, registerString);
  set(NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(NVTX_CBID_CORE2_DomainRangePop, pop);
  set(NVTX_CBID_CORE2_DomainRangeStartEx, start);
  set(NVTX_CBID_CORE2_DomainRangeEnd, end);
  return 1;
}

}  // namespace

namespace stowage::runtime {
namespace {

// One test: NVTX asks for a listener once in a process.
TEST(NvtxRanges, NameStepsAndWhatIsEnqueuedInThem) {
  const ir::Graph graph = tests::makeSampleGraph();
  const ir::Target target = tests::makeSampleTarget();
  const planner::PlanFile plan = tests::makeSamplePlan();
  InitializeInjectionNvtx2_fnptr = listen;  // asked once, by the first call
  {
    NvtxRanges ranges({.graph = graph, .schedule = plan.schedule, .target = target});
    for (int64_t step = 0; step < 2; ++step) {
      ranges.beginStep(step);
      // A prefetch, a launch, its recompute, an offload.
      for (const int command : {0, 1, 2, 5}) {
        const NvtxRanges::Scope range(ranges, ir::CommandId(command));
      }
    }
  }
  const std::string run = graph.describeNode(ir::NodeId(0));
  const std::vector<std::string> inStep = {"push x to device",      "pop", "push " + run,    "pop",
                                           "push recompute " + run, "pop", "push w to host", "pop"};
  std::vector<std::string> expected = {"domain stowage", "start 1 step 0"};
  expected.insert(expected.end(), inStep.begin(), inStep.end());
  expected.insert(expected.end(), {"end 1", "start 2 step 1"});
  expected.insert(expected.end(), inStep.begin(), inStep.end());
  expected.insert(expected.end(), {"end 2", "over"});
  EXPECT_EQ(heard(), expected);

  // Two plans that take turns.
  heard().clear();
  {
    NvtxRanges one({.graph = graph, .schedule = plan.schedule, .target = target});
    NvtxRanges other({.graph = graph, .schedule = plan.schedule, .target = target});
    one.beginStep(0);
    other.beginStep(0);
    one.beginStep(1);
  }
  EXPECT_EQ(heard(), (std::vector<std::string>{"domain stowage", "domain stowage", "start 3 step 0",
                                               "start 4 step 0", "end 3", "start 5 step 1", "end 4",
                                               "over", "end 5", "over"}));
}

}  // namespace
}  // namespace stowage::runtime
