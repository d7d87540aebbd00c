/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of deliveries by /dev/zc itself. Prints TAP, and exits with 4 where the
 * device cannot be used. Linked statically, so that a guest needs nothing else:
 *
 *     tests/run kmod --program build/release/bin/zc_device_tests
 */
#include "exchanger.h"
#include "support.h"

#include <cstdio>

std::vector<zc::test::backend> zc::test::backends_under_test()
{
    return {backend::device, backend::device_mixed};
}

namespace {

class tap_printer : public testing::EmptyTestEventListener {
  public:
    void OnTestProgramStart(const testing::UnitTest &all) override
    {
        std::printf("TAP version 14\n1..%d\n", all.test_to_run_count());
    }
    void OnTestPartResult(const testing::TestPartResult &part) override
    {
        if (part.failed())
            comment(std::string(part.file_name() ? part.file_name() : "?") + ":" +
                    std::to_string(part.line_number()) + ": " + part.summary());
        if (part.skipped())
            why_skipped_ = part.message();
    }
    void OnTestEnd(const testing::TestInfo &test) override
    {
        const testing::TestResult &result = *test.result();
        std::printf("%s %d - %s.%s", result.Failed() ? "not ok" : "ok", ++count_,
                    test.test_suite_name(), test.name());
        if (result.Skipped())
            std::printf(" # SKIP %s", first_line(why_skipped_).c_str());
        std::printf("\n");
        std::fflush(stdout);
    }

  private:
    static std::string first_line(const std::string &text)
    {
        return text.substr(0, text.find('\n'));
    }
    static void comment(const std::string &text)
    {
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end = std::min(text.find('\n', at), text.size());
            std::printf("# %.*s\n", static_cast<int>(end - at), text.data() + at);
            at = end + 1;
        }
    }

    int count_ = 0;
    std::string why_skipped_;
};

} // namespace

int main(int argc, char **argv)
{
    constexpr int kSkipped = 4;
    testing::InitGoogleTest(&argc, argv);
    zc::exchanger device(true);
    if (!device.ready()) {
        std::printf("1..0 # SKIP %s\n", device.status());
        return kSkipped;
    }
    testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new tap_printer); /* which deletes it */
    return RUN_ALL_TESTS();
}
