/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "criu.h"
#include "error.h"

namespace zc::holder {
namespace {

std::string content(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/** All bytes that a sender makes of @from. */
std::string sent(const nlohmann::json &manifest, const std::string &from)
{
    image_sender sender(manifest, from);
    outgoing out(stream_id::image, 4 * outgoing::kLongest);
    std::string bytes;
    for (bool all = false; !all;) {
        all = sender.push(out);
        while (const auto next = out.next()) {
            bytes += next->bytes;
            out.acknowledge(next->offset + next->bytes.size());
        }
    }
    return bytes;
}

std::optional<nlohmann::json> received(const std::string &bytes, const std::string &to,
                                       std::size_t bit)
{
    image_receiver receiver(to);
    incoming in(stream_id::image);
    std::optional<nlohmann::json> manifest;
    for (std::size_t at = 0; at < bytes.size() && !manifest; at += bit) {
        in.accept({frame::DATA, stream_id::image, at, bytes.substr(at, bit)});
        manifest = receiver.take(in);
    }
    return manifest;
}

class ImageTest : public ::testing::Test {
  protected:
    ImageTest()
    {
        std::ofstream(from_.path() + "/a.img") << std::string(700000, 'a') << "\n{}\n";
        std::ofstream(from_.path() + "/b.img") << "";
        std::ofstream(from_.path() + "/dump.log") << "not for others";
    }
    memory_directory from_, to_;
};

TEST_F(ImageTest, ArrivesInBitsOfAnySize)
{
    const nlohmann::json manifest = {{"pid", 7}, {"unread", nlohmann::json::binary({0, 10, 255})}};
    const std::string bytes = sent(manifest, from_.path());
    for (const std::size_t bit : {std::size_t{999}, std::size_t{70001}, bytes.size()}) {
        memory_directory to;
        EXPECT_EQ(received(bytes, to.path(), bit), manifest);
        EXPECT_EQ(content(to.path() + "/a.img"), content(from_.path() + "/a.img"));
        EXPECT_TRUE(std::filesystem::exists(to.path() + "/b.img"));
        EXPECT_FALSE(std::filesystem::exists(to.path() + "/dump.log"));
    }
}

TEST_F(ImageTest, IsNotTakenBeforeItsEnd)
{
    const std::string bytes = sent({{"pid", 7}}, from_.path());
    EXPECT_FALSE(received(bytes.substr(0, bytes.size() - 1), to_.path(), 65536));
}

TEST_F(ImageTest, IsRefusedIfItIsDamaged)
{
    std::string bytes = sent({{"pid", 7}}, from_.path());
    bytes[bytes.size() / 2] ^= 1;
    EXPECT_THROW(received(bytes, to_.path(), 65536), error);
}

TEST_F(ImageTest, WritesNowhereElse)
{
    EXPECT_THROW(received("{\"name\": \"../x.img\", \"bytes\": 1}\nx", to_.path(), 100), error);
    EXPECT_THROW(received("{\"name\": \"\", \"bytes\": 1}\nx", to_.path(), 100), error);
    EXPECT_THROW(received("{\"nothing\": 1}\n", to_.path(), 100), error);
    EXPECT_THROW(received(std::string(5000, 'x'), to_.path(), 5000), error);
}

} // namespace
} // namespace zc::holder
