/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_room.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scratch_directory.h"

namespace zc {
namespace {

namespace fs = std::filesystem;

class MemoryRoomTest : public testing::Test {
  protected:
    MemoryRoomTest()
    {
        write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    80 kB\nBuffers: 1 kB\n");
    }

    void write(const std::string &path, const std::string &content)
    {
        fs::create_directories(fs::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << content;
    }

    const migrate::scratch_directory scratch_;
    const std::string &root_ = scratch_.path();
};

TEST_F(MemoryRoomTest, IsWhatTheKernelHas)
{
    EXPECT_EQ(memory_room(root_), 80u * 1024);
    write("/proc/self/cgroup", "0::/\n");
    EXPECT_EQ(memory_room(root_), 80u * 1024);
    write("/proc/self/cgroup", "0::nonsense\n0::\n");
    EXPECT_EQ(memory_room(root_), 80u * 1024);
    EXPECT_EQ(memory_room(root_ + "/none"), ~0ull);
    EXPECT_LT(memory_room(), ~0ull);
    EXPECT_GT(memory_room(), 0u);
}

TEST_F(MemoryRoomTest, IsTheLeastOfWhatTheGroupsHave)
{
    write("/proc/self/cgroup", "1:cpu:/x\n0::/job/step\n");
    write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    write("/sys/fs/cgroup/job/step/memory.current", "1000\n");
    EXPECT_EQ(memory_room(root_), 80u * 1024);
    write("/sys/fs/cgroup/job/memory.max", "50000\n");
    write("/sys/fs/cgroup/job/memory.current", "30000\n");
    write("/sys/fs/cgroup/job/memory.stat", "anon 9000\ninactive_file 1500\nactive_file 7\n");
    EXPECT_EQ(memory_room(root_), 21500u);
    write("/sys/fs/cgroup/job/step/memory.max", "12000\n");
    EXPECT_EQ(memory_room(root_), 11000u);
    write("/sys/fs/cgroup/job/memory.current", "60000\n");
    EXPECT_EQ(memory_room(root_), 0u);
}

TEST_F(MemoryRoomTest, IsWhatAGroupOfTheFirstVersionHas)
{
    write("/proc/self/cgroup", "5:cpu,memory:/slurm/job\n4:cpuset:/other\nnonsense\n0::/\n");
    write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9000\n");
    write("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "2000\n");
    EXPECT_EQ(memory_room(root_), 7000u);
    write("/sys/fs/cgroup/memory/slurm/job/memory.stat",
          "inactive_file 1\ntotal_inactive_file 500\n");
    EXPECT_EQ(memory_room(root_), 7500u);
    write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(memory_room(root_), 80u * 1024);
}

} // namespace
} // namespace zc
