// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nvtx_ranges.h"

#include <string>

namespace stowage::runtime {

namespace {

std::string nameOf(const ProgramSource& source, const ir::Command& command) {
  if (command.kind == ir::CommandKind::kRun) {
    return (command.recompute > 0 ? "recompute " : "") + source.graph.describeNode(command.node);
  }
  const ir::Residency& to = source.schedule.residency(command.to);
  return source.graph.storage(to.storage).name + " to " + spaceName(to.space);
}

nvtxEventAttributes_t makeAttributes() {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return attributes;
}

}  // namespace

NvtxRanges::NvtxRanges(const ProgramSource& source) : domain_(nvtxDomainCreateA("stowage")) {
  if (domain_ == nullptr) return;
  for (const ir::Command& command : source.schedule.commands) {
    names_.push_back(nvtxDomainRegisterStringA(domain_, nameOf(source, command).c_str()));
  }
}

NvtxRanges::~NvtxRanges() {
  if (domain_ == nullptr) return;
  if (step_) nvtxDomainRangeEnd(domain_, *step_);
  nvtxDomainDestroy(domain_);
}

void NvtxRanges::beginStep(int64_t step) {
  if (domain_ == nullptr) return;
  if (step_) nvtxDomainRangeEnd(domain_, *step_);
  const std::string name = "step " + std::to_string(step);
  nvtxEventAttributes_t attributes = makeAttributes();
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  step_ = nvtxDomainRangeStartEx(domain_, &attributes);
}

NvtxRanges::Scope::Scope(const NvtxRanges& ranges, ir::CommandId command)
    : domain_(ranges.domain_) {
  if (domain_ == nullptr) return;
  nvtxEventAttributes_t attributes = makeAttributes();
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = ranges.names_[command.index()];
  nvtxDomainRangePushEx(domain_, &attributes);
}

NvtxRanges::Scope::~Scope() {
  if (domain_ != nullptr) nvtxDomainRangePop(domain_);
}

}  // namespace stowage::runtime
