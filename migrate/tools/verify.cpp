/* SPDX-License-Identifier: BSD-3-Clause */
#include "verify.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "clock.h"
#include "comparison.h"
#include "error.h"
#include "position.h"
#include "run_watch.h"

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

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr double kPolite = 20; /* seconds that mpiexec has to end the ranks when it is told to */

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

/** How a run has ended. */
struct ending {
    int status = 0;  /* the exit status, 128 and the signal if there was one */
    std::string why; /* it had to be ended, "" if not */
};

bool has_ended(pid_t child, int &status)
{
    const pid_t found = waitpid(child, &status, WNOHANG);
    return found == child || (found < 0 && errno != EINTR);
}

void end(pid_t child, int &status)
{
    kill(child, SIGTERM);
    for (const double begin = seconds(); seconds() - begin < kPolite;
         std::this_thread::sleep_for(kLook))
        if (has_ended(child, status))
            return;
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
}

/** @watch: nullptr: the run takes as long as it takes. Throws not_run. */
ending run(const std::vector<std::string> &command, const char *mode, const std::string &record,
           run_watch *watch)
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
    ending how;
    while (!has_ended(child, status)) {
        if (watch)
            how.why = watch->why_to_end(seconds());
        if (!how.why.empty()) {
            end(child, status);
            break;
        }
        std::this_thread::sleep_for(kLook);
    }
    how.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return how;
}

/** What the run with moves did otherwise. */
void say_what_differs(const ending &how, const comparison &found)
{
    say("verify: with moves the program does not do what it does without: something that it needs "
        "is not registered, or not rebuilt");
    if (!how.why.empty()) {
        say("  a rank that resumes makes other calls than the others expect, as where the counter "
            "of its loop is not registered");
        if (!found.differ_in_length)
            for (const std::string &where : found.positions)
                say("  " + where);
        std::string names;
        for (const std::string &name : found.registered)
            names += (names.empty() ? "'" : ", '") + name + "'";
        say("  registered are: " + names);
    } else if (how.status != 0) {
        say(fmt::format("  its exit status is {} with moves", how.status));
    }
    say_all(found);
}

verified compare_with_moves(const std::vector<std::string> &command, const records &all,
                            double patience_s)
{
    say("verify: run 1, without moves");
    const double begin = seconds();
    if (const int status = run(command, "1", all.of("plain"), nullptr).status) {
        say(fmt::format("verify: it has failed without any move: exit status {}", status));
        return verified::undecided;
    }
    patience_s += seconds() - begin;
    const auto watch_of = [&](const char *which) {
        return run_watch(positions_in(all.of("plain")), all.of(which), patience_s, seconds());
    };
    say("verify: run 2, with moves");
    run_watch watch = watch_of("moved");
    const ending how = run(command, "verify", all.of("moved"), &watch);
    if (!how.why.empty())
        say("verify: run 2 was ended: " + how.why);
    const comparison found = comparison::of(all.of("plain"), all.of("moved"));
    if (found.differences.empty() && how.why.empty() && how.status == 0) {
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
        run_watch again = watch_of("again");
        if (const ending third = run(command, "1", all.of("again"), &again); !third.why.empty())
            say("verify: run 3 was ended: " + third.why);
        const comparison alike = comparison::of(all.of("plain"), all.of("again"));
        if (!alike.differences.empty()) {
            say("verify: the program computes something else in each run, even without moves, so "
                "nothing can be said. First:");
            say_all(alike);
            return verified::undecided;
        }
    }
    say_what_differs(how, found);
    return verified::differs;
}

} // namespace

verified verify(const std::vector<std::string> &command, long every, double patience_s)
{
    setenv("ZC_MIGRATE_VERIFY_EVERY", std::to_string(every).c_str(), 1);
    try {
        const records all;
        return compare_with_moves(command, all, patience_s);
    } catch (const not_run &problem) {
        say(problem.what());
        return verified::failed;
    } catch (const error &problem) {
        say(problem.what());
        return verified::undecided;
    }
}

} // namespace zc::migrate
