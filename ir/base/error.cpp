// SPDX-License-Identifier: Apache-2.0
#include "ir/base/error.h"

#include <llvm/Support/raw_ostream.h>

#include "ir/base/printable.h"

namespace stowage::ir {

char PlanError::ID = 0;

const char* errorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kParse:
      return "parse";
    case ErrorCode::kInvalidIr:
      return "invalid_ir";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kInfeasible:
      return "infeasible";
    case ErrorCode::kViolation:
      return "violation";
    case ErrorCode::kPlanMismatch:
      return "plan_mismatch";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kOutOfDeviceMemory:
      return "out_of_device_memory";
    case ErrorCode::kCuda:
      return "cuda";
    case ErrorCode::kTorch:
      return "torch";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kEnvironment:
      return "environment";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

void PlanError::log(llvm::raw_ostream& os) const {
  if (!location_.file.empty()) {
    writeLine(os, location_.file);
    os << ':';
  }
  if (location_.line > 0) os << location_.line << ':';
  if (location_.column > 0) os << location_.column << ':';
  if (!location_.file.empty() || location_.line > 0) os << ' ';
  writeLine(os, message_);
  for (size_t i = 0; i < notes_.size() && i < kMostShown; ++i) {
    os << "\n  ";
    writeLine(os, notes_[i]);
  }
  if (notes_.size() > kMostShown) os << "\n  and " << notes_.size() - kMostShown << " more";
}

std::string describeGroup(const Infeasible::Group& group) {
  if (group.count > 1) {
    return std::to_string(group.count) + " of " + group.type + ", " +
           formatBytes(Bytes(group.bytes.value() / group.count)) + " each: " + group.kinds;
  }
  std::string text = group.storages.empty() ? "" : group.storages.front();
  for (const std::string& part : {group.type, group.kinds}) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

PlanError takePayload(Error error) {
  PlanError result(ErrorCode::kInternal, "an error without a payload");
  llvm::handleAllErrors(
      std::move(error), [&](PlanError& payload) { result = std::move(payload); },
      [&](const llvm::ErrorInfoBase& other) {
        result = PlanError(ErrorCode::kInternal, other.message());
      });
  return result;
}

std::string describe(Error error) {
  if (!error) return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  takePayload(std::move(error)).log(os);
  return os.str();
}

}  // namespace stowage::ir
