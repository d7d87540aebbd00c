/* SPDX-License-Identifier: BSD-3-Clause */
#include "commit_record.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "error.h"

namespace zc::holder {
namespace {

class CommitRecordTest : public ::testing::Test {
  protected:
    CommitRecordTest()
    {
        std::string name = std::filesystem::temp_directory_path() / "holder-record-XXXXXX";
        folder_ = mkdtemp(name.data());
        path_ = folder_ + "/record";
    }
    ~CommitRecordTest() override { std::filesystem::remove_all(folder_); }
    std::string folder_, path_;
};

TEST_F(CommitRecordTest, IsReadAsItWasWritten)
{
    EXPECT_FALSE(read_record(path_));
    write_record(path_, {1, "tcp://b:1", ""});
    write_record(path_, {2, "", "tcp://b:1"});
    const auto read = read_record(path_);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->incarnation, 2u);
    EXPECT_EQ(read->place, "");
    EXPECT_EQ(read->before, "tcp://b:1");
}

TEST_F(CommitRecordTest, LeavesTheOldOneWhenItCannotBeWritten)
{
    write_record(path_, {1, "tcp://b:1", ""});
    std::filesystem::create_directory(path_ + ".part"); /* in the way */
    EXPECT_THROW(write_record(path_, {2, "", ""}), error);
    EXPECT_EQ(read_record(path_)->incarnation, 1u);
}

TEST_F(CommitRecordTest, RefusesWhatIsNone)
{
    std::ofstream(path_) << "{\"incarnation\": 1";
    EXPECT_THROW(read_record(path_), error);
}

} // namespace
} // namespace zc::holder
