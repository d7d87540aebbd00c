/* SPDX-License-Identifier: BSD-3-Clause */
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "next_host.h"

namespace zc::control {
namespace {

const std::vector<listening_host> kHosts{{"b", "tcp://b:1"}, {"c", "tcp://c:1"}};

/** Notes what it is told. */
class noted_departure final : public departure {
  public:
    bool has_others() const override { return true; }
    void prepares() override { said += "p"; }
    void ready(bool) override { said += "r"; }
    bool may_go_on() override { return true; }
    int wake_fd() const override { return -1; }
    std::string said;
};

holder::held_move lost(const std::string &why, bool again)
{
    holder::held_move said;
    said.other_host = true;
    said.again = again;
    said.why = why;
    return said;
}

holder::held_move moved()
{
    holder::held_move said;
    said.ok = true;
    return said;
}

TEST(NextHostTest, TriesTheNextAsARankThatPreparesOnceMore)
{
    placement where;
    noted_departure leaving;
    const auto said =
        move_to_one_of(kHosts, "job", where, leaving, [&](const listening_host &host) {
            leaving.ready(true);
            return host.name == "b" ? lost("it is full", false) : moved();
        });
    EXPECT_TRUE(said.ok);
    EXPECT_EQ(leaving.said, "prpr");
    EXPECT_EQ(where.take("job", {"c", "b"}), "b") << "one is on c, none on b";
}

TEST(NextHostTest, TriesNoOtherIfTheRankItselfIsRefused)
{
    placement where;
    noted_departure leaving;
    int tried = 0;
    const auto said = move_to_one_of(kHosts, "job", where, leaving, [&](const listening_host &) {
        tried++;
        holder::held_move refused;
        refused.why = "it has a socket";
        return refused;
    });
    EXPECT_FALSE(said.ok);
    EXPECT_EQ(said.why, "it has a socket");
    EXPECT_EQ(tried, 1);
}

TEST(NextHostTest, ThatOneCouldTakeItLaterCounts)
{
    placement where;
    noted_departure leaving;
    const auto said = move_to_one_of(kHosts, "job", where, leaving, [](const listening_host &host) {
        return host.name == "b" ? lost("it has promised its memory", true)
                                : lost("it has no CRIU", false);
    });
    EXPECT_TRUE(said.again);
    EXPECT_EQ(said.why, "it has promised its memory");
}

TEST(NextHostTest, GivesThePlaceBackWhateverIsThrown)
{
    placement where;
    noted_departure leaving;
    const auto said = move_to_one_of(
        kHosts, "job", where, leaving, [](const listening_host &) -> holder::held_move {
            const nlohmann::json wrong = {{"ms", "many"}}; /* as a peer may say it */
            wrong.at("ms").get<double>();
            return {};
        });
    EXPECT_FALSE(said.ok);
    EXPECT_NE(said.why.find("must be number"), std::string::npos) << said.why;
    EXPECT_EQ(where.take("job", {"b", "c"}), "b");
}

} // namespace
} // namespace zc::control
