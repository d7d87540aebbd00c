/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "error.h"
#include "image.h"

namespace zc::migrate {
namespace {

template <typename T>
array over(const std::string &name, std::vector<T> &data, element type)
{
    return {name, reinterpret_cast<std::byte *>(data.data()), data.size(), type};
}

std::vector<double> numbers(std::size_t count)
{
    std::vector<double> data(count);
    for (std::size_t i = 0; i < count; i++)
        data[i] = static_cast<double>(i) + 0.5;
    return data;
}

int code_of(const std::function<void()> &action)
{
    try {
        action();
        return 0;
    } catch (const error &problem) {
        return problem.code();
    }
}

class ImageTest : public testing::Test {
  protected:
    std::span<const std::byte> image_of(const std::vector<array> &arrays)
    {
        memory_.reserve(image_bound(arrays));
        image_writer writer(memory_, {3, 8, 1234, 0xfeedfacecafebeef});
        for (const array &a : arrays)
            writer.write(a);
        const auto image = writer.finish();
        zero_ = writer.zero_bytes();
        return image;
    }

    image_memory memory_;
    std::uint64_t zero_ = 0;
};

TEST_F(ImageTest, ReturnsWhatWasWritten)
{
    std::vector<double> large = numbers(100'003);
    std::vector<std::int32_t> small{1, -2, 3};
    std::vector<std::uint8_t> bytes(131'073, 7);
    const auto image =
        image_of({over("large", large, element::f64), over("small", small, element::i32),
                  over("bytes", bytes, element::byte)});
    const image_reader reader(image);
    EXPECT_EQ(reader.header().rank, 3);
    EXPECT_EQ(reader.header().ranks, 8);
    EXPECT_EQ(reader.header().safe_point, 1234);
    EXPECT_EQ(reader.header().job, 0xfeedfacecafebeef);
    EXPECT_EQ(reader.names(), (std::vector<std::string>{"bytes", "large", "small"}));

    std::vector<double> large_back(large.size());
    std::vector<std::int32_t> small_back(3);
    std::vector<std::uint8_t> bytes_back(bytes.size());
    reader.read(over("large", large_back, element::f64));
    reader.read(over("small", small_back, element::i32));
    reader.read(over("bytes", bytes_back, element::byte));
    EXPECT_EQ(large, large_back);
    EXPECT_EQ(small, small_back);
    EXPECT_EQ(bytes, bytes_back);
    EXPECT_EQ(zero_, 0u);
}

TEST_F(ImageTest, WithoutElementsIsSavedByNameAndType)
{
    std::vector<double> some = numbers(3);
    const array nothing{"nothing", nullptr, 0, element::f64};
    const auto image = image_of({nothing, over("some", some, element::f64)});
    const image_reader reader(image);
    EXPECT_EQ(reader.count("nothing"), 0u);
    reader.read(nothing);
    EXPECT_EQ(code_of([&] { reader.read({"nothing", nullptr, 0, element::i32}); }), EBADMSG);
    EXPECT_EQ(code_of([&] { reader.read(over("nothing", some, element::f64)); }), EBADMSG);
}

TEST_F(ImageTest, EveryElementTypeSurvives)
{
    for (int kind = 0; kind <= static_cast<int>(kLastElement); kind++) {
        const auto type = static_cast<element>(kind);
        std::vector<std::uint8_t> data(1000 * size_of(type)), back(data.size());
        for (std::size_t i = 0; i < data.size(); i++)
            data[i] = static_cast<std::uint8_t>(i * 37 % 127);
        const array from{"x", reinterpret_cast<std::byte *>(data.data()), 1000, type};
        const array to{"x", reinterpret_cast<std::byte *>(back.data()), 1000, type};
        image_reader(image_of({from})).read(to);
        EXPECT_EQ(data, back) << name_of(type);
    }
}

/** A particle and what an array of them is made of, gaps between. */
struct particle {
    double at[3];
    std::int32_t number;
    float complex_mass[2];
};
std::shared_ptr<const layout> particles()
{
    return std::make_shared<layout>(
        std::vector<layout::part>{{offsetof(particle, at), element::f64, 3},
                                  {offsetof(particle, number), element::i32, 1},
                                  {offsetof(particle, complex_mass), element::c64, 1}},
        sizeof(particle));
}

TEST_F(ImageTest, DerivedTypesSurviveInSegmentsToo)
{
    std::vector<particle> all(200'000), back(all.size());
    std::memset(back.data(), 0xee, back.size() * sizeof back[0]);
    for (std::size_t i = 0; i < all.size(); i++)
        all[i] = {{static_cast<double>(i), 1, 2}, static_cast<int>(i), {3, 4}};
    const array from{"p", reinterpret_cast<std::byte *>(all.data()), all.size(), {}, particles()};
    const array to{"p", reinterpret_cast<std::byte *>(back.data()), back.size(), {}, particles()};
    EXPECT_EQ(from.type_name(), "{float64[3],int32,complex64}");
    const auto same = [&] {
        for (std::size_t i = 0; i < all.size(); i++)
            if (std::memcmp(all[i].at, back[i].at, sizeof all[i].at) != 0 ||
                all[i].number != back[i].number ||
                std::memcmp(all[i].complex_mass, back[i].complex_mass, 8) != 0)
                return false;
        return true;
    };
    {
        const image_reader reader(image_of({from}));
        EXPECT_EQ(reader.count("p"), all.size());
        reader.read(to);
        EXPECT_TRUE(same());
    }
    std::memset(back.data(), 0xee, back.size() * sizeof back[0]);
    const std::uint64_t step = segment_units(from);
    EXPECT_LE(step * from.unit_bytes(), 1u << 20);
    for (std::uint64_t first = 0; first < from.units(); first += step) {
        const std::uint64_t count = std::min(step, from.units() - first);
        image_memory memory;
        memory.reserve(segment_bound(from));
        image_writer writer(memory, {}, checksums::none);
        writer.write(from, first, count);
        image_reader(writer.finish(), checksums::none).read(to, first, count);
    }
    EXPECT_TRUE(same());
}

TEST_F(ImageTest, AColumnOfAMatrixSurvivesAlone)
{
    constexpr std::size_t kRows = 70'000, kColumns = 5;
    std::vector<double> matrix(kRows * kColumns), back(matrix.size(), -1.0);
    for (std::size_t i = 0; i < matrix.size(); i++)
        matrix[i] = static_cast<double>(i) + 0.5;
    std::vector<layout::part> column;
    for (std::size_t row = 0; row < kRows; row++)
        column.push_back({static_cast<std::int64_t>(row * kColumns * 8), element::f64, 1});
    const auto shape = std::make_shared<layout>(column, kRows * kColumns * 8);
    const auto third = [&](std::vector<double> &of) {
        return array{"c", reinterpret_cast<std::byte *>(of.data() + 2), 1, {}, shape};
    };
    image_reader(image_of({third(matrix)})).read(third(back));
    for (std::size_t i = 0; i < matrix.size(); i++)
        ASSERT_EQ(back[i], i % kColumns == 2 ? matrix[i] : -1.0) << i;
}

TEST_F(ImageTest, ATypeThatDiffersIsNamedOnBothSides)
{
    std::vector<particle> all(3);
    std::vector<double> numbers(9);
    const array from{"p", reinterpret_cast<std::byte *>(all.data()), 3, {}, particles()};
    const auto complaint = [](const image_reader &reader, const array &wanted) {
        try {
            reader.read(wanted);
            return std::string();
        } catch (const error &problem) {
            EXPECT_EQ(problem.code(), EBADMSG);
            return std::string(problem.what());
        }
    };
    {
        const image_reader reader(image_of({from}));
        EXPECT_EQ(complaint(reader, over("p", numbers, element::f64)),
                  "type of 'p' is not float64 as saved: that is {float64[3],int32,complex64}");
    }
    const auto triple =
        std::make_shared<layout>(std::vector<layout::part>{{0, element::f64, 3}}, 24);
    const array threes{"p", reinterpret_cast<std::byte *>(numbers.data()), 3, {}, triple};
    const image_reader reader(image_of({threes}));
    EXPECT_EQ(reader.count("p"), 3u);
    EXPECT_EQ(complaint(reader, from),
              "type of 'p' is not {float64[3],int32,complex64} as saved: that is float64[3]");
    EXPECT_EQ(complaint(reader, over("p", numbers, element::f64)),
              "type of 'p' is not float64 as saved: that is float64[3]");
    EXPECT_EQ(complaint(reader, threes), "");
}

TEST_F(ImageTest, LeavesZeroBlocksOutAndRestoresThem)
{
    std::vector<double> data(4 << 20 >> 3), back(data.size(), 1.0);
    data[3] = 1;
    data[data.size() / 2] = 2;
    const auto image = image_of({over("sparse", data, element::f64)});
    EXPECT_LT(image.size(), 512u << 10);
    EXPECT_EQ(zero_, (4u << 20) - 2 * (128u << 10));
    image_reader(image).read(over("sparse", back, element::f64));
    EXPECT_EQ(data, back);
}

TEST_F(ImageTest, AllZeroIsRestoredOverOldContent)
{
    std::vector<std::int64_t> data(1 << 17, 0), back(data.size(), -1), small(5, 0),
        small_back(5, -1);
    const auto image = image_of({over("x", data, element::i64), over("y", small, element::i64)});
    const image_reader reader(image);
    reader.read(over("x", back, element::i64));
    reader.read(over("y", small_back, element::i64));
    EXPECT_EQ(data, back);
    EXPECT_EQ(small, small_back);
}

TEST_F(ImageTest, NegativeZeroIsNotZero)
{
    std::vector<double> data(1 << 17, -0.0), back(data.size(), 0.0);
    image_reader(image_of({over("x", data, element::f64)})).read(over("x", back, element::f64));
    EXPECT_EQ(0, std::memcmp(data.data(), back.data(), data.size() * 8));
}

TEST_F(ImageTest, SegmentsTogetherAreTheArray)
{
    std::vector<double> data = numbers(5 << 20 >> 1), back(data.size(), -1.0);
    std::fill(data.begin() + 300'000, data.begin() + 900'000, 0.0);
    const array from = over("x", data, element::f64), to = over("x", back, element::f64);
    const std::uint64_t step = segment_units(from);
    EXPECT_EQ(step * 8, 1u << 20);
    for (std::uint64_t first = 0; first < from.count; first += step) {
        const std::uint64_t count = std::min(step, from.count - first);
        image_memory memory;
        array part = from;
        part.count = count;
        memory.reserve(image_bound({&part, 1}));
        image_writer writer(memory, {});
        writer.write(from, first, count);
        image_reader(writer.finish()).read(to, first, count);
    }
    EXPECT_EQ(data, back);
}

TEST_F(ImageTest, RefusesOtherTypeCountAndName)
{
    std::vector<std::int32_t> data(100, 5);
    std::vector<float> other(100);
    const auto image = image_of({over("x", data, element::i32)});
    const image_reader reader(image);
    std::vector<std::int32_t> shorter(99);
    EXPECT_EQ(code_of([&] { reader.read(over("x", other, element::f32)); }), EBADMSG);
    EXPECT_EQ(code_of([&] { reader.read(over("x", shorter, element::i32)); }), EBADMSG);
    EXPECT_EQ(code_of([&] { reader.read(over("y", data, element::i32)); }), ENOENT);
}

TEST_F(ImageTest, DamagedDataIsNoticed)
{
    std::vector<double> data = numbers(50'000), back(data.size());
    const auto image = image_of({over("x", data, element::f64)});
    std::vector<std::byte> copy(image.begin(), image.end());
    const double wanted = data[20'000];
    for (std::size_t i = 0; i + 8 <= copy.size(); i += 8)
        if (std::memcmp(&copy[i], &wanted, 8) == 0)
            copy[i] ^= std::byte{1};
    EXPECT_EQ(code_of([&] { image_reader(copy).read(over("x", back, element::f64)); }), EBADMSG);
}

TEST_F(ImageTest, RubbishIsNoImage)
{
    const std::vector<std::byte> rubbish(4096, std::byte{0x42});
    EXPECT_EQ(code_of([&] { image_reader reader(rubbish); }), EBADMSG);
    EXPECT_EQ(code_of([&] { image_reader reader(std::string("/no/such/file")); }), EBADMSG);
}

TEST_F(ImageTest, TooLittleMemoryIsAnError)
{
#ifdef __SANITIZE_ADDRESS__
    /* HDF5 1.10 cannot close a file that it cannot write, and keeps its buffers. */
    __lsan::ScopedDisabler hdf5s_own;
#endif
    std::vector<double> data = numbers(1 << 20);
    memory_.reserve(2 << 20);
    EXPECT_NE(code_of([&] {
                  image_writer writer(memory_, {});
                  writer.write(over("x", data, element::f64));
                  writer.finish();
              }),
              0);
}

TEST_F(ImageTest, IsNotTakenWithoutChecksumsUnlessTheReaderAgrees)
{
    std::vector<double> data = numbers(1000), again(1000);
    const array source = over("x", data, element::f64), target = over("x", again, element::f64);
    memory_.reserve(image_bound({&source, 1}));
    image_writer writer(memory_, {3, 8, 1234}, checksums::none);
    writer.write(source);
    const auto image = writer.finish();
    EXPECT_EQ(code_of([&] { image_reader(image).read(target); }), EBADMSG);
    image_reader(image, checksums::none).read(target);
    EXPECT_EQ(data, again);
}

} // namespace
} // namespace zc::migrate
