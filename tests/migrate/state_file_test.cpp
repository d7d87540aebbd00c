/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <vector>

#include "clock.h"
#include "error.h"
#include "image.h"
#include "scratch_directory.h"
#include "state_file.h"

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

class StateFileTest : public testing::Test {
  protected:
    void SetUp() override { data_.add("plate", plate_.data(), plate_.size(), element::f64); }

    static effort result_of(state_file &file)
    {
        for (pause pause; !file.is_done(); pause.rest())
            continue;
        return file.result();
    }

    const scratch_directory place_;
    const std::string path_ = place_.path() + "/saved/rank-1.h5"; /* nothing is there yet */
    std::vector<double> plate_ = std::vector<double>(3 << 17, 0.25);
    registry data_;
};

TEST_F(StateFileTest, HoldsAllArraysUntilItEnds)
{
    {
        state_file file(path_, data_, {1, 4, 100, 7});
        const effort spent = result_of(file);
        EXPECT_EQ(spent.image_bytes, fs::file_size(path_));
        EXPECT_GT(spent.transfer_ms, 0);
        std::vector<double> back(plate_.size());
        image_reader(file.path())
            .read({"plate", reinterpret_cast<std::byte *>(back.data()), back.size(), element::f64});
        EXPECT_EQ(back, plate_);
    }
    EXPECT_TRUE(fs::is_empty(place_.path() + "/saved"));
}

TEST_F(StateFileTest, SaysWhatWentWrong)
{
    std::ofstream(place_.path() + "/saved") << "a file";
    state_file file(path_, data_, {1, 4, 100, 7});
    EXPECT_THROW(result_of(file), error);
}

/* 512 MiB, which no disk takes in as soon as that. */
TEST_F(StateFileTest, IsGivenUpAtOnce)
{
    std::vector<double> large(64 << 20, 1.5);
    data_.add("large", large.data(), large.size(), element::f64);
    const auto part = [this] {
        std::error_code none;
        const auto size = fs::file_size(path_ + ".part", none);
        return none ? 0 : size;
    };
    std::uintmax_t most = 0;
    {
        const state_file file(path_, data_, {1, 4, 100, 7});
        for (pause pause; part() == 0 && !file.is_done(); pause.rest())
            continue;
        most = part();
        EXPECT_FALSE(file.is_done());
    }
    EXPECT_LT(most, large.size() * sizeof(double));
    EXPECT_TRUE(fs::is_empty(place_.path() + "/saved"));
}

volatile std::sig_atomic_t handled_here = 0;
thread_local bool is_the_tests = false;

/* A signal to the process is delivered to a thread that does not block it. */
TEST_F(StateFileTest, TakesNoSignals)
{
    is_the_tests = true;
    struct sigaction before = {}, now = {};
    now.sa_handler = [](int) { handled_here = is_the_tests; };
    sigaction(SIGUSR1, &now, &before);
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    state_file file(path_, data_, {1, 4, 100, 7});
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    kill(getpid(), SIGUSR1);
    result_of(file);
    EXPECT_FALSE(handled_here);
    pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
    EXPECT_TRUE(handled_here);
    sigaction(SIGUSR1, &before, nullptr);
}

} // namespace
} // namespace zc::migrate
