/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_TESTS_SUPPORT_H_INCLUDED
#define ZCT_TESTS_SUPPORT_H_INCLUDED

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "record.h"
#include "writer.h"

namespace zc::zct::test {

/** A folder that goes away with the test. */
class scratch_folder {
  public:
    scratch_folder();
    ~scratch_folder();
    scratch_folder(const scratch_folder &) = delete;
    scratch_folder &operator=(const scratch_folder &) = delete;

    std::filesystem::path file(std::int32_t rank) const
    {
        return path_ / ("r" + std::to_string(rank) + ".zct");
    }
    const std::filesystem::path &path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/** Writes one rank's file, world first, as the tracer does. */
class rank_file {
  public:
    rank_file(const scratch_folder &folder, std::int32_t rank, std::int32_t processes,
              std::uint64_t run = 7, bool calls = false);
    ~rank_file() { close(false); }
    rank_file(const rank_file &) = delete;
    rank_file &operator=(const rank_file &) = delete;

    zct_writer *operator&() { return &writer_; }
    void send(std::int64_t time, std::int32_t peer, std::int32_t tag, std::uint64_t bytes,
              std::uint32_t comm = 0);
    void receive(std::int64_t posted, std::int64_t done, std::int32_t peer, std::int32_t tag,
                 std::uint64_t bytes, std::uint64_t addr, std::uint32_t comm = 0);
    void close(bool finished = true);

  private:
    zct_writer writer_;
    bool open_ = true;
};

std::vector<std::uint8_t> bytes_of(const std::filesystem::path &file);
void write_bytes(const std::filesystem::path &file, const std::vector<std::uint8_t> &bytes);

/** KiB by which a process's largest size grows when it does something; -1: that failed. */
long growth_by(const std::function<void()> &something);

} // namespace zc::zct::test

#endif
