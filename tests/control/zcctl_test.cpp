/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "descriptor.h"

namespace zc::control {
namespace {

/** The program itself, which has ended or is killed where this goes out of sight. */
class zcctl {
  public:
    /** With @open as the soft limit of open files. */
    explicit zcctl(std::vector<std::string> words, rlim_t open = RLIM_INFINITY)
    {
        words.insert(words.begin(), ZCCTL);
        std::vector<char *> arguments;
        arguments.reserve(words.size() + 1);
        for (std::string &each : words)
            arguments.push_back(each.data());
        arguments.push_back(nullptr);
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = std::min(open, limit.rlim_max);
        process_ = fork();
        if (process_ == 0) {
            setrlimit(RLIMIT_NOFILE, &limit);
            execv(ZCCTL, arguments.data());
            _exit(127);
        }
    }
    ~zcctl()
    {
        if (process_ > 0) {
            kill(process_, SIGKILL);
            waitpid(process_, nullptr, 0);
        }
    }
    zcctl(const zcctl &) = delete;
    zcctl &operator=(const zcctl &) = delete;
    pid_t process() const { return process_; }
    /** Its exit status. */
    int wait()
    {
        int status = 0;
        waitpid(process_, &status, 0);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    pid_t process_;
};

TEST(ZcctlTest, RanksWaitNoLongerThanADay)
{
    const auto status_of = [](const char *seconds) {
        return zcctl({"move", "--wait", seconds, "--rank", "0", "--to", "nowhere.invalid", "--job",
                      "no-job", "--sockets", "/nowhere", "--via", "memory"})
            .wait();
    };
    EXPECT_EQ(status_of("1e17"), 2);
    EXPECT_EQ(status_of("86401"), 2);
    EXPECT_EQ(status_of("-1"), 2);
    EXPECT_EQ(status_of("nan"), 2);
    EXPECT_EQ(status_of("86400"), 3) << "there is no such job";
    EXPECT_EQ(status_of("0"), 3);
}

TEST(ZcctlTest, EndsWithinAYear)
{
    const auto status_of = [](const char *seconds) {
        return zcctl({"move", "--timeout", seconds, "--rank", "0", "--to", "nowhere.invalid",
                      "--job", "no-job", "--sockets", "/nowhere", "--via", "memory"})
            .wait();
    };
    EXPECT_EQ(status_of("1e17"), 2);
    EXPECT_EQ(status_of("0"), 2);
    EXPECT_EQ(status_of("nan"), 2);
    EXPECT_EQ(status_of("31536000"), 3) << "there is no such job";
}

/** Its connections, of all ranks that move at once, take more than the 1024 that are usual. */
TEST(ZcctlTest, OpensAsManyFilesAsItMay)
{
    std::string folder = (std::filesystem::temp_directory_path() / "zcctl_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/agent";
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    const descriptor door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(door.fd, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    ASSERT_EQ(listen(door.fd, 1), 0);
    {
        const zcctl asking({"nodes", "--agent", path}, 64);
        pollfd asked{door.fd, POLLIN, 0};
        EXPECT_EQ(poll(&asked, 1, 30000), 1) << "it has not asked the agent";
        rlimit limit{};
        EXPECT_EQ(prlimit(asking.process(), RLIMIT_NOFILE, nullptr, &limit), 0);
        EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
        EXPECT_GT(limit.rlim_max, 64u);
    }
    std::filesystem::remove_all(folder);
}

} // namespace
} // namespace zc::control
