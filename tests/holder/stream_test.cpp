/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace zc::holder {
namespace {

TEST(FrameTest, IsWhatItWas)
{
    const frame made{frame::DATA, stream_id::errors, 0x0123456789abcdef, "bytes"};
    const auto read = decode(encode(made));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, made.kind);
    EXPECT_EQ(read->stream, made.stream);
    EXPECT_EQ(read->offset, made.offset);
    EXPECT_EQ(read->bytes, made.bytes);
}

TEST(FrameTest, RefusesWhatIsNone)
{
    std::string good = encode({frame::ACK, stream_id::input, 7, {}});
    EXPECT_TRUE(decode(good));
    EXPECT_FALSE(decode(good.substr(1)));
    EXPECT_FALSE(decode(good + "x")); /* an acknowledgement has no bytes */
    good[0] = 3;
    EXPECT_FALSE(decode(good));
    good[0] = 0;
    good[1] = static_cast<char>(kStreams);
    EXPECT_FALSE(decode(good));
}

/** All of @text passes a way that loses, doubles and reorders frames, as connections made anew do.
 */
void pass(std::mt19937 &random, outgoing &out, incoming &in, std::string &got)
{
    std::vector<frame> under_way;
    for (int idle = 0; !out.is_done(); idle++) {
        ASSERT_LT(idle, 100000);
        if (random() % 4 == 0)
            out.rewind();
        if (const auto next = out.next())
            under_way.push_back(*next);
        if (under_way.empty())
            continue;
        const std::size_t which = random() % under_way.size();
        if (random() % 3)
            in.accept(under_way[which]);
        if (random() % 2)
            under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));
        if (!in.bytes().empty()) {
            const std::size_t part = 1 + random() % in.bytes().size();
            got += in.bytes().substr(0, part);
            in.use(part);
        }
        if (in.is_at_end())
            in.use_end();
        const auto ack = in.acknowledgement();
        if (ack && random() % 2)
            out.acknowledge(ack->offset);
    }
}

TEST(StreamTest, PassesAllOnceAndInOrder)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        std::mt19937 random(seed);
        outgoing out(stream_id::output, 1 << 20);
        incoming in(stream_id::output);
        std::string text, got;
        for (int i = 0; i < 2000; i++)
            text += std::to_string(i) + " ";
        for (std::size_t at = 0; at < text.size(); at += 700)
            out.push(text.substr(at, 700));
        if (seed % 2)
            out.end();
        pass(random, out, in, got);
        EXPECT_EQ(got, text) << seed;
        EXPECT_EQ(in.has_ended(), seed % 2 == 1) << seed;
    }
}

TEST(StreamTest, KeepsAWindow)
{
    outgoing out(stream_id::input, 100);
    EXPECT_EQ(out.room(), 100u);
    out.push(std::string(60, 'x'));
    EXPECT_EQ(out.room(), 40u);
    out.push(std::string(60, 'x'));
    EXPECT_EQ(out.room(), 0u);
    out.acknowledge(120);
    EXPECT_EQ(out.room(), 100u);
    EXPECT_TRUE(out.is_done());
}

TEST(StreamTest, IgnoresAcknowledgementsOfWhatItNeverSent)
{
    outgoing out(stream_id::input, 100);
    out.push("abc");
    out.acknowledge(4);
    EXPECT_FALSE(out.is_done());
    EXPECT_EQ(out.next()->bytes, "abc");
}

/** To another holder: what was not used goes again, from where the first was. */
TEST(StreamTest, GoesOnWithAnother)
{
    outgoing out(stream_id::input, 1 << 20);
    incoming first(stream_id::input);
    out.push("abcdef");
    first.accept(*out.next());
    first.use(2);
    incoming second(stream_id::input);
    second.restore(nlohmann::json::from_cbor(nlohmann::json::to_cbor(first.save())));
    out.acknowledge(2);
    out.end();
    out.rewind();
    while (const auto next = out.next())
        second.accept(*next);
    EXPECT_EQ(second.bytes(), "cdef");
    second.use(4);
    EXPECT_TRUE(second.is_at_end());
}

TEST(StreamTest, IsSentOnByAnother)
{
    outgoing first(stream_id::output, 1 << 20);
    incoming in(stream_id::output);
    first.push("abcdef");
    in.accept(*first.next());
    in.use(4);
    first.acknowledge(3); /* the next acknowledgement is under way */
    outgoing second(stream_id::output, 1 << 20);
    second.restore(nlohmann::json::from_cbor(nlohmann::json::to_cbor(first.save())));
    second.push("ghi");
    while (const auto next = second.next())
        in.accept(*next);
    EXPECT_EQ(in.bytes(), "efghi");
}

} // namespace
} // namespace zc::holder
