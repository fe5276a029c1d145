// SPDX-License-Identifier: Apache-2.0
//
// Reads the JSON of torch.export archives, schema version 8: the program, and the file that its
// exporter puts beside an archive. Own reading of the fields; enumerations have the codes of that
// schema, which are not libtorch's.
// Text -> plain data (pt2_program.h). Errors: kParse for text that does not follow the schema;
// kUnsupported for another version, symbolic sizes, and arguments that no tensor program has. Each
// names the file, and the node or tensor where it stands.
// Not here: what ops and arguments mean.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_H_

#include <llvm/ADT/StringRef.h>

#include <string>

#include "ir/base/error.h"
#include "runtime/capture/pt2/pt2_program.h"

namespace stowage::runtime {

ir::Expected<Pt2Program> readPt2Program(llvm::StringRef text, const std::string& file);
ir::Expected<Pt2SideFile> readPt2SideFile(llvm::StringRef text, const std::string& file);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_JSON_H_
