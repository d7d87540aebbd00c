/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace zc::migrate {
namespace {

/** Standard input is a pipe, and a stream of the program's own another one. */
class ProcessTest : public ::testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_EQ(pipe(input_.data()), 0);
        ASSERT_EQ(pipe(output_.data()), 0);
        before_ = dup(STDIN_FILENO);
        ASSERT_EQ(dup2(input_[0], STDIN_FILENO), STDIN_FILENO);
        own_ = fdopen(output_[1], "w");
        ASSERT_NE(own_, nullptr);
        alarm(60); /* a test that waits for ever ends */
    }
    void TearDown() override
    {
        alarm(0);
        if (before_ >= 0) {
            dup2(before_, STDIN_FILENO);
            close(before_);
        }
        std::clearerr(stdin);
        std::fclose(own_);
        for (const int fd : {input_[0], input_[1], output_[0]})
            close(fd);
    }
    std::array<int, 2> input_{}, output_{};
    int before_ = -1;
    FILE *own_ = nullptr;
};

TEST_F(ProcessTest, BuffersGoOut)
{
    std::array<char, 8> text{};
    std::fputs("line\n", own_);
    EXPECT_NO_THROW(flush_all_output());
    EXPECT_EQ(read(output_[0], text.data(), text.size()), 5);
    EXPECT_EQ(std::string(text.data()), "line\n");
}

TEST_F(ProcessTest, BuffersAreNotWaitedForWhileAThreadWaitsForInput)
{
    std::thread reader([] { EXPECT_EQ(std::getchar(), 'x'); });
    while (ftrylockfile(stdin) == 0) {
        funlockfile(stdin);
        usleep(1000);
    }
    EXPECT_FALSE(flush_output());
    try {
        flush_all_output();
        ADD_FAILURE() << "not all has gone out";
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EBUSY);
    }
    EXPECT_EQ(write(input_[1], "x", 1), 1);
    reader.join();
    EXPECT_TRUE(flush_output());
}

} // namespace
} // namespace zc::migrate
