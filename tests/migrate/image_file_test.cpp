/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <vector>

#include "error.h"
#include "image_file.h"
#include "scratch_directory.h"

namespace zc::migrate {
namespace {

namespace fs = std::filesystem;

class ImageFileTest : public testing::Test {
  protected:
    static array over(const std::string &name, std::vector<double> &data)
    {
        return {name, reinterpret_cast<std::byte *>(data.data()), data.size(), element::f64};
    }
    static long most_memory()
    {
        rusage used;
        getrusage(RUSAGE_SELF, &used);
        return used.ru_maxrss; /* KiB */
    }

    const scratch_directory scratch_;
    const std::string &place_ = scratch_.path();
};

TEST_F(ImageFileTest, IsReadAsWhatWasWritten)
{
    std::vector<double> plate(3 << 17), point{1.5, 2.5};
    for (std::size_t i = 0; i < plate.size() / 2; i++)
        plate[i] = static_cast<double>(i) + 0.5; /* the rest is zero */
    int laps = 0;
    const image_size size =
        stream_image(place_ + "/x.h5", {1, 4, 100, 7},
                     std::vector{over("plate", plate), over("point", point)}, [&] { laps++; });
    EXPECT_EQ(fs::file_size(place_ + "/x.h5"), size.image_bytes);
    EXPECT_EQ(size.zero_bytes, plate.size() / 2 * 8);
    EXPECT_GE(laps, 3);
    EXPECT_FALSE(fs::exists(place_ + "/x.h5.part"));

    std::vector<double> plate_back(plate.size(), -1), point_back(2);
    const image_reader reader(place_ + "/x.h5");
    EXPECT_EQ(reader.header().safe_point, 100);
    reader.read(over("plate", plate_back));
    reader.read(over("point", point_back));
    EXPECT_EQ(plate_back, plate);
    EXPECT_EQ(point_back, point);
}

TEST_F(ImageFileTest, NeedsNoMemoryForASecondState)
{
    std::vector<double> state(std::size_t{96} << 17, 0.25); /* 96 MiB */
    const long before = most_memory();
    stream_image(place_ + "/x.h5", {}, std::vector{over("state", state)});
    EXPECT_LT(most_memory() - before, 16 << 10);
}

TEST_F(ImageFileTest, ADiskThatIsFullIsSaid)
{
    const rlimit small{4 << 20, RLIM_INFINITY};
    rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    std::vector<double> state(std::size_t{8} << 17, 0.25);
    setrlimit(RLIMIT_FSIZE, &small);
    int code = 0;
    try {
        stream_image(place_ + "/x.h5", {}, std::vector{over("state", state)});
    } catch (const error &problem) {
        code = problem.code();
        EXPECT_NE(std::string(problem.what()).find("'state'"), std::string::npos) << problem.what();
    }
    setrlimit(RLIMIT_FSIZE, &usual);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(code, EFBIG);
    EXPECT_TRUE(fs::is_empty(place_));
    EXPECT_THROW(stream_image(place_ + "/none/x.h5", {}, {}), error);
}

} // namespace
} // namespace zc::migrate
