// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/printable_stream.h"

#include <algorithm>

#include "ir/base/printable.h"

namespace stowage::tools {

void PrintableStream::put(llvm::StringRef text) {
  size_t shown = std::min(ir::kLongestShown - std::min(inLine_, ir::kLongestShown), text.size());
  inLine_ += text.size();
  const auto continuesAt = [&](size_t place) {
    return place < text.size() && (static_cast<uint8_t>(text[place]) & 0xc0) == 0x80;
  };
  while (shown > 0 && continuesAt(shown)) --shown;
  to_ << text.take_front(shown);
}

void PrintableStream::endLine() {
  if (inLine_ > ir::kLongestShown) to_ << " [more left out]";
  to_ << '\n';
  to_.flush();  // who watches sees each line when it is known
  inLine_ = 0;
}

void PrintableStream::write_impl(const char* data, size_t size) {
  position_ += size;
  llvm::StringRef rest(data, size);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    put(ir::printable(rest.take_front(end)));
    if (end == llvm::StringRef::npos) return;
    endLine();
    rest = rest.drop_front(end + 1);
  }
}

llvm::raw_ostream& answers() {
  static PrintableStream stream(llvm::outs());
  return stream;
}

llvm::raw_ostream& messages() {
  static PrintableStream stream(llvm::errs());
  return stream;
}

}  // namespace stowage::tools
