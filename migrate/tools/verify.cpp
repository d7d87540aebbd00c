/* SPDX-License-Identifier: BSD-3-Clause */
#include "verify.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "comparison.h"
#include "error.h"

extern char **environ;

namespace zc::migrate {

namespace {

namespace fs = std::filesystem;

/** Records of the runs, in the working directory, which all hosts see; removed in the end. */
class records {
  public:
    records()
    {
        std::string name = fs::current_path() / "zcm-verify-XXXXXX";
        if (!mkdtemp(name.data()))
            throw_errno(errno, name);
        place_ = name;
    }
    ~records()
    {
        std::error_code ignored;
        fs::remove_all(place_, ignored);
    }
    records(const records &) = delete;
    records &operator=(const records &) = delete;
    std::string of(const char *run) const { return place_ + "/" + run; }

  private:
    std::string place_;
};

/** mpiexec cannot be run. */
class not_run : public error {
  public:
    using error::error;
};

/** The exit status, 128 and the signal if there was one. Throws not_run. */
int run(const std::vector<std::string> &command, const char *mode, const std::string &record)
{
    setenv("ZC_MIGRATE", mode, 1);
    setenv("ZC_MIGRATE_VERIFY_RECORD", record.c_str(), 1);
    std::vector<char *> words;
    words.reserve(command.size() + 1);
    for (const std::string &word : command)
        words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    pid_t child = 0;
    if (const int code = posix_spawnp(&child, words[0], nullptr, nullptr, words.data(), environ))
        throw not_run(code, command[0] + ": " + std::strerror(code));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void say(const std::string &text)
{
    fmt::print(stderr, "zcm-run: {}\n", text);
}

void say_all(const comparison &found)
{
    constexpr std::size_t kMost = 20;
    for (std::size_t i = 0; i < std::min(kMost, found.differences.size()); i++)
        say("  " + found.differences[i]);
    if (found.differences.size() > kMost)
        say(fmt::format("  and {} more at this safe point", found.differences.size() - kMost));
}

verified compare_with_moves(const std::vector<std::string> &command, const records &all)
{
    say("verify: run 1, without moves");
    if (const int status = run(command, "1", all.of("plain"))) {
        say(fmt::format("verify: it has failed without any move: exit status {}", status));
        return verified::undecided;
    }
    say("verify: run 2, with moves");
    const int status = run(command, "verify", all.of("moved"));
    const comparison found = comparison::of(all.of("plain"), all.of("moved"));
    if (found.differences.empty() && status == 0) {
        if (found.moves == 0) {
            say("verify: no rank has moved: the run is too short, or moves were refused");
            return verified::undecided;
        }
        say(fmt::format("verify: {} moves, and the registered data of each rank was the same at {} "
                        "safe points of ranks",
                        found.moves, found.points));
        return verified::same;
    }
    if (!found.differences.empty()) {
        say("verify: run 3, without moves, to see whether runs are alike at all");
        run(command, "1", all.of("again"));
        const comparison alike = comparison::of(all.of("plain"), all.of("again"));
        if (!alike.differences.empty()) {
            say("verify: the program computes something else in each run, even without moves, so "
                "nothing can be said. First:");
            say_all(alike);
            return verified::undecided;
        }
    }
    say("verify: with moves the program does not do what it does without: something that it needs "
        "is not registered, or not rebuilt");
    if (status != 0)
        say(fmt::format("  its exit status is {} with moves", status));
    say_all(found);
    return verified::differs;
}

} // namespace

verified verify(const std::vector<std::string> &command, long every)
{
    setenv("ZC_MIGRATE_VERIFY_EVERY", std::to_string(every).c_str(), 1);
    try {
        const records all;
        return compare_with_moves(command, all);
    } catch (const not_run &problem) {
        say(problem.what());
        return verified::failed;
    } catch (const error &problem) {
        say(problem.what());
        return verified::undecided;
    }
}

} // namespace zc::migrate
