/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "error.h"
#include "request.h"

namespace zc::control {
namespace {

bool is_refused(const std::string &text, int ranks)
{
    try {
        request::from_json(text).check(ranks);
        return false;
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EINVAL);
        return true;
    }
}

TEST(RequestTest, IsTheSameAfterTheWire)
{
    request r;
    r.kind = request::what::move;
    r.moves = {{3, "a"}, {0, "b"}};
    r.epoch = 5;
    r.via = request::way::disk;
    const request back = request::from_json(r.to_json());
    EXPECT_EQ(back.kind, r.kind);
    ASSERT_EQ(back.moves.size(), 2u);
    EXPECT_EQ(back.moves[0].rank, 3);
    EXPECT_EQ(back.moves[1].host, "b");
    EXPECT_EQ(back.via, r.via);
    EXPECT_EQ(back.epoch, 5u);
}

TEST(RequestTest, EachWayHasItsName)
{
    for (const char *name : {"memory", "image", "disk"}) {
        const std::string text = std::string(R"({"command":"move","via":")") + name +
                                 R"(","moves":[{"rank":0,"host":"a"}]})";
        EXPECT_STREQ(name_of(request::from_json(text).via), name);
    }
    EXPECT_EQ(request::from_json(R"({"command":"move","moves":[{"rank":0,"host":"a"}]})").via,
              request::way::memory);
}

TEST(RequestTest, RefusesWhatItCannotDo)
{
    for (const char *text : {
             "",
             "{",
             "[]",
             "{}",
             R"({"command":"dance"})",
             R"({"command":3})",
             R"({"command":"move"})",
             R"({"command":"move","moves":[]})",
             R"({"command":"move","moves":[{"rank":0}]})",
             R"({"command":"move","moves":[{"rank":"0","host":"a"}]})",
             R"({"command":"move","via":"pigeon","moves":[{"rank":0,"host":"a"}]})",
             R"({"command":"move","moves":[{"rank":4,"host":"a"}]})",
             R"({"command":"move","moves":[{"rank":-1,"host":"a"}]})",
             R"({"command":"move","moves":[{"rank":1,"host":"a"},{"rank":1,"host":"b"}]})",
             R"({"command":"move","moves":[{"rank":1,"host":""}]})",
             R"({"command":"move","moves":[{"rank":1,"host":"a;reboot"}]})",
             R"({"command":"move","moves":[{"rank":1,"host":"-oProxyCommand=x"}]})",
         })
        EXPECT_TRUE(is_refused(text, 4)) << text;
    EXPECT_FALSE(is_refused(R"({"command":"move","moves":[{"rank":3,"host":"a"}]})", 4));
    EXPECT_FALSE(is_refused(R"({"command":"status"})", 4));
}

} // namespace
} // namespace zc::control
