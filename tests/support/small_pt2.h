// SPDX-License-Identifier: Apache-2.0
//
// A training step of a dozen nodes as a torch.export archive, written by hand: one weight, squared
// error, views, an op in place, a whole write, a fused AdamW with its learning rate as a tensor.
//   h = 0.5 * (x @ w) + noise(x);   loss = sum((h - t)^2);   w, m, v, step are updated.
#ifndef STOWAGE_TESTS_SUPPORT_SMALL_PT2_H_
#define STOWAGE_TESTS_SUPPORT_SMALL_PT2_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stowage::tests {

/// models/model.json of the archive.
nlohmann::json smallStepProgram();
/// The file beside the archive.
std::string smallStepSideFile();

/// An archive, written by libtorch: below the folder "archive/", with its marks at the end.
struct ZipSource {
  std::string name;
  std::string bytes;
  bool compress = false;
};
std::string packZip(const std::vector<ZipSource>& sources);
/// The archive around a program.
std::string packPt2(const std::string& program);
/// Writes it, with a side file or none, and returns its path. `name` without ".pt2".
std::string writePt2(const std::string& name, const std::string& archive,
                     const std::string& sideFile = "");

/// In a folder of this process's own, which goes with it.
std::string temporaryPath(const std::string& name);
/// Writes `bytes` to a file there and returns its path.
std::string writeTemporaryFile(const std::string& name, const std::string& bytes);

/// For programs made in tests.
nlohmann::json tensorMeta(int dtype, const std::vector<int>& sizes, const std::vector<int>& strides,
                          int offset = 0);
nlohmann::json tensorArgument(const std::string& name);
nlohmann::json programNode(const std::string& target, nlohmann::json inputs,
                           nlohmann::json outputs);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_SMALL_PT2_H_
