// SPDX-License-Identifier: Apache-2.0
#include "ir/error.h"

#include <llvm/Support/Format.h>
#include <llvm/Support/raw_ostream.h>

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

namespace {

/// Texts quote files, which may hold what a terminal obeys.
void logPrintable(llvm::StringRef text, llvm::raw_ostream& os) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool isControl = (byte < 0x20 && c != '\n') || byte == 0x7f;
    if (isControl) {
      os << llvm::format("\\x%02x", byte);
    } else {
      os << c;
    }
  }
}

}  // namespace

void PlanError::log(llvm::raw_ostream& os) const {
  if (!location_.file.empty()) os << location_.file << ':';
  if (location_.line > 0) os << location_.line << ':';
  if (location_.column > 0) os << location_.column << ':';
  if (!location_.file.empty() || location_.line > 0) os << ' ';
  logPrintable(message_, os);
  for (const std::string& text : notes_) {
    os << "\n  ";
    logPrintable(text, os);
  }
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
