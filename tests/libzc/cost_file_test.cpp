/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost.h"

#include <cerrno>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace {

class CostFileTest : public testing::Test {
  protected:
    CostFileTest() : path_(testing::TempDir() + "zc_costs_" + std::to_string(getpid())) {}
    ~CostFileTest() override { (void)std::remove(path_.c_str()); }

    void write(const std::string &text) const { std::ofstream(path_) << text; }
    std::string read() const
    {
        std::ostringstream out;
        out << std::ifstream(path_).rdbuf();
        return out.str();
    }
    int load() const
    {
        zc_costs_t c{};
        return zc::load_costs(path_.c_str(), c);
    }

    std::string path_;
};

} // namespace

TEST_F(CostFileTest, ReadsBackWhatWasWritten)
{
    zc_costs_t out = zc::kCostsUnmeasured, in{};
    out.copy_ns_per_byte = 0.123456789;
    out.kmod_ns_fixed = 1234.5;
    out.kmod_ns_per_page = 0.25;
    out.kmod_ns_per_2m = 1e-3;
    ASSERT_EQ(zc::save_costs(path_.c_str(), out), 0);
    ASSERT_EQ(zc::load_costs(path_.c_str(), in), 0);
    EXPECT_EQ(in.copy_ns_per_byte, out.copy_ns_per_byte);
    EXPECT_EQ(in.mremap_ns_fixed, out.mremap_ns_fixed);
    EXPECT_EQ(in.kmod_ns_fixed, out.kmod_ns_fixed);
    EXPECT_EQ(in.kmod_ns_per_page, out.kmod_ns_per_page);
    EXPECT_EQ(in.kmod_ns_per_2m, out.kmod_ns_per_2m);
    EXPECT_EQ(in.size, sizeof(in));
}

TEST_F(CostFileTest, MissingFile)
{
    EXPECT_EQ(load(), -ENOENT);
}

TEST_F(CostFileTest, NotJson)
{
    write("copy = 3");
    EXPECT_EQ(load(), -EBADMSG);
}

TEST_F(CostFileTest, NotAnObject)
{
    write("[1, 2]");
    EXPECT_EQ(load(), -EBADMSG);
}

TEST_F(CostFileTest, MissingField)
{
    ASSERT_EQ(zc::save_costs(path_.c_str(), zc::kCostsUnmeasured), 0);
    std::string text = read();
    text.replace(text.find("mremap_ns_fixed"), 6, "MREMAP");
    write(text);
    EXPECT_EQ(load(), -EBADMSG);
}

TEST_F(CostFileTest, FieldThatIsNoNumber)
{
    ASSERT_EQ(zc::save_costs(path_.c_str(), zc::kCostsUnmeasured), 0);
    std::string text = read();
    auto colon = text.find(": ", text.find("mremap_ns_fixed"));
    text.insert(colon + 2, "\"");
    text.insert(text.find(',', colon), "\"");
    write(text);
    EXPECT_EQ(load(), -EBADMSG);
}

TEST_F(CostFileTest, NegativeCost)
{
    zc_costs_t c = zc::kCostsUnmeasured;
    c.mremap_ns_fixed = -1;
    ASSERT_EQ(zc::save_costs(path_.c_str(), c), 0);
    EXPECT_EQ(load(), -EBADMSG);
}

TEST_F(CostFileTest, EndlessFile)
{
    zc_costs_t c{};
    EXPECT_EQ(zc::load_costs("/dev/zero", c), -EBADMSG);
}

TEST_F(CostFileTest, UnwritableDirectory)
{
    EXPECT_EQ(zc::save_costs("/nonexistent/costs", zc::kCostsUnmeasured), -ENOENT);
}
