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

void take_all(outgoing &out, std::string &bytes)
{
    while (const auto next = out.next()) {
        bytes += next->bytes;
        out.acknowledge(next->offset + next->bytes.size());
    }
}

std::string all_of(image_sender &sender)
{
    outgoing out(stream_id::image, 4 * outgoing::kLongest);
    std::string bytes;
    for (bool all = false; !all;) {
        all = sender.push(out);
        take_all(out, bytes);
    }
    return bytes;
}

/** All bytes that a sender makes of @from, if the other host has what was sent @ahead. */
std::string sent(const nlohmann::json &manifest, const std::string &from, sent_ahead ahead = {},
                 std::optional<frozen_memory> memory = {})
{
    image_sender sender(manifest, from, std::move(ahead), std::move(memory));
    return all_of(sender);
}

/** A line of runs, each with what follows behind them. */
std::string runs_line(const char *kind, const std::vector<stored_pages> &all)
{
    std::string runs;
    for (const stored_pages &each : all) {
        page_runs one;
        one.add(each.address, each.bytes, each.from);
        const std::string line = one.line(kind);
        runs += line.substr(line.size() - page_runs::kBytes);
    }
    return nlohmann::json{{kind, all.size()}}.dump() + "\n" + runs;
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
    /** It is a rank's at @address. */
    void send_page(const std::string &one, std::uint64_t address)
    {
        page_runs run;
        const auto [place, is_new] = there_.add(there_.sum_of(one), store_.size());
        if (told_.set(address, place)) {
            run.add(address, kPage, is_new ? page_runs::kFollows : place);
            outgoing out(stream_id::image, 4 * outgoing::kLongest);
            crc_ = push_memory(out, run, is_new ? std::string(one) : "", crc_);
            take_all(out, stored_);
        }
        if (is_new)
            store_ += one;
    }
    /** They lie in the store in this order, and are a rank's memory from @address on. */
    void send_before(const std::string &pages, std::uint64_t address = kSomewhere)
    {
        for (const char each : pages) {
            send_page(page(each), address);
            address += kPage;
        }
    }
    const std::string &stored() const { return stored_; }
    sent_ahead ahead() const { return {&there_, nullptr, told_, store_.size(), crc_}; }
    void write_memory(const std::string &bytes)
    {
        std::ofstream(from_.path() + "/pages-1.img", std::ios::binary) << bytes;
    }
    std::string image() { return sent({{"pid", 7}}, from_.path(), ahead()); }
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
    static constexpr std::uint64_t kSomewhere = 0x7ff79a752000;
    known_pages there_;
    std::string store_, stored_; /* what it has, and all that was sent for it */
    page_places told_;
    std::uint32_t crc_ = 0;
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
    receiver.forget_store();
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
        send_page(one, kSomewhere + i * kPage);
        known += one;
        unknown += one.replace(kPage - 1, 1, "y");
    }
    write_memory(unknown + known + unknown);
    const std::string bytes = image();
    EXPECT_LT(bytes.size(), 2 * unknown.size() + 700000 + 10000);
    expect_arrives(stored() + bytes);
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
    bytes[bytes.find(page('b')) + 5] ^= 1;
    EXPECT_THROW(receive(bytes, to_.path(), 65536), error);
}

TEST_F(StoreTest, WhatIsNotInTheStoreIsRefused)
{
    constexpr std::uint64_t kMany = ~std::uint64_t{0} - 4095;
    send_before("a");
    const std::string head = "{\"name\":\"pages-1.img\",\"bytes\":8192,\"parts\":true}\n";
    const auto runs = [](const std::vector<stored_pages> &all) { return runs_line("runs", all); };
    EXPECT_FALSE(receive(stored() + head + runs({{0, 4096, 0}}), to_.path(), 65536));
    for (const std::string &part : {
             runs({{0, 4096, 1}}),
             runs({{0, 1, 4097}}),
             runs({{0, 4096, kMany}}),
             runs({{0, kMany, 0}}),
             runs({{0, 0, 0}}),
             runs({{0, 8193, 0}}),
             runs({{0, 8193, page_runs::kFollows}}),
             runs({{0, 0, page_runs::kFollows}}),
             runs({{0, 4096, 0}, {4096, 4097, page_runs::kFollows}}),
             runs({{4096, 4096, 0}}),
             runs({{0, 4096, 0}, {0, 4096, 0}}),
             runs({}),
             std::string("{\"runs\":4097}\n"),
             std::string("{\"runs\":-1}\n"),
             std::string("{\"runs\":0.5}\n"),
             std::string("{\"runs\":[4096,0]}\n"),
             runs_line("memory", {{4096, 4096, 0}}),
             std::string("{\"name\":\"b.img\",\"bytes\":1}\n"),
             std::string("{\"crc\":0}\n"),
             std::string("7\n"),
         }) {
        SCOPED_TRACE(part);
        memory_directory to;
        EXPECT_THROW(receive(stored() + head + part, to.path(), 65536), error);
    }
    /* Before there is any store. */
    EXPECT_THROW(receive(head + runs({{0, 1, 0}}), to_.path(), 65536), error);
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
        left_out_ = ranges;
        return sent({{"pid", 7}}, from_.path(), by_store ? ahead() : sent_ahead{},
                    frozen_memory{getpid(), ranges});
    }
    /** What a rank would be given at the other host, of all that was left out. */
    std::optional<std::vector<std::string>> given(const std::string &bytes) const
    {
        memory_directory to;
        image_receiver receiver(to.path());
        incoming in(stream_id::image);
        in.accept({frame::DATA, stream_id::image, 0, bytes});
        if (!receiver.take(in))
            return {};
        const page_places memory = receiver.take_memory(left_out_);
        std::vector<std::string> pages;
        for (const page_range &each : left_out_) {
            for (std::uint64_t at = each.begin; at < each.end; at += kPage) {
                std::string one(kPage, '\0');
                const auto place = static_cast<off_t>(memory.find(at).value());
                one.resize(pread(receiver.store().fd, one.data(), kPage, place));
                pages.push_back(one);
            }
        }
        return pages;
    }
    /** For each page its first byte. */
    std::string arrived(const std::string &bytes) const
    {
        const auto pages = given(bytes);
        std::string found;
        for (const std::string &one : pages.value_or(std::vector<std::string>{"not all"}))
            found += !pages ? one : one == page(one.at(0)) ? one.substr(0, 1) : "?";
        return found;
    }
    std::vector<page_range> left_out_;

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
    const std::string bytes =
        stored() + image_of({{address(0), address(4)}, {address(5), address(7)}});
    EXPECT_EQ(arrived(bytes), "1ab2a3");
    EXPECT_LT(bytes.size(), 700000 + 3 * kPage + store_.size() + 2000);
}

TEST_F(LeftOutTest, MemoryArrivesWithoutAStoreBefore)
{
    write_pages("123");
    EXPECT_EQ(arrived(image_of({{address(0), address(3)}}, false)), "123");
    EXPECT_EQ(arrived(image_of({}, false)), "");
}

/** More than is read at once. */
TEST_F(LeftOutTest, LongMemoryArrives)
{
    std::string pages(290, 'm');
    for (const std::size_t each : {0, 1, 100, 250, 289})
        pages[each] = static_cast<char>('1' + each % 10);
    write_pages(pages);
    send_before("m");
    EXPECT_EQ(arrived(stored() + image_of({{address(0), address(290)}})), pages);
}

/** By what the kernel tells of another process. */
TEST_F(LeftOutTest, WhatIsUnchangedIsNotRead)
{
    constexpr std::size_t kMany = 1000, kFirst = 1000000; /* pages that no other test has */
    struct shared {
        stepped steps;
        std::atomic<int> served;
    };
    shared &both = *new (pages_of_memory(1, MAP_SHARED)) shared;
    char *const at = pages_of_memory(kMany);
    const std::vector<std::size_t> written = {5, 400, 401, 999};
    forked other(
        [&] {
            holder::write_pages(at, kFirst, kMany);
            both.served = own_userfault();
        },
        [&] {
            both.steps.serve([&](int) {
                for (const std::size_t each : written)
                    holder::write_pages(at + each * kPage,
                                        kFirst + (each == 400 ? 17 : kMany + each), 1);
            });
        });
    std::unique_ptr<unchanged_pages> unchanged;
    try {
        write_tracker::check_kernel();
        unchanged = std::make_unique<unchanged_pages>(other.pid(), other.take(both.served));
    } catch (const error &cannot) {
        GTEST_SKIP() << cannot.what();
    }
    const auto begin = reinterpret_cast<std::uint64_t>(at), end = begin + kMany * kPage;
    ASSERT_EQ(unchanged->protect({{begin, end}}), "");
    for (std::size_t i = 0; i < kMany; i++) {
        send_page(page_of(kFirst + i), begin + i * kPage);
        unchanged->note(begin + i * kPage);
    }
    send_page(page_of(kFirst + 8), begin + 7 * kPage); /* as would be seen if it was read */
    both.steps.ask(1);
    sent_ahead before = ahead();
    before.unchanged = unchanged.get();
    left_out_ = {{begin, end}};
    image_sender sender({{"pid", 7}}, from_.path(), std::move(before),
                        frozen_memory{other.pid(), left_out_});
    const auto pages = given(stored() + all_of(sender));
    ASSERT_TRUE(pages);
    for (std::size_t i = 0; i < kMany; i++) {
        const bool is_written = std::find(written.begin(), written.end(), i) != written.end();
        const std::size_t now = i == 7 ? 8 : i == 400 ? 17 : is_written ? kMany + i : i;
        EXPECT_TRUE((*pages)[i] == page_of(kFirst + now)) << i;
    }
    EXPECT_EQ(sender.bytes_left_out(), kMany * kPage);
    EXPECT_EQ(sender.bytes_unread(), (kMany - written.size()) * kPage);
    EXPECT_EQ(sender.bytes_there(), (kMany - 3) * kPage) << "400 has a page that was sent before";
}

/** What the other host knows already takes no byte of the image, wherever it is. */
TEST_F(LeftOutTest, NothingIsSaidOfPagesThatAreWhatTheyWere)
{
    std::string pages;
    for (int i = 0; i < 100; i++)
        pages += i % 2 ? "ab" : "ba";
    write_pages(pages);
    send_before(pages, address(0));
    const std::string none = image_of({{address(0), address(1)}});
    const std::string bytes = image_of({{address(0), address(200)}});
    EXPECT_LT(bytes.size(), none.size() + 10);
    EXPECT_EQ(bytes.find("{\"memory\""), std::string::npos);
    EXPECT_EQ(arrived(stored() + bytes), pages);
}

TEST_F(LeftOutTest, TheLastWordCounts)
{
    write_pages("dbaxe");
    send_before("abcx", address(0));
    send_before("d", address(0)); /* it has changed once before */
    EXPECT_EQ(arrived(stored() + image_of({{address(0), address(5)}})), "dbaxe");
}

/** It was freed again, or is in a file. */
TEST_F(LeftOutTest, WhatIsNotLeftOutIsOfNoMatter)
{
    write_pages("abc");
    send_before("zzz", address(100));
    send_before("abc", address(0));
    EXPECT_EQ(arrived(stored() + image_of({{address(1), address(2)}})), "b");
    EXPECT_EQ(arrived(stored() + image_of({})), "");
}

TEST_F(LeftOutTest, WhatIsNotWhatWasLeftOutIsRefused)
{
    write_pages("abcd");
    send_before("abcd", address(0));
    const std::string bytes = stored() + image_of({{address(0), address(2)}});
    ASSERT_EQ(arrived(bytes), "ab");
    for (const std::vector<page_range> &other : std::vector<std::vector<page_range>>{
             {{address(0), address(1)}},
             {{address(0), address(3)}},
             {{address(1), address(3)}},
             {{address(0), address(2)}, {address(9), address(10)}}}) {
        left_out_ = other;
        EXPECT_THROW(arrived(bytes), error);
    }
    left_out_ = {{address(0), address(2)}};
    EXPECT_THROW(arrived(stored() + sent({{"pid", 7}}, from_.path(), ahead())), error)
        << "a sender that knows of no memory";
}

TEST_F(LeftOutTest, ADamagedPageOfTheStoreIsNoticed)
{
    write_pages("ab");
    send_before("ab");
    const std::string bytes = stored() + image_of({{address(0), address(2)}});
    ASSERT_EQ(arrived(bytes), "ab");
    std::string damaged = bytes;
    damaged[bytes.find(page('b')) + 5] ^= 1;
    EXPECT_THROW(arrived(damaged), error);
}

TEST_F(LeftOutTest, ADamagedRunIsNoticed)
{
    write_pages("ab");
    send_before("ba", address(0));
    std::string bytes = stored() + image_of({{address(0), address(2)}});
    ASSERT_EQ(arrived(bytes), "ab");
    bytes[bytes.rfind("{\"memory\":") + 13 + 8] ^= 16; /* of the last one's length */
    EXPECT_THROW(arrived(bytes), error);
}

TEST_F(LeftOutTest, ADamagedPageIsNoticed)
{
    write_pages("Q");
    std::string bytes = image_of({{address(0), address(1)}});
    bytes[bytes.rfind('Q')] ^= 1;
    EXPECT_THROW(arrived(bytes), error);
}

TEST_F(LeftOutTest, WhatIsNoMemoryIsRefused)
{
    constexpr std::uint64_t kLast = ~std::uint64_t{4095};
    send_before("a");
    EXPECT_EQ(arrived(stored() + runs_line("memory", {{4096, 4096, 0}})), "not all");
    for (const std::vector<stored_pages> &runs : std::vector<std::vector<stored_pages>>{
             {{4097, 4096, 0}},
             {{4096, 4095, 0}},
             {{4096, 0, 0}},
             {{4096, 4096, 1}},
             {{4096, 4096, 4096}},
             {{4096, 8192, 0}},
             {{4096, 4096, kLast}},
             {{kLast, 8192, page_runs::kFollows}},
             {{std::uint64_t{1} << 63, 4096, page_runs::kFollows}},
             {{4096, 4097 * kPage, page_runs::kFollows}},
             {}}) {
        EXPECT_THROW(arrived(stored() + runs_line("memory", runs)), error)
            << (runs.empty() ? 0 : runs[0].address) << " " << (runs.empty() ? 0 : runs[0].bytes);
    }
    EXPECT_THROW(arrived(stored() + runs_line("runs", {{0, 4096, 0}})), error);
    EXPECT_THROW(arrived("{\"memory\":4097}\n"), error);
    EXPECT_THROW(arrived("{\"memory\":-1}\n"), error);
}

} // namespace
} // namespace zc::holder
