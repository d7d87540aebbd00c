/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "room.h"
#include "scratch_directory.h"

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

class RoomTest : public testing::Test {
  protected:
    RoomTest()
    {
        write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    80 kB\nBuffers: 1 kB\n");
    }

    void write(const std::string &path, const std::string &content)
    {
        fs::create_directories(fs::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << content;
    }

    const scratch_directory scratch_;
    const std::string &root_ = scratch_.path();
};

TEST_F(RoomTest, IsWhatTheKernelHas)
{
    EXPECT_EQ(room_in_memory(root_), 80u * 1024);
    EXPECT_EQ(room_in_memory(root_ + "/none"), ~0ull);
    EXPECT_LT(room_in_memory(), ~0ull);
}

TEST_F(RoomTest, IsWhatAGroupHas)
{
    write("/proc/self/cgroup", "0::/job/step\n");
    write("/sys/fs/cgroup/job/step/memory.max", "max\n");
    write("/sys/fs/cgroup/job/step/memory.current", "1000\n");
    EXPECT_EQ(room_in_memory(root_), 80u * 1024);
    write("/sys/fs/cgroup/job/memory.max", "50000\n");
    write("/sys/fs/cgroup/job/memory.current", "30000\n");
    write("/sys/fs/cgroup/job/memory.stat", "anon 9000\ninactive_file 1500\nactive_file 7\n");
    EXPECT_EQ(room_in_memory(root_), 21500u);
    write("/sys/fs/cgroup/job/memory.current", "60000\n");
    EXPECT_EQ(room_in_memory(root_), 0u);
}

TEST_F(RoomTest, IsWhatAGroupOfTheFirstVersionHas)
{
    write("/proc/self/cgroup", "5:cpu,memory:/slurm/job\n4:cpuset:/other\nnonsense\n");
    write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9000\n");
    write("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "2000\n");
    EXPECT_EQ(room_in_memory(root_), 7000u);
}

} // namespace
} // namespace zc::migrate
