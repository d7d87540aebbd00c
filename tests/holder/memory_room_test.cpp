/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_room.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "memory_directory.h"

namespace zc::holder {
namespace {

class MemoryRoomTest : public ::testing::Test {
  protected:
    void write(const std::string &path, const std::string &text) const
    {
        const std::filesystem::path file = directory_.path() + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    std::uint64_t room() const { return memory_room(directory_.path()); }

    memory_directory directory_;
};

TEST_F(MemoryRoomTest, IsWhatTheHostHasIfThereIsNoLimit)
{
    write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
    EXPECT_EQ(room(), 8000u);
    write("/proc/self/cgroup", "0::/a/b\n");
    write("/sys/fs/cgroup/a/b/memory.max", "max\n");
    write("/sys/fs/cgroup/a/b/memory.current", "1\n");
    EXPECT_EQ(room(), 8000u);
}

TEST_F(MemoryRoomTest, IsWhatTheGroupsLeave)
{
    write("/proc/meminfo", "MemAvailable: 8000 kB\n");
    write("/proc/self/cgroup", "1:cpu:/x\n0::/a/b\n");
    write("/sys/fs/cgroup/a/b/memory.max", "7168000\n"); /* 7000 KiB */
    write("/sys/fs/cgroup/a/b/memory.current", "3072000\n");
    write("/sys/fs/cgroup/a/b/memory.stat", "anon 2048000\ninactive_file 1024000\n");
    EXPECT_EQ(room(), 5000u);
    write("/sys/fs/cgroup/a/memory.max", "4096000\n");
    write("/sys/fs/cgroup/a/memory.current", "3072000\n");
    EXPECT_EQ(room(), 1000u);
    write("/sys/fs/cgroup/a/memory.current", "5000000\n");
    EXPECT_EQ(room(), 0u);
}

TEST_F(MemoryRoomTest, IsWhatGroupsOfTheFirstVersionLeave)
{
    write("/proc/meminfo", "MemAvailable: 8000 kB\n");
    write("/proc/self/cgroup", "4:memory:/a\n0::/\n");
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096000\n");
    write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2048000\n");
    EXPECT_EQ(room(), 2000u);
}

TEST_F(MemoryRoomTest, HereThereIsSome)
{
    EXPECT_GT(memory_room(), 0u);
}

} // namespace
} // namespace zc::holder
