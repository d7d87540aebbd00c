/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "error.h"
#include "standby.h"
#include "wire.h"

namespace zc::migrate {
namespace {

using nlohmann::json;

/** The launchers of all hosts, one after the other; each does what the test wants of it. */
class launchers final : public launch_request {
  public:
    /** @host's, with its wires to the leavers. */
    using work = std::function<void(std::vector<std::unique_ptr<wire>> &)>;

    ~launchers() override { end(); }
    void end()
    {
        for (std::thread &one : threads_)
            one.join();
        threads_.clear();
    }
    std::string ask(const std::string &host, const std::vector<calling_card> &cards) override
    {
        asked.push_back(host);
        threads_.emplace_back([card = cards.front(), does = of_host.at(host)] {
            try {
                const auto line = call(card, "order", 10);
                std::optional<json> said;
                while (!(said = line->poll()) && !line->is_closed())
                    std::this_thread::yield();
                std::vector<std::unique_ptr<wire>> leavers;
                for (const calling_card &one : start_order::from_json(said.value()).leavers)
                    leavers.push_back(call(one, "successor", 10));
                does(leavers);
            } catch (const std::exception &) {
                return; /* the start has been given up */
            }
        });
        return "";
    }
    bool answer(const std::string &, std::string &problem) override
    {
        problem.clear();
        return true;
    }

    std::map<std::string, work> of_host;
    std::vector<std::string> asked;

  private:
    std::vector<std::thread> threads_;
};

/** All report, and then one of them waits for what it is told. */
launchers::work reports(json &heard, const std::string &facts)
{
    return [&heard, facts](std::vector<std::unique_ptr<wire>> &leavers) {
        for (const auto &one : leavers)
            one->send({{"port", "p"}, {"facts", facts}});
        for (const auto &one : leavers) {
            std::optional<json> said;
            while (!(said = one->poll()) && !one->is_closed())
                std::this_thread::yield();
            heard.push_back(said ? *said : json("closed"));
            if (said)
                one->send({{"introduced", true}});
        }
    };
}

void yield()
{
    std::this_thread::yield();
}

void start(standby &it, launchers &by)
{
    it.start({}, by, 10, [] { std::this_thread::yield(); });
}

TEST(Standby, StartsOneLauncherForEachHostAndHearsAllReports)
{
    json h2, h3;
    {
        launchers by;
        by.of_host = {{"h2", reports(h2, "two")}, {"h3", reports(h3, "three")}};
        standby it({{1, "h2"}, {4, "h3"}, {2, "h2"}});
        start(it, by);
        EXPECT_EQ(by.asked, (std::vector<std::string>{"h2", "h3"}));
        std::vector<std::string> all;
        for (const standby::report &one : it.reports())
            all.push_back(std::to_string(one.rank) + " " + one.host + " " + one.facts);
        EXPECT_EQ(all, (std::vector<std::string>{"1 h2 two", "4 h3 three", "2 h2 two"}));
        it.introduce({"", R"({"card":"one"})", R"({"card":"two"})", "", ""}, 0, yield);
    }
    EXPECT_EQ(h2, json::parse(R"([{"leaver":"one"},{"leaver":"two"}])"));
    EXPECT_EQ(h3, json::parse(R"(["closed"])")); /* its leaver could not invite */
}

TEST(Standby, SaysOnWhichHostNoneHasComeUp)
{
    json h2, h3;
    launchers by;
    by.of_host = {{"h2", reports(h2, "two")},
                  {"h3", [](std::vector<std::unique_ptr<wire>> &leavers) {
                       leavers.front()->send({{"ended", "has ended with exit status 127"}});
                   }}};
    standby it({{1, "h2"}, {4, "h3"}});
    try {
        start(it, by);
        FAIL() << "started";
    } catch (const error &problem) {
        EXPECT_EQ(
            std::string(problem.what()),
            "the successor on h3 has ended with exit status 127 before it came to zcm_init()");
    }
    EXPECT_EQ(it.failed_on(), "h3");
}

TEST(Standby, EndsWithWhatTheRestThrows)
{
    json h2;
    launchers by;
    by.of_host = {{"h2", [](std::vector<std::unique_ptr<wire>> &) {}}};
    standby it({{1, "h2"}});
    EXPECT_THROW(it.start({}, by, 10, [] { throw error(ESHUTDOWN, "the job is finishing"); }),
                 error);
    EXPECT_EQ(it.failed_on(), "");
}

/** It does not wait for the call of a launcher that is no more, or ends when it is to call. */
TEST(Standby, TellsALeaverThatItsLauncherHasEnded)
{
    for (const bool at_once : {true, false}) {
        launchers by;
        by.of_host = {{"h2", [at_once](std::vector<std::unique_ptr<wire>> &leavers) {
                           leavers.front()->send({{"port", "p"}});
                           while (!at_once && !leavers.front()->poll())
                               std::this_thread::yield();
                       }}};
        standby it({{1, "h2"}});
        start(it, by);
        if (at_once)
            by.end();
        successor_start leaver("h2", 0);
        std::string said;
        std::thread waits([&] {
            try {
                leaver.run({"", leaver.invitation()}, {}, nullptr, 20, yield);
            } catch (const error &problem) {
                said = problem.what();
            }
        });
        it.introduce({"", leaver.invitation()}, 0, yield);
        waits.join();
        EXPECT_EQ(said, "the launcher on h2 has ended");
    }
}

/** {thread: what it blocks} of this process, as proc(5) has it. */
std::map<std::string, std::uint64_t> blocked_by_threads()
{
    std::map<std::string, std::uint64_t> found;
    for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("SigBlk:\t"))
                found[task.path().filename()] = std::stoull(line.substr(8), nullptr, 16);
    }
    return found;
}

/** The leaver hears the call only in what is done meanwhile: it could be this process's answer in
 * MPI that it waits for. */
TEST(Standby, GoesOnWhileItCallsALeaver)
{
    launchers by;
    by.of_host = {{"h2", [](std::vector<std::unique_ptr<wire>> &leavers) {
                       leavers.front()->send({{"port", "p"}});
                   }}};
    standby it({{1, "h2"}});
    start(it, by);
    by.end();
    call_receiver leaver;
    std::unique_ptr<wire> line;
    std::string why;
    const std::string invitation = json{{"card", leaver.card().to_text()}}.dump();
    const auto before = blocked_by_threads();
    it.introduce({"", invitation}, 0, [&] {
        for (const auto &[thread, blocked] : blocked_by_threads())
            if (!before.contains(thread))
                EXPECT_TRUE(blocked >> (SIGUSR1 - 1) & 1) << "a thread that calls takes signals";
        if (auto caller = leaver.poll(why))
            line = std::move(caller);
        yield();
    });
    EXPECT_TRUE(line);
    EXPECT_EQ(why, "successor");
}

TEST(Standby, IntroducesNobodyByAnInvitationThatCannotBeUnderstood)
{
    json h2;
    launchers by;
    by.of_host = {{"h2", reports(h2, "two")}};
    {
        standby it({{0, "h2"}});
        start(it, by);
        EXPECT_THROW(it.introduce({"nonsense"}, 1, yield), error);
    }
}

} // namespace
} // namespace zc::migrate
