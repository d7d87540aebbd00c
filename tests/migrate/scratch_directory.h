/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace zc::migrate {

/** A directory for what a test writes; it is removed with this object. */
class scratch_directory {
  public:
    scratch_directory()
    {
        std::string name = std::filesystem::temp_directory_path() / "zcm-test-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~scratch_directory() { std::filesystem::remove_all(path_); }
    scratch_directory(const scratch_directory &) = delete;
    scratch_directory &operator=(const scratch_directory &) = delete;

    const std::string &path() const noexcept { return path_; }

  private:
    std::string path_;
};

} // namespace zc::migrate
