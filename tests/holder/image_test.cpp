/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "crc32c.h"
#include "error.h"
#include "forked.h"
#include "memory_directory.h"

namespace zc::holder {
namespace {

std::string content(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/** All bytes that a sender makes of @from, if the other host has pages of @there. */
std::string sent(const nlohmann::json &manifest, const std::string &from,
                 const known_pages *there = nullptr, std::optional<frozen_memory> memory = {})
{
    image_sender sender(manifest, from, there, std::move(memory));
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

std::optional<nlohmann::json> receive(const std::string &bytes, const std::string &to,
                                      std::size_t bit)
{
    image_receiver receiver(to);
    incoming in(stream_id::image);
    std::optional<nlohmann::json> manifest;
    for (std::size_t at = 0; at < bytes.size() && !manifest; at += bit) {
        in.accept({frame::DATA, stream_id::image, at, bytes.substr(at, bit)});
        manifest = receiver.take(in); /* all of it: that is less than it takes at once */
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
        EXPECT_EQ(receive(bytes, to.path(), bit), manifest);
        EXPECT_EQ(content(to.path() + "/a.img"), content(from_.path() + "/a.img"));
        EXPECT_TRUE(std::filesystem::exists(to.path() + "/b.img"));
        EXPECT_FALSE(std::filesystem::exists(to.path() + "/dump.log"));
    }
}

TEST_F(ImageTest, IsNotTakenBeforeItsEnd)
{
    const std::string bytes = sent({{"pid", 7}}, from_.path());
    EXPECT_FALSE(receive(bytes.substr(0, bytes.size() - 1), to_.path(), 65536));
}

TEST_F(ImageTest, IsRefusedIfItIsDamaged)
{
    std::string bytes = sent({{"pid", 7}}, from_.path());
    bytes[bytes.size() / 2] ^= 1;
    EXPECT_THROW(receive(bytes, to_.path(), 65536), error);
}

TEST_F(ImageTest, WritesNowhereElse)
{
    EXPECT_THROW(receive("{\"name\": \"../x.img\", \"bytes\": 1}\nx", to_.path(), 100), error);
    EXPECT_THROW(receive("{\"name\": \"\", \"bytes\": 1}\nx", to_.path(), 100), error);
    EXPECT_THROW(receive("{\"nothing\": 1}\n", to_.path(), 100), error);
    EXPECT_THROW(receive(std::string(5000, 'x'), to_.path(), 5000), error);
}

/** A rank's memory, some of whose pages have been sent before. */
class StoreTest : public ImageTest {
  protected:
    static std::string page(char of) { return std::string(kPage, of); }
    /** They lie in the store in this order. */
    void send_before(const std::string &pages)
    {
        for (const char each : pages) {
            if (there_.add(page(each), store_.size()).is_new)
                store_ += page(each);
        }
    }
    std::string stored() const { return store_line(store_.size()) + store_; }
    void write_memory(const std::string &bytes)
    {
        std::ofstream(from_.path() + "/pages-1.img", std::ios::binary) << bytes;
    }
    std::string image() { return sent({{"pid", 7}}, from_.path(), &there_); }
    /** As if it had been sent whole. */
    void expect_arrives(const std::string &bytes)
    {
        for (const std::size_t bit : {std::size_t{999}, std::size_t{70001}, bytes.size()}) {
            memory_directory to;
            EXPECT_TRUE(receive(bytes, to.path(), bit));
            EXPECT_EQ(content(to.path() + "/pages-1.img"), content(from_.path() + "/pages-1.img"));
            EXPECT_EQ(content(to.path() + "/a.img"), content(from_.path() + "/a.img"));
            EXPECT_EQ(std::distance(std::filesystem::directory_iterator(to.path()), {}), 3);
        }
    }
    known_pages there_;
    std::string store_;
};

TEST_F(StoreTest, PagesAreNamedThatWereSentBefore)
{
    std::string all;
    for (char each = 'a'; each <= 'z'; each++)
        all += each;
    send_before(all);
    write_memory(page('z') + page('1') + page('a') + page('b') + page('c') + page('2') + page('c'));
    const std::string bytes = image();
    EXPECT_LT(bytes.size(), 700000 + 3 * kPage);
    expect_arrives(stored() + bytes);
}

/** The host has less by that, until the rank may take the place of the store. */
TEST_F(StoreTest, WhatIsKeptIsCounted)
{
    send_before("abc");
    write_memory(page('a') + page('1') + page('c') + page('c'));
    image_receiver receiver(to_.path());
    incoming in(stream_id::image);
    in.accept({frame::DATA, stream_id::image, 0, stored()});
    EXPECT_FALSE(receiver.take(in));
    EXPECT_EQ(receiver.kept(), 3 * kPage);
    in.accept({frame::DATA, stream_id::image, stored().size(), image()});
    EXPECT_TRUE(receiver.take(in));
    std::uint64_t files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(to_.path()))
        files += entry.file_size();
    EXPECT_EQ(receiver.kept(), 3 * kPage + files);
    EXPECT_GE(receiver.store().fd, 0);
    receiver.forget_memory();
    EXPECT_LT(receiver.store().fd, 0);
}

TEST_F(StoreTest, MemoryOfAnySizeArrives)
{
    send_before("ab");
    for (const std::string &memory :
         {std::string(), page('a'), page('a') + "the rest", std::string("no page"),
          page('1') + page('2'), page('b') + page('a')}) {
        write_memory(memory);
        expect_arrives(stored() + image());
    }
}

/** More than is read at once, of what is there and what is not. */
TEST_F(StoreTest, LongRunsArrive)
{
    std::string known, unknown;
    for (std::size_t i = 0; i < 2 * outgoing::kLongest / kPage + 3; i++) {
        std::string one = page('x');
        one.replace(0, sizeof i, reinterpret_cast<const char *>(&i), sizeof i);
        there_.add(one, store_.size());
        store_ += one;
        known += one;
        unknown += one.replace(kPage - 1, 1, "y");
    }
    write_memory(unknown + known + unknown);
    const std::string bytes = image();
    EXPECT_LT(bytes.size(), 2 * unknown.size() + 700000 + 10000);
    expect_arrives(stored() + bytes);
}

TEST_F(StoreTest, PartsOfTheStoreComeOneAfterTheOther)
{
    send_before("abc");
    write_memory(page('c') + page('a'));
    expect_arrives(store_line(kPage) + store_.substr(0, kPage) + store_line(2 * kPage) +
                   store_.substr(kPage) + image());
}

/** The owner of the receiver has other things to do. */
TEST_F(StoreTest, IsTakenInStepsHoweverFewBytesStandForIt)
{
    send_before("a");
    std::string memory;
    while (memory.size() < 3 * image_receiver::kMostOfStore)
        memory += page('a');
    write_memory(memory);
    image_receiver receiver(to_.path());
    incoming in(stream_id::image);
    const std::string bytes = stored() + image();
    in.accept({frame::DATA, stream_id::image, 0, bytes});
    int calls = 1;
    while (!receiver.take(in))
        ASSERT_LT(++calls, 100);
    EXPECT_GE(calls, 3);
    EXPECT_EQ(content(to_.path() + "/pages-1.img"), memory);
}

TEST_F(StoreTest, AStoreThatNothingIsTakenFromIsNoMatter)
{
    send_before("abc");
    write_memory(page('1'));
    expect_arrives(stored() + image());
}

TEST_F(StoreTest, ADamagedPageOfTheStoreIsNoticed)
{
    send_before("ab");
    write_memory(page('b') + page('a'));
    std::string bytes = stored() + image();
    bytes[bytes.find('\n') + kPage + 5] ^= 1;
    EXPECT_THROW(receive(bytes, to_.path(), 65536), error);
}

TEST_F(StoreTest, WhatIsNotInTheStoreIsRefused)
{
    const std::string begin = store_line(kPage) + page('a') +
                              "{\"name\":\"pages-1.img\",\"bytes\":8192,\"parts\":true}\n";
    for (const char *part : {
             "{\"runs\":[4096,1]}\n",
             "{\"runs\":[1,4097]}\n",
             "{\"runs\":[4096,9223372036854775807]}\n",
             "{\"runs\":[9223372036854775807,0]}\n",
             "{\"runs\":[0,0]}\n",
             "{\"runs\":[-4096,0]}\n",
             "{\"runs\":[4096,-2]}\n",
             "{\"runs\":[8193,0]}\n",
             "{\"runs\":[8193,-1]}\n",
             "{\"runs\":[0,-1]}\n",
             "{\"runs\":[4096,0,4097,-1]}\n",
             "{\"runs\":[4096]}\n",
             "{\"runs\":[]}\n",
             "{\"runs\":[4096,0.5]}\n",
             "{\"runs\":[4096,\"0\"]}\n",
             "{\"runs\":4096}\n",
             "{\"runs\":[18446744073709551615,0]}\n",
             "{\"runs\":[4096,0],\"pages\":4096}\n",
             "{\"name\":\"b.img\",\"bytes\":1}\n",
             "{\"crc\":0}\n",
             "7\n",
         }) {
        SCOPED_TRACE(part);
        memory_directory to;
        EXPECT_THROW(receive(begin + part, to.path(), 65536), error);
    }
    /* Before there is any store. */
    EXPECT_THROW(
        receive(begin.substr(begin.find("{\"name")) + "{\"runs\":[1,0]}\n", to_.path(), 65536),
        error);
}

/** Memory that is in no file of the image: of this process. */
class LeftOutTest : public StoreTest {
  protected:
    void write_pages(const std::string &pages)
    {
        for (std::size_t i = 0; i < pages.size(); i++)
            memory_.replace(offset() + i * kPage, kPage, page(pages[i]));
    }
    std::uint64_t address(std::size_t number) const
    {
        return reinterpret_cast<std::uint64_t>(memory_.data()) + offset() + number * kPage;
    }
    std::string image_of(const std::vector<page_range> &ranges, bool by_store = true)
    {
        return sent({{"pid", 7}}, from_.path(), by_store ? &there_ : nullptr,
                    frozen_memory{getpid(), ranges, zc_crc32c(0, store_.data(), store_.size())});
    }
    /** What a rank would be given at the other host: for each page its first byte. */
    std::string arrived(const std::string &bytes, std::uint64_t &first)
    {
        memory_directory to;
        image_receiver receiver(to.path());
        incoming in(stream_id::image);
        in.accept({frame::DATA, stream_id::image, 0, bytes});
        if (!receiver.take(in))
            return "not all";
        std::string found;
        first = receiver.memory().empty() ? 0 : receiver.memory().front().address;
        std::uint64_t next = first;
        for (const stored_pages &run : receiver.memory()) {
            found.append((run.address - next) / kPage, '-');
            next = run.address + run.bytes;
            for (std::uint64_t at = 0; at < run.bytes; at += kPage) {
                std::string one(kPage, '\0');
                const ssize_t got = pread(receiver.store().fd, one.data(), kPage,
                                          static_cast<off_t>(run.from + at));
                found += got == static_cast<ssize_t>(kPage) && one == page(one[0]) ? one[0] : '?';
            }
        }
        return found;
    }

  private:
    std::size_t offset() const
    {
        return kPage - reinterpret_cast<std::uint64_t>(memory_.data()) % kPage;
    }
    std::string memory_ = std::string(300 * kPage, 'm');
};

TEST_F(LeftOutTest, MemoryArrivesWithItsAddresses)
{
    write_pages("1ab2aa3");
    send_before("xab");
    std::uint64_t first = 0;
    const std::string bytes =
        stored() + image_of({{address(0), address(4)}, {address(5), address(7)}});
    EXPECT_EQ(arrived(bytes, first), "1ab2-a3");
    EXPECT_EQ(first, address(0));
    EXPECT_LT(bytes.size(), 700000 + 3 * kPage + store_.size() + 2000);
}

TEST_F(LeftOutTest, MemoryArrivesWithoutAStoreBefore)
{
    write_pages("123");
    std::uint64_t first = 0;
    EXPECT_EQ(arrived(image_of({{address(0), address(3)}}, false), first), "123");
    EXPECT_EQ(arrived(image_of({}, false), first), "");
}

/** More than is read at once. */
TEST_F(LeftOutTest, LongMemoryArrives)
{
    write_pages("12");
    send_before("m");
    std::uint64_t first = 0;
    EXPECT_EQ(arrived(stored() + image_of({{address(0), address(290)}}), first),
              "12" + std::string(288, 'm'));
}

TEST_F(LeftOutTest, ADamagedPageOfTheStoreIsNoticed)
{
    write_pages("ab");
    send_before("ab");
    const std::string bytes = stored() + image_of({{address(0), address(2)}});
    std::uint64_t first = 0;
    ASSERT_EQ(arrived(bytes, first), "ab");
    std::string damaged = bytes;
    damaged[bytes.find('\n') + kPage + 5] ^= 1;
    EXPECT_THROW(arrived(damaged, first), error);
    const std::size_t sum = bytes.find(",\"store_crc\"");
    ASSERT_NE(sum, std::string::npos);
    EXPECT_THROW(arrived(bytes.substr(0, sum) + "}\n", first), error) << "without a sum";
}

TEST_F(LeftOutTest, ADamagedPageIsNoticed)
{
    write_pages("Q");
    std::string bytes = image_of({{address(0), address(1)}});
    bytes[bytes.rfind('Q')] ^= 1;
    std::uint64_t first = 0;
    EXPECT_THROW(arrived(bytes, first), error);
}

TEST_F(LeftOutTest, WhatIsNoMemoryIsRefused)
{
    const std::string begin = store_line(kPage) + page('a');
    for (const char *line : {
             "{\"pages\":4097,\"runs\":[4096,0]}\n",
             "{\"pages\":4096,\"runs\":[4095,0]}\n",
             "{\"pages\":4096,\"runs\":[0,0]}\n",
             "{\"pages\":4096,\"runs\":[4096,1]}\n",
             "{\"pages\":4096,\"runs\":[4096,4096]}\n",
             "{\"pages\":4096,\"runs\":[8192,0]}\n",
             "{\"pages\":18446744073709547520,\"runs\":[8192,-1]}\n",
             "{\"pages\":-1,\"runs\":[4096,0]}\n",
             "{\"pages\":4096,\"runs\":[4096,-2]}\n",
             "{\"pages\":4096,\"runs\":[4096,0]}\n{\"pages\":4096,\"runs\":[4096,0]}\n",
             "{\"pages\":8192,\"runs\":[4096,0]}\n{\"pages\":4096,\"runs\":[4096,0]}\n",
             "{\"runs\":[4096,0]}\n",
         }) {
        SCOPED_TRACE(line);
        std::uint64_t first = 0;
        EXPECT_THROW(arrived(begin + line, first), error);
    }
}

} // namespace
} // namespace zc::holder
