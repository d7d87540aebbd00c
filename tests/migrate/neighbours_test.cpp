/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "neighbours.h"

namespace zc::migrate {
namespace {

using nlohmann::json;

calling_card card_of(char key, std::vector<std::string> places)
{
    return {std::string(32, key), std::move(places)};
}

/** Names that are looked up; nothing else has an address. */
name_service knows(const std::string &name, std::set<std::string> addresses)
{
    name_service service;
    service.addresses_of = [=](const std::string &host) {
        return host == name ? addresses : std::set<std::string>{};
    };
    return service;
}

const name_service kNone = knows("", {});

class Neighbours : public testing::Test {
  protected:
    /** Which launcher is there: the first character of its key; "" if none is. */
    std::string on(const std::string &host, const name_service &service = kNone) const
    {
        const auto card = it.on(host, service);
        return card ? card->key.substr(0, 1) : "";
    }
    neighbours it;
};

TEST_F(Neighbours, AreFoundByNameAndByAddress)
{
    EXPECT_EQ(on("h1"), "");
    it.set({{"h1", card_of('a', {"10.0.0.1/5", "fd00::1/5", "127.0.0.1/5"})},
            {"h2", card_of('b', {"10.0.0.2/6", "127.0.0.1/6"})},
            {"h2", card_of('c', {"10.0.0.2/7", "127.0.0.1/7"})}});
    EXPECT_EQ(on("h1"), "a");
    EXPECT_EQ(on("fd00::1"), "a");
    EXPECT_EQ(on("10.0.0.2"), "b");
    EXPECT_EQ(on("h3"), "");
    EXPECT_EQ(on("10.0.0"), "");
    EXPECT_EQ(on("h1.cluster", knows("h1.cluster", {"10.0.0.1"})), "a");
    EXPECT_EQ(on("h3", knows("h3", {"10.0.0.3"})), "");
}

TEST_F(Neighbours, AreNoneWhereEveryHostIsMeant)
{
    it.set({{"h1", card_of('a', {"10.0.0.1/5", "127.0.0.1/5"})}});
    EXPECT_EQ(on("127.0.0.1"), "");
    EXPECT_EQ(on("localhost", knows("localhost", {"127.0.0.1", "::1"})), "");
}

TEST_F(Neighbours, AreNoneWhereTwoHostsCouldBeMeant)
{
    it.set({{"h1", card_of('a', {"10.0.0.1/5", "172.17.0.1/5"})},
            {"h2", card_of('b', {"10.0.0.2/6", "172.17.0.1/6"})},
            {"box", card_of('c', {"10.0.0.3/6"})},
            {"box", card_of('d', {"10.0.0.4/6"})}});
    EXPECT_EQ(on("172.17.0.1"), "");
    EXPECT_EQ(on("box"), "");
    EXPECT_EQ(on("10.0.0.4"), "d");
}

/** That takes seconds, so it is not tried again; another one on the host is. */
TEST_F(Neighbours, AreNotReliedOnWhereTheyDoNotAnswer)
{
    it.set({{"h1", card_of('a', {"127.0.0.1/1"})}}); /* nobody listens there */
    std::string problem;
    EXPECT_FALSE(it.call_on("h2", problem));
    EXPECT_EQ(problem, "");
    EXPECT_FALSE(it.call_on("h1", problem));
    EXPECT_TRUE(problem.starts_with("the launcher on h1 is not used any more: it cannot be called"))
        << problem;
    problem.clear();
    EXPECT_FALSE(it.call_on("h1", problem));
    EXPECT_EQ(problem, "");
    it.set({{"h1", card_of('a', {"127.0.0.1/1"})}, {"h1", card_of('b', {"127.0.0.1/1"})}});
    EXPECT_EQ(on("h1"), "b");
}

class elsewhere final : public launch_request {
  public:
    std::string ask(const std::string &host, const std::vector<calling_card> &) override
    {
        asked.push_back(host);
        return "";
    }
    bool answer(const std::string &host, std::string &problem) override
    {
        problem = "of " + host;
        return true;
    }
    std::vector<std::string> asked;
};

/** A launcher that is called on h1, and answers as it is told; and none on h2. */
class LaunchByNeighbour : public testing::Test {
  protected:
    void SetUp() override
    {
        neighbours all;
        all.set({{"h1", launcher.card()}});
        std::string problem;
        std::thread calls([&] { there["h1"] = all.call_on("h1", problem); });
        std::string why;
        while (!(line = launcher.poll(why)))
            std::this_thread::yield();
        calls.join();
        EXPECT_EQ(why, kStartCall);
        ASSERT_TRUE(there["h1"]);
        there["h2"] = nullptr;
    }
    json heard() const
    {
        std::optional<json> said;
        while (!(said = line->poll()) && !line->is_closed())
            std::this_thread::yield();
        return said ? *said : json();
    }
    static std::string answer(launch_request &by, const std::string &host)
    {
        std::string problem;
        while (!by.answer(host, problem))
            std::this_thread::yield();
        return problem;
    }

    call_receiver launcher;
    std::unique_ptr<wire> line;
    std::map<std::string, std::unique_ptr<wire>> there;
    elsewhere others;
};

TEST_F(LaunchByNeighbour, AsksTheOneThatIsThere)
{
    launch_by_neighbour by(std::move(there), others);
    const calling_card one = card_of('a', {"10.0.0.1/5"}), two = card_of('b', {"10.0.0.1/6"});
    EXPECT_EQ(by.ask("h1", {one, two}), "");
    EXPECT_EQ(by.ask("h2", {one}), "");
    EXPECT_EQ(others.asked, std::vector<std::string>{"h2"});
    EXPECT_EQ(heard(), (json{{"leavers", {one.to_text(), two.to_text()}}}));
    std::string problem;
    EXPECT_FALSE(by.answer("h1", problem));
    line->send({{"problem", ""}});
    EXPECT_EQ(answer(by, "h1"), "");
    EXPECT_EQ(answer(by, "h2"), "of h2");
}

TEST_F(LaunchByNeighbour, SaysWhyNothingIsStarted)
{
    launch_by_neighbour by(std::move(there), others);
    EXPECT_EQ(by.ask("h1", {card_of('a', {"10.0.0.1/5"})}), "");
    line->send({{"problem", "no room"}});
    EXPECT_EQ(answer(by, "h1"), "no room");
}

/** As where it has no memory for another process. */
TEST_F(LaunchByNeighbour, AsksTheOthersIfTheLauncherEndsWithoutAWord)
{
    const std::vector<calling_card> leavers = {card_of('a', {"10.0.0.1/5"})};
    launch_by_neighbour by(std::move(there), others);
    EXPECT_EQ(by.ask("h1", leavers), "");
    EXPECT_EQ(by.is_late("h1"), "the one that ranks have there does not answer");
    line.reset();
    EXPECT_EQ(answer(by, "h1"), "of h1");
    EXPECT_EQ(others.asked, std::vector<std::string>{"h1"});
    EXPECT_EQ(by.is_late("h1"), kNotStarted);
    EXPECT_EQ(by.is_late("h2"), kNotStarted);
}

} // namespace
} // namespace zc::migrate
